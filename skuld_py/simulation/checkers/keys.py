"""C15: tasks of one ordering key are worked on in order, no more at a time than their queue allows. C18: of each
unique name there is one task in a window.

A *lane* here is a queue and a key, as clients sent them; the checker knows nothing of routes. How many may be held
at a time is what the settings sent for the queue allow at most, 1 without any. Order is asked for among what every
owner had stored before the question, in runs where these stayed the same and lost nothing: there whoever grants
knows both tasks.

A holder of a task that was completed by an older claim holds nothing that others wait for: a completion counts
whichever claim it is of.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from skuld_py.model import messages as m
from skuld_py.model.body import Body
from skuld_py.model.limiting import decode_limits
from skuld_py.model.setting import LIMITS, UNSET
from skuld_py.simulation.checkers.evidence import (
    LOSSES,
    Evidence,
    Finding,
    Records,
    bodies_of,
    bodies_seen,
    cancelled_in,
    completions_of,
    judge,
    numbers_told,
)
from skuld_py.simulation.checkers.outcomes import HARMLESS, known_of
from skuld_py.simulation.checkers.settings import puts_of
from skuld_py.simulation.history import Hold, Operation, Status

Asked = tuple[Operation, int, bytes, Body]
"""An enqueue, a task's number in it, and its body."""
Name = tuple[str, str, str, int]
"""Queue, unique name, key, and when the window begins."""
Lane = tuple[str, str]
"""Queue and key."""


def keyed_bodies(evidence: Evidence) -> dict[bytes, Body]:
    """What was sent of tasks with a key."""
    return {task_id: Body.decode(record) for operation in evidence.history.of(m.Enqueue)
            for task_id, record in bodies_of(operation) if task_id[8] >> 7}


def widths_of(evidence: Evidence) -> dict[str, int]:
    """Queue -> how many tasks of a key may have been held at a time, where that is not 1."""
    widths: dict[str, int] = {}
    for (kind, queue), operations in puts_of(evidence).items():
        for operation in operations if kind == LIMITS else ():
            assert isinstance(operation.message, m.PutSetting)
            if operation.message.value != UNSET:
                limits = decode_limits(operation.message.value)
                widths[queue] = max(limits.key_concurrency, widths.get(queue, 1))
    return widths


def lanes_are_in_order(evidence: Evidence) -> Finding:
    """[C15] Of a key no more tasks are held at a time than its queue allows; and none is granted before an older
    one is over, if all owners had both when it was asked for."""
    bodies, widths = keyed_bodies(evidence), widths_of(evidence)
    lanes: dict[Lane, list[bytes]] = {}
    for task_id in sorted(bodies):
        lanes.setdefault((bodies[task_id].header.queue, bodies[task_id].key), []).append(task_id)
    holds, done = _holds_by_lane(evidence, bodies), _completed_ms(evidence)
    broken = [*(line for lane, rows in holds.items() for line in _crowds(evidence, lane, rows, widths, done)),
              *_overtaken(evidence, bodies, lanes, widths)]
    return judge("C15 a key is worked on in order", sum(len(rows) - 1 for rows in holds.values()), broken)


def _holds_by_lane(evidence: Evidence, bodies: dict[bytes, Body]) -> dict[Lane, list[Hold]]:
    by_lane: dict[Lane, list[Hold]] = {}
    for hold in sorted(evidence.history.holds, key=lambda hold: (hold.start_ms, hold.token)):
        body = bodies.get(hold.task)
        if body is not None and hold.stop_ms > hold.start_ms:
            by_lane.setdefault((body.header.queue, body.key), []).append(hold)
    return by_lane


def _crowds(evidence: Evidence, lane: Lane, holds: list[Hold], widths: dict[str, int],
            done: dict[bytes, int]) -> Iterator[str]:
    """Like C3, where one worker's clock may run on a little too long."""
    running: list[Hold] = []

    def stop_ms(hold: Hold) -> int:
        return min(hold.stop_ms, done.get(hold.task, hold.stop_ms))
    for hold in holds:
        running = [other for other in running if stop_ms(other) > hold.start_ms]
        mates = [other for other in running if other.task != hold.task
                 and min(stop_ms(other), stop_ms(hold)) - hold.start_ms > evidence.skew_excess_ms]
        if len({other.task for other in mates}) >= widths.get(lane[0], 1):
            yield f"{lane}: {hold}, while {mates}"
        running.append(hold)


