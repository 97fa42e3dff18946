"""How far a single task's requests go through the code of a node: which files they enter, and how often they move
from one to another. A file that is entered for nothing belongs to something that looks at what did not change, and
code that is spread over many files runs cold in all of them.

Counted are the package's own functions, from the event to the end of the turn: of a node alone, with one partition
and claims that are proven. Those that attrs writes are left out; the store in memory is one file, as the real one.

    python -m tidy.steps
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import attrs

from node.machines import Machines
from skuld_py.config.timing import DEFAULT_TIMING
from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.body import Header

PACKAGE = "/skuld_py/"
KEY = "ab" * 32


@attrs.define
class Way:
    """Files, in the order in which they were entered first; and moves between them, there and back."""

    files: dict[str, None] = attrs.field(factory=dict)
    moves: int = 0
    _stack: list[str] = attrs.field(factory=lambda: [""])

    def note(self, frame: FrameType, event: str, _: object) -> None:
        """A call, or a return."""
        if event == "call":
            self._stack.append(self._file(frame) or self._stack[-1])
        elif event != "return" or len(self._stack) < 2:
            return
        here, there = self._stack[-1], self._stack[-2]
        self.moves += here != there
        if event == "call" and here:
            self.files[here] = None
        elif event == "return":
            self._stack.pop()

    def _file(self, frame: FrameType) -> str:
        return frame.f_code.co_filename.rpartition(PACKAGE)[2] if PACKAGE in frame.f_code.co_filename else ""


@contextmanager
def traced() -> Iterator[Way]:
    """The way of what is called meanwhile."""
    way = Way()
    sys.setprofile(way.note)
    try:
        yield way
    finally:
        sys.setprofile(None)


class Life:
    """A task on a node alone, request by request."""

    def __init__(self) -> None:
        self._machines = Machines(1, partitions=1, replicas=1, claim_key=KEY)
        self._machines.pass_time(8_000)
        self._name, = self._machines.names

    def enqueue(self) -> m.Message:
        task_id, = self._machines.mint.mint(self._machines.now_ms, 1, 7)
        return m.Enqueue(1, 0, (m.TaskBatch(Header("q").encode(), task_id, columns.pack([b"x"])),))

    def claim(self) -> m.Message:
        return m.Claim(2, "q", 1, 60_000, 0, "w", True)

    def renew(self) -> m.Message:
        return m.Renew(3, 60_000, *self._claimed())

    def complete(self) -> m.Message:
        task_ids, tokens, proofs = self._claimed()
        return m.Complete(4, 0, 0, task_ids, tokens, b"", columns.pack([]), proofs)

    def _claimed(self) -> tuple[bytes, bytes, bytes]:
        claimed = next(answer for _, answer in reversed(self._machines.answers) if isinstance(answer, m.Claimed))
        batch, = claimed.batches
        return batch.ids, columns.pack_u64([batch.first_token]), batch.proofs

    def way_of(self, verb: Callable[[], m.Message]) -> Way:
        request = verb()
        with traced() as way:
            self._machines.ask(self._name, request)
        answer = self._machines.answers[-1][1]
        assert not isinstance(answer, m.Failed), answer
        self._rest()
        return way

    def _rest(self) -> None:
        """Until all that the node does by itself is done, and its next gossip is far."""
        gossiper = self._machines.nodes[self._name]._steward.gossiper
        self._machines.pass_time(DEFAULT_TIMING.heir_delay_ms)
        self._machines.pass_time(gossiper.due_ms - self._machines.now_ms + 1)


def ways() -> dict[str, Way]:
    """Of each verb, in the second life of a node: what is done once is done."""
    life = Life()
    found: dict[str, Way] = {}
    for _ in range(2):
        verbs = (life.enqueue, life.claim, life.renew, life.complete)
        found = {verb.__name__: life.way_of(verb) for verb in verbs}
    return found


def main() -> None:
    """Print them; with ``-v`` the files too."""
    for name, way in ways().items():
        told = f"{name:9} enters {len(way.files)} files and moves {way.moves} times between them"
        sys.stdout.write("\n    ".join([told, *(way.files if "-v" in sys.argv else ())]) + "\n")


if __name__ == "__main__":
    main()
