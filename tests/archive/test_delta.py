"""An archive as a Delta table: what a reader of its log sees is what a reader of the manifest does."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from archive.test_layout import TASKS, blob, ids_of, kept, rows_of
from skuld_py.archive import delta_log, manifest
from skuld_py.archive.arrow_files import SCHEMA
from skuld_py.archive.arrow_site import Site, now_ms
from skuld_py.archive.compaction import GRACE_MS
from skuld_py.archive.delta_log import DeltaLog
from skuld_py.archive.live import live
from skuld_py.archive.manifest import Change, Manifest
from skuld_py.archive.places import DELTA
from skuld_py.cli.main import main
from skuld_py.errors import Refused


def actions_of(root: Path) -> list[dict[str, Any]]:
    """Of the last checkpoint and the versions behind it, of which none may be missing."""
    log = root / DELTA
    found, first = list[dict[str, Any]](), 0
    if (log / "_last_checkpoint").exists():
        first = json.loads((log / "_last_checkpoint").read_text())["version"]
        found = [{name: value for name, value in row.items() if value is not None}
                 for row in pq.read_table(log / f"{first:020}.checkpoint.parquet").to_pylist()]
    behind = sorted(int(path.stem) for path in log.glob("*.json") if int(path.stem) > first or not found)
    assert behind == [*range(behind[0], behind[0] + len(behind))] if behind else found
    assert not behind or behind[0] == (first + 1 if found else 0)
    for number in behind:
        found += [json.loads(line) for line in (log / f"{number:020}.json").read_text().splitlines()]
    return found


def in_table(root: Path) -> list[str]:
    """The ids in the table."""
    live: dict[str, dict[str, Any]] = {}
    for action in actions_of(root):
        if "add" in action:
            live[unquote(action["add"]["path"])] = action["add"]
        elif "remove" in action:
            live.pop(unquote(action["remove"]["path"]), None)
    found = list[str]()
    for path, said in live.items():
        ids = pq.read_table(root / path, columns=["id"], partitioning=None).column("id").to_pylist()
        bounds = json.loads(said["stats"])
        assert (bounds["numRecords"], bounds["minValues"]["id"], bounds["maxValues"]["id"], said["size"]) == (
            len(ids), ids[0], ids[-1], (root / path).stat().st_size)
        found += ids
    assert len(found) == len(set(found))
    return found


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (manifest, delta_log):
        monkeypatch.setattr(module, "SNAPSHOT_EVERY", 4)


def put(site: Site, first: int, last: int) -> None:
    for number in range(first, last):
        site.store.write(f"b{number:03}", rows_of(TASKS[number : number + 1]))


def test_each_batch_is_in_the_table_when_its_write_returns(tmp_path: Path) -> None:
    with Site.held(tmp_path, begins_delta=True) as site:
        site.store.begin()
        for number in range(11):
            put(site, number, number + 1)
            assert sorted(in_table(tmp_path)) == kept(tmp_path) == ids_of(TASKS[: number + 1])
    names = {path.name for path in (tmp_path / DELTA).iterdir()}
    assert len([name for name in names if "checkpoint.parquet" in name]) == 2
    assert f"{8:020}.json" in names and f"{3:020}.json" not in names, "what no reader needs is wiped"


def test_compaction_only_moves_rows_and_a_change_of_a_task_does_more(tmp_path: Path) -> None:
    with Site.held(tmp_path, begins_delta=True) as site:
        site.store.begin()
        put(site, 0, 9)
        site.store.write("b9", rows_of(TASKS[:2], digest=6))
        changed = actions_of(tmp_path)[-1]
        assert changed["add"]["dataChange"] and sorted(in_table(tmp_path)) == ids_of(TASKS[:9])
        site.store.settled(blob(TASKS[:9]))
        site.store.end(is_whole=False)
        before = site.manifest.state.version
        site.compact(grace_ms=0)
    assert sorted(in_table(tmp_path)) == kept(tmp_path) == ids_of(TASKS[:9])
    log = tmp_path / DELTA
    lines = [json.loads(line) for path in sorted(log.glob("*.json")) if int(path.stem) > before
             for line in path.read_text().splitlines()]
    moved = [action[kind]["dataChange"] for action in lines for kind in ("add", "remove") if kind in action]
    assert moved and not any(moved)


def test_a_table_begins_in_an_archive_that_has_a_past(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first checkpoint is there before the first version that builds on it."""
    put_version = DeltaLog._put

    def watched(log: DeltaLog, number: int, archive: str) -> None:
        assert (tmp_path / DELTA / "_last_checkpoint").exists()
        put_version(log, number, archive)
    monkeypatch.setattr(DeltaLog, "_put", watched)
    with Site.held(tmp_path) as site:
        site.store.begin()
        put(site, 0, 15)
        assert 1 not in site.manifest.numbers()[0] and not (tmp_path / DELTA).exists()
    with Site.held(tmp_path, begins_delta=True) as site:
        site.store.begin()
        site.store.end(is_whole=False)
    assert sorted(in_table(tmp_path)) == ids_of(TASKS[:15])


def test_what_a_writer_left_out_the_next_one_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Site.held(tmp_path, begins_delta=True) as site:
        site.store.begin()
        put(site, 0, 2)
        monkeypatch.setattr(site.store, "_tell", lambda: None)
        put(site, 2, 4)
    assert sorted(in_table(tmp_path)) == ids_of(TASKS[:2])
    with Site.held(tmp_path) as site:
        site.store.begin()
        site.store.write("b9", rows_of(TASKS[:4]))
    assert sorted(in_table(tmp_path)) == kept(tmp_path) == ids_of(TASKS[:4])


