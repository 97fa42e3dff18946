"""The loop: drain what is ready, step the machine, commit once, and only then let promises out.

Invariants:

* One thread. Machine, store and transport are touched by it alone; other threads reach it through
  ``post`` and ``stop``, which only append to a queue and wake it.
* The order of a batch is fixed: step everything; send what promises nothing; commit; then send, answer
  and ask the registry. A failed commit ends the process before a word of the batch has left.
* A batch takes all the registry has said, first, and a bounded number of frames: latency stays bounded
  under a flood, and news of a lost session never queues behind it.
* Bytes from outside never raise here. What is no message is counted, and answered when it is known whom;
  what a peer says is heard only under the name of a registered node.
* An exception of the machine or the store goes up: a state that was half changed is not gone on with.
  All but ``Corrupt``, which the server answers with a new machine, end the node and are logged.

Rejected: asyncio (a second scheduler between the sockets and the one thing there is to do); a thread for
the commit (batches would overlap, and then every promise needs a record of which batch it waits for).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable
from typing import Protocol

import attrs

from skuld_py.errors import Corrupt, Malformed, Refused
from skuld_py.model.events import (
    Answer,
    Asked,
    Effect,
    Event,
    MembersChanged,
    NodesChanged,
    ReadDocument,
    Received,
    Send,
    SwapDocument,
    Ticked,
)
from skuld_py.model.messages import ROLE_CLIENT, ROLE_NODE, Failed, Greet, Message
from skuld_py.model.store import Store
from skuld_py.node.turn import Machine, take_turn
from skuld_py.runtime.clock import Clock
from skuld_py.runtime.transport import Transport
from skuld_py.wire.codec import Envelope, MalformedRequest, check_role, decode

BATCH_FRAMES = 256

_log = logging.getLogger(__name__)


class Performer(Protocol):
    """The registry, as far as the loop needs it."""

    def perform(self, effect: ReadDocument | SwapDocument) -> None:
        """Have it done; the outcome comes through ``post``."""
        ...


@attrs.define
class Counters:
    """What the loop has done and what it turned away, since the start."""

    batches: int = 0
    events: int = 0
    malformed: int = 0
    wrong_cluster: int = 0
    wrong_role: int = 0
    strangers: int = 0


class Loop:
    """Runs one machine against the world, in the thread that calls ``run``."""

    def __init__(self, node: Machine, store: Store, transport: Transport, registry: Performer,
                 clock: Clock) -> None:
        self.counters = Counters()
        self._node = node
        self._store = store
        self._transport = transport
        self._registry = registry
        self._clock = clock
        self._inbox: deque[Event] = deque()
        self._members: frozenset[str] = frozenset()
        self._nodes: frozenset[str] = frozenset()
        self._is_stopping = False

    def post(self, event: Event) -> None:
        """Put in an event of the registry; from any thread."""
        self._inbox.append(event)
        self._transport.wake()

    def stop(self) -> None:
        """Let ``run`` return after the batch it is in; from any thread or signal handler."""
        self._is_stopping = True
        self._transport.wake()

    def run(self) -> None:
        """Serve until ``stop``; raises what machine or store raised."""
        try:
            while not self._is_stopping:
                self._transport.wait(self._pause_ms())
                self.turn()
        except Corrupt:
            raise
        except Exception:
            _log.exception("the node ends: a step, the store or a socket failed")
            raise

    def turn(self) -> None:
        """One batch: all that is ready now."""
        events = self._drain()
        now_ms = self._clock.now_ms()
        deadline_ms = self._node.deadline()
        if deadline_ms is not None and deadline_ms <= now_ms:
            events.append(Ticked())
        if not events:
            return
        self.counters.batches += 1
        self.counters.events += len(events)
        turn = take_turn(self._node, now_ms, events)
        self._let_out(turn.early)
        self._store.commit()
        self._let_out(turn.late)

    def _pause_ms(self) -> int | None:
        deadline_ms = self._node.deadline()
        return None if deadline_ms is None else max(0, deadline_ms - self._clock.now_ms())

    # What comes in.

    def _drain(self) -> list[Event]:
        events: list[Event] = []
        while self._inbox:
            event = self._inbox.popleft()
            events.append(event)
            if isinstance(event, MembersChanged):
                self._members = frozenset(member.name for member in event.members)
                self._transport.set_peers({member.name: (member.host, member.port)
                                           for member in event.members})
            elif isinstance(event, NodesChanged):
                self._nodes = frozenset((*event.nodes, *event.leaving))
        for origin, frames in self._transport.receive(BATCH_FRAMES):
            events += self._understand(origin, frames)
        return events

    def _understand(self, origin: bytes, frames: list[bytes]) -> Iterable[Event]:
        """The events in one envelope; none when it is not for us to hear."""
        try:
            envelope = decode(frames, self._transport.limits)
        except Malformed as problem:
            self.counters.malformed += 1
            if isinstance(problem, MalformedRequest) and problem.message_type.roles & ROLE_CLIENT:
                self._refuse(origin, problem.request, problem)
            return ()
        if envelope.cluster != self._transport.cluster and not _is_greeting(envelope):
            self._turn_away(origin, envelope)
            return ()
        if not envelope.sender:
            return self._asked(origin, envelope)
        if envelope.sender not in self._members and envelope.sender not in self._nodes:
            self.counters.strangers += 1
            return ()
        return self._received(envelope)

    def _asked(self, origin: bytes, envelope: Envelope) -> Iterable[Event]:
        for message in envelope.messages:
            try:
                check_role(message, ROLE_CLIENT)
            except Refused as problem:
                self.counters.wrong_role += 1
                self._refuse(origin, getattr(message, "request", 0), problem)
            else:
                yield Asked(origin, message)

    def _received(self, envelope: Envelope) -> Iterable[Event]:
        for message in envelope.messages:
            try:
                check_role(message, ROLE_NODE)
            except Refused:
                self.counters.wrong_role += 1
            else:
                yield Received(envelope.sender, message)

    def _turn_away(self, origin: bytes, envelope: Envelope) -> None:
        self.counters.wrong_cluster += 1
        if not envelope.sender:
            problem = Refused("wrong_cluster", f"this node serves cluster {self._transport.cluster}, not"
                              f" {envelope.cluster}; check the address and the cluster's name")
            for message in envelope.messages:
                self._refuse(origin, getattr(message, "request", 0), problem)

    def _refuse(self, origin: bytes, request: int, problem: Refused) -> None:
        """Say no without asking the machine: nothing happened, so nothing has to be committed first."""
        self._transport.answer(origin, [Failed(request, problem.code, problem.message[:1000], True)])

    # What goes out.

    def _let_out(self, effects: Iterable[Effect]) -> None:
        """Messages by addressee, one envelope each; the registry's effects in their order."""
        to_peers: dict[str, list[Message]] = {}
        to_clients: dict[bytes, list[Message]] = {}
        for effect in effects:
            if type(effect) is Send:
                to_peers.setdefault(effect.peer, []).append(effect.message)
            elif type(effect) is Answer:
                to_clients.setdefault(effect.client, []).append(effect.message)
            elif isinstance(effect, ReadDocument | SwapDocument):
                self._registry.perform(effect)
        for peer, messages in to_peers.items():
            self._transport.send(peer, messages)
        for client, messages in to_clients.items():
            self._transport.answer(client, messages)


def _is_greeting(envelope: Envelope) -> bool:
    """Whether a client asks which cluster this is: it cannot name it yet."""
    return not envelope.sender and not envelope.cluster and all(
        type(message) is Greet for message in envelope.messages)
