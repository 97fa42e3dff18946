"""Every lattice keeps the four laws; so do the histories built from them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skuld_py.crdt import Flag, LatticeMap, Max, Min, join
from skuld_py.crdt.lattice import Lattice
from skuld_py.model.history import ClaimRecord, History

NUMBERS = st.integers(0, 5)
MAXES = st.builds(Max, NUMBERS)
MINS = st.builds(Min, st.none() | st.tuples(NUMBERS, NUMBERS))
FLAGS = st.builds(Flag, st.booleans())
CLAIMS = st.builds(ClaimRecord, NUMBERS, MAXES, FLAGS, st.sampled_from(["a", "b"]))
MAPS = st.builds(LatticeMap, st.dictionaries(NUMBERS, MAXES, max_size=4))
HISTORIES = st.builds(History, MINS, st.builds(LatticeMap, st.dictionaries(NUMBERS, CLAIMS, max_size=4)))
LATTICES = {"max": MAXES, "min": MINS, "flag": FLAGS, "map": MAPS, "claim": CLAIMS, "history": HISTORIES}


def canonical(value: Any) -> Any:
    """Maps compare by content; histories also by their bytes."""
    return value.encode() if isinstance(value, History) else value


@pytest.mark.parametrize("name", sorted(LATTICES))
@given(data=st.data())
def test_merge_is_commutative_associative_idempotent_and_forgets_nothing(name: str, data: st.DataObject) -> None:
    a, b, c = (data.draw(LATTICES[name]) for _ in range(3))

    assert canonical(a.merge(b)) == canonical(b.merge(a))
    assert canonical(a.merge(b).merge(c)) == canonical(a.merge(b.merge(c)))
    assert canonical(a.merge(a)) == canonical(a)
    assert canonical(a.merge(b).merge(a)) == canonical(a.merge(b))


def test_the_laws_catch_a_merge_that_is_no_join() -> None:
    """A last-writer-wins pretender fails the first law, so the test above can fail."""

    class Last(Max):
        def merge(self, other: Max) -> Max:
            return other

    a, b = Last(1), Last(2)

    assert a.merge(b) != b.merge(a)


@given(MAXES, st.lists(MAXES, max_size=5))
def test_join_folds_any_number(first: Max, others: list[Max]) -> None:
    values: list[Lattice] = [first, *others]

    assert join(first, others).value == max(value.value for value in values if isinstance(value, Max))
