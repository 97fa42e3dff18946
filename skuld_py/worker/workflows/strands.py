"""Which of an input's feeders draws what: each its own *strand*.

Of files those whose paths' digests say so; of partitions those whose names do. Which strand draws something
follows from its name alone, so two never draw one, whatever each of them has seen: a file or a partition that
appears meanwhile moves no other one. Of partitions that are numbered, as most are, consecutive ones are of
consecutive strands: by a digest of the whole name a third of the strands would have none, where there are as many
of both.

Invariant: each path, and each partition, is of exactly one strand.

Rejected: partitions by their places in the adapter's list, which two feeders may see before and after another one
came. Parts that feeders claim one by one, or that are shared out anew when one comes or goes. Whoever takes
over a part takes over its roots under way, too, and these are in the former's checkpoint; so what is handed on is
the strand, as a whole, with its task.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from hashlib import blake2b

import attrs

DIGEST_BYTES = 8
_NUMBER = re.compile(r"[0-9]{1,9}\Z")
"""With which the name of a partition ends."""


@attrs.frozen
class Strand:
    """One of ``of`` strands of an input, by its number from 0 on."""

    number: int = 0
    of: int = 1

    def paths(self, paths: Iterable[str]) -> list[str]:
        """Of paths its own, sorted."""
        return sorted(path for path in {*paths} if self.of == 1 or self._of_path(path) == self.number)

    def _of_path(self, path: str) -> int:
        return _digest(os.fsencode(path)) % self.of

    def has(self, partition: str) -> bool:
        """Whether a partition is its own."""
        number = _NUMBER.search(partition)
        kind = partition[: number.start()] if number else partition
        return (_digest(kind.encode()) + int(number[0] if number else 0)) % self.of == self.number


def _digest(name: bytes) -> int:
    return int.from_bytes(blake2b(name, digest_size=DIGEST_BYTES).digest(), "big")


WHOLE = Strand()
