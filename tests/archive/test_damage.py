"""What a damaged manifest, a power cut, a full disk and a later release may do to an archive."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from archive.test_layout import TASKS, blob, file, ids_of, kept, rows_of
from skuld_py.archive import drafts, manifest
from skuld_py.archive.arrow_site import Site
from skuld_py.archive.manifest import Change, Manifest
from skuld_py.errors import Refused

NOTHING = {"format": 1, "at_ms": 1, "add": [], "remove": [], "close": [], "forget": []}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with Site.held(tmp_path / "root") as made:
        made.store.begin()
        yield made


@pytest.mark.parametrize("path", ["../victim", "files/../../victim", "/victim"])
@pytest.mark.parametrize("name", [f"{1:020}.json", f"{64:020}.snapshot.json"])
def test_a_manifest_that_removes_what_lies_outside_is_damaged(tmp_path: Path, path: str, name: str) -> None:
    root, victim = tmp_path / "root", tmp_path / "victim"
    victim.write_text("of somebody else")
    path = str(victim) if path.startswith("/") else path
    said = {**NOTHING, "remove": [path]} if "snapshot" not in name else {
        "format": 1, "version": 64, "archive": "a", "files": [], "removed": {path: 1}}
    (root / manifest.DIRECTORY).mkdir(parents=True)
    (root / manifest.DIRECTORY / name).write_text(json.dumps(said))

    with pytest.raises(Refused, match="damaged"), Site.held(root) as made:
        made.compact(grace_ms=0)

    assert victim.exists()


@pytest.mark.parametrize("text", [
    *(json.dumps({**NOTHING, "add": [{**attrs.asdict(file(1)), part: value}]})
      for part in ("queue", "day") for value in ("../../../out", "..", "", "/out")),
    json.dumps({**NOTHING, "at_ms": float("inf")}), "[" * 100_000])
def test_a_change_with_what_no_writer_says_is_damaged(tmp_path: Path, text: str) -> None:
    (tmp_path / manifest.DIRECTORY).mkdir()
    (tmp_path / manifest.DIRECTORY / f"{1:020}.json").write_text(text)

    with pytest.raises(Refused, match="damaged"):
        Manifest(tmp_path).refresh()


def test_a_snapshot_with_a_time_that_is_none_is_damaged(tmp_path: Path) -> None:
    (tmp_path / manifest.DIRECTORY).mkdir()
    (tmp_path / manifest.DIRECTORY / f"{64:020}.snapshot.json").write_text(json.dumps({
        "format": 1, "version": 64, "archive": "a", "files": [],
        "removed": {"files/d/q/1.parquet": float("inf")}}))

    with pytest.raises(Refused, match="damaged"):
        Manifest(tmp_path).refresh()


def test_the_directory_of_a_manifest_is_durable_before_its_first_change_is(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, synced = Manifest(tmp_path), list[tuple[Path, bool]]()
    monkeypatch.setattr(manifest, "sync", lambda path: synced.append(
        (path, (tmp_path / manifest.DIRECTORY / f"{1:020}.json").exists())))

    assert made.put(Change(1))

    assert synced == [(tmp_path, False), (tmp_path / manifest.DIRECTORY, True)]


def test_what_moved_for_a_refused_batch_is_taken_away_though_a_run_closes_files_behind_it(
        site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    root = site.root
    site.store.write("b1", rows_of(TASKS[:3]))
    with monkeypatch.context() as full:
        def fail(change: Change) -> bool:
            raise OSError(28, os.strerror(28))
        full.setattr(site.manifest, "put", fail)
        with pytest.raises(Refused, match="No space"):
            site.store.write("b2", rows_of(TASKS[3:6]))

    site.store.settled(blob(TASKS[:3]))
    site.store.end(False)
    with Site.held(root) as other:
        other.store.begin()
    site.store.begin()
    site.store.write("b3", rows_of(TASKS[6:9]))

    assert kept(root) == ids_of([*TASKS[:3], *TASKS[6:9]])
    assert {str(path.relative_to(root)) for path in root.glob("**/*.parquet")} == {*site.manifest.refresh().files}


def test_records_with_fields_of_a_later_release_are_left_to_that(site: Site) -> None:
    for number in (0, 3):  # of one queue and one day
        site.store.write(f"b{number}", rows_of([TASKS[number]]))
        site.store.settled(blob([TASKS[number]]))
    site.store.end(True)
    for path in site.manifest.refresh().files:
        found = pq.read_table(site.root / path, partitioning=None)
        at = found.schema.get_field_index("retry")
        retry = found.column(at).combine_chunks()
        fields = [*retry.type, pa.field("later", pa.int64())]
        more = pa.StructArray.from_arrays([*retry.flatten(), pa.array([7] * len(retry))], fields=fields)
        pq.write_table(found.set_column(at, pa.field("retry", more.type), more), site.root / path)

    done = site.compact(grace_ms=0)

    assert done.files == 0
    assert all(row["retry"]["later"] == 7 for path in site.manifest.refresh().files
               for row in pq.read_table(site.root / path, columns=["retry"], partitioning=None).to_pylist())


def test_a_file_is_off_the_disk_durably_before_the_manifest_forgets_it(
        site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.store.write("b1", rows_of(TASKS[:1]))
    (path,) = site.manifest.refresh().files
    assert site.manifest.put(Change(0, (), (path,)))
    place, seen = site.root / path, list[tuple[bool, bool]]()
    monkeypatch.setattr(drafts, "sync", lambda directory: seen.append(
        (place.exists(), path in Manifest(site.root).refresh().removed)) if directory == place.parent else None)

    site.compact(grace_ms=0)

    assert seen == [(False, True)] and path not in site.manifest.refresh().removed


def test_what_had_moved_is_off_the_disk_durably_before_its_note_is(
        site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    draft, path = site.drafts.path("x"), "files/2026-12-01/q/x.parquet"
    draft.touch()
    site.drafts.move({draft: path})
    place, seen = site.root / path, list[tuple[bool, bool]]()
    monkeypatch.setattr(drafts, "sync", lambda directory: seen.append(
        (place.exists(), (site.drafts.own / drafts.NOTE).exists())) if directory == place.parent else None)

    site.drafts.drop(site.manifest.refresh())

    assert seen == [(False, True)] and not (site.drafts.own / drafts.NOTE).exists()


def test_directories_that_another_has_made_are_durable_before_a_change_names_files_in_them(
        site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    draft, synced = site.drafts.path("x"), list[Path]()
    draft.touch()
    (site.root / "files/2026-12-01/q").mkdir(parents=True)
    monkeypatch.setattr(drafts, "sync", synced.append)

    site.drafts.move({draft: "files/2026-12-01/q/x.parquet"})

    assert {site.root / each for each in ("files/2026-12-01/q", "files/2026-12-01", "files", "")} <= {*synced}
