"""A1 to A3: what clients may rely on: retries are one effect, a no is a no, and a read shows what was done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, product

from skuld_py.model import messages as m
from skuld_py.model.history import RELEASED
from skuld_py.model.history import History as TaskHistory
from skuld_py.model.ids import split
from skuld_py.simulation.checkers.checkpoints import Mark, mark_in, marks_of, marks_seen, reads_of_checkpoints
from skuld_py.simulation.checkers.evidence import (
    Entry,
    Evidence,
    Finding,
    Where,
    bodies_of,
    bodies_seen,
    cancelled_in,
    completions_of,
    endings_of,
    entries_in,
    entries_of,
    entries_seen,
    gives_way,
    histories_seen,
    judge,
    numbers_told,
    rows_of,
)
from skuld_py.simulation.checkers.reading import question_of, reads_of_tasks, whole_reads
from skuld_py.simulation.checkers.refusals import done_though_refused
from skuld_py.simulation.checkers.settings import reads_of_settings
from skuld_py.simulation.history import History, Operation, Status

OVERRUN_MS_MAX = 1_000
Effect = tuple[bytes, object]
"""What an operation does to a task; equal effects are one."""


def effects_of(operation: Operation) -> list[Effect]:
    """The effects of a write on data, or on claims that it ends; none of other operations."""
    if isinstance(operation.message, m.Enqueue):
        return list(bodies_of(operation))
    if isinstance(operation.message, m.Complete):
        return list(completions_of(operation))
    if isinstance(operation.message, m.Append):
        return [*((entry.task, entry) for entry in entries_of(operation)), *marks_of(operation)]
    if isinstance(operation.message, m.Cancel):
        return [(task_id, "cancelled") for task_id in cancelled_in(operation)]
    return [(task_id, (token, kind)) for task_id, token, kind in endings_of(operation)]


def retries_are_one_effect(evidence: Evidence) -> Finding:
    """[A1] Of equal writes, however often and wherever sent, none is acknowledged while another is refused as
    in conflict; and a request number of a client is one operation."""
    sent: dict[Effect, list[Operation]] = {}
    for operation in evidence.history.operations:
        for effect in effects_of(operation):
            sent.setdefault(effect, []).append(operation)
    repeated = {effect: operations for effect, operations in sent.items() if len(operations) > 1}

    def broken() -> Iterator[str]:
        for operations in repeated.values():
            oks = [operation for operation in operations if operation.is_ok][:1]
            for ok, operation in product(oks, filter(_is_conflict, operations)):
                if len(effects_of(operation)) == 1 or effects_of(operation) == effects_of(ok):
                    yield f"{operation} although {ok}"
        answers: dict[tuple[str, int], Operation] = {}
        for operation in evidence.history.operations:
            first = answers.setdefault((operation.client, operation.request), operation)
            if first is not operation:
                yield f"one request, two operations: {first} and {operation}"
    return judge("A1 retries are one effect", len(repeated), broken())


def _is_conflict(operation: Operation) -> bool:
    return isinstance(operation.answer, m.Failed) and operation.answer.code == "conflict"


def refusals_have_no_effect(evidence: Evidence) -> Finding:
    """[A2] What was refused is nowhere, unless an equal write was not; what was revived and claimed since, and is
    not done, is not said to be no dead task; a task that was never made is not cancelled; and no operation stays
    open.

    Claims of which no client was told are released by nodes, too: so their release is no client's effect. Nodes
    also cancel what waits for a workflow that has ended: what a read showed as cancelled before a client asked for
    that is not the client's effect."""
    operations = evidence.history.operations
    told = {(told.task, told.token): None for told in evidence.told}
    allowed = {effect for operation in operations if not operation.is_refused
               for effect in effects_of(operation)}
    refused = {effect: operation for operation in operations for effect in effects_of(operation)
               if effect not in allowed}

    seen = [(where, effect) for where, effect in _effects_seen(evidence, told) if effect in refused]
    by_nodes = {effect for where, effect in seen if effect[1] == "cancelled" and isinstance(where, Operation)
                and where.done_ms < refused[effect].asked_ms}

    def broken() -> Iterator[str]:
        for where, effect in seen:
            if effect not in by_nodes:
                yield f"{where} shows what was refused: {refused[effect]}"
        yield from done_though_refused(evidence)
        for operation, task_id in _made_up(evidence):
            yield f"{task_id.hex()} was cancelled, and nobody had made it: {operation}"
        for operation, task_id in _denied(evidence):
            yield f"{task_id.hex()} had been revived and claimed: {operation}"
        for operation in operations:
            if _is_overdue(evidence, operation):
                yield f"not answered by {evidence.end_ms} ms: {operation}"
    fails = sum(1 for operation in operations if operation.is_refused)
    return judge("A2 what is refused has no effect", fails, broken())


def _effects_seen(evidence: Evidence, told: Mapping[tuple[bytes, int], None]) -> Iterator[tuple[Where, Effect]]:
    for where, task_id, body in bodies_seen(evidence):
        yield where, (task_id, body)
    for where, entry in entries_seen(evidence):
        yield where, (entry.task, entry)
    yield from ((where, (task_id, mark)) for where, task_id, mark in marks_seen(evidence))
    for where, task_id, history in histories_seen(evidence):
        if history.completion.value is not None:
            yield where, (task_id, history.completion.value[1])
        if history.cancelled.value is not None:
            yield where, (task_id, "cancelled")
        yield from ((where, (task_id, (token, claim.kind))) for token, claim in history.claims.entries.items()
                    if claim.kind and (claim.kind != RELEASED or (task_id, token) in told))


