"""Roots that move, are turned back, or may not be read; and clocks that are wrong beside them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from archive.ended import plain
from archive.test_arrow import write_old
from archive.test_layout import TASKS, filled, ids_of, kept, rows_of
from skuld_py.archive import arrow_site
from skuld_py.archive.arrow_files import SCHEMA
from skuld_py.archive.arrow_history import ArrowHistory
from skuld_py.archive.arrow_site import Site
from skuld_py.archive.filters import Filters
from skuld_py.archive.live import live
from skuld_py.archive.manifest import DIRECTORY, Manifest
from skuld_py.errors import Refused
from skuld_py.model.ids import to_text
from skuld_py.testing import MemoryClient

YEAR_MS = 366 * 86_400_000


def test_an_archive_that_was_moved_is_known_where_it_is_now() -> None:
    """Also one whose name nobody knew when it was entered: pyarrow was not installed yet."""
    with MemoryClient() as client:
        client.enter_archive("/srv/a")
        client.enter_archive("/srv/a", "name")
        client.enter_archive("/srv/a")
        client.enter_archive("/mnt/b", "name")

        assert client.archive_root().root == "/mnt/b"
        with pytest.raises(Refused, match="/mnt/b has another archive"):
            client.enter_archive("/mnt/b", "other")


def test_one_that_is_reached_by_two_paths_is_not_told_in_turns() -> None:
    with MemoryClient() as client:
        client.enter_archive("/srv/a")
        client.enter_archive("/srv/a", "name", moves=False)
        client.enter_archive("/mnt/a", "name", moves=False)

        assert client.archive_root().root == "/srv/a"
        with pytest.raises(Refused, match="/srv/a has another archive"):
            client.enter_archive("/srv/a", "other", moves=False)
        client.enter_archive("/mnt/a", "name")
        assert client.archive_root().root == "/mnt/a"


def test_a_copy_that_takes_the_place_has_a_name_of_its_own_and_no_former_archiver_gets_in(tmp_path: Path) -> None:
    """By whatever path it reaches the former one, and whatever was the cluster's archive in between."""
    root, copy = tmp_path / "root", tmp_path / "copy"
    with Site.held(root) as former, MemoryClient() as client:
        name = former.archive
        client.enter_archive(str(root), name)
        shutil.copytree(root / DIRECTORY, copy / DIRECTORY)
        with Site.held(copy) as site:
            assert site.archive == name
            site.rename()
            assert site.archive == Manifest(copy).name() and site.archive.startswith(f"{name}-")
            client.enter_archive(str(copy), site.archive, replaces=True)
            client.enter_archive("/mnt/copy", Manifest(copy).name(), moves=False)
            for place in (str(root), "/mnt/root"):
                with pytest.raises(Refused, match=f"go to the archive at {copy}"):
                    client.enter_archive(place, former.archive)
            client.enter_archive("s3a://b/c", replaces=True)
            before = site.archive
            site.rename()
            client.enter_archive(str(copy), site.archive, replaces=True)
            assert before != site.archive != name == former.archive
            with pytest.raises(Refused, match=f"go to the archive at {copy}"):
                client.enter_archive(str(root), former.archive)
            site.store.begin()
            site.store.write("b", rows_of(TASKS))
    assert kept(copy) == ids_of(TASKS) and Manifest(copy).refresh().archive == name, "as releases before know it"


@pytest.mark.parametrize("text", ["", "{}", '{"format": 1}', '{"format": 1, "mark": 7}',
                                  '{"format": 1, "mark": "../x"}', '{"format": 1, "mark": ""}', "\x00"])
def test_a_mark_that_cannot_be_is_named(tmp_path: Path, text: str) -> None:
    with Site.held(tmp_path) as site:
        assert site.archive
        (tmp_path / DIRECTORY / "copy.json").write_text(text)
        with pytest.raises(Refused, match=r"copy\.json is damaged") as refused:
            site.manifest.name()
    assert refused.value.code == "damaged_manifest"


