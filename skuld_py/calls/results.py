"""What is stored of what a function returned, and how readers get it back: the value, not its bytes.

A stored result says what it is. Three bytes stand in front of it: ``C1 01`` and a letter.

    t   text, in UTF-8            b   bytes            j   any other value, as JSON in UTF-8
    o   outputs of the task, and a value: four bytes say how long the outputs are, in JSON (``calls.outputs``);
        behind them stands the value, stored as any other

``None`` is stored as no result at all. Bytes are stored bare, unless they are none or begin as a tagged result
does. So a result without a tag is bytes, which is what plain clients and older releases gave: what these workers
stored of text and of other values is read as bytes, as it always was. C1 never stands in UTF-8, hence no text and
no JSON of theirs is taken for a tagged result. A reader that does not know ``o`` shows these results as bytes.

JSON holds more than JSON knows by objects of one key: ``{"$datetime": "2026-11-20T08:00:00+00:00"}``, and so
``$date``, ``$time``, ``$timedelta`` (days, seconds, microseconds), ``$uuid``, ``$decimal``, ``$bytes`` (base64),
``$float`` (nan, inf, -inf), ``$reference`` (a value in a file), ``$tuple``, ``$set``, ``$frozenset``, and
``$dict`` (pairs) for a dict whose keys are not all text, or which looks like one of these. Dataclasses, attrs
classes and pydantic models are stored as dicts of their fields, members of Enums as their values, and subclasses
of plain types as these: their classes are the worker's, and a reader need not have them (``shapes`` makes them
again where it is asked to).

Invariants: ``decode_result(encode_result(x)) == x`` for all kinds named above, of the same types. Reading is
total: bytes that look tagged and are not well-formed are bytes; and what was read can be stored again.

Rejected: msgpack, which SQL on the archive cannot read; a column for the tag, a field more in every message and
table; pickle, for a reader would run the worker's code.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import attrs

from skuld_py.calls.outputs import Reference, Written, packed, reference_fields, reference_of, unpacked
from skuld_py.calls.plain import Writer
from skuld_py.config import DEFAULT_LIMITS
from skuld_py.errors import Refused

MARK = b"\xc1\x01"
TEXT, BYTES, JSON, OUTPUTS = b"t", b"b", b"j", b"o"
WORDS = {"text": TEXT, "bytes": BYTES, "json": JSON}
"""What the archive calls them."""
DEPTH_MAX = 100
_HEAD = len(MARK) + 1
_LENGTH = 4
_BASES = (bool, int, float, str, bytes, list, tuple, dict, set, frozenset)


class Stored(bytes):
    """A result as it is stored: made once, where it can be refused, and not again."""


@attrs.frozen
class Carrying:
    """What a function returned, and what it wrote."""

    value: Any
    outputs: tuple[Written, ...]


def encode_result(value: Any) -> Stored:
    """What is stored of a value; empty for None. ``Refused`` when it is no value that can be, or too large."""
    if type(value) is Stored:
        return value
    if type(value) is Carrying:
        content = encoded(value.value)
        whole = _with_outputs(value.outputs, content, with_files=True)
        is_fit = len(whole) <= DEFAULT_LIMITS.entry_bytes
        stored = whole if is_fit else _with_outputs(value.outputs, content, with_files=False)
    else:
        stored = encoded(value)
    if len(stored) > DEFAULT_LIMITS.entry_bytes:
        raise Refused("result_too_large", f"a result of {len(stored)} bytes; the limit is"
                      f" {DEFAULT_LIMITS.entry_bytes}. Write the data below context.output(PATH), or return"
                      " context.output(PATH).reference(VALUE)")
    return stored


def encoded(value: Any) -> Stored:
    """The same, of any size."""
    if type(value) is Stored:
        return value
    if type(value) is bytes and value and not value.startswith(MARK):
        return Stored(value)
    word, content = parted(value)
    return Stored(b"" if word is None else MARK + WORDS[word] + content)


def _with_outputs(outputs: tuple[Written, ...], content: bytes, *, with_files: bool) -> Stored:
    said = packed(outputs, with_files=with_files)
    return Stored(MARK + OUTPUTS + len(said).to_bytes(_LENGTH, "big") + said + content)


def parted(value: Any) -> tuple[str | None, bytes]:
    """A value as the word for its kind, None for None, and its bytes. ``Refused`` when it cannot be stored."""
    if value is None:
        return None, b""
    if type(value) is bytes:
        return "bytes", value
    try:
        return ("text", value.encode()) if type(value) is str else ("json", _json_of(value))
    except (TypeError, ValueError, RecursionError) as problem:
        raise Refused("bad_result", "a result must be None, bytes, text, or a plain value (bool, int, float, list,"
                      " tuple, dict, set; times, UUID, Decimal; dataclasses, attrs classes and pydantic models of"
                      f" these): {problem}") from None


def joined(word: str | None, content: bytes | None) -> Any:
    """The value of a word and bytes; without a word, as an older release archived it, of what it had stored."""
    return decode_result(content if word is None else MARK + WORDS[word] + (content or b""))


def decode_result(stored: bytes | None) -> Any:
    """The value of a stored result; None for none. Never an error."""
    if not stored:
        return None
    stored = bytes(stored)
    if not stored.startswith(MARK):
        return stored
    tag, content = stored[len(MARK) : _HEAD], stored[_HEAD:]
    try:
        if tag == TEXT:
            return content.decode()
        if tag == JSON:
            return _value_of(json.loads(content, parse_constant=_no_constant), 0)
        if tag == OUTPUTS:
            return decode_result(_split(content)[1])
    except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, RecursionError):
        return stored
    return content if tag == BYTES else stored


def decode_outputs(stored: bytes | None) -> tuple[Written, ...]:
    """What the completion with this result names; nothing for any other. Never an error."""
    if not stored or bytes(stored[:_HEAD]) != MARK + OUTPUTS:
        return ()
    try:
        return _split(bytes(stored[_HEAD:]))[0]
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return ()


def _split(content: bytes) -> tuple[tuple[Written, ...], bytes]:
    """Outputs, and the stored value behind them; an error when they are cut short, for that is no JSON."""
    end = _LENGTH + int.from_bytes(content[:_LENGTH], "big")
    value = content[end:]
    if value.startswith(MARK + OUTPUTS):
        raise ValueError("outputs of outputs")
    return unpacked(content[_LENGTH:end]), value


def shown(value: Any) -> tuple[str, bytes, Any]:
    """For readers in other languages: which kind a value is (none, bytes, text, json), its bytes, and it as plain
    JSON, in which times, UUIDs and Decimals are text and bytes base64."""
    if value is None:
        return "none", b"", None
    if isinstance(value, bytes):
        return "bytes", value, None
    if isinstance(value, str):
        return "text", value.encode("utf-8", "backslashreplace"), value
    plain = jsonable(value)
    return "json", json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode(), plain


# -- to JSON -------------------------------------------------------------------------------------


def marked(value: Any) -> Any:
    """The value as JSON can hold it, with marks for what JSON does not know. Raises ``TypeError`` or
    ``ValueError`` for what is no value."""
    return _marked(value, 0)


def unmarked(found: Any) -> Any:
    """The value that was marked so. Whatever is wrong with it is some ``ValueError``, ``TypeError`` or
    ``LookupError``, or one of those that ``decode_result`` expects."""
    return _value_of(found, 0)


def _json_of(value: Any) -> bytes:
    return json.dumps(_marked(value, 0), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _marked(value: Any, depth: int) -> Any:
    """The value as JSON can hold it."""
    kind = type(value)
    if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
        return value
    if depth > DEPTH_MAX:
        raise ValueError(f"it is nested deeper than {DEPTH_MAX}")
    if kind is list:
        return [_marked(item, depth + 1) for item in value]
    if kind is dict:
        return _marked_dict(value, depth)
    if kind in (tuple, set, frozenset):
        return {f"${kind.__name__}": [_marked(item, depth + 1) for item in value]}
    if kind in _WRITTEN:
        name, write, _ = _WRITTEN[kind]
        return {f"${name}": write(value)}
    base = next((base for base in _BASES if isinstance(value, base)), None)
    return _marked(_field_dict(value) if base is None else base(value), depth + (base is None))


def _marked_dict(value: dict[Any, Any], depth: int) -> dict[str, Any]:
    is_plain = all(type(key) is str for key in value)
    if is_plain and not (len(value) == 1 and next(iter(value)).startswith("$")):
        return {key: _marked(item, depth + 1) for key, item in value.items()}
    return {"$dict": [[_marked(key, depth + 1), _marked(item, depth + 1)] for key, item in value.items()]}


def _field_dict(value: Any) -> Any:
    """A record as a dict of its fields, an Enum's member as its value."""
    writer = Writer()
    try:
        return writer.plain(value, "the result")
    except Refused as refusal:
        raise TypeError(refusal.message) from None


