"""What reads of tasks promise, as parts of A3: to lack nothing that earlier ones showed, nor what was asked for.

A row is taken apart into facts by the checker's own count: each claim and its end, each entry, and what happened
to the task as a whole. Besides, the result of a task is compared as readers are shown it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

from skuld_py.model import messages as m
from skuld_py.model.columns import unpack_u64
from skuld_py.model.history import History as TaskHistory
from skuld_py.model.ids import split
from skuld_py.model.outcomes import entries_of, result_of
from skuld_py.simulation.checkers.evidence import Evidence, rows_of
from skuld_py.simulation.history import Operation, Status

Fact = tuple[object, ...]
Facts = dict[Fact, None]
COMPLETED: Fact = ("completed",)
ENDS: dict[int, Fact] = {2: COMPLETED, 5: ("cancelled",)}
"""Ends by their numbers, but death, from which a task may come back."""
Shown = dict[bytes, dict[Fact, Operation]]
"""Task -> fact -> a read that showed it."""


def facts_in(row: m.TaskRow) -> Facts:
    """What a row says, each fact once; notes are facts as well."""
    facts: list[Fact] = [("entry", *key) for key in zip(unpack_u64(row.tokens), unpack_u64(row.seqs), strict=True)]
    history = TaskHistory.decode(row.history) if row.history else TaskHistory()
    facts += [("claimed", token) for token in history.claims.entries]
    facts += [("ended", token) for token, claim in history.claims.entries.items() if claim.ending.value]
    facts += [COMPLETED] * (history.completion.value is not None)
    facts += [("cancelled",)] * (history.cancelled.value is not None)
    facts += [("revived", number) for number in range(history.round)]
    facts += [("died", number) for number in range(history.death_round)]
    return dict.fromkeys(facts)


def reads_of_tasks(evidence: Evidence) -> Iterator[str]:
    """What each read lacks that earlier ones, or its own least number, bind; nothing when it lacks nothing. What
    was told of an end or of a log is a read as well."""
    reads = whole_reads(evidence)
    waits = [*evidence.history.of(m.Await, Status.OK), *evidence.history.of(m.ReadLog, Status.OK)]
    for operation in evidence.history.of(m.Await, Status.FAIL):
        if isinstance(operation.answer, m.Failed) and operation.answer.code == "no_such_task":
            yield _unfounded(operation, evidence.going)
    asked = sorted(reads + waits, key=lambda operation: operation.invoked_ms)
    ended, shown = deque(sorted(asked, key=lambda operation: operation.done_ms)), Shown()
    with_results = dict[bytes, Operation]()
    for operation in asked:
        while ended[0].done_ms < operation.invoked_ms:
            earlier = ended.popleft()
            for task_id, facts in facts_shown(earlier).items():
                shown.setdefault(task_id, {}).update(dict.fromkeys(facts, earlier))
            with_results.update((task_id, earlier) for task_id, result in results_shown(earlier).items() if result)
        yield from _vanished(operation, with_results)
        yield from _unheard(operation, shown, evidence.going) if isinstance(operation.answer, m.Awaited) else ()
        yield from _lacking(operation, shown, evidence.going) if isinstance(operation.answer, m.Got) else ()


def facts_shown(operation: Operation) -> dict[bytes, Facts]:
    """By task, what an answer showed."""
    question, answer = operation.message, operation.answer
    if isinstance(question, m.Await) and isinstance(answer, m.Awaited):
        ends = zip(split(question.ids), answer.ends, strict=True)
        return {task_id: {ENDS[end]: None} for task_id, end in ends if end in ENDS}
    if isinstance(question, m.ReadLog) and isinstance(answer, m.Logged):
        return {question.id: {("entry", question.token, seq): None
                              for seq in range(question.after, question.after + len(answer.entries))}}
    return {row.id: facts_in(row) for row in rows_of(operation)}


def _unheard(operation: Operation, shown: Shown, going: Mapping[bytes, int]) -> Iterator[str]:
    """A completion, once shown, is how the task has ended, for every later reader until it is collected."""
    for task_id in split(_awaited(operation).ids):
        if COMPLETED in shown.get(task_id, {}) and going.get(task_id, operation.done_ms) >= operation.done_ms:
            is_told = COMPLETED in facts_shown(operation).get(task_id, {})
            yield "" if is_told else f"{task_id.hex()} was completed: {shown[task_id][COMPLETED]}: {operation}"


def _unfounded(operation: Operation, going: Mapping[bytes, int]) -> str:
    """Only a collected task has an end that is not told any more."""
    is_founded = any(task_id in going and going[task_id] <= operation.done_ms
                     for task_id in split(_awaited(operation).ids))
    return "" if is_founded else f"no task of these was collected: {operation}"


def _awaited(operation: Operation) -> m.Await:
    assert isinstance(operation.message, m.Await)
    return operation.message


def results_shown(operation: Operation) -> dict[bytes, bytes]:
    """By completed task, the result that an answer showed; empty where it showed none."""
    question, answer = operation.message, operation.answer
    if isinstance(question, m.Await) and isinstance(answer, m.Awaited):
        told = zip(split(question.ids), answer.ends, answer.results.unpack(), strict=True)
        return {task_id: result for task_id, end, result in told if ENDS.get(end) is COMPLETED}
    rows = {row.id: (TaskHistory.decode(row.history), entries_of(row)) for row in (
        rows_of(operation) if isinstance(answer, m.Got) else ()) if row.history}
    return {task_id: result_of(history.completion.value, entries) or b""
            for task_id, (history, entries) in rows.items() if history.completion.value}


def _vanished(operation: Operation, shown: Mapping[bytes, Operation]) -> Iterator[str]:
    """A task that had a result has one."""
    for task_id, result in results_shown(operation).items():
        if task_id in shown:
            yield "" if result else f"{task_id.hex()} has no result, shown by {shown[task_id]}: {operation}"


def whole_reads(evidence: Evidence) -> list[Operation]:
    """Answered reads that were to show all there is."""
    return [operation for operation in evidence.history.of(m.Get, Status.OK)
            if not question_of(operation).is_bare]


def question_of(operation: Operation) -> m.Get:
    """What a read asked for."""
    assert isinstance(operation.message, m.Get)
    return operation.message


def _lacking(operation: Operation, shown: Shown, going: Mapping[bytes, int]) -> Iterator[str]:
    question, rows = question_of(operation), {row.id: facts_in(row) for row in rows_of(operation)}
    task_ids = split(question.ids)
    for task_id, least in zip(task_ids, unpack_u64(question.least) or [0] * len(task_ids), strict=True):
        facts, known = rows.get(task_id, {}), shown.get(task_id, {})
        if least:
            yield f"{task_id.hex()} has {len(facts)} facts, not {least}: {operation}" if len(facts) < least else ""
        if known and (task_id in rows or going.get(task_id, operation.done_ms) >= operation.done_ms):
            lost = [fact for fact in known if fact not in facts]
            yield f"{task_id.hex()} lacks {lost[0]}, shown by {known[lost[0]]}: {operation}" if lost else ""
