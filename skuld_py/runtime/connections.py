"""Bounds what connections have in flight: bytes that libzmq has read and this process has not received, and bytes
that it was given to send and the other side has not taken.

libzmq counts whole messages (``RCVHWM``, ``SNDHWM``) and bounds frames (``MAXMSGSIZE``). But it keeps the frames
of a message that does not end for as long as they come, and a thousand answers of any size for a client that does
not read; no socket type or option of it counts bytes. So the kernel is asked (``peeking``) how many bytes were
read of each connection and how many the other side has acknowledged. The transport says how many of these it was
handed (``credit``), and how many it handed over (``debit``). Another thread compares (``watcher``). A connection
with too many bytes between the two counts is cut, and libzmq drops what it kept. The bounds:

* a connection of which no whole message was received yet: two envelopes brought;
* every other: as many envelopes as may wait, and one on its way. A queue that is full would slow its sender
  instead, and end the process (see ``transport``);
* as many bytes of untaken answers: before each is handed over ``has_room`` is asked, and an answer that does not
  fit is dropped. A client that takes nothing at all for ``DEAF_S`` is cut; one that asks for much at once, and
  reads, is not;
* all together: while this process has more than ``MEMORY_BYTES`` for itself, the connections that have most in
  flight are cut, in one look as many as the excess needs. An empty frame costs ``FRAME_FACTOR`` times its bytes,
  which shows only in the size of the process; so the bytes of connections of which no message was received count
  that much. A connection with less than ``SLACK_BYTES`` in flight, or one that has brought no more than a
  greeting, is never cut for others. Before any is cut, freed memory is given back, and the bytes of those just cut
  are subtracted, for libzmq frees them a little later: so none is cut for what another had. At most the excess and
  ``SPARE_BYTES`` are subtracted: too high an estimate would let all others grow until memory is next given back.
  What the kernel still has of one that is cut is dropped there (``peeking``): libzmq would read megabytes of it
  before it hears of the end. What is left: a connection that was heard and keeps below ``SLACK_BYTES`` in flight
  may send these as empty frames, and counts for little;
* a message of too many frames, which the transport sees first: its connection is cut (``cut_off``);
* there are ``CONNECTIONS_MAX``, or fewer as the process has few files (``files``). Beyond it one is cut for each
  that has come since the last look: the oldest of those that have said nothing, if they are many, or else the
  client that has been silent for longest. Nodes are not clients: of each that the cluster knows, the connection
  that spoke last in its name stays. What is cut has its file until libzmq closes it. So while a quarter more are
  open than may stand, the gate is shut: nobody new is let in (``gate``).

They are looked at every ``TICK_S``, or as often as ``SHARE`` allows while there is memory left; what can be
brought in that time is added to each bound. While more than half of the memory is left, a tick is ``CALM_TICK_S``:
the half is not filled in that time. What was acknowledged are answers and libzmq's own heartbeats alike, so
whenever more is acknowledged than was handed over, the rest is taken for those.

A connection is named by its file's number, which libzmq tells and may use again: nothing is done to one unless it
is still the same socket, by the kernel's cookie. Rejected: a proxy in front, which copies every byte and cannot
look into encrypted frames; ZMTP of our own on plain sockets, which would have to do CURVE too; one frame for each
message, which binds only clients that keep to it; to cut a client with too many answers at once: one that asks for
much in many threads would be cut again each time it came back.
"""

from __future__ import annotations

import itertools
import logging
import math
import struct
import time
from collections.abc import Mapping
from typing import Any, TypeVar

import attrs
import zmq

from skuld_py.config import FAREWELL_PROTOCOL, PROTOCOL_VERSION
from skuld_py.runtime import peeking
from skuld_py.runtime.digest import Digest
from skuld_py.runtime.files import connections_most
from skuld_py.runtime.gate import Gate

