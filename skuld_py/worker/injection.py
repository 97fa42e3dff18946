"""Which of a function's parameters a worker fills in: Spark's session and the task's context.

    def census(spark, context, paths): ...        # both, by their names
    def total(a, b): ...                          # neither: plain Python, no Spark is started for it
    def report(day, session: SparkSession): ...   # by its annotation, wherever it stands

A parameter is the session's if it is called ``spark`` or ``_spark``, or annotated as a ``SparkSession``; the
context's if it is called ``context`` or ``_context``, or annotated as a ``TaskContext``. All others are the
caller's. Annotations are read as they are written, text or class: nothing is imported to understand them.

Rejected: the first two parameters whatever they are called. A function that adds two numbers had to take a session
that it never used, and a worker started a JVM for it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

SPARK, CONTEXT = "spark", "context"
_BY_CLASS = {"SparkSession": SPARK, "TaskContext": CONTEXT}
_BY_NAME = {name: what for what in (SPARK, CONTEXT) for name in (what, f"_{what}")}


@attrs.frozen
class Injection:
    """``places``: for each parameter that the worker fills in, where it stands among those that go by position
    (None for one that does not), its name, and whose it is. ``signature`` is that of a call, without them."""

    places: tuple[tuple[int | None, str, str], ...]
    signature: inspect.Signature

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters that no caller gives."""
        return tuple(name for _, name, _ in self.places)

    def has(self, what: str) -> bool:
        """Whether the session, or the context, is given."""
        return any(whose == what for _, _, whose in self.places)

    def applied(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function as a worker calls it: with session and context first, whatever it takes of them."""
        places = self.places

        def given(spark: Any, context: Any, /, *args: Any, **kwargs: Any) -> Any:
            filled, values = [*args], {SPARK: spark, CONTEXT: context}
            for at, name, whose in places:
                if at is None or at > len(filled):
                    kwargs[name] = values[whose]
                else:
                    filled.insert(at, values[whose])
            return function(*filled, **kwargs)
        return given


def injection_of(function: Callable[..., Any]) -> Injection:
    """By the function's parameters."""
    signature = inspect.signature(function)
    places: list[tuple[int | None, str, str]] = []
    for at, parameter in enumerate(signature.parameters.values()):
        whose = _whose(parameter)
        if whose is not None:
            is_placed = parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
            places.append((at if is_placed else None, parameter.name, whose))
    taken = {name for _, name, _ in places}
    left = [parameter for parameter in signature.parameters.values() if parameter.name not in taken]
    return Injection(tuple(places), signature.replace(parameters=left))


def check_arguments(injection: Injection, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raises ``TypeError`` for arguments that the function does not take from its callers."""
    injection.signature.bind(*args, **kwargs)


def _whose(parameter: inspect.Parameter) -> str | None:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return None
    said = parameter.annotation
    name = said if isinstance(said, str) else getattr(said, "__name__", "")
    return _BY_CLASS.get(name.strip("'\" ").rpartition(".")[2]) or _BY_NAME.get(parameter.name)
