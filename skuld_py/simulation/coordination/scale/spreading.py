"""Entries shared among thousands at once: how many members an entry has reached after each hop is drawn, not
which.

Each member that an entry is new to hands it on to some members chosen at random. So of those that lack it each is
hit by a hop with the same probability, and the number hit is binomial. Only for those that an entry concerns, and
for those that it misses, it matters which members they are: they are drawn from the same numbers. A member that
was missed is held up at that entry until it reads it from ZooKeeper: soon when later entries show the gap, else
after a silence.

Source of the parameters and the rules: ``cluster/scale/epidemic.py``. Counted is one message for each entry and
member it is sent to, though entries that are on the way together share one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log
from random import Random

from skuld_py.config.scaling import Scaling
from skuld_py.simulation.coordination.scale.agenda import Agenda
from skuld_py.simulation.coordination.scale.costs import Costs, Counts
from skuld_py.simulation.coordination.scale.deciding import Decisions
from skuld_py.simulation.coordination.scale.ensemble import Ensemble
from skuld_py.simulation.coordination.scale.log import Log, News
from skuld_py.simulation.coordination.scale.process import Process

Act = Callable[[Process, list[News]], None]


def binomial(rng: Random, count: int, chance: float) -> int:
    """How many of a number of trials succeed; drawn as normal where many do and many do not."""
    if count <= 0 or chance <= 0.0:
        return 0
    if chance > 0.5:
        return count - binomial(rng, count, 1.0 - chance)
    mean = count * chance
    if mean > 30:
        return min(count, max(0, round(rng.gauss(mean, (mean * (1 - chance)) ** 0.5))))
    found, at = -1, 0
    while at <= count:
        found += 1
        at += 1 + int(log(1.0 - rng.random()) / log(1.0 - chance))
    return found


def reached(rng: Random, members: int, alive: int, fan_out: int, hops: int) -> list[int]:
    """How many of the living have an entry after 0, 1, 2 ... hops; ``members`` are hit alike, dead or alive."""
    counts = [1]
    fresh = 1
    while fresh and len(counts) <= hops and members > 1:
        missed = (1.0 - 1.0 / (members - 1)) ** (fresh * fan_out)
        fresh = binomial(rng, alive - counts[-1], 1.0 - missed)
        counts.append(counts[-1] + fresh)
    return counts


class Spreading:
    """All that get their entries from other members."""

    def __init__(self, agenda: Agenda, costs: Costs, scaling: Scaling, counts: Counts, ensemble: Ensemble,
                 log: Log, decisions: Decisions, act: Act, rng: Random) -> None:
        self._agenda, self._costs, self._scaling, self._counts = agenda, costs, scaling, counts
        self._ensemble, self._log, self._decisions, self._act, self._rng = ensemble, log, decisions, act, rng
        self._followers: dict[str, Process] = {}
        self._names: list[str] = []
        self._missing: dict[str, list[News]] = {}
        """What those wait with that lack an entry."""
        self._gaps: dict[str, None] = {}
        """Those of them that have seen later entries."""
        self._heard = 0.0
        self.dead = 0
        """Members that have died and not left; those that still wait for their replica hand entries on, too."""
        self._busy_until = 0.0
        """Until then all members work on the same entries."""

    def begin(self, process: Process, pending: Sequence[News]) -> None:
        """A member gets its entries here from now on; those ``pending`` it reads from ZooKeeper."""
        process.shares = True
        self._followers[process.id] = process
        self._names.append(process.id)
        if pending:
            self._lack(process, self._scaling.gap_ms)
            self._missing[process.id] += pending
            self._gaps[process.id] = None

    def leave(self, process: Process) -> None:
        """A member has died."""
        process.shares = False
        if self._followers.pop(process.id, None):
            self._names = [*self._followers]
            self._missing.pop(process.id, None)
            self._gaps.pop(process.id, None)

    def appended(self, news: News, writer: str, actors: Sequence[Process]) -> None:
        """An entry was committed; ``actors`` are those here that it concerns."""
        alive, costs, scaling = len(self._followers), self._costs, self._scaling
        if not alive:
            return
        self.look_around()
        members = len(self._log.replica.members)
        living = max(alive, members - self.dead)
        counts = reached(self._rng, members, living, scaling.fanout, scaling.rounds)
        sent = scaling.fanout * (counts[-1] if len(counts) <= scaling.rounds else counts[-2])
        self._counts.messages += sent
        self._counts.member_bytes += sent * (costs.message_bytes + news.size)
        hop = (scaling.gather_ms + costs.one_way_ms + costs.message_ms
               + scaling.fanout * news.size * costs.member_byte_ms)
        work = costs.play_ms + costs.play_ms_per_member * members
        work += 2 * scaling.fanout * costs.message_ms
        self._busy_until = max(self._busy_until, self._agenda.now) + work
        first = costs.one_way_ms + self._busy_until - self._agenda.now
        usual = first + hop * next(at for at, count in enumerate(counts) if 2 * count >= counts[-1])
        held_up = self._decisions.follow(alive, usual, news.position if news.is_moving else -1)
        held_up -= self._agenda.now + usual
        for name in [name for name in self._missing if name not in self._gaps]:
            self._gaps[name] = None
            self._lack(self._followers[name], usual + scaling.gap_ms)
        for name in self._rng.sample(self._names, binomial(self._rng, alive, 1.0 - counts[-1] / living)):
            if name != writer:
                self._lack(self._followers[name], scaling.silence_ms)
        for process in actors:
            at = 0 if process.id == writer else self._hop(counts)
            process.heard_at = max(process.heard_at, self._agenda.now + first + at * hop + held_up)
            self._agenda.at(process.heard_at, self._arrive, process, news)

    def _hop(self, counts: list[int]) -> int:
        drawn = self._rng.randrange(counts[-1])
        return next(at for at, count in enumerate(counts) if drawn < count)

    def _arrive(self, process: Process, news: News) -> None:
        if process.id in self._missing:
            self._missing[process.id].append(news)
        else:
            self._act(process, [news])

    def _lack(self, process: Process, wait: float) -> None:
        """A member lacks an entry; it reads it after waiting."""
        self._missing.setdefault(process.id, [])
        self._agenda.after(wait * (1 + self._rng.random() / 2), self._fetch, process)

    def _fetch(self, process: Process) -> None:
        if process.id in self._missing:
            size = self._log.size(max(0, self._log.end - 1), self._log.end)
            self._ensemble.read(2, size, self._fill, process)

    def _fill(self, process: Process) -> None:
        news = self._missing.pop(process.id, None)
        self._gaps.pop(process.id, None)
        if news and process.is_alive:
            self._act(process, sorted(news, key=lambda each: each.position))

    def look_around(self) -> None:
        """After each silence all have looked into the log; called when it ends."""
        silences = int((self._agenda.now - self._heard) / (1.25 * self._scaling.silence_ms))
        self._heard = self._agenda.now
        if silences:
            self._counts.reads += silences * len(self._followers)
            self._counts.zookeeper_bytes += silences * len(self._followers) * self._costs.reply_bytes

    def is_caught_up(self) -> bool:
        """Whether no member lacks an entry."""
        return not self._missing
