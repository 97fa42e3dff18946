"""What all operations of a node share: an origin to answer, peers to wait for, and a deadline.

An operation sends one message per peer, sends it again while the peer is silent (every request is
idempotent), and ends at its deadline, whatever happened. It answers its origin once. Having
answered, it may live on until the last copy is acknowledged; what is still missing then is noted
as a debt, to be paid by anti-entropy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

import attrs

from skuld_py.model.messages import Failed, Message
from skuld_py.node.knowledge.view import View
from skuld_py.node.operations.outbox import Origin, Outbox
from skuld_py.node.operations.timers import Timers


class Operations:
    """The operations in flight at one node, and what all that starts one may use: its view and its outbox."""

    def __init__(self, view: View, outbox: Outbox, numbers: Iterator[int]) -> None:
        self.view = view
        self.outbox = outbox
        self.numbers = numbers
        """Numbers of requests. No two operations of this node have the same one, not even over its starts."""
        self.open: dict[int, Operation] = {}
        self.timers = Timers(self.open)

    def start(self, operation: Operation, now_ms: int) -> None:
        """Begin an operation, and keep it until it is closed."""
        self.open[operation.request] = operation
        operation.begin(now_ms)

    def close(self, operation: Operation) -> None:
        """Forget an operation, which has ended."""
        self.open.pop(operation.request, None)
        for leave in operation.at_end:
            leave()
        if self.timers.heap:
            self.timers.forget()

    def hear(self, now_ms: int, peer: str, message: Message) -> None:
        """Hand an answer to the operation that waits for it, if one does."""
        operation = self.open.get(getattr(message, "request", -1))
        if operation is None:
            return
        if isinstance(message, Failed) and message.code == "too_large":
            operation.on_too_large(now_ms, peer, message)
        else:
            operation.on_reply(now_ms, peer, message)

    def on_gone(self, now_ms: int, gone: Collection[str]) -> None:
        """Peers are no members any more."""
        for operation in list(self.open.values()):
            operation.on_gone(now_ms, gone)


class Operation:
    """One piece of work in flight."""

    def __init__(self, operations: Operations, origin: Origin, now_ms: int,
                 patience_ms: int | None = None) -> None:
        self.operations = operations
        self.view = operations.view
        self.outbox = operations.outbox
        self.origin = origin
        self.request = next(operations.numbers)
        self.deadline_ms = now_ms + (patience_ms or operations.view.timing.request_ms)
        self.pending: dict[str, Message] = {}
        self._pause_ms = operations.view.timing.resend_ms
        self.has_answered = False
        self.is_closed = False
        self.at_end: list[Callable[[], None]] = []
        """Called when the operation ends, to free the places that it took, say."""

    def start(self, now_ms: int) -> None:
        """Go into flight."""
        self.operations.start(self, now_ms)

    def begin(self, now_ms: int) -> None:
        """Send what is to be sent."""
        raise NotImplementedError

    def on_reply(self, now_ms: int, peer: str, message: Message) -> None:
        """A peer answered; an operation that asks none ignores it."""

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
        self._pause_ms = self.view.timing.resend_ms
        for peer, message in messages.items():
            self.outbox.send(peer, message)
        self._wake(now_ms)

    def _wake(self, now_ms: int) -> None:
        self.operations.timers.set(min(self.deadline_ms, now_ms + self._pause_ms), self)

    def _wake_later(self, now_ms: int) -> None:
        """Double the pause each time, so that peers that are behind do not fall further behind."""
        self._pause_ms *= 2
        self._wake(now_ms)

    def on_timer(self, now_ms: int) -> None:
        """Send again, or end."""
        if now_ms >= self.deadline_ms:
            self.on_deadline(now_ms)
            return
        for peer, message in self.pending.items():
            if peer in self.view.live:
                self.outbox.send(peer, message)
        self._wake_later(now_ms)

    def answer(self, message: Message) -> None:
        """Answer the origin, once."""
        if not self.has_answered:
            self.has_answered = True
            self.outbox.reply(self.origin, message)

    def refuse(self, code: str, text: str) -> None:
        """Answer that it did not happen."""
        self.answer(Failed(self.origin.request, code, text, True))

    def give_up(self, text: str) -> None:
        """Answer that it may have happened."""
        self.answer(Failed(self.origin.request, "uncertain", text, False))

    def end(self) -> None:
        """End the operation: its node forgets it."""
        self.is_closed = True
        self.operations.close(self)


def not_leading(origin: Origin) -> Failed:
    """The answer that this node does not lead, so that the asker looks for another leader."""
    return Failed(origin.request, "not_leader", "no longer the leader", True)
