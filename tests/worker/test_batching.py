"""Batches without a cluster: how large they are, how a crash is found, what a part makes of its items."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as some

import skuld_py
from skuld_py.calls.payloads import call
from skuld_py.calls.results import decode_result
from skuld_py.client.options import Retry
from skuld_py.errors import Refused
from skuld_py.testing import MemoryClient
from skuld_py.worker.ahead import AHEAD_MAX, Ahead
from skuld_py.worker.batches import part
from skuld_py.worker.batches.halving import Halving
from skuld_py.worker.batches.part import Order, run_part
from skuld_py.worker.batches.sizes import BATCH_MAX, FIRST, Sizes
from skuld_py.worker.endings import Failed, Returned, Snoozed, ended_with
from skuld_py.worker.shares import Shares


@skuld_py.task(name="batching.act", batch=True, retry=Retry(3, on=OSError))
def act(what: str, number: int = 0) -> Any:
    match what:
        case "give":
            return bytes(number)
        case "snooze":
            raise skuld_py.Snooze(number)
        case "doze":
            time.sleep(number)
        case "swallow":
            started = time.monotonic()
            while time.monotonic() - started < number:
                try:
                    time.sleep(number)
                except BaseException:
                    if time.monotonic() - started > 0.2:
                        raise
        case "forgiven":
            raise ConnectionError
        case "final":
            raise ValueError(what)
    return what


@attrs.define
class Trap:
    number: int

    def __attrs_post_init__(self) -> None:
        if self.number:
            raise SystemExit(self.number)


@skuld_py.task(name="batching.tread", batch=True)
def tread(trap: Trap) -> int:
    return trap.number


@pytest.fixture(autouse=True)
def no_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that stands still, tests do not end with the item that runs for too long."""
    monkeypatch.setattr(part, "EXIT_S", 600.0)


def ran(*payloads: bytes, timeout_s: float | None = None, name: str = "batching.act", **limits: Any) -> list[Any]:
    order = Order(name, act.__module__, 1, **{"budget_s": 60.0, "bytes_max": 1 << 20, **limits})
    done, = run_part(order, [(payload, timeout_s) for payload in payloads])
    assert len(done.endings) == len(payloads)
    return list(done.endings)


# -- how many --------------------------------------------------------------------------------------


def test_of_a_function_that_nobody_knows_a_hundred_are_tried() -> None:
    assert Sizes(BATCH_MAX, 30).limit == FIRST == 100
    assert Sizes(7, 30).limit == 7


def test_a_second_of_predicted_work_is_one_job() -> None:
    sizes = Sizes(BATCH_MAX, 60)
    sizes.note(100, wall_s=2.03, busy_s=4.0, parts=2)

    assert sizes.limit == 48, "0.03 s for the job, 40 ms an item, two at a time"


def test_a_job_of_tiny_items_has_as_many_as_may_be() -> None:
    sizes = Sizes(BATCH_MAX, 30)
    sizes.note(1, wall_s=0.03, busy_s=0.00001, parts=1)

    assert sizes.limit == FIRST, "one item says little"
    sizes.note(100, wall_s=0.03, busy_s=0.001, parts=2)
    assert sizes.limit == BATCH_MAX


def test_a_slow_item_makes_jobs_small_at_once_and_quick_ones_make_them_large_slowly() -> None:
    sizes = Sizes(BATCH_MAX, 30)
    sizes.note(FIRST, 0.1, 0.1, 1)
    before = sizes.limit
    sizes.note(FIRST, 10.0, 10.0, 1)
    small = sizes.limit
    sizes.note(FIRST, 0.1, 0.1, 1)

    assert small <= 10 < sizes.limit < before


def test_a_part_has_work_for_what_it_costs() -> None:
    sizes = Sizes(BATCH_MAX, 30)
    assert sizes.parts(100) == 100, "nothing is known"
    sizes.note(FIRST, 0.1, 0.1, 1)

    assert [sizes.parts(count) for count in (1, 20, 21, 1000)] == [1, 1, 2, 50]


@given(some.lists(some.tuples(some.integers(0, 1000), some.floats(0, 1e4), some.floats(0, 1e4),
                              some.integers(1, 64))), some.floats(1, 3600), some.integers(1, BATCH_MAX))
