"""What annotations make of plain values again: the reader's side of ``plain``.

A shape is what one annotation asks for. Known are datetime, date, time, timedelta, UUID, Decimal, Enums; tuples,
sets, lists and dicts of such; dataclasses, attrs classes, pydantic models, TypedDicts; each also in a Union, as
``UUID | None``, and under Annotated. Any other annotation, and none at all, leaves the value as it came: plain
types are not checked, as Python does not check them.

Invariants:

* A value that does not fit is refused with its place and what was wanted, whatever a constructor raises.
* What is made has been asked for: classes come from the function's annotations, never from the payload.
* Of a Union the first member that fits is taken, plain types of exactly the value's own first.

Rejected: validation of everything by pydantic. Calls without it would need it, and what a function takes today,
an int for a float, would be refused or changed tomorrow.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import types
import typing
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import cache
from typing import Annotated, Any, NewType, Union
from uuid import UUID

import attrs

from skuld_py.calls.plain import bad_value, is_model
from skuld_py.errors import Refused

Shape = Callable[[Any, str], Any]
"""Gives what a plain value, at a place of a call, stands for; raises ``Refused``."""

_PLAIN = (bool, int, float, str, bytes, list, dict, type(None))
_LISTS: Mapping[Any, type] = {list: list, Sequence: list, MutableSequence: list, set: set, AbstractSet: set,
                              frozenset: frozenset}
_DICTS = (dict, Mapping, MutableMapping)
_TEXTS: Mapping[type, Callable[[str], Any]] = {
    datetime: datetime.fromisoformat, date: date.fromisoformat, time: time.fromisoformat, UUID: UUID}


def shape_of(annotation: Any) -> Shape | None:
    """What an annotation makes of a value; None where it leaves every value as it is."""
    if isinstance(annotation, NewType):
        return shape_of(annotation.__supertype__)
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return shape_of(inner[0])
    if origin in (Union, types.UnionType):
        return _union(inner)
    kind = origin or annotation
    if kind is tuple:
        return _tuple(inner)
    if kind in _LISTS:
        return _listed(_LISTS[kind], inner)
    if kind in _DICTS:
        return _mapped(shape_of(inner[1])) if len(inner) == 2 else None
    return _scalar(kind) or (_record(kind) if isinstance(kind, type) else None)


def rebuilt(value: Any, annotation: Any, where: str) -> Any:
    """What a plain value stands for by an annotation; ``Refused`` when it does not fit."""
    shape = shape_of(annotation)
    return value if shape is None else shape(value, where)


# -- single values -------------------------------------------------------------------------------


def _scalar(kind: Any) -> Shape | None:
    if kind in _TEXTS:
        return _made(kind, _TEXTS[kind], (str,))
    if kind is Decimal:
        return _made(kind, lambda value: Decimal(str(value)), (str, int, float))
    if kind is timedelta:
        return _made(kind, lambda value: timedelta(seconds=value), (int, float))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _made(kind, kind, (object,))
    return None


def _made(kind: Any, make: Callable[[Any], Any], takes: tuple[type, ...]) -> Shape:
    def made(value: Any, where: str) -> Any:
        if isinstance(value, takes) and (type(value) is not bool or object in takes):
            try:
                return make(value)
            except Exception:  # a class of the application's may raise anything
                pass
        raise _unfit(value, kind, where)
    return made


def _unfit(value: Any, kind: Any, where: str, why: str = "") -> Refused:
    name = getattr(kind, "__name__", str(kind))
    return bad_value(where, f"is no {name}: {repr(value)[:64]}{why and ': ' + why}")


# -- several -------------------------------------------------------------------------------------


def _tuple(inner: tuple[Any, ...]) -> Shape:
    is_even = len(inner) == 2 and inner[1] is Ellipsis
    each = [shape_of(one) for one in (inner[:1] if is_even else inner)]

    def made(value: Any, where: str) -> Any:
        if not isinstance(value, list) or (inner and not is_even and len(value) != len(each)):
            raise _unfit(value, tuple, where, f"{len(each)} values are wanted" if inner and not is_even else "")
        shapes = each * len(value) if is_even else each or [None] * len(value)
        return tuple(item if shape is None else shape(item, f"{where}[{index}]")
                     for index, (item, shape) in enumerate(zip(value, shapes, strict=True)))
    return made


def _listed(kind: type, inner: tuple[Any, ...]) -> Shape | None:
    shape = shape_of(inner[0]) if inner else None
    if shape is None and kind is list:
        return None

    def made(value: Any, where: str) -> Any:
        if not isinstance(value, list):
            raise _unfit(value, kind, where)
        items = [item if shape is None else shape(item, f"{where}[{index}]") for index, item in enumerate(value)]
        try:
            return kind(items)
        except TypeError as problem:  # a set of lists
            raise _unfit(value, kind, where, str(problem)) from None
    return made


def _mapped(shape: Shape | None) -> Shape | None:
    if shape is None:
        return None

    def made(value: Any, where: str) -> Any:
        if not isinstance(value, dict):
            raise _unfit(value, dict, where)
        return {key: shape(item, f"{where}[{key!r:.40}]") for key, item in value.items()}
    return made


def _union(members: tuple[Any, ...]) -> Shape | None:
    plain = [member for member in members if member in _PLAIN]
    others = [(member, shape_of(member)) for member in members if member not in _PLAIN]
    if all(shape is None for _, shape in others):
        return None

    def made(value: Any, where: str) -> Any:
        if type(value) in plain:
            return value
        for _, shape in others:
            try:
                return value if shape is None else shape(value, where)
            except Refused:
                continue
        if plain and any(isinstance(value, kind) for kind in plain):
            return value
        raise _unfit(value, " or ".join(getattr(one, "__name__", str(one)) for one in members), where)
    return made


# -- records -------------------------------------------------------------------------------------


def _record(kind: type) -> Shape | None:
    if is_model(kind):
        return _model(kind)
    if _is_typed_dict(kind):
        return lambda value, where: _dict_of(kind, value, where)
    if attrs.has(kind) or dataclasses.is_dataclass(kind):
        return lambda value, where: _object(kind, value, where)
    return None


def _is_typed_dict(kind: Any) -> bool:
    """Of whichever of the modules that have one: at run time its class makes plain dicts."""
    return hasattr(kind, "__required_keys__") and hasattr(kind, "__total__")


def _model(kind: Any) -> Shape:
    def made(value: Any, where: str) -> Any:
        try:
            return kind.model_validate_json(json.dumps(value))
        except Exception as problem:
            raise _unfit(value, kind, where, " ".join(str(problem).split())[:300]) from None
    return made


@cache
def _fields_of(kind: Any) -> dict[str, Shape | None]:
    """The names that a record is made with, and their shapes. When first used: records may hold themselves."""
    hints = hints_of(kind)
    if _is_typed_dict(kind):
        names = {name: name for name in hints}
    elif attrs.has(kind):
        names = {field.name: field.alias or field.name for field in attrs.fields(kind) if field.init}
    else:
        names = {field.name: field.name for field in dataclasses.fields(kind) if field.init}
    return {shown: shape_of(hints.get(name, Any)) for name, shown in names.items()}


def _dict_of(kind: Any, value: Any, where: str) -> dict[str, Any]:
    """The fields that are known, made; and no others."""
    if not isinstance(value, dict):
        raise _unfit(value, kind, where)
    fields = _fields_of(kind)
    strange = [name for name in value if name not in fields]
    if strange:
        raise bad_value(where, f"has the field {strange[0]!r:.40}, which {kind.__name__} does not have")
    return {name: item if (shape := fields[name]) is None else shape(item, f"{where}.{name}")
            for name, item in value.items()}


def _object(kind: Any, value: Any, where: str) -> Any:
    fields = _dict_of(kind, value, where)
    try:
        return kind(**fields)
    except Exception as problem:  # a field is missing, or the class refuses what it is given
        raise _unfit(value, kind, where, " ".join(str(problem).split())[:200]) from None


def hints_of(of: Any) -> dict[str, Any]:
    """The annotations of a function or a class, by name. What is imported for type checkers only is no help at run
    time: such an annotation counts as none."""
    try:
        return typing.get_type_hints(of, include_extras=True)
    except Exception:  # a name that is not there, or anything that an expression may raise
        bases = reversed(of.__mro__) if isinstance(of, type) else [of]
        return {name: hint for base in bases for name, given in getattr(base, "__annotations__", {}).items()
                if (hint := _hint(base, given)) is not None}


def _hint(of: Any, given: Any) -> Any:
    if not isinstance(given, str):
        return given
    holder = types.SimpleNamespace(__annotations__={"it": given})
    names = getattr(of, "__globals__", None) or vars(sys.modules[of.__module__])
    try:
        return typing.get_type_hints(holder, names, include_extras=True)["it"]
    except Exception:
        return None
