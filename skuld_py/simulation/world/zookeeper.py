"""ZooKeeper's sessions and lists, and its clients, as a node sees them through the registry port.

The server knows sessions; the client knows only what it was told. When the connection breaks, the
client hears SUSPENDED after a while and LOST not before it has reconnected, maybe long after the
server has ended the session and others saw the node go. Watches tell late, several changes as one, and
what they tell may be old when the client's server lags; a client never sees an older list after a newer
one. There are two servers, one with all that was written and one that is behind it; a fault says which clients
are at the second one, and how far that is behind. Without a quorum nothing is read, written or expired, and
every session has its whole timeout again when there is one.

A client says that it is connected only when it has told the lists, as the real adapter does.

Source: experiments with kazoo 2.11 against frozen servers (the project's reliability notes 2.5).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import attrs

from skuld_py.model.document import Member
from skuld_py.model.events import Event, MembersChanged, NodesChanged, Session, SessionChanged
from skuld_py.model.registration import Registration
from skuld_py.simulation.world.listings import Listing
from skuld_py.simulation.world.scheduler import Scheduler

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


@attrs.define(eq=False)
class Connection:
    """One process's client. ``session`` is the server's; ``known`` what the client was told."""

    member: Member
    deliver: Deliver
    starts: int = 0
    session: int = 0
    known: Session = Session.LOST
    is_cut: bool = False
    is_broken: bool = False
    """Its server went, or dropped it; it is looking for another one."""
    is_stalled: bool = False
    """Its server stands still with what it was sent, and will find it in its buffer."""
    is_silent: bool = False
    """The process stands still: it sends no pings, yet what is sent to it waits in its socket."""
    is_closed: bool = False
    is_choking: bool = False
    """The next answer is more than the client takes: it breaks the connection instead."""
    seen_ms: int = 0
    """How new what this client has seen is, lists and documents; never goes back."""
    breaks: int = 0
    """Counts losses of contact, so that a timer of an earlier one does nothing."""
    asked_ms: int = 0
    told_ms: int = 0
    is_watch_due: dict[str, bool] = attrs.field(factory=dict)
    is_missed: dict[str, bool] = attrs.field(factory=dict)
    """News that could not be told, to be told when contact is back although nobody noticed its loss."""


class Service:
    """The servers as far as sessions and lists go, and everybody's connection to them."""

    def __init__(self, scheduler: Scheduler, random: Random, options: RegistryOptions) -> None:
        self.options = options
        self.counts: Counter[str] = Counter()
        self.is_frozen = False
        self._scheduler = scheduler
        self._random = random
        self.is_quorate = True
        self._registrations: dict[str, Registration] = {}
        self._nodes = Listing[str]()
        self._leaving = Listing[str]()
        self._members = Listing[Member]()
        self._owners: dict[str, int] = {}
        """The session behind each member."""
        self._lags: dict[str, int] = {}
        self._sessions = 0
        self._open: dict[int, Connection] = {}
        self._connections: list[Connection] = []

    # -- connections ---------------------------------------------------------------------------

    def register(self, name: str) -> None:
        """Make a node known before it has ever started."""
        self._registrations[name] = Registration()
        self._nodes.put(self._scheduler.now_ms, name, name)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Who is registered now."""
        return self._nodes.at(self._scheduler.now_ms)

    def is_member(self, name: str) -> bool:
        """Whether a session stands under this name."""
        return name in self._members

    def registration(self, name: str) -> Registration | None:
        """What is registered under a node's name."""
        return self._registrations.get(name)

    def set_leaving(self, name: str, is_leaving: bool) -> None:
        """An operator takes a node out: it owns nothing from now on, and nobody forgets its data; or back in."""
        known = self._registrations.get(name)
        if known is not None and known.is_leaving != is_leaving:
            self._registrations[name] = attrs.evolve(known, is_leaving=is_leaving)
            old, new = (self._nodes, self._leaving) if is_leaving else (self._leaving, self._nodes)
            old.pop(self._scheduler.now_ms, name)
            new.put(self._scheduler.now_ms, name, name)
            self._tell_all("nodes")

    def connect(self, member: Member, deliver: Deliver, starts: int = 1) -> Connection:
        """A process starts its client, having committed so many starts of its data directory."""
        connection = Connection(member, deliver, starts)
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
        if self._is_serving:
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

    def move(self, connection: Connection) -> None:
        """Its server goes; it finds another one, mostly in time to keep its session."""
        if self._is_reachable(connection):
            self.counts["session moved"] += 1
            self._break(connection, self._random.randint(1, max(1, self.options.session_ms // 2)))

    def choke(self, connection: Connection) -> None:
        """Let the next answer be too large for its client, as beyond ``jute.maxbuffer``."""
        connection.is_choking = True

    def lag(self, name: str, lag_ms: int) -> None:
        """Let a client be at the server that is behind, by so much; 0: at the other one again."""
        self._lags[name] = lag_ms

    def freeze(self) -> None:
        """The whole service stands still: nothing is answered, nothing expires, buffers fill."""
        self.is_frozen = True
        for connection in self._connections:
            self._change_contact(connection)

    def thaw(self) -> None:
        """It goes on: first with what lies in its buffers, then with whoever still has time left."""
        self.is_frozen = False
        self._serve_again()

    def lose_quorum(self) -> None:
        """Most servers are gone: the others close all connections and carry out nothing."""
        self.is_quorate = False
        for connection in self._connections:
            self._change_contact(connection)

    def regain_quorum(self) -> None:
        """They are back: what one of them had logged counts, and all sessions have their time again."""
        self.is_quorate = True
        self._serve_again()

    def heal(self) -> None:
        """End all of this."""
        self._lags.clear()
        if not self._is_serving:
            self.is_frozen, self.is_quorate = False, True
            self._serve_again()

    @property
    def _is_serving(self) -> bool:
        return self.is_quorate and not self.is_frozen

    def _serve_again(self) -> None:
        if self._is_serving:
            self._flush()
        dead = [connection for connection in self._open.values() if connection.is_closed]
        for connection in [*self._connections, *dead]:
            self._change_contact(connection)

    def _flush(self) -> None:
        """Servers that run again carry out what they find in their buffers."""
        raise NotImplementedError

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
        if self._is_serving:
            left_ms = session_ms - self._random.randint(0, session_ms // 3)
            self._scheduler.after(left_ms, self._time_out, connection, connection.session, breaks)

    def _time_out(self, connection: Connection, session: int, breaks: int) -> None:
        if connection.breaks == breaks and self._is_serving:
            self._end_session(session)

    def _end_session(self, session: int) -> None:
        connection = self._open.pop(session, None)
        if connection is None:
            return
        self.counts["session ended"] += 1
        name = connection.member.name
        if self._owners.get(name) == session:
            del self._owners[name]
            self._members.pop(self._scheduler.now_ms, name)
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
        for what in WATCHES:
            self._tell_list(connection, what)
        self._tell(connection, SessionChanged(Session.CONNECTED))

    def _renew_session(self, connection: Connection, is_first: bool) -> None:
        if connection.known is Session.CONNECTED:
            self._tell(connection, SessionChanged(Session.SUSPENDED))
        if not is_first:
            self._tell(connection, SessionChanged(Session.LOST))
        self._sessions += 1
        connection.session = self._sessions
        self._open[connection.session] = connection
        member, name = connection.member, connection.member.name
        now_ms = self._scheduler.now_ms
        if name not in self._registrations:
            self.register(name)
            self._tell_all("nodes")
        self._registrations[name] = attrs.evolve(
            self._registrations[name], host=member.host, port=member.port, incarnation=member.incarnation,
            starts=connection.starts)
        self._members.put(now_ms, name, connection.member)
        self._owners[name] = connection.session
        connection.seen_ms = now_ms
        self._tell_all("members")

    def _is_reachable(self, connection: Connection) -> bool:
        return self._is_serving and not (connection.is_cut or connection.is_broken or connection.is_closed)

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
        """Tell the state that the client's server has, whatever number of changes led to it."""
        connection.is_watch_due[what] = False
        if not self._is_reachable(connection) or connection.session not in self._open:
            connection.is_missed[what] = True
            return
        self._tell_list(connection, what)

    def _tell_list(self, connection: Connection, what: str) -> None:
        lag_ms = self._lag(connection)
        seen_ms = self._see(connection)
        listing: Listing[Member] | Listing[str] = self._members if what == "members" else self._nodes
        if listing.is_newer(seen_ms) or (what == "nodes" and self._leaving.is_newer(seen_ms)):
            self.counts["old list told"] += 1
            self._plan_watch(connection, what, lag_ms)
        self._tell(connection, MembersChanged(self._members.at(seen_ms)) if what == "members"
                   else NodesChanged(self._nodes.at(seen_ms), self._leaving.at(seen_ms)))

    def _lag(self, connection: Connection) -> int:
        return self._lags.get(connection.member.name, 0)

    def _see(self, connection: Connection, least_ms: int = 0) -> int:
        """How new what a client sees is from now on: as new as its server, and not older than before."""
        connection.seen_ms = max(connection.seen_ms, self._scheduler.now_ms - self._lag(connection), least_ms)
        return connection.seen_ms

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

    def _break(self, connection: Connection, back_ms: int) -> None:
        """The connection breaks, and is whole again some time later."""
        connection.is_broken = True
        self._change_contact(connection)
        self._scheduler.after(back_ms, self._repair, connection)

    def _repair(self, connection: Connection) -> None:
        connection.is_broken = False
        if not connection.is_cut:
            self.mend(connection)
