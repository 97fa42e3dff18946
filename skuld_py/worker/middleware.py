"""What surrounds every task function of a worker: hooks before it, after it, and when it fails.

    class Timing(skuld_py.Middleware):
        def before(self, context, call):
            self.started = time.monotonic()

    skuld_py.add_middleware(Timing())     # in a module given to the worker by --app

Order, as of brackets: ``before`` in the order in which they were added, ``after`` and ``on_error`` the other way
round. A middleware whose ``before`` returned is told the end, once: by ``after`` when everything inside it went
well, else by ``on_error``. An error in a hook is an error of the task: what a ``before`` or an ``after`` raises
goes out through the ``on_error`` of those around it and fails the task, as if the function had raised it; what
an ``on_error`` raises takes the place of the error.

Hooks run in the thread of the task, inside its Spark job group. One object serves all tasks of a worker, several
at a time. ``on_error`` is told of ``ClaimLost`` too, and cannot swallow it, nor any other error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from skuld_py.calls.payloads import Call
from skuld_py.worker.context import TaskContext


class Middleware:
    """Hooks that do nothing; override what is wanted."""

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


def middleware_added() -> tuple[Middleware, ...]:
    """The middleware that was added, outermost first."""
    return tuple(_added)


def surround(function: Callable[..., Any], call: Call, middleware: Sequence[Middleware]) -> Callable[..., Any]:
    """The function with the hooks around it."""
    if not middleware:
        return function
    outer, inner = middleware[0], surround(function, call, middleware[1:])

    def surrounded(spark: Any, context: TaskContext, /, *args: Any, **kwargs: Any) -> Any:
        outer.before(context, call)
        try:
            value = inner(spark, context, *args, **kwargs)
        except BaseException as error:
            outer.on_error(context, call, error)
            raise
        outer.after(context, call, value)
        return value

    return surrounded
