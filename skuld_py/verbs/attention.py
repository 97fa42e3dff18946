"""What an operator should know of a cluster: one rule for the command line, the gateway and a node's own metrics.

Each concern has a kind, by which alerts name it, and words that say what to do. All is judged by one node's view,
which may be seconds old, and by what others tell of partitions that this one does not keep. The words hold names
from the network: who prints them makes them harmless.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from skuld_py.model import messages as m
from skuld_py.model.service import Service
from skuld_py.verbs.votes import partitions_said, shortages
from skuld_py.verbs.words import copies, instant, many, said

PAUSED_SHOWN = 8
"""Paused queues that are named one by one."""
UNARCHIVED_MS = 2 * 3_600_000
"""So long what could go may wait for an archive: archivers come once an hour."""
STARVED_SHOWN = 8
"""Workflows without slots that are named one by one."""
SILENT_SHOWN = 8
"""Nodes that did not tell, named one by one."""
KINDS = ("nodes_missing", "nodes_down", "unheard", "untold", "no_session", "wrong_clock", "no_leader",
         "no_majority", "solo", "under_target", "over_target", "moving", "uncollected", "unarchived",
         "releases_differ", "unproven", "starved", "held", "paused", "leaving", "uncounted")
"""Every kind there is, for programs that must show those that are well, too."""
CHOSEN = frozenset({"solo", "leaving"})
"""Kinds that say what somebody has chosen, and what follows from it. They are told like the others, and are no
warning: one copy of each task is what a cluster has only if somebody wanted it, a node goes because somebody has
taken it out, and a monitor that warns for ever is one that nobody looks at."""
HELD = {
    "frozen": "frozen {}; nobody but the present leader may lead until 'skuld unfreeze'",
    "quarantine": "told not to trust a node: {}. It leads nothing there but what is frozen or nobody else can"
                  " lead, and gets no new vote until 'skuld quarantine {} --off'",
    "solo": "solo: no other node gets a vote until 'skuld solo --off'",
    "unled": "led by nobody, and takes tasks that nobody is granted: {}",
    "force": "waiting for those who are said to remain to elect a leader: {}",
    "loss": "without voters that were lost: {}. What only they had acknowledged is gone, known or not;"
            " 'skuld cluster force-epoch --all --noted' ends this line",
    "barrier": "granting nothing{}, when all is over that may have been granted by who was given up, or since the"
               " copies were taken that it goes back to",
    "horizon": "led, and{}: its leader ought to have written a later horizon into ZooKeeper long ago; see their"
               " logs",
    "floor": "led by a node that was not compared yet with enough voters of the leader before it, so what"
             " it lacks is not known: {}",
    "promotion": "waiting for what an operator wished: {}; 'skuld withdraw' takes it back",
    "malformed": "unchanged by what somebody wrote into ZooKeeper by hand, which makes no sense: {}"}
"""What may be held of a partition, in words; of a quarantine the node comes once more."""


@attrs.frozen
class Concern:
    """One thing to know."""

    kind: str
    words: str


@attrs.frozen
class Facts:
    """What is judged: the cluster, and the view of one node. ``doubt``: why its queues were not counted;
    ``now_ms``: by the clock of who judges, 0 to judge nothing by it. ``silent`` and ``untold``: nodes that were
    asked besides and did not tell, and partitions of which nobody told (``model.overview``)."""

    cluster: str
    replicas: int
    skew_ms: int
    described: m.Described
    doubt: str = ""
    now_ms: int = 0
    silent: Mapping[str, str] = attrs.field(factory=dict)
    untold: frozenset[int] = frozenset()


@attrs.frozen
class Collection:
    """What was deleted as ended long ago: how many tasks, by all nodes; up to which age of ids the partition
    furthest behind is sealed, 0 if none is; and the nodes that collection waits for. ``unarchived``,
    ``unarchived_since_ms``: how many wait for an archive, and since when those on offer could have gone.
    ``collected_per_s``: how many went in a second lately."""

    collected: int
    sealed_ms: int
    awaited: tuple[str, ...]
    unarchived: int = 0
    unarchived_since_ms: int = 0
    collected_per_s: int = 0


def collection_of(described: m.Described) -> Collection | None:
    """What was deleted, and what that waits for; None where everything is kept."""
    rows = described.collections
    if not rows:
        return None
    sealed_ms = min((row.sealed_ms for row in rows if row.sealed_ms), default=0)
    awaited = sorted({name for row in rows for name in row.awaited})
    since_ms = min((row.unarchived_since_ms for row in rows if row.unarchived_since_ms), default=0)
    return Collection(sum(row.collected for row in rows), sealed_ms, tuple(awaited),
                      sum(row.unarchived for row in rows), since_ms, sum(row.collected_per_s for row in rows))


def level_of(service: Service, found: Sequence[Concern]) -> str:
    """How bad it is: whether claims are granted and tasks stored decides, not which concern there is."""
    if service is Service.UNKNOWN:
        return "unknown"
    if service is not Service.FULL:
        return "critical"
    return "warning" if any(concern.kind not in CHOSEN for concern in found) else "ok"


def concerns(facts: Facts) -> list[Concern]:
    """What an operator should know, worst first; empty when all is well."""
    described = facts.described
    missing = max(0, facts.replicas - len(described.nodes))
    found = [Concern(*row) for row in _nodes(facts, missing)]
    if missing:
        return found
    return [*found, *(Concern(*row) for row in _partitions(described)),
            *(Concern(*row) for row in _off_target(facts)),
            *(Concern("moving", words) for words in _moves(described)),
            *(Concern(*row) for row in _rest(facts))]


def _nodes(facts: Facts, missing: int) -> Iterator[tuple[str, str]]:
    described = facts.described
    if missing:
        yield "nodes_missing", (f"the cluster waits for {many(missing, 'more node')}: start"
                                f" {'it' if missing == 1 else 'them'} with 'skuld node'")
    down = [node.name for node in described.nodes if not node.is_live]
    if down:
        yield "nodes_down", f"{many(len(down), 'node')} {_be(len(down))} down: {', '.join(down)}"
    silent = [node.name for node in described.nodes if node.is_silent]
    if silent:
        yield "unheard", (f"node {described.node} hears nothing of {', '.join(silent)}, and ZooKeeper has"
                          f" {'it' if len(silent) == 1 else 'them'} as live: frozen, cut off from other nodes, or"
                          " without a key that counts; see its network and its log")
    if facts.silent or facts.untold:
        yield "untold", _untold(facts)
    if described.session != "connected":
        yield "no_session", (f"node {described.node} has no session with ZooKeeper ({described.session}): what it"
                             " says of others may be old. See that ZooKeeper runs, and has its data: 'skuld"
                             f" members --cluster {facts.cluster}' asks it")
    for words in _wrong_clocks(facts):
        yield "wrong_clock", words


def _untold(facts: Facts) -> str:
    """Who was asked and did not tell, and what is not known therefore."""
    named = "; ".join(f"node {name} {why}" for name, why in [*facts.silent.items()][:SILENT_SHOWN])
    if len(facts.silent) > SILENT_SHOWN:
        named += f"; and {len(facts.silent) - SILENT_SHOWN:,} more nodes"
    if not facts.untold:
        return f"{named}: others told of the partitions that it keeps; see its network and its log"
    is_one = len(facts.untold) == 1
    who = named or "no node that votes there is live"
    return (f"what is held of {partitions_said(sorted(facts.untold))} is not known, nor whether"
            f" {'it grants' if is_one else 'they grant'} claims: {who}")


def _partitions(described: m.Described) -> Iterator[tuple[str, str]]:
    live = {node.name for node in described.nodes if node.is_live}
    filling = {(row.partition, row.node) for row in described.moves if row.role == "suspect" and not row.is_done}
    short = shortages({row.partition: row.cohort or row.owners for row in described.partitions}, live, filling)
    stuck = {partition for partitions in short.values() for partition in partitions}
    leaderless = [row for row in described.partitions if not row.leader and row.partition not in stuck]
    if leaderless and len(leaderless) == len(described.partitions):
        yield "no_leader", ("no partition has a leader: no claim is granted, those that wait among them, until"
                            " elections are over; these take seconds, and need ZooKeeper and a majority of each"
                            " partition's voters")
    elif leaderless:
        yield "no_leader", (f"{many(len(leaderless), 'partition')} {_has(len(leaderless))} no leader"
                            f" ({_numbers(leaderless)}): their tasks cannot be claimed; "
                            + ("an election takes seconds" if described.session == "connected" else
                               "an election needs ZooKeeper"))
    for lacking, partitions in short.items():
        yield "no_majority", (
            f"{partitions_said(partitions)} cannot elect a leader: {'it' if len(partitions) == 1 else 'each'}"
            f" needs {lacking.said()}, started on the data that {'it' if len(lacking.of) == 1 else 'each'} had. If"
            " that data is gone for good, 'skuld cluster force-epoch"
            f" {partitions[0] if len(partitions) == 1 else '--all'}' goes on without it")


def _off_target(facts: Facts) -> Iterator[tuple[str, str]]:
    """Of how many voters partitions have, while that is not as many as the cluster is to keep copies."""
    wanted, rows = facts.replicas, facts.described.partitions
    if wanted == 1:
        yield "solo", ("each task has one copy: a lost disk takes its tasks along. Start two more nodes, then"
                       f" 'skuld cluster replicas {facts.cluster} 3'")
    fewer = [row.partition for row in rows if 0 < len(row.cohort) < wanted]
    if fewer:
        least = min(len(row.cohort) for row in rows if row.cohort)
        yield "under_target", (f"{partitions_said(fewer)} {_has(len(fewer))} fewer voters than the {wanted} copies"
                               f" that are wanted, {least} at the least: others get a vote once they have taken"
                               " over what there is; those that are down must be started for that")
    more = [row.partition for row in rows if len(row.cohort) > wanted]
    if more:
        yield "over_target", (f"{partitions_said(more)} {_has(len(more))} more voters than the {copies(wanted)}"
                              f" that {_be(wanted)} wanted: they go one by one, each once the others hold all"
                              " that it does")


def _rest(facts: Facts) -> Iterator[tuple[str, str]]:
    described = facts.described
    for words in _uncollected(facts):
        yield "uncollected", words
    for words in _unarchived(facts):
        yield "unarchived", words
    for words in _different_releases(facts):
        yield "releases_differ", words
    if described.is_unproven:
        yield "unproven", (f"claims count without a proof that they were granted: 'skuld cluster rules"
                           f" {facts.cluster} --raise' ends that, after its grace")
    for row in described.starved[:STARVED_SHOWN]:
        yield "starved", f"workflow {row.workflow} waits, no slot works on it: {row.reason}"
    if described.starved_count > STARVED_SHOWN:
        yield "starved", f"{described.starved_count - STARVED_SHOWN:,} more workflows wait without a slot"
    for words in _held(described):
        yield "held", words
    for queue in described.paused[:PAUSED_SHOWN]:
        yield "paused", f"queue {queue} is paused: nothing of it is granted until 'skuld resume {queue}'"
    if len(described.paused) > PAUSED_SHOWN:
        yield "paused", f"{len(described.paused) - PAUSED_SHOWN:,} more queues are paused: see 'skuld paused'"
    for words in _leaving(facts):
        yield "leaving", words
    if facts.doubt:
        yield "uncounted", f"the queues could not be counted: {facts.doubt}"


def _moves(described: m.Described) -> list[str]:
    """Data on its way, a line for each node and kind; suspects first, since their votes are missing. One that is
    done is told of no more soon, so it is the number of partitions that falls."""
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
                             f" so far{f', {done} of {len(rows)} done' if done else ''}")
    return found


def _held(described: m.Described) -> Iterator[str]:
    """What operators hold: mostly one has held many partitions at once."""
    found: dict[tuple[str, str], list[int]] = {}
    for row in described.held:
        if row.what in HELD:
            until = f" until {instant(row.until_ms)}" if row.until_ms else ""
            if row.what == "loss" and until:
                until = f"; nothing is granted{until}, when all that they may have granted is over"
            if row.what == "horizon":
                until = f" claims may last{until} only" if until else " grants nothing, for its horizon is over"
            found.setdefault((row.what, row.words + until), []).append(row.partition)
    for (what, how), partitions in found.items():
        words = HELD[what].format(how, how.partition(",")[0])
        yield f"{partitions_said(partitions)} {_be(len(partitions))} {words}"


def _leaving(facts: Facts) -> Iterator[str]:
    """Nodes that are taken out and still run: how far that is, and when they may be stopped."""
    rows, moves = facts.described.partitions, facts.described.moves
    for node in (row for row in facts.described.nodes if row.is_leaving and row.is_live):
        votes = sum(node.name in row.cohort or not row.leader for row in rows)
        hands_off = sum(row.node == node.name and row.role == "zombie" for row in moves)
        yield (f"node {node.name} is taken out and leaves: it leads {node.leads}, owns {node.owns}, votes in"
               f" {votes}, hands off {many(hands_off, 'partition')}; do not stop it yet"
               if node.leads or node.owns or votes or hands_off else
               f"node {node.name} is taken out and has nothing left: stop it, then 'skuld cluster forget"
               f" {facts.cluster} {node.name}'")


def _uncollected(facts: Facts) -> list[str]:
    """Collection that waits for nodes that are away. Nodes that are up need no help."""
    live = {node.name for node in facts.described.nodes if node.is_live}
    collection = collection_of(facts.described)
    away = [name for name in collection.awaited if name not in live] if collection else []
    if not away:
        return []
    return [f"ended tasks are not deleted while {many(len(away), 'node')} {_be(len(away))} away:"
            f" {', '.join(away)}; start {'it' if len(away) == 1 else 'them'}, or forget what does not come back"
            f" with 'skuld cluster forget {facts.cluster} NODE'"]


def _unarchived(facts: Facts) -> Iterator[str]:
    """Ended tasks that no archiver takes, or not as fast as they end."""
    found = collection_of(facts.described)
    if found is not None and 0 < found.unarchived_since_ms < facts.now_ms - UNARCHIVED_MS:
        late = said((facts.now_ms - found.unarchived_since_ms) // 60_000 * 60)
        yield (f"{many(found.unarchived, 'ended task')} wait on the nodes for an archive, the first of them for"
               f" {late}: run 'skuld archive ROOT --every 1h', or more of them on one root")


def _different_releases(facts: Facts) -> list[str]:
    """Nodes that run different programs, as while a cluster is upgraded."""
    by_program: dict[tuple[str, int], list[str]] = {}
    for row in facts.described.nodes:
        if row.is_live and row.rules:
            by_program.setdefault((row.release, row.rules), []).append(row.name)
    if len(by_program) < 2:
        return []
    has_rules = len({rules for _, rules in by_program}) > 1
    told = "; ".join(f"{release or '?'}{f' with rules up to {rules}' if has_rules else ''} on {', '.join(names)}"
                     for (release, rules), names in sorted(by_program.items()))
    then = f", then raise the rules with 'skuld cluster rules {facts.cluster} --raise'" if has_rules else ""
    return [f"nodes run different releases: {told}; upgrade all to one{then}"]


def _wrong_clocks(facts: Facts) -> list[str]:
    bound = said(facts.skew_ms / 1000)
    rows = facts.described.nodes
    found = [f"node {row.name}: clock {offset_said(row)}:"
             f" {'does not lead' if row.clock == 'far' else 'does not grant'}; set it right and start the node"
             " again" for row in rows if row.clock in ("outside", "far")]
    if any(row.clock == "disagreed" for row in rows):
        clocks = ", ".join(f"{row.name} {offset_said(row)}" for row in rows if row.clock != "unheard")
        found.append(f"no majority of the clocks agrees within {bound}, so no claims are granted: {clocks}; set"
                     " them right and start their nodes again")
    return found


def offset_said(row: m.NodeRow) -> str:
    """How wrong a node's clock is."""
    return offset_words(row.offset_ms)


def offset_words(offset_ms: int) -> str:
    """How wrong a clock is: ``3.2 s ahead``."""
    return f"{said(abs(offset_ms) / 1000)} {'behind' if offset_ms < 0 else 'ahead'}"


def _be(count: int) -> str:
    return "is" if count == 1 else "are"


def _has(count: int) -> str:
    return "has" if count == 1 else "have"


def _numbers(rows: Sequence[m.PartitionRow], most: int = 8) -> str:
    listed = ", ".join(str(row.partition) for row in rows[:most])
    return f"{listed}, …" if len(rows) > most else listed
