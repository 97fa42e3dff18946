"""What is kept of a failure, and said of it: for who wrote the function, not for who wrote the worker."""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib import import_module
from types import FunctionType
from typing import Any

import pytest

import skuld_py
from skuld_py.calls.kinds import SQL
from skuld_py.client.claims import Claim
from skuld_py.errors import Refused
from skuld_py.model.ids import TaskId
from skuld_py.testing import MemoryClient
from skuld_py.worker.assignment import assigned
from skuld_py.worker.endings import Failed, Snoozed, ended_by, ended_with
from skuld_py.worker.kinds.allowed import Allowed, allowing
from skuld_py.worker.outcome import FRAMES_MAX, error_of
from skuld_py.worker.registry import traits_of_function
from skuld_py.worker.vitals import overran


@skuld_py.task(name="words.look_up", queue="words")
def look_up(key: str) -> str:
    prices: dict[str, str] = {}
    return prices[key]


def error_after(payload: bytes) -> str:
    with MemoryClient() as client:
        task_id = client.enqueue("words", payload, retry=skuld_py.Retry(1))
        client.run_until_empty("words", raises=False)
        return (client.get(task_id).error or b"").decode()


def test_what_is_refused_before_a_function_runs_has_no_stack_of_ours() -> None:
    for payload in (skuld_py.call("words:nothing", 1), skuld_py.call("words.look_up"), skuld_py.sql("select 1")):
        assert "File" not in (said := error_after(payload)) and said.count("\n") == 1, said


def test_what_a_function_raises_has_the_stack_of_its_own_code() -> None:
    said = error_after(look_up.call("tea"))
    assert "test_failure_words.py" in said and "return prices[key]" in said, said


def test_a_kind_that_is_not_allowed_is_refused_before_anything_starts() -> None:
    import_module("skuld_py.worker.kinds.sql")
    sql = Claim(TaskId(bytes(20)), 1, "words", 0, skuld_py.sql("select 1"), 0, time.monotonic() + 60)

    refused = assigned(sql)
    assert isinstance(refused.work, Refused) and "--kinds sql" in refused.work.message and not refused.needs_spark
    with allowing(Allowed(frozenset({SQL}))):
        assert assigned(sql).needs_spark


def test_a_limit_that_was_passed_is_named() -> None:
    assert overran(2.0) == "timeout: it ran for longer than its timeout_s, 2 s"
    assert overran(None) == "timeout: it ran for longer than its timeout_s"


class Mute(Exception):
    def __str__(self) -> str:
        raise SystemExit(4)


class Liar(Exception):
    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise SystemExit(4)


class Nameless(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise SystemExit(4)


class Unnamed(Exception, metaclass=Nameless):
    """Its class does not say how it is called."""


class Leaving(dict[str, int]):
    def __iter__(self) -> Iterator[str]:
        raise SystemExit(4)

    keys: Any = __iter__


@pytest.mark.parametrize(("kind", "words"), [
    (Mute, "Mute: (its text is lost: SystemExit)"), (Liar, "Liar: x"), (Unnamed, "an error without a name: x")],
    ids=["mute", "liar", "unnamed"])
def test_an_error_whose_own_code_raises_is_kept_all_the_same(kind: Any, words: str) -> None:
    ending = ended_by(kind("x"), traits_of_function(look_up))

    assert isinstance(ending, Failed) and not ending.is_final
    assert ending.words == words and ending.error.decode().startswith(words)


def test_a_result_whose_own_code_leaves_the_process_is_no_result() -> None:
    ending = ended_with(Leaving(a=1))

    assert isinstance(ending, Failed) and ending.is_final and ending.words == "SystemExit: 4"


def test_the_place_of_an_error_is_looked_for_in_any_module() -> None:
    def fail() -> None:
        raise ValueError("lost")

    with pytest.raises(ValueError, match="lost") as caught:
        FunctionType(fail.__code__, {"__name__": 5, "__builtins__": __builtins__})()
    assert "in fail" in error_of(caught.value).decode()


def test_of_a_deep_stack_the_beginning_and_the_end_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    depths: list[int] = []

    class Extract:
        @staticmethod
        def extract(frames: Any) -> Any:
            depths.append(len([*frames]))
            raise LookupError

    def fall(depth: int) -> None:
        if depth:
            fall(depth - 1)
        raise ValueError("the ground")

    said: list[bytes] = []
    for depth in (10, FRAMES_MAX // 2):
        with pytest.raises(ValueError, match="ground") as caught:
            fall(depth)
        with monkeypatch.context() as patch:  # pytest needs it, too
            patch.setattr("traceback.StackSummary", Extract)
            patch.setattr("skuld_py.worker.outcome.FRAMES_MAX", 100)
            said.append(error_of(caught.value))
    assert depths == [12, 100]
    assert said == [b"ValueError: the ground\n(its place is lost: LookupError)"] * 2


class Delayed(skuld_py.Snooze):
    def __init__(self, delay: Any) -> None:
        BaseException.__init__(self, "later")
        self.delay_ms = delay


class Undelayed(skuld_py.Snooze):
    def __init__(self) -> None:
        BaseException.__init__(self, "some time")


@pytest.mark.parametrize("delay", ["x", [], None, True, 1.5, -5, 2**90])
def test_a_snooze_of_a_class_of_its_own_that_says_no_time_is_an_error(delay: Any) -> None:
    ending = ended_by(Delayed(delay), traits_of_function(look_up))
    assert isinstance(ending, Failed) and "delay_ms is no int from 0 to" in ending.words


def test_a_snooze_of_a_class_of_its_own_counts_and_one_without_a_time_is_an_error() -> None:
    assert ended_by(Delayed(7), traits_of_function(look_up)) == Snoozed(7)
    ending = ended_by(Undelayed(), traits_of_function(look_up))
    assert isinstance(ending, Failed) and "AttributeError" in ending.words
