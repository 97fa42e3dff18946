"""Which of several archivers is given the pages of a partition: a lease that its leader keeps in mind.

Archivers that have asked lately count; of these the hash of number and partition chooses one, so that partitions
are spread over them, and move when one comes. One that is silent for ``SILENT_MS`` counts no more, and another is
given its partitions.

It saves work and no more than that: pages may be given to two, as when a leader changes, and an archive takes each
task once. Rejected: a task of a queue that archivers claim; who has no claim would have to wait for one that is
held for hours, and an archiver's key could claim.
"""

from __future__ import annotations

import struct

from xxhash import xxh3_64_intdigest

SILENT_MS = 15_000
ARCHIVERS_MAX = 64
"""Numbers that are kept in mind for a partition; of more, those that asked last."""
_PAIR = struct.Struct(">QQ")


class Sharing:
    """Who has asked for which partition, and when."""

    def __init__(self) -> None:
        self._asked: dict[int, dict[int, int]] = {}

    def leave(self, partition: int, archiver: int) -> None:
        """It asks no more."""
        self._asked.get(partition, {}).pop(archiver, None)

    def is_others(self, now_ms: int, partition: int, archiver: int) -> bool:
        """Whether the pages are another archiver's; note that this one has asked. 0 takes part in nothing."""
        if not archiver:
            return False
        known = self._asked.setdefault(partition, {})
        known.pop(archiver, None)
        known[archiver] = now_ms
        for other in [each for each, at_ms in known.items() if at_ms + SILENT_MS <= now_ms]:
            del known[other]
        while len(known) > ARCHIVERS_MAX:
            del known[next(iter(known))]
        return max(known, key=lambda each: (xxh3_64_intdigest(_PAIR.pack(each, partition)), each)) != archiver
