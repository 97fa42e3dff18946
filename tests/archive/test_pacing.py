"""How fast a drain goes beside others, by a clock that the test turns."""

from __future__ import annotations

import attrs
import pytest

from skuld_py.archive.pacing import (
    BURST_S,
    HELD_S,
    KEEP_UP,
    PACED_S,
    REST_S_MAX,
    SAMPLE,
    SHARE,
    SPAN_S,
    STALE_S,
    WHOLE,
    AtMost,
    Full,
    Pace,
    Yielding,
)
from skuld_py.node.retention.sharing import SILENT_MS

BATCH = 1_000


@attrs.define
class Drain:
    """A cluster on which ``ends`` tasks end a second, and a drain that deletes ``speed`` while it works."""

    pace: Pace
    speed: float
    ends: float
    now_s: float = 100.0
    ended: float = 1e6
    deleted: int = 0

    def go_on(self, seconds: float) -> float:
        """For so long; how many it deleted a second."""
        begun_s, before = self.now_s, self.deleted
        while self.now_s < begun_s + seconds:
            self.batch()
        return (self.deleted - before) / (self.now_s - begun_s)

    def batch(self) -> None:
        """One, and the rest behind it."""
        at_s = self.now_s
        self.pace.told(at_s, 0, round(self.ended))
        self.wait(max(BATCH / self.speed, 2 * self.pace.spread_s(BATCH)))
        self.pace.went(0, BATCH)
        self.ended, self.deleted = self.ended - BATCH, self.deleted + BATCH
        self.wait(max(0.0, self.pace.rests_until(at_s, self.now_s, BATCH) - self.now_s))

    def wait(self, seconds: float) -> None:
        """Tasks end meanwhile."""
        self.now_s, self.ended = self.now_s + seconds, self.ended + self.ends * seconds


def told(pace: Yielding, ends: float) -> Yielding:
    """It knows what ends; the drain does nothing."""
    pace.told(0.0, 0, 0)
    pace.told(SPAN_S, 0, round(ends * SPAN_S))
    return pace


def test_where_nothing_ends_it_goes_as_fast_as_it_can() -> None:
    drain = Drain(Yielding(1), speed=2_000, ends=0)
    drain.go_on(2 * SPAN_S)

    assert drain.go_on(100) == pytest.approx(2_000)


def test_where_hardly_anything_ends_beside_what_it_does_it_does_not_rest() -> None:
    drain = Drain(Yielding(1), speed=2_000, ends=20)
    drain.go_on(2 * SPAN_S)

    assert drain.go_on(100) == pytest.approx(2_000)


def test_where_tasks_end_it_works_for_a_share_of_its_time() -> None:
    drain = Drain(Yielding(1), speed=2_000, ends=300)
    drain.go_on(2 * SPAN_S)

    assert drain.go_on(100) == pytest.approx(2_000 * SHARE, rel=0.02)


@pytest.mark.parametrize("ends", [1_000, 1_500, 1_700])
def test_where_more_ends_than_that_it_keeps_up_and_goes_no_faster(ends: float) -> None:
    drain = Drain(Yielding(1), speed=2_000, ends=ends)
    drain.go_on(4 * SPAN_S)
    ended = drain.ended

    assert drain.go_on(100) == pytest.approx(KEEP_UP * ends, rel=0.05)
    assert drain.ended < ended


def test_where_it_just_keeps_up_a_batch_is_spread_over_the_time_that_it_has() -> None:
    drain = Drain(Yielding(1), speed=2_000, ends=1_000)
    drain.go_on(4 * SPAN_S)
    found = [(drain.pace.at_once(10 * BATCH), drain.pace.spread_s(BATCH), drain.batch()) for _ in range(2 * WHOLE)]

    spread = [each for each in found if each[1]]
    assert len(found) - len(spread) == 2
    assert all(at_once == pytest.approx(KEEP_UP * 1_000 * BURST_S, rel=0.1) and spread_s == pytest.approx(
        BATCH / (KEEP_UP * 1_000) / 2, rel=0.1) for at_once, spread_s, _ in spread)
    assert all(at_once == 10 * BATCH for at_once, spread_s, _ in found if not spread_s)


@pytest.mark.parametrize("ends", [0, 300])
def test_where_it_need_not_keep_up_a_batch_is_not_spread(ends: float) -> None:
    drain = Drain(Yielding(1), speed=2_000, ends=ends)
    drain.go_on(4 * SPAN_S)

    for _ in range(2 * WHOLE):
        assert (drain.pace.at_once(10 * BATCH), drain.pace.spread_s(BATCH)) == (10 * BATCH, 0.0)
        drain.batch()


