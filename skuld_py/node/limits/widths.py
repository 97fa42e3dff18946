"""Applies a change of the limit on claims of an ordering key that are held at once: tasks of the queue come to
wait, or to be claimed, in all partitions."""

from __future__ import annotations

from skuld_py.node.knowledge.view import View
from skuld_py.node.operations.duty import NEVER_MS, Duty


class Widths(Duty):
    """The widths of one node's lanes."""

    due_ms = NEVER_MS

    def __init__(self, view: View) -> None:
        self._view = view
        self._changed = view.bulletin.rewidened
        self.news = self._changed,

    def look(self, now_ms: int) -> None:
        """File the tasks of queues whose limit changed anew."""
        for queue in self._changed:
            for vnode in self._view.vnodes:
                vnode.replica.filing.widen(queue, self._view.settings.key_concurrency(queue))
        self._changed.clear()
