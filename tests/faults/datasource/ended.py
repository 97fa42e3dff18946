"""A stream of what ended, over restarts of its query: it is stopped in the middle, and its sink fails twice.

Each task is to be in one batch, and each batch, when it is run again, to be what it was.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

import attrs

from skuld_py.client.client import Client

PART = 10_000
BATCHES = 10
"""At least so many."""
CLAIMS = 1_000
PATIENCE_S = 600.0
CRASHES = (1, 4)
"""Batches after which the sink fails: it has them, and Spark does not know."""
STOPS = (2, 6)
"""Batches after which the query is stopped."""


@attrs.define
class Given:
    """What the query gave: ids by batch; ``changed`` are batches that were not the same the second time."""

    batches: dict[int, list[str]] = attrs.field(factory=dict)
    changed: list[int] = attrs.field(factory=list)
    again: int = 0
    runs: int = 0
    crashes: list[int] = attrs.field(factory=lambda: [*CRASHES])
    stops: list[int] = attrs.field(factory=lambda: [*STOPS])

    @property
    def ids(self) -> list[str]:
        """Of all batches, one behind the other."""
        return [each for batch in self.batches.values() for each in batch]


def end_tasks(client: Client, queue: str, count: int) -> list[str]:
    """Tasks that are completed; their ids."""
    made: list[str] = []
    for start in range(0, count, PART):
        ids = client.enqueue_many(queue, [b"%d" % row for row in range(start, min(count, start + PART))])
        made += map(str, ids)
        left = len(ids)
        while left:
            claims = client.claim(queue, n=CLAIMS, wait_s=5)
            client.complete_many(claims)
            left -= len(claims)
    return made


def read(session: Any, client: Client, queue: str, nodes: str, place: Path) -> Given:
    """Run the query until the queue has nothing more."""
    given, until = Given(), time.monotonic() + PATIENCE_S
    options = {"nodes": nodes, "wait": "3s", "max_tasks": str(client.depths()[queue].total // BATCHES)}
    while queue in client.depths() and time.monotonic() < until:
        given.runs += 1
        _run(session, given, queue, options, place)
    return given


def _run(session: Any, given: Given, queue: str, options: dict[str, str], place: Path) -> None:
    running: list[Any] = []

    def note(frame: Any, batch: int) -> None:
        found = sorted(row.id for row in frame.where(f"queue = '{queue}'").select("id").collect())
        given.again += batch in given.batches
        if given.batches.setdefault(batch, found) != found:
            given.changed.append(batch)
        if batch in given.crashes:
            given.crashes.remove(batch)
            raise RuntimeError("the sink has the batch, and Spark does not know")
        if batch in given.stops and running:
            given.stops.remove(batch)
            running[0].stop()
    ended = session.readStream.format("skuld").options(**options).load()
    query = (ended.writeStream.foreachBatch(note).option("checkpointLocation", str(place))
             .trigger(availableNow=True).start())
    running.append(query)
    with contextlib.suppress(Exception):  # a crash of ours, or it is said below
        query.awaitTermination(PATIENCE_S)
    problem = query.exception()
    if problem is not None and "does not know" not in str(problem):
        raise RuntimeError(f"the query failed: {problem}")