def _overtaken(evidence: Evidence, bodies: dict[bytes, Body], lanes: dict[Lane, list[bytes]],
               widths: dict[str, int]) -> Iterator[str]:
    if not evidence.is_fixed or evidence.struck(LOSSES):
        return
    stored, over = _stored_ms(evidence), _over_ms(evidence, bodies)
    for told in evidence.told:
        body, asked_ms = bodies.get(told.task), told.operation.invoked_ms
        if body is None or stored.get(told.task, asked_ms) >= asked_ms:
            continue
        lane = (body.header.queue, body.key)
        ahead = [task_id for task_id in lanes[lane] if task_id < told.task
                 and stored.get(task_id, asked_ms) < asked_ms
                 and over.get(task_id, told.operation.done_ms + 1) > told.operation.done_ms]
        if len(ahead) >= widths.get(lane[0], 1):
            yield f"{lane}: {told.task.hex()} before {[task_id.hex() for task_id in ahead]}: {told.operation}"


def _stored_ms(evidence: Evidence) -> dict[bytes, int]:
    """Since when each task has been on all its owners."""
    stored: dict[bytes, int] = {}
    for operation in evidence.history.of(m.Enqueue, Status.OK):
        if evidence.copies(operation) == evidence.replicas:
            for task_id, _ in bodies_of(operation):
                stored[task_id] = min(operation.done_ms, stored.get(task_id, operation.done_ms))
    return stored


def _completed_ms(evidence: Evidence) -> dict[bytes, int]:
    """From when on each task may have been complete."""
    done: dict[bytes, int] = {}
    for operation in evidence.history.of(m.Complete):
        if operation.status is not Status.FAIL:
            for task_id, _ in completions_of(operation):
                done[task_id] = min(operation.invoked_ms, done.get(task_id, operation.invoked_ms))
    return done


def _over_ms(evidence: Evidence, bodies: dict[bytes, Body]) -> dict[bytes, int]:
    """From when on each task may have been over: a client said that it is, or it may have died at any time."""
    over = _completed_ms(evidence) | dict.fromkeys(evidence.going, 0) | dict.fromkeys(evidence.collected, 0)
    for operation in evidence.history.of(m.Cancel):
        if operation.status is not Status.FAIL:
            for task_id in cancelled_in(operation):
                over[task_id] = min(operation.invoked_ms, over.get(task_id, operation.invoked_ms))
    for task_id, history in known_of(evidence).items():
        body = bodies.get(task_id)
        if body is not None:
            tries = sum(1 for claim in history.claims.entries.values() if claim.kind not in HARMLESS)
            if (history.died.value or history.revived.value or body.expires_ms
                    or tries >= body.header.retry.max_attempts):
                over[task_id] = 0
    return over


def names_are_unique(evidence: Evidence) -> Finding:
    """[C18] Of a queue, a name and a window there is one task. Once its content is where any majority meets it, no
    call that begins later changes it anywhere, whatever its clock says, and each is told so. Of calls at the same
    time nothing gives way to what was asked for later.
    """
    asked: dict[bytes, list[Asked]] = {}
    names: dict[bytes, set[Name]] = {}
    tasks: dict[Name, set[bytes]] = {}
    for operation in evidence.history.of(m.Enqueue):
        for number, (task_id, record) in enumerate(bodies_of(operation)):
            body = Body.decode(record)
            if body.unique:
                start_ms = body.made_ms - body.made_ms % body.header.window_ms
                name = (body.header.queue, body.unique, body.key, start_ms)
                asked.setdefault(task_id, []).append((operation, number, record, body))
                names.setdefault(task_id, set()).add(name)
                tasks.setdefault(name, set()).add(task_id)
    broken = [f"{task_id.hex()} is of {sorted(found)}" for task_id, found in names.items() if len(found) > 1]
    broken += [f"{name} has {len(found)} tasks" for name, found in tasks.items() if len(found) > 1]
    for task_id, rows in asked.items():
        broken += [*_displaced(evidence, task_id, rows), *_not_told(evidence, rows)]
    broken += _rewritten(evidence, asked)
    return judge("C18 a unique name is one task", sum(len(rows) - 1 for rows in asked.values()), broken)


def _displaced(evidence: Evidence, task_id: bytes, rows: Sequence[Asked]) -> Iterator[str]:
    acked = [(body.made_ms, record) for operation, number, record, body in rows
             if operation.is_ok and evidence.is_binding(operation)
             and number not in numbers_told(operation.answer)]
    for name, store in evidence.owners_of(task_id) if acked and task_id not in evidence.collected else ():
        record = store.get("body", evidence.key(task_id))
        if record is None or (Body.decode(record).made_ms, record) > min(acked):
            yield f"{name} has {record!r}, but {min(acked)!r} was acknowledged"


