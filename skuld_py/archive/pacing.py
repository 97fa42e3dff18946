"""How fast a drain goes: at a rate that somebody gave, as fast as it can, or, where nobody says, so that it gives
way to what else the cluster does.

A drain is work in the background, and nodes that are busy to the full have no time for it that is not somebody
else's. What they do otherwise shows in what ends: each page tells how many tasks of its partition have ended, and
what is more than before, but for what the drain deleted, has come since.

    nothing ends, or hardly anything beside what the drain does  ->  it goes as fast as it can
    tasks end                                                    ->  it works for a quarter of the time,
                                                                     and rests for the others,
    but more ends than it deletes so                             ->  it rests only for as long as it keeps up

So it is always some 4 % faster than what ends, whatever that is, if it can be: a backlog does not grow, however
busy the nodes are, and becomes smaller. It has no need to be faster than that: a drain that worked for half of the
time left tasks beside it 0.6 of the rate that they had alone, and went 1.5 times as fast as they ended. What ends
is known when each partition has told twice, and between two runs some are asked minutes before others. Until then
it rests as if there was something. So that this takes seconds, those that have no page in a batch are asked for
the number alone (``asks``): at first, again as soon as that tells something, and then now and then, those that are
done for this run too, since tasks go on to end there. Of very many partitions ``SAMPLE`` are enough, and stand for
the others.

Where it only keeps up, it does not work for a moment and rest for another, but reads and deletes bit by bit, as
with a rate: what clients ask of the nodes stands in line behind a few pages then, not behind a batch.

Rejected: to go by how long nodes take to answer (one does not see why, the drain's own pages stand in the same
line, and a backlog would grow unasked); a share of the fastest it ever went (that says nothing once the machine
has more to do); to count what is enqueued or asked as well (a burst of new tasks comes from programs that are to
end some time, and then the drain sees it); to take a few partitions that told twice for all, as a rule (a client's
batch ends in one partition, so a few of them show nothing for seconds, and then much too much).

Pure: a clock's time is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from operator import attrgetter
from typing import Protocol

import attrs

WHOLE = 32
"""One of so many batches is not spread, and says how fast a drain could go. For as long as it takes clients get a
third of what they have alone."""
PACED_S = 2.0
"""Where it is spread, a batch has what this time allows, to a page: pages are not on offer for long."""
HELD_S = 5.0
"""So long at most what was read at once is deleted bit by bit: a third of the time after which leaders take an
archiver for silent."""
BURST_S = 0.25
"""With a rate, or where it just keeps up, so much of it is read, or deleted, at once, to a page. The rest of a
batch follows bit by bit: what clients ask of the nodes meanwhile has its turn between two bits, not behind a
batch."""
SPAN_S = 2.0
"""What ends in a partition is counted over so long at least; nodes with many queues count once a second."""
SHARE = 0.25
"""Of its time a drain works beside others."""
KEEP_UP = 1.04
"""How much faster than what ends it is at least."""
STALE_S = 10.0
"""A partition that has told nothing for as long is asked."""
SAMPLE = 64
"""Partitions that are asked for their number at a time; and so many are enough."""
HARDLY = 0.05
"""What ends does not count beside so many times what the drain deletes."""
REST_S_MAX = 5.0
"""A leader gives the pages of an archiver that is silent for longer to another one (``retention.sharing``); with a
low rate the rest behind a page is longer, and nothing is left unconfirmed over it."""


class Pace(Protocol):
    """Says how large a batch may be, and how long to rest behind it."""

    @property
    def ends(self) -> float | None:
        """How many tasks ended a second, when this looked last; None where that is not known."""

    def asks(self, now_s: float) -> Sequence[int]:
        """Partitions that are to tell how many have ended, whether there is a page of them or not."""

    def told(self, now_s: float, partition: int, ended: int) -> None:
        """A partition has so many tasks that have ended."""

    def went(self, partition: int, tasks: int) -> None:
        """So many of them were deleted."""

    def over(self, partition: int) -> None:
        """For now it tells nothing: it has no leader, or one that does not count; or others delete there, too."""

    def forget(self, partition: int) -> None:
        """Of what it told, more or less may be left than is known here; it is to tell anew."""

    def most(self, tasks: int) -> float:
        """How many tasks a batch has, of so many that fit."""

    def at_once(self, tasks: int) -> float:
        """How many tasks of a batch are read, or deleted, at once, of so many that may be."""

    def spread_s(self, tasks: int) -> float:
        """How long it takes at least to read so many, or to delete them."""

    def rests_until(self, begun_s: float, now_s: float, tasks: int) -> float:
        """When the next batch may be read; from ``begun_s`` to now there was work on one of so many tasks."""


class Full:
    """As fast as it goes, whoever else waits."""

    @property
    def ends(self) -> float | None:
        """Nobody looks."""
        return None

    def asks(self, now_s: float) -> Sequence[int]:
        """It makes no difference."""
        return ()

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

    def at_once(self, tasks: int) -> float:
        """All that may be."""
        return tasks

    def spread_s(self, tasks: int) -> float:
        """It does not matter."""
        return 0.0

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

    def at_once(self, tasks: int) -> float:
        """A small part of that."""
        return min(tasks, self._rate * BURST_S)

    def spread_s(self, tasks: int) -> float:
        """Half of the time that the rate gives them; they are read in the one half, and deleted in the other."""
        return tasks / self._rate / 2

    def rests_until(self, begun_s: float, now_s: float, tasks: int) -> float:
        """When the rate allows another batch."""
        self._free_s = max(self._free_s, begun_s) + tasks / self._rate
        return self._free_s


@attrs.define
class _Count:
    """Of a partition. ``left``: how many would have ended by now if none had come since then; ``rate``: how many
    ended a second before, None of one that told once."""

    partition: int
    since_s: float
    left: int
    rate: float | None = None


class Yielding(Full):
    """Gives way, and keeps up. One for all runs of an archiver: what came between two of them is known when the
    next one begins."""

    def __init__(self, partitions: int) -> None:
        self._telling = dict.fromkeys(range(partitions))
        """Partitions that tell, or are to."""
        self._counts: dict[int, _Count] = {}
        self._gone = 0
        self._since_s: float | None = None
        self._is_known = False
        self._now = self._last = 0.0
        """How many end a second, as far as that is known, and how many did a span before."""
        self._goes = 0.0
        self._speed = inf
        """How many a second it deletes while it works, by the newest batch that was not spread."""
        self._batches, self._is_spread = 0, False

    @property
    def ends(self) -> float | None:
        """How many end a second; None until enough have told twice."""
        return self._known if self._is_known else None

    @property
    def _known(self) -> float:
        """How many end a second in the partitions of which that is known: now or a span before, whichever is more,
        since users who pause are soon there again."""
        return max(self._now, self._last)

    def asks(self, now_s: float) -> Sequence[int]:
        """First those of which one more word says how many end; then those that told nothing yet; then those that
        told long ago."""
        counts = sorted(self._counts.values(), key=attrgetter("since_s"))
        once = [each.partition for each in counts if each.rate is None and now_s - each.since_s >= SPAN_S]
        never = [partition for partition in self._telling if partition not in self._counts]
        stale = [each.partition for each in counts if each.rate is not None and now_s - each.since_s >= STALE_S]
        return [*once, *never, *stale][:SAMPLE]

    def told(self, now_s: float, partition: int, ended: int) -> None:
        """What is more than was left has come."""
        self._telling[partition] = None
        count = self._counts.get(partition)
        if count is None:
            self._counts[partition] = _Count(partition, now_s, ended)
        elif (span_s := now_s - count.since_s) >= SPAN_S:
            self._counts[partition] = _Count(partition, now_s, ended, (ended - count.left) / span_s)
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
        """Until it tells again, it is as if there was no such partition."""
        self._telling.pop(partition, None)
        self.forget(partition)

    def forget(self, partition: int) -> None:
        """As if it had told nothing."""
        self._counts.pop(partition, None)
        self._add_up()

    def most(self, tasks: int) -> float:
        """Where it is spread, what is due before leaders take it for silent."""
        return min(tasks, self._spread * PACED_S) if self._spread else tasks

    def at_once(self, tasks: int) -> float:
        """Where it is spread, what is due in a moment."""
        return min(tasks, self._spread * BURST_S) if self._spread else tasks

    def spread_s(self, tasks: int) -> float:
        """Where it has to work for more than its share of the time, the half of the time that they have. What was
        read at once, and is deleted behind that, has ``HELD_S``: less may end by now."""
        if not self._spread:
            return 0.0
        self._is_spread = True
        return min(HELD_S, tasks / self._spread / 2)

    @property
    def _spread(self) -> float:
        """At which rate it is spread so that it just keeps up; 0 where it has its share of the time, or all."""
        rate = KEEP_UP * self._known
        is_due = self._batches % WHOLE and rate > SHARE * self._speed and not self._is_alone
        return rate if is_due else 0.0

    @property
    def _is_alone(self) -> bool:
        return self.ends is not None and self.ends <= HARDLY * self._goes

    def rests_until(self, begun_s: float, now_s: float, tasks: int) -> float:
        """Behind a batch for as long as it took, unless that would be too slow, or nothing else is done."""
        if tasks and not self._is_spread:
            self._speed = tasks / max(1e-3, now_s - begun_s)
        self._batches, self._is_spread = self._batches + 1, False
        if not tasks or self._is_alone:
            return now_s
        rest_s = min(REST_S_MAX, (now_s - begun_s) * (1 / SHARE - 1))
        if not self._known:
            return now_s + rest_s
        return min(now_s + rest_s, begun_s + tasks / (KEEP_UP * self._known))

    def _add_up(self) -> None:
        rates = [count.rate for count in self._counts.values() if count.rate is not None]
        self._is_known = bool(rates) and len(rates) >= min(SAMPLE, len(self._telling))
        others = len(self._telling) / len(rates) if self._is_known else 1
        self._now = max(0.0, sum(rates) * others)
