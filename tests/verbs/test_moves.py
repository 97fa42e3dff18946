"""Data on its way: what is done is said, and nothing of what is not."""

from __future__ import annotations

import attrs
import pytest

from skuld_py.model import messages as m
from skuld_py.testing import MemoryClient
from skuld_py.verbs.attention import Facts, concerns


@pytest.mark.parametrize(("done", "words"), [
    (0, "node a:1 fills 3 partitions again from the others and does not vote there until then (wiped): 6 rows so"
        " far"),
    (2, "node a:1 fills 3 partitions again from the others and does not vote there until then (wiped): 6 rows so"
        " far, 2 of 3 done")])
def test_how_many_are_done_is_said_once_some_are(done: int, words: str) -> None:
    """One that is done is told of no more soon: "0 of 6 done", then "0 of 3 done" would seem to stand still."""
    with MemoryClient() as client:
        seen = client.status()
    moves = tuple(m.MoveRow(number, "a:1", "suspect", 2, number < done, "wiped") for number in range(3))

    found = concerns(Facts("c", 1, 0, attrs.evolve(seen, moves=moves), now_ms=5_000))

    assert [each.words for each in found if each.kind == "moving"] == [words]
