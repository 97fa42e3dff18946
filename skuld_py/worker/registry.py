"""Which function a task names, and how a call travels: a name and plain values, never code.

    @skuld_py.task(queue="census")
    def census(spark, context, paths, *, output): ...

    census.send(paths, output="/data/census")                             # enqueue a call of it
    await census.asend(paths, output="/data/census")                      # the same in an event loop
    census.send_with(priority=9)(paths, output="/data/census")            # with options of this one call
    client.chain([census.step(paths), report.step()])                     # one call behind the other
    client.enqueue("census", census.call(paths, output="/data/census"))   # the same by hand
    census(spark, context, paths, output="/tmp")                          # call it here and now

A task function is registered under ``MODULE:FUNCTION`` (``acme.jobs:census``) or the name it is given. It
receives the arguments of the call, which are what its annotations say (``calls``); and the claim's SparkSession
and its ``TaskContext`` where it names them (``injection``). What it returns becomes the task's result, so it must
be a value, and small: say where the data is, not the data. What it raises becomes the error of a failed attempt,
or says what becomes of the task (``directives``). Which client enqueues, ``sending`` says.

Invariants:

* A name means one function for the life of a process.
* Arguments that do not fit the function's signature, or would not arrive as they are, are refused when the task is
  made, not when it runs.

Pickle was rejected: it runs the enqueuer's code in the worker, and breaks when either is upgraded.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, Unpack, cast, overload

from skuld_py.calls import payloads
from skuld_py.calls.arguments import Arguments
from skuld_py.calls.kinds import KINDS, PREFIX
from skuld_py.calls.payloads import NAME_CHARS_MAX, Call, check_name
from skuld_py.errors import Refused
from skuld_py.model.ids import TaskId
from skuld_py.worker.context import TaskContext
from skuld_py.worker.injection import check_arguments
from skuld_py.worker.sending import CallOptions, Options, asender, check_options, enqueued_with, sender
from skuld_py.worker.traits import Traits, traits_of

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from skuld_py.client.asking import Awaiting, Blocking

W = ParamSpec("W")
P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")


class TaskFunction(Protocol[W, P, R_co]):
    """A registered function; it is also called as itself, then with all its parameters."""

    task_name: str
    task_options: Options
    task_traits: Traits

    def __call__(self, *args: W.args, **kwargs: W.kwargs) -> R_co:
        """Run it here and now."""

    def call(self, *args: P.args, **kwargs: P.kwargs) -> bytes:
        """The payload of a task that runs it with these arguments."""

    def step(self, *args: P.args, **kwargs: P.kwargs) -> tuple[str, bytes]:
        """A step of a chain, a group or a chord: the function's queue, and the payload of a call of it."""

    def send(self, *args: P.args, **kwargs: P.kwargs) -> TaskId:
        """Enqueue a task that runs it with these arguments, by the client in use; gives the task's id. Refused
        in a running event loop, which it would stop: there await ``asend``."""

    async def asend(self, *args: P.args, **kwargs: P.kwargs) -> TaskId:
        """``send``, awaited; by the client for asyncio in use, or by one of the running loop."""

    @overload
    def send_with(self, client: Blocking | None = None, **options: Unpack[CallOptions]) -> Callable[P, TaskId]: ...

    @overload
    def send_with(self, client: Awaiting, **options: Unpack[CallOptions]
                  ) -> Callable[P, Coroutine[Any, Any, TaskId]]: ...

    def send_with(self, client: Any = None, **options: Unpack[CallOptions]) -> Callable[P, Any]:
        """``send`` by another client, or with options that go before those of the decorator."""

    def asend_with(self, client: Awaiting | None = None, **options: Unpack[CallOptions]
                   ) -> Callable[P, Coroutine[Any, Any, TaskId]]:
        """``asend`` by another client, or with options that go before those of the decorator."""


WithBoth = Callable[Concatenate[Any, TaskContext, P], R]
WithContext = Callable[Concatenate[TaskContext, P], R]


