"""C20: each tick of a schedule is one task; and while all is well, there is one for each tick.

A schedule's tasks are known by their payload, which no other task has. What a schedule said is read from the
changes that clients asked for, and when its ticks are is worked out here.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator

import attrs

from skuld_py.model import messages as m
from skuld_py.model.body import Body
from skuld_py.simulation.checkers.evidence import Evidence, Finding, bodies_seen, judge
from skuld_py.simulation.history import Operation, Status

KIND = "schedule"
LATE_MS = 3_000
"""A tick may become a task this much later than it is due."""


@attrs.frozen
class Definition:
    """A schedule as a client asked for it. The node that took it may have found that it was made earlier than
    that: not before ``least_ms``."""

    name: str
    payload: bytes
    every_ms: int
    since_ms: int
    least_ms: int
    put: Operation

    def has(self, tick_ms: int) -> bool:
        """Whether this is one of its ticks."""
        return tick_ms > self.least_ms and tick_ms % self.every_ms == 0


def definitions_of(evidence: Evidence) -> list[Definition]:
    """All definitions that may have been put."""
    found = []
    for put in evidence.history.of(m.PutSetting):
        assert isinstance(put.message, m.PutSetting)
        if put.message.kind == KIND and put.message.value and put.status is not Status.FAIL:
            said = json.loads(put.message.value)
            earliest_ms = evidence.wall_start_ms + put.invoked_ms - evidence.skew_ms
            found.append(Definition(put.message.name, b64decode(said["payload"]), said["every_ms"],
                                    said["since_ms"], min(said["since_ms"], earliest_ms), put))
    return found


def is_tick(definitions: list[Definition], body: Body) -> bool:
    """Whether a schedule may have made this."""
    return any(body.payload == made.payload and made.has(body.made_ms) for made in definitions)


def ticks_are_tasks(evidence: Evidence) -> Finding:
    """[C20] What a schedule makes is of a tick of it, one task for each; and where a schedule is known to all
    nodes while every partition is led, each tick becomes a task in time. That holds soon after the last clock has
    been set right, whatever clock the schedule was put by."""
    definitions = definitions_of(evidence)
    payloads = {made.payload for made in definitions}
    made: dict[tuple[bytes, int], bytes] = {}
    broken: list[str] = []
    for task_id, record in dict.fromkeys((task_id, record) for _, task_id, record in bodies_seen(evidence)):
        body = Body.decode(record)
        if body.payload not in payloads:
            continue
        first = made.setdefault((body.payload, body.made_ms), task_id)
        if first != task_id:
            broken.append(f"tick {body.made_ms} of {body.payload!r} is {first.hex()} and {task_id.hex()}")
        if not is_tick(definitions, body):
            broken.append(f"{task_id.hex()} of {body.payload!r} is made for {body.made_ms}, which is no tick")
    expected = [(definition, tick_ms) for definition in definitions for tick_ms in _expected(evidence, definition)]
    broken += [f"tick {tick_ms} of {definition.put} is no task" for definition, tick_ms in expected
               if (definition.payload, tick_ms) not in made]
    return judge("C20 a tick is one task", len(made) + len(expected), broken)


def _expected(evidence: Evidence, definition: Definition) -> Iterator[int]:
    """Ticks that nothing kept from becoming tasks."""
    put = definition.put
    if evidence.led_ms is None or not isinstance(put.answer, m.SettingPut):
        return
    is_older = put.invoked_ms < evidence.led_ms
    if not is_older and put.answer.copies < len(evidence.stores):
        return
    later = (change.invoked_ms for change in evidence.history.of(m.PutSetting)
             if isinstance(change.message, m.PutSetting) and isinstance(put.message, m.PutSetting)
             and (change.message.kind, change.message.name) == (KIND, definition.name)
             and change.message.version > put.message.version)
    until_ms = min(later, default=evidence.end_ms) - LATE_MS - evidence.skew_ms + evidence.wall_start_ms
    from_ms = evidence.wall_start_ms + evidence.led_ms + LATE_MS if is_older else definition.since_ms
    first_ms = (from_ms // definition.every_ms + 1) * definition.every_ms
    yield from range(first_ms, until_ms + 1, definition.every_ms)