# -- and back ------------------------------------------------------------------------------------


def _value_of(found: Any, depth: int) -> Any:
    if isinstance(found, str) and not found.isascii():
        found.encode()  # half of a pair, by an escape, is no text
    if not isinstance(found, list | dict):
        return found
    if depth > DEPTH_MAX:
        raise ValueError(f"it is nested deeper than {DEPTH_MAX}")
    if isinstance(found, list):
        return [_value_of(item, depth + 1) for item in found]
    if len(found) == 1:
        (key, content), = found.items()
        if key.startswith("$"):
            return _READ[key](content) if key in _READ else _container(key, content, depth)
    return {_value_of(key, depth): _value_of(item, depth + 1) for key, item in found.items()}


def _container(key: str, content: Any, depth: int) -> Any:
    if key == "$dict":
        return {_value_of(name, depth + 1): _value_of(item, depth + 1) for name, item in content}
    return _CONTAINERS[key](_value_of(item, depth + 1) for item in content)


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def _base64(text: Any) -> bytes:
    return base64.b64decode(text, validate=True)


def _timedelta(parts: Any) -> timedelta:
    days, seconds, microseconds = parts
    return timedelta(days, seconds, microseconds)


_WRITTEN: Mapping[type, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    datetime: ("datetime", datetime.isoformat, datetime.fromisoformat),
    date: ("date", date.isoformat, date.fromisoformat),
    time: ("time", time.isoformat, time.fromisoformat),
    timedelta: ("timedelta", lambda span: [span.days, span.seconds, span.microseconds], _timedelta),
    UUID: ("uuid", str, UUID),
    Decimal: ("decimal", str, Decimal),
    bytes: ("bytes", lambda data: base64.b64encode(data).decode(), _base64),
    float: ("float", str, float),
    Reference: ("reference", reference_fields, reference_of),
}
_READ: Mapping[str, Callable[[Any], Any]] = {f"${name}": read for name, _, read in _WRITTEN.values()}
_CONTAINERS: Mapping[str, Callable[[Any], Any]] = {"$tuple": tuple, "$set": set, "$frozenset": frozenset}


# -- for other languages -------------------------------------------------------------------------


def jsonable(value: Any) -> Any:
    """The value in plain JSON, for reading: not to be read back as what it was."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case dict():
            return {key if isinstance(key, str) else str(jsonable(key)): jsonable(item)
                    for key, item in value.items()}
        case list() | tuple():
            return [jsonable(item) for item in value]
        case set() | frozenset():
            return sorted((jsonable(item) for item in value), key=json.dumps)
        case bytes():
            return base64.b64encode(value).decode()
        case timedelta():
            return value.total_seconds()
        case datetime() | date() | time():
            return value.isoformat()
        case Reference():
            return attrs.asdict(value)
        case _:
            return str(value)