def test_whatever_jobs_took_the_next_is_within_its_bounds(
    jobs: list[tuple[int, float, float, int]], lease_s: float, most: int
) -> None:
    sizes = Sizes(most, lease_s)
    for count, wall_s, busy_s, parts in jobs:
        sizes.note(count, wall_s, busy_s, parts)

        assert 1 <= sizes.limit <= most
        assert 1 <= sizes.parts(sizes.limit) <= sizes.limit
        assert sizes.budget_s < lease_s / 2


@given(some.integers(1, 1000), some.floats(1e-5, 5), some.integers(1, 8), some.floats(4, 600))
def test_a_job_is_predicted_to_take_less_than_half_the_lease(
    count: int, each_s: float, parts: int, lease_s: float
) -> None:
    sizes = Sizes(BATCH_MAX, lease_s)
    sizes.note(count, 0.05 + count * each_s / parts, count * each_s, parts)

    assert sizes.limit == 1 or 0.05 + sizes.limit * each_s / parts <= max(1.0, lease_s / 2)


def test_one_batch_that_runs_and_one_that_waits_are_claimed_ahead() -> None:
    ahead = Ahead(2)
    ahead.note_claims(batched=2, others=0)
    ahead.note_batch(500)

    assert ahead.count == 1000
    ahead.forget()
    assert ahead.count == 0


def test_among_other_tasks_no_more_is_claimed_ahead_than_brings_few_of_them() -> None:
    ahead = Ahead(2)
    ahead.note_claims(batched=30, others=10)
    ahead.note_batch(1000)

    assert ahead.count == 8, "a quarter of them are two"
    ahead.note(0.0001)
    assert ahead.count == (AHEAD_MAX + 2) * 4
    for _ in range(50):
        ahead.note_claims(batched=10, others=0)
    assert ahead.count == 2000


def test_a_batch_is_served_as_one_task_of_its_queue() -> None:
    shares, served = Shares({"batched": 1, "single": 1}, 3_000), Counter[str]()
    for _ in range(40):
        for name in ("batched", "single"):
            if (wish := shares.take(name)) is not None:
                count = wish.count if name == "batched" else 1
                shares.answered(name, wish, count)
                shares.joined(name, count - 1)
                served[name] += 1
                shares.give(count)

    assert served["batched"] == pytest.approx(served["single"], abs=2)


# -- a crash -------------------------------------------------------------------------------------


@given(some.integers(0, 200).flatmap(lambda size: some.tuples(
    some.just(size), some.sets(some.integers(0, max(0, size - 1)), max_size=4))))
def test_those_that_crash_are_found_and_all_others_run_well_once(drawn: tuple[int, set[int]]) -> None:
    size, crashing = drawn[0], {each for each in drawn[1] if each < drawn[0]}
    halving, culprits, well, jobs = Halving(range(size)), list[int](), list[int](), 0
    while group := halving.take():
        jobs += 1
        assert sorted([*group, *halving.left, *culprits, *well]) == list(range(size))
        if crashing & {*group}:
            culprit = halving.crashed(group)
            culprits += [] if culprit is None else [culprit]
        else:
            well += group

    assert set(culprits) == crashing and len(culprits) == len(crashing)
    assert sorted([*well, *culprits]) == list(range(size))
    assert jobs <= 1 + 2 * len(crashing) * (size.bit_length() + 1)


# -- a part --------------------------------------------------------------------------------------


def test_each_item_of_a_part_has_an_ending_of_its_own() -> None:
    good, snoozed, forgiven, final, none, strange = ran(
        act.call("x"), act.call("snooze", 7), act.call("forgiven"), act.call("final"), b"no call",
        call("batching.act", []))

    assert isinstance(good, Returned) and decode_result(good.result) == "x"
    assert snoozed == Snoozed(7_000)
    assert isinstance(forgiven, Failed) and not forgiven.is_final
    assert isinstance(final, Failed) and final.is_final and final.words == "ValueError: final"
    assert b'in act\n    raise ValueError(what)' in final.error and b"skuld_py" not in final.error
    assert isinstance(none, Failed) and none.is_final and "no call" in none.words
    assert isinstance(strange, Returned), "annotations of plain types check nothing"


def test_an_item_whose_argument_leaves_the_process_as_it_is_made_ends_for_itself() -> None:
    left, fine = ran(tread.call(Trap(0)).replace(b"number\x00", b"number\x04"), tread.call(Trap(0)),
                     name="batching.tread")

    assert isinstance(left, Failed) and left.words == "SystemExit: 4"
    assert isinstance(fine, Returned)