MEMORY_BYTES = 512 << 20
TICK_S = 0.06
CALM_TICK_S = 0.15
SHARE = 1_000
"""Looking takes at most one part in this many of a processor, unless the process grows. Only the processor's time
counts: a look for which the machine stood still must not put off the next one."""
GROWTH_BYTES = 16 << 20
FRAME_FACTOR = 32
"""libzmq keeps 64 bytes for each frame; an empty one is two on the wire."""
GREETING_BYTES = 1 << 10
"""A connection that has brought no more may have only introduced itself."""
SPARE_BYTES = 16 << 20
"""Bytes that the connections just cut are believed to have had beyond the excess, at most."""
GIVE_BACK_S = 0.2
"""How long after a cut memory is given back: by then libzmq has freed what it kept."""
DEAF_S = 5.0
"""A client that takes nothing of what waits for it for this long is cut: heartbeats end a dead one sooner."""
STRANGERS = 8
"""Connections that have said nothing may be one in this many of all; beyond that they make room, and not
clients."""
SLACK_BYTES = 1 << 20
"""For what is under way between the kernel's counts, libzmq's buffers and ours."""
HEARTBEAT_BYTES_S = 20
"""Heartbeats are brought and never received; libzmq's are 16 bytes a second."""
TOLD_S = 10.0
"""How often connections that are cut for one reason are told of: more are counted."""
NO_FILE = -1
NEWS_MAX = 64
"""News taken before connections are counted: a flood of them must not put that off."""
BRIM = 4
"""The gate is shut while one in this many more than may stand are open."""
_ACCEPTED, _GONE = zmq.EVENT_ACCEPTED, (zmq.EVENT_DISCONNECTED, zmq.EVENT_CLOSED)
_NEWS = (zmq.EVENT_LISTENING | zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED
         | zmq.EVENT_MONITOR_STOPPED)
_EVENT = struct.Struct("=Hi")

_log = logging.getLogger(__name__)

Key = TypeVar("Key", int, bytes, str)


@attrs.define(eq=False)
class Connection:
    """An accepted connection. ``heard``: its place in the order in which connections were last heard. ``taken``:
    bytes that the transport was handed of it. ``given``: bytes that libzmq was handed for it, of which
    ``acknowledged`` had been taken when the kernel was asked; ``moved_s``: since when there are as many."""

    number: int
    cookie: bytes
    since_s: float
    heard: int = 0
    taken: int = 0
    given: int = 0
    acknowledged: int = 0
    moved_s: float = 0.0
    client: bytes = b""
    protocol: int = PROTOCOL_VERSION
    """What was spoken on it last."""
    newest: int = 0
    """The newest protocol that was spoken on it."""
    is_told: bool = False
    """Whether a farewell was said on it."""
    is_known: bool = False
    """Whether a whole message of it was received."""
    peer: str = ""
    """The node that speaks on it."""
    is_cut: bool = False

    @property
    def untaken(self) -> int:
        """Bytes of answers that wait for it, by what the kernel said last."""
        return self.given - self.acknowledged

    def note(self, acknowledged: int, now_s: float) -> None:
        """Note how many bytes the other side has taken by now."""
        if acknowledged != self.acknowledged or self.untaken <= SLACK_BYTES:
            self.moved_s = now_s
        self.acknowledged = acknowledged
        self.given = max(self.given, acknowledged)


@attrs.define
class Counters:
    """Connections cut, since the start."""

    greedy: int = 0
    deaf: int = 0
    for_memory: int = 0
    too_long: int = 0
    too_many: int = 0


def news_of(router: zmq.Socket[bytes]) -> zmq.Socket[bytes]:
    """Where libzmq tells of a socket's connections, which is asked for before it listens. libzmq waits when a
    thousand news were not heard."""
    place = f"inproc://news-{int(router.getsockopt(zmq.FD))}"
    router.monitor(place, int(_NEWS))
    news: zmq.Socket[bytes] = router.context.socket(zmq.PAIR)
    news.linger, news.rcvhwm = 0, 1
    news.connect(place)
    return news


