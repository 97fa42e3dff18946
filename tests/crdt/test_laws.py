"""Every lattice keeps the four laws; so do the histories built from them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skuld_py.crdt import LatticeMap, Max, Min, join
from skuld_py.crdt.lattice import Lattice
from skuld_py.model.checkpoint import Checkpoint, newer
from skuld_py.model.history import (
    FAILED,
    HISTORY_HEAD,
    RELEASED,
    SNOOZED,
    ClaimRecord,
    History,
    death_of,
    ending_of,
    revival_of,
    token_of,
)

NUMBERS = st.integers(0, 5)
MAXES = st.builds(Max, NUMBERS)
MINS = st.builds(Min, st.none() | st.tuples(NUMBERS, NUMBERS))
TOKENS = NUMBERS.map(lambda number: token_of(1, number))
ENDINGS = (st.builds(ending_of, st.just(0) | st.just(RELEASED))
           | st.builds(ending_of, st.sampled_from([SNOOZED, FAILED]), NUMBERS))
CLAIMS = st.builds(ClaimRecord, NUMBERS, MAXES, ENDINGS, st.sampled_from(["a", "b"]))
MAPS = st.builds(LatticeMap, st.dictionaries(NUMBERS, MAXES, max_size=4))
TIMES = st.builds(Min, st.none() | st.tuples(st.integers(1, 5), NUMBERS))
REVIVALS = st.just(Max()) | st.builds(revival_of, st.integers(1, 3), TOKENS)
DEATHS = st.just(Max()) | st.builds(death_of, NUMBERS, st.integers(1, 5), NUMBERS | st.just((1 << 56) - 1))
HISTORIES = st.builds(History, TIMES, st.builds(LatticeMap, st.dictionaries(TOKENS, CLAIMS, max_size=4)), TIMES,
                      REVIVALS, DEATHS)
CHECKPOINTS = st.builds(Checkpoint, TOKENS.filter(lambda token: token >= token_of(1, 0)), NUMBERS, NUMBERS,
                        st.binary(max_size=2))
LATTICES = {"max": MAXES, "min": MINS, "ending": ENDINGS, "map": MAPS, "claim": CLAIMS, "history": HISTORIES,
            "checkpoint": CHECKPOINTS}


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


@given(HISTORIES)
def test_a_history_is_read_back_as_it_was_written(history: History) -> None:
    assert History.decode(history.encode()) == history


@given(st.binary(max_size=120))
def test_any_bytes_are_a_canonical_history_or_refused(tail: bytes) -> None:
    for record in (tail, HISTORY_HEAD.pack(0, 0, 0) + tail):
        try:
            history = History.decode(record)
        except ValueError:
            continue
        assert history.encode()[24:] == record[24:]


@given(CHECKPOINTS, CHECKPOINTS)
def test_of_two_checkpoints_the_larger_record_is_that_of_the_newer(one: Checkpoint, other: Checkpoint) -> None:
    assert newer(one.encode(), other.encode()) == one.merge(other).encode()
    assert (one.encode() == other.encode()) is (one == other)
    assert Checkpoint.decode(one.encode()) == one


def test_a_later_claims_checkpoint_stands_whatever_its_number_and_time() -> None:
    last = Checkpoint(token_of(1, 1), 9, 9, b"z")
    for newer_one in (Checkpoint(token_of(1, 2), 0, 0, b""), Checkpoint(token_of(2, 0), 0, 0, b""),
                      Checkpoint(token_of(1, 1), 10, 0, b"")):
        assert last.merge(newer_one) == newer_one.merge(last) == newer_one
