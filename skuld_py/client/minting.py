"""Ids for the tasks of one client: rising, above what the cluster has acknowledged, from any thread.

Invariant: ids rise above every one that was acknowledged. A mint's time only rises, also by a wrong clock. So a
mint that is far ahead of the present and of all that was acknowledged is given up for a fresh one. That one has a
nonce of its own, since its time may meet that of the old one again. A little ahead is left alone: clocks are set
back by moments all the time, nodes take such ids, and those under way keep their order.

Ids that nodes refuse as of the future do not bind: neither what a node with a wrong clock acknowledged, nor a
floor that it told.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence

from skuld_py.model.ids import TIME_END, IdMint, TaskId, time_of

AHEAD_MS = 5_000
"""How far ahead a mint may be; nodes take ids that are, and some more for the skew bound."""
LEAPS_MAX = 8
"""Leaps of a clock that are remembered: what was acknowledged before a leap binds if what came after it does
not."""
FUTURE_ID = "future_id"
"""What nodes call ids of the future."""


class Minter:
    """A mint with the system's randomness, or that of a test that replays it."""

    def __init__(self, chance: random.Random | None = None) -> None:
        self._random = chance or random.SystemRandom()
        self._mint = self._begun()
        self._lock = threading.RLock()
        self._asked_ms = 0
        self._asked: dict[str, int] = {}
        self._acknowledged_ms = [0]
        """The latest acknowledged time; behind it, what that was before each of the last leaps."""
        self._future_ms = TIME_END
        """Ids of this time or later are taken by no node until then."""

    def _begun(self, floor_ms: int = 0) -> IdMint:
        return IdMint(self._random.getrandbits(32), floor_ms)

    def moment(self, name: str, now_ms: int) -> int:
        """When a unique name is asked for: now, but later than this client last asked for the name. So the first
        of its calls stands even if they come within a millisecond, or the clock stands still."""
        with self._lock:
            if now_ms != self._asked_ms:
                self._asked_ms, self._asked = now_ms, {}
            again = self._asked[name] = self._asked.get(name, -1) + 1
        return now_ms + again

    def mint(self, floor_ms: int, now_ms: int, count: int, lane: int | None = None) -> list[TaskId]:
        """Fresh ids, all of one partition; of a lane, if one is given."""
        with self._lock:
            if now_ms < self._future_ms <= floor_ms + 1:
                floor_ms = 0
            if self._mint.time_ms > max(floor_ms, now_ms, self._acknowledged_ms[0]) + AHEAD_MS:
                self._mint = self._begun(self._acknowledged_ms[0])
            self._mint.raise_floor(floor_ms)
            route = self._random.getrandbits(32) if lane is None else lane
            return list(map(TaskId, self._mint.mint(now_ms, count, route, lane is not None)))

    def note_acknowledged(self, made: Sequence[TaskId]) -> None:
        """These are stored: later ids are above them."""
        time_ms = time_of(max(made))
        with self._lock:
            if time_ms > self._acknowledged_ms[0] + AHEAD_MS:
                self._acknowledged_ms = [time_ms, *self._acknowledged_ms[:LEAPS_MAX]]
            else:
                self._acknowledged_ms[0] = max(self._acknowledged_ms[0], time_ms)

    def note_refused(self, made: Sequence[TaskId]) -> None:
        """One of these was refused as of the future: begin again at the clock's time."""
        with self._lock:
            self._future_ms = time_of(max(made))
            binding = [each for each in self._acknowledged_ms if each + 1 < self._future_ms]
            self._acknowledged_ms = binding or [0]
            self._mint = self._begun(self._acknowledged_ms[0])
