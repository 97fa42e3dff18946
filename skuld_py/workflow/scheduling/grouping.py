"""Free slots by site, from which groups are taken: one slot for each step, all at one site.

Invariant: slots are only ever taken. So a site that has no group for some needs has none for them later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from skuld_py.workflow.scheduling.demand import Slot

Tags = frozenset[str]


class Sites:
    """In the order of their names."""

    def __init__(self, slots: Iterable[Slot]) -> None:
        sites: dict[str, dict[str, Slot]] = {}
        for slot in slots:
            sites.setdefault(slot.site, {})[slot.name] = slot
        self._sites = [sites[site] for site in sorted(sites)]
        self._by_name = sites
        self._first: dict[tuple[Tags, ...], int] = {}
        """Of these needs, the first site that may have a group."""

    def take(self, slots: Iterable[Slot]) -> None:
        """These are free no longer."""
        for slot in slots:
            del self._by_name[slot.site][slot.name]

    def group(self, needs: Sequence[Tags]) -> list[Slot] | None:
        """A slot for each need, all free and at one site."""
        for index in range(self._first.get(tuple(needs), 0), len(self._sites)):
            self._first[tuple(needs)] = index
            if (found := matched(needs, [*self._sites[index].values()])) is not None:
                return found
        return None


def matched(needs: Sequence[Tags], slots: Sequence[Slot]) -> list[Slot] | None:
    """A slot for each need, each once; None when there is no such choice."""
    if not any(needs):
        return [*slots[: len(needs)]] if len(slots) >= len(needs) else None
    taken: dict[str, int] = {}

    def seat(index: int, tried: set[str]) -> bool:
        for slot in slots:
            if needs[index] <= slot.tags and slot.name not in tried:
                tried.add(slot.name)
                if slot.name not in taken or seat(taken[slot.name], tried):
                    taken[slot.name] = index
                    return True
        return False
    if not all(seat(index, set()) for index in range(len(needs))):
        return None
    return sorted((slot for slot in slots if slot.name in taken), key=lambda slot: taken[slot.name])
