"""One call of a connection: the thread that waits, and what it is told."""

from __future__ import annotations

import select

from skuld_py.client.waiter import Waiter
from skuld_py.model.messages import Message


class Call(Waiter):
    """A thread with a request under way. ``poll`` is what it reads by, over the sockets of ``era``. ``is_cut``:
    its request was sent over a connection that broke."""

    __slots__ = ("answer", "era", "is_cut", "poll", "request")

    def __init__(self, request: int) -> None:
        super().__init__()
        self.request = request
        self.poll = select.poll()
        self.era = -1
        self.forget()

    def forget(self) -> None:
        """Wait for something new."""
        self.answer: Message | None = None
        self.is_cut = False

    @property
    def is_told(self) -> bool:
        """Whether there is nothing more to wait for."""
        return self.answer is not None or self.is_cut