def _settled(evidence: Evidence, rows: Sequence[Asked]) -> list[tuple[int, int, bytes]]:
    """When what was asked for as the first was acknowledged so that any majority meets it: time, rank."""
    return [(operation.done_ms, body.made_ms, record) for operation, number, record, body in rows
            if operation.is_ok and evidence.is_seen_by_majorities(operation)
            and number not in numbers_told(operation.answer)]


def _began(rows: Sequence[Asked]) -> dict[bytes, int]:
    """When each content was asked for first."""
    began: dict[bytes, int] = {}
    for operation, _, record, _ in rows:
        began[record] = min(operation.invoked_ms, began.get(record, operation.invoked_ms))
    return began


def _rewritten(evidence: Evidence, asked: Mapping[bytes, Sequence[Asked]]) -> Iterator[str]:
    """Contents that are seen anywhere and were asked for after another one was settled."""
    late: dict[tuple[bytes, bytes], bytes] = {}
    for task_id, rows in asked.items():
        settled = _settled(evidence, rows) if task_id not in evidence.collected else []
        late |= {(task_id, record): other for record, began_ms in _began(rows).items()
                 for done_ms, _, other in settled if done_ms < began_ms and record != other}
    for where, task_id, record in bodies_seen(evidence) if late else ():
        if (task_id, record) in late:
            yield f"{where} has {record!r}, asked for after {late[task_id, record]!r} was acknowledged"


def _not_told(evidence: Evidence, rows: Sequence[Asked]) -> Iterator[str]:
    done, began = _settled(evidence, rows), _began(rows)
    for operation, number, record, body in rows:
        if operation.is_ok and evidence.copies(operation) >= evidence.majority:
            assert isinstance(operation.answer, m.Acked)
            is_told = number in numbers_told(operation.answer)
            before = [(made_ms, other) for at_ms, made_ms, other in done if at_ms < operation.invoked_ms
                      and (at_ms < began[record] or (made_ms, other) < (body.made_ms, record)) and other != record]
            if not is_told and before:
                yield f"not told of {min(before)}: {operation}"
            if is_told and all(other.invoked_ms > operation.done_ms or record == same
                               for other, _, same, _ in rows):
                yield f"told of another, and there was none: {operation}"


def wrong_lanes(name: str, store: Records, waits: Collection[bytes], widths: Mapping[str, int]) -> Iterator[str]:
    """Part of X1: lanes whose rows are not made by the other indexes, or whose oldest tasks have not their turn.
    ``waits``: the tasks blocked by others, by their keys."""
    claimed: dict[bytes, list[bytes]] = {}
    turns: dict[bytes, dict[bytes, int]] = {}
    queues: dict[bytes, set[str]] = {}
    for key, value in store.rows("lane").items():
        lane = key[:2] + key[3:11]
        queues.setdefault(lane, set()).add(value[key[2:3] == b"w" : -5].decode())
        if key[2:3] == b"c":
            claimed.setdefault(lane, []).append(key[-20:])
        else:
            turns.setdefault(lane, {})[key[-20:]] = value[0]
    held = {key[:2] + key[10:] for key in store.rows("lease") if key[18] >> 7}
    if held != {lane[:2] + task_id for lane, rows in claimed.items() for task_id in rows}:
        yield f"{name}: the claims of lanes are not those among the leases"
    pending = {key[:2] + key[-20:] for key in [*store.rows("ready"), *store.rows("time")] if key[-12] >> 7}
    blocked = {key for key in waits if key[10] >> 7}
    opened = {lane[:2] + task_id for lane, rows in turns.items() for task_id, flag in rows.items() if flag}
    if not pending <= opened <= pending | blocked:
        yield f"{name}: the open tasks of lanes are not those that wait at once or later"
    if not blocked <= {lane[:2] + task_id for lane, rows in turns.items() for task_id in rows}:
        yield f"{name}: a task that waits for others has no place in its lane"
    for lane, rows in turns.items():
        flags = [flag for _, flag in sorted(rows.items())]
        taken = len(claimed.get(lane, ())) + len(claimed.get(lane[:6] + bytes(4), ()))
        widest = max(widths.get(queue, 1) for queue in queues[lane])
        least = 1 if widest == 1 else 0
        if flags != sorted(flags, reverse=True) or not (
                min(len(flags), least - taken) <= sum(flags) <= max(0, widest - taken)):
            yield f"{name}: lane {lane.hex()} has {taken} claims and turns {flags}"
