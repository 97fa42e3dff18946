"""ZooKeeper's sessions, and its clients as processes see them.

The server knows sessions; the client knows only what it was told. When the connection breaks, the
client hears SUSPENDED after a while and LOST not before it has reconnected, maybe long after the
server has ended the session and others saw the process go. There are two servers, one with all that was written
and one that is behind it; a fault says which clients are at the second one, and how far that is behind. What a
client sees may be old there, though never older than what it has seen before. Without a quorum nothing is read,
written or expired, and every session has its whole timeout again when there is one.

Source: experiments with kazoo 2.11 against frozen servers (the project's reliability notes 2.5).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import attrs

from skuld_py.model.coordination import CoordinationEvent
from skuld_py.model.document import Member
from skuld_py.model.events import Event, KeyTold, Session, SessionChanged
from skuld_py.simulation.world.scheduler import Scheduler
from skuld_py.simulation.world.zookeeper.wishes import Wanted, Wishes

News = Event | CoordinationEvent
Deliver = Callable[[News], None]


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
    doubt: float = 0.0
    """Probability of an append whose answer is lost. Each that breaks its connection may cost a session, and every
    lost session several appends: beyond a tenth a cluster is busy with itself."""
    skipped: float = 0.0
    """Probability that a number of the log is used up for no entry."""
    doubled: float = 0.0
    """Probability of an append that is made a second time, up to ``late_ms`` later."""
    late_ms: int = 0
    slow: float = 0.0
    """Probability of a leg that takes up to ``slow_ms``."""
    slow_ms: int = 0
    lagging: float = 0.0
    """Probability of a look that goes to a server which is behind by up to ``lag_ms``."""
    lag_ms: int = 0
    has_document_watches: bool = True
    """Whether a client that has read a document hears that it has changed."""


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
    """How new what this client has seen is; never goes back."""
    breaks: int = 0
    """Counts losses of contact, so that a timer of an earlier one does nothing."""
    asked_ms: int = 0
    told_ms: int = 0
    losses: int = 0
    """How often the client said LOST; and how many of these the process was handed."""
    handed: int = 0
    appends_slowly_until_ms: int = 0
    """An append that leaves until then takes seconds, and what is asked after it."""
    wishes: Wishes = attrs.field(factory=Wishes)


class Service:
    """The servers as far as sessions go, and every process's connection to them."""

    def __init__(self, scheduler: Scheduler, random: Random, options: RegistryOptions) -> None:
        self.options = options
        self.counts: Counter[str] = Counter()
        self.is_frozen = False
        self.is_steady = False
        """Whether answers may be lost but connections last: all faults are over."""
        self._scheduler = scheduler
        self._random = random
        self.is_quorate = True
        self._lags: dict[str, int] = {}
        self._sessions = 0
        self._open: dict[int, Connection] = {}
        self._connections: list[Connection] = []
        self._key: KeyTold | None = None

    # -- connections ---------------------------------------------------------------------------

    def connect(self, member: Member, deliver: Deliver, starts: int = 1) -> Connection:
        """A process starts its client; ``starts``: how many starts its data directory has counted."""
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
        """It goes on: first with what lies in its buffers, then with the sessions that still have time left."""
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

    def tell_key(self, key: KeyTold) -> None:
        """An operator has changed the keys that prove claims: those that are connected are told, others when they
        are back."""
        self._key = key
        for connection in self._connections:
            self._scheduler.after(self._watch_delay(), self._tell_key, connection)

    def _tell_key(self, connection: Connection) -> None:
        if self._key is not None and self._is_served(connection):
            self._tell(connection, self._key)

    def heal(self) -> None:
        """End all of this."""
        self.is_steady = True
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

    # -- what else is kept in ZooKeeper says what it does then -------------------------------------

    def _flush(self) -> None:
        """Servers that run again carry out what they find in their buffers."""
        raise NotImplementedError

    def _go_on(self, connection: Connection) -> None:
        """A client is back whose process has not noticed that it was away."""
        raise NotImplementedError

    def _begin_anew(self, connection: Connection) -> None:
        """A client is back, or connected for the first time, and tells its process."""
        raise NotImplementedError

    def _drop_ephemerals(self, session: int) -> None:
        """A session has ended."""
        raise NotImplementedError

    # -- sessions ------------------------------------------------------------------------------

    def _change_contact(self, connection: Connection) -> None:
        """Plan what follows from the contact there is now; what was planned before is void."""
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
        if self._open.pop(session, None) is not None:
            self.counts["session ended"] += 1
            self._drop_ephemerals(session)

    def _suspend(self, connection: Connection, breaks: int) -> None:
        if connection.breaks == breaks and connection.known is Session.CONNECTED:
            connection.known = Session.SUSPENDED
            self._tell(connection, SessionChanged(Session.SUSPENDED))

    def _reconnect(self, connection: Connection, breaks: int) -> None:
        """The client reaches the service: it keeps its session, or learns that it has none."""
        if connection.breaks != breaks or not self._is_reachable(connection):
            return
        is_kept = connection.session in self._open
        if is_kept and connection.known is Session.CONNECTED:
            self._go_on(connection)
            return
        if not is_kept:
            self._renew_session(connection)
        connection.known = Session.CONNECTED
        self._begin_anew(connection)

    def _renew_session(self, connection: Connection) -> None:
        if connection.known is Session.CONNECTED:
            self._tell(connection, SessionChanged(Session.SUSPENDED))
        if connection.session:
            self._tell(connection, SessionChanged(Session.LOST))
            connection.losses += 1
            connection.wishes.void()
        self._sessions += 1
        connection.session = self._sessions
        self._open[connection.session] = connection
        connection.seen_ms = self._scheduler.now_ms

    def _is_reachable(self, connection: Connection) -> bool:
        return self._is_serving and not (connection.is_cut or connection.is_broken or connection.is_closed)

    def _is_served(self, connection: Connection) -> bool:
        return self._is_reachable(connection) and connection.session in self._open

    def _leg(self) -> int:
        if self.options.slow and self._random.random() < self.options.slow:
            return self._random.randint(1, self.options.slow_ms)
        return 1 + int(self._random.expovariate(1.0) * self.options.leg_ms)

    def _watch_delay(self) -> int:
        return 1 + int(self._random.expovariate(1.0) * self.options.watch_ms)

    def _lag(self, connection: Connection) -> int:
        lag_ms = self._lags.get(connection.member.name, 0)
        if self.options.lagging and self._random.random() < self.options.lagging:
            lag_ms = max(lag_ms, self._random.randint(1, self.options.lag_ms))
        return lag_ms

    def _see(self, connection: Connection, least_ms: int = 0) -> int:
        """How new what a client sees is from now on: as new as its server, and not older than before."""
        connection.seen_ms = max(connection.seen_ms, self._scheduler.now_ms - self._lag(connection), least_ms)
        return connection.seen_ms

    # -- what passes between a client and its server -----------------------------------------------

    def _ask(self, connection: Connection, action: Callable[..., None], *arguments: object) -> None:
        """A request on its way; one behind the other."""
        connection.asked_ms = max(connection.asked_ms + 1, self._scheduler.now_ms + self._leg())
        self._scheduler.at(connection.asked_ms, action, connection, *arguments)

    def _tell(self, connection: Connection, event: News) -> None:
        """News on the way to a client; one behind the other."""
        connection.told_ms = max(connection.told_ms + 1, self._scheduler.now_ms + self._leg())
        self._scheduler.at(connection.told_ms, self._hand_over, connection, event)

    def _answer(self, connection: Connection, event: News, otherwise: News | None, wanted: Wanted | None = None
                ) -> None:
        """An answer on its way. If it is lost the client makes ``otherwise`` of that, or asks again when it is
        back. ``wanted``: what it answers, where that may be void by then."""
        if connection.is_choking:
            connection.is_choking = False
            self.counts["answer too large"] += 1
            self._break(connection, self._leg() * 3)
            if otherwise is not None:
                self._fail_later(connection, otherwise, wanted)
            return
        connection.told_ms = max(connection.told_ms + 1, self._scheduler.now_ms + self._leg())
        self._scheduler.at(connection.told_ms, self._arrive, connection, event, otherwise, wanted)

    def _arrive(self, connection: Connection, event: News, otherwise: News | None, wanted: Wanted | None) -> None:
        if connection.is_closed or (wanted is not None and not connection.wishes.holds(wanted)):
            return
        if self._is_reachable(connection):
            if wanted is not None:
                del connection.wishes.outstanding[type(wanted.effect)]
                if wanted.is_stale:
                    connection.wishes.mistaken[type(wanted.effect)] = None
            connection.deliver(event)
        elif otherwise is not None:
            self._fail_later(connection, otherwise, wanted)

    def _fail_later(self, connection: Connection, event: News, wanted: Wanted | None = None) -> None:
        """The client gives up waiting."""
        delay_ms = self._random.randint(1, max(1, self.options.session_ms // 3))
        connection.told_ms = max(connection.told_ms + 1, self._scheduler.now_ms + delay_ms)
        self._scheduler.at(connection.told_ms, self._give_up, connection, event, wanted)

    def _give_up(self, connection: Connection, event: News, wanted: Wanted | None) -> None:
        if wanted is not None:
            if not connection.wishes.holds(wanted):
                return
            del connection.wishes.outstanding[type(wanted.effect)]
        self._hand_over(connection, event)

    def _hand_over(self, connection: Connection, event: News) -> None:
        if not connection.is_closed:
            connection.handed += event == _LOST
            connection.deliver(event)

    def _break(self, connection: Connection, back_ms: int) -> None:
        """The connection breaks, and is whole again some time later."""
        connection.is_broken = True
        self._change_contact(connection)
        self._scheduler.after(back_ms, self._repair, connection)

    def _repair(self, connection: Connection) -> None:
        connection.is_broken = False
        if not connection.is_cut:
            self.mend(connection)


_LOST = SessionChanged(Session.LOST)
