"""What all operations of a node share: an origin to answer, peers to wait for, and a deadline.

An operation sends one message per peer, sends it again while the peer is silent (every request is
idempotent), and ends at its deadline, whatever happened. It answers its origin once. Having
answered, it may live on until the last copy is acknowledged; what is still missing then is noted
as a debt, to be paid by anti-entropy.

A node is its own peer: messages to itself take the same road, without the wire.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Protocol

import attrs

from skuld_py.config import Limits, Parameters, Timing
from skuld_py.model.document import Member
from skuld_py.model.messages import Claimed, CohortRow, Failed, Message
from skuld_py.node.knowledge.heads import Router
from skuld_py.node.knowledge.notary import Notary
from skuld_py.node.knowledge.settings import Settings
from skuld_py.node.operations.timers import Timers
from skuld_py.partition.vnode import Vnode


@attrs.frozen
class Origin:
    """Where an answer goes: to a client's handle or a peer's name, under the number of its request."""

    request: int
    client: bytes | None = None
    peer: str = ""


class Waiter(Protocol):
    """An operation that waits for a horizon to move."""

    origin: Origin
    request: int
    is_closed: bool
    at_end: list[Callable[[], None]]

    def on_horizon(self, now_ms: int) -> None:
        """Look at the horizon again: a document was written, or read."""


class Borrower(Protocol):
    """A grant of a limited queue: it wants to claim up to ``count`` tasks."""

    queue: str
    count: int

    def on_lent(self, now_ms: int, count: int, leads: Mapping[int, int]) -> int:
        """Claim up to ``count`` on partitions led in these epochs, now or never; gives how many that were."""


class Host(Protocol):
    """What an operation may use of its node."""

    me: Member
    parameters: Parameters
    timing: Timing
    limits: Limits
    live: dict[str, Member]
    settings: Settings
    router: Router
    notary: Notary
    timers: Timers
    vnodes: list[Vnode]
    numbers: Iterator[int]
    """Numbers of requests, each used once."""
    nodes: tuple[str, ...]
    """The registered nodes."""
    may_grant: bool
    """Whether its session and its clock are good."""

    def send(self, peer: str, message: Message) -> None:
        """Send to a peer, itself included."""

    def reply(self, origin: Origin, message: Message) -> None:
        """Send an answer to its origin."""

    def close(self, operation: Operation) -> None:
        """Forget the operation."""

    def start(self, operation: Operation, now_ms: int) -> None:
        """Begin another operation."""

    def learn(self, row: CohortRow) -> bool:
        """A peer named other voters than this node knows of. Says whether that can be true."""

    def led(self) -> list[Vnode]:
        """The partitions this node leads and may grant from."""

    def stocked(self, queue: str) -> list[Vnode]:
        """The led partitions in which tasks of a queue may wait."""

    def renewing(self, partition: int) -> Vnode | None:
        """The partition, if this node leads it and may renew its claims."""

    def leader_of(self, partition: int) -> str:
        """The live leader, or ``""``."""

    def route(self, queue: str) -> list[str]:
        """Where to try a claim: this node and all others that lead, in order."""

    def await_horizon(self, now_ms: int, operation: Waiter) -> None:
        """Have the horizon of the led partitions moved to where their leases need it."""

    def awaits_horizon(self, origin: Origin) -> bool:
        """Whether what was asked waits for that already."""

    def give_up_horizon(self, queue: str) -> None:
        """A grant has waited for that in vain: let others of its queue try when it comes."""

    def borrow(self, now_ms: int, borrower: Borrower) -> None:
        """Ask the home of a limited queue for a loan; ``on_lent`` is called once."""

    @property
    def has_leaders(self) -> bool:
        """Whether some partition has a leader that grants, as far as known."""

    def take_place(self, claim: Any) -> bool:
        """Whether a claim may wait at this node."""

    def note_leftover(self, queue: str) -> None:
        """There may be something to claim that nobody was woken for."""

    def release_unwanted(self, now_ms: int, claimed: Claimed) -> None:
        """Give back claims that nobody waits for any more."""

    def owe(self, peer: str, partitions: Collection[int]) -> None:
        """A peer may lack a copy."""


class Operation:
    """One piece of work in flight."""

    def __init__(self, host: Host, origin: Origin, now_ms: int, patience_ms: int | None = None) -> None:
        self.host = host
        self.origin = origin
        self.request = next(host.numbers)
        self.deadline_ms = now_ms + (patience_ms or host.timing.request_ms)
        self.pending: dict[str, Message] = {}
        self._pause_ms = host.timing.resend_ms
        self.has_answered = False
        self.is_closed = False
        self.at_end: list[Callable[[], None]] = []
        """Called when the operation ends, to free the places that it took, say."""

    def begin(self, now_ms: int) -> None:
        """Send what is to be sent."""
        raise NotImplementedError

    def on_reply(self, now_ms: int, peer: str, message: Message) -> None:
        """A peer answered; an operation that has asked none does not care."""

    def on_deadline(self, now_ms: int) -> None:
        """The time of the operation is over: answer, and end."""
        raise NotImplementedError

    def on_too_large(self, now_ms: int, peer: str, message: Failed) -> None:
        """A peer's answer would be larger than a message may be. Refuse: asking again would not help."""
        self.answer(attrs.evolve(message, request=self.origin.request))
        self.on_deadline(now_ms)

    def on_gone(self, now_ms: int, gone: Collection[str]) -> None:
        """Peers are no members any more. An operation that asks several goes on without them."""

    def ask(self, now_ms: int, messages: Mapping[str, Message]) -> None:
        """Send one message per peer, and again until it answers."""
        self.pending.update(messages)
        self._pause_ms = self.host.timing.resend_ms
        for peer, message in messages.items():
            self.host.send(peer, message)
        self._wake(now_ms)

    def _wake(self, now_ms: int) -> None:
        self.host.timers.set(min(self.deadline_ms, now_ms + self._pause_ms), self)

    def _wake_later(self, now_ms: int) -> None:
        """Double the pause each time, so that peers that are behind do not get ever more to do."""
        self._pause_ms *= 2
        self._wake(now_ms)

    def on_timer(self, now_ms: int) -> None:
        """Send again, or end."""
        if now_ms >= self.deadline_ms:
            self.on_deadline(now_ms)
            return
        for peer, message in self.pending.items():
            if peer in self.host.live:
                self.host.send(peer, message)
        self._wake_later(now_ms)

    def answer(self, message: Message) -> None:
        """Answer the origin, once."""
        if not self.has_answered:
            self.has_answered = True
            self.host.reply(self.origin, message)

    def refuse(self, code: str, text: str) -> None:
        """Answer that it did not happen."""
        self.answer(Failed(self.origin.request, code, text, True))

    def give_up(self, text: str) -> None:
        """Answer that it may have happened."""
        self.answer(Failed(self.origin.request, "uncertain", text, False))

    def end(self) -> None:
        """End the operation: its node forgets it."""
        self.is_closed = True
        self.host.close(self)


def not_leading(origin: Origin) -> Failed:
    """The answer that this node does not lead, so that the asker looks for another leader."""
    return Failed(origin.request, "not_leader", "no longer the leader", True)
