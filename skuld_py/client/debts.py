"""What a client owes the cluster: requests that undo answers which no call waits for any more."""

from __future__ import annotations

import math

import attrs

from skuld_py.client.pursuit import ATTEMPT_S
from skuld_py.model.messages import Failed, Message

TRIES_MAX = 40
"""How many times the undoing of an answer is asked for, as calls are made, at most every ``ATTEMPT_S``."""


@attrs.define(eq=False)
class Debt:
    """A request that undoes something, when it was last sent, and how often."""

    message: Message
    sent: float = -math.inf
    tries: int = 0
    is_answered: bool = False

    @property
    def is_over(self) -> bool:
        """Whether it is undone, or left to the end of its lease."""
        return self.is_answered or self.tries >= TRIES_MAX

    def is_due(self, now: float) -> bool:
        """Whether to ask for it again."""
        return now - self.sent >= ATTEMPT_S

    def numbered(self, request: int) -> Message:
        """The request under this number."""
        return attrs.evolve(self.message, request=request)  # type: ignore[call-arg]

    def hear(self, answer: Message) -> None:
        """Note an answer: it is undone, unless a node says that it, or a leader, could not."""
        self.is_answered = not isinstance(answer, Failed) and not getattr(answer, "unknown", b"")
