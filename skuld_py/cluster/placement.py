"""Which nodes own which partitions: a pure function of the set of placed nodes, without a history.

Every node gives every partition a score, and the ``replicas`` best own it, best first. A node that comes takes
partitions only where it scores among the best, and one that goes leaves only those: nothing else moves (rendezvous
hashing). But independent scores are as uneven as dice. So each node's scores are a shuffled ladder, one rung for
each partition: all nodes have equally many high ones, which leaves little to even out. Then shares that differ
from the even one by more than a fifth (or lie beyond the numbers around it, where a fifth is less than one) are
evened out where the scores differ least. First places, which stand first for leader, are evened out in the same
way among the owners of each partition, as far as their ownership allows.

What it costs, in slots (one of ``partitions * replicas`` places), over 8 to 256 partitions, 3 to 12 nodes and 1
to 5 replicas: beyond the slots that a coming node takes or a going one leaves, 0.8 on average move between
others, and never more than 12. With 3 replicas it is 1.2 of 24 slots at 8 partitions, 1.3 of 48 at 16, 0.4 of
192 at 64, none at 256; a ring with capped loads moves about 2.3, 2.9, 5.2 and 12 there.

The cost in time is that of drawing, 64 bits for each node and partition: 10,000 nodes and 4,096 partitions take
some five seconds, 1,000 and 256 a twentieth of one.

Liveness is no input: a node that is down keeps its partitions, and its restart moves no data.

Rejected: exact evenness (at 64 partitions it moves ten times the excess); building up from the nodes in a
fixed order (a node early in that order rebuilds everything); anything that remembers (members would have to
agree on what they remember). Source: Thaler and Ravishankar, "Using Name-Based Mappings to Increase Hit Rates",
1998; the ladder is stratified sampling; the bound is that of Mirrokni, Thorup, Zadimoghaddam, "Consistent
Hashing with Bounded Loads", 2016.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from hashlib import shake_256
from struct import unpack

Placement = tuple[tuple[str, ...], ...]

SLACK = 5
"""Shares may differ from the even one by one part in this many."""
_JITTER_BITS = 32
_JITTER = (1 << _JITTER_BITS) - 1
_NEVER = 1 << 80
"""Above all scores."""


def place(nodes: Sequence[str], partitions: int, replicas: int) -> Placement:
    """The owners of each partition, best first; none while fewer than ``replicas`` nodes exist."""
    if len(nodes) < replicas:
        return ((),) * partitions
    names = sorted(nodes)
    scores = _Scores(names, partitions, replicas)
    _Shares(scores, names).even_out()
    lists = [sorted(held, key=lambda name: (-scores.of(name, partition), name))
             for partition, held in enumerate(scores.owners)]
    _even_out_firsts(lists, names)
    return tuple(tuple(each) for each in lists)


class _Scores:
    """The nodes' scores, and the best at each partition (``owners``).

    Of thousands of nodes each owns little, so only its highest rungs are looked at: a node that is not on them has
    a lower score than all that are. A whole ladder is made only for a node that takes more than its scores gave
    it.
    """

    def __init__(self, names: list[str], partitions: int, replicas: int) -> None:
        self._partitions = partitions
        self._ladders: dict[str, array[int]] = {}
        self._known: dict[str, dict[int, int]] = {}
        # Six times the owners needed are found at each partition, on average, so once is nearly always enough.
        rungs = 8 + 6 * partitions * replicas // len(names)
        while not self._find_owners(names, min(rungs, partitions), replicas):
            rungs *= 2

    def _find_owners(self, names: list[str], rungs: int, replicas: int) -> bool:
        found: list[list[tuple[int, str]]] = [[] for _ in range(self._partitions)]
        for name in names:
            for partition, score in _top(name, self._partitions, rungs):
                found[partition].append((-score, name))
        self.owners = [[name for _, name in sorted(each)[:replicas]] for each in found]
        self._known = {name: {} for name in names}
        for partition, each in enumerate(found):
            for score, name in sorted(each)[:replicas]:
                self._known[name][partition] = -score
        return all(len(each) >= replicas for each in found)

    def ladder(self, name: str) -> array[int]:
        """All scores of a node, by partition."""
        found = self._ladders.get(name)
        if found is None:
            found = self._ladders[name] = array("Q", bytes(8 * self._partitions))
            raw = _draw(name, self._partitions)
            for rung, partition in enumerate(sorted(range(self._partitions), key=raw.__getitem__)):
                found[partition] = rung << _JITTER_BITS | raw[partition] & _JITTER
        return found

    def of(self, name: str, partition: int) -> int:
        """A node's score at a partition."""
        score = self._known[name].get(partition)
        return self.ladder(name)[partition] if score is None else score


def _draw(name: str, partitions: int) -> tuple[int, ...]:
    """A node's dice: 64 bits for each partition. Their order is its ladder, every rung once; the lower half stands
    beside the rung, so that no two nodes draw."""
    return unpack(f">{partitions}Q", shake_256(name.encode()).digest(8 * partitions))


