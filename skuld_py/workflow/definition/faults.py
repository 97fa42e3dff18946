"""What is wrong with a definition: all of it at once, each fault by entry and key, with the remedy.

Invariant: what others wrote is quoted shortened, and no more than ``FAULTS_MAX`` are kept, so that an error is
never larger than what it is about.

Rejected: a schema library. It would say where a type is wrong, not what to write instead, and knows nothing of
edges.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

import attrs

from skuld_py.errors import Refused

FAULTS_MAX = 100
QUOTED_CHARS_MAX = 60
LISTED_MAX = 12


@attrs.frozen
class Fault:
    """``entry``: ``words`` for a step of the catalog, ``edges[2]``, ``conditions[0]``; empty for the whole.
    ``key``: which of its keys, empty for all of it."""

    entry: str
    key: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        where = ".".join(filter(None, (self.entry, self.key)))
        return f"{where}: {self.problem}; {self.remedy}"


class BadWorkflow(Refused):
    """A definition that is not whole. ``faults``: everything that is wrong with it, up to ``FAULTS_MAX``."""

    def __init__(self, faults: Iterable[Fault], left_out: int = 0) -> None:
        self.faults = tuple(faults)
        self.left_out = left_out
        count = len(self.faults) + left_out
        lines = [str(fault) for fault in self.faults] + [f"and {left_out} more"] * bool(left_out)
        message = lines[0] if count == 1 else "\n  ".join([f"the workflow has {count} errors:", *lines])
        first = self.faults[0]
        super().__init__("bad_workflow", message, errors=count, entry=first.entry, key=first.key)


class Wrong(Exception):
    """What is wrong with one value, and what would be right."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy


class Faults:
    """Those that were found so far."""

    def __init__(self) -> None:
        self._found: list[Fault] = []
        self._left_out = 0

    def add(self, entry: str, key: str, problem: str, remedy: str) -> None:
        """One more."""
        fault = Fault(shortened(entry), shortened(key), problem, remedy)
        if fault in self._found:
            return
        if len(self._found) == FAULTS_MAX:
            self._left_out += 1
            return
        self._found.append(fault)

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._found) + self._left_out

    def refuse(self) -> None:
        """Raise ``BadWorkflow`` if there are any."""
        if self._found:
            raise BadWorkflow(self._found, self._left_out)


def quoted(value: object) -> str:
    """A value for an error: a short one as it is, another one by what it is."""
    match value:
        case str():
            return shortened(repr(value[:QUOTED_CHARS_MAX]) + "…" * (len(value) > QUOTED_CHARS_MAX))
        case bool():
            return str(value).lower()
        case None | int() | float():
            return shortened(str(value)) if abs(value or 0) < 1e300 else "a very large number"
        case list() | tuple():
            return f"a list of {len(value)}"
        case Mapping():
            return f"a table of {len(value)} keys"
        case _:
            return f"a {type(value).__name__}"


def shortened(text: str) -> str:
    """On one line, and no longer than what an error quotes."""
    line = text if text.isprintable() else ascii(text[:QUOTED_CHARS_MAX])
    return line if len(line) <= QUOTED_CHARS_MAX else line[: QUOTED_CHARS_MAX - 1] + "…"


def meant(name: str, known: Iterable[str]) -> str:
    """What was probably meant, or what there is."""
    every = sorted(known)
    near = get_close_matches(name[:QUOTED_CHARS_MAX], every, n=1)
    return f"did you mean {near[0]}?" if near else f"there is {listed(every)}"


def listed(names: Iterable[str]) -> str:
    """``a, b and 3 more``."""
    every = [shortened(name) for name in names]
    if not every:
        return "none"
    more = len(every) - LISTED_MAX
    return ", ".join(every[:LISTED_MAX]) + (f" and {more} more" if more > 0 else "")
