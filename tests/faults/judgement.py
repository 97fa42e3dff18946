"""What became of a run: the simulator's verdicts, what real processes add to them, and whether it proved anything.

A run is vacuous, and fails, when a fault was not overlapped by an acknowledged operation, or when leaders had
to change and none did; or when a checker of what a task queue is for (enqueues, claims, leases, epochs), or
of what the scenario is about, found nothing to check. A fault is overlapped by an operation that was under
way at some moment of it, and by an election that was won between its start and a session's length after its
end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from skuld_py.model import messages as m
from skuld_py.model.memory_store import MemoryStore
from skuld_py.simulation import checkers
from skuld_py.simulation.campaign import LIVENESS, TESTED
from skuld_py.simulation.checkers.evidence import Disturbance, Evidence, Finding, Written
from skuld_py.simulation.checkers.evidence import judge as judge_rule
from skuld_py.simulation.history import Operation, Status

Stores = dict[str, MemoryStore]
NO_UNASKED_END = "no node ends by itself"
NO_DAMAGE = "every stored record passes its checksum"
_ELECTION_MS = 3_000
"""A candidacy after the session has ended: delay of an heir, votes, copying claims, the write."""
_MUST_BE_TESTED = ("D1", "D4", "C2", "C3", "C4", "C5")


@attrs.frozen
class Overlap:
    """What went on during a fault."""

    fault: str
    seconds: float
    acks: int
    elections: int


@attrs.frozen
class Judgement:
    """A run's result; ``violated`` by the name of the rule, ``vacuous`` in sentences."""

    violated: dict[str, tuple[str, ...]]
    vacuous: tuple[str, ...]
    overlaps: tuple[Overlap, ...]
    acks: int
    acks_in_faults: int
    claims: int
    elections: int
    elections_in_faults: int
    p99_ms: int
    settled_ms: int
    unchecked: tuple[str, ...] = ()


def judge(evidence: Evidence, lacks: Sequence[str], unasked: Sequence[str], damaged: Sequence[str],
          session_ms: int, *, elects: bool, tests: Sequence[str] = (),
          findings: Sequence[Finding] = ()) -> Judgement:
    """All verdicts over the evidence of a run, with what its scenario found itself."""
    findings = [*checkers.check(evidence), *findings, _none_of(LIVENESS, lacks),
                _none_of(NO_UNASKED_END, unasked), _none_of(NO_DAMAGE, damaged)]
    done = [operation for operation in evidence.history.operations
            if operation.is_ok and isinstance(operation.message, TESTED)]
    elected = [write.time_ms for write in _elections(evidence)]
    overlaps = tuple(Overlap(
        str(fault), (fault.stop_ms - fault.start_ms) / 1000, sum(_is_during(each, fault) for each in done),
        sum(fault.start_ms <= at <= fault.stop_ms + session_ms + _ELECTION_MS for at in elected))
        for fault in evidence.faults)
    checked = {finding.id: None for finding in findings if finding.verdict is not None}
    unchecked = tuple(finding.id for finding in findings if finding.verdict is None)
    must = () if lacks else (*_MUST_BE_TESTED, *tests)
    waits = sorted(operation.done_ms - operation.invoked_ms for operation in done
                   if isinstance(operation.message, m.Enqueue))
    return Judgement(
        {each.invariant: each.evidence for each in findings if each.verdict is False},
        tuple(_vacuous(evidence, overlaps, [rule for rule in must if rule not in checked], elects)), overlaps,
        acks=len(done), acks_in_faults=sum(any(_is_during(operation, fault) for fault in evidence.faults)
                                           for operation in done),
        claims=len(evidence.told), elections=len(elected),
        elections_in_faults=sum(any(fault.start_ms <= at <= fault.stop_ms + session_ms + _ELECTION_MS
                                    for fault in evidence.faults) for at in elected),
        p99_ms=waits[len(waits) * 99 // 100] if waits else -1,
        settled_ms=(evidence.equal_ms or 0) - (evidence.calm_ms or 0) if not lacks else -1, unchecked=unchecked)


def agreed_owners(described: Mapping[str, m.Described], count: int) -> dict[int, tuple[str, ...]]:
    """The owners of each partition, when so many nodes were asked and all of them agree; else none."""
    views = [{row.partition: row.owners for row in each.partitions} for each in described.values()]
    is_agreed = len(views) == count and all(view == views[0] for view in views) and all(views[0].values())
    return views[0] if is_agreed else {}


def lacks_leaders(described: Mapping[str, m.Described]) -> list[str]:
    """Partitions that these nodes do not see led by one and the same live node."""
    lacking = []
    views = list(described.values())
    for row in views[0].partitions:
        seen = [view.partitions[row.partition].leader for view in views]
        live = {node.name for node in views[0].nodes if node.is_live}
        if len({*seen}) != 1 or not row.leader or row.leader not in live:
            lacking.append(f"partition {row.partition}: nodes see leaders {seen}, alive are {sorted(live)}")
    return lacking


def _elections(evidence: Evidence) -> list[Written]:
    """Writes that raised an epoch; a document may change within one."""
    epochs: dict[int, int] = {}
    elections = []
    for write in evidence.writes:
        if write.document.epoch > epochs.get(write.partition, 0):
            epochs[write.partition] = write.document.epoch
            elections.append(write)
    return elections


def _vacuous(evidence: Evidence, overlaps: Sequence[Overlap], untested: Sequence[str], elects: bool) -> list[str]:
    words = [] if overlaps else ["no fault was injected"]
    words += [f"no acknowledged operation overlapped: {overlap.fault}" for overlap in overlaps
              if not overlap.acks]
    if elects and not any(overlap.elections for overlap in overlaps):
        words.append("no leader changed during any fault")
    if not any(evidence.history.of(m.Enqueue, Status.OK)) or not evidence.told:
        words.append("nothing was enqueued or nothing was claimed")
    return words + [f"nothing tested the rule {rule}" for rule in untested]


def _is_during(operation: Operation, fault: Disturbance) -> bool:
    return operation.invoked_ms <= fault.stop_ms and operation.done_ms >= fault.start_ms


def _none_of(rule: str, broken: Sequence[str]) -> Finding:
    return judge_rule(rule, 1, broken)
