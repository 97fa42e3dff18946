"""What a verb is: a generator that asks and is answered, without a transport. One owner for all clients.

    @verb
    def status(self) -> Work[Described]:
        return (yield from ask(Described, Describe(0))).message

A verb yields what it wants to know and gets the answer back, or the error raised where it stands; what it
returns is the caller's. ``Client`` blocks for each answer, ``AsyncClient`` awaits it, the one for unit tests
asks a node in memory: the same verb is a method of each, with the right type, so adding a verb is adding one
method in one place. A ``stream`` is a verb that gives its result in parts.

Rejected: writing each verb twice, sync and async, which drift apart; and generating one client's source from the
other's, which no debugger steps through.
"""

from __future__ import annotations

import functools
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Hashable, Iterator, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

import attrs

from skuld_py.errors import Refused, SkuldError, Uncertain

if TYPE_CHECKING:
    from skuld_py.model.messages import Message

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
M = TypeVar("M", bound="Message")
A = TypeVar("A", bound="Message")


@attrs.frozen
class Ask:
    """A request; its sender numbers it. Only an idempotent one may be sent twice.

    ``wait_s`` is how long the cluster may take beyond the client's timeout. ``undo`` gives the request that undoes
    an answer which comes when no call waits for it any more. ``doubted`` reduces an answer to what can be believed
    when the request was sent before, and may have been carried out then. ``only`` is the address of the one node
    that is asked, if it may be no other, and ``within_s`` the time for that, if the client's timeout is longer.
    """

    message: Message
    is_idempotent: bool = True
    wait_s: float = 0.0
    undo: Callable[[Message], Ask | None] | None = None
    doubted: Callable[[Message], Message] | None = None
    only: str = ""
    within_s: float = math.inf


@attrs.frozen
class Answered(Generic[M]):
    """An answer, and when its request was first sent, by the client's steady clock."""

    message: M
    sent: float


@attrs.frozen
class Joint(Generic[T, R]):
    """A call that may travel with others of the same ``key``: ``together`` gives each item its own outcome.

    ``size`` is what it adds to a request, in bytes.
    """

    key: tuple[Hashable, ...]
    item: T
    size: int
    together: Callable[[Sequence[T]], Work[Sequence[R | SkuldError]]]


@attrs.frozen
class Part(Generic[T]):
    """What a stream has so far."""

    items: Sequence[T]


Step = Ask | Joint[Any, Any]
Work = Generator[Step, Any, R]
"""A verb on its way to its result."""
Flow = Generator[Step | Part[T], Any, None]
"""A stream on its way."""


def ask(kind: type[A], message: Message, *, is_idempotent: bool = True, wait_s: float = 0.0,
        undo: Callable[[Message], Ask | None] | None = None,
        doubted: Callable[[Message], Message] | None = None, only: str = "", within_s: float = math.inf
        ) -> Work[Answered[A]]:
    """Ask, and insist on the kind of the answer."""
    answered: Answered[Any] = yield Ask(message, is_idempotent, wait_s, undo, doubted, only, within_s)
    if not isinstance(answered.message, kind):
        raise Refused("bad_answer", f"the node answered {type(answered.message).__name__}; are versions equal?")
    return answered


def as_part(done: int, work: Work[R]) -> Work[R]:
    """One request of a call, of which ``done`` were carried out before: then a refusal of this one is no refusal
    of the call."""
    try:
        return (yield from work)
    except Refused as refusal:
        if not done:
            raise
        raise Uncertain(refusal.code, f"{refusal.message}; {done} requests of this call were carried out before",
                        **refusal.facts) from refusal


def ask_either(kind: type[A], message: Message, older: Message, **options: Any) -> Work[Answered[A]]:
    """Ask as this release does; if the node does not understand that, as the release before did."""
    try:
        return (yield from ask(kind, message, **options))
    except Refused as refusal:
        if refusal.code != "malformed":
            raise
    return (yield from ask(kind, older, **options))