def _made_up(evidence: Evidence) -> Iterator[tuple[Operation, bytes]]:
    """Cancellings of tasks that no client has enqueued, and no node: those that were claimed, or are stored."""
    made = {task_id: None for operation in evidence.history.of(m.Enqueue)
            for task_id, _ in bodies_of(operation)}
    made.update((told.task, None) for told in evidence.told)
    made.update((task_id, None) for _, task_id, _ in bodies_seen(evidence))
    for operation in evidence.history.of(m.Cancel, Status.OK):
        for task_id in cancelled_in(operation):
            if task_id not in made:
                yield operation, task_id


def _denied(evidence: Evidence) -> Iterator[tuple[Operation, bytes]]:
    """Revivals that were refused although they had happened, each with its task: a claim of the round that began
    had been told of before, and no client had said yet that the task is done."""
    bases = {task_id: history.base for histories in evidence.histories.values()
             for task_id, history in histories.items() if history.round == 1}
    claimed_ms: dict[bytes, int] = {}
    for told in evidence.told:
        if told.token > bases.get(told.task, told.token):
            claimed_ms.setdefault(told.task, told.operation.done_ms)
    done_ms: dict[bytes, int] = {}
    for operation in evidence.history.of(m.Complete):
        for task_id, _ in completions_of(operation):
            done_ms.setdefault(task_id, operation.invoked_ms)
    for operation in evidence.history.of(m.Revive, Status.OK):
        if isinstance(operation.message, m.Revive) and isinstance(operation.answer, m.Revived):
            for task_id, outcome in zip(split(operation.message.ids), operation.answer.outcomes, strict=True):
                if (outcome == m.Revival.NOT_DEAD and operation.done_ms <= done_ms.get(task_id, operation.done_ms)
                        and claimed_ms.get(task_id, operation.invoked_ms) < operation.invoked_ms):
                    yield operation, task_id


def _is_overdue(evidence: Evidence, operation: Operation) -> bool:
    if not evidence.patience_ms:
        return False
    end_ms = evidence.end_ms if operation.status is Status.OPEN else operation.done_ms
    wait_ms = getattr(operation.message, "wait_ms", 0)
    return end_ms - operation.invoked_ms > evidence.patience_ms + wait_ms + OVERRUN_MS_MAX


def reads_show_what_was_done(evidence: Evidence) -> Finding:
    """[A3] A read shows every task, entry, claim, completion and setting acknowledged before it was asked for,
    whatever reads that were answered before had shown, and as many facts as were asked for.

    Reads are of a majority, so this is asked of what was acknowledged on copies that any majority meets. A task
    that was being collected by then may be missing, as a whole.
    """
    done = _Done(evidence)
    count, broken = 0, []
    for operation in whole_reads(evidence):
        rows = {row.id: row for row in rows_of(operation)}
        for task_id in split(question_of(operation).ids):
            for what in done.before(operation.invoked_ms, task_id):
                count += 1
                if task_id not in rows and evidence.going.get(task_id, operation.done_ms) < operation.done_ms:
                    continue
                if not _shows(rows.get(task_id), what):
                    broken.append(f"{task_id.hex()} lacks {what}: {operation}")
    for lacking in chain(reads_of_settings(evidence), reads_of_tasks(evidence), reads_of_checkpoints(evidence)):
        count += 1
        broken += [lacking] if lacking else []
    return judge("A3 reads show what was acknowledged before", count, broken)


class _Done:
    """Task -> what was acknowledged of it: (when, what), in order of time."""

    def __init__(self, evidence: Evidence) -> None:
        self._known: dict[bytes, list[tuple[int, object]]] = {}
        history: History = evidence.history
        for operation in history.operations:
            if operation.is_ok and hasattr(operation.message, "w") and evidence.is_seen_by_majorities(operation):
                duplicates = numbers_told(operation.answer)
                for number, (task_id, what) in enumerate(effects_of(operation)):
                    is_completion = isinstance(operation.message, m.Complete)
                    self._add(operation, task_id,
                              "completed" if is_completion else "stored" if number in duplicates else what)
        for told in evidence.told:
            self._add(told.operation, told.task, told.token)
        for known in self._known.values():
            known.sort(key=lambda pair: pair[0])

    def _add(self, operation: Operation, task_id: bytes, what: object) -> None:
        self._known.setdefault(task_id, []).append((operation.done_ms, what))

    def before(self, time_ms: int, task_id: bytes) -> Iterator[object]:
        """What a read asked for at this time must show."""
        for done_ms, what in self._known.get(task_id, ()):
            if done_ms >= time_ms:
                return
            yield what


def _shows(row: m.TaskRow | None, what: object) -> bool:
    if row is None:
        return False
    history = TaskHistory.decode(row.history) if row.history else TaskHistory()
    if what == "stored":
        return len(row.body) > 0
    if isinstance(what, Entry):
        return what in entries_in(row)
    if isinstance(what, Mark):
        mark = mark_in(row)
        return mark is not None and mark.rank >= what.rank
    if isinstance(what, bytes):
        return any(body == what or gives_way(what, body) for body in row.body.unpack())
    if what == "cancelled":
        return history.cancelled.value is not None
    return history.completion.value is not None if what == "completed" else what in history.claims.entries
