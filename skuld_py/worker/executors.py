"""Whether an application on a cluster still has one: how many executors it has, and for how long it has had none.

Spark's own cluster forgets its applications when its master ends and keeps no journal: the next master has the
executors of strangers killed, and the driver, which was told nothing, waits for others that nobody will start. So
an application that had executors and has had none for ``PATIENCE_S`` is given up, and a new one begun. One that
never had any waits its turn, like every application of a cluster that is full; that is said once.

Without a clock and without Spark: the caller counts.
"""

from __future__ import annotations

from enum import Enum

PATIENCE_S = 30.0


class Standing(Enum):
    """What the number of executors means."""

    WELL = "well"
    NONE_YET = "none yet"
    LOST = "lost"


class Executors:
    """Those of one application."""

    def __init__(self, now_s: float) -> None:
        self._since_s = now_s
        self._had_some = False
        self._stands = Standing.WELL
        self.is_news = False
        """Whether it stood otherwise when looked at before."""

    def look(self, count: int, now_s: float) -> Standing:
        """How it stands, with so many at this time."""
        if count:
            self._had_some = True
            self._since_s = now_s
        standing = Standing.WELL
        if now_s - self._since_s >= PATIENCE_S:
            standing = Standing.LOST if self._had_some else Standing.NONE_YET
        self.is_news, self._stands = standing is not self._stands, standing
        return standing
