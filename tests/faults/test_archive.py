"""What the campaign of the archive takes for a violation; the promises themselves are in tests/system."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from archive.test_arrow import OLD, write_old
from archive.test_layout import TASKS, ids_of, rows_of
from faults.archive import judgement, play
from faults.archive.judgement import judged
from skuld_py.archive.arrow_site import Site


@pytest.mark.parametrize(("rows", "left", "found"), [
    ("ab", "c", []), ("abc", "abc", []), ("ab", "", ["1 lost"]), ("aab", "c", ["1 twice in the archive"]),
    ("abc", "d", ["1 that nobody ended"]), ("abcde", "", ["2 that nobody ended"]),
    ("", "", ["3 lost"]), ("aa", "e", ["2 lost", "1 that nobody ended", "1 twice in the archive"]),
])
def test_what_ended_is_what_is_archived_and_what_the_nodes_have(rows: str, left: str, found: list[str]) -> None:
    assert judged("abc", rows, left) == found


def test_where_spark_writes_a_task_may_stand_in_two_batches(tmp_path: Path) -> None:
    for batch in ("1", "2"):
        write_old(tmp_path, batch)

    assert judgement.tasks_of_batches(tmp_path) == ids_of(OLD)


def test_rows_are_those_of_live_files_though_one_goes_while_they_are_read(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Site.held(tmp_path) as site:
        site.store.begin()
        site.store.write("b", rows_of(TASKS[:5]))
    read, fails = judgement._ids, [True, False]

    def once(paths: list[Path]) -> list[str]:
        if fails.pop(0):
            raise FileNotFoundError(paths[0])
        return read(paths)
    monkeypatch.setattr(judgement, "_ids", once)

    assert sorted(judgement.rows_of(tmp_path)) == ids_of(TASKS[:5]) and not fails


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """One of which two tasks ended, all is archived, and nothing is left."""
    monkeypatch.setattr(play.time, "sleep", lambda seconds: None)
    (tmp_path / "_writing").mkdir()
    return SimpleNamespace(load=lambda: None, once=lambda: (0, {}), check=lambda: ([], "seen"), told={"a", "b"},
                           client=SimpleNamespace(count=lambda states: 0), rows=lambda: ["a", "b"],
                           counted=lambda: 2, disk=SimpleNamespace(kept=tmp_path))


def test_a_run_by_itself_leaves_nothing_that_had_ended(stage: Any) -> None:
    assert play.ended(stage, "once").violations == ()


@pytest.mark.parametrize(("name", "value", "words"), [
    ("once", lambda: (1, {}), "it ended with 1"), ("once", lambda: (0, {"waiting": [3]}), "[3]"),
    ("once", lambda: (0, {"refused": [4]}), "[4]"), ("rows", lambda: ["a"], "1 lost"),
    ("counted", lambda: 3, "history counts 3"),
    ("client", SimpleNamespace(count=lambda states: 1), "left 1"), ("check", lambda: (["bad"], "seen"), "bad")])
def test_what_a_run_by_itself_leaves_is_a_violation(stage: Any, name: str, value: object, words: str) -> None:
    setattr(stage, name, value)

    found, = play.ended(stage, "once").violations
    assert words in found


def test_drafts_that_are_left_are_a_violation(stage: Any) -> None:
    (stage.disk.kept / "_writing" / "w").mkdir()

    assert play.ended(stage, "once").violations == ("it left drafts",)


def test_as_many_are_killed_as_were_asked_for_and_each_fault_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(play, "suffered", lambda _, fault: fault[0])
    for name in ("ended", "said"):
        monkeypatch.setattr(play, name, lambda *_: "")
    nothing: Any = SimpleNamespace(chance=random.Random(1), begin_by_spark=list, warm_up=list)
    play.play(nothing, 20, told.append)

    assert sum(what.startswith("kill -9") for what in told) == 20
    assert {what for what, _ in (*play.KILLS, *play.JVM_KILLS, *play.FAULTS)} <= {*told}
