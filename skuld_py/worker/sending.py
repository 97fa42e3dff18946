"""``send``: enqueueing a call of a task function, by whichever client is in use.

    with skuld_py.using(Client("node-1:13000")):
        census.send(paths)                                 # by that client
    census.send_with(client=other, priority=9)(paths)      # by another one
    await census.asend(paths)                              # in an event loop, which send would stop

A program that names no client gets one made on its first ``send``, for the nodes of ``$SKULD_NODES`` or this
machine's, kept until it ends; and one for asyncio on the first ``asend`` of each event loop, kept as long as
that. ``using`` holds for the whole process and all its threads, as a web server wants it; it takes either kind
of client, and tests use it with one in memory.

Options are those of ``Client.enqueue``. Where one is given twice, the call goes before the decorator. What
middleware does around an enqueue says ``middleware``.

Invariant: ``send`` never blocks a running event loop, unless a client that blocks was named in the call itself.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, cast

from skuld_py.client.asking import Awaiting, Blocking
from skuld_py.client.options import Retry, travelling
from skuld_py.client.preludes import Ids, OnFailure, Time
from skuld_py.errors import Refused
from skuld_py.model import names
from skuld_py.worker.outgoing import Outgoing, going_out
from skuld_py.worker.time_limit import with_limit

if TYPE_CHECKING:
    import asyncio

    from skuld_py.client.async_client import AsyncClient

B = TypeVar("B", Blocking, Awaiting)


class Options(TypedDict, total=False):
    """What a task may be enqueued with: the parameters of ``Client.enqueue`` beside the payload."""

    queue: str
    priority: int
    id: bytes | str | None
    w: int | None
    not_before: Time | None
    delay_s: float | None
    expires: Time | None
    retry: Retry | None
    headers: Mapping[str, str] | None
    key: str | None
    unique: str | None
    unique_window_s: float
    deps: Ids | None
    on_dep_failure: OnFailure
    dep_wait_s: float


class CallOptions(Options, total=False):
    """Those of one call, and how long an attempt of it may take."""

    timeout_s: float | None


_used: list[Blocking | Awaiting] = []
_own: list[Blocking] = []
_of_loops: dict[asyncio.AbstractEventLoop, tuple[Awaiting, AsyncIterator[Awaiting]]] = {}


@contextmanager
def using(client: B) -> Iterator[B]:
    """Let ``send``, or ``asend`` with a client for asyncio, enqueue by this client, everywhere in the process,
    until the block ends."""
    if not isinstance(client, Blocking | Awaiting):
        raise Refused("bad_client", f"using() takes a client, not {client!r:.80}")
    _used.append(client)
    try:
        yield client
    finally:
        _used.remove(client)


def _meant(option: str, known: type[Any]) -> str:
    """What was probably meant by an option that there is not."""
    if option in Retry.__annotations__:
        return f"give retry=skuld_py.Retry({option}=...); "
    near = difflib.get_close_matches(option, known.__annotations__, n=1)
    return f"did you mean {near[0]}? " if near else ""


def check_options(options: Mapping[str, object], known: type[Any] = Options) -> None:
    """Refuse options that ``enqueue`` does not have, and a queue that is no name."""
    for option in options:
        if option not in known.__annotations__:
            raise Refused("bad_option", f"{option}: a task has no such option; {_meant(option, known)}there are"
                          f" {', '.join(known.__annotations__)}")
    if "queue" in options:
        names.check_name("queue", options["queue"])


def enqueued_with(options: Options) -> Options:
    """The decorator's options without what only the worker is to know."""
    retry = options.get("retry")
    return options if not isinstance(retry, Retry) else {**options, "retry": travelling(retry)}


def sender(name: str, call: Callable[..., bytes], client: Blocking | Awaiting | None, options: Options,
           overrides: CallOptions) -> Callable[..., Any]:
    """A function that enqueues calls; one for asyncio, if that is what the client is for."""
    if isinstance(client, Awaiting):
        return asender(name, call, client, options, overrides)
    chosen = _chosen(name, options, overrides)

    def send(*args: Any, **kwargs: Any) -> Any:
        going = chosen(call, args, kwargs)
        if client is None:
            _check_no_loop(name)
        by: Any = client if client is not None else _client()
        with going_out(going):
            return by.enqueue(going.queue, going.payload, **going.options)
    return send


def asender(name: str, call: Callable[..., bytes], client: Awaiting | None, options: Options,
            overrides: CallOptions) -> Callable[..., Coroutine[Any, Any, Any]]:
    """A function whose calls are awaited."""
    if client is not None and not isinstance(client, Awaiting):
        raise Refused("bad_client", "client: asend takes a client for asyncio; give a Client to send_with")
    chosen = _chosen(name, options, overrides)

    async def asend(*args: Any, **kwargs: Any) -> Any:
        going = chosen(call, args, kwargs)
        by = cast(Any, client if client is not None else await _async_client())
        with going_out(going):
            return await by.enqueue(going.queue, going.payload, **going.options)
    return asend


def _chosen(name: str, options: Options, overrides: CallOptions) -> Callable[..., Outgoing]:
    """What is enqueued with, by the arguments of a call."""
    check_options(overrides, CallOptions)
    chosen: dict[str, Any] = {**options, **overrides}
    queue = chosen.pop("queue", None)
    headers = with_limit(chosen.pop("headers", None), chosen.pop("timeout_s", None))

    def going(call: Callable[..., bytes], args: Any, kwargs: Any) -> Outgoing:
        if queue is None:
            raise Refused("no_queue", f"{name} has no queue; give it one, @task(queue=...), or name one in the"
                          " call, send_with(queue=...)")
        return Outgoing(name, queue, call(*args, **kwargs), headers, chosen)
    return going


def _check_no_loop(name: str) -> None:
    if "asyncio" not in sys.modules:  # most programs that send have no use for it
        return
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise Refused("in_event_loop", f"{name}: send would stop the event loop that runs here until a node has"
                  " answered; write: await ....asend(...), or name a client that may: send_with(client=...)")


def _client() -> Any:
    """The client in use, or the process's own. Threads may each make one: the first stays, for a client that is
    not called opens nothing. In the child of a fork either begins anew by itself."""
    if used := [client for client in _used if isinstance(client, Blocking)]:
        return used[-1]
    if not _own:
        from skuld_py.client.client import Client

        _own.append(Client())
    return _own[0]


async def _async_client() -> Awaiting:
    """The client in use, or the one of this event loop."""
    if used := [client for client in _used if isinstance(client, Awaiting)]:
        return used[-1]
    import asyncio

    loop = asyncio.get_running_loop()
    if loop not in _of_loops:
        from skuld_py.client.async_client import AsyncClient

        kept = _kept(loop, AsyncClient())
        _of_loops[loop] = await anext(kept), kept
    return _of_loops[loop][0]


async def _kept(loop: asyncio.AbstractEventLoop, client: AsyncClient) -> AsyncIterator[Awaiting]:
    """A generator that a loop closes when it is about to end, as ``asyncio.run`` has it; with it the client."""
    try:
        yield client
    finally:
        del _of_loops[loop]
        await client.close()