def test_what_is_spread_is_not_held_for_longer_than_with_a_rate() -> None:
    drain = Drain(Yielding(1), speed=200, ends=100)
    drain.go_on(8 * SPAN_S)
    drain.batch()
    most = {round(drain.pace.most(10 * BATCH)) for _ in range(WHOLE) if drain.batch() is None}

    assert max(most) == 10 * BATCH and min(most) == pytest.approx(KEEP_UP * 100 * PACED_S, rel=0.2)


def test_what_was_read_at_once_is_deleted_long_before_leaders_take_it_for_silent() -> None:
    """One of some batches is; it is deleted while the next is read, as slowly as that."""
    drain = Drain(Yielding(1), speed=200, ends=100)
    drain.go_on(8 * SPAN_S)
    drain.batch()
    spread = [drain.pace.spread_s(10 * BATCH) for _ in range(WHOLE) if drain.batch() is None]

    assert max(spread) == HELD_S <= SILENT_MS / 3_000


def test_what_was_slow_once_is_not_spread_for_ever() -> None:
    drain = Drain(Yielding(1), speed=500, ends=300)
    drain.go_on(4 * SPAN_S)
    drain.speed = 2_000
    drain.go_on(200)

    assert drain.go_on(100) == pytest.approx(2_000 * SHARE, rel=0.02)


def test_where_more_ends_than_it_can_delete_it_never_rests() -> None:
    drain = Drain(Yielding(1), speed=2_000, ends=3_000)
    drain.go_on(4 * SPAN_S)

    assert drain.go_on(50) == pytest.approx(2_000)


def test_as_long_as_nobody_knows_what_ends_it_rests() -> None:
    drain = Drain(Yielding(1), speed=2_000, ends=0)

    assert drain.go_on(SPAN_S / 2) == pytest.approx(2_000 * SHARE, rel=0.02)
    assert drain.pace.ends is None


def test_what_ended_between_two_runs_is_known_when_the_next_one_begins() -> None:
    pace = told(Yielding(1), 0)
    pace.went(0, 500)

    pace.told(SPAN_S + 60, 0, 3_000 - 500)

    assert pace.ends == pytest.approx(50)


def test_users_who_pause_are_given_way_to_for_a_moment_longer() -> None:
    pace = told(Yielding(1), 400)
    pace.told(2 * SPAN_S, 0, round(400 * SPAN_S))
    assert pace.ends == pytest.approx(400)
    pace.told(3 * SPAN_S, 0, round(400 * SPAN_S))
    assert pace.ends == 0


def test_partitions_are_counted_each_by_itself() -> None:
    """One that is told of for the first time, late, has not come just now."""
    pace = Yielding(2)
    pace.told(0.0, 0, 10)
    pace.told(1.0, 1, 1_000_000)
    pace.went(1, 1_000)
    pace.told(SPAN_S, 0, 10)
    assert pace.ends is None
    pace.told(1.0 + SPAN_S, 1, 1_000_000 - 1_000 + 40)

    assert pace.ends == pytest.approx(40 / SPAN_S)


@pytest.mark.parametrize("idle_s", [60.0, 600.0])
def test_what_ended_between_two_runs_has_not_come_in_the_first_seconds_of_the_next(idle_s: float) -> None:
    """The first partition that is asked tells what came in a long time, the others do so a moment later."""
    pace, now_s = Yielding(8), 0.0
    seen: list[float | None] = []
    for wait_s in (0.0, 3.0, idle_s, 3.0, 3.0, 3.0):
        now_s += wait_s
        for partition in range(8):
            now_s += 0.01
            pace.told(now_s, partition, round(125 * now_s))
            seen.append(pace.ends)

    assert [each for each in seen if each is not None] == pytest.approx([1_000] * (4 * 8 + 1), rel=0.02)


@pytest.mark.parametrize("ends", [1, 15])
def test_where_a_batch_has_pages_of_a_few_partitions_it_rests_until_each_told_twice(ends: int) -> None:
    """Ten at a time, each with so many tasks that end a second; most told once when the first seconds are over."""
    pace, now_s, partitions = Yielding(64), 0.0, 64
    asked = [number % partitions for number in range(2 * partitions)]
    for at in range(0, len(asked), 10):
        for partition in asked[at : at + 10]:
            pace.told(now_s, partition, round(ends * now_s))
        assert (pace.ends is None) is (at + 10 < len(asked)), at
        is_full = pace.rests_until(now_s, now_s + 3, 10_000) == now_s + 3
        assert not is_full, at
        now_s += 6

    assert pace.ends == pytest.approx(ends * partitions, rel=0.05)


