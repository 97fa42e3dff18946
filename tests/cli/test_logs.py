"""How much a verb that stays logs, and in which form: by option, environment and file."""

from __future__ import annotations

import io
import json
import logging
import re
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from skuld_py.cli import logs
from skuld_py.cli.main import main
from skuld_py.cli.node import node
from skuld_py.cli.twins import name_variables


@pytest.fixture(autouse=True)
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    levels = {name: logging.getLogger(name).level for name in ("", "skuld_py", "kazoo")}
    handlers = [(handler, handler.formatter) for handler in logging.getLogger().handlers]
    yield
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    for handler, formatter in handlers:
        handler.setFormatter(formatter)


def level_of(*arguments: str, env: dict[str, str] | None = None) -> int:
    @click.command()
    @logs.log_options
    def stay(log_level: str, log_format: str | None) -> None:
        """Stay."""

    name_variables(stay, ("stay",))
    answer = CliRunner().invoke(stay, arguments, env=env)
    assert answer.exit_code == 0, answer.output
    return logging.getLogger("skuld_py").level


def test_what_a_node_says_of_itself_is_shown_unless_asked_otherwise() -> None:
    assert level_of() == logging.INFO
    assert level_of("--log-level", "warning") == logging.WARNING
    assert level_of(env={"SKULD_STAY_LOG_LEVEL": "error"}) == logging.ERROR


def test_only_debug_shows_what_the_library_of_zookeeper_says() -> None:
    logging.getLogger("kazoo").setLevel(logging.ERROR)
    level_of()
    assert logging.getLogger("kazoo").level == logging.ERROR
    level_of("--log-level", "debug")
    assert logging.getLogger("kazoo").level == logging.INFO


def test_a_document_has_the_facts_of_its_record() -> None:
    handler = logging.StreamHandler()
    logging.getLogger().addHandler(handler)
    try:
        level_of("--log-format", "json")
        record = logging.LogRecord("skuld_py.x", logging.INFO, "", 0, "said %s", ("so",), None)
        record.facts = {"event": "elected", "count": 2}
        made = json.loads(handler.format(record))
        level_of("--log-format", "text")
        assert handler.format(record).endswith("INFO skuld_py.x: said so")
    finally:
        logging.getLogger().removeHandler(handler)

    assert (made["event"], made["count"], made["level"], made["message"]) == ("elected", 2, "info", "said so")


def test_a_line_has_the_time_that_it_is_though_a_task_has_stopped_that_of_the_module(
        monkeypatch: pytest.MonkeyPatch) -> None:
    written, now = io.StringIO(), time.gmtime().tm_year
    handler = logs._Handler(written)
    handler.setFormatter(logs._Lines(logs._LINE))
    monkeypatch.setattr(time, "time", lambda: 0.0)
    monkeypatch.setattr(time, "time_ns", lambda: 0)

    handler.handle(logging.LogRecord("skuld_py.x", logging.INFO, "", 0, "said", (), None))

    line = re.fullmatch(r"(\d{4})-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}[+-]\d{4} INFO skuld_py\.x: said\n",
                        written.getvalue())
    assert line is not None and int(line[1]) >= now


@pytest.mark.parametrize("verb", ["node", "gateway", "worker"])
def test_each_verb_that_stays_has_the_options(verb: str) -> None:
    shown = CliRunner().invoke(main, [verb, "--help"]).output

    assert [option for option in ("--log-level", "--log-format", "--metrics") if option not in shown] == []


def test_an_address_for_metrics_that_is_none_is_refused_before_anything_starts(tmp_path: Path) -> None:
    answer = CliRunner().invoke(node, ["--cluster", "c", "--data", str(tmp_path), "--metrics", "h:x"])

    assert "h:x" in str(answer.exception)


def test_a_line_tells_its_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    handler = logging.NullHandler()
    logging.getLogger().addHandler(handler)
    try:
        level_of("--log-format", "text")
        assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\+0530 INFO ",
                        handler.format(logging.LogRecord("skuld_py.x", logging.INFO, "", 0, "said", None, None)))
    finally:
        logging.getLogger().removeHandler(handler)
        monkeypatch.undo()
        time.tzset()


def test_nobody_fails_for_a_line_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("sys.stderr", stream := io.StringIO())
        patch.setattr(logging.getLogger(), "handlers", [])
        logs.begin(is_verbose=True)
        logging.getLogger("skuld_py").warning("said")
        stream.close()
        logging.getLogger("skuld_py").warning("not said")
