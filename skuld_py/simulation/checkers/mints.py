"""What the library's mints promise, as a part of D11: ids rise above what was acknowledged, and not far beyond.

Each call is held against what its own client had been told before it began. What a node with a wrong clock
acknowledged to a client with a wrong clock does not bind, since other nodes refuse it as of the future.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from skuld_py.model import messages as m
from skuld_py.model.ids import is_laned, time_of
from skuld_py.simulation.checkers.evidence import Evidence, bodies_of, gives_way
from skuld_py.simulation.history import Call, Operation

AHEAD_MS = 5_000
"""So far ahead of its clock an id is taken by nodes, and a mint may be left."""
SPARE_MS = 10
"""Of many ids of one moment some are of the next ones."""


def mints_astray(evidence: Evidence) -> Iterator[str]:
    """Ids that calls made too low or too high."""
    acked: dict[str, list[tuple[int, bytes]]] = {}
    calls = [call for call in evidence.history.calls if call.verb == "enqueue"]
    for call in calls:
        for operation in _enqueues(call):
            if operation.is_ok:
                acked.setdefault(call.client, []).extend((operation.done_ms, made) for made in _made(operation))
    for call in calls:
        rows = acked.get(call.client, [])
        highest_ms = max([call.clock_ms, *_floors(call), *_times_told(calls, call)])
        taken_ms = evidence.wall_start_ms + call.begun_ms + AHEAD_MS
        binding = [made for done_ms, made in rows if done_ms < call.begun_ms and time_of(made) <= taken_ms]
        for operation in _enqueues(call):
            for made in _made(operation):
                if time_of(made) > highest_ms + AHEAD_MS + SPARE_MS:
                    yield f"{made.hex()} is made {time_of(made) - highest_ms} ms ahead: {operation}"
                yield from (f"{made.hex()} is not above {known.hex()}, which was acknowledged: {operation}"
                            for known in binding if made <= known and is_laned(made) == is_laned(known))


def _times_told(calls: Sequence[Call], call: Call) -> Iterator[int]:
    """Of all ids that its client was told of before its end, those of unique names as well."""
    return (time_of(task_id) for other in calls if other.client == call.client for operation in _enqueues(other)
            if operation.is_ok and operation.done_ms <= call.done_ms for task_id, _ in bodies_of(operation))


def _enqueues(call: Call) -> Iterator[Operation]:
    return (operation for operation in call.operations if isinstance(operation.message, m.Enqueue))


def _made(operation: Operation) -> list[bytes]:
    """The ids of tasks without a unique name, which are the mint's."""
    return [task_id for task_id, body in bodies_of(operation) if not gives_way(body, body)]


def _floors(call: Call) -> list[int]:
    return [operation.answer.floor_ms for operation in call.operations if isinstance(operation.answer, m.Greeted)]
