"""JSON as RFC 8259 has it and no wider: one text, one meaning.

The parser of the standard library takes NaN and Infinity, lets the last of two equal keys win, and reads 1e400
as infinity and a lone surrogate as text that cannot be encoded again. Two programs on the way could each read
such a text differently; so it is refused. Source: the interoperability sections of RFC 8259, and RFC 7493.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from skuld_py.errors import Refused


def parse(raw: bytes) -> object:
    """The value of one JSON text in UTF-8. Raises ``Refused`` with the code ``bad_json``."""
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


def _refusal(problem: str) -> Refused:
    return Refused("bad_json", f"body: {problem}", field="body")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for index, key in enumerate(keys) if key in keys[:index])
        raise _refusal(f"holds the key {twice[:64]!a} twice in one object")
    return made


def _constant(name: str) -> NoReturn:
    raise _refusal(f"holds {name}, which is no JSON number")


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _refusal("holds a number beyond the range of a double")
    return number
