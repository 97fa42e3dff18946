"""The tasks of a queue as roots of a workflow: each is claimed, and completed once its root is done.

    {"id": "0190…", "payload": b"...", "headers": {}}                          # the value of such a root
    {"id": "0190…", "function": "f", "args": [1], "kwargs": {}, "headers": {}}   # of one that is a call

A queue has no offsets. So what was drawn together is written down, before it is told of: a *haul* is a task in a
queue of the workflow's own, whose payload is the ids, and whose own id follows from its offset: the time, and a
number. Who draws again reads the haul, and the tasks, whose payloads do not change.

Claims are renewed while their roots are under way. A feeder that ends releases them; of one that is killed they
lapse. Then its next life claims them again, knows them by their hauls, and makes no other roots of them. Tasks
that others claim meanwhile are worked on twice: at least once is what there is.

Invariants:

* A task is completed when a checkpoint is stored by which its root is done.
* What waits is bounded by the roots that may be under way: no more is claimed than is asked for.

Rejected: the claims' checkpoints, which a later claim of another worker writes over. To complete tasks when their
roots are stored: a workflow that is killed would have taken them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from skuld_py.calls.payloads import decode_call, function_of
from skuld_py.client.claims import Claim
from skuld_py.client.steady import steady_s
from skuld_py.errors import Refused, SkuldError
from skuld_py.model.columns import split
from skuld_py.model.ids import ID_BYTES, to_text
from skuld_py.model.task import Task
from skuld_py.worker.workflows.children import packed
from skuld_py.worker.workflows.haul import Haul
from skuld_py.workflow.segments import EMISSION_BYTES_MAX, haul_id, haul_queue

CLAIMED_AT_ONCE = 500
LEASE_S, RENEW_S = 60.0, 20.0
NUMBER_BITS = 20
"""Of an offset: which of the hauls of one millisecond it is; the bits above are that millisecond."""
SPARE_BYTES = 256
CONFLICT = "conflict"


@attrs.define
class _Drawn:
    """A haul: its tasks, and which of them are held."""

    ids: list[bytes]
    held: dict[bytes, Claim] = attrs.field(factory=dict)


class Queued:
    """Draws from a queue. ``wall_ms``: a time at which nodes take ids."""

    def __init__(self, client: Any, queue: str, workflow: str, step: str, wall_ms: Callable[[], int],
                 clock: Callable[[], float] = steady_s) -> None:
        self._client, self._queue = client, queue
        self._workflow, self._step = workflow, step
        self._wall_ms, self._clock = wall_ms, clock
        self._drawn: dict[int, _Drawn] = {}
        self._of: dict[bytes, int] = {}
        """Of tasks under way the offset of their haul."""
        self._done: dict[bytes, None] = {}
        """Tasks whose roots are done, and which are not held: they are completed when they are met."""
        self._newest = 0
        self._renewed_s = clock()

    def draw(self, cursor: bytes, most: int) -> Haul:
        """Claim; a task that is known from a former life is held again, and not drawn."""
        claims = self._client.claim(self._queue, n=min(most, CLAIMED_AT_ONCE), lease_s=LEASE_S)
        over = [claim for claim in claims if bytes(claim.id) in self._done]
        self._complete(over)
        for claim in over:
            del self._done[bytes(claim.id)]
        fresh = []
        for claim in claims:
            if bytes(claim.id) in self._of:
                self._drawn[self._of[bytes(claim.id)]].held[bytes(claim.id)] = claim
            elif claim not in over:
                fresh.append(claim)
        if not fresh:
            return Haul([], 0, 0, cursor, False)
        values = [value_of(claim) for claim in fresh]
        held = {bytes(claim.id): claim for claim in fresh}
        offset = self._written([*held], int.from_bytes(cursor, "big"))
        self._note(offset, _Drawn([*held], held))
        return Haul(values, 0, offset, offset.to_bytes(8, "big"), False)

    def again(self, part: int, offset: int, count: int) -> Sequence[bytes]:
        """By the haul of this offset."""
        hauls = self._client.get_many([haul_id(self._workflow, self._step, offset, offset >> NUMBER_BITS)])
        ids = split(hauls[0].payload, ID_BYTES) if hauls else []
        found = {bytes(task.id): task for task in self._client.get_many(ids)} if ids else {}
        if offset not in self._drawn:
            self._note(offset, _Drawn(ids))
        return [value_of(found[id]) for id in ids if id in found]

    def settle(self, cursor: bytes, open_from: Mapping[int, int]) -> None:
        """Complete the tasks of hauls before the oldest that is under way."""
        end = min(open_from.get(0, 1 << 64), int.from_bytes(cursor, "big") + 1)
        for offset in [each for each in self._drawn if each < end]:
            drawn = self._drawn[offset]
            self._complete([*drawn.held.values()])
            with contextlib.suppress(Refused):
                self._client.cancel(haul_id(self._workflow, self._step, offset, offset >> NUMBER_BITS))
            del self._drawn[offset]
            for id in drawn.ids:
                del self._of[id]
            self._done.update(dict.fromkeys(id for id in drawn.ids if id not in drawn.held))

    def tend(self) -> None:
        """Renew what is held, once in a while; what is lost is claimed again in its turn, or by others."""
        if self._clock() < self._renewed_s + RENEW_S:
            return
        self._renewed_s = self._clock()
        held = [(each, id) for each in self._drawn.values() for id in each.held]
        verdicts = self._client.renew_many([each.held[id] for each, id in held], lease_s=LEASE_S)
        for (each, id), verdict in zip(held, verdicts, strict=True):
            if verdict is False:
                del each.held[id]

    def close(self) -> None:
        """Give back what is held: others may have it at once."""
        held = [claim for each in self._drawn.values() for claim in each.held.values()]
        with contextlib.suppress(SkuldError):
            if held:
                self._client.release(*held)

    def _complete(self, claims: Sequence[Claim]) -> None:
        if claims:
            self._client.complete_many(claims, [{"workflow": self._workflow, "input": self._step}] * len(claims))

    def _note(self, offset: int, drawn: _Drawn) -> None:
        self._newest = max(self._newest, offset)
        self._drawn[offset] = drawn
        self._of.update(dict.fromkeys(drawn.ids, offset))

    def _written(self, ids: list[bytes], former: int) -> int:
        """Write a haul down; the offset under which it stands, greater than all before."""
        offset = max(self._wall_ms() << NUMBER_BITS, former + 1, self._newest + 1)
        while True:
            try:
                self._client.enqueue_many(haul_queue(self._workflow, self._step), [b"".join(ids)],
                                          ids=[haul_id(self._workflow, self._step, offset, offset >> NUMBER_BITS)])
                return offset
            except Refused as refusal:
                if refusal.code != CONFLICT:
                    raise
            offset += 1  # that of a life that ended before it told of it


def value_of(task: Claim | Task) -> bytes:
    """A task as a value, packed. ``Refused`` as ``bad_source`` if it is too large."""
    said: dict[str, Any] = {"payload": task.payload}
    if function_of(task.payload) is not None:
        with contextlib.suppress(Refused):
            called = decode_call(task.payload)
            said = {"function": called.name, "args": called.args, "kwargs": called.kwargs}
    made = packed({"id": to_text(task.id), **said, "headers": dict(task.headers)})
    if len(made) > EMISSION_BYTES_MAX - SPARE_BYTES:
        raise Refused("bad_source", f"queue: task {to_text(task.id)} has {len(made)} bytes, more than the"
                      f" {EMISSION_BYTES_MAX} that flow along an edge; put its data into a file, and enqueue the"
                      " path", field="queue")
    return made
