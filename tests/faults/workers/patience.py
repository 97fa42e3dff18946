"""How long a thread was ready to run and another one ran: what a busy machine adds to any time.

The kernel counts it for each thread (``/proc/PID/task/TID/schedstat``, second number, nanoseconds).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

Delays = dict[tuple[int, int], int]
"""By process and thread, in nanoseconds."""


def delays(processes: Iterable[int]) -> Delays:
    """Of all threads of these processes; of those that ended there is nothing."""
    found: Delays = {}
    for process in processes:
        try:
            threads = os.listdir(f"/proc/{process}/task")
        except OSError:
            continue
        for thread in threads:
            try:
                told = Path(f"/proc/{process}/task/{thread}/schedstat").read_text().split()
            except OSError:
                continue
            found[process, int(thread)] = int(told[1])
    return found


class Waiting:
    """What was looked at, again and again, of a chain of processes that each had to act after the other."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, Delays]] = []

    def look(self, now: float, processes: Iterable[int]) -> None:
        """Remember how it is now."""
        self._seen.append((now, delays(processes)))

    def most_s(self, since: float, until: float) -> float:
        """For how long the chain was kept waiting in between: of each process the thread that waited longest,
        summed. No more than an estimate: threads that nothing depends on count as well."""
        before = [seen for at, seen in self._seen if at <= since] or [seen for _, seen in self._seen[:1]]
        within = [seen for at, seen in self._seen if since < at] or [{}]
        after = [seen for at, seen in self._seen if since < at <= until + LOOK_S] or within[:1]
        if not before:
            return 0.0
        most: dict[int, int] = {}
        for seen in after:
            for (process, thread), delay in seen.items():
                waited = delay - before[-1].get((process, thread), 0 if before[-1] else delay)
                most[process] = max(most.get(process, 0), waited)
        within_s = max(0.0, until - since)
        return sum(min(within_s, waited / 1e9) for waited in most.values())


LOOK_S = 0.1


def load() -> str:
    """How many want to run, on the average of a minute."""
    return Path("/proc/loadavg").read_text().split()[0]
