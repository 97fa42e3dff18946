"""The coordination plane of one simulated cluster: processes that live, die and start, and the log between them.

Here the parts meet. A write is committed, played once, and the processes that it concerns hear of it where they
read (``cohorts``, ``spreading``); they react as the replica's commands say, and watch the pulses that ``watched``
names. Nothing is planned without end, so a cluster at rest is one with an empty agenda; what must hold then is in
``verdict``.

Simplified, besides what ``costs`` says: a process reads again of what it wrote itself no sooner than of the rest,
and drops no command that has lost its meaning, so that some entries change nothing (those are counted, too).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import pairwise

from skuld_py.cluster.log.commands import Command, Gc, JoinDirect, Joining, Leave, PrepareJoin, Rejoin
from skuld_py.cluster.log.commands.gc import collected
from skuld_py.cluster.member.join import owed
from skuld_py.cluster.member.settings import LogSettings
from skuld_py.cluster.member.watched import watched
from skuld_py.config.scaling import Scaling
from skuld_py.model.document import Member
from skuld_py.simulation.coordination.scale.agenda import Agenda
from skuld_py.simulation.coordination.scale.cohorts import COHORTS, Cohorts
from skuld_py.simulation.coordination.scale.concerned import Standby
from skuld_py.simulation.coordination.scale.costs import Costs, Counts, Options
from skuld_py.simulation.coordination.scale.deciding import Decisions
from skuld_py.simulation.coordination.scale.ensemble import Ensemble
from skuld_py.simulation.coordination.scale.greeting import Greeting
from skuld_py.simulation.coordination.scale.log import CHUNK_BYTES, Log, News
from skuld_py.simulation.coordination.scale.process import Process
from skuld_py.simulation.coordination.scale.spreading import Spreading
from skuld_py.simulation.world.scheduler import stream

LARGE = Scaling(gather_ms=30)
"""What a large cluster would set: more joiners share an entry. A start of 10,000 with all options took 5 s with
these (seed 1), and between 4 and 10 s, by the seed, with the 10 ms that suit a small cluster."""


class Plane:
    """``counts`` and ``agenda`` say what it has cost so far. ``came_in`` is when the last process became a member
    and knew it, ``armed`` when the last watch was armed."""

    def __init__(self, options: Options, seed: int, costs: Costs | None = None,
                 settings: LogSettings | None = None, scaling: Scaling | None = None) -> None:
        self.options, self.costs = options, costs or Costs()
        self.settings, self.scaling = settings or LogSettings(), scaling or LARGE
        self.agenda, self.counts, self.log = Agenda(), Counts(), Log()
        self.ensemble = Ensemble(self.agenda, self.costs, self.counts)
        self.lives: dict[str, Process] = {}
        self.came_in = self.armed = 0.0
        self.faults = self.log.faults
        self._ids, self._pauses = stream(seed, "ids"), stream(seed, "pauses")
        self._starts, self._deaths = stream(seed, "starts"), stream(seed, "deaths")
        self._collector = ""
        decisions = Decisions(self.agenda, self.costs, options, self.counts, self.log)
        self.cohorts = Cohorts(self.agenda, self.costs, self.ensemble, self.log, decisions, self._read_on)
        self.spreading = Spreading(self.agenda, self.costs, self.scaling, self.counts, self.ensemble, self.log,
                                   decisions, self._follow, stream(seed, "gossip"))
        self.greeting = Greeting(self.agenda, self.costs, self.scaling, self.counts, self.ensemble, self.log, self,
                                 self.settings.grace, stream(seed, "greeting"))

    # -- living and dying ------------------------------------------------------------------------------

    def made(self, indexes: Iterable[int]) -> list[Process]:
        """New lives of nodes by their numbers; they do nothing yet."""
        several = []
        for index in indexes:
            host = f"10.{index >> 16}.{index >> 8 & 255}.{index & 255}"
            name = f"{host}:13000"
            life = f"{self._ids.getrandbits(32):08x}"
            data = f"{self._ids.getrandbits(64):016x}"
            process = Process(f"{name}~{life}", Member(name, host, 13_000, life, data), index)
            self.lives[process.id] = process
            several.append(process)
        return several

    def build(self, indexes: Sequence[int]) -> list[Process]:
        """A cluster at rest, made in no time: all are members, have read all there is, and watch each other."""
        several = self.made(indexes)
        first = several[0]
        self.log.append(first.id, 0, PrepareJoin(first.id, first.info))
        step = self.scaling.greet_joiners
        for seq, at in enumerate(range(1, len(several), step), 1):
            joiners = tuple(Joining(each.id, each.info) for each in several[at : at + step])
            self.log.append(first.id, seq, JoinDirect(first.id, self.log.replica.ring.after(first.id), joiners))
            first.seq = seq + 1
        first.seq = max(first.seq, 1)
        self.log.collect()
        for process in several:
            process.is_in = True
            process.wanted = watched(self.log.replica, process.id)
            process.armed = dict.fromkeys(process.wanted)
            self.ensemble.stand(process.id)
        for process in several:
            for name in process.wanted:
                self.ensemble.leave_watch(process.id, name, partial(self._is_gone, process))
        if self.options.sharing:
            for process in several:
                self.spreading.begin(process, ())
        else:
            size = -(-len(several) // COHORTS)
            for at in range(0, len(several), size):
                self.cohorts.stand(several[at : at + size])
        return several

    def start(self, several: Sequence[Process], former: Sequence[str] = ()) -> None:
        """Processes start within some time. ``former`` are pulses of earlier lives, which they remove."""
        times = sorted(self._starts.uniform(0, self.costs.start_spread_ms) for _ in several)
        for process, time, name in zip(several, times, [*former, *[""] * len(several)], strict=False):
            self.agenda.after(time, self._start, process, name)
        if self.options.direct and self.options.transfer:
            return
        size = -(-len(several) // COHORTS)
        bounds = [0, 1, *range(1 + size, len(several), size), len(several)]
        for at, end in pairwise(bounds):
            if several[at:end]:
                self.agenda.after(times[end - 1], self.cohorts.begin, several[at:end])

    def _start(self, process: Process, former: str) -> None:
        process.awaits_replica = self.options.direct and self.options.transfer
        if former:
            self.ensemble.end_pulse(former)
        self.ensemble.set_pulse(process.id, partial(self._join, process))

    def _join(self, process: Process) -> None:
        """Its pulse stands, and it has read the log if it reads it."""
        process.has_pulse = True
        if process.is_alive and not process.has_begun and (process.has_read or process.awaits_replica):
            process.has_begun = True
            if self.options.direct:
                self.greeting.knock(process)
            else:
                self.join_by_log(process)

    def join_by_log(self, process: Process) -> None:
        """The three phases; a process that waited for a replica reads the origin instead."""
        if process.awaits_replica:
            process.awaits_replica = False
            process.has_begun = False
            process.gives_up = True
            self.cohorts.begin_one(process)
        elif process.id not in self.log.replica.members:
            self.want(process, PrepareJoin(process.id, process.info))

    def kill(self, several: Iterable[Process]) -> None:
        """Processes die; their sessions end when nothing was heard of them for long enough."""
        for process in several:
            process.is_alive = False
            self.spreading.dead += process.id in self.log.replica.members
            self.cohorts.leave(process)
            self.spreading.leave(process)
            self.ensemble.end_pulse(process.id, self.costs.session_ms * self._deaths.uniform(2 / 3, 1))

    def find(self, name: str) -> Process | None:
        """The living process of an id."""
        process = self.lives.get(name)
        return process if process is not None and process.is_alive else None

    @property
    def alive(self) -> list[Process]:
        """All that live."""
        return [process for process in self.lives.values() if process.is_alive]

    # -- writing -----------------------------------------------------------------------------------------

    def want(self, process: Process, command: Command) -> None:
        """A process appends a command, after those before it."""
        if command not in process.outbox:
            process.outbox.append(command)
            if not process.is_appending:
                self._append(process)

    def _append(self, process: Process) -> None:
        process.is_appending = bool(process.outbox) and process.is_alive
        if process.is_appending:
            self.ensemble.write(self._commit, process, process.outbox.pop(0))

    def _commit(self, process: Process, command: Command) -> None:
        before = self.log.replica.members
        news = self.log.append(process.id, process.seq, command)
        if isinstance(command, Leave) and command.member in before and self.find(command.member) is None:
            self.spreading.dead -= command.member not in self.log.replica.members
        process.seq += 1
        self.counts.entries += 1
        self.agenda.after(self.costs.one_way_ms, self._append, process)
        own = (process.id,) if isinstance(command, JoinDirect | Gc) else ()
        here: list[Process] = []
        for name in dict.fromkeys((*(each.member for each in news.reactions), *news.concerned, *own)):
            actor = self.find(name)
            if actor is None or self.cohorts.concern(actor, news):
                continue
            if actor.shares:
                here.append(actor)
            else:
                actor.pending.append(news)
        self.cohorts.appended(news)
        self.spreading.appended(news, process.id, here)
        self._collect_if_due()

    def _collect_if_due(self) -> None:
        replica = self.log.replica
        if self.log.end - self.log.origin < self.settings.length_max or self._collector or not replica.roster:
            return
        at = self.log.end % len(replica.roster)
        for name in (*replica.roster[at:], *replica.roster[:at]):
            elected = self.find(name)
            if elected is not None and elected.is_in:
                self._collector = name
                self.want(elected, Gc(collected(replica)))
                return

    def _collect(self) -> None:
        """The origin is written; entries and chunks before it are removed, one write each."""
        self._collector = ""
        gone = self.log.collect()
        chunks = -(-self.log.origin_bytes // CHUNK_BYTES)
        self.ensemble.write(lambda: None, count=1 + 2 * chunks + gone)

    # -- acting ------------------------------------------------------------------------------------------

    def _read_on(self, process: Process, several: list[News], standby: Standby) -> None:
        """A process that reads from ZooKeeper has played a batch."""
        self._act(process, several, standby.watched(process.id), process.id in standby.replica.members)
        if not process.has_read:
            process.has_read = True
            if process.gives_up:
                process.has_begun = True
                self.join_by_log(process)
            elif process.has_pulse:
                self._join(process)

    def _follow(self, process: Process, several: list[News]) -> None:
        """A member has played entries that it got from others."""
        replica = self.log.replica_at(several[-1].position)
        self._act(process, several, watched(replica, process.id), process.id in replica.members)

    def take_over(self, process: Process, position: int) -> None:
        """A process has the replica of the member that let it in, as of the entry before a position."""
        if not process.is_alive or process.is_in:
            return
        pending = [news for news in process.pending if news.position >= position]
        process.pending = []
        replica = self.log.replica_at(position - 1)
        if not self.options.sharing:
            self.cohorts.join(process, position)
            for news in pending:
                self.cohorts.concern(process, news)
        self._act(process, [], watched(replica, process.id), process.id in replica.members)
        for command in owed(replica, process.id):
            self.want(process, command)
        if process.shares and pending:
            self._follow(process, pending)

    def _act(self, process: Process, several: list[News], wanted: tuple[str, ...], is_member: bool) -> None:
        if not process.is_alive:
            return
        for news in several:
            for reaction in news.reactions:
                if reaction.member == process.id:
                    self._react(process, reaction.command)
        self._watch(process, wanted)
        if is_member and not process.is_in:
            self._come_in(process)
        for news in several:
            if isinstance(news.command, JoinDirect) and news.command.observer == process.id:
                self.greeting.played(process, news.command)
            elif isinstance(news.command, Gc) and self._collector == process.id:
                self._collect()

    def _react(self, process: Process, command: Command | Rejoin) -> None:
        if isinstance(command, Command):
            self.want(process, command)
        else:
            self.agenda.after(self._pauses.uniform(0, 2 * self.settings.back_off_ms), self._rejoin, process)

    def _rejoin(self, process: Process) -> None:
        if process.is_alive and not process.is_in and not self.log.replica.is_known(process.id):
            self.want(process, PrepareJoin(process.id, process.info))

    def _come_in(self, process: Process) -> None:
        process.is_in = True
        self.came_in = self.agenda.now
        self.cohorts.came_in(process)
        if self.options.sharing:
            self.spreading.begin(process, self.cohorts.leave(process))

    def _watch(self, process: Process, wanted: tuple[str, ...]) -> None:
        if wanted == process.wanted:
            return
        process.wanted = wanted
        for name in wanted:
            if name not in process.armed:
                process.armed[name] = None
                self.armed = self.agenda.now
                self.ensemble.watch(process.id, name, partial(self._is_gone, process))

    def _is_gone(self, process: Process, name: str) -> None:
        """A watch has fired, or found nothing."""
        process.armed.pop(name, None)
        if process.is_alive and name in process.wanted and name not in process.reported:
            process.reported[name] = None
            self.want(process, Leave(name))

    # -- what must hold at rest --------------------------------------------------------------------------

    def verdict(self) -> list[str]:
        """What is wrong with a cluster at rest; nothing, if all is well."""
        self.spreading.look_around()
        self.log.compare()
        replica, alive = self.log.replica, self.alive
        names = sorted(process.id for process in alive)
        found = [*self.faults]
        if [*replica.roster] != names:
            found.append(f"{len(replica.roster)} members, {len(names)} processes alive")
        if len(names) > 1 and sorted(replica.ring.walk()) != names:
            found.append("the ring is not one ring over all that live")
        if replica.joins.prepared or replica.joins.accepted:
            found.append("joins are left under way")
        unwatched = [name for name in names if not any(self.find(each) for each in self.ensemble.watchers(name))]
        if unwatched and len(names) > 1:
            found.append(f"{len(unwatched)} are watched by nobody that lives, {unwatched[0]} first")
        if any(process.outbox or process.is_appending or not process.is_in for process in alive):
            found.append("somebody still wants something, or does not know that it is a member")
        if any(process.wanted != watched(replica, process.id) for process in alive[:: max(1, len(alive) // 500)]):
            found.append("somebody watches others than the replica says")
        if not (self.cohorts.is_caught_up() and self.spreading.is_caught_up()):
            found.append("somebody has not read the log to its end")
        if len({process.id for process in alive} & set(replica.left)):
            found.append("somebody alive was taken for dead")
        return found


