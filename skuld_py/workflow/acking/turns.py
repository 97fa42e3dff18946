"""When a feeder makes room for another one of its input, which has fewer slots than feeders.

Each feeder draws its own strand, and may do so for ever. So one that has had its turn, while others of its input
wait, gives its task back for as many turns as others wait: each of these has its turn before it comes again. One
that none waits for goes on. Where it was is in its checkpoint, as when it dies.

Rejected: to give way as soon as another one waits. Each claim stays in its task's history, and a new life draws
again what is under way.
"""

from __future__ import annotations

TURN_MS = 1_800_000
"""Long: a task is claimed 1,000 times at most before somebody has to look at it."""


def rest_ms(held_ms: int, waiting: int, turn_ms: int = TURN_MS) -> int:
    """For how long to give way after so long a turn, while so many wait; 0: not at all."""
    return turn_ms * waiting if held_ms >= turn_ms and waiting > 0 else 0
