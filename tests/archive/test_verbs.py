"""``skuld archive`` by itself: what it says, how it ends, and what it does when a run fails."""

from __future__ import annotations

import json
import re
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from archive.ended import NOON_MS, plain
from archive.test_causes import cancelled, died
from archive.world import PARTITIONS, World, world
from skuld_py.archive.arrow_files import Unread
from skuld_py.archive.arrow_site import Site
from skuld_py.archive.compaction import Compacted
from skuld_py.archive.manifest import Manifest
from skuld_py.archive.rows import COLUMNS, Row, day_of, row_of
from skuld_py.cli.main import main
from skuld_py.client.archiving import other_archive
from skuld_py.errors import Refused, SkuldError, Uncertain
from skuld_py.model.archive_root import ArchiveRoot
from skuld_py.model.task import Task

NO_ARCHIVE = Refused("no_archive", "partition: its leader offers nothing; start all nodes with --archive")


@pytest.fixture
def known() -> list[ArchiveRoot]:
    """Where the cluster has its archive, if it has one."""
    return []


@pytest.fixture
def entered() -> list[bool]:
    """Of each time that an archive was entered whether its place was to be noted."""
    return []


@pytest.fixture
def replaced() -> list[bool]:
    """Of each time whether it was to take another's place."""
    return []


@pytest.fixture
def over(monkeypatch: pytest.MonkeyPatch, known: list[ArchiveRoot], entered: list[bool],
         replaced: list[bool]) -> World:
    """What the command meets instead of nodes and Spark."""
    made = world(3, 1)

    def enter_archive(root: str, archive: str, *, replaces: bool = False, moves: bool = True) -> None:
        assert root and archive
        entered.append(moves)
        replaced.append(replaces)
        if known and not known[0].is_of(ArchiveRoot(root, archive)) and not replaces:
            raise other_archive(known[0].root, root)

    def offered(partition: int, *, leaves: bool) -> None:
        assert (partition, leaves) == (0, True)
        if made.failing.get("offered"):
            raise made.failing["offered"].pop()

    @contextmanager
    def connected(*_: object) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(status=lambda: SimpleNamespace(partitions=range(PARTITIONS)),
                              greeting=lambda: SimpleNamespace(cluster="prod"), enter_archive=enter_archive,
                              offered=offered, archive_root=lambda: known[0] if known else None)

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


