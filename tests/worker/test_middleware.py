"""Hooks around task functions: in which order, and who is told what when something fails."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import skuld_py
from skuld_py.calls.payloads import Call
from skuld_py.calls.results import encode_result
from skuld_py.testing import AsyncMemoryClient, MemoryClient
from skuld_py.worker.assignment import assigned
from skuld_py.worker.context import ClaimLost, TaskContext
from skuld_py.worker.endings import Returned
from skuld_py.worker.event_loop import EventLoop
from skuld_py.worker.middleware import Middleware, add_middleware, middleware_added, surround
from skuld_py.worker.outgoing import Outgoing
from skuld_py.worker.run import Run

CALL = Call("test", [1], {})


class Noted(Middleware):
    """Writes down what it is told, and fails where the test says."""

    def __init__(self, name: str, notes: list[str], fails: tuple[str, ...] = ()) -> None:
        self.name, self.notes, self.fails = name, notes, fails

    def _note(self, hook: str, what: object = "") -> None:
        self.notes.append(f"{self.name} {hook} {what}".strip())
        if hook in self.fails:
            raise RuntimeError(f"{self.name} {hook}")

    def before(self, context: TaskContext, call: Call) -> None:
        self._note("before", call.args)

    def after(self, context: TaskContext, call: Call, value: Any) -> None:
        self._note("after", value)

    def on_error(self, context: TaskContext, call: Call, error: BaseException) -> None:
        self._note("on_error", error)


def run(function: Any, **fails: tuple[str, ...]) -> list[str]:
    """What a, b and c around a function note, and how it ends."""
    notes: list[str] = []
    around = [Noted(name, notes, fails.get(name, ())) for name in "abc"]
    context: Any = None
    try:
        notes.append(f"= {surround(function, CALL, around)('spark', context, 1)}")
    except BaseException as error:
        notes.append(f"! {error}")
    return notes


def twice(spark: Any, context: Any, number: int) -> int:
    return 2 * number


def broken(spark: Any, context: Any, number: int) -> int:
    raise ValueError("broken")


def lost(spark: Any, context: Any, number: int) -> int:
    raise ClaimLost("lost")


def test_they_are_brackets() -> None:
    assert run(twice) == ["a before [1]", "b before [1]", "c before [1]", "c after 2", "b after 2", "a after 2",
                          "= 2"]


@pytest.mark.parametrize(("function", "words"), [(broken, "broken"), (lost, "lost")])
def test_an_error_goes_out_through_all(function: Any, words: str) -> None:
    assert run(function)[3:] == [f"c on_error {words}", f"b on_error {words}", f"a on_error {words}",
                                 f"! {words}"]


def test_who_did_not_begin_is_not_told_the_end() -> None:
    assert run(twice, b=("before",)) == ["a before [1]", "b before [1]", "a on_error b before", "! b before"]


def test_an_error_after_the_function_is_one_of_the_task() -> None:
    assert run(twice, b=("after",))[3:] == ["c after 2", "b after 2", "a on_error b after", "! b after"]


def test_an_error_of_an_error_hook_takes_its_place() -> None:
    assert run(broken, c=("on_error",))[3:] == ["c on_error broken", "b on_error c on_error",
                                                "a on_error c on_error", "! c on_error"]


@skuld_py.task(name="middleware.twice", queue="q")
def named(spark: Any, context: Any, number: int) -> int:
    return 2 * number


class Direct:
    """An engine that calls."""

    missing = None

    def call(self, function: Any, context: TaskContext, call: Call) -> Any:
        return function("spark", context, *call.args, **call.kwargs)


def test_a_worker_runs_a_task_inside_those_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skuld_py.worker.middleware._added", [])
    notes: list[str] = []
    add_middleware(Noted("a", notes))
    client = MemoryClient()
    named.send_with(client=client)(4)
    claim = client.claim_one("q")
    assert claim is not None
    context = TaskContext(claim.id, claim.token, claim.queue, claim.deadline, client.get, client.results_of,
                          claim.clock)
    engine: Any = Direct()

    run = Run(assigned(claim), context, engine, EventLoop(), lambda *_: None, lambda *_: None)
    assert run.ending() == Returned(encode_result(8))
    assert notes == ["a before [4]", "a after 8"]


def test_those_added_surround_the_tasks_in_memory_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skuld_py.worker.middleware._added", [])
    notes: list[str] = []
    for name in "ab":
        add_middleware(Noted(name, notes))
    client = MemoryClient()
    named.send_with(client=client)(4)

    assert [each.value for each in client.run_until_empty("q")] == [8]
    assert notes == ["a before [4]", "b before [4]", "b after 8", "a after 8"]
    assert len(middleware_added()) == 2
    named.send_with(client=client)(4)
    assert [each.value for each in client.run_until_empty("q", middleware=())] == [8]
    assert len(notes) == 4


class Timed(Middleware):
    """Keeps what it needs between the two halves in names of its own."""

    def __init__(self, notes: list[str], swallows: bool = False) -> None:
        self.notes, self.swallows = notes, swallows

    @contextmanager
    def run(self, context: TaskContext, call: Call) -> Iterator[None]:
        began = f"{call.args}"
        try:
            yield
        except BaseException as error:
            self.notes.append(f"{began} {type(error).__name__}")
            if not self.swallows:
                raise
        else:
            self.notes.append(f"{began} ended")

    @contextmanager
    def enqueue(self, going: Outgoing) -> Iterator[None]:
        going.headers["trace"] = f"{going.name} to {going.queue}"
        try:
            yield
        except BaseException as error:
            self.notes.append(f"not sent: {type(error).__name__}")
            if not self.swallows:
                raise
        else:
            self.notes.append("sent")


@pytest.mark.parametrize("swallows", [False, True])
@pytest.mark.parametrize(("function", "ending"), [(twice, "= 2"), (broken, "! broken"), (lost, "! lost")])
def test_a_context_manager_is_around_the_hooks_and_swallows_nothing(
    function: Any, ending: str, swallows: bool
) -> None:
    notes: list[str] = []
    around = [Timed(notes, swallows), Noted("a", notes)]
    context: Any = None
    try:
        notes.append(f"= {surround(function, CALL, around)('spark', context, 1)}")
    except BaseException as error:
        notes.append(f"! {error}")

    assert notes[0] == "a before [1]" and notes[-1] == ending
    assert notes[-2] == {"= 2": "[1] ended", "! broken": "[1] ValueError", "! lost": "[1] ClaimLost"}[ending]


def test_each_of_two_tasks_at_once_has_a_context_manager_of_its_own() -> None:
    notes: list[str] = []
    both = threading.Barrier(2, timeout=60)

    def meet(spark: Any, context: Any, number: int) -> int:
        both.wait()
        return number

    context: Any = None
    threads = [threading.Thread(target=surround(meet, Call("t", [number], {}), [Timed(notes)]),
                                args=("spark", context, number)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert sorted(notes) == ["[1] ended", "[2] ended"]


def test_an_async_function_is_surrounded_until_its_end() -> None:
    notes: list[str] = []

    async def later(spark: Any, context: Any, number: int) -> int:
        await asyncio.sleep(0)
        notes.append("here")
        return 2 * number

    context: Any = None
    around = surround(later, CALL, [Timed(notes), Noted("a", notes)], is_async=True)
    assert asyncio.run(around("spark", context, 1)) == 2
    assert notes == ["a before [1]", "here", "a after 2", "[1] ended"]


@pytest.mark.parametrize("swallows", [False, True])
def test_an_enqueue_is_surrounded_and_what_is_added_to_its_headers_travels(
    monkeypatch: pytest.MonkeyPatch, swallows: bool
) -> None:
    monkeypatch.setattr("skuld_py.worker.middleware._added", [])
    monkeypatch.setattr("skuld_py.worker.outgoing._around", [])
    notes: list[str] = []
    add_middleware(Timed(notes, swallows))
    client = MemoryClient()
    task = named.send_with(client=client, headers={"a": "b"})(4)

    async def send() -> None:
        async with AsyncMemoryClient(cluster=client.cluster) as other:
            await named.asend_with(other)(5)
    asyncio.run(send())

    assert client.get(task).headers == {"a": "b", "trace": "middleware.twice to q"} and notes == ["sent", "sent"]
    client.close()
    with pytest.raises(skuld_py.Refused):
        named.send_with(client=client)(4)
    assert notes[-1] == "not sent: Refused"