def test_as_long_as_not_all_have_told_twice_it_keeps_up_with_those_that_have() -> None:
    pace = told(Yielding(2), 900)
    pace.told(SPAN_S, 1, 50)

    assert pace.ends is None
    assert pace.rests_until(10.0, 11.0, BATCH) == pytest.approx(10 + BATCH / (KEEP_UP * 900))


def test_of_a_partition_that_tells_nothing_now_nothing_is_awaited_and_it_is_not_asked() -> None:
    pace = told(Yielding(2), 0)
    pace.told(SPAN_S, 1, 50)
    pace.over(1)
    pace.told(2 * SPAN_S, 0, 0)

    assert pace.ends == 0
    assert pace.asks(1e6) == [0]


def answer(pace: Yielding, now_s: float, ends: float) -> list[int]:
    """Those that are asked tell, and in each so many end a second."""
    asked = [*pace.asks(now_s)]
    for partition in asked:
        pace.told(now_s, partition, round(ends * now_s))
    return asked


@pytest.mark.parametrize("ends", [0, 1])
def test_of_however_many_partitions_it_is_known_in_seconds_what_ends(ends: int) -> None:
    """They are asked, whatever pages a batch has; as soon as that may tell something, and not before."""
    pace, all_ = Yielding(SAMPLE), [*range(SAMPLE)]

    assert answer(pace, 0.0, ends) == all_ and pace.ends is None
    assert answer(pace, SPAN_S / 2, ends) == []
    assert answer(pace, SPAN_S, ends) == all_
    assert pace.ends == ends * SAMPLE
    assert (pace.rests_until(SPAN_S, SPAN_S + 1, BATCH) == SPAN_S + 1) is (not ends)


def test_a_sample_stands_for_very_many_partitions() -> None:
    pace = Yielding(10 * SAMPLE)
    first = answer(pace, 0.0, 3)
    answer(pace, 0.1, 3)
    assert pace.ends is None

    assert answer(pace, SPAN_S, 3) == first and len(first) == SAMPLE
    assert pace.ends == pytest.approx(3 * 10 * SAMPLE)


def test_where_nothing_ends_any_more_no_partition_counts_as_it_was() -> None:
    """One that is done gives no page, and is asked now and then, the one that told longest ago before others."""
    pace = Yielding(2)
    for partition in (1, 0):
        pace.told(0.1 - partition / 10, partition, 0)
        pace.told(SPAN_S + 0.1 - partition / 10, partition, 100)
    assert pace.ends == pytest.approx(200 / SPAN_S)

    assert pace.asks(SPAN_S + STALE_S - 0.1) == []
    for now_s in (SPAN_S + STALE_S + 1, SPAN_S + 2 * STALE_S + 2, SPAN_S + 3 * STALE_S + 3):
        assert pace.asks(now_s) == [1, 0]
        for partition in (1, 0):
            pace.told(now_s, partition, 100)

    assert pace.ends == 0


def test_what_was_forgotten_hides_nothing_that_ends() -> None:
    """A page went, or another archiver's pages did, and nobody said so here."""
    pace = told(Yielding(1), 400)
    pace.forget(0)
    assert pace.ends is None
    pace.told(10.0, 0, 5_000 - 4_000)
    assert pace.ends is None and pace.rests_until(10.0, 11.0, BATCH) > 11.0
    pace.told(10.0 + SPAN_S, 0, 1_000 + round(400 * SPAN_S))

    assert pace.ends == pytest.approx(400)


def test_it_rests_for_a_few_seconds_at_most() -> None:
    assert told(Yielding(1), 1).rests_until(0.0, 60.0, BATCH) == 60.0 + REST_S_MAX


def test_where_there_was_nothing_to_read_it_does_not_rest() -> None:
    assert told(Yielding(1), 500).rests_until(0.0, 1.0, 0) == 1.0


@pytest.mark.parametrize("ends", [0, 500, 5_000])
def test_at_full_speed_and_at_a_rate_what_ends_makes_no_difference(ends: float) -> None:
    assert Drain(Full(), speed=2_000, ends=ends).go_on(50) == pytest.approx(2_000)
    assert Drain(AtMost(700), speed=2_000, ends=ends).go_on(50) == pytest.approx(700, rel=0.03)
