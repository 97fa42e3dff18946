"""Places: how many requests are in at once, and how many of them one caller may have.

A caller is a token, or an address where there are none. It may have no more places than are free: alone half of
them, two a third each, and the last one goes to somebody who has none. So neither one caller nor a few can keep
all others out, however slowly they send or read; what one wants beyond is told so (429). When all places are
taken, one more is told when to come again (503). It is the rule of dynamic thresholds, by which the ports of a
switch share its memory.

Rejected: to give a lone caller all places until another one comes. Its requests would have to be broken off then.
And half for each, of which two take all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from skuld_py.gateway.problems import refusal


class Places:
    """``most`` places. ``who``: what has them, as a refusal says it; ``remedy``: what to do without one."""

    def __init__(self, most: int, who: str, remedy: str) -> None:
        self._most = most
        self._who = who
        self._remedy = remedy
        self._taken = 0
        self._taken_by: Counter[str] = Counter()

    @contextmanager
    def taken(self, caller: str) -> Iterator[None]:
        """Have a place for as long as the block runs, or be refused."""
        if self._taken >= self._most:
            raise refusal("busy", f"{self._taken} {self._who}, no more are taken; {self._remedy}")
        has, free = self._taken_by[caller], self._most - self._taken
        if has >= free:
            raise refusal("too_many_at_once", f"{has} {self._who} for this caller, who may not have more than the"
                          f" {free} places that are free; {self._remedy}")
        self._taken += 1
        self._taken_by[caller] += 1
        try:
            yield
        finally:
            self._taken -= 1
            self._taken_by[caller] -= 1
            if not self._taken_by[caller]:
                del self._taken_by[caller]
