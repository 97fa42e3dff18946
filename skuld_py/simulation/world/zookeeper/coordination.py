"""What a process does in ZooKeeper for its membership: its pulse, the pulses it watches, and the coordination log.

Carried out as the real shell does (``runtime.zookeeper``: ``presence``, ``coordination_log``), each request at one
moment. What cannot be asked or is not answered stays wished, and is asked again when the client is back; only an
append is given up, as uncertain. Watches are reconciled: whenever a client is back, and when one fires, what it
watches is looked at again. A look goes to the client's server, which may be behind; before a pulse or an entry is
taken for missing there is another look, at what all servers have agreed on.

With a loss of the session all that was wished is void, and so is what the process asks for until it is connected
again. What it asks for later in ignorance of the loss, since it was told while a turn was under way, is carried
out in the new session: the real shell cannot tell it apart. Nor can the process tell such an answer apart from one
to what it has asked since.
"""

from __future__ import annotations

from skuld_py.model import coordination as c
from skuld_py.model.document import NOBODY
from skuld_py.model.events import Session, SessionChanged
from skuld_py.simulation.world.zookeeper.documents import Documents
from skuld_py.simulation.world.zookeeper.log import Log
from skuld_py.simulation.world.zookeeper.proposals import Proposal
from skuld_py.simulation.world.zookeeper.reference import Reference
from skuld_py.simulation.world.zookeeper.registrations import Registrations
from skuld_py.simulation.world.zookeeper.sessions import Connection
from skuld_py.simulation.world.zookeeper.wishes import Request, Wanted

SLOW_APPEND_MS = 6_000


