"""The cluster's situation: asked, judged in words, and as a document.

It is judged by one node's view, which may be seconds old, and by a count of the queues, which asks all nodes and
may fail while the rest is still worth saying.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import attrs
from rich.table import Table

from skuld_py.cli.showing import harmless, table
from skuld_py.client.client import Client
from skuld_py.client.connection import Connection
from skuld_py.client.dial import key_of
from skuld_py.errors import SkuldError
from skuld_py.model import messages as m
from skuld_py.model.ids import to_text
from skuld_py.model.state import State
from skuld_py.model.task import Task
from skuld_py.verbs.words import many, moment, said

STATES = tuple(state.name.lower() for state in State)
"""In the order of the counts."""
USUAL = 3
"""States that tables always have; the others, when some queue has tasks in them."""
PAUSED_SHOWN = 8
"""Paused queues that are named one by one."""
BLOCKED_SHOWN, BLOCKED_PAGES = 5, 4
"""How many queues have a blocked task named, those with the most first; and how many pages of a queue are searched
for one."""


@attrs.frozen
class Collection:
    """What was deleted as ended long ago: how many tasks, by all nodes; up to which age of ids the partition
    furthest behind is sealed, 0 if none is; and the nodes that collection waits for."""

    collected: int
    sealed_ms: int
    awaited: tuple[str, ...]


@attrs.frozen
class Blocked:
    """A queue with blocked tasks: the oldest one, by its id, and the tasks it waits for, if they were found."""

    queue: str
    id: str | None = None
    waits_for: tuple[str, ...] = ()


@attrs.frozen
class Situation:
    """What was asked for: the cluster's parameters, the view of one node, and counts when there are any."""

    greeted: m.Greeted
    described: m.Described
    depths: tuple[m.CountRow, ...] = ()
    doubt: str = ""
    """Why there are no counts."""
    blocked: tuple[Blocked, ...] = ()

    @property
    def missing(self) -> int:
        """How many nodes must join before anything is placed."""
        return max(0, self.greeted.replicas - len(self.described.nodes))

    @property
    def collection(self) -> Collection | None:
        """What was deleted, and what that waits for; None where everything is kept."""
        rows = self.described.collections
        if not rows:
            return None
        sealed_ms = min((row.sealed_ms for row in rows if row.sealed_ms), default=0)
        awaited = sorted({name for row in rows for name in row.awaited})
        return Collection(sum(row.collected for row in rows), sealed_ms, tuple(awaited))

    @property
    def troubled(self) -> tuple[m.PartitionRow, ...]:
        """The partitions without a leader."""
        return tuple(row for row in self.described.partitions if not row.leader)


def ask(nodes: list[str], timeout_s: float) -> Situation:
    """The situation; raises only when no node answers at all."""
    connection = Connection(nodes, key=key_of(None))
    try:
        situation = look(connection, timeout_s)
        return attrs.evolve(situation, blocked=_blocked(connection, nodes, situation.depths, timeout_s))
    finally:
        connection.close()


def _blocked(connection: Connection, nodes: list[str], depths: tuple[m.CountRow, ...],
             timeout_s: float) -> tuple[Blocked, ...]:
    """What tasks wait for: one blocked task for each of the first queues."""
    queues = [row.queue for row in sorted(depths, key=lambda row: (-row.blocked, row.queue)) if row.blocked]
    found: dict[str, bytes] = {}
    tasks: dict[bytes, Task] = {}
    with suppress(SkuldError):
        for queue in queues[:BLOCKED_SHOWN]:
            found[queue] = _oldest_blocked(connection, queue, timeout_s)
    if any(found.values()):
        with suppress(SkuldError), Client(nodes, timeout_s=timeout_s) as client:
            tasks = {task.id: task for task in client.get_many([each for each in found.values() if each])}
    named = {queue: tasks[task_id] for queue, task_id in found.items()
             if task_id in tasks and tasks[task_id].blocked_by}
    return tuple(Blocked(queue, to_text(named[queue].id), tuple(map(to_text, named[queue].blocked_by)))
                 if queue in named else Blocked(queue) for queue in queues)


