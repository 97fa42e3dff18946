"""A queue as followers of roots see it: tasks under leases, whose completions may become known late.

A task has claims, one after the other, each with a token. A completion is *known* when a majority has it, or when
a reader met it; another one is *hidden* at a copy that is cut off, and comes out some day, with the time at which
its coordinator had taken it. Of the known ones the earliest stands. A claim is granted while none is known.

What no queue would say is noted as a ``Violation``: a segment with children of two claims, an id with two bodies,
a root that is there twice, anything new after the input was called exhausted.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import attrs

from skuld_py.workflow import segments
from skuld_py.workflow.acking import events as e

LEASE_MS = 1_000
SKEW_MS = 200
STEPS = ("clean", "join", "write")
"""The steps of a tree, one below the other, where nothing says otherwise."""
Rows = tuple[tuple[str, bytes], ...]


class Violation(AssertionError):
    """What must not happen has happened."""


@attrs.define(eq=False)
class Held:
    """A claim. ``kind``: how it ended by its holder's word, or nothing."""

    token: int
    start_ms: int
    kind: str = ""

    @property
    def end_ms(self) -> int:
        return self.start_ms + LEASE_MS


@attrs.define(eq=False)
class Ended:
    """A completion."""

    at_ms: int
    token: int
    rows: Rows
    is_known: bool


@attrs.define(eq=False)
class Segment:
    """A task, and what the checkers note of it: its children by the token that emitted them."""

    id: bytes
    root: bytes
    depth: int
    body: bytes
    step: str = STEPS[0]
    claims: list[Held] = attrs.field(factory=list)
    ends: list[Ended] = attrs.field(factory=list)
    base: int = 0
    is_dead: bool = False
    children: dict[int, dict[int, Segment]] = attrs.field(factory=dict)

    @property
    def known(self) -> list[Ended]:
        return sorted((end for end in self.ends if end.is_known), key=lambda end: (end.at_ms, end.token))


