"""Readers of single values of plain data, and of the tables that hold them.

A reader takes a value and gives what it stands for, or raises ``Wrong``. A ``Table`` hands its keys to readers,
notes what they raise, and in the end complains of keys that nobody asked for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import Any, TypeVar

from skuld_py.workflow.definition.faults import Faults, Wrong, meant, quoted
from skuld_py.workflow.definition.names import DEPTH_MAX, FUNCTION_CHARS_MAX, OWN, WORDS_CHARS_MAX

T = TypeVar("T")
U = TypeVar("U")
E = TypeVar("E", bound=Enum)
Reader = Callable[[Any], T]
INT_MIN, INT_MAX = -(1 << 63), (1 << 63) - 1
MILLIS_MAX = 366 * 24 * 3600 * 1000
_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]+:")
_PATTERN = re.compile(r"[*?\[\]{}\\]")


class Table:
    """A table of plain data, key by key. ``entry`` is what faults call it, ``prefix`` what stands before its
    keys."""

    def __init__(self, faults: Faults, entry: str, value: Any, prefix: str = "") -> None:
        self.faults = faults
        self.entry = entry
        self._prefix = prefix
        self._asked: set[str] = set()
        self._rows: Mapping[Any, Any] = value if isinstance(value, Mapping) else {}
        self.is_table = isinstance(value, Mapping)
        if not self.is_table:
            self.fault(prefix.rstrip("."), f"{quoted(value)} is no table", "write its keys and values", whole=True)

    def __contains__(self, key: str) -> bool:
        return key in self._rows

    def take(self, key: str, reader: Reader[T], default: U) -> T | U:
        """What stands under a key, by a reader; the default where nothing does, or nothing right."""
        self._asked.add(key)
        if key in self._rows:
            with self.noting(key):
                return reader(self._rows[key])
        return default

    def need(self, key: str, reader: Reader[T], default: U, remedy: str) -> T | U:
        """The same for a key that must be there."""
        if self.is_table and key not in self._rows:
            self.fault(key, "is missing", remedy)
        return self.take(key, reader, default)

    def raw(self, key: str) -> Any:
        """As it is."""
        self._asked.add(key)
        return self._rows.get(key)

    def fault(self, key: str, problem: str, remedy: str, *, whole: bool = False) -> None:
        """Something is wrong with a key."""
        self.faults.add(self.entry, key if whole else self._prefix + key, problem, remedy)

    @contextmanager
    def noting(self, key: str) -> Iterator[None]:
        """Note what a reader raises within as a fault of this key."""
        try:
            yield
        except Wrong as wrong:
            self.fault(key, wrong.problem, wrong.remedy)

    def end(self, elsewhere: Mapping[str, str] | None = None) -> None:
        """Complain of all other keys. ``elsewhere`` says of some why they do not belong here."""
        for key in self._rows:
            if key in self._asked:
                continue
            if isinstance(key, str) and elsewhere and key in elsewhere:
                self.fault(key, "does not belong here", elsewhere[key])
            else:
                self.fault(str(key), "is no key of this", meant(str(key), self._asked))


# -- readers of single values --------------------------------------------------------------------


def text(value: Any) -> str:
    """A text that can be shown: not empty, not long, valid, without control characters."""
    if not isinstance(value, str):
        raise Wrong(f"{quoted(value)} is no text", "put it in quotes")
    if not value or len(value) > WORDS_CHARS_MAX:
        raise Wrong(f"has {len(value)} characters", f"write 1 to {WORDS_CHARS_MAX}")
    if not value.isprintable():
        raise Wrong(f"{quoted(value)} holds what cannot be printed", "leave out line ends, tabs and the like")
    return value


def name(pattern: re.Pattern[str], letters: str, most: int) -> Reader[str]:
    """A name by a grammar."""
    def read(value: Any) -> str:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise Wrong(f"{quoted(value)} is not a name", f"use {letters}, first a letter or digit, at most {most}"
                        " characters")
        return value
    return read


def function(value: Any) -> str:
    """The name of a function that workers know."""
    if not isinstance(value, str) or not 0 < len(value) <= FUNCTION_CHARS_MAX or not value.isprintable():
        raise Wrong(f"{quoted(value)} is no name of a function", "write the name by which workers know it, as"
                    f" acme.jobs:words, of at most {FUNCTION_CHARS_MAX} characters")
    if value.startswith(OWN):
        raise Wrong(f"{quoted(value)} is Skuld's own", f"name a function of yours; names with {OWN} are not for"
                    " workflows")
    return value


def whole(least: int, most: int) -> Reader[int]:
    """A whole number of a range."""
    def read(value: Any) -> int:
        if type(value) is not int:
            raise Wrong(f"{quoted(value)} is no whole number", f"write one from {least} to {most}, without quotes")
        if not least <= value <= most:
            raise Wrong(f"{quoted(value)} is not in {least}..{most}", f"write {least} or more" if value < least
                        else f"write {most} or less")
        return value
    return read


def seconds(value: Any) -> int:
    """A time in seconds, as milliseconds."""
    if type(value) not in (int, float) or not math.isfinite(value):
        raise Wrong(f"{quoted(value)} is no number of seconds", "write one, as 30 or 0.5, without quotes")
    millis = round(value * 1000) if abs(value) <= MILLIS_MAX else MILLIS_MAX + 1
    if not 1 <= millis <= MILLIS_MAX:
        raise Wrong(f"{quoted(value)} is not in 0.001..{MILLIS_MAX // 1000}", "write a time within a year")
    return millis


def flag(value: Any) -> bool:
    """True or false."""
    if type(value) is not bool:
        raise Wrong(f"{quoted(value)} is neither true nor false", "write true or false, without quotes")
    return value


def choice(kinds: type[E]) -> Reader[E]:
    """A word for a member of an enumeration."""
    def read(value: Any) -> E:
        for each in kinds:
            if each.value == value and isinstance(value, str):
                return each
        words = ", ".join(each.value for each in kinds)
        raise Wrong(f"{quoted(value)} is none of {words}", "write one of these")
    return read


def word(words: tuple[str, ...]) -> Reader[str]:
    """One of some words."""
    def read(value: Any) -> str:
        if not isinstance(value, str) or value not in words:
            raise Wrong(f"{quoted(value)} is none of {', '.join(words)}", "write one of these")
        return value
    return read


def place(value: Any) -> str:
    """A path or URI that means the same on every machine."""
    path = text(value)
    if not _ABSOLUTE.match(path):
        raise Wrong(f"{quoted(path)} is another place on each worker", "write it from the root, as /data/words, or"
                    " as a URI, as s3a://bucket/words")
    return path


def one_place(value: Any) -> str:
    """A place, not a pattern of many."""
    path = place(value)
    if _PATTERN.search(path):
        raise Wrong(f"{quoted(path)} is a pattern", "name one directory; * ? [ ] { } and backslashes"
                    " choose among several")
    return path.rstrip("/") or path


def several(reader: Reader[T], most: int) -> Reader[tuple[T, ...]]:
    """A list of values, each by a reader; none of them twice. The first that is wrong is told."""
    def read(value: Any) -> tuple[T, ...]:
        if not isinstance(value, list | tuple):
            raise Wrong(f"{quoted(value)} is no list", "put it in [ ]")
        if not 0 < len(value) <= most:
            raise Wrong(f"has {len(value)} parts", f"write 1 to {most}")
        made: list[T] = []
        for part in value:
            made.append(reader(part))
            if made[-1] in made[:-1]:
                raise Wrong(f"{quoted(part)} stands there twice", "write it once")
        return tuple(made)
    return read


def one_or_several(reader: Reader[T], most: int) -> Reader[tuple[T, ...]]:
    """A value, or a list of them."""
    many = several(reader, most)
    return lambda value: many(value) if isinstance(value, list | tuple) else (reader(value),)


# -- values of any shape -------------------------------------------------------------------------


def plain(value: Any) -> dict[str, Any]:
    """A table of what JSON has; a copy."""
    if not isinstance(value, Mapping):
        raise Wrong(f"{quoted(value)} is no table", "write keys and values")
    made: dict[str, Any] = _plain(value, "", 0)
    return made


def _plain(value: Any, where: str, depth: int) -> Any:
    if depth > DEPTH_MAX:
        raise Wrong(f"{where[:40]}… is nested deeper than {DEPTH_MAX}", "make it flatter")
    if value is None or type(value) is bool:
        return value
    if type(value) is str:
        return _valid(value, where)
    if type(value) is int:
        if not INT_MIN <= value <= INT_MAX:
            raise Wrong(f"{where or 'it'} does not fit into 64 bits", "write it as text")
        return value
    if type(value) is float:
        if not math.isfinite(value):
            raise Wrong(f"{where or 'it'} is {value}, which JSON has not", "write it as text")
        return value
    if isinstance(value, list | tuple):
        return [_plain(part, f"{where}[{index}]", depth + 1) for index, part in enumerate(value)]
    if isinstance(value, Mapping):
        for key in value:
            if type(key) is not str:
                raise Wrong(f"{where or 'it'} has the key {quoted(key)}, which is no text", "put it in quotes")
            _valid(key, where)
        return {key: _plain(part, f"{where}.{key}".lstrip("."), depth + 1) for key, part in value.items()}
    raise Wrong(f"{where or 'it'} is a {type(value).__name__}", "write it as text, number, list or table")


def _valid(value: str, where: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Wrong(f"{where or 'a key'} is no valid Unicode", "write it as UTF-8") from None
    return value
