"""Columns give back what went in, and say when what comes is none; those of one length take a shorter way."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skuld_py.errors import Malformed
from skuld_py.model import columns
from skuld_py.model.columns import Column

STRINGS = st.lists(st.binary(max_size=4), max_size=20)


def alike(size: int) -> st.SearchStrategy[list[bytes]]:
    return st.lists(st.binary(min_size=size, max_size=size), max_size=20)


@given(st.one_of(STRINGS, st.integers(0, 4).flatmap(alike)))
def test_what_was_packed_is_unpacked(values: list[bytes]) -> None:
    assert columns.pack(values).unpack() == values


@given(st.lists(st.integers(0, 4), max_size=6), st.binary(max_size=12))
def test_data_is_cut_as_the_lengths_say_or_refused(lengths: list[int], data: bytes) -> None:
    column = Column(struct.pack(f">{len(lengths)}I", *lengths), data)
    if sum(lengths) != len(data):
        with pytest.raises(Malformed, match="add up"):
            column.unpack()
    else:
        values = column.unpack()
        assert [len(value) for value in values] == lengths and b"".join(values) == data


@given(st.integers(1, 4).flatmap(alike), st.binary(max_size=3), st.binary(max_size=3))
def test_all_values_are_wrapped_and_split_alike(values: list[bytes], before: bytes, after: bytes) -> None:
    assert columns.wrap(values, before, after) == [before + value + after for value in values]
    if values:
        assert columns.split(b"".join(values), len(values[0])) == values


def test_values_are_picked_by_rising_indexes() -> None:
    assert columns.pick(b"abc", range(3)) == b"abc"
    assert columns.pick("abc", [0, 2]) == ["a", "c"]
    assert columns.pick("abc", []) == []
