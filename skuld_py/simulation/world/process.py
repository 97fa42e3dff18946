"""A node as a process: it drains its inbox, steps, commits, speaks; and may die between any two of these.

The machine is the real one, a node with its membership, and takes its turns through ``take_turn``, the very
function of the real loop. What the log says of the cluster is heeded before anything of the turn leaves, as there:
which peers the process speaks with and which it hears. A commit takes time while messages without a promise are
already on their way. A crash before it loses the staged writes and all promises; a crash right after it loses only
the promises. A commit that fails ends the process. A paused process keeps its memory while its inbox fills and its
clock runs on.

Each start goes through ``prepare``, and a record that cannot be read through ``note_damage``, as in the real
shell: the partition is marked and the machine started over within the same millisecond.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Protocol

from skuld_py.cluster.member.membership import Membership
from skuld_py.errors import Corrupt
from skuld_py.model.coordination import Announce
from skuld_py.model.document import Member
from skuld_py.model.events import MembersChanged, NodesChanged, Session, SessionChanged, Ticked
from skuld_py.model.memory_store import MemoryStore
from skuld_py.node.life.identity import Start
from skuld_py.node.life.start import note_damage
from skuld_py.node.node import Node
from skuld_py.node.process import Told, Wish
from skuld_py.node.turn import Machine, take_turn
from skuld_py.simulation.world.clock import Clock
from skuld_py.simulation.world.scheduler import Action, Scheduler
from skuld_py.simulation.world.zookeeper.sessions import Connection

TICKS_MAX = 1_000
"""This many turns in one millisecond without any event mean a machine that spins."""

FAILURES_MAX = 100
"""This many bad records in one millisecond mean that scrubbing does not get rid of them."""


class CrashPoint(Enum):
    """Where in its next turn that writes a process dies."""

    BEFORE_COMMIT = "before commit"
    AFTER_COMMIT = "after commit"


class Body(Machine[Told, Wish], Protocol):
    """The machine of a process."""

    def depart(self, now_ms: int) -> Sequence[Wish]:
        """Begin to end cleanly."""

    @property
    def is_out(self) -> bool:
        """Whether it has, as far as it depends on the machine."""


class World(Protocol):
    """What surrounds a process."""

    scheduler: Scheduler
    partitions: int

    def prepare(self, process: Process) -> Start:
        """Settle who the node is by what is registered, and scrub its store; commits."""

    def build(self, process: Process, member: Member) -> Body:
        """Make the machine of a fresh process."""

    def connect(self, process: Process, member: Member) -> Connection:
        """Open its registry session."""

    def disconnect(self, connection: Connection) -> None:
        """The registry's side of a death."""

    def before_turn(self, process: Process, events: Sequence[Told]) -> None:
        """Look at what a machine is about to take."""

    def commit_ms(self, process: Process) -> int:
        """How long this commit takes."""

    def before_commit(self, process: Process) -> None:
        """Look at what is about to become durable."""

    def let_out(self, process: Process, effects: Sequence[Wish]) -> None:
        """Let effects leave."""

    def note(self, who: str, what: str, whom: str = "", detail: object = "") -> None:
        """Add to the trace."""


