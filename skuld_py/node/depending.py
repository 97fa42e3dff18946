"""The two sides of dependencies on one node: what it asks (``watching``), and what it tells (``telling``).

Each turn looks at the partitions that it touched, and at what is due; new leaderships are noticed every
``watch_ms``.
"""

from __future__ import annotations

from collections.abc import Callable

from skuld_py.node.household import Household
from skuld_py.node.telling import Telling
from skuld_py.node.watching import Watching
from skuld_py.partition.vnode import Vnode


class Depending:
    """Its duties towards tasks that wait for others."""

    def __init__(self, node: Household) -> None:
        self._node = node
        self._watching = Watching(node)
        self._telling = Telling(node)
        self._next_ms = 0
        self._led: dict[int, int] = {}
        """Epoch of each partition led."""
        self._here: list[Vnode] = []
        """Those partitions, as the node gave them: the same list until one changes."""

    def deadline(self) -> int:
        """When it next has something to do."""
        return min(self._watching.deadline(), self._telling.deadline())

    def look(self, now_ms: int, drain: Callable[[int], None]) -> None:
        """Ask and tell what is due; and what that leads to on this node: a failure may kill a whole chain."""
        if now_ms >= self._next_ms:
            self._next_ms = now_ms + self._node.timing.watch_ms
            self._follow(now_ms)
        while self._hear(now_ms) | self._watching.look(now_ms) | self._telling.look(now_ms):
            drain(now_ms)

    def _follow(self, now_ms: int) -> None:
        here = self._node.led()
        if here is self._here:
            return
        self._here = here
        led = {vnode.partition: vnode.epoch for vnode in here}
        for partition in [partition for partition in self._led if partition not in led]:
            self._watching.leave(partition)
            self._telling.leave(partition)
        for partition, epoch in led.items():
            if self._led.get(partition) != epoch:
                self._watching.begin(now_ms, partition)
                self._telling.begin(now_ms, partition)
        self._led = led

    def _hear(self, now_ms: int) -> bool:
        has_asked = False
        for partition in self._node.bulletin.touched:
            vnode = self._node.vnodes[partition]
            waiting = vnode.replica.filing.waiting
            if not waiting.is_stirred:
                continue
            if partition in self._led and vnode.is_leading:
                if waiting.is_overfull:
                    self._watching.begin(now_ms, partition)
                if waiting.has_news:
                    self._telling.begin(now_ms, partition)
                has_asked = self._watching.hear(now_ms, vnode, list(waiting.fresh)) or has_asked
            waiting.fresh, waiting.is_overfull, waiting.has_news = {}, False, False
        return has_asked
