"""C21: no task is claimed before its time, after it has expired, or while it rests after a failure.

Only what was acknowledged binds: a pause that only one leader recorded, and no client was told of, may be lost
with that leader. Times are those of tasks' bodies and of answers; a leader's clock is off by the skew bound at
most, and by what faults drove it beyond that.
"""

from __future__ import annotations

from collections.abc import Iterator

from skuld_py.model import messages as m
from skuld_py.model.body import Body
from skuld_py.model.history import RELEASED
from skuld_py.model.ids import split
from skuld_py.simulation.checkers.claims import granted_conclusions
from skuld_py.simulation.checkers.evidence import Evidence, Finding, judge


def claims_come_in_time(evidence: Evidence) -> Finding:
    """[C21] A claim is granted between ``not_before`` and ``expires`` of its task, and after the pause that its
    last holder was told of, unless the task was revived."""
    spare_ms = evidence.skew_ms + evidence.skew_excess_ms
    rests = _rests(evidence)
    count, broken = 0, []
    for told in evidence.told:
        if not told.body:
            continue
        body = Body.decode(told.body)
        asked_ms, told_ms = (at_ms + evidence.wall_start_ms
                             for at_ms in (told.operation.invoked_ms, told.operation.done_ms))
        pauses = [until_ms for done_ms, until_ms in rests.get(told.task, ())
                  if done_ms < told.operation.invoked_ms]
        due_ms = max(body.not_before_ms, *pauses, 0)
        count += bool(due_ms or body.expires_ms)
        if told_ms + spare_ms < due_ms:
            broken.append(f"{told.task.hex()} is due at {due_ms} ms, told at {told_ms} ms: {told.operation}")
        if body.expires_ms and asked_ms - spare_ms >= body.expires_ms:
            broken.append(f"{told.task.hex()} expired at {body.expires_ms} ms, asked for at {asked_ms} ms:"
                          f" {told.operation}")
    return judge("C21 a claim comes in its time", count, broken)


def _rests(evidence: Evidence) -> dict[bytes, list[tuple[int, int]]]:
    """Task -> (when its holder was told, until when it rests); none of tasks that a client wanted to revive. A
    holder that releases is told the end of its lease: the task rests no more."""
    revived = set(_revived(evidence))
    rests: dict[bytes, list[tuple[int, int]]] = {}
    for operation, task_id, _, until_ms in granted_conclusions(evidence):
        assert isinstance(operation.message, m.Conclude)
        if task_id not in revived and operation.message.kind != RELEASED:
            rests.setdefault(task_id, []).append((operation.done_ms, until_ms))
    return rests


def _revived(evidence: Evidence) -> Iterator[bytes]:
    for operation in evidence.history.of(m.Revive):
        assert isinstance(operation.message, m.Revive)
        yield from split(operation.message.ids)
