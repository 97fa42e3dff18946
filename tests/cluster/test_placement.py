"""Placement is even, stable, and total."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skuld_py.cluster.placement import place


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


@pytest.mark.parametrize(("count", "partitions"), [(3, 8), (4, 16), (5, 16), (5, 64), (7, 64)])
def test_shares_are_even_within_a_fifth(count: int, partitions: int) -> None:
    placed = place(names(count), partitions, 3)

    shares = [sum(1 for owners in placed if name in owners) for name in names(count)]
    even = partitions * 3 / count

    assert max(shares) <= 1.2 * even and min(shares) >= 0.8 * even


def test_a_new_node_moves_little() -> None:
    before, after = place(names(4), 64, 3), place(names(5), 64, 3)

    moved = sum(len(set(new) - set(old)) for old, new in zip(before, after, strict=True))

    assert moved <= 1.5 * 64 * 3 / 5


def test_too_few_nodes_own_nothing() -> None:
    assert place(names(2), 4, 3) == ((), (), (), ())
