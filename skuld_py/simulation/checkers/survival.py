"""D6 to D9: the promises about data, asked of runs in which the fault they are about struck.

Each is true only if that fault came after something had been acknowledged; without it the verdict is
unknown, whatever else the run shows.
"""

from __future__ import annotations

from collections.abc import Iterator

from skuld_py.simulation.checkers import durability
from skuld_py.simulation.checkers.evidence import (
    AMNESIA,
    CORRUPTION,
    DEATHS,
    POWER_CUTS,
    Checker,
    Evidence,
    Finding,
    judge,
)
from skuld_py.simulation.history import Operation
from skuld_py.simulation.notes import Note, What

KEPT: tuple[Checker, ...] = (
    durability.acked_enqueues_survive, durability.nothing_from_nowhere, durability.bodies_are_immutable,
    durability.acked_completions_stay, durability.acked_entries_stay)


def _outlive(evidence: Evidence, kinds: frozenset[str], invariant: str, also: Iterator[str]) -> Finding:
    struck = evidence.struck(kinds)
    if not struck:
        return Finding(invariant, None)
    last_ms = max(fault.start_ms for fault in struck)
    before = [operation for operation in evidence.history.operations
              if operation.is_ok and operation.done_ms < last_ms]
    findings = [checker(evidence) for checker in KEPT]
    lines = (f"{finding.invariant}: {line}" for finding in findings for line in finding.evidence)
    is_tested = any(map(_is_write, before)) and findings[0].verdict is not None
    return judge(invariant, len(struck) if is_tested else 0, [*also, *lines])


def _is_write(operation: Operation) -> bool:
    return hasattr(operation.message, "w")


def data_outlives_deaths(evidence: Evidence) -> Finding:
    """[D6] D1 to D5 hold although processes died."""
    return _outlive(evidence, DEATHS, "D6 data outlives the death of processes", iter(()))


def data_outlives_power_cuts(evidence: Evidence) -> Finding:
    """[D7] D1 to D5 hold although nodes lost what they had not fsynced."""
    return _outlive(evidence, POWER_CUTS, "D7 data outlives power cuts", iter(()))


def data_outlives_amnesia(evidence: Evidence) -> Finding:
    """[D8] D1 to D5 hold although nodes lost what they had fsynced; and such a node votes no more, nor
    records claims, in a partition it had a voice in, until it has filled again."""
    return _outlive(evidence, AMNESIA, "D8 data outlives a node's amnesia", _voices_of_the_wiped(evidence))


def _voices_of_the_wiped(evidence: Evidence) -> Iterator[str]:
    voices: dict[tuple[str, int], list[Note]] = {}
    for note in evidence.noted(What.VOTED, What.ACKED, What.TRUSTED):
        voices.setdefault((note.node, note.partition), []).append(note)
    for fault in evidence.struck(AMNESIA):
        for (node, partition), notes in voices.items():
            if node not in fault.targets or notes[0].time_ms >= fault.start_ms:
                continue
            after = [note for note in notes if note.time_ms > fault.start_ms]
            if after and after[0].what is not What.TRUSTED:
                yield f"{node} was struck by {fault} and spoke in partition {partition}: {after[0]}"


def data_outlives_corruption(evidence: Evidence) -> Finding:
    """[D9] D1 to D5 hold although stored bytes changed: no wrong byte is shown, stored elsewhere, or kept."""
    return _outlive(evidence, CORRUPTION, "D9 data outlives corruption", iter(()))