def test_behind_its_budget_a_part_begins_nothing_and_its_first_item_always() -> None:
    assert [ending is None for ending in ran(*[act.call("x")] * 3, budget_s=0.0)] == [False, True, True]
    first, second = ran(act.call("doze", 0), act.call("x"), budget_s=60.0)
    assert first is not None and second is not None


def test_behind_so_many_bytes_of_results_a_part_begins_nothing() -> None:
    endings = ran(*[act.call("give", 100)] * 4, bytes_max=150)

    assert [ending is None for ending in endings] == [False, False, True, True]


def test_an_item_that_runs_for_too_long_is_interrupted_and_the_next_goes_on() -> None:
    late, swallowed, fine = ran(act.call("doze", 30), act.call("swallow", 30), act.call("x"), timeout_s=0.05)

    assert isinstance(late, Failed) and late.words.startswith("timeout: it ran for longer")
    assert isinstance(swallowed, Failed) and swallowed.words.startswith("timeout: it ran for longer")
    assert isinstance(fine, Returned)


def test_a_module_that_is_not_there_fails_all_items_with_that_word() -> None:
    done, = run_part(Order("nowhere.act", "nowhere_at_all", 1, 60.0, 1), [(b"", None)] * 3)

    assert [ending.words for ending in done.endings if isinstance(ending, Failed)] == [
        "ModuleNotFoundError: No module named 'nowhere_at_all'"] * 3
    assert not any(ending.is_final for ending in done.endings if isinstance(ending, Failed))


def test_the_signals_of_others_are_as_they_were() -> None:
    before = signal.getsignal(signal.SIGALRM)
    ran(act.call("x"), timeout_s=5)

    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.parametrize("limit_s", [1e-9, 1e-6, 1e-5])
def test_an_items_limit_that_is_over_at_once_is_its_own_alone(limit_s: float) -> None:
    order = Order("batching.act", act.__module__, 1, budget_s=60.0, bytes_max=1 << 20)
    done, = run_part(order, [(act.call("doze", 1), limit_s), (act.call("doze", 1), None)])

    late, other = done.endings
    assert isinstance(late, Failed) and isinstance(other, Returned)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


class Lazy(dict[str, int]):
    """A dict that looks up its values when it is read, and fails."""

    def __iter__(self) -> Any:
        return iter(["a"])

    def keys(self) -> Any:
        return ["a"]

    def __getitem__(self, key: str) -> int:
        raise OSError("the rows are gone")


def test_what_a_result_raises_when_it_is_read_is_the_ending_of_its_function() -> None:
    ending = ended_with(Lazy())
    assert isinstance(ending, Failed) and ending.is_final
    assert ending.words == "OSError: the rows are gone" and b"__getitem__" in ending.error


# -- what may be batched ---------------------------------------------------------------------------


def by_session(spark, number):  # type: ignore[no-untyped-def]
    return number


def by_context(number, context):  # type: ignore[no-untyped-def]
    return number


async def awaited(number: int) -> int:
    return number


def plain(number: int) -> int:
    return number


@pytest.mark.parametrize(("function", "options", "words"), [
    (by_session, {}, "leave out the parameter spark"), (by_context, {}, "leave out the parameter context"),
    (awaited, {}, "leave out async"), (plain, {"spark": True}, "leave out spark=True"),
    (plain, {"batch": 0}, "1 to 1000"), (plain, {"batch": BATCH_MAX + 1}, "1 to 1000"),
    (plain, {"batch": "many"}, "'many'"), (plain, {"batch": 2.0}, "2.0")])
def test_what_executors_cannot_give_is_refused_where_it_is_written(
    function: Callable[..., Any], options: dict[str, Any], words: str
) -> None:
    with pytest.raises(Refused, match="batch") as refused:
        skuld_py.task(**{"name": f"batching.{words[:3]}", "batch": True, **options})(function)

    assert words in refused.value.message


def test_in_a_cluster_in_memory_a_batched_function_runs_as_any_other() -> None:
    with MemoryClient() as client:
        task = client.enqueue("batching", act.call("x"))

        ran_there, = client.run_until_empty("batching")

        assert (ran_there.value, client.get(task).result) == ("x", "x")