class Queue:
    """All tasks. ``met`` counts what was rare."""

    def __init__(self, chance: random.Random, attempts: int, met: Counter[str]) -> None:
        self.segments: dict[bytes, Segment] = {}
        self.roots: dict[int, Segment] = {}
        self.is_exhausted = self.is_healed = False
        self._open: dict[bytes, Segment] = {}
        self._chance, self._attempts, self._met = chance, attempts, met
        self._tokens = 1 << 32

    def claim(self, now_ms: int, most: int) -> list[tuple[Segment, Held]]:
        """Some tasks that wait, each with its claim."""
        waiting = [segment for segment in self._open.values() if self._is_waiting(now_ms, segment)]
        taken = self._chance.sample(waiting, min(most, len(waiting)))
        return [(segment, self._grant(now_ms, segment)) for segment in taken]

    def _is_waiting(self, now_ms: int, segment: Segment) -> bool:
        if segment.is_dead:
            return False
        last = segment.claims[-1] if segment.claims else None
        if last is not None and not last.kind and last.end_ms + SKEW_MS > now_ms:
            return False
        tried = sum(claim.kind in ("", "failed") for claim in segment.claims[segment.base :])
        if tried >= self._attempts:
            segment.is_dead = True
            self._met["a segment is dead"] += 1
        return not segment.is_dead

    def _grant(self, now_ms: int, segment: Segment) -> Held:
        self._tokens += 1
        self._met["claimed again while a completion is hidden"] += bool(segment.ends)
        segment.claims.append(Held(self._tokens, now_ms))
        return segment.claims[-1]

    def complete(self, now_ms: int, segment: Segment, held: Held, rows: Rows, is_known: bool) -> None:
        """At a majority, or at one copy only. What was said of a claim before stands, only earlier or known."""
        stands = segment.known[0].token if segment.known else 0
        mine = next((end for end in segment.ends if end.token == held.token), None)
        at_ms = now_ms + self._chance.randint(-SKEW_MS, SKEW_MS)
        if mine is None:
            mine = Ended(at_ms, held.token, rows, is_known)
            segment.ends.append(mine)
        mine.is_known = mine.is_known or is_known
        mine.at_ms = min(mine.at_ms, at_ms)
        self._met["completed twice"] += len(segment.known) == 2
        self._note_flip(segment, stands)

    def surface(self, segment: Segment) -> None:
        """What is hidden of a task comes out."""
        stands = segment.known[0].token if segment.known else 0
        for end in segment.ends:
            end.is_known = True
        self._note_flip(segment, stands)

    def _note_flip(self, segment: Segment, stood: int) -> None:
        if segment.known:
            self._open.pop(segment.id, None)
        if stood and segment.known[0].token != stood:
            self._met["another completion turns out to be the earliest"] += 1
            self._met["it emits something else, and children are there"] += bool(segment.children)

    def enqueue_root(self, number: int, root: bytes, body: bytes, step: str = STEPS[0]) -> None:
        """Once for each number."""
        known = self.roots.get(number)
        if known is not None and (known.id, known.body) != (root, body):
            raise Violation(f"root {number} is enqueued twice, under two ids or with two values")
        if known is None:
            self._check_open()
            self.roots[number] = self._made(Segment(root, root, 0, body, step))
        else:
            self._met["a root is enqueued again"] += 1

    def emit(self, parent: Segment, token: int, numbers: Sequence[int] | None) -> None:
        """Enqueue what a completion emits, or some of it."""
        rows = next(end.rows for end in parent.ends if end.token == token)
        start_ms = next(claim.start_ms for claim in parent.claims if claim.token == token)
        ids = segments.child_ids(parent.id, token, start_ms, len(rows))
        for number in range(len(rows)) if numbers is None else numbers:
            child = self.segments.get(ids[number])
            if child is None:
                self._check_open()
                step, body = rows[number]
                child = self._made(Segment(ids[number], parent.root, parent.depth + 1, body, step))
                parent.children.setdefault(token, {})[number] = child
            else:
                self._met["a child is enqueued again"] += 1
            if (child.step, child.body) != rows[number]:
                raise Violation("an id stands for two bodies, or is of two steps")
        if len(parent.children) > 1:
            raise Violation("a segment has children of two claims")

    def _made(self, segment: Segment) -> Segment:
        self.segments[segment.id] = self._open[segment.id] = segment
        return segment

    def _check_open(self) -> None:
        if self.is_exhausted:
            raise Violation("a segment is new after its input was called exhausted")

    def look(self, segment_id: bytes) -> e.Sight:
        """As a majority shows it; what the reader meets of what is hidden is known from then on."""
        segment = self.segments.get(segment_id)
        if segment is None:
            return e.Sight(segment_id, e.Standing.ABSENT)
        if any(not end.is_known for end in segment.ends) and self._chance.random() < 0.5:
            self._met["a reader meets what was hidden"] += 1
            self.surface(segment)
        known = segment.known
        if not known:
            standing = e.Standing.DEAD if segment.is_dead else e.Standing.OPEN
            return e.Sight(segment_id, standing, segment.step)
        results = {end.token: len(end.rows) for end in known}
        claims = sorted(segment.claims, key=lambda claim: claim.token != known[0].token)
        tries = tuple(e.Try(claim.token, claim.start_ms, results.get(claim.token)) for claim in claims)
        return e.Sight(segment_id, e.Standing.DONE, segment.step, tries)

    def revive(self, segment: Segment) -> None:
        """Its attempts are counted anew."""
        if segment.is_dead:
            segment.is_dead, segment.base = False, len(segment.claims)
            self._met["a dead segment is tried again"] += 1

    # -- for checkers ----------------------------------------------------------------------------------

    def tree_of(self, segment: Segment) -> list[Segment]:
        """A root's segments; ``Violation`` where one is not done, or children of it are not there."""
        found = [segment]
        for each in found:
            if each.children:
                token, = each.children
                rows = next(end.rows for end in each.ends if end.token == token)
                if len(each.children[token]) < len(rows):
                    raise Violation("a child is not there")
                found += each.children[token].values()
            elif not any(not end.rows for end in each.known):
                raise Violation("a segment is not done" if not each.known else "what a segment emits is not there")
        return found
