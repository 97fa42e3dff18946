"""What a worker knows of a task function besides its code: what it is given and needs, and what its errors mean.

All of it is the worker's word, read where the function runs. Of the options that travel with a task, ``retry``
says how often and when, and never for which errors: classes do not travel. So ``on`` and ``never`` stand at the
function, and are refused elsewhere.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import attrs

from skuld_py.client.options import ErrorClasses, Retry, classes_of
from skuld_py.errors import Refused
from skuld_py.worker.injection import SPARK, Injection, injection_of


@attrs.frozen
class Traits:
    """``needs_spark``: whether it runs in a session; ``timeout_s``: how long an attempt may take."""

    injection: Injection
    needs_spark: bool
    is_async: bool
    timeout_s: float | None
    on: ErrorClasses = ()
    never: ErrorClasses = ()

    def forgives(self, error: BaseException) -> bool:
        """Whether another attempt may cure this error: it is none of ``never``, and one of ``on`` if there are
        any."""
        return not isinstance(error, self.never) and (not self.on or isinstance(error, self.on))


def traits_of(name: str, function: Callable[..., Any], retry: Retry | None, timeout_s: float | None,
              spark: bool) -> Traits:
    """Of a function with this decorator; ``spark`` for one that gets its session by itself."""
    check_timeout("timeout_s", timeout_s)
    injection = injection_of(function)
    needs_spark, is_async = spark or injection.has(SPARK), inspect.iscoroutinefunction(function)
    if needs_spark and is_async:
        raise Refused("bad_task", f"{name}: an async function runs in an event loop beside others, and a Spark job"
                      " would stop them all; make it a plain def, or leave spark out of it", name=name)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise Refused("bad_task", f"{name}: a generator has no result; return a value instead of yielding some",
                      name=name)
    on, never = (classes_of("on", retry.on), classes_of("never", retry.never)) if retry is not None else ((), ())
    return Traits(injection, needs_spark, is_async, timeout_s, on, never)


def check_timeout(field: str, timeout_s: float | None) -> None:
    """A number of seconds, or None for no limit."""
    is_number = isinstance(timeout_s, int | float) and not isinstance(timeout_s, bool)
    if timeout_s is not None and not (is_number and 0 < timeout_s < float("inf")):
        raise Refused("bad_option", f"{field}: {timeout_s!r}; a number of seconds above 0 is wanted, or None for"
                      " no limit")
