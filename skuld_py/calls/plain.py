"""Values as they travel in a call: None, bool, int (64 bits), float, str, bytes, lists, and dicts with str keys.

What else a program holds is written as one of these, as anybody would write it in JSON: times in ISO 8601, a UUID
and a Decimal as text, a timedelta as seconds, a member of an Enum as its value, a set as a list, and a dataclass,
an attrs class or a pydantic model as a dict of its fields. What it was the annotations of the function say
(``shapes``), so a caller without Python writes the same. Tuples are lists.

Invariant: a value is written, or refused with its place in the call; nothing is written by guess.

Rejected: extension types of msgpack, which would need no annotations: then no other language and no command line
could call a function that takes a date. Pickle, which runs the caller's code in the worker.
"""

from __future__ import annotations

import dataclasses
import sys
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import attrs

from skuld_py.errors import Refused

DEPTH_MAX = 32
INT_MIN, INT_MAX = -(1 << 63), (1 << 64) - 1
_SECOND = timedelta(seconds=1)
_IS_WRITTEN = (datetime, date, time, timedelta, UUID, Decimal, Enum)


class Writer:
    """Writes the values of one call. ``kinds``: of those that annotations must make again, in their order."""

    def __init__(self) -> None:
        self.kinds: list[type] = []

    def plain(self, value: Any, where: str, depth: int = 0) -> Any:
        """The value as it travels; ``Refused`` naming the place of the first thing that cannot."""
        kind = type(value)
        if value is None or kind in (bool, float, bytes):
            return value
        if depth > DEPTH_MAX:
            raise bad_value(where, f"is nested deeper than {DEPTH_MAX}")
        if kind is int:
            if not INT_MIN <= value <= INT_MAX:
                raise bad_value(where, "does not fit into 64 bits")
            return value
        if kind is str:
            if not value.isascii():
                _check_text(value, where)
            return value
        if kind in (list, tuple):
            return [self.plain(item, f"{where}[{index}]", depth + 1) for index, item in enumerate(value)]
        if kind is dict:
            for key in value:
                if type(key) is not str:
                    raise bad_value(where, f"has the key {key!r:.40}, which is no str")
                _check_text(key, where)
            return {key: self.plain(item, f"{where}[{key!r:.40}]", depth + 1) for key, item in value.items()}
        return self._written(value, where, depth)

    def _written(self, value: Any, where: str, depth: int) -> Any:
        self.kinds.append(type(value))
        if type(value) in (set, frozenset):  # in an order that does not change from process to process
            return sorted((self.plain(item, f"{where}[...]", depth + 1) for item in value), key=repr)
        if not isinstance(value, _IS_WRITTEN):
            return self._fields(value, where, depth)
        written = _text_of(value)
        return self.plain(written, where, depth + 1) if isinstance(value, Enum) else written

    def _fields(self, value: Any, where: str, depth: int) -> Any:
        """A record as a dict, by the names that its class is made with."""
        kind = type(value)
        if is_model(kind):
            self.kinds += map(type, vars(value).values())
            return self.plain(_dumped(value, where), where, depth)
        if attrs.has(kind):
            names = {field.name: field.alias for field in attrs.fields(kind) if field.init}
        elif dataclasses.is_dataclass(kind):
            names = {field.name: field.name for field in dataclasses.fields(kind) if field.init}
        else:
            raise bad_value(where, f"is a {kind.__name__}; a call holds None, bool, int, float, str, bytes, list"
                            " and dict; set, datetime, date, time, timedelta, UUID, Decimal, Enum; and"
                            " dataclasses, attrs classes and pydantic models of these")
        return {shown: self.plain(getattr(value, name), f"{where}.{name}", depth + 1)
                for name, shown in names.items()}


def is_model(kind: Any) -> bool:
    """Whether it is a class of pydantic's. Nobody has one who has not imported pydantic."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)


def bad_value(where: str, problem: str) -> Refused:
    """An argument cannot travel, or is not what the function takes."""
    return Refused("bad_arguments", f"{where}: {problem}", field=where)


def _dumped(value: Any, where: str) -> Any:
    try:
        return value.model_dump(mode="json", by_alias=True, round_trip=True)
    except Exception as problem:  # a model may do anything
        raise bad_value(where, f"is a {type(value).__name__} that cannot be written:"
                        f" {str(problem)[:200]}") from None


def _text_of(value: Any) -> Any:
    match value:
        case Enum():
            return value.value
        case timedelta():
            return value / _SECOND
        case UUID() | Decimal():
            return str(value)
        case _:
            return value.isoformat()


def _check_text(text: str, where: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise bad_value(where, "is a str that is no valid Unicode") from None