def _oldest_blocked(connection: Connection, queue: str, timeout_s: float) -> bytes:
    """The oldest blocked task of a queue; nothing if it lies behind the first pages."""
    after = b""
    for _ in range(BLOCKED_PAGES):
        page = connection.call(m.List(connection.next_request(), queue, after, 1, 1 << State.BLOCKED), timeout_s,
                               is_idempotent=True)
        assert isinstance(page, m.Listed), page
        if page.ids or not page.upto:
            return page.ids
        after = page.upto
    return b""


def look(connection: Connection, timeout_s: float) -> Situation:
    """The situation, over a connection that stays."""
    greeted = connection.greet(timeout_s)
    described = connection.call(m.Describe(connection.next_request()), timeout_s, is_idempotent=True)
    assert isinstance(described, m.Described), described
    if len(described.nodes) < greeted.replicas:
        return Situation(greeted, described, doubt="no partition is placed yet")
    try:
        counted = connection.call(m.Count(connection.next_request(), ""), timeout_s, is_idempotent=True)
    except SkuldError as error:
        return Situation(greeted, described, doubt=error.message)
    assert isinstance(counted, m.Counted), counted
    return Situation(greeted, described, counted.rows)


def attention(situation: Situation) -> list[str]:
    """What an operator should know, worst first; empty when all is well."""
    return [harmless(line) for line in _attention(situation)]


def _attention(situation: Situation) -> list[str]:
    described, found = situation.described, []
    if situation.missing:
        found.append(f"the cluster waits for {many(situation.missing, 'more node')}: start"
                     f" {'it' if situation.missing == 1 else 'them'} with 'skuld node'")
    down = [node.name for node in described.nodes if not node.is_live]
    if down:
        found.append(f"{many(len(down), 'node')} {_be(len(down))} down: {', '.join(down)}")
    if described.session != "connected":
        found.append(f"node {described.node} has no session with ZooKeeper ({described.session}): what it"
                     " says of others may be old")
    found += _wrong_clocks(situation)
    if situation.missing:
        return found
    leaderless = situation.troubled
    if leaderless and len(leaderless) == len(described.partitions):
        found.append("no partition has a leader: no claim is granted, those that wait among them, until elections"
                     " are over; these take seconds, and need ZooKeeper and a majority of each partition's voters")
    elif leaderless:
        found.append(f"{many(len(leaderless), 'partition')} {_has(len(leaderless))} no leader"
                     f" ({_numbers(leaderless)}): their tasks cannot be claimed; "
                     + ("an election takes seconds" if described.session == "connected" else "an election needs"
                        " ZooKeeper"))
    live = {node.name for node in described.nodes if node.is_live}
    short = [row for row in described.partitions
             if 2 * len(live.intersection(row.cohort or row.owners)) <= len(row.cohort or row.owners)]
    if short:
        found.append(f"{many(len(short), 'partition')} {_has(len(short))} no majority of voters"
                     f" ({_numbers(short)}): start the nodes that are down")
    found += _moves(described)
    found += _uncollected(situation)
    if described.is_unproven:
        found.append("claims count without a proof that they were granted: 'skuld cluster rules --raise"
                     f" {situation.greeted.cluster}' ends that, after its grace")
    found += [f"queue {queue} is paused: nothing of it is granted until 'skuld resume {queue}'"
              for queue in described.paused[:PAUSED_SHOWN]]
    if len(described.paused) > PAUSED_SHOWN:
        found.append(f"{len(described.paused) - PAUSED_SHOWN:,} more queues are paused: see 'skuld paused'")
    if situation.doubt:
        found.append(f"the queues could not be counted: {situation.doubt}")
    return found


def _moves(described: m.Described) -> list[str]:
    """Data on its way, a line for each node and kind; suspects first, since their votes are missing."""
    words = {"suspect": "fills {} again from the others and does not vote there until then",
             "learner": "takes {} over", "zombie": "hands {} off"}
    found = []
    for role, what in words.items():
        for name in dict.fromkeys(row.node for row in described.moves):
            rows = [row for row in described.moves if row.node == name and row.role == role]
            if rows:
                reason = next((f" ({row.reason})" for row in rows if row.reason), "")
                moved = sum(row.rows for row in rows)
                done = sum(row.is_done for row in rows)
                found.append(f"node {name} {what.format(many(len(rows), 'partition'))}{reason}: {moved:,} rows"
                             f" so far, {done} of {len(rows)} done")
    return found


