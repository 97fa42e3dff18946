"""What is asked of an archive, and what of it the names of directories tell."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from archive.ended import DAY_MS, NOON_MS, plain
from skuld_py.archive.filters import Filters
from skuld_py.archive.live import has_only, may_have
from skuld_py.archive.manifest import File
from skuld_py.archive.rows import day_of
from skuld_py.model.body import WINDOW_MS_MAX
from skuld_py.model.ids import TaskId, to_text

NOON = datetime.fromtimestamp(NOON_MS / 1000, UTC)
DAY = day_of(NOON_MS)


def test_nothing_asked_is_nothing_excluded() -> None:
    assert list(Filters().conditions()) == []


def test_an_id_is_looked_for_in_its_day() -> None:
    task = plain(3)

    assert list(Filters(id=TaskId(task.id)).conditions()) == [("day", "=", DAY), ("id", "=", to_text(task.id))]


def test_times_choose_days_as_well() -> None:
    east = NOON.astimezone(timezone(timedelta(hours=14)))
    asked = list(Filters(since=NOON, until=east + timedelta(days=1)).conditions())

    oldest = day_of(NOON_MS - WINDOW_MS_MAX)  # the id of a unique name is as old as its window
    assert asked == [("day", ">=", oldest), ("enqueued_ms", ">=", NOON_MS),
                     ("day", "<=", day_of(NOON_MS + DAY_MS)), ("enqueued_ms", "<", NOON_MS + DAY_MS)]


def test_queue_and_states() -> None:
    assert list(Filters(queue="007", states=("dead", "cancelled")).conditions()) == [
        ("queue", "=", "007"), ("state", "in", ("dead", "cancelled"))]


def test_a_key_is_in_no_name_of_a_directory_and_known_of_no_file_as_a_whole() -> None:
    file = File("files/d/q/1.parquet", "q", "d", 1, 1, "a", "b", 0, 0, 0, 0)

    assert list(Filters(key="customer-42").conditions()) == [("key", "=", "customer-42")]
    assert may_have(file, Filters(key="customer-42")) and not has_only(file, Filters(key="customer-42"))
    assert has_only(file, Filters())


def test_a_time_before_all_days_is_the_first() -> None:
    assert ("day", ">=", "1970-01-01") in Filters(since=datetime(1, 1, 2, tzinfo=UTC)).conditions()
