"""The order of archiving with a rate: how much at a time, how fast, and when it rests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from archive.test_archiver import archiver
from archive.world import World, world
from skuld_py.archive import archiver as archiving
from skuld_py.archive.archiver import Question
from skuld_py.archive.pacing import REST_S_MAX, AtMost
from skuld_py.client.archiving import Page
from skuld_py.errors import SkuldError


def test_with_a_rate_batches_are_smaller_and_the_next_is_read_when_it_allows_that(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archiving, "AT_ONCE", 1)
    over = world(4, 4, 1)
    read_s: list[float] = []

    def offered(questions: Sequence[Question]) -> Sequence[Page | SkuldError]:
        read_s.append(over.now_s)
        return World.offered(over, questions)
    monkeypatch.setattr(over, "offered", offered)

    report = archiver(over, pace=AtMost(2)).run(wait_s=0)

    written = [count for what, count in over.said if what == "written"]
    assert (report.deleted, sum(written)) == (9, 9) and len(written) >= 2
    assert all(count <= 4 for count in written)
    assert max(read_s) >= (9 - 1) / 2


Step = tuple[float, str, int]


def steps(over: World, monkeypatch: pytest.MonkeyPatch) -> list[Step]:
    """When pages are read and deleted, and how many at once; filled as it goes on."""
    said: list[Step] = []

    def offered(questions: Sequence[Question]) -> Sequence[Page | SkuldError]:
        said.append((over.now_s, "read", len(questions)))
        return World.offered(over, questions)

    def archived(pages: Sequence[Page]) -> Sequence[int | SkuldError]:
        said.append((over.now_s, "deleted", len(pages)))
        return World.archived(over, pages)
    monkeypatch.setattr(over, "offered", offered)
    monkeypatch.setattr(over, "archived", archived)
    return said


def test_with_a_rate_a_batch_is_read_bit_by_bit_and_so_is_the_one_before_deleted(
        monkeypatch: pytest.MonkeyPatch) -> None:
    """Four tasks a second, two to a page: eight in a batch, for which there are two seconds."""
    monkeypatch.setattr(archiving, "PAGE_TASKS", 2)
    over = world(16, 16, 16, ahead=8)
    said = steps(over, monkeypatch)

    archiver(over, pace=AtMost(4)).run(wait_s=0)

    read, deleted = ([(at_s, what, 1) for at_s in (0, 0.25, 0.5, 0.75)] for what in ("read", "deleted"))
    assert said[:12] == [*read, *((2 + at_s, what, count) for at_s, what, count in read),
                         *((2.75 + at_s, what, count) for at_s, what, count in deleted)]
    assert [count for what, count in over.said if what == "written"] == [8] * 6
    assert 48 / 4 <= over.now_s <= 48 / 4 + 2


def test_with_a_high_rate_bits_have_several_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an answer takes its time, it would not come to its rate otherwise."""
    monkeypatch.setattr(archiving, "PAGE_TASKS", 2)
    over = world(16, 16, 16, ahead=8)
    said = steps(over, monkeypatch)

    archiver(over, pace=AtMost(16)).run(wait_s=0)

    assert max(count for _, what, count in said if what == "read") == 2
    assert max(count for _, what, count in said if what == "deleted") == 2


def test_where_one_page_after_another_is_slower_than_the_rate_several_go_at_once(
        monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has two large tasks, not as many as may be, and a tenth of a second goes by until it is there."""
    over = world(40, 40, 40, ahead=8)
    said = steps(over, monkeypatch)
    offered, archived = over.offered, over.archived

    def slowly(answer: Callable[[Sequence[Any]], Any]) -> Callable[[Sequence[Any]], Any]:
        def answered(asked: Sequence[Any]) -> Any:
            World.pause(over, 0.1)
            return answer(asked)
        return answered
    monkeypatch.setattr(over, "offered", slowly(offered))
    monkeypatch.setattr(over, "archived", slowly(archived))

    archiver(over, pace=AtMost(20)).run(wait_s=0)

    counts = [(what, count) for _, what, count in said]
    assert {("read", 2), ("deleted", 2)} <= {*counts} and max(count for _, count in counts) <= 4
    assert 120 / 20 <= over.now_s <= 1.3 * 120 / 20


def test_what_a_page_has_where_a_leader_has_another_limit_is_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the first answer; as many come at once as the rate says if pages were as by default."""
    monkeypatch.setattr(archiving, "PAGE_TASKS", 2)
    over = world(25, 25, 25, size=5, ahead=8)
    said = steps(over, monkeypatch)

    archiver(over, pace=AtMost(20)).run(wait_s=0)

    assert [count for _, what, count in said if what == "read"][:3] == [2, 1, 1]


@pytest.mark.parametrize(("rate", "gone"), [(0.5, [0, 2, 4]), (0.3, [2, 4, 6])])
def test_before_a_long_rest_all_that_was_read_is_written_and_confirmed(rate: float, gone: list[int]) -> None:
    """By its end the pages may be another archiver's. Over a short one it is written."""
    over, seen = world(6, ahead=3), list[int]()
    running = archiver(over, pace=AtMost(rate))

    def pause(seconds: float) -> None:
        assert (seconds > REST_S_MAX) is (rate < 2 / REST_S_MAX)
        seen.append(len(over.deleted))
        World.pause(over, seconds)
    running._pause = pause
    report = running.run(wait_s=0)

    assert (report.deleted, report.written, report.is_done) == (6, 6, True)
    assert seen == gone


def test_what_went_before_a_long_rest_begins_patience_anew_behind_it() -> None:
    over = world(2, 1, ahead=3)
    over.awaited[1] = ("h:2",)

    report = archiver(over, pace=AtMost(0.1)).run(wait_s=10)

    assert (report.deleted, report.waiting) == (2, {1: ("h:2",)})
    assert 30 <= over.now_s < 32
