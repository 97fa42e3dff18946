"""A value of each type that a task may return and readers get back as it was."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

from skuld_py.calls.results import MARK

VALUES: dict[str, Any] = {
    "none": None, "true": True, "int": 6, "large": -(1 << 200), "float": 2.5, "infinite": -math.inf,
    "negative zero": -0.0, "text": "Zürich \u2028", "empty text": "", "bytes": b"\x00\xff", "empty bytes": b"",
    "bytes like a tagged result": MARK + b"j6", "bytes like a mark": MARK, "list": [1, [None, "x"]],
    "empty list": [], "tuple": (1, (2, "b")), "dict": {"a": {"b": [1.5]}}, "empty dict": {},
    "keys of all kinds": {1: "a", (2, 3): None},
    "dict like a tagged value": {"$uuid": "x"}, "dict with a dollar": {"$a": 1, "b": 2}, "set": {1, "a"},
    "frozenset": frozenset({(1, 2)}), "bytes inside": [b"\x00", {"b": b""}],
    "datetime": datetime(2026, 11, 20, 8, 0, 0, 1, tzinfo=UTC), "no zone": datetime(2026, 11, 20),
    "offset": datetime(2026, 11, 20, tzinfo=timezone(timedelta(hours=5, minutes=30))),
    "date": date(2026, 11, 20),
    "time": time(8, 30, tzinfo=UTC),
    "timedelta": timedelta(days=-3, microseconds=1),
    "uuid": UUID("12345678123456781234567812345678"), "decimal": Decimal("1.50"),
    "no number": [Decimal("Infinity")],
    "all at once": {"when": [datetime(2026, 1, 1)], "who": ({"id": UUID(int=7)}, Decimal("0E-10"))},
}


def exact(value: Any) -> Any:
    """The value with the types of all that it holds, to be compared."""
    kind = type(value).__name__
    if isinstance(value, dict):
        return kind, [(exact(key), exact(item)) for key, item in value.items()]
    if isinstance(value, set | frozenset):
        return kind, sorted(map(repr, map(exact, value)))
    return (kind, [*map(exact, value)]) if isinstance(value, list | tuple) else (kind, repr(value))
