"""The functions that a workflow's conditions and lifecycles name.

Invariant: a name stands for a task function that is registered here, or for a function of the application's
modules, defined there: not what these import, and nothing else that Python could find. A definition comes from
whoever may submit one, and ``os:system`` is a name, too.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from skuld_py.errors import Refused
from skuld_py.worker.kinds.allowed import listed
from skuld_py.worker.registry import lookup, registered


def found(name: str, apps: Sequence[str]) -> Callable[..., Any]:
    """The function of this name; ``Refused`` as ``unknown_function`` where there is none."""
    if name in registered():
        return lookup(name)
    module, _, function = name.partition(":")
    packages = {app.partition(".")[0] for app in apps}
    if not function or module.partition(".")[0] not in packages:
        raise _unknown(f"{name!r} is no task function, and in none of the worker's modules, {listed(apps)}; start"
                       " it with the module that has it (--app)")
    try:
        value = getattr(sys.modules.get(module) or import_module(module), function, None)
    except ImportError as error:
        raise _unknown(f"{module} cannot be imported: {error}") from error
    if not inspect.isfunction(value) or value.__module__ != module:
        raise _unknown(f"{module} defines no function {function}")
    return value


def _unknown(problem: str) -> Refused:
    return Refused("unknown_function", f"function: {problem}")
