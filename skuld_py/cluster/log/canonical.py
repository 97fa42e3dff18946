"""Values of the coordination log as text, and back: one text for each value, the same from every writer.

JSON without blanks, so that an operator can read the log with any ZooKeeper client. An object's fields are sorted;
a mapping is a list of pairs, in its own order, because that order is part of the value (which member joined
first). Fields that are derived from others (``eq=False``) are left out and computed again. Fields that are
``SPARSE`` are left out while they are empty: to releases that do not know them text and digest are the same.

Reading is total: a text gives a value of the class asked for, or ``Malformed`` naming the field. JSON can spell
half a character, which no file and no digest can hold; that is malformed, too.
"""

from __future__ import annotations

import json
import re
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, get_args, get_origin

import attrs

from skuld_py.errors import Malformed

T = TypeVar("T")
SPARSE = {"is_sparse": True}
"""Metadata of a field that has a default and came later: no part of the text while it is empty."""
UNKNOWN_FIELD = "is not known to this version"
_HALVES = re.compile("[\ud800-\udfff]")


def to_text(value: Any) -> str:
    """The one text of a value."""
    return json.dumps(to_plain(value), separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def to_plain(value: Any) -> Any:
    """The value in JSON's types."""
    kind: Any = type(value)
    if attrs.has(kind):
        return {field.name: to_plain(here) for field in _stored(kind)
                if (here := getattr(value, field.name)) or not field.metadata.get("is_sparse")}
    if isinstance(value, Mapping):
        return [[key, to_plain(each)] for key, each in value.items()]
    if isinstance(value, tuple | list):
        return [to_plain(each) for each in value]
    return value


def from_text(kind: type[T], text: str | bytes) -> T:
    """The value of a text."""
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError):
        raise Malformed(kind.__name__, "is no JSON") from None
    return from_plain(kind, plain)


def from_plain(kind: type[T], plain: Any) -> T:
    """The value of JSON's types."""
    value: T = _read(kind, plain, kind.__name__)
    return value


@cache
def _stored(kind: Any) -> tuple[Any, ...]:
    return tuple(field for field in attrs.fields(kind) if field.eq and field.name != "unknown")


@cache
def _types(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _read(kind: Any, plain: Any, where: str) -> Any:
    if attrs.has(kind):
        return _read_object(kind, plain, where)
    origin = get_origin(kind)
    if origin is None:
        if type(plain) is not kind:
            raise Malformed(where, f"is {type(plain).__name__}, not {kind.__name__}")
        if kind is str and _HALVES.search(plain):
            raise Malformed(where, "has half a character")
        return plain
    if not isinstance(plain, list):
        raise Malformed(where, f"is {type(plain).__name__}, not a list")
    if origin is tuple:
        return tuple(_read(get_args(kind)[0], each, f"{where}[{index}]") for index, each in enumerate(plain))
    of, to = get_args(kind)
    return _read_mapping(of, to, plain, where)


def _read_mapping(key: Any, kind: Any, plain: list[Any], where: str) -> dict[Any, Any]:
    made = {}
    for pair in plain:
        if not isinstance(pair, list) or len(pair) != 2:
            raise Malformed(where, "holds something that is no pair")
        made[_read(key, pair[0], where)] = _read(kind, pair[1], f"{where}.{pair[0]}")
    return made


def _read_object(kind: Any, plain: Any, where: str) -> Any:
    if not isinstance(plain, dict):
        raise Malformed(where, f"is {type(plain).__name__}, not an object")
    hints, made = _types(kind), {}
    for field in _stored(kind):
        if field.name in plain:
            made[field.alias] = _read(hints[field.name], plain[field.name], f"{where}.{field.name}")
        elif field.default is attrs.NOTHING:
            raise Malformed(f"{where}.{field.name}", "is missing")
    unknown = sorted(plain.keys() - hints.keys())
    if unknown:
        raise Malformed(f"{where}.{unknown[0]}", UNKNOWN_FIELD)
    return kind(**made)
