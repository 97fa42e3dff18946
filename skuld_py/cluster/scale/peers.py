"""What one process does with others beside the log, as its options say: let in, lend, arrive, share.

Four small machines, each off unless its option is on, behind one face for ``membership``. What they come to is
a command for the log, a message, a replica to begin with, or entries to play. With all options off this is the
plain protocol: a join is ``prepare-join``, and every question of another is answered with a no, so that it asks
elsewhere.

Sharing replaces only a member's reading: a process that is no member yet is passed nothing, and reads.

In a cluster that starts all at once there is no member to ask. Each process then waits a while of its own before
it writes the first phase; the first to be in lets in the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from skuld_py.cluster.log.commands import Command, JoinDirect, PrepareJoin
from skuld_py.cluster.log.play import Played
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.scale.arrival import Arrival
from skuld_py.cluster.scale.chance import Draw
from skuld_py.cluster.scale.direct_join import Greeter, Knocking
from skuld_py.cluster.scale.epidemic import Epidemic
from skuld_py.cluster.scale.transfer import Lending
from skuld_py.config.scaling import Scaling
from skuld_py.model.document import Member
from skuld_py.model.events import Received, Send
from skuld_py.model.messages.membership import FetchReplica, JoinMe, NotNow, ReplicaPart, Share, Welcomed

Holds = Callable[[Command], bool]


class Names(Sequence[str]):
    """The nodes of the members, in the order of their ids, looked up one by one: few of thousands are wanted."""

    def __init__(self, replica: Replica) -> None:
        self._roster, self._members = replica.roster, replica.members

    def __len__(self) -> int:
        return len(self._roster)

    def __getitem__(self, at: Any) -> Any:
        return self._members[self._roster[at]].name


class Peers:
    """The four machines of one process. ``replicas``: copies of a task. ``draw(n)`` gives 0..n."""

    def __init__(self, info: Member, cluster_id: str, replicas: int, scaling: Scaling, draw: Draw) -> None:
        self.sharing = Epidemic(info.name, cluster_id, scaling, draw, 0) if scaling.sharing else None
        self._info = info
        self._cluster_id = cluster_id
        self._replicas = replicas
        self._scaling = scaling
        self._draw = draw
        self._me = ""
        self._greeter = Greeter("", cluster_id, scaling)
        self._entry: JoinDirect | None = None
        """Of the greeter, while the outbox holds it."""
        self._knocking: Knocking | None = None
        self._found_ms: int | None = None
        """When to write the first phase if there is still no member to ask."""
        self._lending = Lending(cluster_id, scaling)
        self._arrival: Arrival | None = None
        self._has_arrived = not scaling.transfer
        self._members: Mapping[str, Member] = {}
        """Those of which ``sharing`` was told."""

    # -- lives ---------------------------------------------------------------------------------------

    def live(self, me: str) -> None:
        """The present life; what an earlier one had under way is void."""
        if me == self._me:
            return
        self._me = me
        self._greeter, self._entry = Greeter(me, self._cluster_id, self._scaling), None
        self._knocking = self._found_ms = None
        if self._arrival is not None:
            self._arrival.is_over = True

    def _question(self) -> JoinMe:
        info = self._info
        return JoinMe(self._cluster_id, self._me, info.name, info.host, info.port, info.boot, info.incarnation)

    # -- arriving --------------------------------------------------------------------------------------

    def must_read_pulses(self) -> bool:
        """Whether to read which pulses stand: once, before anything of the log."""
        if self._has_arrived or self._arrival is not None or not self._me:
            return False
        self._arrival = Arrival(self._question(), self._replicas, self._scaling, self._draw)
        return True

    def on_pulses(self, now_ms: int, ids: Sequence[str]) -> list[Send]:
        """They were read."""
        return self._arrival.on_pulses(now_ms, ids) if self._arrival is not None else []

    def arrived(self) -> Replica | None:
        """The replica to begin with, once, if there is one."""
        if self._arrival is None or not self._arrival.is_over:
            return None
        replica, self._arrival, self._has_arrived = self._arrival.replica, None, True
        return replica

    @property
    def is_arriving(self) -> bool:
        """Whether origin and log must not be read yet."""
        return not self._has_arrived

    # -- being let in ----------------------------------------------------------------------------------

    def begin(self, now_ms: int, replica: Replica) -> Sequence[Command | Send]:
        """Ask to be let in; called again after a while if nothing came of it."""
        if not self._scaling.direct_join:
            return [self._first_phase()]
        if self._knocking is not None and self._knocking.welcome is None:
            return []
        self._knocking = None
        if not replica.members:
            if self._found_ms is None:
                self._found_ms = now_ms + self._draw(self._scaling.found_ms)
            return []
        self._found_ms = None
        self._knocking = Knocking(self._cluster_id, self._question(), self._scaling, self._draw, now_ms)
        return []

    def _first_phase(self) -> Command:
        return PrepareJoin(self._me, self._info)

    def _be_let_in(self, now_ms: int, replica: Replica) -> list[Command | Send]:
        if replica.is_known(self._me):
            self._knocking = self._found_ms = None
        if self._found_ms is not None and replica.members:
            return [*self.begin(now_ms, replica), *self._knock(now_ms, replica)]
        if self._found_ms is not None and now_ms >= self._found_ms:
            self._found_ms = None
            return [self._first_phase()]
        return self._knock(now_ms, replica)

    def _knock(self, now_ms: int, replica: Replica) -> list[Command | Send]:
        if self._knocking is None:
            return []
        sends: list[Command | Send] = [*self._knocking.knock(now_ms, Names(replica))]
        if self._knocking.is_given_up:
            self._knocking = None
            sends.append(self._first_phase())
        return sends

    # -- letting in ------------------------------------------------------------------------------------

    def _let_in(self, now_ms: int, replica: Replica, holds: Holds) -> list[Command | Send]:
        wishes: list[Command | Send] = []
        if self._entry is not None and not holds(self._entry):
            self._entry = None
            wishes += self._greeter.on_played(now_ms, replica)
        if self._entry is None:
            self._entry = self._greeter.propose(now_ms, replica)
            wishes += [self._entry] if self._entry is not None else []
        return wishes

    def is_due(self, now_ms: int, replica: Replica, command: Command) -> bool:
        """Whether an entry that lets others in may leave; any other command may."""
        return command != self._entry or self._greeter.is_wanted(now_ms, replica)

    # -- messages --------------------------------------------------------------------------------------

    def received(self, now_ms: int, replica: Replica, event: Received) -> list[Send]:
        """Another process says something."""
        peer, message = event.peer, event.message
        match message:
            case Share() if self.sharing is not None:
                self.sharing.on_share(now_ms, peer, message)
            case JoinMe() if self._scaling.direct_join and self._me:
                return self._greeter.on_join_me(now_ms, peer, message, replica)
            case FetchReplica() if self._scaling.transfer:
                return self._lending.on_fetch(now_ms, peer, message, replica)
            case JoinMe() | FetchReplica():
                return [Send(peer, NotNow(message.cluster_id, message.joiner, "off"))]
            case Welcomed() | NotNow() | ReplicaPart():
                return self._answered(now_ms, peer, message)
        return []

    def _answered(self, now_ms: int, peer: str, message: Welcomed | NotNow | ReplicaPart) -> list[Send]:
        if self._arrival is not None:
            return self._arrival.received(now_ms, peer, message)
        if self._knocking is not None and isinstance(message, Welcomed):
            self._knocking.on_welcomed(peer, message)
        elif self._knocking is not None and isinstance(message, NotNow):
            self._knocking.on_not_now(now_ms, peer, message)
        return []

    # -- entries ---------------------------------------------------------------------------------------

    def take(self, now_ms: int, position: int) -> list[tuple[int, bytes]]:
        """Entries that others passed on, behind the one at ``position``, which was played last."""
        if self.sharing is None:
            return []
        self.sharing.advance(now_ms, position)
        return self.sharing.take(now_ms)

    def on_appended(self, now_ms: int, position: int, raw: bytes) -> None:
        """Our own entry stands."""
        if self.sharing is not None and raw:
            self.sharing.on_appended(now_ms, position, raw)

    def on_played(self, played: Played) -> None:
        """An entry was played, wherever it came from."""
        if self.sharing is not None and self.sharing.parting.is_due(played.position):
            self.sharing.parting.note_own(played.position, bytes.fromhex(played.replica.digest()))

    def has_parted(self) -> bool:
        """Whether the replica must be built anew."""
        return self.sharing is not None and self.sharing.parting.has_parted()

    def _share(self, now_ms: int, replica: Replica) -> list[Send]:
        if self.sharing is None:
            return []
        if replica.members is not self._members:
            self._members = replica.members
            self.sharing.set_peers(Names(replica))
        return self.sharing.flush(now_ms)

    # -- after each step -------------------------------------------------------------------------------

    def go_on(self, now_ms: int, replica: Replica, holds: Holds) -> list[Command | Send]:
        """What is due. ``holds`` says whether a command is still on its way to being played."""
        wishes: list[Command | Send] = [*self._share(now_ms, replica)]
        if self._arrival is not None:
            return [*wishes, *self._arrival.go_on(now_ms)]
        return [*wishes, *self._be_let_in(now_ms, replica), *self._let_in(now_ms, replica, holds)]

    def deadline(self) -> int | None:
        """When to call ``go_on``."""
        machines = (self._arrival, self._knocking, self._greeter, self.sharing)
        due = [each.deadline() for each in machines if each is not None]
        return min((due_ms for due_ms in (*due, self._found_ms) if due_ms is not None), default=None)
