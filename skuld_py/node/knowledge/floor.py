"""The time that new ids must be above: clients mint above it, so that an id made after a clock fell back is new.

It is stored ahead by a step, so that it is written once a second at most.
"""

from __future__ import annotations

from skuld_py.model.store import Store

FUTURE_MS_MAX = 5_000
"""An id may be this much newer than a coordinator's clock, besides the skew bound."""
FLOOR_KEY = b"floor"
_STEP_MS = 1_000


class Floor:
    """The floor that one node knows: the time of the newest ids that it has stored."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.stored_ms = self.ms = int.from_bytes(store.get("meta", FLOOR_KEY) or b"", "big")

    def told(self, now_ms: int) -> int:
        """The floor that clients are told, never far in the future: one that was noted by a wrong clock could not
        be met."""
        self.ms = min(self.ms, now_ms + FUTURE_MS_MAX)
        return self.ms

    def keep(self) -> None:
        """Store it."""
        self.stored_ms = self.ms + _STEP_MS
        self._store.put_many("meta", [(FLOOR_KEY, self.stored_ms.to_bytes(8, "big"))])
