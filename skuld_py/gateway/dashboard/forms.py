"""Queries and forms as they come, and the forms that verbs ask for, made from their options.

What is typed becomes what the body of a request over HTTP would hold, and is checked by the same model. An option
of a kind that no line can hold is left out; a verb that must have one is not for pages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

import attrs
from starlette.requests import Request

from skuld_py.gateway.problems import refusal
from skuld_py.model.names import NAME_CHARS_MAX
from skuld_py.verbs.options import REQUIRED, Choice, Line, Many, Number, Option, Plain, Seconds, Whole
from skuld_py.verbs.verb import Scope, Verb

FIELDS_MAX = 256
BODY_BYTES_MAX = 64 << 10
PAYLOAD_CHARS_MAX = 8_192
"""Of what is typed as a payload; longer ones are for programs."""
FORM = "application/x-www-form-urlencoded"
_TEXTS = (Plain.NAME, Plain.HOLDER, Plain.TEXT, Plain.WORDS, Plain.ID)


@attrs.frozen
class Field:
    """A line of a form. ``kind``: text, lines, number, moment, flag, choice or list; ``unit`` behind it."""

    name: str
    kind: str
    is_needed: bool
    words: str
    unit: str = ""
    choices: tuple[str, ...] = ()
    most: int = 250
    default: str = ""


Given = Mapping[str, Sequence[str]]
"""What was sent, by name."""


def query_of(request: Request) -> dict[str, list[str]]:
    """The query of a page; refused if it is none."""
    return _pairs(request.scope["query_string"], "query")


async def body_of(request: Request) -> dict[str, list[str]]:
    """The form that was sent; refused if it is none, or too long."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        raise refusal("unsupported_media_type", f"content-type: {FORM} is wanted", field="content-type")
    found = bytearray()
    async for part in request.stream():
        found += part
        if len(found) > BODY_BYTES_MAX:
            raise refusal("body_too_large", f"body: more than the {BODY_BYTES_MAX} bytes of a form", field="body")
    return _pairs(bytes(found), "body")


def _pairs(raw: bytes, where: str) -> dict[str, list[str]]:
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=FIELDS_MAX)
    except ValueError:
        raise refusal("bad_request", f"{where}: is no list of at most {FIELDS_MAX} NAME=VALUE in percent-encoded"
                      " UTF-8", field=where) from None
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


def one(given: Given, name: str) -> str:
    """The last value of this name, without the blanks around it; empty if there is none."""
    return given[name][-1].strip() if given.get(name) else ""


def whole(given: Given, name: str, default: int = 0) -> int:
    """A number from 0 on; ``default`` for what is none."""
    text = one(given, name)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else default


def is_for_pages(verb: Verb) -> bool:
    """Whether a page can do this verb: one that changes something, and asks for nothing that no line holds."""
    changes = verb.method == "POST" and verb.act is not None and verb.scope in (Scope.ENQUEUE, Scope.ADMIN)
    return changes and all(option.default is not REQUIRED or field_of(option) is not None
                           for option in verb.asks.options)


def fields_of(verb: Verb) -> list[Field]:
    """The lines of a verb's form."""
    return [field for option in verb.asks.options if (field := field_of(option)) is not None]


def field_of(option: Option) -> Field | None:
    """An option as a line; None if none can hold it."""
    words = option.help if option.told is None else option.told or option.help
    is_number = isinstance(option.default, float)
    default = f"{option.default:g}" if is_number else option.default if isinstance(option.default, str) else ""
    made = partial(Field, option.field or option.name, is_needed=option.default is REQUIRED, words=words,
                   default=default)
    match option.kind:
        case Plain.FLAG:
            return made("flag")
        case Line(_, most, _):
            return made("text", most=most)
        case Whole() | Number():
            return made("number")
        case Seconds():
            return made("number", unit="seconds")
        case Choice(choices):
            return made("choice", choices=choices)
        case Many(Plain.ID):
            return made("list")
        case Plain.PAST:
            return made("moment", unit="UTC", words=words.replace(", in seconds since 1970", ""))
        case Plain.BYTES:
            return made("lines", most=PAYLOAD_CHARS_MAX)
        case kind if kind in _TEXTS:
            return made("text", most=NAME_CHARS_MAX)
    return None


def asked_of(verb: Verb, given: Given) -> dict[str, Any]:
    """What a form asks for, as the body of a request has it; what is empty is left out."""
    made: dict[str, Any] = {}
    for option in verb.asks.options:
        field = field_of(option)
        if field is None:
            continue
        if field.kind == "list":
            values = [text for value in given.get(field.name, ()) for text in value.split()]
            if values:
                made[field.name] = values
        elif (text := one(given, field.name)):
            made[field.name] = _typed(option, text)
    return made


def seconds_of(text: str) -> float:
    """A time as a browser's field gives it, in UTC, in seconds since 1970; ``ValueError`` for what is none."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def _typed(option: Option, text: str) -> Any:
    """What a line says; as text where it is not what was wanted, so that the check names it."""
    if option.kind is Plain.FLAG:
        return True
    try:
        if option.kind is Plain.PAST:
            return seconds_of(text)
        if isinstance(option.kind, Whole):
            return int(text)
        if isinstance(option.kind, Seconds | Number):
            return float(text)
    except ValueError:
        return text
    return text
