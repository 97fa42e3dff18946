"""What the campaign of workers takes for a violation; one short round of it is in tests/worker."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import attrs
import pytest

from faults.workers import patience
from faults.workers.kills import Census, done_again
from faults.workers.losses import Loss, late, newest
from faults.workers.patience import Waiting
from faults.workers.table import rows

LOSS = Loss("cut", 1, "deadline", 0.5, -1.0, 0.6, 0.1, "1.00", ())


@pytest.mark.parametrize(("python_s", "jvm_s", "waited_s", "found"), [
    (2.0, -3.0, 0.0, []),
    (2.1, 2.1, 0.0, ["Spark's Python acted for more than 2 s", "Spark's JVM acted for more than 2 s"]),
    (3.0, 0.0, 1.0, []),
    (3.1, 0.0, 1.0, ["Spark's Python acted for more than 2 s"]),
    (0.0, 20.0, 20.0, ["Spark's JVM still acts"]),
])
def test_what_acts_for_more_than_two_seconds_beyond_its_waiting_is_a_violation(
    python_s: float, jvm_s: float, waited_s: float, found: list[str]
) -> None:
    assert late(python_s, jvm_s, waited_s) == found


def test_the_table_tells_of_each_kind_the_least_the_median_and_the_most() -> None:
    runs = [LOSS, attrs.evolve(LOSS, python_s=2.5), attrs.evolve(LOSS, python_s=0.7, violations=("seen",))]
    _, row = rows(runs, [])
    assert row.split()[:8] == ["cut", "3", "0.50", "0.70", "2.50", "0.10", "1", "1"]
    assert [run.words for run in runs] == ["ok", "late, for it waited for a processor", "seen"]


def test_the_newest_of_many_files_is_found_by_its_number(tmp_path: Path) -> None:
    for name, moment in (("p-c999.csv", 5), ("p-c1000.csv", 7), ("winner.csv", 9), ("x.crc", 9)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (moment, moment))
    assert newest(tmp_path) == 7
    assert newest(tmp_path / "none") == 0


def test_each_process_waits_as_long_as_its_thread_that_waited_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = [{(1, 1): 0, (1, 2): 0, (2, 1): 5}, {(1, 1): 100_000_000, (1, 2): 300_000_000, (2, 1): 5},
               {(1, 1): 100_000_000, (2, 1): 200_000_005, (2, 2): 9_000_000_000}]
    monkeypatch.setattr(patience, "delays", lambda processes: counted.pop(0))
    waiting = Waiting()
    for moment in (0.0, 1.0, 2.0):
        waiting.look(moment, [1, 2])
    assert waiting.most_s(0.5, 1.0) == pytest.approx(0.3)
    assert waiting.most_s(0.5, 2.0) == pytest.approx(0.3 + 1.5), "no more than there was time"


def test_what_was_done_again_is_counted_from_the_begin_of_the_slice_to_the_kill() -> None:
    first = [("begun", 0, 1.0), ("said", 0, 3.0), ("begun", 1, 3.1), ("said", 1, 5.0), ("begun", 2, 5.1)]
    second = [("begun", 1, 20.0), ("said", 1, 21.0), ("begun", 2, 21.0), ("said", 2, 22.0)]
    again, interval_s = done_again([first, [], second], [6.0])
    assert again == [pytest.approx(2.9)] and interval_s == pytest.approx(1.0 + 0.5 + 2.0)
    assert done_again([first], [6.0])[0] == [] == done_again([first, second], [0.5])[0]


def test_a_census_with_rows_twice_or_missing_differs() -> None:
    whole = Census(Counter({("a",): 1, ("b",): 2}), Counter({("a",): 1}), "{}")
    assert whole.differs(whole) == []
    other = Census(Counter({("a",): 2, ("b",): 1}), Counter({("a",): 1}), "{1}")
    assert other.differs(whole) == ["scanned: 1 rows too many and 1 too few", "the report differs"]