def _uncollected(situation: Situation) -> list[str]:
    """Collection that waits for nodes that are away. Nodes that are up need no help."""
    live = {node.name for node in situation.described.nodes if node.is_live}
    collection = situation.collection
    away = [name for name in collection.awaited if name not in live] if collection else []
    if not away:
        return []
    return [f"ended tasks are not deleted while {many(len(away), 'node')} {_be(len(away))} away:"
            f" {', '.join(away)}; start {'it' if len(away) == 1 else 'them'}, or forget what does not come back"
            f" with 'skuld cluster forget {situation.greeted.cluster} NODE'"]


def _wrong_clocks(situation: Situation) -> list[str]:
    bound = said(situation.greeted.skew_ms / 1000)
    rows = situation.described.nodes
    found = [f"node {row.name}: clock {offset_said(row)}:"
             f" {'does not lead' if row.clock == 'far' else 'does not grant'}; set it right and start the node"
             " again" for row in rows if row.clock in ("outside", "far")]
    if any(row.clock == "disagreed" for row in rows):
        clocks = ", ".join(f"{row.name} {offset_said(row)}" for row in rows if row.clock != "unheard")
        found.append(f"no majority of the clocks agrees within {bound}, so no claims are granted: {clocks}; set"
                     " them right and start their nodes again")
    return found


def offset_said(row: m.NodeRow) -> str:
    """How wrong a clock is: ``3.2 s ahead``."""
    return f"{said(abs(row.offset_ms) / 1000)} {'behind' if row.offset_ms < 0 else 'ahead'}"


def _be(count: int) -> str:
    return "is" if count == 1 else "are"


def _has(count: int) -> str:
    return "has" if count == 1 else "have"


def _numbers(rows: tuple[m.PartitionRow, ...] | list[m.PartitionRow], most: int = 8) -> str:
    listed = ", ".join(str(row.partition) for row in rows[:most])
    return f"{listed}, …" if len(rows) > most else listed


def document(situation: Situation) -> dict[str, Any]:
    """The situation as JSON has it."""
    greeted, described = situation.greeted, situation.described
    return {
        "cluster": greeted.cluster, "partitions_total": greeted.partitions, "replicas": greeted.replicas,
        "skew_ms": greeted.skew_ms, "seen_by": described.node, "session": described.session,
        "attention": attention(situation),
        "nodes": [attrs.asdict(row) for row in described.nodes],
        "partitions": [attrs.asdict(row) for row in described.partitions],
        "moves": [attrs.asdict(row) for row in described.moves],
        "paused": list(described.paused),
        "is_unproven": described.is_unproven,
        "blocked": [attrs.asdict(row) for row in situation.blocked],
        "collection": None if situation.collection is None else attrs.asdict(situation.collection),
        "queues": None if situation.doubt else [
            {"queue": row.queue, **dict(zip(STATES, row.counts, strict=True))}
            for row in sorted(situation.depths, key=lambda row: row.queue)],
    }


def collection_said(collection: Collection) -> str:
    """What is collected, in a line."""
    seal = f", up to ids of {moment(collection.sealed_ms)}" if collection.sealed_ms else ""
    waits = f"; waits for {', '.join(collection.awaited)}" if collection.awaited else ""
    return harmless(f"retention: {many(collection.collected, 'ended task')} deleted{seal}{waits}")


def states_shown(depths: tuple[m.CountRow, ...]) -> tuple[str, ...]:
    """The columns of a table of queues."""
    return STATES[:USUAL] + tuple(state for state in STATES[USUAL:] if any(getattr(row, state) for row in depths))


def node_table(described: m.Described) -> Table:
    """The nodes, a row each."""
    rows = table("node", "state", "leads>", "owns>", "clock")
    for node in described.nodes:
        rows.add_row(node.name, "live" if node.is_live else "down", str(node.leads), str(node.owns),
                     "" if node.clock == "unheard" else offset_said(node))
    return rows
