"""A single task's requests go no further through a node than they did. These numbers may fall and never rise."""

from __future__ import annotations

import pytest

from skuld_py.model import ids
from tidy.steps import traced, ways

MOST = {"enqueue": (31, 138), "claim": (29, 152), "renew": (39, 368), "complete": (30, 154)}
"""Files entered, and moves between files."""


def test_calls_between_files_are_moves_and_so_are_their_returns() -> None:
    with traced() as way:
        ids.split(bytes(40))
        ids.route_of(bytes(20))

    assert ([*way.files], way.moves) == (["model/ids.py", "model/columns.py"], 6)


@pytest.mark.parametrize("verb", MOST)
def test_a_single_request_enters_no_more_files_and_moves_no_more_between_them(verb: str) -> None:
    way = ways()[verb]

    assert len(way.files) <= MOST[verb][0] and way.moves <= MOST[verb][1], "see python -m tidy.steps -v"
