"""D13 and C23: an acknowledged checkpoint is kept until a newer one stands over it, and a claim that is over sets
none.

Newer is told by token and number alone: what a claim says twice under one number is D13's business too. The
evidence is read by the checkers' own arithmetic, from the bytes of the records.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

import attrs

from skuld_py.model import messages as m
from skuld_py.simulation.checkers.claims import granted_conclusions, newest_told
from skuld_py.simulation.checkers.evidence import Evidence, Finding, Where, completions_of, judge, rows_of
from skuld_py.simulation.history import Operation, Status

SLOT = bytes(12)
"""The end of the key under which a task's checkpoint is stored: token and number 0."""
_TOKEN, _NUMBER = 8, 12
_DATA = 20


@attrs.frozen(order=True)
class Mark:
    """What a claim said of how far its task is. When it said so is nobody's promise."""

    token: int
    number: int
    data: bytes

    @property
    def rank(self) -> tuple[int, int]:
        """Rises with every word."""
        return self.token, self.number


def mark_of(record: bytes) -> Mark:
    """What a record says."""
    return Mark(int.from_bytes(record[:_TOKEN], "big"), int.from_bytes(record[_TOKEN:_NUMBER], "big"),
                record[_DATA:])


def marks_of(operation: Operation) -> Iterator[tuple[bytes, Mark]]:
    """(task, what was said) of an update that says something."""
    message = operation.message
    assert isinstance(message, m.Append)
    for data in message.checkpoint.unpack():
        yield message.id, Mark(message.token, message.number, data)


def mark_in(row: m.TaskRow) -> Mark | None:
    """What a reader is shown."""
    if not row.tokens.startswith(SLOT[:_TOKEN]):
        return None
    return mark_of(row.entries.unpack()[0])


def marks_seen(evidence: Evidence) -> Iterator[tuple[Where, bytes, Mark]]:
    """(where, task, what was said) of all that a read showed or a store holds."""
    for operation in evidence.history.of(m.Get, Status.OK):
        for row in rows_of(operation):
            mark = mark_in(row)
            if mark is not None:
                yield operation, row.id, mark
    for name, store in evidence.stores.items():
        for key, record in store.rows("log").items():
            if key[22:] == SLOT:
                yield name, key[2:22], mark_of(record)


def acked_checkpoints_stay(evidence: Evidence) -> Finding:
    """[D13] A checkpoint acknowledged, or a newer one, is on every owner at last; all that are seen were sent, and
    one number of a claim has one content. (The monitor sees that no replica ever goes back; A3 that no read does.)
    """
    sent = {each for operation in evidence.history.of(m.Append) for each in marks_of(operation)}
    acked = [(operation, *each) for operation in evidence.history.of(m.Append, Status.OK)
             if evidence.is_binding(operation) for each in marks_of(operation)
             if each[0] not in evidence.collected]
    contents: dict[tuple[bytes, int, int], bytes] = {}

    def broken() -> Iterator[str]:
        for operation, task_id, mark in acked:
            for name, store in evidence.owners_of(task_id):
                record = store.get("log", evidence.key(task_id) + SLOT)
                if record is None or mark_of(record).rank < mark.rank:
                    yield f"{name} has {record!r} and not {mark} of {operation}"
            if contents.setdefault((task_id, *mark.rank), mark.data) != mark.data:
                yield f"{contents[task_id, *mark.rank]!r} and {mark.data!r} are one number's: {operation}"
        for where, task_id, mark in marks_seen(evidence):
            if (task_id, mark) not in sent:
                yield f"nobody sent {mark} of {task_id.hex()}: {where}"
    return judge("D13 acknowledged checkpoints are never lost", len(acked) if evidence.owners else 0, broken())


def claims_that_are_over_set_no_checkpoint(evidence: Evidence) -> Finding:
    """[C23] Who was overtaken by another claim, has ended its own, or whose task was done on copies that any
    majority meets, sets no checkpoint from then on. What was said before may be said again."""
    newest, over = newest_told(evidence), dict[tuple[bytes, int], int]()
    for operation, task_id, token, _ in granted_conclusions(evidence):
        over[task_id, token] = min(operation.done_ms, over.get((task_id, token), operation.done_ms))
    done: dict[bytes, int] = {}
    for operation in evidence.history.of(m.Complete, Status.OK):
        if evidence.is_seen_by_majorities(operation):
            for task_id, _ in completions_of(operation):
                done[task_id] = min(operation.done_ms, done.get(task_id, operation.done_ms))
    first: dict[tuple[bytes, Mark], int] = {}
    for operation in evidence.history.of(m.Append):
        for each in marks_of(operation):
            first[each] = min(operation.invoked_ms, first.get(each, operation.invoked_ms))

    def is_over(task_id: bytes, token: int, at_ms: int) -> bool:
        return (over.get((task_id, token), at_ms) < at_ms or done.get(task_id, at_ms) < at_ms
                or (task_id in newest and newest[task_id].before(at_ms) > token))
    late = [(operation, task_id, mark) for operation in evidence.history.of(m.Append)
            for task_id, mark in marks_of(operation) if is_over(task_id, mark.token, operation.invoked_ms)]
    broken = (f"{task_id.hex()} token {mark.token:#x} is over: {operation}" for operation, task_id, mark in late
              if operation.is_ok and is_over(task_id, mark.token, first[task_id, mark])
              and not _stands_behind(evidence, task_id, mark))
    return judge("C23 a claim that is over sets no checkpoint", len(late), broken)


def _stands_behind(evidence: Evidence, task_id: bytes, mark: Mark) -> bool:
    """Whether its claim had said more before; then it is an old word that came late, and changes nothing."""
    return any(token == mark.token and number > mark.number
               for operation in evidence.history.of(m.Append) for known, (token, number) in
               ((each[0], each[1].rank) for each in marks_of(operation)) if known == task_id)


def reads_of_checkpoints(evidence: Evidence) -> Iterator[str]:
    """Of each read of a task that had shown a checkpoint to an earlier reader, what it lacks; nothing where it
    shows that one or a newer one. A bare read shows none, and a collected task may be missing."""
    whole = [operation for operation in evidence.history.of(m.Get, Status.OK) if not _question(operation).is_bare]
    shown: dict[bytes, list[tuple[int, tuple[int, int]]]] = {}
    for operation in sorted(whole, key=lambda each: each.done_ms):
        for row in rows_of(operation):
            if (mark := mark_in(row)) is not None:
                known = shown.setdefault(row.id, [])
                known.append((operation.done_ms, max([mark.rank, *(rank for _, rank in known[-1:])])))
    for operation in whole:
        rows = {row.id: mark_in(row) for row in rows_of(operation)}
        for task_id, mark in rows.items():
            known = shown.get(task_id, [])
            at = bisect_left(known, (operation.invoked_ms, (0, 0)))
            if at:
                is_shown = mark is not None and mark.rank >= known[at - 1][1]
                yield "" if is_shown else f"{task_id.hex()} lacks checkpoint {known[at - 1][1]}: {operation}"


def _question(operation: Operation) -> m.Get:
    assert isinstance(operation.message, m.Get)
    return operation.message
