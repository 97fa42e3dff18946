"""How fast a node deletes what has ended."""

from __future__ import annotations

from skuld_py.node.retention.pace import SPAN_MS, Pace


def test_a_rate_is_of_the_last_seconds() -> None:
    pace, found = Pace(), list[int]()
    for number, count in enumerate((0, 1_000, 3_000, 3_000, 3_000)):
        pace.count = count
        pace.look(1_000_000 + number * SPAN_MS)
        pace.look(1_000_001 + number * SPAN_MS)
        found.append(pace.rate())

    assert found == [0, 200, 400, 0, 0]


def test_a_clock_that_is_set_gives_no_rate() -> None:
    pace = Pace()
    pace.look(1_000_000)
    pace.count = 5_000
    pace.look(900_000)
    assert pace.rate() == 0
    pace.count = 6_000
    pace.look(900_000 + 100 * SPAN_MS)
    assert pace.rate() == 0