def _top(name: str, partitions: int, rungs: int) -> list[tuple[int, int]]:
    """The partitions on a node's highest rungs, lowest first, each with the score."""
    raw = _draw(name, partitions)
    cut = (1 << 64) * max(0, partitions - 3 * rungs) // partitions
    high = [partition for partition, value in enumerate(raw) if value >= cut]
    if len(high) < rungs:
        high = list(range(partitions))
    high.sort(key=raw.__getitem__)
    return [(partition, rung << _JITTER_BITS | raw[partition] & _JITTER)
            for rung, partition in enumerate(high[-rungs:], partitions - rungs)]


def share_bounds(slots: int, nodes: int) -> tuple[int, int]:
    """The least and the most that each of ``nodes`` may have of ``slots``."""
    least = -(-slots * (SLACK - 1) // (SLACK * nodes))
    most = slots * (SLACK + 1) // (SLACK * nodes)
    return min(least, slots // nodes), max(most, -(-slots // nodes))


class _Shares:
    """The owners, while shares are evened out. The slot that moves is the one for which the scores differ least;
    of equal ones the first by partition, giver and taker."""

    def __init__(self, scores: _Scores, names: list[str]) -> None:
        self._scores = scores
        self._owners = scores.owners
        self._held: dict[str, dict[int, None]] = {name: {} for name in names}
        for partition, owners in enumerate(self._owners):
            for name in owners:
                self._held[name][partition] = None
        self._least, self._most = share_bounds(sum(map(len, self._owners)), len(names))

    def even_out(self) -> None:
        """Hand on what exceeds the most, then take what the least lacks. There is always a way, for the larger of
        two shares holds a partition that the smaller does not."""
        short = [name for name, held in self._held.items() if len(held) < self._least]
        roomy = [name for name, held in self._held.items() if len(held) < self._most]
        for name, held in self._held.items():
            while len(held) > self._most:
                taker = self._hand_on(name, short or roomy)
                if short and len(self._held[taker]) >= self._least:
                    del short[bisect_left(short, taker)]
                if len(self._held[taker]) >= self._most:
                    del roomy[bisect_left(roomy, taker)]
        if short:
            self._take(short)

    def _hand_on(self, giver: str, takers: list[str]) -> str:
        """Move a slot from the giver; gives the node that took it. ``takers`` are sorted."""
        ladders = [self._scores.ladder(taker) for taker in takers]
        least = (_NEVER, 0, "")
        for partition in self._held[giver]:
            offers = [ladder[partition] for ladder in ladders]
            for owner in self._owners[partition]:
                at = bisect_left(takers, owner)
                if takers[at : at + 1] == [owner]:
                    offers[at] = -_NEVER
            best = max(offers)
            least = min(least, (self._scores.of(giver, partition) - best, partition, takers[offers.index(best)]))
        _, partition, taker = least
        self._move(partition, giver, taker)
        return taker

    def _take(self, takers: list[str]) -> None:
        """Give these what they lack; each takes from all that have more."""
        offers = [self._offer(partition) for partition in range(len(self._owners))]
        for taker in takers:
            held, ladder = self._held[taker], self._scores.ladder(taker)
            while len(held) < self._least:
                costs = [score - own for (score, _), own in zip(offers, ladder, strict=True)]
                for partition in held:
                    costs[partition] = 2 * _NEVER
                partition = costs.index(min(costs))
                giver = offers[partition][1]
                self._move(partition, giver, taker)
                for changed in (partition, *self._held[giver]):
                    offers[changed] = self._offer(changed)

    def _offer(self, partition: int) -> tuple[int, str]:
        """The lowest score of an owner that has more than the least."""
        return min(((self._scores.of(name, partition), name) for name in self._owners[partition]
                    if len(self._held[name]) > self._least), default=(_NEVER, ""))

    def _move(self, partition: int, giver: str, taker: str) -> None:
        owners = self._owners[partition]
        owners[owners.index(giver)] = taker
        del self._held[giver][partition]
        self._held[taker][partition] = None
def _even_out_firsts(lists: list[list[str]], names: list[str]) -> None:
    """Exchange first places with other owners, over several partitions where it must be."""
    leads: dict[str, dict[int, None]] = {name: {} for name in names}
    for partition, owners in enumerate(lists):
        leads[owners[0]][partition] = None
    _, most = share_bounds(len(lists), len(names))
    for name in names:
        while len(leads[name]) > most:
            path = _path_to_room(lists, leads, name, most)
            if not path:
                break
            for partition, taker in path:
                owners = lists[partition]
                at = owners.index(taker)
                del leads[owners[0]][partition]
                leads[taker][partition] = None
                owners[0], owners[at] = owners[at], owners[0]


def _path_to_room(lists: list[list[str]], leads: dict[str, dict[int, None]], start: str,
                  most: int) -> list[tuple[int, str]]:
    """The shortest chain of (partition, new first) from a node with too many first places to one with room."""
    paths: dict[str, list[tuple[int, str]]] = {start: []}
    queue = deque([start])
    while queue:
        name = queue.popleft()
        for partition in sorted(leads[name]):
            for taker in lists[partition][1:]:
                if taker not in paths:
                    paths[taker] = [*paths[name], (partition, taker)]
                    if len(leads[taker]) < most:
                        return paths[taker]
                    queue.append(taker)
    return []
