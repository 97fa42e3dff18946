"""What a verb is: a function of the client, and the row that makes it a route and a command.

    @verb("POST /v1/queues/pause", Scope.ADMIN, QUEUE_NAME, Paused, "Let nothing more be claimed from a queue.",
          command="pause", says=lambda done, _: (f"{done['queue']} is paused", done))
    async def pause(client: AsyncClient, queue: str) -> Paused:
        "The help of the command."
        return Paused(queue=queue, is_paused=True, missing=await client.pause(queue))

The function is given the options of its request by name. The gateway awaits it; on the command line the client
blocks, so each call is over before it is awaited (``done_at_once``). Rejected: a function for each door (they
drift apart), and a generator for both (no type checker follows its calls).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from skuld_py.verbs.options import Request

if TYPE_CHECKING:
    from skuld_py.client.async_client import AsyncClient
    from skuld_py.client.client import Client

T = TypeVar("T")
Given = Mapping[str, Any]
"""Options by name."""
Said = tuple[str, Mapping[str, object]]
"""A report of what was done: words for people, facts for programs."""


class Scope(StrEnum):
    """What a token may be used for. None includes another."""

    ENQUEUE = "enqueue"
    WORK = "work"
    READ = "read"
    ADMIN = "admin"


class Verb(NamedTuple):
    """A verb. ``asks`` is its body for POST, its query for GET; ``answers`` its answer, or one line of it.

    Without an ``act`` each door does it by hand: a stream, or a wait that can be given up. ``command`` is what is
    typed; empty for a verb that only HTTP has. ``says`` makes the report of the command from the answer and the
    request. ``is_repeatable``: sent twice it does the same as once, so that it may be sent again in doubt. Without
    a scope it is open to all. A stream of lines is ``is_stream``; one that ``is_events`` is a stream of
    server-sent events, whose documents have a ``position`` to go on behind. One that ``is_long`` is also given
    ``progress``, to call with how many tasks are done.
    """

    name: str
    method: str
    path: str
    scope: Scope | None
    asks: Request
    answers: Any
    summary: str
    act: Callable[..., Coroutine[Any, Any, Any]] | None = None
    command: str = ""
    says: Callable[[Any, Given], Said] | None = None
    is_repeatable: bool = True
    is_stream: bool = False
    is_long: bool = False
    is_events: bool = False

    @property
    def has_id(self) -> bool:
        """Whether the path names a task."""
        return "{id}" in self.path


def by_hand(name: str, route: str, scope: Scope | None, asks: Request, answers: Any, summary: str, *,
            command: str = "", is_repeatable: bool = True, is_stream: bool = False, is_events: bool = False
            ) -> Verb:
    """A verb that each door does in a way of its own."""
    method, path = route.split()
    return Verb(name, method, path, scope, asks, answers, summary, None, command, None, is_repeatable,
                is_stream or is_events, is_events=is_events)


def verb(route: str, scope: Scope, asks: Request, answers: Any, summary: str, *, command: str = "",
         says: Callable[[Any, Given], Said] | None = None, is_repeatable: bool = True, is_long: bool = False,
         ) -> Callable[[Callable[..., Coroutine[Any, Any, Any]]], Verb]:
    """Makes a verb of a function, whose name it takes, and whose docstring is the help of its command."""
    method, path = route.split()

    def made(act: Callable[..., Coroutine[Any, Any, Any]]) -> Verb:
        return Verb(act.__name__, method, path, scope, asks, answers, summary, act, command, says, is_repeatable,
                    is_long=is_long)
    return made


class _AtOnce:
    """A client that blocks, in the shape of one that is awaited."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        async def done(*args: Any, **options: Any) -> Any:
            return getattr(self._client, name)(*args, **options)
        return done


def done_at_once(act: Callable[..., Coroutine[Any, Any, T]], client: Client, given: Given) -> T:
    """Do it with a client that blocks."""
    running = act(cast("AsyncClient", _AtOnce(client)), **given)
    try:
        running.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError(f"{act.__name__} awaits something else than its client")
