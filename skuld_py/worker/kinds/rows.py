"""Rows of Spark as values: a list of dicts, of the types that results have.

A time with a zone comes from Spark as local time of the driver, without one; here it gets back its zone, and so is
the same time wherever the result is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from skuld_py.errors import Refused


def values_of(schema: Any, rows: Sequence[Any]) -> list[dict[str, Any]]:
    """The rows of a DataFrame with this schema. ``Refused`` when two of its columns have one name."""
    names = list(schema.names)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise Refused("bad_result", f"two columns are called {twice[:60]!r}; give one another name: AS ...")
    return [_value(schema, row) for row in rows]


def _value(kind: Any, value: Any) -> Any:
    if value is None:
        return None
    match kind.typeName():
        case "struct":
            return {field.name: _value(field.dataType, item)
                    for field, item in zip(kind.fields, value, strict=True)}
        case "array":
            return [_value(kind.elementType, item) for item in value]
        case "map":
            return {_value(kind.keyType, key): _value(kind.valueType, item) for key, item in value.items()}
        case "timestamp":
            return value.astimezone(UTC) if isinstance(value, datetime) else value
        case "binary":
            return bytes(value)
        case "variant":
            return value.toPython()
        case _:
            return value
