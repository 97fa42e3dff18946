"""Virtual time: a heap of actions, run one after another, and the streams of randomness beside it.

Actions of the same millisecond run in an order drawn from the seed, so that no code may rest on
the order in which things were planned. Every concern draws from a stream of its own: a draw added
in one place does not reshuffle all the others.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from heapq import heappop, heappush
from random import Random

Action = Callable[..., object]
_TIE_BITS = 30
STILL = -1
"""The seed of a run without chance."""


class Still(Random):
    """Draws without chance: nothing merely probable happens, nothing takes longer than it must, and each choice
    gets its turn."""

    def __init__(self) -> None:
        super().__init__(0)
        self._drawn = -1

    def random(self) -> float:
        """As near to one as can be."""
        return 1 - 2**-53

    def expovariate(self, lambd: float = 1.0) -> float:
        """The least."""
        return 0.0

    def getrandbits(self, k: int) -> int:
        """One more than the last time."""
        self._drawn += 1
        return self._drawn & (1 << k) - 1


def stream(seed: int, label: str) -> Random:
    """The random numbers of one concern of one run."""
    if seed == STILL:
        return Still()
    digest = blake2b(f"{seed} {label}".encode(), digest_size=8).digest()
    return Random(int.from_bytes(digest, "big"))


class Scheduler:
    """Runs planned actions in the order of their time."""

    def __init__(self, seed: int) -> None:
        self.now_ms = 0
        self.actions = 0
        self._ties = stream(seed, "ties")
        self._heap: list[tuple[int, int, int, Action, tuple[object, ...]]] = []
        self._planned = 0

    def at(self, time_ms: int, action: Action, *arguments: object) -> None:
        """Plan an action; a time that has passed means now."""
        self._planned += 1
        tie = self._ties.getrandbits(_TIE_BITS)
        heappush(self._heap, (max(time_ms, self.now_ms), tie, self._planned, action, arguments))

    def after(self, delay_ms: int, action: Action, *arguments: object) -> None:
        """Plan an action some time from now."""
        self.at(self.now_ms + delay_ms, action, *arguments)

    def run(self, until_ms: int) -> None:
        """Run all that is planned up to a time, then let the rest of the time pass."""
        heap = self._heap
        while heap and heap[0][0] <= until_ms:
            self.now_ms, _, _, action, arguments = heappop(heap)
            self.actions += 1
            action(*arguments)
        self.now_ms = until_ms
