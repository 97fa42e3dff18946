"""The arguments of one function by its annotations: written when a task is made, made again when it runs.

Invariant: what is written is made again here before it leaves, and must be of the same kinds. So a date that would
arrive as text, for want of an annotation, is refused where the mistake is.

A plain value for an annotated parameter, a text for a date, is taken if it fits: it is what other languages send.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator
from typing import Any

from skuld_py.calls.payloads import AS_IT_IS, BY_ANNOTATION, Call, pack
from skuld_py.calls.plain import Writer, bad_value
from skuld_py.calls.shapes import Shape, hints_of, shape_of

_ONE_KIND = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Arguments:
    """What a function takes from a call; ``left_out`` are the parameters that its worker fills."""

    def __init__(self, function: Callable[..., Any], left_out: Collection[str]) -> None:
        hints = hints_of(function)
        every = inspect.signature(function).parameters.values()
        parameters = [each for each in every if each.name not in left_out]
        shapes = {each.name: shape_of(hints.get(each.name, Any)) for each in parameters}
        self._in_order = [(each.name, shapes[each.name]) for each in parameters if each.kind in _ONE_KIND]
        self._further, self._others = (
            next(((each.name, shapes[each.name]) for each in parameters if each.kind is kind), ("", None))
            for kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD))
        self._by_name = {each.name: shapes[each.name] for each in parameters
                         if each.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)}
        self._is_plain = not any(shapes.values())

    def encode(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """The payload of a call that fits the function's signature; ``Refused`` when a value cannot arrive as it
        is."""
        made_args: list[Any] = []
        made_kwargs: dict[str, Any] = {}
        version = AS_IT_IS
        for key, where, value, (parameter, shape) in self._places(args, kwargs):
            writer = Writer()
            plain = writer.plain(value, where)
            if shape is not None or writer.kinds:
                version = BY_ANNOTATION
                _check(plain, writer, where, parameter, shape)
            if isinstance(key, int):
                made_args.append(plain)
            else:
                made_kwargs[key] = plain
        return pack(name, made_args, made_kwargs, version)

    def rebuilt(self, call: Call) -> Call:
        """The call with what its values stand for; ``Refused`` names one that does not fit."""
        if self._is_plain or call.version == AS_IT_IS:
            return call
        args, kwargs = list(call.args), dict(call.kwargs)
        for key, where, value, (_, shape) in self._places(call.args, call.kwargs):
            if shape is not None:
                into: Any = args if isinstance(key, int) else kwargs
                into[key] = shape(value, where)
        return Call(call.name, args, kwargs, call.version)

    def _places(self, args: Any, kwargs: dict[str, Any]
                ) -> Iterator[tuple[int | str, str, Any, tuple[str, Shape | None]]]:
        """Each value: its index or name, its place in words, itself, and its parameter with its shape."""
        for index, value in enumerate(args):
            one = self._in_order[index] if index < len(self._in_order) else self._further
            yield index, f"args[{index}]", value, one
        for name, value in kwargs.items():
            one = (name, self._by_name[name]) if name in self._by_name else self._others
            yield name, f"kwargs[{name!r:.40}]", value, one


def _check(plain: Any, writer: Writer, where: str, parameter: str, shape: Shape | None) -> None:
    """What was written is made again, as the same kinds."""
    made = plain if shape is None else shape(plain, where)
    if not writer.kinds:
        return
    again = Writer()
    found = again.plain(made, where)
    if again.kinds == writer.kinds and found == plain:
        return
    lost = [kind.__name__ for kind in writer.kinds if kind not in again.kinds]
    if lost:
        raise bad_value(where, f"holds a {lost[0]}, which would not arrive as one; annotate the parameter, as"
                        f" {parameter}: {lost[0]}, or send it as text")
    raise bad_value(where, f"would not arrive as it is: {repr(plain)[:100]} would be {repr(found)[:100]}; give its"
                    " parts the types of their annotations")
