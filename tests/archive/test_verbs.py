"""``skuld archive`` by itself: what it says, how it ends, and what it does when a run fails."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from archive.world import PARTITIONS, World, world
from skuld_py.archive.rows import COLUMNS
from skuld_py.cli.main import main
from skuld_py.errors import Refused


def over_entered(root: str, archive: str, *, replaces: bool) -> None:
    """Any archive is the cluster's."""
    assert root and archive


NO_ARCHIVE = Refused("no_archive", "partition: its leader offers nothing; start all nodes with --archive")


@pytest.fixture
def over(monkeypatch: pytest.MonkeyPatch) -> World:
    """What the command meets instead of nodes and Spark."""
    made = world(3, 1)

    @contextmanager
    def connected(*_: object) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(status=lambda: SimpleNamespace(partitions=range(PARTITIONS)),
                              greeting=lambda: SimpleNamespace(cluster="prod"), enter_archive=over_entered)

    @contextmanager
    def source_of(*_: object) -> Iterator[World]:
        yield made
    monkeypatch.setattr("skuld_py.cli.archive.connected", connected)
    monkeypatch.setattr("skuld_py.archive.source.source_of", source_of)
    monkeypatch.setattr("skuld_py.archive.arrow_site.ArrowStore", lambda *_: made)
    monkeypatch.setattr("skuld_py.archive.rows.Rows", lambda store, *_: store)
    monkeypatch.setattr("skuld_py.archive.archiver.PAUSE_S", 0.01)
    return made


def run(root: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["archive", str(root), *options], prog_name="skuld")


def test_what_was_done_is_said(over: World, tmp_path: Path) -> None:
    answer = run(tmp_path)

    assert answer.exit_code == 0
    first, second, last = answer.stdout.splitlines()
    pattern = "{} rows written, {} tasks deleted, [0-9,]+ a second; 0 that ended on the nodes"
    assert re.fullmatch(pattern.format(3, 3), first) and re.fullmatch(pattern.format(4, 4), second)
    assert last == "archived 4 rows in 2 batches, deleted 4 tasks"


def test_and_in_json(over: World, tmp_path: Path) -> None:
    over.awaited[2] = ("h:2",)

    said = [json.loads(line) for line in run(tmp_path, "--wait", "20ms", "--json").stdout.splitlines()]

    assert [each["event"] for each in said] == ["batch", "batch", "done"]
    assert said[-1] == {"event": "done", "rows": 4, "deleted": 4, "batches": 2,
                        "waiting": [{"partition": 2, "for": ["h:2"]}], "refused": []}


def test_on_a_terminal_a_bar_shows_how_much_is_left(over: World, tmp_path: Path,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    screen = StringIO()
    monkeypatch.setattr("skuld_py.cli.showing.console",
                        lambda: Console(file=screen, force_terminal=True, width=150, color_system=None))

    answer = run(tmp_path)

    drawn = screen.getvalue()
    assert "━" in drawn and "3 rows written, 3 tasks deleted" in drawn
    assert drawn.endswith("\x1b[1A\x1b[2K"), "nothing of it is left"
    assert answer.stdout.splitlines() == ["archived 4 rows in 2 batches, deleted 4 tasks"]


def test_for_whom_it_waits_is_said_and_that_not_all_is_archived(over: World, tmp_path: Path) -> None:
    over.awaited.update({0: ("h:2",), 1: ("h:2",), 2: ()})
    over.tasks.clear()

    answer = run(tmp_path, "--wait", "20ms")

    assert answer.exit_code == 1
    assert answer.stdout.splitlines() == ["archived 0 rows in no batches, deleted 0 tasks",
                                          "partitions 0, 1 may have more, and wait for h:2"]


def test_nodes_that_offer_nothing_are_told_what_they_lack(over: World, tmp_path: Path) -> None:
    over.failing["collectable"] = [NO_ARCHIVE]

    answer = run(tmp_path)

    assert answer.exit_code == 1
    assert "start all nodes with --archive" in answer.stderr and "[no_archive]" in answer.stderr


def test_ctrl_c_ends_it_without_a_word_too_many(over: World, tmp_path: Path) -> None:
    def interrupt(page: object) -> int:
        signal.raise_signal(signal.SIGINT)
        return 0
    over.archived = interrupt  # type: ignore[method-assign]

    answer = run(tmp_path)

    assert answer.exit_code == 130
    assert answer.stdout == "" and "offered again" in answer.stderr
    assert over.deleted == []


def test_an_endless_one_goes_on_after_a_run_that_failed_and_ends_with_ctrl_c(
        over: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 1:
            over.failing["collectable"] = [NO_ARCHIVE]
        if len(pauses) == 2:
            over.tasks = world(1).tasks
        if len(pauses) == 3:
            signal.raise_signal(signal.SIGTERM)
    monkeypatch.setattr("skuld_py.cli.archive.sleep", sleep)

    answer = run(tmp_path, "--every", "1h", "--rate", "full")

    assert (answer.exit_code, pauses) == (0, [3600.0] * 3)
    assert "this run failed: " in answer.stdout
    assert answer.stdout.splitlines()[-1] == "archived 1 row in 1 batch, deleted 1 task"


def test_an_endless_one_is_refused_when_another_archive_has_replaced_its_own(
        over: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would go on beside the other one, and the history would be scattered over two."""
    pauses: list[float] = []

    def refused(root: str, archive: str, *, replaces: bool) -> None:
        assert not replaces
        raise Refused("other_archive", "root: this cluster's ended tasks go to the archive at /srv/b")

    @contextmanager
    def connected(*_: object) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(enter_archive=refused)

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 1:
            over.tasks = world(2).tasks
            monkeypatch.setattr("skuld_py.cli.archive.connected", connected)
        else:
            signal.raise_signal(signal.SIGTERM)
    monkeypatch.setattr("skuld_py.cli.archive.sleep", sleep)

    answer = run(tmp_path, "--every", "1h", "--replace", "--rate", "full")

    assert "this run failed: root: this cluster's ended tasks go to" in answer.stdout.splitlines()[-1]
    assert len(over.deleted) == 4


def test_what_is_archived_and_cannot_be_compacted_is_archived(over: World, tmp_path: Path,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise Refused("not_written", "root: could not be compacted: No space left on device; nothing is lost")
    monkeypatch.setattr("skuld_py.archive.arrow_site.Site.compact", full)

    answer = run(tmp_path)

    assert answer.exit_code == 0 and len(over.deleted) == 4
    assert answer.stdout.splitlines()[-1].startswith("this is archived, and not compacted: root: could not be")


def test_the_first_run_of_an_endless_one_may_fail(over: World, tmp_path: Path) -> None:
    over.failing["collectable"] = [NO_ARCHIVE]

    assert run(tmp_path, "--every", "1h").exit_code == 1


def test_help_names_every_column() -> None:
    said = CliRunner().invoke(main, ["history", "--help"], prog_name="skuld").stdout

    assert {*COLUMNS, "batch"} <= {*re.findall(r"\w+", said)}
