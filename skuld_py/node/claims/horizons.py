"""Grants and renewals that wait for the horizon of a led partition to move, which takes a write to ZooKeeper.

Each request waits once, however often it is asked again while ZooKeeper is away, and for no longer than its own
deadline. The queue of a grant that gave up is kept: once the horizon has moved, other claims of it may be served.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from skuld_py.node.knowledge.view import View
from skuld_py.node.operations.outbox import Origin
from skuld_py.partition.vnode import Vnode


class Waiter(Protocol):
    """An operation that waits for a horizon to move."""

    origin: Origin
    request: int
    is_closed: bool
    at_end: list[Callable[[], None]]

    def on_horizon(self, now_ms: int) -> None:
        """Look at the horizon again: a document was written, or read."""


class Horizons:
    """The waiters, by what they were asked. ``tend`` has the document of a led partition written."""

    def __init__(self, view: View, tend: Callable[[int, Vnode], None],
                 note_leftover: Callable[[str], None]) -> None:
        self._view = view
        self._tend = tend
        self._note_leftover = note_leftover
        self._waiters: dict[Origin, Waiter] = {}
        self._given_up: dict[str, None] = {}

    def add(self, now_ms: int, waiter: Waiter) -> None:
        """Have the horizons moved to where leases need them; the waiter is called when a document was written or
        read."""
        self._waiters[waiter.origin] = waiter
        waiter.at_end.append(partial(self._drop, waiter))
        for vnode in self._view.led():
            if vnode.wanted_horizon_ms > vnode.election.document.horizon_ms:
                self._tend(now_ms, vnode)

    def awaits(self, origin: Origin) -> bool:
        """Whether this request waits already."""
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
