"""What settings promise, as parts of C12 (no grant of a paused queue), A3 (reads), V2 (equal nodes) and O2.

Rows of a register are ordered by (version, writer, value), as clients sent them. A pause is *firm* from its
acknowledgement by every node that there is until a change above it is asked for. What a minority may have is in
doubt: then a grant is neither allowed nor forbidden, and order cannot be asked for.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate

from skuld_py.model import messages as m
from skuld_py.model.schedule import SCHEDULE
from skuld_py.model.setting import LIMITS, PAUSED, SETTING_PREFIX, YES, Rank
from skuld_py.simulation.checkers.evidence import LOSSES, Evidence, Told
from skuld_py.simulation.history import Operation, Status
from skuld_py.simulation.notes import What

Register = tuple[str, str]


class Latest:
    """The latest end of the spans that began before a moment: built once, asked in logarithmic time."""

    def __init__(self, spans: list[tuple[int, int]]) -> None:
        spans.sort()
        self._starts = [start_ms for start_ms, _ in spans]
        self._ends = list(accumulate((stop_ms for _, stop_ms in spans), max))

    def before(self, time_ms: int) -> int:
        """The end, or -1 when none had begun."""
        at = bisect_left(self._starts, time_ms)
        return self._ends[at - 1] if at else -1


NEVER = Latest([])


def puts_of(evidence: Evidence) -> dict[Register, list[Operation]]:
    """Changes that may have happened, by register."""
    puts: dict[Register, list[Operation]] = {}
    for operation in evidence.history.of(m.PutSetting):
        if operation.status is not Status.FAIL:
            assert isinstance(operation.message, m.PutSetting)
            puts.setdefault((operation.message.kind, operation.message.name), []).append(operation)
    return puts


def rank(operation: Operation) -> Rank:
    """What decides between two changes."""
    assert isinstance(operation.message, m.PutSetting)
    message = operation.message
    return message.version, message.writer, weight(message.kind, message.value)


def weight(kind: str, value: bytes) -> bytes:
    """What of a value decides. Of a schedule that it is one: the node that takes it says when it was made."""
    return value[:1] if kind == SCHEDULE else value


def is_everywhere(evidence: Evidence, operation: Operation) -> bool:
    """Whether every node that there ever was has said that it has it."""
    return isinstance(operation.answer, m.SettingPut) and operation.answer.copies >= len(evidence.stores)


def _is_pause(operation: Operation) -> bool:
    return rank(operation)[2] == YES


# -- C12 -------------------------------------------------------------------------------------------


def granted_though_paused(evidence: Evidence) -> Iterator[str]:
    """Grants of a queue while all nodes had it paused, or by a node that had."""
    if not evidence.struck(LOSSES):
        firm = {name: Latest(list(_firm(evidence, puts))) for (kind, name), puts in puts_of(evidence).items()
                if kind == PAUSED}
        for told in evidence.told:
            if firm.get(_queue_of(told), NEVER).before(told.operation.invoked_ms) > told.operation.done_ms:
                yield f"paused on all nodes: {told.operation}"
    yield from (f"{note.node} knew that the queue is paused: {note}" for note in evidence.noted(What.PICKED)
                if note.is_paused)


def _queue_of(told: Told) -> str:
    assert isinstance(told.operation.message, m.Claim)
    return told.operation.message.queue


def _firm(evidence: Evidence, puts: list[Operation]) -> Iterator[tuple[int, int]]:
    """From when to when each pause of a queue is known on all nodes."""
    resumes = sorted((put for put in puts if not _is_pause(put)), key=rank)
    ranks = [rank(put) for put in resumes]
    ends = [*accumulate((put.invoked_ms for put in reversed(resumes)), min)][::-1]
    for put in puts:
        if _is_pause(put) and is_everywhere(evidence, put):
            at = bisect_right(ranks, rank(put))
            yield put.done_ms, ends[at] if at < len(ends) else evidence.end_ms + 1


# -- O2 --------------------------------------------------------------------------------------------


def doubtful_times(evidence: Evidence) -> dict[str, Latest]:
    """Queue -> when some nodes may have had it paused while others had not; or limited: then a leader with a loan
    grants its own best, and one without grants nothing."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for (kind, name), puts in puts_of(evidence).items():
        if kind == PAUSED:
            spans.setdefault(name, []).extend(_doubts(evidence, puts))
        elif kind == LIMITS:
            limited = (put.invoked_ms for put in puts if rank(put)[2])
            spans.setdefault(name, []).extend((since_ms, evidence.end_ms + 1) for since_ms in limited)
    return {name: Latest(rows) for name, rows in spans.items()}


