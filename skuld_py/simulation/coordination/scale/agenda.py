"""Virtual time in fractions of a millisecond, and queues with one server in it.

Of the two queues that make up ZooKeeper each serves one request at a time, in the order of arrival. What a request
costs is asked when its turn comes: a reader reads what stands in the log then, not what stood there when it asked.

The scheduler of the data plane counts whole milliseconds and shuffles ties; here a write takes a twentieth of one,
and ties go in the order of planning.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush

Action = Callable[..., None]


class Agenda:
    """Runs planned actions in the order of their time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.actions = 0
        self._heap: list[tuple[float, int, Action, tuple[object, ...]]] = []
        self._planned = 0

    def at(self, time: float, action: Action, *arguments: object) -> None:
        """Plan an action; a time that has passed means now."""
        self._planned += 1
        heappush(self._heap, (max(time, self.now), self._planned, action, arguments))

    def after(self, delay: float, action: Action, *arguments: object) -> None:
        """Plan an action some time from now."""
        self.at(self.now + delay, action, *arguments)

    def run(self, is_enough: Callable[[], bool] = lambda: False) -> bool:
        """Run what is planned until nothing is, or it is enough; whether nothing is left."""
        heap = self._heap
        while heap:
            if is_enough():
                return False
            self.now, _, action, arguments = heappop(heap)
            self.actions += 1
            action(*arguments)
        return True


class Queue:
    """One server; ``longest`` is the longest wait so far."""

    def __init__(self, agenda: Agenda) -> None:
        self.longest = 0.0
        self._agenda = agenda
        self._waiting: deque[tuple[float, Callable[[], float], Action, tuple[object, ...]]] = deque()
        self._is_busy = False

    def submit(self, delay: float, cost: Callable[[], float], done: Action, *arguments: object) -> None:
        """A request that arrives after a delay; ``done`` when it is served."""
        self._agenda.after(delay, self._arrive, cost, done, arguments)

    def _arrive(self, cost: Callable[[], float], done: Action, arguments: tuple[object, ...]) -> None:
        self._waiting.append((self._agenda.now, cost, done, arguments))
        if not self._is_busy:
            self._serve()

    def _serve(self) -> None:
        self._is_busy = bool(self._waiting)
        if self._is_busy:
            since, cost, done, arguments = self._waiting.popleft()
            self.longest = max(self.longest, self._agenda.now - since)
            self._agenda.after(cost(), self._served, done, arguments)

    def _served(self, done: Action, arguments: tuple[object, ...]) -> None:
        done(*arguments)
        self._serve()
