"""``send``: enqueueing a call of a task function, by whichever client is in use.

    with skuld_py.using(Client("node-1:13000")):
        census.send(paths)                                 # by that client
    census.send_with(client=other, priority=9)(paths)      # by another one
    await census.send_with(client=async_client)(paths)     # awaited, by one for asyncio

A program that names no client gets one made on its first ``send``, for the nodes of ``$SKULD_NODES`` or this
machine's, kept until it ends. ``using`` holds for the whole process and all its threads, as a web server wants
it; tests use it with a client in memory.

Options are those of ``Client.enqueue``. Where one is given twice, the call goes before the decorator.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypedDict, TypeVar, cast

from skuld_py.client.asking import Awaiting, Blocking
from skuld_py.client.options import Retry
from skuld_py.client.preludes import Ids, OnFailure, Time
from skuld_py.errors import Refused
from skuld_py.model import names

NODES = "127.0.0.1:13000"
B = TypeVar("B", bound=Blocking)


class Options(TypedDict, total=False):
    """What a task may be enqueued with: the parameters of ``Client.enqueue`` beside the payload."""

    queue: str
    priority: int
    id: bytes | str | None
    w: int | None
    not_before: Time | None
    expires: Time | None
    retry: Retry | None
    headers: Mapping[str, str] | None
    key: str | None
    unique: str | None
    unique_window_s: float
    deps: Ids | None
    on_dep_failure: OnFailure
    dep_wait_s: float


_used: list[Blocking] = []
_own: list[Blocking] = []


@contextmanager
def using(client: B) -> Iterator[B]:
    """Let ``send`` enqueue by this client, everywhere in the process, until the block ends."""
    if not isinstance(client, Blocking):
        raise Refused("bad_client", "using() takes a client that blocks; give one for asyncio to the call:"
                      " await function.send_with(client=client)(...)")
    _used.append(client)
    try:
        yield client
    finally:
        _used.remove(client)


def check_options(options: Mapping[str, object]) -> None:
    """Refuse options that ``enqueue`` does not have, and a queue that is no name."""
    for option in options:
        if option not in Options.__annotations__:
            raise Refused("bad_option", f"{option}: a task has no such option; there are"
                          f" {', '.join(Options.__annotations__)}")
    if "queue" in options:
        names.check_name("queue", options["queue"])


def sender(name: str, call: Callable[..., bytes], client: Blocking | Awaiting | None, options: Options,
           overrides: Options) -> Callable[..., Any]:
    """A function that enqueues calls."""
    check_options(overrides)
    chosen: dict[str, Any] = {**options, **overrides}
    queue = chosen.pop("queue", None)

    def send(*args: Any, **kwargs: Any) -> Any:
        if queue is None:
            raise Refused("no_queue", f"{name} has no queue; give it one, @task(queue=...), or name one in the"
                          " call, send_with(queue=...)")
        by = cast(Any, client if client is not None else _client())
        return by.enqueue(queue, call(*args, **kwargs), **chosen)
    return send


def _client() -> Blocking:
    """The client in use, or the process's own. Threads may each make one: the first stays, for a client that is
    not called opens nothing. In the child of a fork either begins anew by itself."""
    if used := _used[-1:]:
        return used[0]
    if not _own:
        from skuld_py.client.client import Client

        _own.append(Client(os.environ.get("SKULD_NODES", NODES)))
    return _own[0]

