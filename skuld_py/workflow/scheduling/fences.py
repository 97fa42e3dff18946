"""The version of a workflow's seats, as one number: what a claim shows, so that one from stale seats is refused.

A fence has two parts. The upper is the position of the coordination log as of which a node knows these seats; of
two fences that differ in it, the greater is the newer. The lower is a digest of the workflow's seats at all
places. Nodes come to know of the same seats at different positions, as one jumps over entries that another plays;
so a claim is stale only where the other node is ahead *and* has other seats. What changes elsewhere makes no claim
stale.

Rejected: the position alone, where the seats last changed (who jumped does not know it); the digest alone (it does
not tell the newer from the older).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b

DIGEST_BITS = 24
_DIGEST = (1 << DIGEST_BITS) - 1
FENCE_MAX = (1 << 63) - 1
NO_FENCE = 0

Rows = Iterable[tuple[str, str, int]]
"""Places, steps, and how many slots."""


def fence_of(position: int, seats: Rows) -> int:
    """The fence of seats that a node knows as of a position."""
    text = "\n".join(f"{place} {step} {count}" for place, step, count in sorted(seats))
    digest = int.from_bytes(blake2b(text.encode(), digest_size=DIGEST_BITS // 8).digest(), "big")
    return (position + 1) << DIGEST_BITS | digest


def is_stale(shown: int, known: int) -> bool:
    """Whether who knows one fence has newer seats than who shows another, and other ones."""
    return shown >> DIGEST_BITS < known >> DIGEST_BITS and (shown ^ known) & _DIGEST != 0


def renewed(known: Mapping[str, int], made: Mapping[str, int]) -> dict[str, int]:
    """Fences just made, or those known before where the seats are the same."""
    return {name: before if (before := known.get(name, NO_FENCE)) and not (before ^ fence) & _DIGEST else fence
            for name, fence in made.items()}
