"""Who waits for the horizon of a led partition to move, which takes a write to ZooKeeper.

Each request waits once, however often it is asked again while ZooKeeper is away, and for no longer than its own
deadline. Of a grant that gave up, its queue is kept: once the horizon has moved, other claims may be served.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from skuld_py.node.operations.operation import Origin, Waiter


class Horizons:
    """The waiters, by what they were asked."""

    def __init__(self, note_leftover: Callable[[str], None]) -> None:
        self._note_leftover = note_leftover
        self._waiters: dict[Origin, Waiter] = {}
        self._given_up: dict[str, None] = {}

    def add(self, waiter: Waiter) -> None:
        """It is called when a document was written, or read."""
        self._waiters[waiter.origin] = waiter
        waiter.at_end.append(partial(self._drop, waiter))

    def awaits(self, origin: Origin) -> bool:
        """Whether what was asked waits already."""
        return origin in self._waiters

    def _drop(self, waiter: Waiter) -> None:
        """It has ended, perhaps while it waited."""
        if self._waiters.get(waiter.origin) is waiter:
            del self._waiters[waiter.origin]

    def give_up(self, queue: str) -> None:
        """A grant ended before the horizon of its partition moved."""
        self._given_up[queue] = None

    def wake(self, now_ms: int) -> None:
        """The documents have changed, or may have."""
        waiters, self._waiters = self._waiters, {}
        given_up, self._given_up = self._given_up, {}
        for waiter in waiters.values():
            if not waiter.is_closed:
                waiter.on_horizon(now_ms)
        for queue in given_up:
            self._note_leftover(queue)
