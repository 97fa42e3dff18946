"""C13, C17 and D12: a task that needs others is claimed after they have ended as its policy says, and then it is;
and it finds them for as long as it is kept.

What a task needs is read off what clients sent. Rows and notes are taken apart by this file's own code.
"""

from __future__ import annotations

from collections.abc import Iterator

from skuld_py.model import messages as m
from skuld_py.model.history import EMPTY_HISTORY
from skuld_py.model.history import History as TaskHistory
from skuld_py.model.ids import time_of
from skuld_py.simulation.checkers.evidence import (
    Evidence,
    Finding,
    Need,
    Told,
    bodies_of,
    cancelled_in,
    completions_of,
    judge,
)
from skuld_py.simulation.history import Status

IGNORE, INSTEAD = 3, 4


def known_anywhere(evidence: Evidence) -> dict[bytes, TaskHistory]:
    """What all stores know of each task together."""
    known: dict[bytes, TaskHistory] = {}
    for histories in evidence.histories.values():
        for task_id, history in histories.items():
            known[task_id] = known.get(task_id, EMPTY_HISTORY).merge(history)
    return known


def dependencies_are_done(evidence: Evidence) -> Finding:
    """[C13] A task is claimed only after a completion of each task it needs was sent, and that one stays.

    Of one that takes what fails as done: or after it was cancelled, or has died; or, where it is unknown, after
    the time that the task gives to that, or when it is too old to be enqueued any more. Of one that is there
    instead of what it needs: only after that was cancelled, or has died. Of a collected task no more is known than
    that it had ended.
    """
    done, cancelled = _first_asked(evidence, m.Complete), _first_asked(evidence, m.Cancel)
    known = known_anywhere(evidence)
    pairs = [(told, need, dep) for told in evidence.told if (need := evidence.needs.get(told.task)) is not None
             for dep in need.deps]

    def broken() -> Iterator[str]:
        for told, need, dep in pairs:
            if need.policy == INSTEAD:
                if not (cancelled.get(dep, told.operation.done_ms) < told.operation.done_ms
                        or dep in evidence.collected or _was_dead(known.get(dep))):
                    yield f"{dep.hex()} was neither cancelled nor dead before {told.operation}, which is instead"
            elif done.get(dep, told.operation.done_ms) < told.operation.done_ms:
                yield from _unmade(evidence, told, dep)
            elif need.policy != IGNORE:
                yield f"{dep.hex()} was not completed before {told.operation}"
            elif not (cancelled.get(dep, told.operation.done_ms) < told.operation.done_ms
                      or dep in evidence.collected or _was_dead(known.get(dep)) or _is_too_old(evidence, told, dep)
                      or _is_overdue(evidence, told, need)):
                yield f"{dep.hex()} had neither ended nor been waited for long enough before {told.operation}"
    return judge("C13 what a task needs is done before it", len(pairs), broken())


def _first_asked(evidence: Evidence, kind: type[m.Complete] | type[m.Cancel]) -> dict[bytes, int]:
    """When something was first asked for of each task that may have happened."""
    first: dict[bytes, int] = {}
    for operation in evidence.history.of(kind):
        if operation.status is not Status.FAIL:
            ids = ([task_id for task_id, _ in completions_of(operation)] if kind is m.Complete
                   else cancelled_in(operation))
            for task_id in ids:
                first[task_id] = min(operation.invoked_ms, first.get(task_id, operation.invoked_ms))
    return first


def _unmade(evidence: Evidence, told: Told, dep: bytes) -> Iterator[str]:
    """Owners on which what was needed is not completed in the end: unless it was not needed to be."""
    need = evidence.needs[told.task]
    is_shown = need.policy != IGNORE and dep not in evidence.collected
    for name, _ in evidence.owners_of(dep) if is_shown else ():
        history = evidence.histories[name].get(dep)
        if history is None or history.completion.value is None:
            yield f"{dep.hex()} is not completed on {name}: {told.operation}"


def _was_dead(history: TaskHistory | None) -> bool:
    return history is not None and bool(history.died.value or history.revived.value)


def _is_overdue(evidence: Evidence, told: Told, need: Need) -> bool:
    waited_ms = evidence.wall_start_ms + told.operation.done_ms - time_of(told.task)
    return waited_ms + evidence.skew_ms + evidence.skew_excess_ms > need.wait_ms


def _is_too_old(evidence: Evidence, told: Told, dep: bytes) -> bool:
    closed_ms = evidence.wall_start_ms + told.operation.done_ms - evidence.keep_ms
    return bool(evidence.keep_ms) and time_of(dep) <= closed_ms + evidence.skew_ms + evidence.skew_excess_ms


def what_is_needed_is_kept(evidence: Evidence) -> Finding:
    """[D12] What was needed when it ended, and for as long as it is kept anyway, is collected after all that need
    it. So a reader of what a join needs misses nothing while the join exists."""
    asked = [_first_asked(evidence, m.Complete), _first_asked(evidence, m.Cancel)]
    ended = {dep: min(first[dep] for first in asked if dep in first) for first in asked for dep in first}
    acked = _first_acked(evidence)
    there = {key[2:] for store in evidence.stores.values() for key in store.rows("body")}
    margin_ms = evidence.keep_ms - 2 * (evidence.skew_ms + evidence.skew_excess_ms)
    pairs = [(task, dep) for task, need in evidence.needs.items() for dep in need.deps
             if dep in evidence.going and dep in ended and task in acked
             and acked[task] < ended[dep] + margin_ms]

    def broken() -> Iterator[str]:
        for task, dep in pairs:
            last_ms = evidence.going.get(task, evidence.end_ms + 1 if task in there else 0)
            if last_ms > evidence.going[dep]:
                yield (f"{dep.hex()} was collected at {evidence.going[dep]} ms, and {task.hex()}, acknowledged at"
                       f" {acked[task]} ms, needs it")
    return judge("D12 what is needed is kept", len(pairs), broken())


def _first_acked(evidence: Evidence) -> dict[bytes, int]:
    """When each task that needs others was first acknowledged."""
    first: dict[bytes, int] = {}
    for operation in sorted(evidence.history.of(m.Enqueue, Status.OK), key=lambda each: each.done_ms):
        for task_id, _ in bodies_of(operation):
            first.setdefault(task_id, operation.done_ms)
    return first


def nobody_waits_in_vain(evidence: Evidence) -> Finding:
    """[C17] Once the last fault is over, and the bound has passed or all was well before, no task waits for one
    that is done."""
    name = "C17 what is met lets its dependents go"
    if evidence.calm_ms is None:
        return Finding(name, None)
    is_time = evidence.equal_ms is not None or evidence.end_ms >= evidence.calm_ms + evidence.bound_ms
    if not is_time:
        return Finding(name, None)
    known, broken = known_anywhere(evidence), []
    for node, store in evidence.stores.items():
        for key in store.rows("dep"):
            dep, task_id = key[3:23], key[23:]
            done = known.get(dep, EMPTY_HISTORY).completion.value
            if not key[2] and done is not None:
                broken.append(f"{node}: {task_id.hex()} still waits for {dep.hex()}, done at {done[0]} ms")
    return judge(name, len(evidence.needs), broken)