def test_a_file_stays_for_readers_whose_table_was_told_only_now_that_it_went(tmp_path: Path) -> None:
    """Whoever compacted died before the table was told, long ago."""
    with Site.held(tmp_path, begins_delta=True) as site:
        site.store.begin()
        put(site, 0, 2)
        site.store.settled(blob(TASKS[:2]))
        site.store.end(is_whole=False)
        before = live(tmp_path)
        site.manifest.refresh()
        assert site.manifest.put(Change(now_ms() - 2 * GRACE_MS, (), tuple(each.path for each in before.files)))
        assert sorted(in_table(tmp_path)) == ids_of(TASKS[:2])

        for _ in range(2):
            assert site.compact().unlinked == 0
            assert in_table(tmp_path) == [] and all(path.exists() for path in before.paths)

        for path in (tmp_path / DELTA).glob("*.json"):
            aged_s = path.stat().st_mtime - GRACE_MS / 1000
            os.utime(path, (aged_s, aged_s))
        assert site.compact().unlinked == 2
        assert not any(path.exists() for path in before.paths)


def test_a_young_version_that_says_nothing_is_named(tmp_path: Path) -> None:
    with Site.held(tmp_path, begins_delta=True) as site:
        site.store.begin()
        put(site, 0, 1)
        (tmp_path / DELTA / f"{1:020}.json").write_text('{"remove": 1}\n')
        with pytest.raises(Refused, match=r"1\.json is not the archive's"):
            site.compact()


def test_what_may_not_be_durable_in_the_table_is_not_confirmed_however_often_it_is_asked(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced, fails = list[Path](), [True, True, False]

    def once(path: Path) -> None:
        synced.append(path)
        if path == tmp_path / DELTA and fails.pop(0):
            raise OSError(5, "Input/output error")
    with Site.held(tmp_path, begins_delta=True) as site:
        site.store.begin()
        put(site, 0, 1)
        monkeypatch.setattr(delta_log, "sync", once)
        for _ in range(2):
            with pytest.raises(Refused, match="Input/output error"):
                put(site, 1, 2)
        synced.clear()
        put(site, 1, 2)
    assert synced[-1] == tmp_path / DELTA and fails == []


def test_two_writers_tell_one_story(tmp_path: Path) -> None:
    with Site.held(tmp_path, begins_delta=True) as one, Site.held(tmp_path) as two:
        for site in (one, two):
            site.store.begin()
        for number in range(0, 12, 2):
            put(one, number, number + 1)
            put(two, number, number + 2)
            assert sorted(in_table(tmp_path)) == ids_of(TASKS[: number + 2])


def test_a_version_of_another_program_is_refused_and_its_rows_are_not_confirmed(tmp_path: Path) -> None:
    with Site.held(tmp_path, begins_delta=True) as site:
        site.store.begin()
        put(site, 0, 1)
        foreign = tmp_path / DELTA / f"{2:020}.json"
        foreign.write_text('{"commitInfo": {"engineInfo": "another"}}\n')
        for _ in range(2):
            with pytest.raises(Refused, match=r"2.json is not the archive's.*say --format delta again"):
                put(site, 1, 2)
    assert kept(tmp_path) == ids_of(TASKS[:2])


def test_a_version_that_another_archiver_wipes_meanwhile_is_not_of_another_program(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Site.held(tmp_path, begins_delta=True) as site:
        site.store.begin()
        site.store.write("b", rows_of(TASKS[:2]))
        found, *_ = (tmp_path / DELTA).glob("*.json")

        def wiped(directory: Path, pattern: str) -> list[Path]:
            return [found.with_name("00000000000000000000.none.json"), found]
        monkeypatch.setattr(Path, "glob", wiped)

        site.check_delta()

        found.write_text("{}\n")
        with pytest.raises(Refused, match="another program"):
            site.check_delta()


def test_columns_are_those_of_the_files(tmp_path: Path) -> None:
    with Site.held(tmp_path, begins_delta=True) as site:
        site.store.begin()
        put(site, 0, 6)
    for actions in (actions_of(tmp_path), [json.loads(line) for line in (
            tmp_path / DELTA / f"{4:020}.json").read_text().splitlines()]):
        meta, = (action["metaData"] for action in actions if "metaData" in action)
        fields = json.loads(meta["schemaString"])["fields"]
        assert [field["name"] for field in fields] == SCHEMA.names
        kinds = {field["name"]: field["type"] for field in fields}
        assert (kinds["id"], kinds["ended"], kinds["seq"], kinds["headers"]["type"]) == (
            "string", "timestamp", "long", "map")
        assert kinds["claims"]["elementType"]["fields"][0] == {
            "name": "token", "type": "long", "nullable": True, "metadata": {}}


def test_a_table_needs_a_directory() -> None:
    ran = CliRunner().invoke(main, ["archive", "s3a://bucket/x", "--format", "delta"])

    assert ran.exit_code == 2 and "--format delta needs a directory of this machine" in ran.stderr


def test_where_the_table_would_not_be_kept_up_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch
                                                                 ) -> None:
    with Site.held(tmp_path, begins_delta=True) as site:
        assert site.archive
    monkeypatch.setattr("skuld_py.cli.archive._is_written_here", lambda place: False)
    monkeypatch.setattr("skuld_py.extras.find_spec", lambda package: None)

    ran = CliRunner().invoke(main, ["archive", str(tmp_path)])

    assert ran.exit_code == 1 and "skuld archive to a Delta table needs pyarrow" in ran.stderr


def test_without_the_word_there_is_no_table(tmp_path: Path) -> None:
    with Site.held(tmp_path) as site:
        site.store.begin()
        put(site, 0, 2)
    assert not (tmp_path / DELTA).exists() and Manifest(tmp_path).refresh().version == 2