def _doubts(evidence: Evidence, puts: list[Operation]) -> Iterator[tuple[int, int]]:
    """A change that is known everywhere ends the doubt about older ones; a pause begins one of its own."""
    settled = sorted((put for put in puts if is_everywhere(evidence, put)), key=rank)
    ranks = [rank(put) for put in settled]
    ends = [*accumulate((put.done_ms for put in reversed(settled)), min)][::-1]
    for put in puts:
        if _is_pause(put):
            at = bisect_right(ranks, rank(put))
            yield put.invoked_ms, ends[at] if at < len(ends) else evidence.end_ms + 1


def is_in_doubt(doubts: dict[str, Latest], told: Told) -> bool:
    """Whether a claim was granted in such a time."""
    return doubts.get(_queue_of(told), NEVER).before(told.operation.done_ms + 1) >= told.operation.invoked_ms


# -- A3 --------------------------------------------------------------------------------------------


def reads_of_settings(evidence: Evidence) -> Iterator[str]:
    """What each read lacks that must know of a change; nothing when it lacks nothing."""
    known = {register: _Acknowledged(evidence, puts) for register, puts in puts_of(evidence).items()}
    for operation in evidence.history.of(m.GetSettings, Status.OK):
        question, answer = operation.message, operation.answer
        assert isinstance(question, m.GetSettings) and isinstance(answer, m.GotSettings)
        acknowledged = known.get((question.kind, question.name))
        least = acknowledged.before(operation.invoked_ms) if acknowledged is not None else None
        if least is not None:
            shown = max(((row.version, row.writer, weight(row.kind, row.value)) for row in answer.rows),
                        default=None)
            is_lacking = shown is None or shown < least or answer.version <= least[0]
            yield f"{least} was acknowledged before: {operation}" if is_lacking else ""


class _Acknowledged:
    """The greatest row of a register that a read asked for at some time must know."""

    def __init__(self, evidence: Evidence, puts: list[Operation]) -> None:
        binding = sorted((put.done_ms, rank(put)) for put in puts if _is_binding(evidence, put))
        self._times = [done_ms for done_ms, _ in binding]
        self._ranks = list(accumulate((greatest for _, greatest in binding), max))

    def before(self, time_ms: int) -> Rank | None:
        at = bisect_left(self._times, time_ms)
        return self._ranks[at - 1] if at else None


def _is_binding(evidence: Evidence, put: Operation) -> bool:
    """Whether any majority of the nodes met it: where nodes came or went, only what all have surely is."""
    if not put.is_ok or evidence.struck(LOSSES):
        return False
    return evidence.is_fixed or is_everywhere(evidence, put)


# -- V2 --------------------------------------------------------------------------------------------


def unequal_settings(evidence: Evidence) -> Iterator[str]:
    """What differs between nodes once the cluster is healed."""
    if not evidence.owners:
        return
    (first_name, first_store), *others = evidence.stores.items()
    first = first_store.rows("meta", SETTING_PREFIX)
    for name, store in others:
        rows = store.rows("meta", SETTING_PREFIX)
        for key in sorted(key for key in {**first, **rows} if first.get(key) != rows.get(key)):
            yield f"meta {key!r}: {first_name} has {first.get(key)!r}, {name} has {rows.get(key)!r}"