def test_when_a_task_died_of_another_the_nodes_are_asked_where_that_was_not_noted(
        over: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = cancelled(1, NOON_MS + 700)

    class Tasks(dict[int, list[Task]]):
        def __call__(self, ids: Sequence[bytes]) -> list[Task]:
            assert ids == [bytes(first.id)]
            return [first]
    over.tasks = Tasks(over.tasks)
    made: list[tuple[str, Callable[[list[Row]], list[Row]]]] = []

    def rows(store: World, *of: Any) -> World:
        made.append(of)
        return store
    monkeypatch.setattr("skuld_py.archive.rows.Rows", rows)
    assert run(tmp_path).exit_code == 0

    (cluster, dated), = made
    assert cluster == "prod"
    assert dated([row_of(died(4, first))])[0][[*COLUMNS].index("ended_ms")] == NOON_MS + 700


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


def test_nodes_that_offer_nothing_are_told_what_they_lack(over: World, entered: list[bool], tmp_path: Path
                                                          ) -> None:
    """And nothing has happened."""
    over.failing["offered"] = [NO_ARCHIVE]

    answer = run(tmp_path / "new", "--replace")

    assert answer.exit_code == 1
    assert "start all nodes with --archive" in answer.stderr and "[no_archive]" in answer.stderr
    assert not (tmp_path / "new").exists() and entered == []


@pytest.mark.parametrize("error", [Refused("no_leader", "one is elected"), Uncertain("timeout", "none answers")])
def test_nodes_that_say_nothing_yet_are_asked_again_by_the_run(over: World, tmp_path: Path, error: SkuldError
                                                               ) -> None:
    over.failing["offered"] = [error]

    assert run(tmp_path).exit_code == 0 and len(over.deleted) == 4


@pytest.mark.parametrize("is_written_here", [True, False])
def test_where_the_disk_of_the_archive_is_not_mounted_nothing_is_made(
        over: World, known: list[ArchiveRoot], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
        is_written_here: bool) -> None:
    """Nor by Spark, where pyarrow is not installed any more."""
    monkeypatch.setattr("skuld_py.cli.archive._is_written_here", lambda place: is_written_here)
    known.append(ArchiveRoot(str(tmp_path), "name"))

    answer = run(tmp_path)

    assert answer.exit_code == 1 and "not mounted, mount it" in answer.stderr
    assert list(tmp_path.iterdir()) == [] and over.deleted == []


def test_a_copy_of_the_archive_is_none_and_another_path_to_it_is_it(
        over: World, known: list[ArchiveRoot], replaced: list[bool], tmp_path: Path) -> None:
    root, copy, path, moved = (tmp_path / name for name in ("root", "copy", "path", "moved"))
    with Site.held(root) as site:
        known.append(ArchiveRoot(str(root), site.archive))
    shutil.copytree(root, copy)
    path.symlink_to(root)

    answer = run(copy)

    assert answer.exit_code == 1
    assert f"{copy} is a copy of this cluster's archive, which is at {root};" in answer.stderr
    assert over.deleted == [] and run(path).exit_code == 0
    assert run(path, "--replace").exit_code == 0 and not any(replaced), "nobody's place was taken"
    assert run(copy, "--replace").exit_code == 0 and any(replaced)
    assert Manifest(copy).name() != Manifest(root).name() == known[0].archive
    root.rename(moved)
    assert run(moved).exit_code == 0


def test_where_the_archive_may_not_be_looked_into_nobody_takes_another_for_a_copy(
        over: World, known: list[ArchiveRoot], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Site.held(tmp_path / "root") as site:
        known.append(ArchiveRoot("/closed", site.archive))
    exists = Path.exists

    def closed(path: Path) -> bool:
        if path.is_relative_to("/closed"):
            raise PermissionError(13, "Permission denied")
        return exists(path)
    monkeypatch.setattr(Path, "exists", closed)

    assert run(tmp_path / "root").exit_code == 0


def test_a_place_that_is_not_the_clusters_is_refused_and_nothing_is_made_there(
        over: World, known: list[ArchiveRoot], tmp_path: Path) -> None:
    known.append(ArchiveRoot("/srv/a"))

    answer = run(tmp_path / "mistyped")

    assert answer.exit_code == 1 and "archive at /srv/a" in answer.stderr and "[other_archive]" in answer.stderr
    assert not (tmp_path / "mistyped").exists() and over.deleted == []
    assert run(tmp_path / "meant", "--replace").exit_code == 0


def test_who_gives_the_cluster_another_archive_is_told_where_the_former_is(
        over: World, known: list[ArchiveRoot], tmp_path: Path) -> None:
    """Where it has that one already, and where it had none, nothing has changed."""
    known.append(ArchiveRoot("/srv/a"))
    meant = tmp_path / "meant"

    words, *_ = run(meant, "--replace").stdout.splitlines()
    event = json.loads(run(meant, "--replace", "--json").stdout.splitlines()[0])
    with Site.held(meant) as site:
        known[:] = [ArchiveRoot(str(meant), site.archive)]

    assert words == (f"this cluster's archive is {meant} from now on; what /srv/a has stays there: skuld"
                     " history /srv/a")
    assert event == {"event": "replaced", "root": str(meant), "former": "/srv/a"}
    assert "from now on" not in run(meant, "--replace").stdout
    known.clear()
    assert "from now on" not in run(meant, "--replace").stdout


def test_who_goes_on_in_a_copy_is_told_and_who_moved_the_archive_is_not(
        over: World, known: list[ArchiveRoot], tmp_path: Path) -> None:
    with Site.held(tmp_path / "copy") as site:
        known.append(ArchiveRoot("/srv/a", site.archive))

    assert "from now on" not in run(tmp_path / "copy").stdout
    assert f"{tmp_path / 'copy'} from now on; what /srv/a has" in run(tmp_path / "copy", "--replace").stdout


def test_a_table_that_another_program_has_changed_does_not_become_the_clusters(
        over: World, known: list[ArchiveRoot], entered: list[bool], tmp_path: Path) -> None:
    """Nothing would be archived any more, there or where it was."""
    known.append(ArchiveRoot("/srv/a"))
    with Site.held(tmp_path, begins_delta=True) as site:
        assert site.archive
        site.delta.follow()
    theirs = tmp_path / "_delta_log" / f"{len(list(tmp_path.glob('_delta_log/*.json'))):020}.json"
    theirs.write_text('{"commitInfo": {"engineInfo": "another"}}\n')

    answer = run(tmp_path, "--replace")

    assert answer.exit_code == 1 and "[foreign_version]" in answer.stderr and entered == []
    theirs.unlink()
    assert run(tmp_path, "--replace").exit_code == 0 and entered == [True]


def test_where_the_cluster_was_given_another_archive_meanwhile_nothing_more_is_moved(
        over: World, known: list[ArchiveRoot], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep(seconds: float) -> None:
        if known:
            signal.raise_signal(signal.SIGTERM)
        known.append(ArchiveRoot("/srv/b"))
        over.tasks = world(1).tasks
    monkeypatch.setattr("skuld_py.cli.archive.sleep", sleep)

    answer = run(tmp_path, "--every", "1h", "--rate", "full")

    assert "this run failed: root: this cluster's ended tasks go to the archive at /srv/b" in answer.stdout
    assert len(over.deleted) == 4 and len(over.rows) == 4


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


def test_what_is_archived_and_cannot_be_compacted_is_archived(over: World, tmp_path: Path,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise Refused("not_written", "root: could not be compacted: No space left on device; nothing is lost")
    monkeypatch.setattr("skuld_py.archive.arrow_site.Site.compact", full)

    answer = run(tmp_path)

    assert answer.exit_code == 0 and len(over.deleted) == 4
    assert answer.stdout.splitlines()[-1].startswith("this is archived, and not compacted: root: could not be")
def test_what_is_archived_beside_a_file_that_cannot_be_read_is_archived(over: World, tmp_path: Path,
                                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    unread = Unread("damaged_file", tmp_path / "x.parquet", "is damaged")
    monkeypatch.setattr("skuld_py.archive.arrow_site.Site.compact", lambda *_, **__: Compacted(unread=[unread]))

    answer = run(tmp_path)

    assert answer.exit_code == 0 and len(over.deleted) == 4
    assert answer.stdout.splitlines()[-1].startswith(f"this is archived, and not compacted: {unread}")


@pytest.mark.parametrize(("options", "count"), [((), 1), (("--json",), 4)])
def test_of_runs_that_found_nothing_to_do_programs_are_told_and_people_once(
        over: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...],
        count: int) -> None:
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 4:
            signal.raise_signal(signal.SIGTERM)
    monkeypatch.setattr("skuld_py.cli.archive.sleep", sleep)
    over.tasks.clear()

    assert len(run(tmp_path, "--every", "1h", "--rate", "full", *options).stdout.splitlines()) == count


def test_later_runs_do_not_note_the_place_of_the_archive_anew(over: World, entered: list[bool], tmp_path: Path,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep(every_s: float) -> None:
        if len(entered) == 3:
            raise KeyboardInterrupt
    monkeypatch.setattr("skuld_py.cli.archive.sleep", sleep)

    run(tmp_path, "--every", "1h", "--rate", "full")

    assert entered == [True, False, False]


def test_the_first_run_of_an_endless_one_may_fail(over: World, tmp_path: Path) -> None:
    over.failing["collectable"] = [NO_ARCHIVE]

    assert run(tmp_path, "--every", "1h").exit_code == 1


# -- compaction, and what is asked ----------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """An archive with small files of which the nodes have nothing any more, and one of which they may."""
    tasks = [plain(number) for number in range(6)]
    with Site.held(tmp_path) as site:
        site.store.begin()
        for number, task in enumerate(tasks):
            site.store.write(f"b{number}", [row_of(task, cluster="prod", digest=5)])
        site.store.settled(b"".join(bytes(task.id) for task in tasks[1:]))
        site.store.end(is_whole=False)
    return tmp_path


def compact(root: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["archive", "compact", str(root), *options], prog_name="skuld")


def test_a_compaction_says_what_it_leaves_alone_and_why(small: Path) -> None:
    words = compact(small).stdout
    again = json.loads(compact(small, "--json").stdout)

    assert words.startswith("compacted 5 files of 5 rows into 1, unlinked 0 files; left 1 file alone, of which the"
                            " nodes may still have tasks")
    assert (again["files"], again["left"]) == (0, 1)


def test_on_a_terminal_a_compaction_shows_a_bar_of_which_nothing_is_left(small: Path,
                                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    screen = StringIO()
    monkeypatch.setattr("skuld_py.cli.showing.console",
                        lambda: Console(file=screen, force_terminal=True, width=150, color_system=None))

    assert compact(small).exit_code == 0

    drawn = screen.getvalue()
    assert "━" in drawn and "compacting what of queue q ended on" in drawn
    assert drawn.endswith("\x1b[1A\x1b[2K"), "nothing of it is left"


def test_a_compaction_that_is_interrupted_says_so_and_loses_nothing(small: Path,
                                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("skuld_py.archive.drafts.Drafts.move", lambda *_: signal.raise_signal(signal.SIGINT))
        answer = compact(small)

    assert (answer.exit_code, answer.stdout) == (130, "") and "interrupted; nothing is lost" in answer.stderr
    assert list((small / "_writing").iterdir()) == []
    assert compact(small).stdout.startswith("compacted 5 files of 5 rows into 1")


def test_a_day_that_is_none_is_answered_with_what_one_is(small: Path) -> None:
    def files(day: str) -> Result:
        return CliRunner().invoke(main, ["history", "files", str(small), "--day", day])

    assert files("2026-02-30").exit_code == files("yesterday").exit_code == 2
    assert "'yesterday' is no day; write 2026-12-01." in files("yesterday").stderr
    assert len(files(day_of(NOON_MS)).stdout.splitlines()) == 6


@pytest.mark.parametrize("typed", ["history compact", "archive files", "archive restore"])
@pytest.mark.parametrize("more", [(), ("--none",)])
def test_a_verb_of_the_other_command_is_answered_with_where_it_is(small: Path, typed: str,
                                                                           more: tuple[str, ...]) -> None:
    command, verb = typed.split()
    answer = CliRunner().invoke(main, [command, verb, str(small), *more])

    other = "history" if command == "archive" else "archive"
    assert answer.exit_code == 2 and f"Did you mean 'skuld {other} {verb}'?" in answer.stderr


def test_who_asks_for_what_is_not_there_is_told(small: Path) -> None:
    """Programs read nothing; and a task that only other options leave out is not denied."""
    def ask(*options: str) -> Result:
        return CliRunner().invoke(main, ["history", str(small), *options])
    here, none = ("--id", str(plain(1).id)), ("--queue", "none")

    assert [ask(*none, *more).stderr for more in ((), ("--json",), ("--count",))] == ["no such tasks\n", "", ""]
    assert ask(*none).stdout == "" and ask("--queue", "q").stderr == ""
    assert "is in this archive as the other options want it;" in ask(*here, *none).stderr
    assert "is in this archive;" in ask("--id", str(plain(9).id)).stderr


@pytest.mark.parametrize(("when", "words"), [
    ("2026-11-27", "is a day; write the hour and its zone, too, as in 2026-12-01T08:00+01:00"),
    ("2026-11-27+01:00", "is a day; write"), ("2026-11-27T08:00", "has no time zone; add it, as in"),
    ("2026-11-27T08", "has no time zone; add it, as in"), ("2026-11-27Z", "is no time; write 10m")])
def test_a_time_that_lacks_something_is_answered_with_what(small: Path, when: str, words: str) -> None:
    answer = CliRunner().invoke(main, ["history", str(small), "--since", when])

    assert answer.exit_code == 2 and f"{when!r} {words}" in answer.stderr


def test_the_usage_of_an_inner_verb_is_what_one_types() -> None:
    for verb in ("archive compact", "history files", "history restore"):
        assert f"Usage: skuld {verb} [OPTIONS] ROOT\n" in CliRunner().invoke(
            main, [*verb.split(), "--help"], prog_name="skuld").stdout


def test_help_names_every_column() -> None:
    shown = CliRunner().invoke(main, ["history", "--help"]).stdout
    columns = re.findall(r"\w+", shown.partition("for --sql:")[2].partition("Examples")[0])

    assert [name for name in [*COLUMNS, "batch"] if name not in columns] == []
