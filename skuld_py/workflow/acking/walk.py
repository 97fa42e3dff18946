"""How a feeder looks after roots: down their trees, from what has completed to what it emitted.

A segment that is done by its only claim has the children that this claim's completion emits. Where several claims
stand on record, any of them may have completed it, and another one may yet turn out to be the earliest. Then what
counts is whose children are there: the first child of each claim is looked for. If one is found, that claim's
children are the segment's. If none is, nobody has emitted, for a holder who may emit by itself is the only one on
record; so the feeder decides, by whose completion stands now, and has that written down before it emits
(``feeder``). A completion that emits nothing needs no decision: none of its children can be missed. And where a
holder's ack was heard, that holder was alone: it is that claim's children that are missing.

Invariants: what is asked for at a time is bounded, and what waits is a row for each parent, not for each child:
the children's ids follow from it. The newest parent is gone on with first, so rows are at most as many as a tree
is deep, times ``LOOKS_MAX``; besides roots and hints, which wait in lines of their own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import chain
from typing import Protocol

import attrs

from skuld_py.workflow.acking.events import Sight, Standing, Try
from skuld_py.workflow.acking.register import Root
from skuld_py.workflow.segments import ack_of, child_id, child_ids

LOOKS_MAX = 120
"""Segments that are looked for at a time."""
HINTS_MAX = 10_000
"""Segments of which a holder said that it leaves them to the feeder, and which wait; others are found by time."""


class Findings(Protocol):
    """Who is told what a walk finds."""

    def heard(self, root: Root, segment: bytes, ack: int) -> None:
        """A segment is done, and this is its ack."""

    def missing(self, root: Root, parent: Sight, token: int, numbers: tuple[int, ...]) -> None:
        """Segments that a claim's completion emits are not there; no other claim's can be the parent's."""

    def undecided(self, root: Root, segment: bytes, token: int) -> None:
        """Of several claims' children none are there; the completion that stands is this one's."""

    def decided(self, segment: bytes) -> int | None:
        """The token that was written down for a segment."""

    def gone(self, root: Root) -> None:
        """The root is not there, though it was stored."""

    def dead(self, root: Root, sight: Sight) -> None:
        """A segment is dead."""

    def spoilt(self, root: Root, sight: Sight) -> None:
        """A segment is done, but nobody can say what it emits."""


@attrs.define(eq=False)
class Lone:
    """A segment by itself: a root, or one that was hinted at."""

    root: Root
    segment: bytes
    left: int = 1
    is_taken: bool = False

    def take(self, count: int) -> list[bytes]:
        """What to look for next, at most ``count``; none when that was all."""
        taken, self.is_taken = self.is_taken, True
        return [] if taken else [self.segment]


@attrs.define(eq=False)
class Brood:
    """The children of a claim's completion. ``absent``: the numbers of those that are not there."""

    root: Root
    parent: Sight
    by: Try
    left: int
    at: int = 0
    absent: list[int] = attrs.field(factory=list)

    def take(self, count: int) -> list[bytes]:
        """The next children."""
        end = min(self.at + count, self.by.emitted or 0)
        found = child_ids(self.parent.segment, self.by.token, self.by.start_ms, end)[self.at :]
        self.at = end
        return found


@attrs.define(eq=False)
class Contest:
    """The first child of each claim of a segment. ``found``: the claim whose is there."""

    root: Root
    sight: Sight
    left: int
    at: int = 0
    found: Try | None = None

    def take(self, count: int) -> list[bytes]:
        """The next claims' first children."""
        tries = self.sight.tries[self.at : self.at + count]
        self.at += len(tries)
        return [child_id(self.sight.segment, each.token, each.start_ms, 0) for each in tries]


Row = Lone | Brood | Contest


