"""What surrounds every task function of a worker, and every ``send`` of a producer.

    class Timing(skuld_py.Middleware):
        @contextmanager
        def run(self, context, call):
            started = time.monotonic()
            yield
            context.log(f"took {time.monotonic() - started:.1f} s")

    skuld_py.add_middleware(Timing())     # in a module given to the worker by --app

``run`` and ``enqueue`` each give a context manager, made anew for each task: what it keeps between its two
halves are its own local names. One object serves all tasks of a worker, several at a time, so attributes of it
are shared by them: the hooks ``before``, ``after`` and ``on_error``, called inside ``run``, are for what keeps
nothing between.

Order, as of brackets: in the order in which they were added, and out the other way round. A middleware whose
``before`` returned is told the end, once: by ``after`` when everything inside it went well, else by ``on_error``.
An error in a hook is an error of the task: what a ``before`` or an ``after`` raises goes out through the
``on_error`` of those around it and fails the task, as if the function had raised it; what an ``on_error`` raises
takes the place of the error. Nothing can swallow an error: ``ClaimLost``, ``Snooze`` and ``Dead`` arrive whole.

Hooks run in the thread of the task, inside its Spark job group; those of an async function in the event loop,
which they must not stop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from skuld_py.calls.payloads import Call
from skuld_py.worker.context import TaskContext
from skuld_py.worker.outgoing import Outgoing, add_around_enqueues


class Middleware:
    """Hooks that do nothing; override what is wanted."""

    def enqueue(self, going: Outgoing) -> AbstractContextManager[Any]:
        """Around ``send`` and ``asend`` of a task function; what is written into ``going.headers`` travels."""
        return nullcontext()

    def run(self, context: TaskContext, call: Call) -> AbstractContextManager[Any]:
        """Around the function, and the hooks below."""
        return nullcontext()

    def before(self, context: TaskContext, call: Call) -> None:
        """The function is about to be called."""

    def after(self, context: TaskContext, call: Call, value: Any) -> None:
        """The function returned this."""

    def on_error(self, context: TaskContext, call: Call, error: BaseException) -> None:
        """The function raised this, or a hook further in did."""


_added: list[Middleware] = []


def add_middleware(middleware: Middleware) -> None:
    """Add one, inside those that were added before."""
    _added.append(middleware)
    if type(middleware).enqueue is not Middleware.enqueue:
        add_around_enqueues(middleware.enqueue)


def middleware_added() -> tuple[Middleware, ...]:
    """The middleware that was added, outermost first."""
    return tuple(_added)


def surround(function: Callable[..., Any], call: Call, middleware: Sequence[Middleware], *,
             is_async: bool = False) -> Callable[..., Any]:
    """The function with the hooks around it."""
    if not middleware:
        return function
    outer, inner = middleware[0], surround(function, call, middleware[1:], is_async=is_async)

    def surrounded(spark: Any, context: TaskContext, /, *args: Any, **kwargs: Any) -> Any:
        with _bracket(outer, context, call) as returned:
            value = inner(spark, context, *args, **kwargs)
            returned.append(value)
        return value

    async def awaited(spark: Any, context: TaskContext, /, *args: Any, **kwargs: Any) -> Any:
        with _bracket(outer, context, call) as returned:
            value = await inner(spark, context, *args, **kwargs)
            returned.append(value)
        return value

    return awaited if is_async else surrounded


@contextmanager
def _bracket(outer: Middleware, context: TaskContext, call: Call) -> Iterator[list[Any]]:
    """The block inside one middleware; it leaves the function's value in the list."""
    returned: list[Any] = []
    error: BaseException | None = None
    with outer.run(context, call):
        try:
            outer.before(context, call)
            try:
                yield returned
            except BaseException as raised:
                outer.on_error(context, call, raised)
                raise
            outer.after(context, call, *returned)
        except BaseException as raised:
            error = raised
            raise
    if error is not None:
        raise error
