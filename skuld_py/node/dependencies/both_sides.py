"""The two sides of dependencies on one node: the questions that it asks, and the ends that it tells.

Each turn looks at the partitions that it touched, and at what is due; new leaderships are noticed every
``watch_ms``.
"""

from __future__ import annotations

from typing import ClassVar

from skuld_py.model import messages as m
from skuld_py.node.dependencies.dependency_side import DependencySide, lead_tell, lead_watch
from skuld_py.node.dependencies.dependent_side import DependentSide
from skuld_py.node.operations.duty import Duty
from skuld_py.node.operations.operation import Operations
from skuld_py.node.operations.requests import Asked, Served, led


class Dependencies(Duty):
    """The duties of one node towards tasks that wait for others."""

    asked: ClassVar[Asked] = {}

    def __init__(self, operations: Operations) -> None:
        self.served: Served = {m.Watch: led(operations, lead_watch), m.Tell: led(operations, lead_tell)}
        self._view = operations.view
        self._outbox = operations.outbox
        self._dependent_side = DependentSide(operations, self.hasten)
        self._dependency_side = DependencySide(operations)
        self._next_ms = 0
        self._led: dict[int, int] = {}
        """Epoch of each partition led."""
        self._changed = operations.view.bulletin.subscribe()
        self._rights = operations.view.bulletin.subscribe_to_rights()
        self._to_follow: dict[int, None] = {}
        """Partitions whose leadership may have changed since it was looked at."""
        self._could = False
        self.news = operations.view.bulletin.stirred, self._changed, self._rights

    def look(self, now_ms: int) -> None:
        """Ask and tell what is due, and go on with what follows on this node: a failure may kill a whole chain."""
        self._to_follow |= self._changed
        self._changed.clear()
        self._rights.clear()
        if self._is_news and now_ms >= self._next_ms:
            self._next_ms = now_ms + self._view.timing.watch_ms
            self._follow(now_ms)
        while self._hear(now_ms) | self._look(now_ms):
            self._outbox.drain(now_ms)
        self.due_ms = min(self._dependent_side.due_ms, self._dependency_side.due_ms)
        if self._is_news:
            self.hasten(self._next_ms)

    @property
    def _is_news(self) -> bool:
        return bool(self._to_follow) or self._could != self._view.may_grant

    def _look(self, now_ms: int) -> bool:
        dependent_side, dependency_side = self._dependent_side, self._dependency_side
        has_asked = now_ms >= dependent_side.due_ms and dependent_side.look(now_ms)
        return (now_ms >= dependency_side.due_ms and dependency_side.look(now_ms)) or has_asked

    def _follow(self, now_ms: int) -> None:
        could, self._could = self._could, self._view.may_grant
        changed = sorted(self._to_follow) if could == self._could else range(len(self._view.vnodes))
        self._to_follow.clear()
        for partition in changed:
            vnode, known = self._view.vnodes[partition], self._led.get(partition)
            if vnode.is_leading and self._could:
                if vnode.epoch != known:
                    self._led[partition] = vnode.epoch
                    self._dependent_side.begin(now_ms, partition)
                    self._dependency_side.begin(now_ms, partition)
            elif known is not None:
                del self._led[partition]
                self._dependent_side.leave(partition)
                self._dependency_side.leave(partition)

    def _hear(self, now_ms: int) -> bool:
        has_asked = False
        stirred = self._view.bulletin.stirred
        for partition in [*stirred]:
            vnode = self._view.vnodes[partition]
            waiting = vnode.replica.filing.waiting
            if partition in self._led and vnode.is_leading:
                if waiting.is_overfull:
                    self._dependent_side.begin(now_ms, partition)
                if waiting.has_news:
                    self._dependency_side.begin(now_ms, partition)
                has_asked = self._dependent_side.hear(now_ms, vnode, list(waiting.fresh)) or has_asked
            waiting.fresh, waiting.is_overfull, waiting.has_news = {}, False, False
            stirred.pop(partition, None)
        return has_asked
