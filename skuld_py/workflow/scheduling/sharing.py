"""How many slots each workflow gets: greedy, balanced or by percentage.

First each is offered a number. It claims that number, no more than it can use, or nothing when the number does not
cover its steps: a workflow runs with all of its steps or not at all. What is left over goes on, slot by slot, to
workflows that it can cover.

Invariants:

* The numbers sum up to no more than there are slots, and none is above what its workflow can use.
* A number is 0, or covers the least of each step.
* A slot that somebody could use is idle only under percentages, when nobody was promised it.

Source: Onyx's job schedulers; the greedy one as of release 0.14, where what the first leaves over goes to the
next.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import attrs

from skuld_py.workflow.scheduling.demand import Sharing


@attrs.frozen
class Bounds:
    """Of one workflow: the fewest slots that cover it, the most that it can use, its part in a hundred."""

    least: int
    most: int
    percentage: int = 0


def shared(sharing: Sharing, slots: int, bounds: Sequence[Bounds]) -> list[int]:
    """How many slots each workflow gets, in the order of submission."""
    if sharing is Sharing.GREEDY:
        return _greedy(slots, bounds)
    offers, is_promised = (_equal(slots, bounds), False) if sharing is Sharing.BALANCED else (
        _promised(slots, bounds), True)
    claims = [_claimed(offer, each) for offer, each in zip(offers, bounds, strict=True)]
    return _passed_on(sum(offers) - sum(claims), claims, offers if is_promised else [0] * len(bounds), bounds)


def _claimed(offer: int, each: Bounds) -> int:
    count = min(offer, each.most)
    return count if count >= each.least else 0


def _greedy(slots: int, bounds: Sequence[Bounds]) -> list[int]:
    given = []
    for each in bounds:
        given.append(_claimed(slots, each))
        slots -= given[-1]
    return given


def _equal(slots: int, bounds: Sequence[Bounds]) -> list[int]:
    if not bounds:
        return []
    each, more = divmod(slots, len(bounds))
    return [each + (index < more) for index in range(len(bounds))]


def _promised(slots: int, bounds: Sequence[Bounds]) -> list[int]:
    """Each one's part, those of the largest first as long as they make a hundred together; what rounding down
    leaves of whole slots goes to the largest remainders, the later workflow first."""
    order = sorted(range(len(bounds)), key=lambda index: (-bounds[index].percentage, index))
    total, chosen = 0, []
    for index in order:
        total += bounds[index].percentage
        if total > 100:
            break
        chosen.append(index)
    offers = [0] * len(bounds)
    for index in chosen:
        offers[index] = slots * bounds[index].percentage // 100
    left = {index: slots * bounds[index].percentage % 100 for index in chosen}
    for index in sorted(chosen, key=lambda index: (-left[index], -index))[: sum(left.values()) // 100]:
        offers[index] += 1
    return offers


def _passed_on(spare: int, claims: list[int], promised: Sequence[int], bounds: Sequence[Bounds]) -> list[int]:
    """Give on what was offered in vain: first to workflows that it covers, the nearest to that first, which then
    stays the nearest until it is covered; then to those with the least, beyond what they were promised."""
    counts = list(claims)

    def place(index: int) -> tuple[bool, int, int, int]:
        count, each = counts[index], bounds[index]
        return count >= each.least, max(0, each.least - count), count - promised[index], index
    waiting = [place(index) for index in range(len(bounds))]
    heapq.heapify(waiting)
    while spare and waiting:
        index = heapq.heappop(waiting)[-1]
        each = bounds[index]
        if counts[index] >= each.most or min(counts[index] + spare, each.most) < each.least:
            continue  # neither changes any more: what is spare only gets less
        counts[index] += 1
        spare -= 1
        heapq.heappush(waiting, place(index))
    return counts