class Decorator(Protocol):
    """What ``task(...)`` gives. A checker sees what a caller gives by the types of the first parameters: one of
    Any tells it nothing, so write SparkSession."""

    @overload
    def __call__(self, function: WithBoth[P, R], /) -> TaskFunction[Concatenate[Any, TaskContext, P], P, R]: ...

    @overload
    def __call__(self, function: WithContext[P, R], /) -> TaskFunction[Concatenate[TaskContext, P], P, R]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> TaskFunction[P, P, R]: ...

    def __call__(self, function: Callable[..., Any], /) -> Any:
        """Register the function."""


_functions: dict[str, Callable[..., Any]] = {}
OWN = {f"{PREFIX}{name}": f"skuld_py.worker.workflows.{module}" for name, module in (
    ("keep", "keeping"), ("feed", "feeding"), ("seal", "sealing"), ("gather", "gathering"),
    ("gather_frame", "gathering"))}
"""Functions of workflows' own tasks, and their modules."""


@overload
def task(function: WithBoth[P, R], /) -> TaskFunction[Concatenate[Any, TaskContext, P], P, R]: ...


@overload
def task(function: WithContext[P, R], /) -> TaskFunction[Concatenate[TaskContext, P], P, R]: ...


@overload
def task(function: Callable[P, R], /) -> TaskFunction[P, P, R]: ...


@overload
def task(*, name: str | None = None, timeout_s: float | None = None, spark: bool = False,
         batch: bool | int = False, **options: Unpack[Options]) -> Decorator: ...


def task(function: Callable[..., Any] | None = None, /, *, name: str | None = None,
         timeout_s: float | None = None, spark: bool = False, batch: bool | int = False,
         **options: Unpack[Options]) -> Any:
    """Register a module-level function as something tasks may name; ``spark`` and ``context`` among its
    parameters are the worker's to give (``injection``). An attempt that runs for longer than ``timeout_s`` has
    failed. ``spark=True``: it makes its session by itself, by ``getOrCreate``. ``batch=True``, or a number: tasks
    of it that are claimed together, at most so many, run as one Spark job, in the executors; it takes the call's
    arguments and nothing else. The options are what ``send`` enqueues with: those of ``Client.enqueue``, the queue
    among them."""
    check_options(options)
    if "id" in options:
        raise Refused("bad_option", "id: an id names one task; give it to the call, send_with(id=...)")
    if function is None:
        return lambda given: _register(given, name, options, timeout_s, spark, batch)
    return _register(function, name, options, timeout_s, spark, batch)


def lookup(name: str) -> Callable[..., Any]:
    """The function registered under a name. Those of the kinds of tasks, and of workflows, are registered when
    first looked up."""
    if name in KINDS and name not in _functions:
        import_module(f"skuld_py.worker.kinds.{name.removeprefix(PREFIX)}")
    if name in OWN and name not in _functions:
        import_module(OWN[name])
    function = _functions.get(name)
    if function is None:
        known, near = sorted(registered()), get_close_matches(name, registered(), n=1)
        raise Refused("unknown_task", f"no task function is called {name[:NAME_CHARS_MAX]!r} here"
                      f"{f': did you mean {near[0]}?' if near else ';'} start the worker with the module that"
                      f" defines it (--app). Known are: {', '.join(known) or 'none'}", name=name)
    return function


def registered() -> tuple[str, ...]:
    """The names of the application's functions."""
    return tuple(name for name in _functions if not name.startswith(PREFIX))


def encode_call(function: str | Callable[..., Any], /, *args: Any, **kwargs: Any) -> bytes:
    """The payload of a task that calls a function, given by itself or by the name workers know it by."""
    if not callable(function):
        return payloads.call(function, *args, **kwargs)
    name = getattr(function, "task_name", None)
    if name is None:
        raise Refused("unknown_task", f"{function!r} is no task function; put @skuld_py.task above it")
    _check_arguments(name, function, args, kwargs)
    return _arguments_of(function).encode(name, args, kwargs)


