"""What a worker knows of a task function besides its code: what it is given and needs, and what its errors mean.

All of it is the worker's word, read where the function runs. Of the options that travel with a task, ``retry``
says how often and when, and never for which errors: classes do not travel. So ``on`` and ``never`` stand at the
function, and are refused elsewhere.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from skuld_py.client.options import ErrorClasses, Retry, classes_of
from skuld_py.errors import Refused
from skuld_py.worker.batches.sizes import BATCH_MAX
from skuld_py.worker.injection import SPARK, Injection, injection_of


@attrs.frozen
class Traits:
    """``needs_spark``: whether it runs in Spark; ``timeout_s``: how long an attempt may take; ``batch``: how many
    of its tasks are one Spark job at most, 0 for a function that is not batched."""

    injection: Injection
    needs_spark: bool
    is_async: bool
    timeout_s: float | None
    on: ErrorClasses = ()
    never: ErrorClasses = ()
    batch: int = 0

    def forgives(self, error: BaseException) -> bool:
        """Whether another attempt may cure this error: it is none of ``never``, and one of ``on`` if there are
        any."""
        kind = type(error)
        return not issubclass(kind, self.never) and (not self.on or issubclass(kind, self.on))


def traits_of(name: str, function: Callable[..., Any], retry: Retry | None, timeout_s: float | None,
              spark: bool, batch: bool | int = False) -> Traits:
    """Of a function with this decorator; ``spark`` for one that gets its session by itself."""
    check_timeout("timeout_s", timeout_s)
    injection = injection_of(function)
    needs_spark, is_async = spark or injection.has(SPARK), inspect.iscoroutinefunction(function)
    if batch is not False:
        given = [f"the parameter {each}" for each in injection.names]
        _check_batch(name, batch, [*given, *["async"] * is_async, *["spark=True"] * spark])
        needs_spark = True
    if needs_spark and is_async:
        raise Refused("bad_task", f"{name}: an async function runs in an event loop beside others, and a Spark job"
                      " would stop them all; make it a plain def, or leave spark out of it", name=name)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise Refused("bad_task", f"{name}: a generator has no result; return a value instead of yielding some",
                      name=name)
    on, never = (classes_of("on", retry.on), classes_of("never", retry.never)) if retry is not None else ((), ())
    return Traits(injection, needs_spark, is_async, timeout_s, on, never,
                  BATCH_MAX if batch is True else int(batch))


def _check_batch(name: str, batch: bool | int, has: Sequence[str]) -> None:
    """A batched function has nothing that executors lack."""
    if type(batch) not in (bool, int) or not 1 <= batch <= BATCH_MAX:
        raise Refused("bad_option", f"{name}: batch: {batch!r}; write True, or how many of its tasks may be one"
                      f" Spark job, 1 to {BATCH_MAX}", name=name)
    if has:
        raise Refused("bad_task", f"{name}: a batched function runs in Spark's executors, which have neither"
                      f" session nor context nor event loop; leave out {has[0]}, or batch=", name=name)


def check_timeout(field: str, timeout_s: float | None) -> None:
    """A number of seconds, or None for no limit."""
    is_number = isinstance(timeout_s, int | float) and not isinstance(timeout_s, bool)
    if timeout_s is not None and not (is_number and 0 < timeout_s < float("inf")):
        raise Refused("bad_option", f"{field}: {timeout_s!r}; a number of seconds above 0 is wanted, or None for"
                      " no limit")
