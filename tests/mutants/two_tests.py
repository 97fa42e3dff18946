"""Tests for the quick runner's own test; pytest does not collect them."""

from __future__ import annotations

import os

import pytest


@pytest.mark.parametrize("number", [1, 2, 3])
def test_numbers(number: int) -> None:
    assert str(number) != os.environ.get("SKULD_TEST_TWO_TESTS")


@pytest.mark.parametrize(("one", "other"), [pytest.param(1, 2, id="a")])
def test_pairs(one: int, other: int) -> None:
    assert one < other


def test_alone() -> None:
    pass
