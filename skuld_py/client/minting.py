"""Ids for the tasks of one client: rising, above what the cluster has seen, from any thread."""

from __future__ import annotations

import random
import threading
import time

from skuld_py.model.ids import IdMint, TaskId


def wall_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Minter:
    """A mint with the system's time and randomness."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()
        self._mint = IdMint(self._random.getrandbits(32))
        self._lock = threading.Lock()
        self._asked_ms = 0
        self._asked: dict[str, int] = {}

    def moment(self, name: str, now_ms: int) -> int:
        """When a unique name is asked for: now, and later than this client has asked for the same just now. So the
        first of its calls stands even where they come within a millisecond, or its clock stands still."""
        with self._lock:
            if now_ms != self._asked_ms:
                self._asked_ms, self._asked = now_ms, {}
            again = self._asked[name] = self._asked.get(name, -1) + 1
        return now_ms + again

    def mint(self, floor_ms: int, now_ms: int, count: int, lane: int | None = None) -> list[TaskId]:
        """Fresh ids, all of one partition; of a lane, if one is given."""
        with self._lock:
            self._mint.raise_floor(floor_ms)
            route = self._random.getrandbits(32) if lane is None else lane
            return list(map(TaskId, self._mint.mint(now_ms, count, route, lane is not None)))
