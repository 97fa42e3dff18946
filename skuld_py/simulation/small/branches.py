"""Every single deviation of a pair at half the price: runs are alike until they deviate.

The usual schedule is played once. At each decision point a copy of the process goes on along each of the ways, to
its end, and hands its verdict back; then the usual schedule goes on. A copy is a fork: what was played until then
is shared, and costs no time again.

Invariant: a branch is told of as ``run`` tells of its script, down to the hash of the trace. The process has no
other thread, which a fork would leave behind: it is one of a pool, or a command's.

Rejected: copies of the world by ``deepcopy``. A world is full of closures, which would go on in the old one.
"""

from __future__ import annotations

import gc
import os
import pickle
from collections.abc import Sequence
from typing import BinaryIO

import attrs

from skuld_py.simulation.small.run import run
from skuld_py.simulation.small.script import Choices, Script
from skuld_py.simulation.small.verdict import Verdict

ALL = range(1 << 62)


class Branching(Choices):
    """The decision points of the usual schedule; or, in a copy, of the one deviation that it plays."""

    def __init__(self, share: range) -> None:
        super().__init__(())
        self._share = share
        self.told: list[Verdict] = []
        """What the copies said, in the order of their numbers."""
        self.number: int | None = None
        """Which deviation this process plays; None where it plays the usual schedule."""
        self.out: BinaryIO | None = None

    def at(self, ways: Sequence[str], *where: object) -> str:
        """A decision point: the usual schedule goes on when all ways were gone to their ends."""
        if self.number is None:
            for number in range(self.count, self.count + len(ways)):
                if number in self._share and self._is_copy(number):
                    self._numbers = (number,)
                    break
        return super().at(ways, *where)

    def _is_copy(self, number: int) -> bool:
        """Whether this is the copy that goes this way. The process itself waits until its copy has spoken."""
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            self.number, self.out = number, os.fdopen(writing, "wb")
            return True
        os.close(writing)
        with os.fdopen(reading, "rb") as said:
            words = said.read()
        os.waitpid(child, 0)
        if not words:
            raise RuntimeError(f"the run of deviation {number} ended without a word")
        self.told.append(pickle.loads(words))
        return False


def branches(pair: str, share: range = ALL) -> list[Verdict]:
    """The usual schedule of a pair, then each single deviation from it whose number is of the share."""
    gc.collect()
    gc.freeze()  # or each copy would copy all that its collector marks
    choices = Branching(share)
    try:
        verdict = run(Script(pair), choices=choices)
        if choices.out is None:
            return [verdict, *choices.told]
        _speak(choices, verdict)
    finally:
        if choices.out is not None:
            os._exit(1)
        gc.unfreeze()
    raise AssertionError("a copy has ended")


def _speak(choices: Branching, verdict: Verdict) -> None:
    """Of a copy: hand the verdict back, and end."""
    assert choices.out is not None and choices.number is not None
    script = verdict.script.deviating(choices.number)
    pickle.dump(attrs.evolve(verdict, script=script), choices.out)
    choices.out.close()
    os._exit(0)
