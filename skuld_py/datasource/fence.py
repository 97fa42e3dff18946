"""Which run of a stream's batch counts: Spark runs a batch again if its driver died before it noted the commit.

Each run stores tasks of its own, behind gates of its own (``gates``). A *decision* says whose are let go: a task
in ``skuld.streams`` under the unique name of query, batch and generation, whose payload is the run's gates. It
stands before any gate is completed, so a later run of the batch finds it, and looks at these gates:

* completed: the batch is in the queue. The later run's tasks are shut out, and Spark is told that all is well.
* not completed: they are shut, for good; then the later run decides the next generation. If they were completed in
  between, it is the first case.

Invariant: of the runs of a batch at most one has completed gates, for the gates of all earlier decisions are shut,
or found completed, before the next one is made; gates are completed all at once or not at all. A driver that still
holds its gates is waited for: it completes them while its leases last, or not at all. (Not by its clock alone: one
that is stopped for longer, between a look at the clock and the request it then sends, can do harm.)

A unique name holds for a window: a query that stood still for longer between the two runs may store a batch twice.
Nodes take no window that is longer than their retention. Decisions die, and may be collected, after two windows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgpack

from skuld_py.client.client import Client
from skuld_py.client.steady import sleep, wall_s
from skuld_py.datasource.gates import Commit, Write
from skuld_py.errors import Refused
from skuld_py.model import ids
from skuld_py.model.task import Task

STREAMS = "skuld.streams"
GENERATIONS_MAX = 1_000


def commit_batch(client: Client, query: str, batch: int, write: Write, gates: Sequence[bytes], window_s: float,
                 wall: Callable[[], float] = wall_s, pause: Callable[[float], object] = sleep) -> bool:
    """Let a batch's tasks go, unless an earlier run's were; says whether it was these."""
    for generation in range(GENERATIONS_MAX):
        name = f"{query}/{batch}/{generation}"
        decided = _decided(client, name, window_s, wall())
        if decided is None:
            now_s = wall()
            client.enqueue(STREAMS, msgpack.packb([bytes(gate) for gate in gates]), unique=name,
                           unique_window_s=window_s, expires=now_s + 2 * window_s)
            decided = _decided(client, name, window_s, now_s)
        if decided is None:
            raise Refused("no_decision", f"batch {batch}: its decision cannot be read; run it again")
        counted = [bytes(gate) for gate in msgpack.unpackb(decided.payload)]
        if counted == [*map(bytes, gates)]:
            Commit(client, write, gates, wall, pause).commit()
            return True
        if _is_done(Commit(client, Write("", 0, wall(), 0.0), counted, wall, pause)):
            Commit(client, write, gates, wall, pause).abort()
            return False
    raise Refused("no_decision", f"batch {batch}: was begun {GENERATIONS_MAX} times; begin with a new checkpoint")


def _decided(client: Client, name: str, window_s: float, now_s: float) -> Task | None:
    """The decision of this name, of this window or the one before."""
    window_ms = round(window_s * 1000)
    slot_ms = int(now_s * 1000) // window_ms * window_ms
    found = client.get_many([ids.named_id(STREAMS, name, slot_ms - back, "") for back in (window_ms, 0)])
    return found[0] if found else None


def _is_done(earlier: Commit) -> bool:
    """Whether an earlier run's gates were completed; if not, they never will be from now on."""
    return earlier.has_happened() or not earlier.shut()