class Process:
    """One node: a store and a clock that outlive it, and a machine that does not."""

    def __init__(self, name: str, world: World, clock: Clock, store: MemoryStore) -> None:
        self.name = name
        self.clock = clock
        self.store = store
        self.machine: Body | None = None
        self.node: Node | None = None
        """The machine's node, and its membership, for observers."""
        self.membership: Membership | None = None
        self.connection: Connection | None = None
        self.members: dict[str, None] = {}
        """The names of the live nodes, as the log says: those that it writes to."""
        self.placed: dict[str, None] = {}
        """Nodes that are placed, or were: it hears these, too."""
        self.losses = 0
        """Losses of its session that it had been told of when its last turn began."""
        self.is_paused = False
        self.is_stopping = False
        """Whether it was told to end, and hands over what it leads."""
        self.boots = 0
        self.starts = 0
        """How often it has started on its data directory."""
        self.turns = 0
        self.crash_point: CrashPoint | None = None
        self.is_disk_full = False
        """Whether every commit fails."""
        self.on_crash: Callable[[], None] = lambda: None
        """What the next crash leads to; a restart forgets it."""
        self.supervise: Callable[[], None] = lambda: None
        """What every crash leads to."""
        self._world = world
        self._inbox: list[Told] = []
        self._is_busy = False
        self._is_turn_due = False
        self._wake_ms: int | None = None
        self._armed_ms = 0
        self._due_ms: int | None = None
        """The machine's deadline as of its last turn: it changes with its steps only."""
        self._held: tuple[Action, tuple[object, ...]] | None = None
        self._ticks_at = (-1, 0)
        self._failures_at = (-1, 0)

    @property
    def is_up(self) -> bool:
        """Whether there is a process at all."""
        return self.machine is not None

    @property
    def is_committing(self) -> bool:
        """Whether a commit is under way."""
        return self._is_busy

    # -- life ----------------------------------------------------------------------------------

    def start(self) -> None:
        """A new boot over whatever the store holds."""
        self.boots += 1
        self._inbox, self._is_busy, self._is_turn_due = [], False, False
        self.members, self.placed = {}, {}
        self._wake_ms, self._held = None, None
        self.is_stopping = False
        if self.is_disk_full:
            self._world.note(self.name, "crash")
            self._fall()  # not even its start can be counted
            return
        try:
            found = self._world.prepare(self)
        except Corrupt as problem:
            self._start_over(problem)
            return
        self.starts = found.identity.starts
        member = Member(self.name, "127.0.0.1", 7_000, f"{self.name}.{self.boots}", found.identity.incarnation)
        self._world.note(self.name, "start", member.boot, found)
        try:
            self.machine = self._world.build(self, member)
        except Corrupt as problem:
            self._start_over(problem)
            return
        self.connection = self._world.connect(self, member)
        self._call_later(0, self._settle_in)

    def _start_over(self, problem: Corrupt) -> None:
        """A record cannot be read: what is staged and in memory is void; mark the partition and begin anew."""
        self._world.note(self.name, "corrupt", problem.table, problem.key)
        now_ms = self._world.scheduler.now_ms
        self._failures_at = (now_ms, self._failures_at[1] + 1 if self._failures_at[0] == now_ms else 1)
        if self._failures_at[1] > FAILURES_MAX:
            raise AssertionError(f"{self.name} starts over again and again at {now_ms} ms: {problem}")
        self.store.crash()
        note_damage(self.store, problem, self._world.partitions)
        self.store.commit()
        self.machine = self.node = self.membership = None
        if self.connection is not None:
            self._world.disconnect(self.connection)
            self.connection = None
        self.start()

    def verify(self) -> None:
        """Read all records, so that what cannot be read is met now and not some day."""
        damaged = self.store.damaged()
        while self.machine is not None and damaged is not None:
            self._start_over(Corrupt(*damaged))
            damaged = self.store.damaged()

    def _settle_in(self) -> None:
        self.arm()
        self._plan_turn()

    def stop(self, limit_ms: int) -> None:
        """End as by SIGTERM: begin between two turns, go on until the machine is out of the log, and no longer
        than the limit."""
        if self.machine is not None and not self.is_stopping:
            self.is_stopping = True
            self._world.note(self.name, "stop")
            self._call_later(0, self._depart)
            self._call_later(limit_ms, self.crash)

    def _depart(self) -> None:
        assert self.machine is not None
        if self._is_busy:
            self._call_later(1, self._depart)
            return
        wishes = self.machine.depart(self.clock.read(self._world.scheduler.now_ms))
        self.heed(wishes)
        self._speak([*wishes])

    def crash(self) -> None:
        """Die now."""
        if self.machine is None:
            return
        self._world.note(self.name, "crash")
        self._fall()

    def _fall(self) -> None:
        self.machine = self.node = self.membership = None
        self.is_paused, self.crash_point = False, None
        self.store.crash()
        if self.connection is not None:
            self._world.disconnect(self.connection)
            self.connection = None
        self.on_crash()
        self.supervise()

    def pause(self) -> None:
        """Stand still, as by SIGSTOP."""
        self.is_paused = True
        self._world.note(self.name, "pause")

    def resume(self) -> None:
        """Go on where it stood."""
        self.is_paused = False
        self._world.note(self.name, "resume")
        held, self._held = self._held, None
        self._is_turn_due, self._wake_ms = False, None
        if held is not None:
            held[0](*held[1])
        elif self.machine is not None:
            self._settle_in()

    def _call_later(self, delay_ms: int, action: Action, *arguments: object) -> None:
        """Plan something this boot does; a pause holds it up, a crash drops it."""
        self._world.scheduler.after(delay_ms, self._call, self.boots, action, arguments)

    def _call(self, boot: int, action: Action, arguments: tuple[object, ...]) -> None:
        if boot != self.boots or self.machine is None:
            return
        if not self.is_paused:
            action(*arguments)
        elif action == self._commit:
            self._held = (action, arguments)

    # -- turns ---------------------------------------------------------------------------------

    def receive(self, event: Told) -> None:
        """Something arrives."""
        if self.machine is not None:
            self._inbox.append(event)
            self._plan_turn()

    def _plan_turn(self) -> None:
        if self._inbox and not (self._is_busy or self._is_turn_due or self.is_paused):
            self._is_turn_due = True
            self._call_later(0, self._turn)

    def _turn(self) -> None:
        self._is_turn_due = False
        machine = self.machine
        if self._is_busy or machine is None or not self._inbox:
            return
        events, self._inbox = self._inbox, []
        now_ms = self.clock.read(self._world.scheduler.now_ms)
        self.turns += 1
        self.losses = self._losses_known(events)
        self._world.before_turn(self, events)
        try:
            turn = take_turn(machine, now_ms, events)
        except Corrupt as problem:
            self._start_over(problem)
            return
        self.heed(turn.late)
        if turn.early:
            self._world.let_out(self, turn.early)
        if not self.store.is_staged:
            self._speak(turn.late)
        elif self.is_disk_full or self.crash_point is CrashPoint.BEFORE_COMMIT:
            self.crash()
        else:
            self._is_busy = True
            self._call_later(self._world.commit_ms(self), self._commit, turn.late)

    def _losses_known(self, events: Sequence[Told]) -> int:
        """How many losses of its session the process knew of when it made the wishes of a turn. A loss that it
        hears of amid a turn counts from the next turn on: what it wished before is of the lost session."""
        known = self.connection.handed if self.connection is not None else 0
        return known - events[1:].count(SessionChanged(Session.LOST))

    def heed(self, wishes: Sequence[Wish]) -> None:
        """Note which nodes there are to write to and to hear."""
        for wish in wishes:
            if type(wish) is Announce:
                if isinstance(wish.event, MembersChanged):
                    self.members = dict.fromkeys(member.name for member in wish.event.members)
                elif isinstance(wish.event, NodesChanged):
                    self.placed = dict.fromkeys((*wish.event.nodes, *wish.event.leaving))

    def knows(self, name: str) -> bool:
        """Whether it hears what is said under a name."""
        return name in self.members or name in self.placed

    def _commit(self, late: list[Wish]) -> None:
        self._is_busy = False
        self._world.before_commit(self)
        self.store.commit()
        if self.crash_point is CrashPoint.AFTER_COMMIT:
            self.crash()
        else:
            self._speak(late)

    def _speak(self, late: list[Wish]) -> None:
        if late:
            self._world.let_out(self, late)
        assert self.machine is not None
        if self.is_stopping and self.machine.is_out:
            self.crash()
            return
        self.arm()
        self._plan_turn()

    # -- deadlines -----------------------------------------------------------------------------

    def arm(self) -> None:
        """Have the machine ticked at its deadline. A timer that stands earlier is left to ring."""
        assert self.machine is not None
        self._due_ms = deadline_ms = self.machine.deadline()
        if deadline_ms is None or (self._wake_ms is not None and deadline_ms >= self._armed_ms):
            return
        self._armed_ms = deadline_ms
        at_ms = max(self.clock.when(deadline_ms), self._world.scheduler.now_ms)
        if self._wake_ms is None or at_ms < self._wake_ms:
            self._wake_ms = at_ms
            self._call_later(at_ms - self._world.scheduler.now_ms, self._ring, at_ms)

    def _ring(self, at_ms: int) -> None:
        if self._wake_ms != at_ms:
            return
        self._wake_ms = None
        deadline_ms = self._due_ms
        if deadline_ms is None or self._is_busy:
            return  # armed again when the commit is through
        if self.clock.when(deadline_ms) > at_ms:
            self.arm()
            return
        self._count_ticks(at_ms)
        self._inbox.append(Ticked())
        self._turn()

    def _count_ticks(self, at_ms: int) -> None:
        count = self._ticks_at[1] + 1 if self._ticks_at[0] == at_ms else 1
        self._ticks_at = (at_ms, count)
        if count > TICKS_MAX:
            raise AssertionError(f"{self.name} asks for a tick at {at_ms} ms over and over")

