"""What is said of one small run.

It stands by itself because runs of nodes and those of the coordination log have it in common, and no more.
"""

from __future__ import annotations

from collections import Counter

import attrs

from skuld_py.simulation.small.script import Script


@attrs.frozen
class Verdict:
    """What became of a script. ``ways``: how many numbers its run has, each a way to deviate."""

    script: Script
    ways: int
    violated: dict[str, tuple[str, ...]]
    taken: tuple[str, ...]
    pairs: Counter[str]
    trace_hash: str
    last_lines: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing is broken."""
        return not self.violated
