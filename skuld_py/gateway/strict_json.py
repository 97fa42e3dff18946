"""JSON as RFC 8259 has it and no wider: one text, one meaning.

The parser of the standard library takes NaN and Infinity, lets the last of two equal keys win, and reads 1e400
as infinity and a lone surrogate as text that cannot be encoded again. Two programs on the way could each read
such a text differently; so it is refused. Source: the interoperability sections of RFC 8259, and RFC 7493.

A text of 8 MB may hold three million lists, which take most of a second to make, and nothing else runs meanwhile,
in whatever thread it is done. So values are counted before any is made, by what stands between them: a comma, or
the bracket before the first of a list or an object. Strings are cut out first, for what they hold is no value.
Rejected: a regular expression for strings, and a parser that counts as it reads: both are ten times slower.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any, NoReturn

from skuld_py.errors import Refused


def parse(raw: bytes, values_max: int) -> object:
    """The value of one JSON text in UTF-8. Raises ``Refused``: ``bad_json``, or ``body_too_large``."""
    if _has_more_values(raw, values_max):
        raise Refused("body_too_large", f"body: holds more than {values_max} values; send several requests",
                      field="body")
    try:
        text = raw.decode("utf-8")
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_number)
        if "\\ud" in text or "\\uD" in text:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeDecodeError:
        raise _refusal("is not UTF-8") from None
    except UnicodeEncodeError:
        raise _refusal("holds half of a surrogate pair, which is no character") from None
    except json.JSONDecodeError as problem:
        raise _refusal(f"is no JSON: {problem.msg} at character {problem.pos}") from None
    except ValueError:  # an integer of thousands of digits
        raise _refusal("holds a number that is too long") from None
    except RecursionError:
        raise _refusal("is nested too deeply") from None
    return value


def _has_more_values(raw: bytes, most: int) -> bool:
    """Whether a text holds more values than that; of what is no JSON, any answer will do."""
    plain = raw.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in raw else raw
    if plain.count(b'"') > 4 * most:  # a value is one string, and its key another
        return True
    between = b"".join(plain.split(b'"')[::2])
    found = 1
    for mark in (b",", b"[", b"{"):
        if found <= most:
            found += between.count(mark)
    return found > most


def _refusal(problem: str) -> Refused:
    return Refused("bad_json", f"body: {problem}", field="body")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise _refusal(f"holds the key {twice[:64]!a} twice in one object")
    return made


def _constant(name: str) -> NoReturn:
    raise _refusal(f"holds {name}, which is no JSON number")


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _refusal("holds a number beyond the range of a double")
    return number
