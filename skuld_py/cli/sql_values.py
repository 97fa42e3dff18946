"""What Spark SQL answers, as text for people and as JSON for programs.

Bytes are shown as by other verbs (``showing``): as harmless text or base64, in JSON exactly. Times are in UTC, as
the days of an archive are.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from skuld_py.cli import showing
from skuld_py.verbs import contents


def document(names: Iterable[str], row: Sequence[Any]) -> dict[str, Any]:
    """A row; of columns with one name the last counts."""
    made: dict[str, Any] = {}
    for name, value in zip(names, row, strict=True):
        made |= contents.fields_of(name, bytes(value)) if _is_bytes(value) else {name: plain(value)}
    return made


def text(value: Any) -> str:
    """A value in one line."""
    if value is None:
        return ""
    if _is_bytes(value):
        return showing.shown(bytes(value))
    made = plain(value)
    return showing.harmless(made if isinstance(made, str) else json.dumps(made, ensure_ascii=False))


def plain(value: Any) -> Any:
    """What JSON can have; bytes within others as text, or marked base64."""
    if _is_bytes(value):
        return showing.shown(bytes(value))
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if hasattr(value, "asDict"):
        return document(value.__fields__, value)
    if isinstance(value, Mapping):
        return {text(key): plain(each) for key, each in value.items()}
    if isinstance(value, Iterable):
        return [plain(each) for each in value]
    return str(value)


def _is_bytes(value: Any) -> bool:
    return isinstance(value, bytes | bytearray)
