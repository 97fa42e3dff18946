"""Places: how many requests are in at once, and how many of them one caller may have.

A caller is a token, or an address where there are none. It may have half of the places, rounded up, so that no
caller alone can keep all others out, however slowly it sends or reads; what it wants beyond is told so (429). When
all places are taken, whoever has them, one more is told when to come again (503).

Rejected: to give a lone caller all places until another one comes. Its requests would have to be broken off then.
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
        self._share = (most + 1) // 2
        self._who = who
        self._remedy = remedy
        self._taken = 0
        self._taken_by: Counter[str] = Counter()

    @contextmanager
    def taken(self, caller: str) -> Iterator[None]:
        """Have a place for as long as the block runs, or be refused."""
        if self._taken >= self._most:
            raise refusal("busy", f"{self._taken} {self._who}, no more are taken; {self._remedy}")
        if self._taken_by[caller] >= self._share:
            raise refusal("too_many_at_once", f"{self._share} {self._who} for this caller, who may not have more"
                          f" than half of the {self._most} places; {self._remedy}")
        self._taken += 1
        self._taken_by[caller] += 1
        try:
            yield
        finally:
            self._taken -= 1
            self._taken_by[caller] -= 1
            if not self._taken_by[caller]:
                del self._taken_by[caller]
