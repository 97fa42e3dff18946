"""Copies that peers may lack, since they did not acknowledge them: to be compared when the peers are heard of
again."""

from __future__ import annotations

from collections.abc import Collection


class Debts:
    """Partitions by peer."""

    def __init__(self) -> None:
        self._partitions: dict[str, dict[int, None]] = {}

    def owe(self, peer: str, partitions: Collection[int]) -> None:
        """Note that a peer may lack copies of these."""
        self._partitions.setdefault(peer, {}).update(dict.fromkeys(partitions))

    def take(self, peer: str) -> Collection[int]:
        """What the peer may lack; noted no more."""
        return self._partitions.pop(peer, {})