class Coordination(Documents):
    """The service with the coordination log of one cluster of ``partitions`` partitions."""

    def __init__(self, reference: Reference, partitions: int, *arguments: object) -> None:
        super().__init__(*arguments)
        self.log = Log(reference, lambda: self._scheduler.now_ms, self._tell_watchers)
        self.registrations = Registrations()
        self._partitions = partitions

    # -- contact -------------------------------------------------------------------------------

    def _begin_anew(self, connection: Connection) -> None:
        self._void_watches(connection)
        self.registrations.keep(connection)
        self._keep_pulse(connection)
        self._tell_key(connection)
        self._tell(connection, SessionChanged(Session.CONNECTED))
        connection.wishes.is_told = False
        self._tell_pulse(connection)
        self._go_on(connection)

    def _go_on(self, connection: Connection) -> None:
        """Trust no watch, and ask again for what was not answered."""
        self._tell_missed(connection)
        self._tell_key(connection)
        wishes = connection.wishes
        if wishes.pulse is not None or wishes.standing:
            self._ask(connection, self._look_at_pulse)
        wishes.armed.clear()
        if wishes.watched:
            self._ask(connection, self._check_pulses)
        for wanted in wishes.outstanding.values():
            if type(wanted.effect) is not c.Append:  # which its proposal answers
                self._ask(connection, self._serve, wanted)

    def _drop_ephemerals(self, session: int) -> None:
        for life in [life for life, pulse in self.log.pulses.items() if pulse.session == session]:
            self.log.drop_pulse(life)

    # -- requests ------------------------------------------------------------------------------

    def _wish(self, connection: Connection, effect: c.CoordinationEffect, is_stale: bool) -> None:
        """Note a wish, and ask for it. ``is_stale``: the process did not know that its session was lost."""
        wishes = connection.wishes
        if connection.known is Session.LOST:
            return
        match effect:
            case c.SetPulse():
                wishes.pulse, wishes.is_told, wishes.has_stood = effect, False, False
                self._ask(connection, self._set_pulse, effect)
            case c.DropPulse():
                wishes.pulse, wishes.has_stood = None, False
                self._ask(connection, self._set_pulse, None)
            case c.WatchPulses(members):
                wishes.watched = members
                wishes.armed = {life: None for life in members if life in wishes.armed}
                if len(wishes.armed) < len(members):
                    self._ask(connection, self._check_pulses)
            case c.Announce():
                raise AssertionError("news are for the process")
            case _:
                self._want(connection, Wanted(effect, is_stale))

    def _want(self, connection: Connection, wanted: Wanted) -> None:
        effect, wishes = wanted.effect, connection.wishes
        self.counts["wish of a lost session carried out"] += wanted.is_stale
        earlier, kind = wishes.outstanding.get(type(effect)), type(effect)
        is_mistaken = earlier is not None and wishes.mistaken.pop(kind, kind) is None
        self.counts["answer to a lost session's wish taken for another's"] += is_mistaken
        if earlier is not None and not (wanted.is_stale or earlier.is_stale or is_mistaken):
            self.log.reference.blame(f"{connection.member.name} asks for a second {type(effect).__name__}")
        if type(effect) is c.Append and not (wishes.has_stood or wanted.is_stale):
            self.log.reference.blame(f"{connection.member.name} appends without a pulse")
        wishes.outstanding[type(effect)] = wanted
        if type(effect) is c.Append and self._scheduler.now_ms < connection.appends_slowly_until_ms:
            connection.asked_ms = self._scheduler.now_ms + self._random.randint(0, SLOW_APPEND_MS)
        self._ask(connection, self._serve, wanted)
        if isinstance(effect, c.ReadEntries):
            self._scheduler.after(effect.wait_ms, self._end_waiting, connection, wanted)

    def _serve(self, connection: Connection, wanted: Wanted) -> None:
        effect = wanted.effect
        if not connection.wishes.holds(wanted):
            return
        if isinstance(effect, c.Append):
            self._append(connection, effect, wanted)
        elif self._is_served(connection):
            self._serve_now(connection, effect, wanted)

    def _serve_now(self, connection: Connection, effect: Request, wanted: Wanted) -> None:
        match effect:
            case c.ReadEntries():
                self._read_entries(connection, effect, wanted, is_last=not effect.is_waiting)
            case c.ReadPulses():
                self._answer(connection, c.PulsesRead(self.log.standing(self._see(connection))), None, wanted)
            case c.ReadOrigin():
                self._see(connection, self._scheduler.now_ms)
                self._answer(connection, c.OriginRead(*self.log.origin), None, wanted)
            case c.WriteOrigin():
                self._write_origin(connection, effect, wanted)
            case c.SweepEntries(nodes):
                del connection.wishes.outstanding[c.SweepEntries]
                documents = [self.documents.get(number, (-1, NOBODY))[1] for number in range(self._partitions)]
                swept = self.registrations.sweep(nodes, self.log.pulses, documents)
                self.counts["entry of a node swept up"] += swept

    # -- the log -------------------------------------------------------------------------------

    def _append(self, connection: Connection, effect: c.Append, wanted: Wanted) -> None:
        def apply() -> c.Appended:
            if self._random.random() < self.options.skipped:
                self.log.skip()
            if self.options.doubled and self._random.random() < self.options.doubled:
                self._scheduler.after(self._random.randint(0, self.options.late_ms), self.put_entry, effect.raw)
            return c.Appended(effect.seq, self.put_entry(effect.raw))
        self._propose(connection, Proposal("append", self.options.doubt, apply, None,
                                           c.AppendUncertain(effect.seq), wanted))

    def put_entry(self, raw: bytes) -> int:
        """An entry stands; processes that wait for it are told, once their servers know."""
        position = self.log.append(raw)
        for connection in self._connections:
            reading = connection.wishes.outstanding.get(c.ReadEntries)
            if reading is not None and reading.awaits == position:
                reading.awaits = -1
                delay_ms = self._watch_delay() + self._lag(connection)
                self._scheduler.after(delay_ms, self._serve, connection, reading)
        return position

    def _end_waiting(self, connection: Connection, wanted: Wanted) -> None:
        """A reading's time is up: it is answered by what is there, or by nothing if no server answers."""
        effect = wanted.effect
        if connection.is_closed or not connection.wishes.holds(wanted) or not isinstance(effect, c.ReadEntries):
            return
        if connection.known is Session.CONNECTED and self._is_served(connection):
            self._read_entries(connection, effect, wanted, is_last=True)
        else:
            self._fail_later(connection, c.EntriesRead(effect.start, ()), wanted)

    def _read_entries(self, connection: Connection, effect: c.ReadEntries, wanted: Wanted, is_last: bool) -> None:
        found = self._look(connection, effect)
        if found.entries or found.is_missing or is_last:
            self._answer(connection, found, None, wanted)
            return
        wanted.awaits = effect.start
        if effect.start in self.log.entries:  # its server does not know yet
            self._scheduler.after(self._lag(connection) + 1, self._serve, connection, wanted)

    def _look(self, connection: Connection, effect: c.ReadEntries) -> c.EntriesRead:
        """What is there; where something should be and is not, by a fresh look."""
        log, seen_ms = self.log, self._see(connection)
        found = log.read(effect.start, effect.limit, seen_ms)
        self.counts["entries hidden by a server that is behind"] += log.written(seen_ms) < log.end
        if found.entries or (found.is_end and log.written(seen_ms) <= effect.start):
            return found
        first = log.beyond(effect.start)
        seen_ms = self._see(connection, self._scheduler.now_ms)
        if first is None:
            return c.EntriesRead(effect.start, (), is_end=True)
        if first == effect.start:
            return log.read(effect.start, effect.limit, seen_ms)
        later = log.read(first, effect.limit, seen_ms).entries if first > effect.start else ()
        return c.EntriesRead(effect.start, later, is_end=False, is_missing=True)

    def _write_origin(self, connection: Connection, effect: c.WriteOrigin, wanted: Wanted) -> None:
        """The origin, then what it replaces goes, in steps; broken off, it begins again."""
        is_newest = self.log.write_origin(effect.position, effect.text)
        keep_from = min(effect.keep_from, effect.position + 1)
        half = (min(self.log.entries, default=0) + keep_from) // 2
        self._ask(connection, self._remove, wanted, min(half, keep_from), None)
        self._ask(connection, self._remove, wanted, keep_from, c.OriginWritten(effect.position, is_newest))

    def _remove(self, connection: Connection, wanted: Wanted, below: int, done: c.OriginWritten | None) -> None:
        if connection.wishes.holds(wanted) and self._is_served(connection):
            self.log.remove(below)
            if done is not None:
                self._answer(connection, done, None, wanted)

    # -- pulses --------------------------------------------------------------------------------

    def _set_pulse(self, connection: Connection, wished: c.SetPulse | None) -> None:
        """A wish for a pulse arrives; where none can be asked it is carried out when the client is back."""
        if connection.wishes.pulse is not wished or not self._is_served(connection):
            return
        if wished is not None and not self.is_steady and self._random.random() < self.options.doubt:
            self.counts["connection broken at a pulse"] += 1
            if self._random.random() < 0.5:
                self._keep_pulse(connection)
            self._break(connection, self._random.randint(1, self.options.session_ms))
        else:
            self._look_at_pulse(connection)

    def _keep_pulse(self, connection: Connection) -> None:
        """Have the pulse stand that is wanted, and no other one of this process. One that stood and is gone is not
        made anew."""
        wishes, log = connection.wishes, self.log
        wanted = wishes.pulse
        if wishes.standing and (wanted is None or wanted.member != wishes.standing):
            log.drop_pulse(wishes.standing)
            wishes.standing = ""
        if wanted is None:
            return
        pulse = log.pulses.get(wanted.member)
        if pulse is None or pulse.session != connection.session:
            log.drop_pulse(wanted.member)
            if wishes.standing:
                wishes.pulse, wishes.standing = None, ""
                self._tell(connection, c.PulseGone(wanted.member))
                return
            name = connection.member.name
            former = self.registrations.name_life(name, wanted.member)
            self.counts["pulse of a former life removed"] += former in log.pulses
            log.drop_pulse(former)
            log.make_pulse(wanted.member, name, connection.session)
            self._see(connection, self._scheduler.now_ms)
        wishes.standing = wanted.member

    def _look_at_pulse(self, connection: Connection) -> None:
        if self._is_served(connection):
            self._keep_pulse(connection)
            self._tell_pulse(connection)

    def _tell_pulse(self, connection: Connection) -> None:
        """Say that the pulse stands, once."""
        wishes = connection.wishes
        if wishes.standing and not wishes.is_told:
            wishes.is_told = wishes.has_stood = True
            self._tell(connection, c.PulseStands(wishes.standing))

    def _check_pulses(self, connection: Connection) -> None:
        """Look for the pulses that are watched and have not been looked for. Which is gone at the other servers,
        the client's is going to hear."""
        wishes, log, now_ms = connection.wishes, self.log, self._scheduler.now_ms
        if not self._is_served(connection):
            return
        for life in wishes.watched:
            if life in wishes.armed:
                continue
            is_shown, stands = log.stands(life, self._see(connection)), log.stands(life, now_ms)
            if not is_shown:
                self.counts["pulse hidden by a server that is behind"] += stands
                self._see(connection, now_ms)
                if not stands:
                    self._tell(connection, c.PulseGone(life))
            elif not stands:
                self._scheduler.after(self._lag(connection) + 1, self._fire, connection, life)
            wishes.armed[life] = None

    def _tell_watchers(self, life: str) -> None:
        """A pulse is gone."""
        for connection in self._connections:
            delay_ms = self._watch_delay() + self._lag(connection)
            if connection.wishes.standing == life:
                self._scheduler.after(delay_ms, self._look_at_pulse, connection)
            elif life in connection.wishes.armed:
                self._scheduler.after(delay_ms, self._fire, connection, life)

    def _fire(self, connection: Connection, life: str) -> None:
        """A watch fires: look again. If the client is away it does so when it is back."""
        if connection.wishes.armed.pop(life, self) is None:
            self._check_pulses(connection)
