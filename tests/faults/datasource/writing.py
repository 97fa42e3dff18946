"""Writes of many rows: a frame in which executors come to harm, and a look at the queue while it is written.

The frame gives its rows in an order that no two attempts at a part share. In a write that is to come to its end,
one part stops half-way for good and says which process it is, so that its executor can be killed when it has
written; and another one stands still, so that Spark may run it a second time beside the first, though nobody
counts that. In one that is to be aborted, a part raises half-way, in every attempt.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from select import select
from threading import Event, Thread
from typing import Any, Self

import attrs
import psutil

from skuld_py.client.client import Client
from skuld_py.datasource.gates import GATES
from skuld_py.errors import SkuldError

STOPPED, SLOW, BROKEN = 3, 5, 2
"""Parts, by number."""
SLOW_S, STOPPED_S = 60.0, 3_600.0
LEAST_BYTES = 32 << 20
"""Of a whole frame: so much that no buffer between Spark and Python holds half a part back."""
LEAST_WIDTH = 100
BATCH = 1_000
"""Rows that Spark hands out at a time, at most; of a small part less, or all of it would be one batch."""
CLAIMABLE = ("waiting", "claimed", "scheduled", "completed")
LIST_EACH = 10
"""Looks by ``list`` among the looks: it goes through all that waits for the commit."""


def frame_of(session: Any, rows: int, parts: int, pipe: Path | None = None, *, is_broken: bool = False) -> Any:
    """Payloads that are the rows' numbers, filled up with blanks; with a ``pipe`` attempts come to harm."""
    said, half, width = None if pipe is None else str(pipe), rows // parts // 2, width_of(rows)
    stopped, slow, broken, stopped_s, slow_s = STOPPED, SLOW, BROKEN, STOPPED_S, SLOW_S

    def part(number: int, numbers: Iterator[int]) -> Iterator[tuple[str]]:
        import os
        import random
        import time

        from pyspark import TaskContext

        context, shuffled = TaskContext.get(), list(numbers)
        random.shuffle(shuffled)
        is_first = context is not None and context.attemptNumber() == 0
        for count, row in enumerate(shuffled):
            if count == half:
                if is_broken and number == broken:
                    raise ValueError("a row too many")
                if said is not None and is_first and number == stopped:
                    with open(said, "w") as file:
                        file.write(str(os.getpid()))
                    time.sleep(stopped_s)
                if said is not None and is_first and number == slow:
                    time.sleep(slow_s)
            yield (f"{row:{width}}",)
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(min(BATCH, 1 + half // 10)))
    made = session.sparkContext.range(rows, numSlices=parts).mapPartitionsWithIndex(part)
    return session.createDataFrame(made, "payload string", verifySchema=False)


def width_of(rows: int) -> int:
    """How long a payload is."""
    return max(LEAST_WIDTH, -(-LEAST_BYTES // rows))


def save(frame: Any, queue: str) -> None:
    """Write it at one moment."""
    frame.write.format("skuld").options(queue=queue).mode("append").save()


@attrs.define
class Seen:
    """What looks at a queue found: how many there were, how many found tasks that wait, how many had no answer,
    and what could be claimed before anything was committed."""

    looks: int = 0
    blocked: int = 0
    unanswered: int = 0
    early: list[str] = attrs.field(factory=list)


class Watch(Thread):
    """Looks at a queue while a block writes to it, until it is committed."""

    def __init__(self, client: Client, queue: str) -> None:
        super().__init__(daemon=True)
        self.seen = Seen()
        self._client = client
        self._queue = queue
        self._committed = self._commits()
        self._is_over = Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self.join()

    def run(self) -> None:
        """Look. What is found while a commit happens is no news: so commits are counted afterwards."""
        while not self._is_over.is_set():
            try:
                if self._look():
                    return
            except SkuldError:
                self.seen.unanswered += 1

    def _look(self) -> bool:
        """Once; whether it is committed."""
        depth = self._client.depths().get(self._queue)
        found = [str(claim.id) for claim in self._client.claim(self._queue, n=10, wait_s=0.2)]
        if self.seen.looks % LIST_EACH == 0:
            found += [str(task.id) for task in self._client.list(self._queue, states=CLAIMABLE)]
        if self._commits() > self._committed:
            return True
        self.seen.looks += 1
        self.seen.blocked += depth is not None and depth.blocked > 0
        self.seen.early += found
        return False

    def _commits(self) -> int:
        depth = self._client.depths().get(GATES)
        return 0 if depth is None else depth.completed


class Killing(Thread):
    """Kills the executor of the part that stops, once tasks of it are stored."""

    def __init__(self, client: Client, queue: str, place: Path) -> None:
        super().__init__(daemon=True)
        self.pipe = place / f"{queue}.pipe"
        self.killed: int | None = None
        self._client = client
        self._queue = queue
        os.mkfifo(self.pipe)
        self._said = os.open(self.pipe, os.O_RDWR)  # never waits for the other side
        self._is_over = Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self.join()
        os.close(self._said)

    def run(self) -> None:
        """Wait for its word."""
        while not select([self._said], [], [], 0.5)[0]:
            if self._is_over.is_set():
                return
        inner = psutil.Process(int(os.read(self._said, 20)))
        executor = next(each for each in inner.parents() if "java" in each.name())
        while not self._has_stored() and not self._is_over.is_set():
            time.sleep(0.1)
        executor.kill()
        self.killed = executor.pid

    def _has_stored(self) -> bool:
        depth = self._client.depths().get(self._queue)
        return depth is not None and depth.blocked > 0
