"""ZooKeeper and its client as a node sees them through the registry port.

The server knows sessions; the client knows only what it was told. When the connection breaks, the
client hears SUSPENDED after a while and LOST not before it has reconnected, maybe long after the
server has ended the session and others saw the node go. A test-and-set whose answer is lost is
UNCERTAIN, and may have been applied, may be applied yet (a frozen server finds it in its buffer),
or never. Watches tell late, and several changes as one.

Requests and answers of one connection keep their order, as ZooKeeper promises; a read is synced.

Source: experiments with kazoo 2.11 against frozen servers (the project's reliability notes 2.5).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import attrs

from skuld_py.model.document import NOBODY, Document, Member
from skuld_py.model.events import (
    DocumentRead,
    DocumentSwapped,
    Event,
    MembersChanged,
    NodesChanged,
    Outcome,
    ReadDocument,
    ReadFailed,
    Session,
    SessionChanged,
    SwapDocument,
)
from skuld_py.simulation.scheduler import Scheduler

Deliver = Callable[[Event], None]
WATCHES = ("nodes", "members")


@attrs.frozen
class RegistryOptions:
    """How the service behaves: milliseconds, and the probability that an applied swap looks uncertain."""

    session_ms: int = 3_000
    leg_ms: int = 2
    """Mean of one way between client and server."""
    watch_ms: int = 20
    """Mean delay until a watch tells."""
    ambiguity: float = 0.0
    failure: float = 0.0
    """Probability of a read that fails."""


@attrs.frozen
class Write:
    """A test-and-set that took effect: together the order of epochs."""

    time_ms: int
    partition: int
    version: int
    document: Document


@attrs.define(eq=False)
class Connection:
    """One process's client. ``session`` is the server's; ``known`` what the client was told."""

    member: Member
    deliver: Deliver
    session: int = 0
    known: Session = Session.LOST
    is_cut: bool = False
    is_stalled: bool = False
    """Its server stands still with what it was sent, and will find it in its buffer."""
    is_silent: bool = False
    """The process stands still: it sends no pings, yet what is sent to it waits in its socket."""
    is_closed: bool = False
    breaks: int = 0
    """Counts losses of contact, so that a timer of an earlier one does nothing."""
    asked_ms: int = 0
    told_ms: int = 0
    is_watch_due: dict[str, bool] = attrs.field(factory=dict)
    is_missed: dict[str, bool] = attrs.field(factory=dict)
    """News that could not be told, to be told when contact is back although nobody noticed its loss."""


class Registry:
    """The service and everybody's connection to it."""

    def __init__(self, scheduler: Scheduler, random: Random, options: RegistryOptions) -> None:
        self.options = options
        self.documents: dict[int, tuple[int, Document]] = {}
        self.writes: list[Write] = []
        self.counts: Counter[str] = Counter()
        self.is_frozen = False
        self._scheduler = scheduler
        self._random = random
        self._nodes: dict[str, None] = {}
        self._members: dict[str, tuple[Member, int]] = {}
        self._sessions = 0
        self._open: dict[int, Connection] = {}
        self._connections: list[Connection] = []
        self._buffered: list[tuple[Connection, SwapDocument]] = []

    # -- connections ---------------------------------------------------------------------------

    def register(self, name: str) -> None:
        """Make a node known before it has ever started."""
        self._nodes[name] = None

    def connect(self, member: Member, deliver: Deliver) -> Connection:
        """A process starts its client."""
        connection = Connection(member, deliver)
        self._connections.append(connection)
        self._change_contact(connection)
        return connection

    def close(self, connection: Connection) -> None:
        """The process died; the server will notice by the session's timeout."""
        connection.is_closed = True
        self._connections.remove(connection)
        self._change_contact(connection)

    def cut(self, connection: Connection) -> None:
        """Break the network between one process and the service, or make its server stand still."""
        connection.is_cut = True
        connection.is_stalled = self._random.random() < 0.5
        self._change_contact(connection)

    def mend(self, connection: Connection) -> None:
        """Let it through again; the client finds out soon."""
        connection.is_cut = connection.is_stalled = False
        if not self.is_frozen:
            self._flush()
        self._change_contact(connection)

    def silence(self, connection: Connection) -> None:
        """The process stands still, and so do its pings."""
        connection.is_silent = True
        self._change_contact(connection)

    def wake(self, connection: Connection) -> None:
        """The process runs on; whether it still has a session it learns soon, not at once."""
        connection.is_silent = False
        self._change_contact(connection)

    def expire(self, connection: Connection) -> None:
        """The server ends a session under a healthy connection."""
        self._end_session(connection.session)
        self._change_contact(connection)

    def freeze(self) -> None:
        """The whole service stands still: nothing is answered, nothing expires, buffers fill."""
        self.is_frozen = True
        for connection in self._connections:
            self._change_contact(connection)

    def thaw(self) -> None:
        """It goes on: first with what lies in its buffers, then with whoever still has time left."""
        self.is_frozen = False
        self._flush()
        dead = [connection for connection in self._open.values() if connection.is_closed]
        for connection in [*self._connections, *dead]:
            self._change_contact(connection)

    def _flush(self) -> None:
        """Servers that run again carry out what they find in their buffers, if the session still lives."""
        buffered, self._buffered = self._buffered, []
        for connection, swap in buffered:
            if connection.is_stalled:
                self._buffered.append((connection, swap))
            else:
                self.counts["swap uncertain, applied late"] += self._apply(connection, swap)

    def _change_contact(self, connection: Connection) -> None:
        """Plan what follows from who hears whom now; whatever was planned before is void."""
        connection.breaks += 1
        breaks, session_ms = connection.breaks, self.options.session_ms
        is_running = not (connection.is_silent or connection.is_closed)
        if self._is_reachable(connection) and is_running:
            self._scheduler.after(self._leg() * 3, self._reconnect, connection, breaks)
            return
        if is_running:
            patience_ms = self._random.randint(1, max(1, session_ms * 2 // 3))
            self._scheduler.after(patience_ms, self._suspend, connection, breaks)
        if not self.is_frozen:
            left_ms = session_ms - self._random.randint(0, session_ms // 3)
            self._scheduler.after(left_ms, self._time_out, connection, connection.session, breaks)

    def _time_out(self, connection: Connection, session: int, breaks: int) -> None:
        if connection.breaks == breaks and not self.is_frozen:
            self._end_session(session)

    def _end_session(self, session: int) -> None:
        connection = self._open.pop(session, None)
        if connection is None:
            return
        self.counts["session ended"] += 1
        name = connection.member.name
        if name in self._members and self._members[name][1] == session:
            del self._members[name]
            self._tell_all("members")

    def _suspend(self, connection: Connection, breaks: int) -> None:
        if connection.breaks == breaks and connection.known is Session.CONNECTED:
            connection.known = Session.SUSPENDED
            self._tell(connection, SessionChanged(Session.SUSPENDED))

    def _reconnect(self, connection: Connection, breaks: int) -> None:
        """The client reaches the service: it keeps its session, or learns that it has none."""
        if connection.breaks != breaks or not self._is_reachable(connection):
            return
        is_first = connection.session == 0
        if connection.session not in self._open:
            self._renew_session(connection, is_first)
        elif connection.known is Session.CONNECTED:
            for what in WATCHES:
                if connection.is_missed.pop(what, False):
                    self._plan_watch(connection, what, 1)
            return
        connection.known = Session.CONNECTED
        self._tell(connection, SessionChanged(Session.CONNECTED))
        for what in WATCHES:
            self._plan_watch(connection, what, 1)

    def _renew_session(self, connection: Connection, is_first: bool) -> None:
        if connection.known is Session.CONNECTED:
            self._tell(connection, SessionChanged(Session.SUSPENDED))
        if not is_first:
            self._tell(connection, SessionChanged(Session.LOST))
        self._sessions += 1
        connection.session = self._sessions
        self._open[connection.session] = connection
        name = connection.member.name
        if name not in self._nodes:
            self._nodes[name] = None
            self._tell_all("nodes")
        self._members[name] = (connection.member, connection.session)
        self._tell_all("members")

    def _is_reachable(self, connection: Connection) -> bool:
        return not (connection.is_cut or connection.is_closed or self.is_frozen)

    def _leg(self) -> int:
        return 1 + int(self._random.expovariate(1.0) * self.options.leg_ms)

    # -- watches -------------------------------------------------------------------------------

    def _tell_all(self, what: str) -> None:
        for connection in self._connections:
            delay_ms = 1 + int(self._random.expovariate(1.0) * self.options.watch_ms)
            self._plan_watch(connection, what, delay_ms)

    def _plan_watch(self, connection: Connection, what: str, delay_ms: int) -> None:
        if not connection.is_watch_due.get(what):
            connection.is_watch_due[what] = True
            self._scheduler.after(delay_ms, self._fire_watch, connection, what)

    def _fire_watch(self, connection: Connection, what: str) -> None:
        """Tell the present state, whatever number of changes led to it."""
        connection.is_watch_due[what] = False
        if not self._is_reachable(connection) or connection.session not in self._open:
            connection.is_missed[what] = True
            return
        if what == "members":
            members = tuple(member for _, (member, _) in sorted(self._members.items()))
            self._tell(connection, MembersChanged(members))
        else:
            self._tell(connection, NodesChanged(tuple(sorted(self._nodes))))

    def _tell(self, connection: Connection, event: Event) -> None:
        """News on the way to a client; one behind the other."""
        connection.told_ms = max(connection.told_ms + 1, self._scheduler.now_ms + self._leg())
        self._scheduler.at(connection.told_ms, self._hand_over, connection, event, None)

    def _hand_over(self, connection: Connection, event: Event, otherwise: Event | None) -> None:
        if connection.is_closed:
            return
        if otherwise is not None and not self._is_reachable(connection):
            self._fail_later(connection, otherwise)
            return
        connection.deliver(event)

    def _fail_later(self, connection: Connection, event: Event) -> None:
        delay_ms = self._random.randint(1, max(1, self.options.session_ms // 3))
        connection.told_ms = max(connection.told_ms + 1, self._scheduler.now_ms + delay_ms)
        self._scheduler.at(connection.told_ms, self._hand_over, connection, event, None)

    # -- documents -----------------------------------------------------------------------------

    def request(self, connection: Connection, effect: ReadDocument | SwapDocument) -> None:
        """A node's request leaves; it is served in its connection's order."""
        connection.asked_ms = max(connection.asked_ms + 1, self._scheduler.now_ms + self._leg())
        serve = self._read if isinstance(effect, ReadDocument) else self._swap
        self._scheduler.at(connection.asked_ms, serve, connection, effect)

    def _answer(self, connection: Connection, event: Event, otherwise: Event) -> None:
        connection.told_ms = max(connection.told_ms + 1, self._scheduler.now_ms + self._leg())
        self._scheduler.at(connection.told_ms, self._hand_over, connection, event, otherwise)

    def _read(self, connection: Connection, effect: ReadDocument) -> None:
        failed = ReadFailed(effect.partition)
        is_served = self._is_reachable(connection) and connection.session in self._open
        if not is_served or self._random.random() < self.options.failure:
            self._fail_later(connection, failed)
            return
        version, document = self.documents.get(effect.partition, (-1, NOBODY))
        self._answer(connection, DocumentRead(effect.partition, version, document), failed)

    def _swap(self, connection: Connection, effect: SwapDocument) -> None:
        swapped = DocumentSwapped(effect.partition, effect.document.write_id, Outcome.UNCERTAIN)
        if connection.is_stalled or (self.is_frozen and not connection.is_cut):
            self._buffered.append((connection, effect))
            self._fail_later(connection, swapped)
            return
        is_ambiguous = self._random.random() < self.options.ambiguity
        if is_ambiguous and self._random.random() < 0.3:
            self._break(connection)
            self._swap(connection, effect)
            return
        if connection.is_cut or (is_ambiguous and self._random.random() < 0.5):
            self.counts["swap uncertain, not applied"] += 1
            self._fail_later(connection, swapped)
            return
        if connection.session not in self._open:
            self._fail_later(connection, swapped)
            return
        outcome = Outcome.WON if self._apply(connection, effect) else Outcome.LOST
        if is_ambiguous and outcome is Outcome.WON:
            self.counts["swap uncertain, applied"] += 1
            outcome = Outcome.UNCERTAIN
        verdict = attrs.evolve(swapped, outcome=outcome,
                               version=effect.version + 1 if outcome is Outcome.WON else -1)
        self._answer(connection, verdict, swapped)

    def _break(self, connection: Connection) -> None:
        """The connection breaks with a request in the server's buffer, and is whole again some time later."""
        self.counts["connection broken at a swap"] += 1
        self.cut(connection)
        connection.is_stalled = True
        back_ms = self._random.randint(1, self.options.session_ms * 3 // 2)
        self._scheduler.after(back_ms, self.mend, connection)

    def _apply(self, connection: Connection, effect: SwapDocument) -> bool:
        version, _ = self.documents.get(effect.partition, (-1, NOBODY))
        if connection.session not in self._open or version != effect.version:
            return False
        document = Document.decode(effect.document.encode())
        self.documents[effect.partition] = (version + 1, document)
        self.writes.append(Write(self._scheduler.now_ms, effect.partition, version + 1, document))
        return True
