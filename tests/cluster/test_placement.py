"""Placement is even, stable, and total."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from hashlib import sha256
from math import ceil, floor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skuld_py.cluster import placement
from skuld_py.cluster.placement import Placement, _Scores, _top, place

POWERS = (8, 16, 32, 64, 128, 256)
EXPECTED = (("d:1", "c:1"), ("c:1", "d:1"), ("b:1", "a:1"), ("a:1", "b:1"))


def names(count: int) -> list[str]:
    return [f"10.0.0.{n}:13000" for n in range(count)]


@settings(max_examples=60)
@given(st.integers(1, 9), st.integers(0, 6), st.integers(1, 5), st.randoms())
def test_every_partition_has_distinct_owners_and_order_of_nodes_does_not_matter(
        count: int, power: int, replicas: int, random: object) -> None:
    nodes = names(count)
    placed = place(nodes, 1 << power, replicas)

    shuffled = list(nodes)
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    assert place(shuffled, 1 << power, replicas) == placed
    for owners in placed:
        assert len(set(owners)) == len(owners) == (replicas if count >= replicas else 0)


def shares(placed: Placement, nodes: list[str]) -> list[int]:
    return [sum(1 for owners in placed if name in owners) for name in nodes]


def bounds(slots: int, nodes: int) -> tuple[float, float]:
    """A fifth around the even share, or the whole numbers around it where those are further apart."""
    even = Fraction(slots, nodes)
    return min(even * Fraction(4, 5), floor(even)), max(even * Fraction(6, 5), ceil(even))


@pytest.mark.parametrize("partitions", POWERS)
def test_shares_are_even_within_a_fifth(partitions: int) -> None:
    for count in range(3, 13):
        for replicas in range(1, min(count, 5) + 1):
            placed = place(names(count), partitions, replicas)

            least, most = bounds(partitions * replicas, count)
            assert all(least <= share <= most for share in shares(placed, names(count)))


@pytest.mark.parametrize("partitions", POWERS)
def test_first_places_are_even_within_a_fifth_where_ownership_allows_it(partitions: int) -> None:
    for count in range(3, 13):
        firsts = Counter(owners[0] for owners in place(names(count), partitions, 3))

        assert max(firsts.values()) <= bounds(partitions, count)[1]


def excess(before: Placement, after: Placement, other: str) -> int:
    """Slots that moved between nodes beyond those that ``other`` took or left."""
    moved = sum(len(set(new) - set(old)) for old, new in zip(before, after, strict=True))
    return moved - abs(sum((other in new) - (other in old) for old, new in zip(before, after, strict=True)))


def test_a_node_that_comes_or_goes_moves_hardly_more_than_its_own_share() -> None:
    found = []
    for partitions in POWERS:
        for replicas in range(1, 6):
            placed = {count: place(names(count), partitions, replicas) for count in range(max(3, replicas), 14)}
            for count in range(max(3, replicas), 13):
                without = names(count + 1)[: count // 2] + names(count + 1)[count // 2 + 1 :]
                gone = names(count + 1)[count // 2]
                found += [excess(placed[count], placed[count + 1], names(count + 1)[-1]),
                          excess(placed[count + 1], place(without, partitions, replicas), gone)]

    assert max(found) <= 12
    assert sum(found) <= len(found)


@pytest.mark.parametrize(("partitions", "most"), [(8, 1.5), (16, 1.5), (64, 0.5), (256, 0.1)])
def test_the_excess_with_three_replicas_is_what_is_promised(partitions: int, most: float) -> None:
    found = [excess(place(nodes[:count], partitions, 3), place(nodes[: count + 1], partitions, 3), nodes[count])
             for nodes in ([f"{stem}{n}" for n in range(13)] for stem in ("node-", "10.0.0.", "host:1300"))
             for count in range(3, 12)]

    assert sum(found) <= most * len(found)


def test_the_fourth_and_fifth_node_take_their_share_and_move_little_else() -> None:
    placed = [place(names(count), 16, 3) for count in (3, 4, 5)]

    for count, old, new in zip((4, 5), placed, placed[1:], strict=False):
        assert shares(new, names(count))[-1] >= 0.8 * 48 / count
        assert excess(old, new, names(count)[-1]) <= 2


def test_the_placement_of_a_set_never_changes_between_versions() -> None:
    """Members of different versions must agree; whoever changes the function must carry both."""
    assert place(["a:1", "b:1", "c:1", "d:1"], 4, 2) == EXPECTED


def test_too_few_nodes_own_nothing() -> None:
    assert place(names(2), 4, 3) == ((), (), (), ())


@pytest.mark.parametrize(("count", "partitions", "replicas", "digest"), [
    (5, 16, 3, "b7184bb463c6e4e5"), (40, 64, 5, "781896a976f5ee73"), (200, 64, 3, "6219bee114a226a0"),
    (700, 256, 2, "8a6485f76677e210"), (1_500, 512, 3, "f4626f94ae2a7902"), (60, 8, 9, "bd4d8ba231206fd9")])
def test_the_placement_of_large_sets_never_changes_either(count: int, partitions: int, replicas: int,
                                                          digest: str) -> None:
    placed = place(names(count), partitions, replicas)

    assert sha256(repr(placed).encode()).hexdigest()[:16] == digest


@pytest.mark.parametrize(("count", "partitions", "replicas"), [(3, 8, 3), (50, 64, 3), (400, 128, 2), (90, 8, 5)])
def test_the_best_are_found_without_looking_at_all_scores(count: int, partitions: int, replicas: int) -> None:
    scores = _Scores(names(count), partitions, replicas)
    ladders = {name: scores.ladder(name) for name in sorted(names(count))}

    assert scores.owners == [sorted(ladders, key=lambda name: -ladders[name][partition])[:replicas]
                             for partition in range(partitions)]
    assert all(scores.of(name, partition) == ladders[name][partition]
               for partition, owners in enumerate(scores.owners) for name in owners)
    assert all(sorted(score >> 32 for score in ladder) == list(range(partitions)) for ladder in ladders.values())


def test_more_rungs_are_looked_at_where_too_few_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    placed = place(names(50), 64, 3)
    looked: list[int] = []

    def top(name: str, partitions: int, rungs: int) -> list[tuple[int, int]]:
        looked.append(rungs if rungs == partitions else 1)
        return _top(name, partitions, looked[-1])

    monkeypatch.setattr(placement, "_top", top)

    assert place(names(50), 64, 3) == placed
    assert looked[0] == 1 and looked[-1] == 64
