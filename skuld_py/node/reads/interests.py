"""Which coordinators want to hear that a task has changed: the keeper's side of waiting.

A coordinator that waits leaves word, once for each task. The first change of any record of the task is told after
its commit, and the word is used up. A coordinator that wants to hear of the next change reads, and leaves word by
the same question, so no change between the two goes unheard. Word costs only time when it is lost, when there is
too much of it, or when its node is no keeper any more: coordinators look again by themselves (``reads.ends``).

While no word is left, a change costs one look at an empty dict (``merkle.Watch``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from skuld_py.model.messages import Stirred
from skuld_py.node.operations.duty import NEVER_MS, Duty
from skuld_py.node.operations.outbox import Outbox
from skuld_py.partition.data.replica import Replica

TASKS_MAX = 10_000
KEPT_MS = 15_000
"""Word is forgotten after this; a coordinator that still waits has looked again and left it anew."""

Watcher = tuple[str, int]
"""A peer, and the number of its operation."""


class Interests(Duty):
    """The word left at one node, by task. Its replicas put tasks that changed into ``stirred``."""

    due_ms = NEVER_MS

    def __init__(self, outbox: Outbox, replicas: Iterable[Replica] = ()) -> None:
        self._outbox = outbox
        self.watchers: dict[bytes, dict[Watcher, int]] = {}
        self.stirred: dict[bytes, None] = {}
        self.news = self.stirred,
        self._ends: deque[tuple[int, bytes, Watcher]] = deque()
        for replica in replicas:
            replica.watch.watched, replica.watch.stirred = self.watchers, self.stirred

    def add(self, now_ms: int, watcher: Watcher, task_ids: Iterable[bytes]) -> None:
        """Take word about tasks."""
        self._forget(now_ms)
        for task_id in task_ids:
            if task_id in self.watchers or len(self.watchers) < TASKS_MAX:
                self.watchers.setdefault(task_id, {})[watcher] = now_ms + KEPT_MS
                self._ends.append((now_ms + KEPT_MS, task_id, watcher))

    def look(self, now_ms: int) -> None:
        """Tell the watchers of stirred tasks; this node may be one, and stir other tasks when it is told."""
        while self.stirred:
            for (peer, number), task_ids in self.take().items():
                self._outbox.send(peer, Stirred(number, b"".join(task_ids)))
            self._outbox.drain(now_ms)

    def take(self) -> dict[Watcher, list[bytes]]:
        """The watchers to tell, each with its tasks; their word is used up."""
        told: dict[Watcher, list[bytes]] = {}
        for task_id in self.stirred:
            for watcher in self.watchers.pop(task_id, {}):
                told.setdefault(watcher, []).append(task_id)
        self.stirred.clear()
        return told

    def _forget(self, now_ms: int) -> None:
        while self._ends and self._ends[0][0] <= now_ms:
            end_ms, task_id, watcher = self._ends.popleft()
            known = self.watchers.get(task_id, {})
            if known.get(watcher) == end_ms:
                del known[watcher]
                if not known:
                    del self.watchers[task_id]
