"""Manifest, drafts and compaction: each task is in one live file, whoever writes, dies or sleeps meanwhile."""

from __future__ import annotations

import importlib
import itertools
import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, date, datetime
from pathlib import Path

import attrs
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from archive.ended import DAY_MS, NAMES, NOON_MS, plain
from archive.test_arrow import write_old
from skuld_py.archive import compaction, manifest
from skuld_py.archive.arrow_history import ArrowHistory
from skuld_py.archive.arrow_site import Site
from skuld_py.archive.drafts import NOTE, Drafts
from skuld_py.archive.filters import Filters
from skuld_py.archive.live import live
from skuld_py.archive.manifest import Change, File, Manifest
from skuld_py.archive.rows import Row, day_of, ended_ms, row_of, task_of
from skuld_py.archive.scratch import scratch_directory
from skuld_py.cli.main import main
from skuld_py.embedded import process
from skuld_py.errors import Refused
from skuld_py.model import messages as m
from skuld_py.model.ids import to_text
from skuld_py.model.task import Task
from skuld_py.testing import MemoryClient
from skuld_py.verbs.attention import UNARCHIVED_MS, Facts, concerns

TASKS = [plain(number, NAMES[number % 3], at_ms=NOON_MS + number * DAY_MS // 8) for number in range(24)]


def rows_of(tasks: list[Task], digest: int = 5) -> list[Row]:
    return [row_of(task, cluster="prod", digest=digest) for task in tasks]


def kept(root: Path) -> list[str]:
    """The ids in the live files, as any reader of these sees them."""
    return sorted(itertools.chain.from_iterable(
        pq.read_table(path, columns=["id"], partitioning=None).column("id").to_pylist()
        for path in live(root).paths))


def ids_of(tasks: list[Task]) -> list[str]:
    return sorted(to_text(task.id) for task in tasks)


def blob(tasks: list[Task]) -> bytes:
    return b"".join(bytes(task.id) for task in tasks)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with Site.held(tmp_path) as made:
        made.store.begin()
        yield made


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Site]:
    with Site.held(tmp_path) as made:
        made.store.begin()
        yield made


def file(number: int, **options: object) -> File:
    return attrs.evolve(File(f"files/d/q/{number}.parquet", "q", "d", 1, 1, "a", "b", 0, 0, 0, 0), **options)


# -- the manifest ---------------------------------------------------------------------------------------------


def test_of_two_writers_of_a_change_one_is_refused_and_sees_the_other(tmp_path: Path) -> None:
    one, two = Manifest(tmp_path), Manifest(tmp_path)

    assert one.put(Change(1, (file(1),)))
    assert not two.put(Change(1, (file(2),)))

    assert set(two.refresh().files) == {"files/d/q/1.parquet"}
    assert two.put(Change(1, (file(2),)))
    assert len(one.refresh().files) == 2 and one.state.archive == two.state.archive != ""


def test_snapshots_say_the_same_and_what_they_make_needless_is_wiped(tmp_path: Path) -> None:
    made = Manifest(tmp_path)
    for number in range(manifest.SNAPSHOT_EVERY * 3 + 5):
        removed = (f"files/d/q/{number - 3}.parquet",) if number > 3 else ()
        assert made.put(Change(number, (file(number),), removed, (f"files/d/q/{number - 1}.parquet",)))

    assert Manifest(tmp_path).refresh() == made.state
    assert len(os.listdir(tmp_path / manifest.DIRECTORY)) < 2 * manifest.SNAPSHOT_EVERY + 5


def test_who_slept_puts_no_number_that_was_there_before(tmp_path: Path) -> None:
    sleeper, made = Manifest(tmp_path), Manifest(tmp_path)
    assert sleeper.put(Change(1, (file(0),)))
    made.refresh()
    for number in range(1, manifest.SNAPSHOT_EVERY * 3):
        assert made.put(Change(1, (file(number),)))

    assert not sleeper.put(Change(1, (file(9_999),)))

    assert "files/d/q/9999.parquet" not in Manifest(tmp_path).refresh().files
    assert sleeper.refresh() == made.state


@pytest.mark.parametrize(("text", "words"), [
    ("{", "damaged"), ("[]", "damaged"), ('{"format": 1}', "damaged"), ('{"format": 2}', "has format 2"),
    (json.dumps({"format": 1, "at_ms": 1, "add": [{**attrs.asdict(file(1)), "path": "../x"}], "remove": [],
                 "close": [], "forget": []}), "damaged"),
    (json.dumps({"format": 1, "at_ms": 1, "add": [{**attrs.asdict(file(1)), "rows": "1"}], "remove": [],
                 "close": [], "forget": []}), "damaged")])
def test_what_is_no_change_is_named(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / manifest.DIRECTORY).mkdir()
    (tmp_path / manifest.DIRECTORY / f"{1:020}.json").write_text(text)

    with pytest.raises(Refused, match=words):
        Manifest(tmp_path).refresh()


# -- writers --------------------------------------------------------------------------------------------------


def test_what_a_writer_that_died_left_is_not_written_again_until_it_is_deleted(tmp_path: Path) -> None:
    for _ in range(2):
        with Site.held(tmp_path) as made:
            made.store.begin()
            made.store.write("b", rows_of(TASKS))
            assert kept(tmp_path) == ids_of(TASKS)
    assert made.manifest.state.version == 1

    with Site.held(tmp_path) as made:
        made.store.begin()
        made.store.settled(blob(TASKS))
        made.store.end(is_whole=False)
    assert not any(each.is_open for each in made.manifest.state.files.values())


def test_two_that_write_the_same_write_it_once(tmp_path: Path, site: Site, other: Site) -> None:
    site.store.write("a", rows_of(TASKS[:16]))
    other.store.write("b", rows_of(TASKS[8:]))
    site.store.write("c", rows_of(TASKS))

    assert kept(tmp_path) == ids_of(TASKS)


def test_what_another_wrote_and_had_deleted_is_not_written_by_who_read_it_before(
        tmp_path: Path, site: Site, other: Site) -> None:
    site.store.write("a", rows_of(TASKS[:1]))
    other.store.write("b", rows_of(TASKS))
    other.store.settled(blob(TASKS))
    other.store.end(is_whole=False)
    with_grace = other.compact(grace_ms=0)

    site.store.write("c", rows_of(TASKS))

    assert with_grace.files and kept(tmp_path) == ids_of(TASKS)


def test_a_task_that_changed_since_goes_out_of_its_file(tmp_path: Path, site: Site) -> None:
    site.store.write("a", rows_of(TASKS))
    site.store.write("b", rows_of(TASKS[:2], digest=6))

    assert kept(tmp_path) == ids_of(TASKS)
    digests = {row["id"]: row["digest"] for row in ArrowHistory(live(tmp_path), Filters()).rows()}
    assert [digests[to_text(task.id)] for task in TASKS[:3]] == [f"{digest:016x}" for digest in (6, 6, 5)]


def test_a_writer_that_dies_before_its_change_leaves_nothing_for_long(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: object) -> bool:
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt), Site.held(tmp_path) as made:
        made.store.begin()
        monkeypatch.setattr(Manifest, "put", die)
        made.store.write("a", rows_of(TASKS))
    assert list((tmp_path / "files").rglob("*.parquet")) and list(tmp_path.rglob(NOTE))

    monkeypatch.undo()
    with Site.held(tmp_path) as made:
        assert not list((tmp_path / "files").rglob("*.parquet"))
        made.store.begin()
        made.store.write("b", rows_of(TASKS))
    assert kept(tmp_path) == ids_of(TASKS)
    assert not list((tmp_path / "_writing").iterdir())


