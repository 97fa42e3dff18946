"""Has this member's replica parted from the others'? Digests at the same positions, compared when they pass by.

All members that play the same entries have the same replica at every position, so one that differs played
something else, or wrongly: it was damaged in memory, runs a faulty version, or got an entry that is not the log's.
One difference does not tell which member is wrong. A member takes itself to be wrong when two others differ from
it, and more than agree with it: so one faulty member alone makes no other doubt. Of two members both doubt;
building anew is never wrong, only dear.

After building anew it compares at later positions only, so a fault that comes back costs one reload for each of
those, and is counted.
"""

from __future__ import annotations

KEPT = 4
"""Positions at which digests are kept, one's own and those of others."""
VOTERS_MAX = 16
AGAINST = 2


class Divergence:
    """Digests of one member and what it heard of others, at every position that ``every`` divides."""

    def __init__(self, every: int) -> None:
        self.count = 0
        """How often it had parted."""
        self._every = every
        self._others = 0
        self._settled = -1
        """Up to here nothing is compared any more."""
        self._own: dict[int, bytes] = {}
        self._heard: dict[int, dict[str, bytes]] = {}
        """By position, then by member."""

    def is_due(self, version: int) -> bool:
        """Whether the digest as of this position is wanted."""
        return version >= 0 and version % self._every == 0

    def set_peers(self, count: int) -> None:
        """How many others there are."""
        self._others = count

    def note_own(self, version: int, digest: bytes) -> None:
        """The replica's digest as of ``version``."""
        if version <= self._settled:
            return
        self._own[version] = digest
        _trim(self._own)

    def note_other(self, peer: str, version: int, digest: bytes) -> None:
        """A member says that this is its digest as of ``version``."""
        if not self.is_due(version):
            return
        voters = self._heard.setdefault(version, {})
        if peer in voters or len(voters) < VOTERS_MAX:
            voters[peer] = digest
        _trim(self._heard)

    def newest(self) -> tuple[int, bytes]:
        """The last position at which there is a digest of one's own, and that; -1 and empty before."""
        return next(reversed(self._own.items()), (-1, b""))

    def has_parted(self) -> bool:
        """Whether the replica must be built anew."""
        return any(self._is_against(version, digest) for version, digest in self._own.items())

    def _is_against(self, version: int, digest: bytes) -> bool:
        voters = self._heard.get(version, {})
        against = sum(other != digest for other in voters.values())
        return against >= max(1, min(AGAINST, self._others)) and against > len(voters) - against

    def restart(self) -> None:
        """The replica is built anew: what was compared is settled."""
        self.count += self.has_parted()
        self._settled = max(self._settled, *self._own, -1)
        self._own.clear()
        self._heard.clear()


def _trim(by_position: dict[int, bytes] | dict[int, dict[str, bytes]]) -> None:
    while len(by_position) > KEPT:
        del by_position[min(by_position)]
