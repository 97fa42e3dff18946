"""A call on its way to the cluster, and the middleware around that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any


class Outgoing:
    """A call that is about to be enqueued: the function's name, the queue, the payload, and the options of
    ``Client.enqueue``. Middleware may write into ``headers``; what is there when it gives way is what is sent."""

    def __init__(self, name: str, queue: str, payload: bytes, headers: Mapping[str, str] | None,
                 options: Mapping[str, Any]) -> None:
        self.name = name
        self.queue = queue
        self.payload = payload
        self.headers = dict(headers or {})
        self._options = options

    @property
    def options(self) -> dict[str, Any]:
        """As they stand."""
        return {**self._options, "headers": self.headers} if self.headers else dict(self._options)


Enclosing = Callable[[Outgoing], AbstractContextManager[Any]]
_around: list[Enclosing] = []


def add_around_enqueues(enclosing: Enclosing) -> None:
    """Have this around each ``send``, inside those that were added before."""
    _around.append(enclosing)


@contextmanager
def going_out(going: Outgoing) -> Iterator[None]:
    """The block within all that was added; none of them can swallow its error."""
    error: BaseException | None = None
    with ExitStack() as held:
        for enclosing in _around:
            held.enter_context(enclosing(going))
        try:
            yield
        except BaseException as raised:
            error = raised
            raise
    if error is not None:
        raise error
