"""The shell of a process: its connection is slow, breaks, and leaves appends in doubt.

It keeps the promises of ``model.coordination`` and no more than those. Every request takes time to the server and
back; a break in between loses it or its answer. What the machine must not do (two appends at once, one without a
pulse, a tick without use) is reported as a violation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

import attrs

from skuld_py.cluster.member.membership import Event
from skuld_py.model import coordination as c
from skuld_py.model.events import Session, SessionChanged
from skuld_py.simulation.coordination.process import Process, Request

SLOW_APPEND_MS = 6_000


@attrs.define(eq=False)
class Shell(Process):
    """``sessions`` gives numbers for sessions, never the same."""

    sessions: Callable[[], int] = attrs.field(kw_only=True)
    lags: Random = attrs.field(kw_only=True)
    """Draws whether a look at a pulse goes to a server that lags."""
    session: int = 0
    is_up: bool = False
    """Whether the connection stands."""
    used: dict[str, None] = attrs.field(factory=dict)
    """Ids of the lives of this node."""
    _epoch: int = 0
    """Of the connection: an answer of an earlier one is lost."""
    _made: str = ""
    """The pulse that stood once in this session."""
    _wanted: tuple[str, ...] = ()
    _armed: dict[str, None] = attrs.field(factory=dict)
    _outstanding: list[Request] = attrs.field(factory=list)
    appends_slowly_until_ms: int = 0
    """An append that leaves until then takes seconds."""
    _is_expired: bool = False
    _seen: int = 0
    """The end of the log as far as this session has seen it."""

    # -- the process ---------------------------------------------------------------------------

    def start(self) -> None:
        """A new process."""
        if self.machine is None:
            self.launch()
            self.connect()

    def crash(self) -> None:
        """The process is gone; its session ends some time later."""
        if self.machine is None:
            return
        self.kill()
        session, self.session = self.session, 0
        self._cut(session)
        self._void()
        self.scheduler.after(self.random.randint(100, 4_000), self.ensemble.expire, session)

    def pause(self, ms: int) -> None:
        """The process stands still; so long that the session may end."""
        if self.machine is not None and not self.is_paused:
            if self.is_up and ms > 3_000 and self.random.random() < 0.7:
                self.scheduler.after(3_000, self._expire_silently, self.session)
            self.stand_still(ms)

    def _expire_silently(self, session: int) -> None:
        if session == self.session and self.is_paused and self.is_up:
            self.break_off(0, is_end=True)

    # -- the connection ------------------------------------------------------------------------

    def connect(self) -> None:
        """A connection in a new session."""
        self.session, self.is_up, self._is_expired, self._seen = self.sessions(), True, False, 0
        self.tell(SessionChanged(Session.CONNECTED))

    def break_off(self, ms: int, is_end: bool) -> None:
        """The connection breaks for so long; at its end the session may be over."""
        if self.machine is None or not self.is_up:
            return
        self.note("break", f"{ms} ms", "lost" if is_end else "")
        self._cut(self.session)
        self.tell(SessionChanged(Session.SUSPENDED))
        if is_end:
            self._is_expired = True
            self.scheduler.after(self.random.randint(0, ms), self.ensemble.expire, self.session)
        self.scheduler.after(ms, self._reconnect, self.session)

    def _cut(self, session: int) -> None:
        self._epoch += 1
        self.is_up = False
        self._armed.clear()
        self.ensemble.break_connection(session)

    def _void(self) -> None:
        self._outstanding.clear()
        self._made, self._wanted = "", ()

    def _reconnect(self, session: int) -> None:
        if self.machine is None or session != self.session or self.is_up:
            return
        if self._is_expired:
            self.ensemble.expire(session)
            self._void()
            self._losses += 1
            self.tell(SessionChanged(Session.LOST))
            self.connect()
            return
        self.is_up = True
        self.tell(SessionChanged(Session.CONNECTED))
        self._renew()

    def _renew(self) -> None:
        """After a break in the same session: all that is outstanding, the pulse, the watches."""
        if self._made and not any(isinstance(each, c.SetPulse) for each in self._outstanding):
            self._later(self._check_pulse)
        for request in [*self._outstanding]:
            if isinstance(request, c.Append):
                self._answer(request, c.AppendUncertain(request.seq))
            else:
                self._send(request)
        self._arm()

    def _check_pulse(self) -> None:
        stands = self._made in self.ensemble.pulses
        self._back(c.PulseStands(self._made) if stands else c.PulseGone(self._made))

    def _delay(self) -> int:
        slow = self.random.random() < self.weather.slow
        return self.random.randint(1, self.weather.slow_ms if slow else self.weather.delay_ms)

    def _later(self, act: Callable[[], None]) -> None:
        """On its way to the server; lost if the connection breaks."""
        epoch = self._epoch
        self.scheduler.after(self._delay(), lambda: act() if epoch == self._epoch else None)

    def _back(self, event: Event) -> None:
        self._later(lambda: self.tell(event))

    # -- requests ------------------------------------------------------------------------------

    def _send(self, request: Request) -> None:
        if not self.is_up:
            return  # sent when the connection is back
        if isinstance(request, c.Append):
            self._send_append(request)
        else:
            self._later(partial(self._serve, request))

    def _serve(self, request: Request) -> None:
        if request not in self._outstanding:
            return  # another pulse is wanted by now
        match request:
            case c.SetPulse(member, _):
                self.ensemble.make_pulse(member, self.node, self.session)
                self._made = member
                self._answer(request, c.PulseStands(member))
            case c.ReadPulses():
                self._answer(request, c.PulsesRead(tuple(self.ensemble.pulses)))
            case c.ReadOrigin():
                self._answer(request, c.OriginRead(*self.ensemble.origin))
            case c.ReadEntries():
                self._read(request, self.scheduler.now_ms + request.wait_ms)
            case c.WriteOrigin():
                self._write_origin(request)

    def _answer(self, request: Request, event: Event) -> None:
        def arrive() -> None:
            if request in self._outstanding:
                self._outstanding.remove(request)
                self.tell(event)
        self._later(arrive)

    def _send_append(self, request: c.Append) -> None:
        weather, draw = self.weather, self.random.random()
        epoch, who = self._epoch, self.node
        is_lost = draw < weather.lost
        is_doubted = is_lost or draw < weather.lost + weather.doubted
        is_doubled = self.random.random() < weather.doubled
        survives_break = self.random.random() < 0.5

        def apply() -> None:
            if epoch != self._epoch and not survives_break:
                return
            if self.random.random() < weather.skipped:
                self.ensemble.skip()
            position = -1 if is_lost else self.ensemble.append(request.raw, who)
            if is_doubled:
                late_ms = self.random.randint(0, weather.late_ms)
                self.scheduler.after(late_ms, self.ensemble.append, request.raw, who)
            self.ensemble.stats["appends in doubt"] += is_doubted
            if epoch == self._epoch:
                self._answer(request, c.AppendUncertain(request.seq) if is_doubted
                             else c.Appended(request.seq, position))
        is_slow = self.scheduler.now_ms < self.appends_slowly_until_ms
        self.scheduler.after(self._delay() + (self.random.randint(0, SLOW_APPEND_MS) if is_slow else 0), apply)

    def _read(self, request: c.ReadEntries, until_ms: int) -> None:
        limit = self.random.randint(1, request.limit) if self.random.random() < 0.2 else request.limit
        hidden = self.random.randint(1, 5) if self.random.random() < self.weather.lagging else 0
        hidden = max(0, min(hidden, self.ensemble.end - self._seen))
        found = self.ensemble.read(request.start, limit, hidden)
        if found is None and request.is_waiting and self.scheduler.now_ms < until_ms:
            self._wait(request, until_ms)
            return
        found = found or c.EntriesRead(request.start, (), is_end=True)
        self._seen = max(self._seen, *(position + 1 for position, _ in found.entries), 0)
        self._answer(request, found)

    def _wait(self, request: c.ReadEntries, until_ms: int) -> None:
        """Until something comes, or time is up, or the connection breaks."""
        epoch, ensemble = self._epoch, self.ensemble

        def wake() -> None:
            if wake in ensemble.on_entry:
                ensemble.on_entry.remove(wake)
                if epoch == self._epoch and request in self._outstanding:
                    self._later(partial(self._read, request, until_ms))
        if ensemble.end > self._seen and ensemble.read(request.start, 1) is not None:
            self._later(partial(self._read, request, until_ms))  # hidden a moment ago
            return
        ensemble.on_entry.append(wake)
        self.scheduler.at(until_ms, wake)

    def _write_origin(self, request: c.WriteOrigin) -> None:
        is_newest = self.ensemble.write_origin(request.position, request.text)
        self.note("origin", f"@{request.position}", str(is_newest))

        def remove(below: int) -> None:
            self.ensemble.remove(below)
            if below == request.keep_from:
                self._answer(request, c.OriginWritten(request.position, is_newest))
        if not is_newest:
            self._answer(request, c.OriginWritten(request.position, False))
        elif (half := (min(self.ensemble.entries, default=0) + request.keep_from) // 2) < request.keep_from:
            self._later(partial(remove, half))
            self._later(lambda: self._later(partial(remove, request.keep_from)))
        else:
            self._later(partial(remove, request.keep_from))

    # -- watches -------------------------------------------------------------------------------

    def _arm(self) -> None:
        """Let there be a watch for each wanted id, and no other."""
        for member in [member for member in self._armed if member not in self._wanted]:
            del self._armed[member]
            self.ensemble.unwatch(member, self.session)
        for member in self._wanted:
            if member not in self._armed:
                self._later(partial(self._arm_one, member))

    def _arm_one(self, member: str, is_synced: bool = False) -> None:
        """A server that lags may not know of a pulse that stands; so before it is believed, it is synced."""
        if member not in self._wanted or member in self._armed:
            return
        is_hidden = not is_synced and self.lags.random() < self.weather.stale \
            and self.ensemble.is_behind(member, self._seen)
        self.ensemble.stats["pulses hidden"] += is_hidden
        if not is_hidden and self.ensemble.watch(member, self.session, self._on_gone):
            self._armed[member] = None
        elif is_synced:
            self._on_gone(member)
        else:
            self._later(partial(self._arm_one, member, is_synced=True))

    def _on_gone(self, member: str) -> None:
        """The watch has fired, or found nothing."""
        self._armed.pop(member, None)
        self.ensemble.unwatch(member, self.session)
        self._back(c.PulseGone(member))

    def watch(self, members: tuple[str, ...]) -> None:
        """Watch exactly these."""
        self._wanted = members
        if self.is_up:
            self._arm()

    def begin(self, request: Request) -> None:
        """Do what is answered, now or when the connection is back."""
        self._object(request)
        if isinstance(request, c.SetPulse):
            self._outstanding = [each for each in self._outstanding if not isinstance(each, c.SetPulse)]
            self._made = ""
        self._outstanding.append(request)
        self._send(request)

    def _object(self, request: Request) -> None:
        """What the machine must not wish."""
        if isinstance(request, c.SetPulse):
            if request.member in self.used:
                self.ensemble.violations.append(f"{request.member} is the id of an earlier life")
            self.used[request.member] = None
        elif any(type(each) is type(request) for each in self._outstanding):
            self.ensemble.violations.append(f"{self.node} asks for a second {type(request).__name__}")
        if isinstance(request, c.Append) and not self._made:
            self.ensemble.violations.append(f"{self.node} appends without a pulse")

    def drop_pulse(self) -> None:
        """Remove our ephemeral."""
        member, self._made = self._made, ""
        if member and self.is_up:
            self._later(partial(self.ensemble.drop_pulse, member))

    # -- for the verdict -----------------------------------------------------------------------

    @property
    def armed(self) -> tuple[str, ...]:
        """Whom this process really watches."""
        return tuple(member for member in self._armed if self.session in self.ensemble.watchers_of(member))
