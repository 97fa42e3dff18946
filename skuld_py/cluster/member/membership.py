"""The machine of one process in the coordination log: it joins, keeps its place, watches, and does its duties.

A *life* is one id in the log, never used again. It begins with an ephemeral in a session, goes through joining,
and ends when the session is lost, the pulse is gone, or the log says that the member has left or that its node's
place is another life's; then the next one begins. The replica outlives all that: it follows from the log alone.

Everything is reconciled: after each step the machine compares what the replica says with what it has done, and
asks for the difference: which members to watch, which steps of a join it owes, which are gone and have not left,
which slots are missing. So no entry that was jumped over, no append in doubt and no watch that fired at a bad
moment is lost for good. What entries lead to (``Command.reactions``) are the same wishes, only sooner.

Invariants: an append leaves only while the pulse stands; an id is prepared only after its pulse stands; the node
machine is told CONNECTED only while this process is a member in a session that lives.

Bounds: one reading, one append, one origin outstanding; an outbox of different wishes; at most as many pulses gone
as watched.

Source: Onyx's peer group manager, with what it does by deltas and by sleeping done by comparing and by timers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import attrs

from skuld_py.cluster.log.commands import AbortJoin, AddSlot, Command, ForgetNode, Leave, LeaveSlot, Rejoin
from skuld_py.cluster.log.commands.gc import Gc, collected
from skuld_py.cluster.log.play import Played, Player, UnknownRules, play
from skuld_py.cluster.log.replica import Place, Replica
from skuld_py.cluster.member.chores import Collector, Forgetter, Sweeper
from skuld_py.cluster.member.join import is_due, owed
from skuld_py.cluster.member.news import Teller
from skuld_py.cluster.member.outbox import Outbox
from skuld_py.cluster.member.playback import Playback
from skuld_py.cluster.member.reader import Reader
from skuld_py.cluster.member.settings import LogSettings
from skuld_py.cluster.member.watched import watched
from skuld_py.cluster.placement import Placement
from skuld_py.cluster.scale.derivation import Derivation
from skuld_py.cluster.scale.peers import Peers
from skuld_py.cluster.scale.slots import Slots, Tags
from skuld_py.cluster.scale.versions import Scheme
from skuld_py.config.scaling import PLAIN, Scaling
from skuld_py.errors import Malformed, SkuldError
from skuld_py.model import coordination as c
from skuld_py.model.document import Member
from skuld_py.model.events import Compute, Computed, Received, Send, Session, SessionChanged, Ticked
from skuld_py.model.messages.decisions import DECISION_MESSAGES

Event = c.CoordinationEvent | SessionChanged | Received | Computed | Ticked
Effect = c.CoordinationEffect | Send | Compute
Watches = Callable[[Replica, str], tuple[str, ...]]


@attrs.define
class Membership:
    """Times are milliseconds of one monotonic clock.

    ``fresh_id`` gives the id of a newer life than all before (``lives``); ``jitter_ms`` a number from 0 to its
    argument. ``base`` is the replica before the first entry, the same for all members of a cluster. ``scaling``:
    what is done with other members beside the log. ``scheme``: what is derived of the replica and decided aside,
    if anything. ``player`` (how an entry is played) and ``watches`` (which members to watch) may be replaced.
    """

    info: Member
    fresh_id: Callable[[], str]
    jitter_ms: Callable[[int], int]
    settings: LogSettings = attrs.field(factory=LogSettings)
    base: Replica = attrs.field(factory=Replica)
    cluster_id: str = "none"
    scaling: Scaling = PLAIN
    scheme: Scheme | None = None
    player: Player = play
    watches: Watches = watched
    needs_vote_of: Callable[[str], bool] = attrs.field(default=lambda name: False)
    """Whether some partition has no majority of live voters without a node: then it is not forgotten."""
    playback: Playback | None = None
    """Where to write down what is played, if anybody reads it."""
    me: str = attrs.field(default="", init=False)
    """The present life; empty while there is none."""
    stopped_by: SkuldError | None = attrs.field(default=None, init=False)
    """Why it cannot go on; the process needs another program, or another log."""
    is_out: bool = attrs.field(default=False, init=False)
    """Whether it has left for good, as it was told to."""
    _is_departing: bool = attrs.field(default=False, init=False)
    _session: Session = attrs.field(default=Session.LOST, init=False)
    _has_pulse: bool = attrs.field(default=False, init=False)
    """Whether our pulse stood when the shell last looked, in this connection."""
    _was_in: bool = attrs.field(default=False, init=False)
    """Whether this life has been a member."""
    _is_current: bool = attrs.field(default=False, init=False)
    """Whether the log was read to its end once."""
    _join_ms: int | None = attrs.field(default=None, init=False)
    """When to ask to be let in (again)."""
    _watched: tuple[str, ...] = attrs.field(default=(), init=False)
    _gone: dict[str, int] = attrs.field(factory=dict, init=False)
    """Watched ids without a pulse, and when to write (again) that they have left."""
    _effects: list[Effect] = attrs.field(factory=list, init=False)
    _reader: Reader = attrs.field(init=False)
    _outbox: Outbox = attrs.field(factory=Outbox, init=False)
    _collector: Collector = attrs.field(init=False)
    _forgetter: Forgetter = attrs.field(init=False)
    _sweeper: Sweeper = attrs.field(factory=Sweeper, init=False)
    _slots: Slots = attrs.field(factory=Slots, init=False)
    _teller: Teller = attrs.field(factory=Teller, init=False)
    _peers: Peers = attrs.field(init=False)
    _derivation: Derivation = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._peers = Peers(self.info, self.cluster_id, self.base.replicas, self.scaling, self.jitter_ms)
        self._derivation = Derivation(self.info.name, self.scaling.schedulers, self.scheme, self.player)
        self._reader = Reader(self.settings, self.base, self._derivation.play, self._peers.sharing)
        self._collector, self._forgetter = Collector(self.settings), Forgetter(self.settings)

    @property
    def replica(self) -> Replica:
        """As of the last entry played."""
        return self._reader.replica

    @property
    def placement(self) -> tuple[int, Placement] | None:
        """The placement and its version; None when it is not decided aside."""
        return self._derivation.placement

    @property
    def is_in(self) -> bool:
        """Whether the present life is a member."""
        return self.me in self.replica.members

    @property
    def slots(self) -> Mapping[str, Tags]:
        """The slots that it is to bring."""
        return self._slots.wanted

    # -- what it is told -----------------------------------------------------------------------

    def step(self, now_ms: int, event: Event) -> list[Effect]:
        """Take an event."""
        return self._run(now_ms, lambda: self._take(now_ms, event))

    def set_slots(self, now_ms: int, slots: Mapping[str, Tags]) -> list[Effect]:
        """Bring exactly these slots, by id, each with its tags. Raises ``Malformed`` for what is no slot."""
        for slot, tags in slots.items():
            AddSlot(slot, self.info.name, tags)
        return self._run(now_ms, lambda: self._slots.want(slots))

    def write(self, now_ms: int, commands: Iterable[Command]) -> list[Effect]:
        """Append these, each once until it was played. What this life does not get to is forgotten with it."""
        return self._run(now_ms, lambda: self._want(commands))

    def offer(self, now_ms: int, entries: Iterable[tuple[int, bytes]]) -> list[Effect]:
        """Entries that came another way than from the log itself, in order; what does not join on is ignored."""
        return self._run(now_ms, lambda: self._play(now_ms, self._reader.offer(entries)))

    def adopt(self, now_ms: int, position: int, text: str) -> list[Effect]:
        """A replica as of a position that came another way than as the origin; ignored unless it is ahead."""
        return self._run(now_ms, lambda: self._reader.adopt(position, text))

    def depart(self, now_ms: int) -> list[Effect]:
        """Leave for good: ``is_out`` once the log says so, or nothing stands there."""
        return self._run(now_ms, self._depart)

    def _depart(self) -> None:
        self._is_departing = True

    def _run(self, now_ms: int, act: Callable[[], object]) -> list[Effect]:
        if self.stopped_by is not None or self.is_out:
            return []
        try:
            act()
            self._settle(now_ms)
        except (UnknownRules, Malformed) as problem:
            self.stopped_by = problem
            self._leave_stage()
        effects, self._effects = self._effects, []
        return effects

    def _take(self, now_ms: int, event: Event) -> None:
        match event:
            case SessionChanged():
                self._on_session(event.session)
            case c.PulseStands():
                self._has_pulse |= event.member == self.me and self._session is Session.CONNECTED
            case c.PulseGone():
                self._on_gone(now_ms, event.member)
            case c.OriginRead():
                self._reader.on_origin(event)
            case c.EntriesRead():
                self._play(now_ms, self._reader.on_entries(now_ms, event))
            case c.Appended():
                self._peers.on_appended(now_ms, event.position, self._outbox.on_appended(event))
            case c.AppendUncertain():
                self._outbox.on_uncertain(event)
            case c.OriginWritten():
                self._collector.on_written(event)
            case c.PulsesRead():
                self._want(self._peers.on_pulses(now_ms, event.members))
            case Computed() | Ticked():
                self._effects += self._derivation.step(now_ms, event)
            case Received() if isinstance(event.message, DECISION_MESSAGES):
                self._effects += self._derivation.step(now_ms, event)
            case Received():
                self._want(self._peers.received(now_ms, self.replica, event))
        self._play(now_ms, self._reader.offer(self._peers.take(now_ms, self._reader.position)))

    # -- lives ---------------------------------------------------------------------------------

    def _on_session(self, session: Session) -> None:
        self._session = session
        self._has_pulse = False
        if session is Session.CONNECTED:
            return  # the shell says whether the pulse stands
        if session is Session.LOST:
            self._reader.void()
            self._outbox.void()
            self._collector.void()
            self._watched = ()
            self._end_life()
        self._effects += self._teller.tell_session(session)

    def _begin_life(self, now_ms: int) -> None:
        self.me, self._was_in, self._has_pulse = self.fresh_id(), False, False
        self._outbox.begin(self.me)
        self._join_ms = now_ms
        self._effects.append(c.SetPulse(self.me, self.info))

    def _end_life(self) -> None:
        self.me, self._has_pulse, self._join_ms = "", False, None
        self._gone.clear()
        self._effects += self._teller.tell_session(Session.LOST)

    def _leave_stage(self) -> None:
        self._end_life()
        if self._watched:
            self._effects.append(c.WatchPulses(()))
        self._effects.append(c.DropPulse())

    def _on_gone(self, now_ms: int, member: str) -> None:
        if member == self.me:
            self._end_life()
        elif member in self._watched:
            self._gone.setdefault(member, now_ms)

    # -- the log -------------------------------------------------------------------------------

    def _play(self, now_ms: int, entries: Iterable[Played]) -> None:
        for played in entries:
            if self.playback is not None:
                self.playback.note(now_ms, played)
            self._collector.on_played(played, self.me)
            self._forgetter.on_played(now_ms, played, self._is_current)
            self._peers.on_played(played)
            for reaction in played.reactions:
                if reaction.member != self.me:
                    continue
                if isinstance(reaction.command, Rejoin):
                    self._join_ms = self._pause_until(now_ms)
                else:
                    self._outbox.add(reaction.command)

    def _pause_until(self, now_ms: int) -> int:
        return now_ms + self.jitter_ms(2 * self.settings.back_off_ms)

    def _want(self, wishes: Iterable[Command | Send]) -> None:
        for wish in wishes:
            if isinstance(wish, Send):
                self._effects.append(wish)
            elif self.me:
                self._outbox.add(wish)

    # -- after each step -----------------------------------------------------------------------

    def _settle(self, now_ms: int) -> None:
        if self._peers.has_parted():
            self._reader.build_anew()
        self._reader.is_shared = self.is_in
        self._outbox.settle(self.replica)
        self._is_current |= self._reader.is_at_end
        if self.playback is not None:
            self.playback.settle(self.replica, self._is_current)
        self._live(now_ms)
        self._peers.live(self.me)
        if self.is_out:
            return
        self._watch()
        if self._has_pulse:
            self._do_duties(now_ms)
        if self._is_current:
            self._tell(now_ms)
        if self._session is Session.CONNECTED:
            self._request(now_ms)

    def _live(self, now_ms: int) -> None:
        """End a life that the log says is over; begin one if there is none."""
        replica = self.replica
        if self.me and (self.me in replica.left or (self._was_in and not self.is_in) or self._is_displaced):
            self._end_life()
        self._was_in |= self.is_in
        if self._is_departing and not replica.is_known(self.me):
            self.is_out = True
            self._leave_stage()
        elif not self.me and self._session is Session.CONNECTED:
            self._begin_life(now_ms)

    @property
    def _is_displaced(self) -> bool:
        """Whether this life is in without its node's place: then no member takes the node for alive."""
        return self.is_in and self.replica.nodes.get(self.info.name, Place()).member != self.me

    def _watch(self) -> None:
        wanted = self.watches(self.replica, self.me) if self.me else ()
        if wanted != self._watched:
            self._watched = wanted
            self._effects.append(c.WatchPulses(wanted))
            self._gone = {member: due_ms for member, due_ms in self._gone.items() if member in wanted}

    def _do_duties(self, now_ms: int) -> None:
        replica, is_known = self.replica, self.replica.is_known(self.me)
        for member, due_ms in self._gone.items():
            if now_ms >= due_ms:
                self._outbox.add(Leave(member))
                self._gone[member] = now_ms + self.settings.repeat_ms
        if self._is_departing:
            self._join_ms = None
            self._outbox.add(Leave(self.me))
            return
        self._want(owed(replica, self.me))
        self._ask_to_join(now_ms, is_known)
        if is_known:
            self._want(self._slots.wish(replica, self.me))
        if self._is_on_duty:
            if (collection := self._collector.wish(now_ms, replica, self.me)) is not None:
                self._outbox.add(collection)
            self._want(self._forgetter.wish(now_ms, replica, self.me, self.needs_vote_of))
            self._effects += self._sweeper.wish(now_ms, replica, self.me)

    @property
    def _is_on_duty(self) -> bool:
        return self.is_in and self._reader.is_at_end and not self._is_departing

    def _ask_to_join(self, now_ms: int, is_known: bool) -> None:
        if is_known:
            self._join_ms = None
            return
        if self._join_ms is None and not self._outbox.holds(AbortJoin(self.me)):
            self._join_ms = self._pause_until(now_ms)  # what was told no, in an entry that we jumped over
        if self._join_ms is not None and now_ms >= self._join_ms and self._reader.is_at_end:
            self._join_ms = now_ms + self.settings.repeat_ms
            self._want(self._peers.begin(now_ms, self.replica))

    def _tell(self, now_ms: int) -> None:
        derivation = self._derivation
        self._effects += derivation.settle(now_ms, self.replica)
        self._effects += self._teller.tell(self.replica, derivation.is_lagging, derivation.lists)
        self._effects += self._teller.tell_seats(derivation.seats)
        if self._has_pulse and self.is_in:
            self._effects += self._teller.tell_session(Session.CONNECTED)

    def _request(self, now_ms: int) -> None:
        """Ask for what this member writes, then for what it reads."""
        if self._has_pulse:
            is_due = partial(self._is_due, now_ms)
            self._outbox.prune(is_due)
            self._want(self._peers.go_on(now_ms, self.replica, self._outbox.holds))
            self._effects += self._outbox.next(is_due)
            self._effects += self._collector.write()
            if self._peers.must_read_pulses():
                self._effects.append(c.ReadPulses())
        if (replica := self._peers.arrived()) is not None:
            self._reader.begin_from(replica)
        if self._peers.is_arriving:
            return
        if self._has_pulse or self._reader.has_begun:
            self._effects += self._reader.ask(now_ms)

    def _is_due(self, now_ms: int, command: Command) -> bool:
        """Whether a command still means anything."""
        replica = self.replica
        match command:
            case Leave(member):
                return replica.is_known(member)
            case Gc(after):
                return after == collected(replica)
            case ForgetNode(node):
                return node in replica.nodes and not replica.nodes[node].member
            case AddSlot() | LeaveSlot():
                return self._slots.is_due(replica, self.me, command)
        return is_due(replica, self.me, command) and self._peers.is_due(now_ms, replica, command)

    # -- time ----------------------------------------------------------------------------------

    def deadline(self) -> int | None:
        """When it next wants a ``Ticked``; None while only events can help."""
        if self.stopped_by is not None or self.is_out:
            return None
        dues = (self._derivation.deadline(), self._log_deadline())
        return min((due_ms for due_ms in dues if due_ms is not None), default=None)

    def _log_deadline(self) -> int | None:
        if self._session is not Session.CONNECTED or not self._has_pulse:
            return None
        due = [*self._gone.values()]
        if self._reader.is_at_end and self._join_ms is not None:
            due.append(self._join_ms)
        if self._is_on_duty:
            duties = (self._collector.deadline(self.replica, self.me), self._forgetter.deadline(),
                      self._sweeper.deadline())
            due += [due_ms for due_ms in duties if due_ms is not None]
        due += [due_ms for due_ms in (self._reader.deadline(), self._peers.deadline()) if due_ms is not None]
        return min(due, default=None)
