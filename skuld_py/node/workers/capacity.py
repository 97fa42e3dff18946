"""When a node writes into the coordination log how many claims its workers can hold. Pure.

An entry of the log is read by all members, so there are few: a fleet that starts or is restarted is one change,
and not one for each worker. The number is written once it has not changed for ``QUIET_MS``, or has differed for
``PATIENCE_MS`` from what is written; and ``PAUSE_MS`` after the last time at the earliest. A worker that is
started again within these times changes nothing at all.

Rejected: a slot of its own for each claim, as Onyx has virtual peers: 200 workers of four slots would be 800
entries. What reads the log wants the sum, and which member has how much of it.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from skuld_py.node.knowledge.attendance import Tags
from skuld_py.node.operations.duty import NEVER_MS

QUIET_MS = 5_000
PATIENCE_MS = 30_000
PAUSE_MS = 20_000


Units = Mapping[Tags, int]
"""Slots by what tells them apart."""


@attrs.define
class Capacity:
    """``told``: the numbers that are to stand in the log. The times are the names above; others suit other time
    scales."""

    quiet_ms: int = QUIET_MS
    patience_ms: int = PATIENCE_MS
    pause_ms: int = PAUSE_MS
    told: Units = attrs.field(factory=dict)
    _seen: Units = attrs.field(factory=dict)
    _changed_ms: int = 0
    _differs_ms: int = 0
    """Since when it differs from ``told``."""
    _told_ms: int | None = None

    def see(self, now_ms: int, slots: Units) -> int:
        """Look at the numbers there are; when to look again, if they do not change before."""
        if slots != self._seen:
            if self._seen == self.told:
                self._differs_ms = now_ms
            self._seen, self._changed_ms = {**slots}, now_ms
        if slots == self.told:
            return NEVER_MS
        due_ms = self._due_ms()
        if now_ms < due_ms <= now_ms + self.pause_ms:  # farther ahead only by a clock that fell back
            return due_ms
        self.told, self._told_ms = {**slots}, now_ms
        return NEVER_MS

    def _due_ms(self) -> int:
        due_ms = min(self._changed_ms + self.quiet_ms, self._differs_ms + self.patience_ms)
        return due_ms if self._told_ms is None else max(due_ms, self._told_ms + self.pause_ms)
