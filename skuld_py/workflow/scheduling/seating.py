"""Which slot takes which seat, when it is known how many seats each step has.

Seats of a step that go on keep their slots, the longest there first. A vacancy takes the free slot that can do the
least of those that will do; where none is free, slots that can do more than they must change seats along the
shortest chain that ends at a free one.

Invariants:

* No slot has two seats, and each has the tags that its seat needs.
* A slot that keeps its step keeps its place among the step's slots.
* A vacancy stays open only if no changing of seats could fill it.

Source: Onyx leaves this to a solver with constraints and a time limit; here it is a search for augmenting paths,
over kinds of seats and of slots, of which there are few however many slots there are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from itertools import pairwise

import attrs

from skuld_py.workflow.scheduling.demand import Slot

Tags = frozenset[str]
Seat = tuple[str, str]
"""A workflow and its step."""


Names = dict[str, None]
"""Names of slots, each once, in an order."""


@attrs.define
class Seating:
    """Free slots, and those that sit, of these."""

    slots: Mapping[str, Slot]
    _sitting: dict[Seat, list[str]] = attrs.field(factory=dict)
    _at: dict[str, Seat] = attrs.field(factory=dict)
    _needs: dict[Seat, Tags] = attrs.field(factory=dict)
    _free: dict[Tags, Names] = attrs.field(init=False)
    """By what they can do; the first in the order of slots at the end."""
    _movable: dict[Tags, dict[Tags, Names]] = attrs.field(factory=dict)
    """Those that may change seats, by what their seats need, and by what they can do."""

    def __attrs_post_init__(self) -> None:
        self._free = {}
        for slot in reversed([*self.slots.values()]):
            self._free.setdefault(slot.tags, {})[slot.name] = None

    def sitting(self, seat: Seat) -> list[str]:
        """The slots of a step."""
        return self._sitting.get(seat, [])

    def is_free(self, name: str) -> bool:
        """Whether a slot has no seat."""
        return name not in self._at

    @property
    def is_full(self) -> bool:
        """Whether no slot is free."""
        return len(self._at) == len(self.slots)

    def free(self) -> list[str]:
        """Those without a seat, in the order of slots."""
        return [name for name in self.slots if self.is_free(name)]

    def keep(self, seat: Seat, needs: Tags, names: Iterable[str], *, is_fixed: bool = False) -> None:
        """Seat these, which are free and can do what is needed; for good, if they are fixed."""
        self._needs[seat] = needs
        sitting = self._sitting.setdefault(seat, [])
        for name in names:
            del self._free[self.slots[name].tags][name]
            sitting.append(name)
            self._note(name, seat, is_movable=not is_fixed)

    def fill(self, seat: Seat, needs: Tags) -> bool:
        """Give one slot more to a step; whether that could be."""
        found = self._chain(needs)
        if found is None:
            return False
        chain, tags = found
        moving, _ = self._free[tags].popitem()
        for above, at in reversed([*pairwise(chain)]):
            moving = self._replaced(at, above, moving)
        self._needs[seat] = needs
        self._sitting.setdefault(seat, []).append(moving)
        self._note(moving, seat, is_movable=True)
        return True

    def give_up(self, seats: Iterable[Seat]) -> None:
        """Free all slots of these."""
        for seat in seats:
            for name in self._sitting.pop(seat, []):
                tags = self.slots[name].tags
                self._movable.get(self._needs[seat], {}).get(tags, {}).pop(name, None)
                del self._at[name]
                self._free[tags][name] = None

    def _note(self, name: str, seat: Seat, *, is_movable: bool) -> None:
        self._at[name] = seat
        if is_movable:
            kinds = self._movable.setdefault(self._needs[seat], {})
            kinds.setdefault(self.slots[name].tags, {})[name] = None

    def _chain(self, needs: Tags) -> tuple[list[Tags], Tags] | None:
        """The kinds of seats along which slots move up, and the kind of the free slot that comes in at the end."""
        came: dict[Tags, Tags | None] = {needs: None}
        waiting = deque([needs])
        while waiting:
            at = waiting.popleft()
            if (tags := _least(self._free, at)) is not None:
                chain = [at]
                while (above := came[chain[-1]]) is not None:
                    chain.append(above)
                return chain[::-1], tags
            for other, kinds in self._movable.items():
                if other not in came and _least(kinds, at) is not None:
                    came[other] = at
                    waiting.append(other)
        return None

    def _replaced(self, at: Tags, needs: Tags, newcomer: str) -> str:
        """Put a newcomer onto a seat of one kind, from which a slot moves up that can do what is needed there."""
        kinds = self._movable[at]
        tags = _least(kinds, needs)
        assert tags is not None
        leaver, _ = kinds[tags].popitem()
        seat = self._at.pop(leaver)
        sitting = self._sitting[seat]
        sitting[sitting.index(leaver)] = newcomer
        self._note(newcomer, seat, is_movable=True)
        return leaver


def _least(kinds: Mapping[Tags, Names], needs: Tags) -> Tags | None:
    """Of the kinds of slots of which there are some, the one that can do least beyond what is needed."""
    able = [tags for tags, names in kinds.items() if names and needs <= tags]
    return min(able, key=lambda tags: (len(tags), *sorted(tags)), default=None)
