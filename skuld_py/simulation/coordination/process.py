"""One process: its machine, what it is told and when, and the ticks that it asks for.

It may stand still; what happens meanwhile is told when it goes on. What it asks for between a loss of its session
and the moment at which it is told of that is void. What it wants computed takes a while, in which it goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import attrs

from skuld_py.cluster.member.membership import Effect, Event, Membership
from skuld_py.cluster.scale.decisions import computed
from skuld_py.model import coordination as c
from skuld_py.model.events import (
    Compute,
    Computed,
    MembersChanged,
    NodesChanged,
    Received,
    Send,
    Session,
    SessionChanged,
    Ticked,
)
from skuld_py.model.messages.message import Message
from skuld_py.simulation.coordination.ensemble import Ensemble
from skuld_py.simulation.coordination.weather import Weather
from skuld_py.simulation.trace import Trace
from skuld_py.simulation.world.scheduler import Scheduler

Request = c.SetPulse | c.ReadPulses | c.ReadOrigin | c.ReadEntries | c.Append | c.WriteOrigin
UNTOLD = (c.EntriesRead, Received, Ticked, Computed, c.ReadEntries, c.Append, Send, Compute)
"""Events and effects that would fill the trace; appends show when they are made."""
COMPUTING_MS = 3_000
"""Longest time that a computation takes."""


@attrs.define(eq=False)
class Process:
    """``node`` is its name; ``make`` gives a machine for each start."""

    node: str
    make: Callable[[str], Membership]
    ensemble: Ensemble
    scheduler: Scheduler
    trace: Trace
    weather: Weather
    random: Random
    post: Callable[[str, str, Message], None]
    """Takes a message of a node to another one."""
    look: Callable[[Process], None]
    """Called after each step."""
    machine: Membership | None = None
    is_paused: bool = False
    is_told_connected: bool = False
    """What the node machine was told."""
    told_nodes: NodesChanged | None = None
    """The same, of the nodes."""
    _losses: int = 0
    """Losses of the session that the machine has not been told yet."""
    _held: list[Event] = attrs.field(factory=list)
    """Events while it stands still."""
    _wake_ms: int | None = None

    def note(self, what: str, whom: str, detail: object = "") -> None:
        """A line of the trace."""
        self.trace.note(self.scheduler.now_ms, self.node, what, whom, detail)

    def launch(self) -> None:
        """A new machine."""
        self.machine = self.make(self.node)
        self.note("start", "")

    def kill(self) -> None:
        """No machine any more."""
        self.note("crash", self.machine.me if self.machine is not None else "")
        self.machine, self.is_paused, self.is_told_connected, self._losses = None, False, False, 0
        self.told_nodes = None
        self._held.clear()

    def stand_still(self, ms: int) -> None:
        """It takes no event for so long."""
        self.is_paused = True
        self.scheduler.after(ms, self._resume, self.machine)

    def _resume(self, machine: Membership) -> None:
        if machine is not self.machine:
            return
        self.is_paused = False
        held, self._held = self._held, []
        for event in held:
            self._tell(event)
        self._tick()

    # -- events and effects --------------------------------------------------------------------

    def tell(self, event: Event) -> None:
        """An event for the machine, kept while the process stands still."""
        if self.machine is not None and self.is_paused:
            self._held.append(event)
        elif self.machine is not None:
            self._tell(event)

    def _tell(self, event: Event) -> None:
        if self.machine is None:
            return
        if not isinstance(event, UNTOLD):
            self.note("event", self.machine.me, event)
        if event == SessionChanged(Session.LOST):
            self._losses -= 1
        self.act(self.machine.step(self.scheduler.now_ms, event))

    def act(self, effects: list[Effect]) -> None:
        """Carry out what the machine wishes."""
        for effect in effects:
            if not isinstance(effect, UNTOLD):
                self.note("wish", "", effect)
            match effect:
                case c.Announce(event):
                    self._heed(event)
                case Send(peer, message):
                    self.post(self.node, peer, message)
                case c.WatchPulses(members):
                    if not self._losses:
                        self.watch(members)
                case c.SweepEntries():
                    pass  # here nodes have no entries
                case c.DropPulse():
                    self.drop_pulse()
                case Compute():
                    work_ms = self.random.randint(1, COMPUTING_MS)
                    self.scheduler.after(work_ms, self._computed, self.machine, effect)
                case _:
                    if not self._losses:
                        self.begin(effect)
        self.look(self)
        self._plan()

    def _heed(self, news: MembersChanged | NodesChanged | SessionChanged) -> None:
        if isinstance(news, SessionChanged):
            self.is_told_connected = news.session is Session.CONNECTED
        elif isinstance(news, NodesChanged):
            self.told_nodes = news

    def _computed(self, machine: Membership | None, asked: Compute) -> None:
        if machine is self.machine:
            self.tell(computed(asked))

    def begin(self, request: Request) -> None:
        """Do what is answered."""
        raise NotImplementedError

    def watch(self, members: tuple[str, ...]) -> None:
        """Watch exactly these."""
        raise NotImplementedError

    def drop_pulse(self) -> None:
        """Remove our ephemeral."""
        raise NotImplementedError

    # -- time ----------------------------------------------------------------------------------

    def _plan(self) -> None:
        if self.ensemble.violations:
            return  # a machine that is broken may ask for ever
        due_ms = None if self.machine is None else self.machine.deadline()
        if due_ms is not None and (self._wake_ms is None or due_ms < self._wake_ms):
            self._wake_ms = max(due_ms, self.scheduler.now_ms)
            self.scheduler.at(self._wake_ms, self._wake)

    def _wake(self) -> None:
        if self._wake_ms is not None and self.scheduler.now_ms >= self._wake_ms:
            self._wake_ms = None
            self._tick()

    def _tick(self) -> None:
        machine, now_ms = self.machine, self.scheduler.now_ms
        if machine is None or self.is_paused:
            return
        due_ms = machine.deadline()
        if due_ms is not None and due_ms <= now_ms:
            self._tell(Ticked())
            again_ms = machine.deadline()
            if again_ms is not None and again_ms <= now_ms:
                self.ensemble.violations.append(f"{self.node} wants the same tick again")
        self._plan()
