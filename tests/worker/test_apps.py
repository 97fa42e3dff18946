"""The modules that a worker is given: without a task function among them it would wait for ever, and fail all."""

from __future__ import annotations

import pytest

from skuld_py.errors import Refused
from skuld_py.worker import registry
from skuld_py.worker.apps import load_apps, warn_of_spark


def test_modules_without_a_task_function_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_functions", {})
    monkeypatch.setenv("PYTHONPATH", "")
    with pytest.raises(Refused, match=r"app: json, csv has no task functions; mark each with @") as refused:
        load_apps(["json", "csv"])
    assert refused.value.code == "no_tasks"

    load_apps(["json"], may_lack=True)
    load_apps([], may_lack=True)
    registry.task(name="apps.one")(_one)
    load_apps(["json"])


def test_what_skuld_registers_by_itself_is_no_function_of_an_application(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "")
    assert registry.lookup("skuld:join") and registry.lookup("skuld:sql")
    assert not any(name.startswith("skuld:") for name in registry.registered())


def test_functions_whose_spark_is_not_installed_are_named_before_the_first_attempt(
        monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(registry, "_functions", {})
    registry.task(name="apps.plain")(_plain)
    warn_of_spark("this task needs pyspark")
    registry.task(name="apps.one")(_one)
    warn_of_spark(None)
    assert caplog.messages == []

    warn_of_spark("this task needs pyspark")
    assert caplog.messages == ["each attempt at apps.one fails here: this task needs pyspark"]


def _plain() -> None: ...


def _one(spark: object, context: object) -> None: ...
