"""How fast a drain goes: at a rate that somebody gave, as fast as it can, or, where nobody says, so that it gives
way to what else the cluster does.

A drain is work in the background, and nodes that are busy to the full have no time for it that is not somebody
else's. What they do otherwise shows in what ends: each page tells how many tasks of its partition have ended, and
what is more than before, but for what the drain deleted, has come since.

    nothing ends, or hardly anything beside what the drain does  ->  it goes as fast as it can
    tasks end                                                    ->  it works for half of the time,
                                                                     and rests for the other half,
    but more ends than it deletes so                             ->  it rests only for as long as it keeps up

So it is always a twentieth faster than what ends, whatever that is, if it can be: a backlog does not grow, however
busy the nodes are, and becomes smaller. What ends is known when each partition that is asked has told twice: a
batch may have pages of a few of them only, and between two runs some are asked minutes before others. Until then
it rests as if there was something.

Rejected: to go by how long nodes take to answer (one does not see why, the drain's own pages stand in the same
line, and a backlog would grow unasked); a share of the fastest it ever went (that says nothing once the machine
has more to do); to count what is enqueued or asked as well (a burst of new tasks comes from programs that are to
end some time, and then the drain sees it).

Pure: a clock's time is given.
"""

from __future__ import annotations

from typing import Protocol

import attrs

PACED_S = 2.0
"""With a rate, a batch has what this time allows, to a page: pages are not on offer for long, and nodes see no
bursts."""
SPAN_S = 2.0
"""What ends in a partition is counted over so long at least; nodes with many queues count once a second."""
SHARE = 0.5
"""Of its time a drain works beside others."""
KEEP_UP = 1.05
"""How much faster than what ends it is at least."""
HARDLY = 0.05
"""What ends does not count beside so many times what the drain deletes."""
REST_S_MAX = 5.0
"""A leader gives the pages of an archiver that is silent for longer to another one (``retention.sharing``); with a
low rate the rest behind a page is longer, and nothing is left unconfirmed over it."""


class Pace(Protocol):
    """Says how large a batch may be, and how long to rest behind it."""

    ends: float | None
    """How many tasks ended a second, when this looked last; None where that is not known."""

    def told(self, now_s: float, partition: int, ended: int) -> None:
        """A partition has so many tasks that have ended."""

    def went(self, partition: int, tasks: int) -> None:
        """So many of them were deleted."""

    def over(self, partition: int) -> None:
        """For now it tells no more."""

    def forget(self, partition: int) -> None:
        """Of what it told, more or less may be left than is known here."""

    def most(self, tasks: int) -> float:
        """How many tasks a batch has, of so many that fit."""

    def rests_until(self, begun_s: float, now_s: float, tasks: int) -> float:
        """When the next batch may be read; from ``begun_s`` to now there was work on one of so many tasks."""


class Full:
    """As fast as it goes, whoever else waits."""

    ends: float | None = None

    def told(self, now_s: float, partition: int, ended: int) -> None:
        """It makes no difference."""

    def went(self, partition: int, tasks: int) -> None:
        """It makes no difference."""

    def over(self, partition: int) -> None:
        """It makes no difference."""

    def forget(self, partition: int) -> None:
        """It makes no difference."""

    def most(self, tasks: int) -> float:
        """All that fit."""
        return tasks

    def rests_until(self, begun_s: float, now_s: float, tasks: int) -> float:
        """Now."""
        return now_s


class AtMost(Full):
    """So many tasks a second, to a page; more than ends or less."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._free_s = 0.0

    def most(self, tasks: int) -> float:
        """What the rate allows for a moment."""
        return min(tasks, self._rate * PACED_S)

    def rests_until(self, begun_s: float, now_s: float, tasks: int) -> float:
        """When the rate allows another batch."""
        self._free_s = max(self._free_s, begun_s) + tasks / self._rate
        return self._free_s


@attrs.define
class _Count:
    """``left``: how many would have ended by now if none had come since then; ``rate``: how many ended a second
    before, None of one that told once."""

    since_s: float
    left: int
    rate: float | None = None


class Yielding(Full):
    """Gives way, and keeps up. One for all runs of an archiver: what came between two of them is known when the
    next one begins."""

    def __init__(self) -> None:
        self.ends: float | None = None
        self._counts: dict[int, _Count] = {}
        self._awaited: set[int] = set()
        """Partitions that told once, and will tell again."""
        self._gone = 0
        self._since_s: float | None = None
        self._now = self._last = 0.0
        """How many end a second in the partitions of which that is known, and how many did a span before."""
        self._goes = 0.0

    def told(self, now_s: float, partition: int, ended: int) -> None:
        """What is more than was left has come."""
        count = self._counts.get(partition)
        if count is None:
            self._counts[partition] = _Count(now_s, ended)
            self._awaited.add(partition)
        elif (span_s := now_s - count.since_s) >= SPAN_S:
            self._counts[partition] = _Count(now_s, ended, (ended - count.left) / span_s)
            self._awaited.discard(partition)
        if self._since_s is None:
            self._since_s = now_s
        if (span_s := now_s - self._since_s) >= SPAN_S:
            self._last, self._goes = self._now, self._gone / span_s
            self._gone, self._since_s = 0, now_s
        self._add_up()

    def went(self, partition: int, tasks: int) -> None:
        """So many fewer are left."""
        self._gone += tasks
        if partition in self._counts:
            self._counts[partition].left -= tasks

    def over(self, partition: int) -> None:
        """Nothing is known of it but what it told twice."""
        self._awaited.discard(partition)

    def forget(self, partition: int) -> None:
        """As if it had told nothing."""
        self._counts.pop(partition, None)
        self._awaited.discard(partition)
        self._add_up()

    def rests_until(self, begun_s: float, now_s: float, tasks: int) -> float:
        """Behind a batch for as long as it took, unless that would be too slow, or nothing else is done."""
        if not tasks or (self.ends is not None and self.ends <= HARDLY * self._goes):
            return now_s
        rest_s = min(REST_S_MAX, (now_s - begun_s) * (1 / SHARE - 1))
        if not (ends := max(self._now, self._last)):
            return now_s + rest_s
        return min(now_s + rest_s, begun_s + tasks / (KEEP_UP * ends))

    def _add_up(self) -> None:
        rates = [count.rate for count in self._counts.values() if count.rate is not None]
        self._now = max(0.0, sum(rates))
        self.ends = max(self._now, self._last) if rates and not self._awaited else None