class Blocking:
    """A client whose verbs return when they are done."""

    def _perform(self, step: Step) -> Any:
        raise NotImplementedError

    def _run(self, work: Work[R], perform: Callable[[Step], Any] | None = None) -> R:
        perform = perform or self._perform
        try:
            step = next(work)
            while True:
                try:
                    answer = perform(step)
                except SkuldError as error:
                    step = work.throw(error)
                else:
                    step = work.send(answer)
        except StopIteration as end:
            result: R = end.value
            return result
        finally:
            work.close()  # at once, though a traceback may hold it

    def _flow(self, flow: Flow[T]) -> Iterator[T]:
        answer: Any = None
        while True:
            try:
                step = flow.send(answer)
            except StopIteration:
                return
            if isinstance(step, Part):
                yield from step.items
                answer = None
            else:
                answer = self._perform(step)


class Awaiting:
    """A client whose verbs are awaited."""

    async def _perform(self, step: Step) -> Any:
        raise NotImplementedError

    async def _run(self, work: Work[R], perform: Callable[[Step], Awaitable[Any]] | None = None) -> R:
        perform = perform or self._perform
        try:
            step = next(work)
            while True:
                try:
                    answer = await perform(step)
                except SkuldError as error:
                    step = work.throw(error)
                else:
                    step = work.send(answer)
        except StopIteration as end:
            result: R = end.value
            return result
        finally:
            work.close()  # at once, though a traceback may hold it

    async def _flow(self, flow: Flow[T]) -> AsyncIterator[T]:
        answer: Any = None
        while True:
            try:
                step = flow.send(answer)
            except StopIteration:
                return
            if isinstance(step, Part):
                for item in step.items:
                    yield item
                answer = None
            else:
                answer = await self._perform(step)


class verb(Generic[P, R]):
    """Makes a method of clients out of a generator method that returns an ``R``."""

    def __init__(self, function: Callable[Concatenate[Any, P], Work[R]]) -> None:
        self.__doc__ = function.__doc__

        @functools.wraps(function)
        def blocking(client: Blocking, /, *args: P.args, **kwargs: P.kwargs) -> R:
            return client._run(function(client, *args, **kwargs))

        @functools.wraps(function)
        async def awaiting(client: Awaiting, /, *args: P.args, **kwargs: P.kwargs) -> R:
            return await client._run(function(client, *args, **kwargs))

        self._blocking, self._awaiting = blocking, awaiting

    @overload
    def __get__(self, client: None, owner: type) -> Callable[..., Any]: ...

    @overload
    def __get__(self, client: Blocking, owner: type) -> Callable[P, R]: ...

    @overload
    def __get__(self, client: Awaiting, owner: type) -> Callable[P, Coroutine[Any, Any, R]]: ...

    def __get__(self, client: Any, owner: type) -> Callable[..., Any]:
        function: Any = self._awaiting if issubclass(owner, Awaiting) else self._blocking
        return function if client is None else MethodType(function, client)


class stream(Generic[P, T]):
    """Makes an iterating method of clients out of a generator method that yields ``Part``s of ``T``."""

    def __init__(self, function: Callable[Concatenate[Any, P], Flow[T]]) -> None:
        self.__doc__ = function.__doc__

        @functools.wraps(function)
        def flowing(client: Any, /, *args: P.args, **kwargs: P.kwargs) -> Any:
            return client._flow(function(client, *args, **kwargs))

        self._flowing = flowing

    @overload
    def __get__(self, client: None, owner: type) -> Callable[..., Any]: ...

    @overload
    def __get__(self, client: Blocking, owner: type) -> Callable[P, Iterator[T]]: ...

    @overload
    def __get__(self, client: Awaiting, owner: type) -> Callable[P, AsyncIterator[T]]: ...

    def __get__(self, client: Any, owner: type) -> Callable[..., Any]:
        return self._flowing if client is None else MethodType(self._flowing, client)
