"""The loop: drain what is ready, step the machine, commit once, and only then let promises out.

Invariants:

* One thread. Machine, store and transport are touched by it alone; other threads reach it through
  ``post`` and ``stop``, which only append to a queue and wake it. What the machine wants computed, which is a
  function of what the wish holds, is computed in a thread of its own, and posted.
* The order of a batch is fixed: step everything; send what promises nothing; commit; then send, answer
  and ask the registry. A failed commit ends the process before a word of the batch has left.
* A batch takes all the registry has said, first, and a bounded number of frames: latency stays bounded
  under a flood, and news of a lost session never queues behind it.
* Bytes from outside never raise here. What is no message is counted, and answered when its sender can be told.
  Peers' messages are heard only under the name of a member or a placed node, and never under this node's own: it
  believes what it says to itself, and that takes no wire. Messages about the coordination log and answers to
  what is to be decided are heard from any process, for a joiner is no member yet and a scheduler never is one; it
  is dialled by its name, which is its address. What asks for decisions only a scheduler hears from anybody
  (``is_asked_by_anybody``): it knows no members.
* With keys the key of its connection says who a sender is. A node's message is heard under the name that the
  roster has for its key, and under no other one; a client's if its key may ask for that (``clearance``). The key
  is looked up with every message: one that is revoked counts no more, though its connection stands.
* What the machine announces is heeded before anything of its turn is sent: new peers are dialled first.
* An exception of the machine or the store goes up, for its state may be half changed. ``Corrupt`` makes the server
  start a new machine; any other ends the node and is logged. So does an exception of any other thread of the node,
  reported by ``fail``: half a node must not be taken for a whole one.

Rejected: asyncio (a second scheduler between the sockets and the one thing there is to do); a thread for
the commit (batches would overlap, and then every promise needs a record of which batch it waits for).
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from threading import Thread
from typing import Protocol

import attrs

from skuld_py.cluster.scale.decisions import computed
from skuld_py.config import protocol_of
from skuld_py.errors import Corrupt, Malformed, Refused
from skuld_py.model.coordination import Announce
from skuld_py.model.events import (
    Answer,
    Asked,
    Compute,
    MembersChanged,
    NodesChanged,
    Received,
    RulesChanged,
    Send,
    Session,
    SessionChanged,
    Ticked,
    Withheld,
)
from skuld_py.model.messages import ROLE_CLIENT, ROLE_NODE, Claimed, Failed, Greet, Message, Report
from skuld_py.model.messages.decisions import DECISION_MESSAGES, Decide
from skuld_py.model.messages.membership import COORDINATION_MESSAGES
from skuld_py.model.store import Store
from skuld_py.node.process import Told, Wish
from skuld_py.node.turn import Machine, Turn, sort, take_turn
from skuld_py.runtime.askers import Askers
from skuld_py.runtime.clearance import check_clearance, signed
from skuld_py.runtime.clock import Clock
from skuld_py.runtime.door import Arrival
from skuld_py.runtime.handshakes import wall_ms
from skuld_py.runtime.histogram import Histogram
from skuld_py.runtime.keyring import Keyring
from skuld_py.runtime.lmdb_store import StoreFailed
from skuld_py.runtime.threads import HelperFailed
from skuld_py.runtime.transport import Address, Transport
from skuld_py.runtime.zookeeper.registry import RegistryEffect
from skuld_py.wire.codec import Envelope, MalformedRequest, UnknownProtocol, check_role, decode

BATCH_FRAMES = 256
FAREWELL_MS = 300
"""How long a node answers after its farewell: what was sent before that was heard is there by then."""
ACQUAINTANCES_MAX = 64
"""Processes that were written to about the log or decisions and are no members; of more, the oldest is
dropped."""
_TO_ANYBODY = frozenset((*COORDINATION_MESSAGES, *DECISION_MESSAGES))
_OF_ANYBODY = _TO_ANYBODY - {Decide}

_log = logging.getLogger(__name__)


class Performer(Protocol):
    """The registry, as far as the loop needs it."""

    def perform(self, effect: RegistryEffect) -> None:
        """Have it done; the outcome comes through ``post``."""
        ...


@attrs.define
class Counters:
    """What the loop has done and what it turned away, since the start."""

    batches: int = 0
    events: int = 0
    malformed: int = 0
    unknown_protocol: int = 0
    wrong_cluster: int = 0
    wrong_role: int = 0
    strangers: int = 0
    own_name: int = 0
    forged: int = 0
    """Messages under a name that is not that of the sender's key."""
    denied: int = 0
    """Requests that the sender's key may not make."""
    turns: Histogram = attrs.field(factory=Histogram)
    """Seconds that batches took."""
    commits: Histogram = attrs.field(factory=Histogram)
    """Seconds that the store took to commit them."""


