"""What reads of tasks promise, as parts of A3: to lack nothing that earlier ones showed, nor what was asked for.

A row is taken apart into facts by the checker's own count: each claim and its end, each entry, and what happened
to the task as a whole.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from skuld_py.model import messages as m
from skuld_py.model.columns import unpack_u64
from skuld_py.model.history import History as TaskHistory
from skuld_py.model.ids import split
from skuld_py.simulation.checkers.evidence import Evidence, rows_of
from skuld_py.simulation.history import Operation, Status

Fact = tuple[object, ...]
Shown = dict[bytes, dict[Fact, Operation]]
"""Task -> fact -> a read that showed it."""


def facts_in(row: m.TaskRow) -> dict[Fact, None]:
    """What a row says, each fact once; notes are facts as well."""
    facts: list[Fact] = [("entry", *key) for key in zip(unpack_u64(row.tokens), unpack_u64(row.seqs), strict=True)]
    history = TaskHistory.decode(row.history) if row.history else TaskHistory()
    facts += [("claimed", token) for token in history.claims.entries]
    facts += [("ended", token) for token, claim in history.claims.entries.items() if claim.ending.value]
    facts += [("completed",)] * (history.completion.value is not None)
    facts += [("cancelled",)] * (history.cancelled.value is not None)
    facts += [("revived", number) for number in range(history.revived.value >> 64)]
    facts += [("died", number) for number in range(history.died.value >> 8)]
    return dict.fromkeys(facts)


def reads_of_tasks(evidence: Evidence) -> Iterator[str]:
    """What each read lacks that earlier ones, or its own least number, bind; nothing when it lacks nothing."""
    reads = whole_reads(evidence)
    ended, shown = deque(sorted(reads, key=lambda operation: operation.done_ms)), Shown()
    for operation in sorted(reads, key=lambda operation: operation.invoked_ms):
        while ended[0].done_ms < operation.invoked_ms:
            earlier = ended.popleft()
            for row in rows_of(earlier):
                shown.setdefault(row.id, {}).update(dict.fromkeys(facts_in(row), earlier))
        yield from _lacking(operation, shown)


def whole_reads(evidence: Evidence) -> list[Operation]:
    """Answered reads that were to show all there is."""
    return [operation for operation in evidence.history.of(m.Get, Status.OK)
            if not question_of(operation).is_bare]


def question_of(operation: Operation) -> m.Get:
    """What a read asked for."""
    assert isinstance(operation.message, m.Get)
    return operation.message


def _lacking(operation: Operation, shown: Shown) -> Iterator[str]:
    question, rows = question_of(operation), {row.id: facts_in(row) for row in rows_of(operation)}
    task_ids = split(question.ids)
    for task_id, least in zip(task_ids, unpack_u64(question.least) or [0] * len(task_ids), strict=True):
        facts, known = rows.get(task_id, {}), shown.get(task_id, {})
        if least:
            yield f"{task_id.hex()} has {len(facts)} facts, not {least}: {operation}" if len(facts) < least else ""
        if known:
            lost = [fact for fact in known if fact not in facts]
            yield f"{task_id.hex()} lacks {lost[0]}, shown by {known[lost[0]]}: {operation}" if lost else ""
