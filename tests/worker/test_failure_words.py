"""What is kept of a failure, and said of it: for who wrote the function, not for who wrote the worker."""

from __future__ import annotations

import time
from importlib import import_module

import skuld_py
from skuld_py.calls.kinds import SQL
from skuld_py.client.claims import Claim
from skuld_py.errors import Refused
from skuld_py.model.ids import TaskId
from skuld_py.testing import MemoryClient
from skuld_py.worker.assignment import assigned
from skuld_py.worker.kinds.allowed import Allowed, allowing
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
