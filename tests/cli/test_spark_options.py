"""Options about Spark: what a worker is given by the command line, the environment and the file together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from skuld_py.cli.main import main
from skuld_py.cli.spark_options import words_of


@pytest.fixture(autouse=True)
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What workers were started with, in an empty directory."""
    monkeypatch.chdir(tmp_path)
    calls: list[dict[str, Any]] = []

    def run_worker(nodes: list[str], queue: str, app: list[str], **options: Any) -> int:
        calls.append(options)
        return 0

    monkeypatch.setattr("skuld_py.worker.start.run_worker", run_worker)
    return calls


def worker(*arguments: str, env: dict[str, str] | None = None) -> Result:
    line = ["worker", "--queue", "q", "--app", "a", *arguments]
    return CliRunner().invoke(main, line, env=env, prog_name="skuld")


def test_without_options_nothing_is_asked_of_spark(given: list[dict[str, Any]]) -> None:
    assert worker().exit_code == 0
    assert (given[0]["conf"], given[0]["machine_learning"]) == ({}, False)


def test_options_become_settings(given: list[dict[str, Any]]) -> None:
    answer = worker("--master", "spark://h:7077", "--conf", "spark.a=1", "--conf", "spark.b=x=y",
                    "--driver-memory", "2g", "--packages", "g:a:1", "--ml")

    assert answer.exit_code == 0, answer.output
    assert given[0]["machine_learning"] is True
    assert given[0]["conf"] == {"spark.master": "spark://h:7077", "spark.a": "1", "spark.b": "x=y",
                                "spark.driver.memory": "2g", "spark.jars.packages": "g:a:1"}


def test_a_table_of_the_file_holds_settings_by_quoted_names_and_by_tables(given: list[dict[str, Any]]) -> None:
    Path("skuld.toml").write_text('[worker]\nmaster = "yarn"\n[worker.conf]\n"spark.executor.memory" = "4g"\n'
                                  'spark.cores.max = 8\n"spark.speculation" = true\n')

    assert worker().exit_code == 0
    assert given[0]["conf"] == {"spark.master": "yarn", "spark.executor.memory": "4g", "spark.cores.max": "8",
                                "spark.speculation": "true"}


def test_settings_of_all_places_are_taken_together_and_the_command_line_goes_first(
    given: list[dict[str, Any]]
) -> None:
    Path("skuld.toml").write_text('[worker.conf]\n"spark.a" = "file"\n"spark.b" = "file"\n"spark.c" = "file"\n')

    env = {"SKULD_WORKER_CONF": "spark.b=variable spark.c=variable"}
    assert worker("--conf", "spark.c=typed", env=env).exit_code == 0
    assert given[0]["conf"] == {"spark.a": "file", "spark.b": "variable", "spark.c": "typed"}


def test_a_list_in_the_file_does_as_before(given: list[dict[str, Any]]) -> None:
    Path("skuld.toml").write_text('[worker]\nconf = ["spark.a=1", "spark.b=2"]\n')

    assert worker().exit_code == 0
    assert given[0]["conf"] == {"spark.a": "1", "spark.b": "2"}


@pytest.mark.parametrize(("text", "words"), [
    ('[worker.conf]\n"spark.a" = ["x"]\n', ["line 2", "worker.conf.spark.a", "no single value"]),
    ('[worker.conf]\nspark.a.b = 1979-05-27\n', ["line 2", "worker.conf.spark.a.b"]),
    ('[worker.app]\na = 1\n', ["worker.app", "no single value"]),
])
def test_what_is_no_setting_is_refused_with_its_place(text: str, words: list[str]) -> None:
    Path("skuld.toml").write_text(text)
    answer = worker()

    assert answer.exit_code == 2
    for word in words:
        assert word in answer.output


@pytest.mark.parametrize(("arguments", "code"), [
    (("--master", "mesos://h:1"), "bad_master"), (("--master", "sc://h:1"), "bad_master"),
    (("--conf", "spark.master=sc://h"), "bad_master"), (("--py-files", "no.py"), "no_such_file"),
    (("--master", "yarn", "--conf", "spark.master=local[1]"), "bad_setting")])
def test_what_cannot_be_meant_is_refused_before_anything_starts(
    arguments: tuple[str, ...], code: str, given: list[dict[str, Any]]
) -> None:
    answer = worker(*arguments)

    assert (answer.exit_code, given) == (4, []) and f"[{code}]" in answer.output


def test_dev_gives_its_worker_what_it_was_given_and_without_one_refuses() -> None:
    words = words_of({"spark.a": "1 2", "spark.b": "x"}, True)
    assert words == ["--conf", "spark.a=1 2", "--conf", "spark.b=x", "--ml"]
    answer = CliRunner().invoke(main, ["dev", "--master", "yarn"], prog_name="skuld")

    assert answer.exit_code == 2 and "--master is for the worker's Spark" in answer.output
