"""What is drawn from a source at a time, and what a source is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import attrs

from skuld_py.errors import Refused

HAUL_BYTES = 16 << 20


@attrs.frozen
class Haul:
    """Values, packed, from an offset of a part on; where the source goes on; whether that was all, for ever."""

    values: Sequence[bytes]
    part: int
    offset: int
    cursor: bytes
    is_last: bool


class Source(Protocol):
    """Something with parts, and in each of them offsets that rise. Asked again after an error it does the same."""

    def draw(self, cursor: bytes, most: int) -> Haul:
        """At most so many values from where the cursor says, which is empty at first."""

    def again(self, part: int, offset: int, count: int) -> Sequence[bytes]:
        """These, which were drawn before."""

    def settle(self, cursor: bytes, open_from: Mapping[int, int]) -> None:
        """By what is durable, all is done but what is behind the cursor, or from these offsets of parts on."""

    def tend(self) -> None:
        """Called every second or more often."""

    def close(self) -> None:
        """The feeder ends, whatever the reason."""


def gave_others(problem: str) -> Refused:
    """What ends a workflow whose source gives other values than before."""
    return Refused("other_values", f"source: {problem}", field="source")