def test_a_writer_waits_while_a_sweeper_holds_its_new_directory(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, pauses = Drafts(tmp_path, "w"), list[float]()
    with ExitStack() as sweeping:
        sweeping.enter_context(process.held(made.own))

        def sleep(pause_s: float) -> None:
            pauses.append(pause_s)
            if len(pauses) == 20:
                sweeping.close()
        monkeypatch.setattr("skuld_py.archive.drafts.time.sleep", sleep)
        with made.held():
            assert (made.own / "lock").exists()
    assert sum(pauses) >= 1

    with process.held(made.own), pytest.raises(Refused) as raised, made.held():
        pass
    assert raised.value.code == "directory_in_use" and len(pauses) < 200


def test_a_writer_waits_where_its_directory_goes_while_it_is_looked_at(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, is_dir, seen = Drafts(tmp_path, "w"), Path.is_dir, list[Path]()
    monkeypatch.setattr("skuld_py.archive.drafts.PAUSE_S", 0)
    made.own.mkdir(parents=True)

    def swept(path: Path, **options: bool) -> bool:
        if path == made.own and not seen:
            seen.append(path)
            path.rmdir()
        return is_dir(path, **options)
    monkeypatch.setattr(Path, "is_dir", swept)

    with made.held():
        assert (made.own / "lock").exists() and seen


def test_drafts_are_no_parquet_for_who_globs(tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: object) -> None:
        raise KeyboardInterrupt
    monkeypatch.setattr("skuld_py.archive.drafts.Drafts.move", die)
    with pytest.raises(KeyboardInterrupt):
        site.store.write("a", rows_of(TASKS))

    assert list(tmp_path.rglob("*.draft")) and not list(tmp_path.rglob("*.parquet"))


def test_a_mount_that_vanished_is_said_and_nothing_is_made_in_its_place(tmp_path: Path) -> None:
    root = tmp_path / "mount"
    with Site.held(root) as made:
        made.store.begin()
        made.store.write("a", rows_of(TASKS))
        root.rename(tmp_path / "away")
        root.mkdir()
        with pytest.raises(Refused, match="No such file or directory; nothing of it is deleted"):
            made.store.write("b", rows_of(NEW_ONES))
        made.store.settled(blob(TASKS))
        with pytest.raises(Refused, match="No such file"):
            made.store.end(is_whole=True)
    assert list(root.iterdir()) == []


def test_a_manifest_that_may_not_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")
    (tmp_path / manifest.DIRECTORY).mkdir()
    monkeypatch.setattr(os, "listdir", denied)

    with pytest.raises(Refused, match="cannot be read: Permission denied; mend"):
        Manifest(tmp_path).refresh()


# -- compaction -----------------------------------------------------------------------------------------------


def filled(site: Site) -> None:
    for number in range(0, len(TASKS), 3):
        site.store.write(f"b{number}", rows_of(TASKS[number : number + 3]))
    site.store.settled(blob(TASKS))
    site.store.end(is_whole=False)


def test_files_of_a_day_and_a_queue_become_one_and_old_ones_go_after_their_grace(tmp_path: Path, site: Site,
                                                                                 monkeypatch: pytest.MonkeyPatch
                                                                                 ) -> None:
    monkeypatch.setattr(compaction, "RANGE_BYTES", 2_000)
    filled(site)
    before = live(tmp_path)

    done = site.compact()

    groups = Counter((each.day, each.queue) for each in before.files)
    assert kept(tmp_path) == ids_of(TASKS)
    assert done.files == sum(count for count in groups.values() if count > 1) > 0
    assert len(live(tmp_path).files) == len(groups)
    assert all(path.exists() for path in before.paths)
    for each in live(tmp_path).files:
        found = pq.read_table(tmp_path / each.path, partitioning=None).column("id").to_pylist()
        assert (found, found[0], found[-1], len(found)) == (sorted(found), each.first_id, each.last_id, each.rows)
    assert site.compact(grace_ms=0).unlinked == done.files
    assert sum(path.exists() for path in before.paths) == len(groups) - done.into
    assert not site.manifest.state.removed


def test_files_that_nodes_may_still_have_tasks_of_are_left_alone(tmp_path: Path, site: Site) -> None:
    site.store.write("a", rows_of(TASKS[::2]))
    site.store.write("b", rows_of(TASKS[1::2]))

    assert site.compact().files == 0

    site.store.settled(blob(TASKS))
    site.store.end(is_whole=False)
    assert site.compact().files > 0


def test_of_two_compactions_one_stands(tmp_path: Path, site: Site, other: Site,
                                       monkeypatch: pytest.MonkeyPatch) -> None:
    filled(site)
    move = type(site.drafts).move
    ran = []

    def first_the_other(drafts: object, moves: object) -> None:
        if not ran:
            ran.append(other.manifest)
            other.compact()
        move(drafts, moves)  # type: ignore[arg-type]
    monkeypatch.setattr("skuld_py.archive.drafts.Drafts.move", first_the_other)
    site.compact()

    assert kept(tmp_path) == ids_of(TASKS)


def test_an_earlier_layout_is_taken_over_each_task_once(tmp_path: Path, site: Site) -> None:
    from archive.test_arrow import OLD

    write_old(tmp_path, "20251101T000000.000Z-00000000")
    write_old(tmp_path, "20251102T000000.000Z-00000000")
    site.store.write("b", rows_of([OLD[0], *NEW_ONES]))
    refused = CliRunner().invoke(main, ["history", "files", str(tmp_path)])
    assert refused.exit_code == 1 and "'skuld archive compact" in refused.stderr

    site.compact(grace_ms=0)

    assert kept(tmp_path) == ids_of([*OLD, *NEW_ONES]) and not live(tmp_path).old
    assert not list(tmp_path.glob("batch=*"))
    found = {row["id"]: row for row in ArrowHistory(live(tmp_path), Filters()).rows()}
    old = found[to_text(OLD[1].id)]
    assert (old["schema_version"], old["batch"][:8], old["queue"]) == (None, "20251102", OLD[1].queue)
    assert old["enqueued"] is not None and old["ended"] is not None
    site.store.write("c", rows_of([OLD[1]]))  # what an earlier archiver wrote last is offered again
    assert kept(tmp_path) == ids_of([*OLD, *NEW_ONES])


NEW_ONES = [plain(200 + number, at_ms=NOON_MS) for number in range(3)]


def test_days_that_are_too_old_go_as_a_whole(tmp_path: Path, site: Site) -> None:
    filled(site)
    first = day_of(NOON_MS + DAY_MS)
    newest = max(day_of(ended_ms(task) or 0) for task in TASKS)
    keep_days = (date.fromisoformat(newest) - date.fromisoformat(first)).days

    site.compact(keep_days=keep_days)

    assert kept(tmp_path) == ids_of([task for task in TASKS if day_of(ended_ms(task) or 0) >= first])
    assert 0 < len(kept(tmp_path)) < len(TASKS)
    past = [tmp_path / path for path in site.manifest.state.removed if path.split("/")[1] < first]
    assert past and all(path.exists() for path in past), "for those who read them, until a later compaction"
    site.compact(grace_ms=-1)
    assert not any(path.exists() for path in past)


# -- reading --------------------------------------------------------------------------------------------------


@pytest.fixture
def filled_root(tmp_path: Path) -> Path:
    mixed = random.Random(3).sample(TASKS, len(TASKS))
    with Site.held(tmp_path) as site, ExitStack():
        site.store.begin()
        for number in range(0, len(mixed), 5):
            site.store.write(f"b{number}", rows_of(mixed[number : number + 5]))
    return tmp_path


def test_history_answers_without_spark(filled_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_spark(*_: object) -> None:
        raise AssertionError
    monkeypatch.setattr("skuld_py.archive.spark_store.spark", no_spark)
    later = datetime.fromtimestamp((NOON_MS + DAY_MS) / 1000, UTC)

    def ask(*options: str) -> list[dict[str, object]]:
        ran = CliRunner().invoke(main, ["history", str(filled_root), "--json", *options], catch_exceptions=False)
        assert ran.exit_code == 0, ran.output
        return [json.loads(line) for line in ran.stdout.splitlines()]
    found = [*ArrowHistory(live(filled_root), Filters()).rows()]
    assert [task_of(row) for row in found] == sorted(TASKS, key=lambda task: bytes(task.id))
    early = [task for task in TASKS if task.enqueued_ms < later.timestamp() * 1000]
    of_first = [each for each in TASKS if each.queue == TASKS[0].queue]
    for options, wanted in ((("--queue", TASKS[0].queue), of_first),
                            (("--id", to_text(TASKS[4].id)), [TASKS[4]]), (("--state", "dead"), []),
                            (("--until", later.isoformat()), early), (("--limit", "3"), TASKS[:3])):
        rows = ask(*options) if wanted else []
        assert [row["id"] for row in rows] == ids_of(wanted), options
        if options[0] != "--id":
            assert ask(*options, "--count") == [{"count": len(wanted)}], options


def test_the_live_files_are_printed_with_what_the_manifest_says(filled_root: Path) -> None:
    lines = CliRunner().invoke(main, ["history", "files", str(filled_root)]).stdout.splitlines()
    documents = [json.loads(line) for line in CliRunner().invoke(
        main, ["history", "files", str(filled_root), "--json"]).stdout.splitlines()]

    assert sorted(lines) == sorted(map(str, live(filled_root).paths)) == sorted(row["path"] for row in documents)
    assert sum(row["rows"] for row in documents) == len(TASKS)


@pytest.mark.parametrize("reader", ["duckdb", "pandas"])
def test_others_count_right(filled_root: Path, reader: str) -> None:
    module = importlib.import_module(reader)
    paths = list(map(str, live(filled_root).paths))
    if reader == "duckdb":
        counted = module.execute("SELECT count(*) FROM read_parquet(?)", [paths]).fetchone()[0]
    else:
        counted = sum(len(module.read_parquet(path)) for path in paths)

    assert counted == len(TASKS)


# -- one archive, and what waits for it -----------------------------------------------------------------------


def test_a_second_root_is_refused_with_the_remedy() -> None:
    with MemoryClient() as client:
        assert client.archive_root() is None
        client.enter_archive("/srv/a", "name")
        client.enter_archive("/mnt/a", "name")
        assert client.archive_root().root == "/mnt/a"
        client.enter_archive("/srv/a", "name")
        with pytest.raises(Refused, match=r"archive at /srv/a.* --replace") as refusal:
            client.enter_archive("/srv/b", "other")
        assert refusal.value.code == "other_archive"

        with pytest.raises(Refused, match=r"/srv/a has another archive .* not mounted, mount it"):
            client.enter_archive("/srv/a", "other")

        client.enter_archive("/srv/b", "other", replaces=True)

        assert client.archive_root().root == "/srv/b"


def test_what_waits_too_long_for_an_archive_is_a_concern() -> None:
    with MemoryClient() as client:
        seen = client.status()
    row = m.CollectionRow("n", 3, 0, (), 1_000_000, 5_000)
    facts = Facts("c", 1, 0, attrs.evolve(seen, collections=(row,)), now_ms=5_000 + UNARCHIVED_MS)

    assert "unarchived" not in [each.kind for each in concerns(facts)]
    found = concerns(attrs.evolve(facts, now_ms=facts.now_ms + 1))
    late = [each.words for each in found if each.kind == "unarchived"]
    assert len(late) == 1 and "1000000 ended tasks wait" in late[0] and "'skuld archive ROOT" in late[0]


def test_scratch_that_a_killed_owner_left_is_swept_and_that_of_a_living_one_is_not(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    dead, old = tmp_path / "skuld-x-dead", tmp_path / "skuld-x-old"
    for path in (dead, old):
        path.mkdir()
    (dead / "lock").touch()

    with scratch_directory("skuld-x-") as one, scratch_directory("skuld-x-") as two:
        assert one.is_dir() and two.is_dir() and old.is_dir() and not dead.exists()
        with process.held(one), process.held(two):
            """Whoever starts Spark there holds it, too."""
    assert list(tmp_path.iterdir()) == [old]


def test_restored_tasks_are_data_that_nothing_runs(filled_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with MemoryClient() as client:
        @contextmanager
        def connected(*_: object) -> Iterator[MemoryClient]:
            yield client
        monkeypatch.setattr("skuld_py.cli.history_restore.connected", connected)
        for _ in range(2):
            ran = CliRunner().invoke(main, ["history", "restore", str(filled_root), "--json"],
                                     catch_exceptions=False)
        back = [client.get(json.loads(line)["new"]) for line in ran.stdout.splitlines()[:-1]]

        assert client.claim("restored", n=100) == []
        assert {task.state for task in back} == {"cancelled"} and client.count() == len(TASKS)
        assert sorted(json.loads(task.payload)["id"] for task in back) == ids_of(TASKS)