def test_an_archive_that_was_turned_back_under_its_writer_gets_nothing_more_of_it(tmp_path: Path) -> None:
    """What this one has written is not there any more, and would not be written again."""
    root, copy = tmp_path / "root", tmp_path / "copy"
    with Site.held(root) as site:
        site.store.begin()
        site.store.write("a", rows_of(TASKS[:3]))
        shutil.copytree(root / DIRECTORY, copy)
        site.store.write("b", rows_of(TASKS[3:]))
        shutil.rmtree(root / DIRECTORY)
        copy.rename(root / DIRECTORY)

        with pytest.raises(Refused) as refused:
            site.store.write("c", rows_of(TASKS))
        assert refused.value.code == "turned_back" and "it had 2 changes, and has 1" in refused.value.message
    with Site.held(root) as site:
        site.store.begin()
        site.store.write("d", rows_of(TASKS))
    assert kept(root) == ids_of(TASKS)


def test_another_archive_that_is_mounted_at_the_root_is_not_written_on(tmp_path: Path) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    with Site.held(other) as site:
        site.store.begin()
        site.store.write("a", rows_of(TASKS[:2]))
        site.store.write("b", rows_of(TASKS[2:4]))
    with Site.held(root) as site:
        site.store.begin()
        site.store.write("c", rows_of(TASKS[:3]))
        shutil.rmtree(root / DIRECTORY)
        shutil.copytree(other / DIRECTORY, root / DIRECTORY)

        with pytest.raises(Refused, match="of another archive now"):
            site.store.write("d", rows_of(TASKS[3:]))
    assert sorted(each.name for each in (root / DIRECTORY).iterdir()) == sorted(
        each.name for each in (other / DIRECTORY).iterdir())


def test_a_clock_that_was_set_forward_has_nothing_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_site, "now_ms", lambda: 2 * 10**12 + 50 * YEAR_MS)
    with Site.held(tmp_path) as site:
        site.store.begin()
        filled(site)

        assert site.compact(keep_days=30, grace_ms=0).dropped == 0

    assert kept(tmp_path) == ids_of(TASKS)


def test_a_batch_that_may_not_be_read_is_no_batch_that_is_not_there(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_old(tmp_path, "20251101T000000.000Z-00000000")
    listdir = os.listdir

    def denied(path: Path) -> list[str]:
        if Path(path).name.startswith("queue="):
            raise PermissionError(13, "Permission denied")
        return listdir(path)
    monkeypatch.setattr(os, "listdir", denied)

    with pytest.raises(Refused, match="cannot be read: Permission denied; mend"):
        live(tmp_path)


def test_a_manifest_that_may_not_be_listed_is_said_in_a_line(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: Path) -> list[str]:
        raise PermissionError(13, "Permission denied")
    (tmp_path / DIRECTORY).mkdir()
    monkeypatch.setattr(os, "listdir", denied)

    with pytest.raises(Refused, match="cannot be read: Permission denied; mend"):
        Manifest(tmp_path).exists()


def test_files_that_lie_side_by_side_are_not_all_open_at_once(tmp_path: Path) -> None:
    tasks = [plain(number) for number in range(60)]
    with Site.held(tmp_path) as site:
        site.store.begin()
        for number in range(20):
            site.store.write(f"b{number}", rows_of(tasks[number::20]))
    seen: list[int] = []
    for row in ArrowHistory(live(tmp_path), Filters()).rows():
        seen.append(sum(is_below(tmp_path, number) for number in os.listdir("/proc/self/fd")))
        assert row["id"] == ids_of(tasks)[len(seen) - 1]

    assert len(seen) == 60 and max(seen) == 0


def is_below(root: Path, descriptor: str) -> bool:
    """Whether it is open on a file below."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}").startswith(f"{root}/files")
    except FileNotFoundError:
        return False


def test_one_id_is_looked_for_among_ids_until_it_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks, read = [plain(number) for number in range(60)], list[list[str] | None]()
    with Site.held(tmp_path) as site:
        site.store.begin()
        for number in range(20):
            site.store.write(f"b{number:02}", rows_of(tasks[number::20]))
    read_row_group = pq.ParquetFile.read_row_group

    def reading(file: pq.ParquetFile, number: int, columns: list[str], **options: bool) -> pa.Table:
        read.append(columns)
        return read_row_group(file, number, columns=columns, **options)
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", reading)
    for at, count in ((22, 3), (39, 20)):
        read.clear()
        wanted = Filters(id=tasks[at].id)

        rows = [*ArrowHistory(live(tmp_path, wanted), wanted).rows()]

        assert [row["id"] for row in rows] == [to_text(tasks[at].id)]
        assert read == [*[["id"]] * count, SCHEMA.names]