class Walk:
    """The walks of a feeder, all in one."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._rows: list[Row] = []
        self._roots: deque[Root] = deque()
        self._hints: deque[Lone] = deque()
        self._asked: list[tuple[Row, int]] = []

    def __len__(self) -> int:
        """Rows that are gone on with."""
        return len(self._rows)

    @property
    def waiting(self) -> int:
        """Roots and hints that wait."""
        return len(self._roots) + len(self._hints)

    def begin(self, root: Root) -> None:
        """Look after a root, in its turn."""
        root.looks += 1
        self._roots.append(root)

    def hint(self, root: Root, segment: bytes) -> None:
        """Look at one segment of a root, before roots."""
        if len(self._hints) < HINTS_MAX:
            root.looks += 1
            self._hints.append(Lone(root, segment))

    def ask(self) -> tuple[bytes, ...]:
        """What to look for now; ``answer`` comes before it is called again."""
        wanted: list[bytes] = []
        while len(wanted) < LOOKS_MAX and (row := self._newest()) is not None:
            first = row.at if isinstance(row, Brood | Contest) else 0
            taken = [] if row.root.is_over or row.root.is_forgotten else row.take(LOOKS_MAX - len(wanted))
            wanted += taken
            self._asked += [(row, first + index) for index in range(len(taken))]
            if not taken:
                self._rows.pop().root.looks -= 1
        return tuple(wanted)

    def answer(self, sights: Sequence[Sight]) -> None:
        """Go on from what was found; sights are in the order of what was asked for."""
        for (row, number), sight in zip(self._asked, sights, strict=True):
            row.left -= 1
            if row.root.is_over:
                continue
            if isinstance(row, Contest):
                if sight.standing is not Standing.ABSENT:
                    row.found = row.sight.tries[number]
                if not row.left:
                    self._decide(row)
            elif sight.standing is Standing.ABSENT:
                self._absent(row, number)
            else:
                self._seen(row.root, sight)
            if isinstance(row, Brood) and row.absent and not row.left and not row.root.is_over:
                self._findings.missing(row.root, row.parent, row.by.token, tuple(row.absent))
        self._asked = []

    def _newest(self) -> Row | None:
        """The row to go on with."""
        if not self._rows:
            if self._hints:
                self._rows.append(self._hints.popleft())
            elif self._roots:
                root = self._roots.popleft()
                root.is_forgotten = False
                self._rows.append(Lone(root, root.id))
        return self._rows[-1] if self._rows else None

    def _push(self, row: Row) -> None:
        row.root.looks += 1
        self._rows.append(row)

    def _absent(self, row: Lone | Brood, number: int) -> None:
        if isinstance(row, Brood):
            row.absent.append(number)
        elif row.segment == row.root.id:
            self._findings.gone(row.root)

    def _seen(self, root: Root, sight: Sight) -> None:
        if sight.standing is Standing.DEAD:
            self._findings.dead(root, sight)
        elif sight.standing is Standing.DONE:
            if not sight.tries:
                return
            if len(sight.tries) == 1:
                self._settle(root, sight, sight.tries[0])
            elif self._findings.decided(sight.segment) is not None:
                self._findings.undecided(root, sight.segment, sight.tries[0].token)
            elif not self._is_contested(sight.segment):
                self._push(Contest(root, sight, len(sight.tries)))

    def _is_contested(self, segment: bytes) -> bool:
        """Whether first children of a segment's claims are being looked for. A second contest beside that one may
        have looked before children were emitted, and come to another end."""
        return any(isinstance(row, Contest) and row.left and row.sight.segment == segment
                   for row in chain(self._rows, (row for row, _ in self._asked)))

    def _decide(self, row: Contest) -> None:
        """Whose children a segment has that several claims could have completed."""
        root, segment, stands = row.root, row.sight.segment, row.sight.tries[0]
        if row.found is not None:
            self._settle(root, row.sight, row.found)
        elif root.has_heard(segment):
            for each in row.sight.tries:
                if each.emitted and not root.disagrees(segment, ack_of(segment, each.token, each.emitted)):
                    self._settle(root, row.sight, each)
        elif stands.emitted:
            self._findings.undecided(root, segment, stands.token)
        else:
            self._settle(root, row.sight, stands)

    def _settle(self, root: Root, sight: Sight, by: Try) -> None:
        """The segment's children are this claim's."""
        if by.emitted is None:
            self._findings.spoilt(root, sight)
            return
        ack = ack_of(sight.segment, by.token, by.emitted)
        if root.disagrees(sight.segment, ack):
            return
        self._findings.heard(root, sight.segment, ack)
        if by.emitted and not root.is_over:
            self._push(Brood(root, sight, by, by.emitted))
