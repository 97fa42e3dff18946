"""Numbers, times and lists in words for people.

One way for all texts: of verbs of the table, of commands made by hand, and of what is wrong with a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime


def said(seconds: float) -> str:
    """A duration as people say it: 300 ms, 1.5 s, 2 min, 3 h."""
    if seconds < 1:
        return f"{round(seconds * 1000)} ms"
    for size, unit in ((3600.0, "h"), (60.0, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{seconds:.1f}".removesuffix(".0") + " s"


def moment(at_ms: int) -> str:
    """A time by this machine's clock and zone, to the millisecond."""
    return datetime.fromtimestamp(at_ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def instant(at_ms: int) -> str:
    """A time to the second with its zone, for words that are read elsewhere, too: by callers of a gateway."""
    return datetime.fromtimestamp(at_ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")


def copies(count: int) -> str:
    """A number of copies, in words."""
    return "1 copy" if count == 1 else f"{count} copies"


def many(count: int, thing: str) -> str:
    """A number and its noun."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def except_at(missing: Sequence[str]) -> str:
    """Which nodes are still to confirm a setting."""
    return f", but these nodes have not confirmed it: {', '.join(missing)}" if missing else ""
