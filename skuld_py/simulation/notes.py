"""What an observer inside the nodes writes down: the little that clients cannot see and rules speak of.

Votes, acknowledged grants, what a leader picked and left, what a candidate knew when it stood before the registry,
what an exchange carried. The checkers use notes where a rule is about a node's own knowledge; without notes, as in
a run of real processes, such a rule is unknown.
"""

from __future__ import annotations

from enum import Enum

import attrs


class What(Enum):
    """Kinds of notes."""

    VOTED = "voted"
    """``node`` gave its vote for ``epoch`` to ``whom``."""
    LED = "led"
    """``node`` sent claims or amendments as the leader of ``epoch``, for the first time."""
    PICKED = "picked"
    """``node`` chose waiting tasks of a queue for request ``request``; ``worst`` is the place and id of the
    last one taken, ``left`` those of the best one left (empty: none), ``amount`` how many were taken.
    ``is_paused``: it knew since before that the queue is paused."""
    ACKED = "acked"
    """``node`` recorded the claims ``tokens`` of the leader ``whom``; none: renewals."""
    SEATING = "seating"
    """``node`` asked the registry to be leader of ``epoch``, and knows the claims ``tokens``."""
    DISTRUSTED = "distrusted"
    """``node`` no longer trusts its memory of the partition."""
    TRUSTED = "trusted"
    """It has filled again."""
    EXCHANGED = "exchanged"
    """``node`` sent ``amount`` records or wishes to ``whom`` in an exchange."""


@attrs.frozen
class Note:
    """One observation, in true time."""

    time_ms: int
    node: str
    what: What
    partition: int
    epoch: int = 0
    whom: str = ""
    request: int = 0
    tokens: frozenset[int] = frozenset()
    worst: bytes = b""
    left: bytes = b""
    amount: int = 0
    is_paused: bool = False
    queue: str = ""