def function_of(call: Call) -> Callable[..., Any]:
    """The function a call names, which takes the arguments of the call; else ``Refused``."""
    function = lookup(call.name)
    _check_arguments(call.name, function, tuple(call.args), call.kwargs)
    return function


def rebuilt(function: Callable[..., Any], call: Call) -> Call:
    """The call with what the function's annotations make of its arguments; else ``Refused``."""
    return _arguments_of(function).rebuilt(call)


@cache
def _arguments_of(function: Callable[..., Any]) -> Arguments:
    return Arguments(function, traits_of_function(function).injection.names)


def traits_of_function(function: Callable[..., Any]) -> Traits:
    """What is known of a registered function."""
    traits: Traits = vars(function)["task_traits"]
    return traits


def _register(function: Callable[..., Any], name: str | None, options: Options, timeout_s: float | None,
              spark: bool, batch: bool | int) -> Callable[..., Any]:
    if not inspect.isfunction(function) or "." in function.__qualname__:
        raise Refused("bad_task", f"{getattr(function, '__qualname__', function)!r} is no function at the top"
                      " of a module; a worker could not find it again")
    if name is None:
        if function.__module__ == "__main__":
            raise Refused("bad_task", f"{function.__qualname__} is in __main__, which is another module in a"
                          " worker; move it to a module, or give it a name: @task(name=...)")
        name = f"{function.__module__}:{function.__qualname__}"
    check_name(name)
    if name.startswith(PREFIX) and not function.__module__.startswith("skuld_py."):
        raise Refused("reserved_name", f"{name}: names that begin with {PREFIX} are Skuld's own; give it another"
                      " name: @task(name=...)", name=name)
    traits = traits_of(name, function, options.get("retry"), timeout_s, spark, batch)
    options = enqueued_with(options)
    known = _functions.get(name)
    if known is not None and _place(known) != _place(function):
        raise Refused("duplicate_task", f"two task functions are called {name!r}: {_said(known)} and"
                      f" {_said(function)}; give one another name: @task(name=...)", name=name)
    _functions[name] = function

    def call(*args: Any, **kwargs: Any) -> bytes:
        return encode_call(function, *args, **kwargs)

    def step(*args: Any, **kwargs: Any) -> tuple[str, bytes]:
        if "queue" not in options:
            raise Refused("no_queue", f"{name} has no queue; give it one, @task(queue=...), or write the step as"
                          " (queue, function.call(...))")
        return options["queue"], call(*args, **kwargs)

    def send_with(client: Any = None, **overrides: Unpack[CallOptions]) -> Callable[..., Any]:
        return sender(name, call, client, options, overrides)

    def asend_with(client: Any = None, **overrides: Unpack[CallOptions]) -> Callable[..., Any]:
        return asender(name, call, client, options, overrides)

    vars(function).update(task_name=name, task_options=options, task_traits=traits, call=call, step=step,
                          send_with=send_with, send=send_with(), asend_with=asend_with, asend=asend_with())
    return function


def _place(function: Callable[..., Any]) -> tuple[str, int]:
    """Where it is defined: a module that is executed again replaces its functions and is no duplicate."""
    code = cast(Any, function).__code__
    return code.co_filename, code.co_firstlineno


def _said(function: Callable[..., Any]) -> str:
    return "{}:{}".format(*_place(function))


def _check_arguments(name: str, function: Callable[..., Any], args: tuple[Any, ...],
                     kwargs: dict[str, Any]) -> None:
    try:
        check_arguments(traits_of_function(function).injection, args, kwargs)
    except TypeError as problem:
        raise Refused("bad_arguments", f"{name}: {problem}", name=name) from None


@task(name="skuld:join")
def join() -> None:
    """Do nothing: the function of joins, the tasks between the parts of a large group (``client.groups``)."""
