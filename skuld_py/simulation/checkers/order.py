"""O1 to O3: the best task first, exactly on one leader, nearly over all of them, and every task at last."""

from __future__ import annotations

from collections.abc import Iterator

from sortedcontainers import SortedList

from skuld_py.model import messages as m
from skuld_py.model.body import PRIORITY_MAX, Body, header_of
from skuld_py.model.history import History as TaskHistory
from skuld_py.model.ids import time_of
from skuld_py.simulation.checkers.evidence import (
    Evidence,
    Finding,
    Told,
    bodies_of,
    cancelled_in,
    completions_of,
    judge,
    numbers_told,
)
from skuld_py.simulation.checkers.settings import doubtful_times, is_in_doubt
from skuld_py.simulation.history import Operation, Status
from skuld_py.simulation.notes import Note, What

_COMPLETED = 8
"""A history record begins with when the task was completed, or with zeros. Nearly all are completed, and this is
asked many times while a run is waited for."""
Rank = tuple[int, int, bytes]
"""Sorts as a strict queue would: higher priority first, then what was asked for earlier, then the older id."""


def leaders_take_the_best(evidence: Evidence) -> Finding:
    """[O1] Of the tasks that a leader knew to be waiting, over all partitions one question was answered from,
    it left none that is better than one it took."""
    worst: dict[tuple[str, str, int], Note] = {}
    notes = evidence.noted(What.PICKED)
    for note in notes:
        asked = (note.node, note.whom, note.request)
        worst[asked] = max(worst.get(asked, note), note, key=lambda note: note.worst)
    broken = (f"left {note.left!r}: {note}; took {taken.worst!r}" for note in notes
              if note.left and note.left < (taken := worst[note.node, note.whom, note.request]).worst)
    return judge("O1 a leader grants its best task", sum(1 for note in notes if note.left), broken)


