"""The cluster's situation: asked, judged in words, and as a document.

It is judged by one node's view, which may be seconds old, by what others tell of partitions that this node does
not keep, and by a count of the queues, which asks all nodes and may fail while the rest is still worth saying.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import attrs
from rich.table import Table

from skuld_py.cli.showing import harmless, now_ms, table
from skuld_py.client.asking import Answered, Ask, Blocking, Step
from skuld_py.client.canvassing import canvassed
from skuld_py.client.client import Client
from skuld_py.client.connection import Connection
from skuld_py.client.dial import key_of
from skuld_py.client.steady import steady_s
from skuld_py.errors import SkuldError
from skuld_py.model import messages as m
from skuld_py.model.ids import to_text
from skuld_py.model.overview import Overview, untold_by
from skuld_py.model.service import Service, services_of, worst
from skuld_py.model.state import State
from skuld_py.model.task import Task
from skuld_py.verbs import attention as judged
from skuld_py.verbs.attention import Collection, collection_of, offset_said
from skuld_py.verbs.words import many, moment

STATES = tuple(state.name.lower() for state in State)
"""In the order of the counts."""
USUAL = 3
"""States that tables always have; the others, when some queue has tasks in them."""
BLOCKED_SHOWN, BLOCKED_PAGES = 5, 4
"""How many queues have a blocked task named, those with the most first; and how many pages of a queue are searched
for one."""


@attrs.frozen
class Blocked:
    """A queue with blocked tasks: the oldest one, by its id, and the tasks it waits for, if they were found."""

    queue: str
    id: str | None = None
    waits_for: tuple[str, ...] = ()


@attrs.frozen
class Situation:
    """What was asked for: the cluster's parameters, the view of one node, and counts when there are any.
    ``silent`` and ``untold``: nodes that did not tell what is held, and the partitions of which nobody did."""

    greeted: m.Greeted
    described: m.Described
    depths: tuple[m.CountRow, ...] = ()
    doubt: str = ""
    """Why there are no counts."""
    blocked: tuple[Blocked, ...] = ()
    silent: Mapping[str, str] = attrs.field(factory=dict)
    untold: frozenset[int] = frozenset()

    @property
    def services(self) -> dict[int, Service]:
        """What each partition does."""
        return services_of(self.described, self.untold)

    @property
    def missing(self) -> int:
        """How many nodes must join before anything is placed."""
        return max(0, self.greeted.replicas - len(self.described.nodes))

    @property
    def collection(self) -> Collection | None:
        """What was deleted, and what that waits for; None where everything is kept."""
        return collection_of(self.described)

    @property
    def troubled(self) -> tuple[m.PartitionRow, ...]:
        """The partitions without a leader."""
        return tuple(row for row in self.described.partitions if not row.leader)


def ask(nodes: list[str], timeout_s: float) -> Situation:
    """The situation; raises only when no node answers at all."""
    connection = Connection(nodes, key=key_of(None, nodes))
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
    described = connection.call(m.Describe(connection.next_request(), reads_unproven=True), timeout_s,
                                is_idempotent=True)
    assert isinstance(described, m.Described), described
    if len(described.nodes) < greeted.replicas:
        return Situation(greeted, described, doubt="no partition is placed yet")
    seen = Over(connection, timeout_s).overview(described) if untold_by(described) else Overview(described)
    found = Situation(greeted, seen.described, silent=seen.silent, untold=seen.untold)
    try:
        counted = connection.call(m.Count(connection.next_request(), ""), timeout_s, is_idempotent=True)
    except SkuldError as error:
        return attrs.evolve(found, doubt=error.message)
    assert isinstance(counted, m.Counted), counted
    return attrs.evolve(found, depths=counted.rows)


class Over(Blocking):
    """Asks over a connection that stays."""

    def __init__(self, connection: Connection, timeout_s: float) -> None:
        self._connection = connection
        self._timeout_s = timeout_s

    def overview(self, first: m.Described) -> Overview:
        """What ``first`` says, and those who keep the other partitions."""
        return self._run(canvassed(first, self._connection.greet(self._timeout_s), steady_s))

    def _perform(self, step: Step) -> Answered[m.Message]:
        assert isinstance(step, Ask)
        message = attrs.evolve(step.message, request=self._connection.next_request())  # type: ignore[call-arg]
        return Answered(self._connection.call(message, min(self._timeout_s, step.within_s), only=step.only,
                                              is_idempotent=step.is_idempotent), 0.0)


def attention(situation: Situation) -> list[str]:
    """What an operator should know, worst first; empty when all is well."""
    return [harmless(concern.words) for concern in concerns(situation)]


def concerns(situation: Situation) -> list[judged.Concern]:
    """The same with the kinds; the words as they came."""
    greeted = situation.greeted
    facts = judged.Facts(greeted.cluster, greeted.replicas, greeted.skew_ms, situation.described, situation.doubt,
                         now_ms(), situation.silent, situation.untold)
    return judged.concerns(facts)


def document(situation: Situation) -> dict[str, Any]:
    """The situation as JSON has it."""
    greeted, described = situation.greeted, situation.described
    services, found = situation.services, concerns(situation)
    return {
        "cluster": greeted.cluster, "partitions_total": greeted.partitions, "replicas": greeted.replicas,
        "skew_ms": greeted.skew_ms, "seen_by": described.node, "session": described.session,
        "level": judged.level_of(worst(services), found), "service": worst(services).value,
        "attention": attention(situation), "concerns": [attrs.asdict(each) for each in found],
        "silent": [*situation.silent],
        "nodes": [attrs.asdict(row) for row in described.nodes],
        "partitions": [{**attrs.asdict(row), "service": services[row.partition].value}
                       for row in described.partitions],
        "moves": [attrs.asdict(row) for row in described.moves],
        "paused": list(described.paused),
        "is_unproven": described.is_unproven,
        "held": [attrs.asdict(row) for row in described.held],
        "starved": [attrs.asdict(row) for row in described.starved],
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
    archive = ""
    if collection.unarchived:
        archive = f"; {many(collection.unarchived, 'ended task')} to be archived"
    if collection.unarchived_since_ms:
        archive += f", on offer since {moment(collection.unarchived_since_ms)}"
    rate = f", {collection.collected_per_s:,} a second" if collection.collected_per_s else ""
    return harmless(f"retention: {many(collection.collected, 'ended task')} deleted{rate}{seal}{waits}{archive}")


def states_shown(depths: tuple[m.CountRow, ...]) -> tuple[str, ...]:
    """The columns of a table of queues."""
    return STATES[:USUAL] + tuple(state for state in STATES[USUAL:] if any(getattr(row, state) for row in depths))


def node_table(described: m.Described) -> Table:
    """The nodes, a row each."""
    rows = table("node", "state", "leads>", "owns>", "clock", "release", "rules>")
    for node in described.nodes:
        state = "down" if not node.is_live else "leaves" if node.is_leaving else "live"
        rows.add_row(node.name, state, str(node.leads), str(node.owns),
                     "" if node.clock == "unheard" else offset_said(node), node.release,
                     str(node.rules) if node.rules else "")
    return rows