class Loop:
    """Runs one machine against the world, in the thread that calls ``run``. ``on_joined`` is called whenever it
    becomes a member. ``me``: the node's own name, under which no message is heard. ``keyring``: who a key is.
    ``on_turn`` is called with the time when a batch is done: to look, not to change anything."""

    def __init__(self, machine: Machine[Told, Wish], store: Store, transport: Transport, registry: Performer,
                 clock: Clock, on_joined: Callable[[], None] = lambda: None, me: str = "",
                 keyring: Keyring | None = None, on_turn: Callable[[int], None] = lambda now_ms: None,
                 acquaintances_max: int = ACQUAINTANCES_MAX,
                 is_asked_by_anybody: bool = False) -> None:
        self.counters = Counters()
        self._acquaintances_max = acquaintances_max
        self._of_anybody = _TO_ANYBODY if is_asked_by_anybody else _OF_ANYBODY
        self._me = me
        self._machine = machine
        self._store = store
        self._transport = transport
        self._registry = registry
        self._clock = clock
        self._on_joined = on_joined
        self._keyring = keyring
        self._has_new_keys = False
        self._on_turn = on_turn
        self._inbox: deque[Told] = deque()
        self._members: dict[str, Address] = {}
        self._acquaintances: dict[str, Address] = {}
        self._nodes: frozenset[str] = frozenset()
        self._askers = None if keyring is None else Askers(lambda key: keyring.owner(key, wall_ms))
        self._is_stopping = False
        self._failure: Exception | None = None
        self._due_ms = machine.deadline()
        """The machine's deadline: it changes with its steps only."""

    def post(self, event: Told) -> None:
        """Put in an event of the registry; from any thread."""
        self._inbox.append(event)
        self._transport.wake()

    def dial_anew(self) -> None:
        """The roster has changed: dial the peers where it says; from any thread."""
        self._has_new_keys = True
        self._transport.wake()

    def stop(self) -> None:
        """Let ``run`` return after the batch it is in; from any thread or signal handler."""
        self._is_stopping = True
        self._transport.wake()

    def fail(self, problem: Exception) -> None:
        """Let the node end by this problem, by which another of its threads has ended; from any thread."""
        self._failure = problem
        self._transport.wake()

    def run(self) -> None:
        """Serve until ``stop``; raises what machine or store raised."""
        self._run(lambda: self._is_stopping)

    def finish(self, wishes: Iterable[Wish], is_done: Callable[[], bool], limit_ms: int) -> None:
        """Carry out the machine's last wishes, and turn until it is done or the time is over. Then say farewell,
        and turn a little longer: what clients sent before they heard it is answered."""
        end_ms = self._clock.now_ms() + limit_ms
        last: Turn[Wish] = Turn([], [])
        sort(wishes, last)
        self._conclude(last)
        self._run(lambda: is_done() or self._clock.now_ms() >= end_ms, end_ms)
        gone_ms = self._clock.now_ms() + FAREWELL_MS
        self._run(lambda: self._is_gone(gone_ms), gone_ms)

    def _is_gone(self, gone_ms: int) -> bool:
        """Whether it has turned for long enough since its farewell, which those that come now are told too."""
        self._transport.bid_farewell()
        return self._clock.now_ms() >= gone_ms

    def _run(self, is_over: Callable[[], bool], end_ms: int | None = None) -> None:
        try:
            while not is_over():
                self._transport.wait(self._pause_ms(end_ms))
                if self._failure is not None:
                    raise self._failure
                self.turn()
        except Corrupt:
            raise
        except (StoreFailed, HelperFailed, Refused) as problem:
            _log.error("the node ends: %s", problem.message)
            raise
        except Exception:
            _log.exception("the node ends: a step, the store, a socket or another thread failed")
            raise

    def turn(self) -> None:
        """One batch: all that is ready now."""
        if self._has_new_keys:
            self._has_new_keys = False
            self._check_own_key()
            self._dial()
        events = self._drain()
        now_ms = self._clock.now_ms()
        if self._due_ms is not None and self._due_ms <= now_ms:
            events.append(Ticked())
        if not events:
            return
        self.counters.batches += 1
        self.counters.events += len(events)
        begun_s = time.perf_counter()
        self._conclude(take_turn(self._machine, now_ms, events))
        self.counters.turns.observe(time.perf_counter() - begun_s)
        self._on_turn(now_ms)

    def _conclude(self, turn: Turn[Wish]) -> None:
        self._due_ms = self._machine.deadline()
        self._heed((*turn.late, *turn.early))
        if turn.early:
            self._let_out(turn.early)
        begun_s = time.perf_counter()
        self._store.commit()
        self.counters.commits.observe(time.perf_counter() - begun_s)
        if turn.late:
            self._let_out(turn.late)

    def _check_own_key(self) -> None:
        """Once it is revoked no other node hears this one, which would seem to be well for ever. A row that is
        gone without that is put back (``Keyring.put``)."""
        assert self._keyring is not None
        if self._keyring.mine is not None:
            self._keyring.roster.check_revoked(self._keyring.mine)

    def _pause_ms(self, end_ms: int | None) -> int | None:
        due_ms = self._due_ms
        if due_ms is None or (end_ms is not None and end_ms < due_ms):
            due_ms = end_ms
        return None if due_ms is None else max(0, due_ms - self._clock.now_ms())

    # What comes in.

    def _drain(self) -> list[Told]:
        events: list[Told] = []
        while self._inbox:
            events.append(self._inbox.popleft())
        for arrival in self._transport.receive(BATCH_FRAMES):
            events += self._understand(arrival)
        return events

    def _understand(self, arrival: Arrival) -> Iterable[Asked | Received]:
        """The events in one envelope; none when it is no message, or of another cluster."""
        origin = arrival.origin
        try:
            envelope = decode(arrival.frames, self._transport.limits)
        except UnknownProtocol as problem:
            self.counters.unknown_protocol += 1
            self._refuse(origin, 0, Refused("unknown_protocol", problem.message))
            return ()
        except Malformed as problem:
            self.counters.malformed += 1
            if isinstance(problem, MalformedRequest) and problem.message_type.roles & ROLE_CLIENT:
                self._refuse(origin, problem.request, problem)
            return ()
        self._transport.note_protocol(origin, envelope.version)
        if envelope.cluster != self._transport.cluster and not _is_greeting(envelope):
            self._turn_away(origin, envelope)
            return ()
        if not envelope.sender:
            return self._asked(arrival, envelope)
        if self._keyring is not None and not self._is_under_its_name(arrival, envelope):
            self.counters.forged += 1
            return ()
        return self._received(origin, envelope)

    def _is_under_its_name(self, arrival: Arrival, envelope: Envelope) -> bool:
        """Whether the key of a connection is that of the node in whose name it speaks."""
        assert self._keyring is not None
        owner = self._keyring.owner(arrival.key, wall_ms)
        return owner is not None and owner.is_node and owner.name == envelope.sender

    def _asked(self, arrival: Arrival, envelope: Envelope) -> Iterable[Asked]:
        askers = self._askers
        owner = self._keyring.owner(arrival.key, wall_ms) if self._keyring is not None else None
        for message in envelope.messages:
            try:
                check_role(message, ROLE_CLIENT)
                if askers is not None:
                    check_clearance(owner, message)
                    askers.note(arrival.origin, arrival.key, message)
            except Refused as problem:
                if problem.code == "denied":
                    self.counters.denied += 1
                else:
                    self.counters.wrong_role += 1
                self._refuse(arrival.origin, getattr(message, "request", 0), problem)
            else:
                if type(message) is Report:
                    message = signed(message, owner)
                yield Asked(arrival.origin, message)

    def _received(self, origin: bytes, envelope: Envelope) -> Iterable[Received]:
        if envelope.sender == self._me:
            self.counters.own_name += 1
            return
        is_known = envelope.sender in self._members or envelope.sender in self._nodes
        if is_known:
            self._transport.mark_peer(origin, envelope.sender)
        for message in envelope.messages:
            try:
                check_role(message, ROLE_NODE)
            except Refused:
                self.counters.wrong_role += 1
                continue
            if is_known or type(message) in self._of_anybody:
                yield Received(envelope.sender, message)
            else:
                self.counters.strangers += 1

    def _turn_away(self, origin: bytes, envelope: Envelope) -> None:
        self.counters.wrong_cluster += 1
        if not envelope.sender:
            problem = Refused("wrong_cluster", f"this node serves cluster {self._transport.cluster}, not"
                              f" {envelope.cluster}; check the address and the cluster's name")
            for message in envelope.messages:
                self._refuse(origin, getattr(message, "request", 0), problem)

    def _refuse(self, origin: bytes, request: int, problem: Refused) -> None:
        """Refuse a request without asking the machine: nothing happened, so nothing has to be committed first."""
        self._transport.answer(origin, [Failed(request, problem.code, problem.message[:1000], True)])

    # What goes out.

    def _heed(self, wishes: Iterable[Wish]) -> None:
        """Heed what the log says of the cluster: which nodes to dial, which to hear."""
        for wish in wishes:
            if isinstance(wish, Announce):
                self._learn(wish)
            elif isinstance(wish, Send) and type(wish.message) in _TO_ANYBODY:
                self._meet(wish.peer)

    def _learn(self, news: Announce) -> None:
        match news.event:
            case MembersChanged(members):
                self._members = {member.name: (member.host, member.port) for member in members}
                self._dial()
            case RulesChanged(rules):
                self._transport.protocol = protocol_of(rules)
            case NodesChanged(nodes, leaving):
                self._nodes = frozenset((*nodes, *leaving))
            case SessionChanged(Session.CONNECTED):
                self._on_joined()

    def _meet(self, peer: str) -> None:
        """Make sure that a process which is no member can be written to."""
        if peer in self._members or peer in self._acquaintances:
            return
        host, _, port = peer.rpartition(":")
        if not host or not port.isdecimal():
            return
        if len(self._acquaintances) >= self._acquaintances_max:
            del self._acquaintances[next(iter(self._acquaintances))]
        self._acquaintances[peer] = (host, int(port))
        self._dial()

    def _dial(self) -> None:
        self._transport.set_peers({**self._acquaintances, **self._members})

    def _let_out(self, wishes: Iterable[Wish]) -> None:
        """Messages by addressee, one envelope each; the registry's effects in their order."""
        to_peers: dict[str, list[Message]] = {}
        to_clients: dict[bytes, list[Message]] = {}
        for wish in wishes:
            if type(wish) is Send:
                to_peers.setdefault(wish.peer, []).append(wish.message)
            elif type(wish) is Answer:
                told = wish.message if self._askers is None else self._cleared(self._askers, wish)
                to_clients.setdefault(wish.client, []).append(told)
            elif type(wish) is Compute:
                self._compute(wish)
            elif not isinstance(wish, Announce | Send | Answer | Compute):
                self._registry.perform(wish)
        for peer, messages in to_peers.items():
            self._transport.send(peer, messages)
        for client, messages in to_clients.items():
            self._transport.answer(client, messages)

    def _cleared(self, askers: Askers, answer: Answer) -> Message:
        """What a client is told: its request may have waited for hours, and its key may count no more."""
        told, message = askers.cleared(answer.client, answer.message), answer.message
        if told is not message:
            self.counters.denied += 1
            if isinstance(message, Claimed) and message.batches:
                self.post(Withheld(message))
        return told

    def _compute(self, wish: Compute) -> None:
        """Compute in a thread beside the loop; there are hardly ever two at once."""
        def compute() -> None:
            try:
                self.post(computed(wish))
            except Exception as problem:
                self.fail(problem)
        Thread(target=compute, name="skuld-compute", daemon=True).start()


def _is_greeting(envelope: Envelope) -> bool:
    """Whether a client asks which cluster this is: it cannot name it yet."""
    return not envelope.sender and not envelope.cluster and all(
        type(message) is Greet for message in envelope.messages)
