"""What a node sends: to peers, to clients, and to itself.

A node is its own peer: messages to itself take the same road, without the wire, and are handled in the same step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import attrs

from skuld_py.model.events import Answer, Effect, Send
from skuld_py.model.messages import Message


@attrs.frozen
class Origin:
    """Where an answer goes: to a client's handle or a peer's name, under the number of its request."""

    request: int
    client: bytes | None = None
    peer: str = ""


class Outbox:
    """The outbox of one node. ``drain``, at a time, handles what the node has sent to itself, and all that this
    leads to."""

    def __init__(self, me: str, drain: Callable[[int], None]) -> None:
        self._me = me
        self.drain = drain
        self.to_self: deque[Message] = deque()
        self.effects: list[Effect] = []
        """What is to leave with this step."""

    def send(self, peer: str, message: Message) -> None:
        """Send to a peer; to itself without the wire."""
        if peer == self._me:
            self.to_self.append(message)
        else:
            self.effects.append(Send(peer, message))

    def carry_out(self, effects: Sequence[Effect]) -> None:
        """Take effects of the protocol; messages to this node itself stay here."""
        for effect in effects:
            if type(effect) is Send:
                self.send(effect.peer, effect.message)
            else:
                self.effects.append(effect)

    def reply(self, origin: Origin, message: Message) -> None:
        """Answer a client, or a peer."""
        if origin.client is not None:
            self.effects.append(Answer(origin.client, message))
        elif origin.peer:
            self.send(origin.peer, message)
