"""Arguments as they are typed: ``2 b=3 day=2026-11-20 'tags=["a", "b"]'``.

A word is a value, or a name, ``=`` and a value. A value is JSON where it is JSON, else text: so a text that looks
like JSON, or like ``name=value``, is typed as JSON, in quotes of its own: ``'"007"'``, ``'"a=b"'``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from skuld_py.errors import Refused

_NAMED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


def arguments_of(words: Iterable[str]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments in order, and those by name. Raises ``Refused`` when a name is given twice."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for word in words:
        if (named := _NAMED.fullmatch(word)) is None:
            args.append(value_of(word))
            continue
        name, value = named.groups()
        if name in kwargs:
            raise Refused("bad_arguments", f"{name}= is given twice; keep one of them", field=name)
        kwargs[name] = value_of(value)
    return args, kwargs


def value_of(word: str) -> Any:
    """A value: JSON, if it is, else the text itself."""
    try:
        return json.loads(word, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return word


def _no_constant(word: str) -> Any:
    raise ValueError(word)
