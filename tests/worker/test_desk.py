"""What a worker holds while batches run, without a cluster: whose turn it is, what is written and told at once."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import skuld_py
from skuld_py.client.claims import Claim
from skuld_py.client.client import Client
from skuld_py.model.ids import TaskId
from skuld_py.worker.assignment import assigned, turns_of
from skuld_py.worker.batches.batch import Outcome
from skuld_py.worker.batches.desk import Desk
from skuld_py.worker.batches.sizes import BYTES_MAX, FIRST
from skuld_py.worker.context import ClaimLost, TaskContext
from skuld_py.worker.endings import Ending, Returned, Stopped
from skuld_py.worker.event_loop import EventLoop
from skuld_py.worker.renewer import Renewer
from skuld_py.worker.run import Lot, Run
from skuld_py.worker.scribe import Scribe
from worker.running import FakeEngine

PATIENCE_S = 60.0
_numbers = count(1)


@skuld_py.task(name="desk.tiny", batch=True)
def tiny(what: Any = "") -> Any:
    return what


@skuld_py.task(name="desk.few", batch=3)
def few(what: Any = "") -> Any:
    return what


@skuld_py.task(name="desk.single")
def single(what: Any = "") -> Any:
    return what


def claim_of(function: Any, queue: str = "q", what: Any = "", *, is_first: bool = True) -> Claim:
    number = next(_numbers)
    return Claim(TaskId(number.to_bytes(20, "big")), number, queue, 0, function.call(what), 0,
                 time.monotonic() + 1e6, is_first=is_first)


def run_of(function: Any, queue: str = "q", what: Any = "") -> Run:
    claim = claim_of(function, queue, what)
    context = TaskContext(claim.id, claim.token, queue, claim.deadline, lambda _: pytest.fail(), list)
    return Run(assigned(claim), context, FakeEngine(), EventLoop(), lambda *_: None, lambda *_: None)


class Noted:
    """Outcomes of batches, as their threads tell them."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []
        self.is_over = threading.Event()

    def __call__(self, _batch: Any, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        if outcome.is_over:
            self.is_over.set()


def test_runs_of_one_function_and_queue_are_one_lot_and_take_one_slot() -> None:
    desk = Desk(FakeEngine(), 30, Noted())
    a, b, c, d, e, f = (run_of(*each) for each in (
        (tiny,), (single,), (tiny,), (few,), (tiny, "other"), (tiny,)))
    ready = [a, b, c, d, e, f]

    assert desk.lots(ready, 9) == [[a, c, f], [b], [d], [e]]
    assert desk.lots(ready, 2) == [[a, c, f], [b]]
    assert desk.lots(ready, 0) == [] == desk.lots([], 3)


def test_a_lot_has_no_more_runs_and_bytes_than_one_job_may_have() -> None:
    desk = Desk(FakeEngine(), 30, Noted())

    assert [len(lot) for lot in desk.lots([run_of(few) for _ in range(5)], 9)] == [3]
    assert [len(lot) for lot in desk.lots([run_of(tiny) for _ in range(FIRST + 1)], 9)] == [FIRST]
    large = [run_of(tiny, what=bytes(1_000_000)) for _ in range(20)]
    assert [len(lot) for lot in desk.lots(large, 9)] == [BYTES_MAX // len(large[0].claim.payload)]


def test_one_batch_of_a_kind_runs_at_a_time_and_the_next_when_it_is_over() -> None:
    noted, engine = Noted(), FakeEngine()
    engine.gate.clear()
    desk = Desk(engine, 30, noted)
    first, later, other = run_of(tiny, what="wait"), run_of(tiny), run_of(few)
    desk.begin([first])
    running = {first.key: first}

    assert desk.lots([later, other], 9) == [[other]]
    engine.gate.set()
    assert noted.is_over.wait(PATIENCE_S)
    settled: list[tuple[Run, Ending]] = []
    batch = cast(Any, first.batch)
    for outcome in noted.outcomes:
        assert desk.take(batch, outcome, running, lambda *each: settled.append(each)) == []
    assert desk.end(batch) and not desk.end(batch)
    assert [run for run, _ in settled] == [first] and isinstance(settled[0][1], Returned) and not running
    assert desk.lots([later, other], 9) == [[later], [other]]
    assert "batch of 1 desk.tiny took" in batch.said and "1 returned" in batch.said


@pytest.mark.parametrize("size", [1, 2])
def test_a_batch_is_wanted_as_long_as_nothing_is_decided_of_one_of_its_runs(size: int) -> None:
    noted, engine = Noted(), FakeEngine()
    engine.gate.clear()
    desk = Desk(engine, 30, noted)
    runs = [run_of(tiny, what="wait") for _ in range(size)]
    desk.begin(runs)
    batch = cast(Any, runs[0].batch)
    assert desk.beyond == size - 1 and {run.job for run in runs} == {batch.name}

    for run, lot in zip(runs, (Lot.LOST, Lot.GIVEN_BACK), strict=False):
        assert batch.is_wanted
        run.decide(lot, "its lease ended, or its task was cancelled")
    assert not batch.is_wanted
    runs[0].interrupt()
    engine.cancel(batch.name)

    assert batch.join(PATIENCE_S) and noted.is_over.wait(PATIENCE_S)
    last, = noted.outcomes
    assert [ending for _, ending in last.ended] == [Stopped()] * size, "a job that was stopped is no crash"


def test_what_a_job_did_not_come_to_waits_again_unless_its_fate_is_decided() -> None:
    engine = FakeEngine()
    engine.gate.clear()
    desk = Desk(engine, 30, Noted())
    runs = [run_of(tiny, what="wait"), run_of(tiny), run_of(tiny)]
    desk.begin(runs)
    running, settled, batch = {run.key: run for run in runs}, list[Run](), cast(Any, runs[0].batch)
    runs[2].decide(Lot.GIVEN_BACK, "the task was cancelled")

    left = desk.take(batch, Outcome([(runs[0], Returned(b""))], runs[1:]), running,
                     lambda run, _: settled.append(run))

    assert left == [runs[1]] and runs[1].batch is None and settled == [runs[0], runs[2]] and not running
    assert "1 returned, 1 given back, 1 left for the next" in batch.said
    engine.gate.set()


def test_only_what_was_claimed_before_is_read_of_a_batch() -> None:
    assert not assigned(claim_of(tiny)).has_past
    assert assigned(claim_of(tiny, is_first=False)).has_past
    assert not assigned(claim_of(single, is_first=False)).has_past, "no engine can have died under it"


def test_a_batch_takes_one_turn_of_its_queue() -> None:
    assert turns_of([assigned(claim_of(each)) for each in (tiny, tiny, single, few, single, tiny)]) == 4


class FakeClient:
    """Notes what is written."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, int]] = []

    def __enter__(self) -> FakeClient:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def complete_many(self, claims: Sequence[Any], results: Sequence[bytes]) -> None:
        self.requests.append(("complete", len(claims)))

    def fail_many(self, claims: Sequence[Any], errors: Sequence[bytes], final: bool) -> list[bool]:
        self.requests.append(("fail", len(claims)))
        return [True] * len(claims)

    def release(self, *claims: Any) -> None:
        self.requests.append(("release", len(claims)))


def test_what_ends_together_is_written_in_one_request_of_each_kind_and_no_log_for_it() -> None:
    client, done = FakeClient(), list[tuple[int, str]]()
    scribe = Scribe(cast(Client, client), lambda runs, what: done.append((len(runs), what)))
    scribe.start()
    with scribe.together():
        for number in range(300):
            say: Callable[[Run], None] = (lambda run: scribe.complete(run, b"x")) if number % 3 else (
                lambda run: scribe.fail(run, b"no") if run.claim.token % 2 else scribe.release(run, ""))
            say(run_of(tiny))

    assert scribe.close(PATIENCE_S)
    assert sorted(what for what, _ in client.requests) == ["complete", "fail", "release"]
    assert sum(many for _, many in client.requests) == 300 == sum(many for many, _ in done)


def test_what_a_full_pipe_does_not_take_is_said_later_in_order(tmp_path: Path) -> None:
    renewer = Renewer([], 5.0, tmp_path / "log", on_lost=print, on_extended=print, on_cancelled=print)
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    keys = [(number.to_bytes(20, "big"), number, bytes(8)) for number in range(3_000)]
    heard = b""
    with open(reading, "rb", 0) as ours, open(writing, "wb", 0) as theirs:
        renewer._child = cast(Any, SimpleNamespace(stdin=theirs, kill=pytest.fail))
        renewer.hold(keys, 1.0)
        assert renewer._unsaid
        while renewer._unsaid or b'"beat"' not in heard:
            heard += ours.read(1 << 20)
            renewer.beat()

    held = [named for line in heard.splitlines() for named in json.loads(line).get("hold", [])]
    assert [named[1] for named in held] == [*range(3_000)]
    assert max(map(len, heard.splitlines())) < 4_096


def test_what_a_renewer_has_said_is_heard_before_a_claim_is_given_up(tmp_path: Path) -> None:
    renewer = Renewer([], 60.0, tmp_path / "log", on_lost=print, on_extended=lambda *_: None, on_cancelled=print)
    key = (bytes(20), 7, bytes(8))
    reading, writing = os.pipe()
    with open(reading, "rb", 0) as ours, open(writing, "wb", 0) as theirs:
        renewer._child = cast(Any, SimpleNamespace(stdin=theirs))
        renewer.hold([key], 1.0)
        renewer._asker.start()
        found: list[float] = []
        asking = threading.Thread(target=lambda: found.append(renewer.newest(key)))
        asking.start()
        *_, line = [ours.readline(), ours.readline()]
        renewer._hear({"extended": [key[0].hex(), key[1], key[2].hex()], "deadline": 90.0})
        renewer._hear(json.loads(line))
        asking.join(PATIENCE_S)
        assert found == [90.0]
        assert renewer.newest((bytes(20), 8, bytes(8))) == 0.0
        renewer._asking.put(None)
        renewer._asker.join()


def test_an_order_to_stop_that_arrives_anywhere_while_a_task_asks_keeps_nobody_else_from_asking(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skuld_py.worker.renewer.FRESH_S", -1.0)
    renewer = Renewer([], 60.0, tmp_path / "log", on_lost=print, on_extended=print, on_cancelled=print)
    key = (bytes(20), 7, bytes(8))
    reading, writing = os.pipe()
    with open(reading, "rb", 0) as ours, open(writing, "wb", 0) as theirs:
        renewer._child = cast(Any, SimpleNamespace(stdin=theirs))
        echoing = threading.Thread(target=lambda: [renewer._hear(json.loads(line)) for line in ours])
        for helper in (echoing, renewer._asker):
            helper.daemon = True
            helper.start()
        places = 0
        while _is_stopped(lambda: renewer.newest(key), places):
            other = threading.Thread(target=renewer.newest, args=(key,), daemon=True)
            other.start()
            other.join(PATIENCE_S)
            assert not other.is_alive(), f"after an order to stop at place {places}"
            places += 1
        assert places > 5
        renewer._asking.put(None)
        renewer._asker.join()
        theirs.close()
        echoing.join()


def _is_stopped(ask: Callable[[], object], place: int) -> bool:
    """Whether a task that asks came to this place, where it was told to stop."""
    left, stopped = place, False

    def trace(frame: Any, event: str, arg: Any) -> Any:
        nonlocal left
        left -= 1
        if left == -1:
            raise ClaimLost
        return trace

    def task() -> None:
        nonlocal stopped
        sys.settrace(trace)
        try:
            ask()
        except ClaimLost:
            stopped = True
        finally:
            sys.settrace(None)

    thread = threading.Thread(target=task, daemon=True)
    thread.start()
    thread.join()
    return stopped


def test_a_renewer_gives_an_echo_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skuld_py.worker.renewer.ECHO_S", PATIENCE_S)
    renewer = Renewer(["127.0.0.1:9"], 60.0, tmp_path / "log", on_lost=print, on_extended=print,
                      on_cancelled=print)
    renewer.start()
    try:
        renewer.newest((bytes(20), 7, bytes(8)))
        assert not renewer._asked
    finally:
        renewer.close()


def test_a_renewer_is_told_no_variable_that_would_keep_it_from_making_a_client(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skuld_py.worker.renewer.ECHO_S", PATIENCE_S)
    monkeypatch.setenv("SKULD_XYZZY", "what a task has set before")
    renewer = Renewer(["127.0.0.1:9"], 60.0, tmp_path / "log", on_lost=print, on_extended=print,
                      on_cancelled=print)
    monkeypatch.setenv("SKULD_PLUGH", "what a task sets while it runs")
    renewer.start()
    try:
        renewer.newest((bytes(20), 7, bytes(8)))
        assert not renewer._asked
    finally:
        renewer.close()


def test_a_batch_is_told_of_when_it_takes_long_at_a_pace_and_when_it_is_over() -> None:
    engine, news = FakeEngine(), 0
    engine.gate.clear()
    engine.counted[":batch"] = {"tasks": [1, 2]}
    over = threading.Event()
    desk = Desk(engine, 30.0, lambda _, outcome: over.set() if outcome.is_over else None)

    def hear() -> None:
        nonlocal news
        news += 1

    desk.on_news = hear
    desk.begin([run_of(tiny, what="wait"), run_of(tiny)])
    batch, = desk._batches.values()
    desk.look()
    assert news == 0, "it may be over before anybody looks"
    batch.started_s -= 10
    for _ in range(3):
        desk.look()
    assert news == 1
    told, = desk.statuses
    assert (told.function, told.tasks, told.ended, told.parts_done, told.parts) == ("desk.tiny", 2, 0, 1, 2)
    desk._tell_at = 0
    desk.look()
    assert news == 2
    engine.gate.set()
    assert over.wait(PATIENCE_S) and desk.end(batch)
    desk.look()
    desk.look()
    assert news == 3 and desk.statuses == ()
