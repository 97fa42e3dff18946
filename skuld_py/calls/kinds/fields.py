"""Checks that the kinds of tasks share: each gives the value, or raises ``Refused`` with the field's name.

Invariant: total. A value comes from any client, and may be anything that msgpack holds.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from skuld_py.errors import Refused

PATH_CHARS_MAX = 1_000
OPTIONS_MAX = 100
OPTION_CHARS_MAX = 4_096
_FORMAT = re.compile(r"[A-Za-z][\w.-]{0,99}", re.ASCII)
_OPTION = re.compile(r"[A-Za-z][\w.:-]{0,199}", re.ASCII)

Option = str | int | float | bool


def wrong(field: str, problem: str) -> Refused:
    """A field is not what it must be."""
    return Refused("bad_arguments", f"{field}: {problem}", field=field)


def text(field: str, value: Any, most: int) -> str:
    """A text of 1 to ``most`` characters, without the one that ends texts in C."""
    if type(value) is not str:
        raise wrong(field, f"a text is wanted, not {value!r:.40}")
    if not 0 < len(value) <= most:
        raise wrong(field, f"has {len(value)} characters; 1 to {most} are wanted")
    if "\0" in value:
        raise wrong(field, "holds a character of code 0")
    return value


def path(field: str, value: Any) -> str:
    """A path, or an address as s3a://bucket/name."""
    return text(field, value, PATH_CHARS_MAX)


def format_name(field: str, value: Any) -> str:
    """The name of a format of Spark's: parquet, csv, delta."""
    if type(value) is not str or _FORMAT.fullmatch(value) is None:
        raise wrong(field, f"{value!r:.40} is no format's name; write for example parquet")
    return value


def whole(field: str, value: Any, least: int, most: int) -> int:
    """An int in this range."""
    if type(value) is not int or not least <= value <= most:
        raise wrong(field, f"{value!r:.40} is no whole number from {least} to {most}")
    return value


def flag(field: str, value: Any) -> bool:
    """True or False."""
    if type(value) is not bool:
        raise wrong(field, f"{value!r:.40} is neither true nor false")
    return value


def table(field: str, value: Any, most: int) -> Mapping[str, Any]:
    """A dict of at most so many names; None is an empty one."""
    if value is None:
        return {}
    if type(value) is not dict or not all(type(name) is str for name in value):
        raise wrong(field, f"names with values are wanted, not {value!r:.40}")
    if len(value) > most:
        raise wrong(field, f"has {len(value)} names, more than {most}")
    return value


def record(field: str, value: Any, needed: Collection[str], known: Collection[str]) -> Mapping[str, Any]:
    """A dict of these fields, and no others."""
    made = table(field, value, len(known) + 1)
    for name in made:
        if name not in known:
            raise wrong(f"{field}.{name:.40}", f"there is no such field; known are {', '.join(known)}")
    for name in needed:
        if name not in made:
            raise wrong(f"{field}.{name}", "is missing")
    return made


def options(field: str, value: Any) -> dict[str, Option]:
    """Options of a format: short names with texts, numbers, true or false."""
    made: dict[str, Option] = {}
    for name, each in table(field, value, OPTIONS_MAX).items():
        where = f"{field}[{name!r:.60}]"
        if _OPTION.fullmatch(name) is None:
            raise wrong(where, "is no option's name")
        if type(each) not in (str, int, float, bool) or len(str(each)) > OPTION_CHARS_MAX:
            raise wrong(where, f"a text of up to {OPTION_CHARS_MAX} characters, a number, true or false is wanted")
        made[name] = each
    return made


def conf(field: str, value: Any, allowed: tuple[str, ...], refused: tuple[str, ...], why: str) -> dict[str, str]:
    """Settings of Spark whose names begin with one of ``allowed`` and with none of ``refused``; ``why`` says which
    there are."""
    made: dict[str, str] = {}
    for name, each in options(field, value).items():
        if not name.startswith(allowed) or name.startswith(refused):
            raise wrong(f"{field}[{name!r:.60}]", f"cannot be set by a task; {why}")
        made[name] = str(each).lower() if type(each) is bool else str(each)
    return made
