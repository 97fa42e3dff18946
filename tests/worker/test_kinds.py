"""What a worker allows of the kinds of tasks, and which functions a stream may name; without Spark."""

from __future__ import annotations

import os
import stat
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from skuld_py.calls.kinds import SCRIPT, SQL, STREAM
from skuld_py.embedded.java import Java
from skuld_py.worker import spark_submit
from skuld_py.worker.directives import Dead
from skuld_py.worker.kinds.allowed import Allowed, allowed, allowing
from skuld_py.worker.kinds.rows import values_of
from skuld_py.worker.kinds.stream import transform_of

APPS = ("kinds_app.streams",)


@pytest.mark.parametrize(("kind", "remedy"), [(SQL, "--kinds sql"), (STREAM, "--kinds stream"),
                                              (SCRIPT, "--scripts DIRECTORY")])
def test_a_kind_that_the_worker_does_not_run_is_refused_by_name_with_the_remedy(kind: str, remedy: str) -> None:
    for now in (Allowed(), Allowed(kinds=frozenset({SQL, STREAM} - {kind}))):
        with allowing(now), pytest.raises(Dead, match=f"{kind}: .*{remedy}"):
            allowed(kind)
    whole = Allowed(kinds=frozenset({SQL, STREAM}), scripts=Path("/"))
    with allowing(whole):
        assert allowed(kind) is whole


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    app = types.ModuleType("kinds_app.streams")
    app.__dict__.update({"os": os, "join": os.path.join, "Sums": type("Sums", (), {})})
    exec("def double(df):\n    return [df, df]\n", app.__dict__)
    monkeypatch.setitem(sys.modules, "kinds_app", types.ModuleType("kinds_app"))
    monkeypatch.setitem(sys.modules, "kinds_app.streams", app)
    return app


@pytest.mark.parametrize(("name", "words"), [
    ("os.path:join", "in none of the worker's modules, kinds_app.streams"),
    ("kinds_app.streams:join", "defines no function join"),
    ("kinds_app.streams:Sums", "defines no function Sums"),
    ("kinds_app.streams:missing", "defines no function missing"),
    ("kinds_app.missing:clean", "cannot be imported"),
])
def test_a_stream_calls_functions_of_the_application_alone(app: types.ModuleType, name: str, words: str) -> None:
    assert transform_of("kinds_app.streams:double", APPS)(1) == [1, 1]
    with pytest.raises(Dead, match=words):
        transform_of(name, APPS)


class Kind:
    """As much of a type of Spark's as is looked at."""

    def __init__(self, name: str, **parts: Any) -> None:
        self.name = name
        self.__dict__.update(parts)

    def typeName(self) -> str:
        return self.name


def test_of_two_columns_of_one_name_neither_is_lost() -> None:
    columns = Kind("struct", names=["a", "a"])
    with pytest.raises(Exception, match="two columns are called 'a'"):
        values_of(columns, [(1, 2)])


def test_settings_of_a_driver_are_for_this_user_alone_and_it_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = Java(Path("/java"), Path("/java/bin/java"), 17, "a test")
    monkeypatch.setattr(spark_submit, "find_java", lambda directory: java)
    monkeypatch.setenv("SKULD_XYZZY", "set by a task")
    asked = {"spark.submit.deployMode": "cluster", "spark.hadoop.key": "secret",
             "spark.submit.pyFiles": "/w/a.zip"}
    line, environment = spark_submit.command(tmp_path, asked, Path("/s/app.jar"), ["--x"], "acme.Main",
                                             [Path("/s/b.zip")])
    assert line[line.index("--class"):] == ["--class", "acme.Main", "/s/app.jar", "--x"]
    assert "secret" not in " ".join([*line, *environment.values()])
    assert "SKULD_XYZZY" not in environment, "clients of the driver would refuse it"
    settings, = tmp_path.glob("spark/spark.conf")
    assert stat.S_IMODE(settings.stat().st_mode) == 0o600
    said = settings.read_text().splitlines()
    assert {"spark.submit.deployMode=client", "spark.submit.pyFiles=/w/a.zip,/s/b.zip",
            "spark.app.name=app"} <= {*said}