def order_is_nearly_global(evidence: Evidence) -> Finding:
    """[O2] Few better tasks wait elsewhere when one is granted: of ``P`` partitions and claimers that ask for
    ``m`` tasks together at most ``P + m`` in 99 of 100 grants, never more than four times that.

    Asked only of calm runs: no fault, and no claim of unknown outcome, which may hold tasks that are not seen
    held. Nor of grants while the queue may be paused on some nodes only.
    """
    name = "O2 claims follow the order of the whole queue"
    claims = list(evidence.history.of(m.Claim))
    if evidence.faults or any(operation.status in (Status.OPEN, Status.INFO) for operation in claims):
        return Finding(name, None)
    asked: dict[str, int] = {}
    for operation in claims:
        assert isinstance(operation.message, m.Claim)
        if _is_at_work(evidence, operation):
            asked[operation.client] = max(operation.message.count, asked.get(operation.client, 0))
    bound = evidence.partitions + sum(asked.values())
    doubts = doubtful_times(evidence)
    displaced = sorted((pair for pair in _displacements(evidence) if not is_in_doubt(doubts, pair[1])),
                       key=lambda pair: pair[0])
    at = max(0, -(-99 * len(displaced) // 100) - 1)
    broken = [f"{count} better tasks waited, {4 * bound} may: {told.operation}"
              for count, told in reversed(displaced) if count > 4 * bound]
    if displaced and displaced[at][0] > bound:
        broken.append(f"99 of 100 grants have up to {displaced[at][0]} better tasks waiting, {bound} may")
    return judge(name, len(displaced), broken)


def _is_at_work(evidence: Evidence, operation: Operation) -> bool:
    """Whether it was asked before the queues were drained."""
    return evidence.calm_ms is None or operation.invoked_ms < evidence.calm_ms


def _displacements(evidence: Evidence) -> Iterator[tuple[int, Told]]:
    """(better tasks that waited all the while, claim) of each task's first claim; of tasks with times, and of
    cancelled ones, it cannot be told from outside whether they waited."""
    first: dict[bytes, Told] = {}
    for told in sorted(evidence.told, key=lambda told: told.operation.done_ms):
        first.setdefault(told.task, told)
    apart = {task_id for operation in evidence.history.of(m.Cancel) for task_id in cancelled_in(operation)}
    changes: list[tuple[int, bool, str, Rank]] = []
    for operation in evidence.history.of(m.Enqueue, Status.OK):
        duplicates = numbers_told(operation.answer)
        for number, (task_id, body) in enumerate(bodies_of(operation)):
            if number in duplicates:
                continue
            has_key = task_id[8] >> 7
            has_times = evidence.may_expire(body) or Body.decode(body).not_before_ms
            if task_id in apart or task_id in evidence.needs or has_key or has_times:
                continue
            queue, rank = _rank(task_id, body)
            gone_ms = first[task_id].operation.invoked_ms if task_id in first else evidence.end_ms
            if operation.done_ms < gone_ms:
                changes += [(operation.done_ms, True, queue, rank), (gone_ms - 1, False, queue, rank)]
    changes.sort(key=lambda change: (change[0], not change[1]))
    waiting: dict[str, SortedList] = {}
    at = 0
    for told in sorted(first.values(), key=lambda told: told.operation.invoked_ms):
        while at < len(changes) and changes[at][0] < told.operation.invoked_ms:
            _, is_added, queue, rank = changes[at]
            ranks = waiting.setdefault(queue, SortedList())
            ranks.add(rank) if is_added else ranks.discard(rank)
            at += 1
        queue, rank = _rank(told.task, told.body)
        if _is_at_work(evidence, told.operation):
            yield waiting.get(queue, SortedList()).bisect_left(rank), told


def _rank(task_id: bytes, record: bytes) -> tuple[str, Rank]:
    body = Body.decode(record)
    asked_ms = body.made_ms if body.unique else time_of(task_id)
    return body.header.queue, (PRIORITY_MAX - body.header.priority, asked_ms, task_id)


def _is_given_up(history: TaskHistory, body: bytes) -> bool:
    """Whether it is cancelled, dead or out of attempts; a claim still held at the end counts as failed."""
    if history.completion.value is not None:
        return False
    tried = sum(1 for token, claim in history.claims.entries.items()
                if token > history.base and claim.kind in (0, 3))
    is_dead = history.death_round == history.round + 1
    return history.cancelled.value is not None or is_dead or tried >= header_of(body).retry.max_attempts


def nobody_starves(evidence: Evidence) -> Finding:
    """[O3] Within the bound after the last fault every task stored is claimed or completed; and completed at
    last, since a worker drains the queues, unless it was cancelled or is dead or out of attempts."""
    name = "O3 every task gets its turn"
    if evidence.calm_ms is None:
        return Finding(name, None)
    turns: dict[bytes, int] = {}
    for told in sorted(evidence.told, key=lambda told: told.operation.done_ms):
        if turns.get(told.task, 0) < evidence.calm_ms:
            turns[told.task] = told.operation.done_ms
    for operation in evidence.history.of(m.Complete):
        for task_id, _ in completions_of(operation):
            turns.setdefault(task_id, operation.invoked_ms)
    last_ms = evidence.calm_ms + evidence.bound_ms
    count, broken = 0, []
    for partition, owners in sorted(evidence.owners.items()):
        prefix = partition.to_bytes(2, "big")
        for node in owners:
            records = evidence.stores[node].rows("history", prefix)
            for key, body in evidence.stores[node].rows("body", prefix).items():
                count += 1
                record = records.get(key, b"")
                if not any(record[:_COMPLETED]):
                    if not (record and _is_given_up(TaskHistory.decode(record), body)):
                        broken.append(f"{node} still has {key.hex()} uncompleted")
                elif turns.get(key[2:], last_ms + 1) > last_ms:
                    broken.append(f"{key.hex()} had no turn until {last_ms} ms, but {turns.get(key[2:])}")
    return judge(name, count, broken)