class Connections:
    """The connections of a listening socket, of which ``news`` tells. ``envelope_bytes``: the largest message;
    ``queue``: how many may wait. ``doors``: how many sockets share this process's files."""

    def __init__(self, router: zmq.Socket[bytes], news: zmq.Socket[bytes], port: int, envelope_bytes: int,
                 queue: int, doors: int) -> None:
        self.cut = Counters()
        self.stranger_bytes = 2 * envelope_bytes + SLACK_BYTES
        self.known_bytes = (queue + 1) * envelope_bytes + SLACK_BYTES
        self.most = connections_most(doors)
        self.port = port
        self.news = news
        self._memory_bytes = MEMORY_BYTES
        self._open: dict[int, Connection] = {}
        self._clients: dict[bytes, Connection] = {}
        self._peers: dict[str, Connection] = {}
        self._moments = itertools.count(1)
        self._looked_s, self._cost_s, self._size = 0.0, 0.0, peeking.own_bytes()
        self._give_back_s, self._gave_back_s, self._freed = math.inf, -math.inf, 0
        self._router = router
        self._sources: list[tuple[Any, int]] = [(news, int(zmq.POLLIN))]
        self._gate: Gate | None = None
        self._digest = Digest(_log, TOLD_S)

    # -- the transport's thread ------------------------------------------------------------------

    def is_heard(self, client: bytes) -> bool:
        """Whether it has spoken before, so that its connection is known."""
        return client in self._clients

    def credit(self, client: bytes, number: int, size: int) -> None:
        """A whole message of ``size`` bytes was received of this client; ``number`` is its file if it was not
        heard before."""
        connection = self._clients.get(client)
        if connection is None:
            connection = self._introduce(client, number)
        if connection is not None:
            connection.taken += size
            connection.heard = next(self._moments)

    def _introduce(self, client: bytes, number: int) -> Connection | None:
        connection = self._adopt(number) if number != NO_FILE else None
        if connection is not None:
            connection.is_known = True
            connection.client = client
            self._clients[client] = connection
        return connection

    def debit(self, client: bytes, size: int) -> None:
        """``size`` bytes were handed over for this client."""
        connection = self._clients.get(client)
        if connection is not None:
            if connection.untaken <= SLACK_BYTES:
                connection.moved_s = time.monotonic()
            connection.given += size

    def has_room(self, client: bytes, size: int) -> bool:
        """Whether ``size`` bytes may be handed over for this client. Not for an unknown one: it has left, or it
        speaks ZMTP 2, for which libzmq tells no file, so that what it takes cannot be counted."""
        connection = self._clients.get(client)
        if connection is None or connection.is_cut:
            return False
        if connection.untaken + size > self.known_bytes:
            flow = peeking.flow_of(connection.number, connection.cookie)
            if flow is None:
                return False
            connection.note(flow.acknowledged, time.monotonic())
        return connection.untaken + size <= self.known_bytes

    def note_protocol(self, client: bytes, protocol: int) -> None:
        """This client has spoken this protocol."""
        connection = self._clients.get(client)
        if connection is not None:
            connection.protocol = protocol
            connection.newest = max(connection.newest, protocol)

    def protocol_of(self, client: bytes) -> int:
        """What this client has spoken last."""
        connection = self._clients.get(client)
        return PROTOCOL_VERSION if connection is None else connection.protocol

    def mark_peer(self, client: bytes, name: str) -> None:
        """The node of this name speaks on this connection, and on no other one."""
        connection = self._clients.get(client)
        if connection is not None and self._peers.get(name) is not connection:
            connection.peer = name
            self._peers[name] = connection

    def untold(self) -> list[bytes]:
        """Clients that know what a farewell is and were said none yet: they are said one now."""
        found = [connection for connection in [*self._clients.values()] if connection.newest >= FAREWELL_PROTOCOL
                 and not connection.is_told and not connection.peer]
        for connection in found:
            connection.is_told = True
        return [connection.client for connection in found]

    def cut_off(self, client: bytes, why: str) -> None:
        """Cut this client: what it sends is no message, and costs more than it may. One that speaks ZMTP 2 is not
        known."""
        connection = self._clients.get(client)
        if connection is not None and not connection.is_cut:
            self.cut.too_long += 1
            self._end(connection, "too long", why)

    def give_back_soon(self) -> None:
        """Give memory back soon: much was freed, or will be."""
        self._give_back_s = min(self._give_back_s, time.monotonic() + GIVE_BACK_S)

    def end_news(self) -> None:
        """Have libzmq tell no more."""
        self._router.disable_monitor()

    # -- the thread that watches -----------------------------------------------------------------

    def pause_ms(self) -> int:
        """How long its news may be waited for; -1 without end."""
        now_s = time.monotonic()
        self._digest.look(now_s)
        if self._open or self._give_back_s < math.inf:
            return int(1_000 * (TICK_S if 2 * self._size > self._memory_bytes else CALM_TICK_S))
        return self._digest.pause_ms(now_s)

    def heed(self, *, is_told: bool) -> bool:
        """Take some of the news, if there are any; false when there will be no more."""
        for _ in range(NEWS_MAX):
            if not is_told:
                break
            event, number = self._next()
            if event == zmq.EVENT_MONITOR_STOPPED:
                self._digest.close()
                self.news.close()
                return False
            if event == zmq.EVENT_LISTENING:
                self._gate = Gate(number)
            elif event == _ACCEPTED:
                self._adopt(number)
            elif event in _GONE:
                self._note_gone(number)
            is_told = bool(zmq.zmq_poll(self._sources, 0))
        self._make_room()
        self._mind_the_gate()
        return True

    def regard(self, size: int) -> None:
        """Look at what the connections have in flight, if it is time; this process has ``size`` bytes."""
        now_s = time.monotonic()
        if (now_s - self._looked_s >= SHARE * self._cost_s or size - self._size >= GROWTH_BYTES
                or size > self._memory_bytes):
            self._look(now_s, size)

    def hear(self) -> bool:
        """Take one of the news, which is there, and heed it not; false when it was the last."""
        if self._next()[0] != zmq.EVENT_MONITOR_STOPPED:
            return True
        self.news.close()
        return False

    def _next(self) -> tuple[int, int]:
        """The next news: what has happened, and to which file."""
        event, number = _EVENT.unpack(self.news.recv_multipart()[0])
        return event, number

    def _adopt(self, number: int) -> Connection | None:
        """The connection of this file, from now on: that it was accepted may be heard after its first message."""
        cookie = peeking.cookie_of(number, self.port)
        if cookie is None:
            return None
        known = self._open.get(number)
        if known is None or known.cookie != cookie:
            if known is not None:
                self._drop(known)
            now_s = time.monotonic()
            known = Connection(number, cookie, now_s, next(self._moments), moved_s=now_s)
        return self._open.setdefault(number, known)

    def _note_gone(self, number: int) -> None:
        """The connection of this file is gone; another may have the file by now, and have spoken."""
        connection = self._open.get(number)
        if connection is not None and peeking.cookie_of(number, self.port) != connection.cookie:
            self._drop(connection)

    def _drop(self, connection: Connection) -> None:
        """Forget a connection that is gone, but not another one that has its file by now."""
        _forget(self._open, connection.number, connection)
        _forget(self._clients, connection.client, connection)
        _forget(self._peers, connection.peer, connection)

    def _make_room(self) -> None:
        """Cut as many as are too many, those that were silent for longest."""
        if len(self._open) <= self.most:
            return
        standing = [connection for connection in list(self._open.values()) if not connection.is_cut]
        excess = max(0, len(standing) - self.most)
        strangers = [each for each in standing if not each.is_known]
        clients = [each for each in standing if each.is_known and self._peers.get(each.peer) is not each]
        for each in (strangers, clients):
            each.sort(key=lambda connection: connection.heard)
        first = min(excess, max(0, len(strangers) - max(1, self.most // STRANGERS)))
        for leaving in [*strangers[:first], *clients, *strangers[first:]][:excess]:
            if self._end(leaving, "too many", f"there are more than {self.most}"):
                self.cut.too_many += 1

    def _mind_the_gate(self) -> None:
        """Let nobody in while too many are open, and until those that were cut have gone."""
        if self._gate is not None and len(self._open) > self.most + self.most // BRIM:
            self._gate.bar()
        elif self._gate is not None and len(self._open) <= self.most:
            self._gate.unbar()

    def _look(self, now_s: float, size: int) -> None:
        begun_s = time.thread_time()
        held: dict[int, int] = {}
        for number, connection in list(self._open.items()):
            flow = peeking.flow_of(number, connection.cookie)
            if flow is None:
                self._drop(connection)
            elif not connection.is_cut:
                connection.note(flow.acknowledged, now_s)
                beats = int(HEARTBEAT_BYTES_S * (now_s - connection.since_s))
                brought = flow.brought - connection.taken - beats
                if not self._is_ended(connection, brought, now_s):
                    held[number] = _weight(connection, max(0, brought))
        size = self._without_freed(now_s, size)
        if size > self._memory_bytes:
            self._end_greediest(held, size)
        self._looked_s, self._size = time.monotonic(), size
        self._cost_s = time.thread_time() - begun_s

    def _without_freed(self, now_s: float, size: int) -> int:
        """Bytes of this process without those of connections cut lately. Freed memory is given back first, so that
        no connection is cut for it."""
        if now_s >= self._give_back_s:
            self._give_back_s, self._freed = math.inf, 0
        elif size <= self._memory_bytes or now_s < self._gave_back_s + GIVE_BACK_S:
            return size - self._freed
        self._gave_back_s = now_s
        peeking.give_back()
        return peeking.own_bytes() - self._freed

    def _is_ended(self, connection: Connection, brought: int, now_s: float) -> bool:
        """Cut it if it breaks a bound of its own; whether it is cut."""
        if brought > (self.known_bytes if connection.is_known else self.stranger_bytes):
            self.cut.greedy += 1
            self._end(connection, "greedy", f"it has brought {brought} bytes that make no message")
        elif now_s - connection.moved_s > DEAF_S:
            self.cut.deaf += 1
            self._end(connection, "deaf",
                      f"it has taken nothing of {connection.untaken} bytes for {DEAF_S:g} s")
        return connection.is_cut

    def _end_greediest(self, held: Mapping[int, int], size: int) -> None:
        """Cut the connections with most in flight, as many as the excess needs."""
        excess, found = size - self._memory_bytes, 0
        for number in sorted(held, key=lambda number: held[number], reverse=True):
            if found >= excess or not held[number]:
                break
            connection = self._open.get(number)
            if connection is not None:
                self.cut.for_memory += 1
                found += held[number]
                self._end(connection, "for memory", f"this process has {size} bytes, up to {held[number]} of them"
                          f" for what it has brought; {connection.untaken} bytes it has not taken")
        self._freed += min(found, excess + SPARE_BYTES)

    def _end(self, connection: Connection, kind: str, why: str) -> bool:
        """Cut it, unless it is gone or was cut before; whether it is cut now."""
        if connection.is_cut or not peeking.end(connection.number, connection.cookie):
            return False
        connection.is_cut = True
        self._digest.note(kind, f"a connection to port {self.port} was cut: {why}", time.monotonic())
        self.give_back_soon()
        return True


def _weight(connection: Connection, brought: int) -> int:
    """Bytes of this process that a connection may cost; 0 for one that is not cut for others."""
    if not connection.is_known:
        return FRAME_FACTOR * brought if brought > GREETING_BYTES else 0
    held = brought + connection.untaken
    return held if held > SLACK_BYTES else 0


def _forget(known: dict[Key, Connection], key: Key, connection: Connection) -> None:
    if known.get(key) is connection:
        del known[key]
