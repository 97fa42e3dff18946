"""Kinds of tasks besides functions: SQL, scripts and streams, as calls of functions with reserved names.

    skuld:sql       one or more statements of Spark SQL
    skuld:script    an application file, as a driver process of its own
    skuld:stream    what is new in a source, through Spark's Structured Streaming, into a sink

Such a task is a call of a name with plain values like any other, so every face that shows or takes calls has
these. Here is what their arguments must be; what workers do with them is ``worker.kinds``.

Invariant: a call of a reserved name is checked wherever it is written, by any face, and again where it runs. An
error names the field, and says what would do.

Rejected: a field of the task that says its kind. Every node, message and client would have to learn it.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from skuld_py.errors import Refused

PREFIX = "skuld:"
SQL, SCRIPT, STREAM = (PREFIX + kind for kind in ("sql", "script", "stream"))
KINDS = (SQL, SCRIPT, STREAM)


def check_call(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """``Refused`` for a call of a reserved name whose arguments are not what it takes."""
    if name not in KINDS:
        return
    checked = import_module(f"{__name__}.{name.removeprefix(PREFIX)}").checked
    try:
        inspect.signature(checked).bind(*args, **kwargs)
    except TypeError as problem:
        raise Refused("bad_arguments", f"{name}: {problem}", name=name) from None
    checked(*args, **kwargs)
