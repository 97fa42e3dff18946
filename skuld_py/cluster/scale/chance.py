"""Chance for the machines of the coordination log, which have none of their own: injected, and seeded in tests.

One kind of draw serves all: a number from 0 to another. Members draw names from it, and the pauses that keep them
apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Draw = Callable[[int], int]
"""``draw(n)`` gives 0..n, both included, each as likely."""


def sample(names: Sequence[str], count: int, draw: Draw) -> list[str]:
    """``count`` different names, or all of them, in no fair order. Floyd's way: one draw for each, however many
    there are."""
    if len(names) <= count:
        return list(names)
    chosen: dict[int, None] = {}
    for last in range(len(names) - count, len(names)):
        at = draw(last)
        chosen[last if at in chosen else at] = None
    return [names[at] for at in chosen]
