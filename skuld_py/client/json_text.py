"""JSON that is safe to show on a terminal: what others wrote stays readable, and moves no cursor.

JSON itself escapes only the control characters of ASCII. Those of Latin-1 (U+009B begins an escape sequence by
itself), marks that turn the direction of text or have no width, and all else that prints nothing are escaped here
too. A reader of JSON sees no difference.
"""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from functools import cache, lru_cache
from itertools import groupby


def json_text(document: object, *, is_ascii: bool = False, is_compact: bool = False) -> str:
    """One document on one line."""
    separators = (",", ":") if is_compact else (", ", ": ")
    text = json.dumps(document, ensure_ascii=is_ascii, separators=separators)
    return text if text.isprintable() else _harmful().sub(lambda found: _escaped(found[0]), text)


def is_harmless(char: str) -> bool:
    """Whether it shows, or is a space of some width, and does nothing else."""
    return char.isprintable() or unicodedata.category(char) == "Zs"


def harmless_text(text: str, *, is_one_line: bool = True) -> str:
    """Text that others wrote, with all that could move a cursor, or turn what follows, as escapes."""
    kept = "" if is_one_line else "\n\t"
    return "".join(char if char in kept or is_harmless(char) else char.encode("unicode_escape").decode()
                   for char in text)


@lru_cache(maxsize=4_096)
def _escaped(char: str) -> str:
    return json.dumps(char)[1:-1]


@cache
def _harmful() -> re.Pattern[str]:
    """A pattern of all other characters, as ranges: a page of megabytes is searched at once."""
    spans = []
    for harmless, group in groupby(map(chr, range(sys.maxunicode + 1)), is_harmless):
        chars = list(group)
        if not harmless:
            spans.append(f"{re.escape(chars[0])}-{re.escape(chars[-1])}")
    return re.compile("[" + "".join(spans) + "]")
