"""What a damaged manifest, a power cut, a full disk and a later release may do to an archive."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from archive.ended import NOON_MS, plain
from archive.test_arrow import write_old
from archive.test_layout import TASKS, blob, file, ids_of, kept, rows_of
from skuld_py.archive import compaction, drafts, manifest
from skuld_py.archive.arrow_files import reading, table_of
from skuld_py.archive.arrow_history import ArrowHistory
from skuld_py.archive.arrow_site import Site
from skuld_py.archive.filters import Filters
from skuld_py.archive.live import live
from skuld_py.archive.manifest import Change, Manifest
from skuld_py.cli.main import main
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


# -- files that cannot be read --------------------------------------------------------------------------------


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def blot(path: Path) -> None:
    """Its footer is whole."""
    found = path.read_bytes()
    end = len(found) - 8 - int.from_bytes(found[-8:-4], "little")
    path.write_bytes(found[:4] + bytes(end - 4) + found[end:])


DAMAGES = pytest.mark.parametrize(("damage", "code"), [
    (cut, "damaged_file"), (blot, "damaged_file"), (Path.unlink, "not_read")])


def closed_files(site: Site) -> dict[str, list[str]]:
    """Of three queues two small files each, which are to be compacted."""
    tasks = [plain(number, "abc"[number % 3], at_ms=NOON_MS + number) for number in range(6)]
    for part in (tasks[:3], tasks[3:]):
        site.store.write(f"b{part[0].payload!r}", rows_of(part))
    site.store.settled(blob(tasks))
    site.store.end(True)
    files = sorted(site.manifest.refresh().files.values(), key=lambda file: file.first_id)
    return {queue: [file.path for file in files if file.queue == queue] for queue in "abc"}


@DAMAGES
def test_a_file_that_cannot_be_read_is_named_and_other_queues_are_compacted(
        site: Site, damage: Callable[[Path], None], code: str) -> None:
    files = closed_files(site)
    bad = site.root / files["b"][1]
    damage(bad)

    done = site.compact(grace_ms=0)

    assert (done.files, done.into) == (4, 2)
    assert [(each.code, each.path) for each in done.unread] == [(code, bad)]
    assert f"root: {bad} is " in done.unread[0].message and "restore it from a copy" in done.unread[0].message
    left = site.manifest.refresh().files
    assert {*files["b"]} <= {*left} and not {*files["a"], *files["c"]} & {*left} and len(left) == 4
    assert not [*site.drafts.own.glob("*.draft")]


@DAMAGES
def test_who_reads_an_archive_is_told_which_file_cannot_be_read(
        site: Site, damage: Callable[[Path], None], code: str) -> None:
    bad = site.root / closed_files(site)["b"][1]
    damage(bad)

    with pytest.raises(Refused, match="restore it from a copy") as refused:
        [*ArrowHistory(live(site.root), Filters()).rows()]

    assert refused.value.code == code and f"root: {bad} is " in refused.value.message


def test_a_compaction_that_could_not_read_a_file_says_so_and_ends_with_1(site: Site) -> None:
    bad = site.root / closed_files(site)["b"][1]
    cut(bad)

    answer = CliRunner().invoke(main, ["archive", "compact", str(site.root)], prog_name="skuld")

    assert answer.exit_code == 1 and answer.stdout.startswith("compacted 4 files of 4 rows into 2,")
    assert answer.stdout.splitlines()[-1].startswith(
        f"this is archived, and not compacted: root: {bad} is damaged: Parquet magic bytes not found")


def test_a_damaged_file_keeps_no_other_one_from_its_end(site: Site) -> None:
    files = closed_files(site)
    site.store.write("later", rows_of([plain(9, "a", at_ms=NOON_MS + 9 * 86_400_000)]))
    bad = site.root / files["b"][1]
    cut(bad)

    done = site.compact(keep_days=1, grace_ms=0)

    assert done.dropped == 5 and {each.path for each in done.unread} == {bad}
    assert files["b"][1] in site.manifest.refresh().files and bad.exists()


def test_days_past_go_though_an_archiver_writes_while_a_damaged_file_is_met(
        site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    files = closed_files(site)
    later = [plain(number, "a", at_ms=NOON_MS + 9 * 86_400_000) for number in (9, 10)]
    site.store.write("later", rows_of(later[:1]))
    bad = site.root / files["b"][1]
    cut(bad)
    lacks_ends = compaction.lacks_ends

    def beside(path: Path) -> bool:
        if path == bad:
            with Site.held(site.root) as other:
                other.store.begin()
                other.store.write("beside", rows_of(later[1:]))
        return lacks_ends(path)
    monkeypatch.setattr(compaction, "lacks_ends", beside)

    assert site.compact(keep_days=1, grace_ms=0).dropped == 5
    assert files["b"][1] in site.manifest.refresh().files


def test_a_damaged_file_of_an_earlier_layout_keeps_other_queues_from_nothing(site: Site) -> None:
    write_old(site.root, "1")
    old = live(site.root).old
    cut(site.root / old[0])

    done = site.compact(grace_ms=0)

    assert [each.path for each in done.unread] == [site.root / old[0]]
    assert done.files == len(old) - 1 and live(site.root).old == old[:1]


def test_of_a_file_that_another_compaction_took_away_nothing_is_said(
        site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    files = closed_files(site)
    has_more = compaction.has_more

    def overtaken(path: Path) -> bool:
        monkeypatch.setattr(compaction, "has_more", has_more)
        with Site.held(site.root) as other:
            assert other.compact(grace_ms=-1).unlinked == 6
        return has_more(path)
    monkeypatch.setattr(compaction, "has_more", overtaken)

    done = site.compact(grace_ms=0)

    assert done.unread == [] and not any(path in site.manifest.refresh().files
                                         for paths in files.values() for path in paths)


# -- footers that say of rows what is not so ------------------------------------------------------------------


def misstate(path: Path, task_id: str, bit: int) -> None:
    """One bit in what a footer says of the bounds of ids; the rows themselves stay as they are."""
    found = bytearray(path.read_bytes())
    begin = len(found) - 8 - int.from_bytes(found[-8:-4], "little")
    found[found.index(task_id.encode(), begin) + 4] ^= bit
    path.write_bytes(found)


MISSTATED = pytest.mark.parametrize(("which", "bit"), [(-1, 0x10), (0, 0x40)])
"""The greatest id is said to be less, or the least to be greater."""
NEIGHBOURS = [plain(number, "q", at_ms=NOON_MS + number) for number in range(20)]


@MISSTATED
def test_rows_that_a_damaged_footer_hides_are_not_compacted_away(
        site: Site, monkeypatch: pytest.MonkeyPatch, which: int, bit: int) -> None:
    monkeypatch.setattr(compaction, "RANGE_BYTES", 2_000)
    for half in range(2):
        site.store.write(f"b{half}", rows_of(NEIGHBOURS[half::2]))
    site.store.settled(blob(NEIGHBOURS))
    site.store.end(True)
    first = min(site.manifest.refresh().files.values(), key=lambda file: file.first_id)
    misstate(site.root / first.path, ids_of(NEIGHBOURS[::2])[which], bit)

    done = site.compact(grace_ms=-1)

    assert [(each.code, each.path) for each in done.unread] == [("damaged_file", site.root / first.path)]
    assert done.files == 0 and kept(site.root) == ids_of(NEIGHBOURS)
    assert not [*site.drafts.own.glob("*.draft")]


@MISSTATED
def test_rows_of_an_earlier_layout_that_a_damaged_footer_hides_are_not_compacted_away(
        site: Site, monkeypatch: pytest.MonkeyPatch, which: int, bit: int) -> None:
    monkeypatch.setattr(compaction, "RANGE_BYTES", 2_000)
    for half in range(2):
        rows = rows_of(NEIGHBOURS[half::2])
        place = site.root / f"batch={half}" / "queue=q" / f"day={rows[0][2]}"
        place.mkdir(parents=True)
        pq.write_table(table_of(rows, str(half)).drop_columns(["queue", "day", "batch"]), place / "p.parquet")
    bad = site.root / live(site.root).old[0]
    misstate(bad, ids_of(NEIGHBOURS[::2])[which], bit)

    done = site.compact(grace_ms=-1)

    assert [(each.code, each.path) for each in done.unread] == [("damaged_file", bad)]
    assert done.files == 0 and len(live(site.root).old) == 2 and not live(site.root).files


def test_of_a_file_of_an_earlier_layout_whose_footer_is_at_odds_with_itself_nothing_is_taken_over(
        site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    write_old(site.root, "1")
    old = live(site.root).old
    counts = compaction._counts
    monkeypatch.setattr(compaction, "_counts", lambda path: counts(path) | (
        {2} if path == site.root / old[0] else set()))

    done = site.compact(grace_ms=0)

    assert [(each.code, each.path) for each in done.unread] == [("damaged_file", site.root / old[0])]
    assert live(site.root).old == old[:1]


# -- content that no writer wrote -----------------------------------------------------------------------------


def put(path: Path, name: str, values: pa.Array | None) -> None:
    """Another column, or none of this name."""
    found = pq.read_table(path, partitioning=None)
    at = found.schema.get_field_index(name)
    left = found.remove_column(at)
    pq.write_table(left if values is None else left.add_column(at, pa.field(name, values.type), values), path)


UNSOUND = {
    "id-is-no-text": ("id", pa.array([b"0\xff"]).view(pa.string())),
    "id-lacks": ("id", pa.array([None], pa.string())),
    "id-is-a-number": ("id", pa.array([7])),
    "no-ids": ("id", None),
    "no-ends": ("ended_ms", None),
    "ended-in-words": ("ended_ms", pa.array(["noon"])),
    "ended-behind-the-calendar": ("ended_ms", pa.array([1 << 60])),
    "state-is-no-text": ("state", pa.array([b"\xc3("]).view(pa.string())),
    "retry-is-a-number": ("retry", pa.array([3])),
}


@pytest.mark.parametrize(("name", "values"), UNSOUND.values(), ids=UNSOUND)
def test_a_file_that_has_what_no_writer_wrote_is_named_and_other_queues_are_compacted(
        site: Site, name: str, values: pa.Array | None) -> None:
    bad = site.root / (files := closed_files(site))["b"][1]
    put(bad, name, values)

    done = site.compact(grace_ms=0)

    assert [(each.code, each.path) for each in done.unread] == [("damaged_file", bad)] and done.files == 4
    assert {*files["b"]} <= {*site.manifest.refresh().files}


@pytest.mark.parametrize(("name", "values"), [
    *(UNSOUND[each] for each in UNSOUND if each != "ended-behind-the-calendar"),
    ("enqueued", pa.array([1 << 60], pa.timestamp("ms", "UTC")))])
def test_who_reads_is_told_which_file_has_what_no_writer_wrote(
        site: Site, name: str, values: pa.Array | None) -> None:
    bad = site.root / closed_files(site)["b"][1]
    put(bad, name, values)

    with pytest.raises(Refused, match="is damaged") as refused:
        [*ArrowHistory(live(site.root), Filters()).rows()]

    assert refused.value.code == "damaged_file" and f"root: {bad} is " in refused.value.message


@pytest.mark.parametrize(("name", "values"), [
    ("id", pa.array([ids_of(TASKS[:1])[0].encode(), b"9\xff"]).view(pa.string())), ("enqueued_ms", None),
    ("digest", None), ("digest", pa.array([1, 2])), ("state", pa.array([b"\xc3(", b""]).view(pa.string()))])
def test_a_task_goes_out_of_no_file_that_has_what_no_writer_wrote(
        site: Site, name: str, values: pa.Array | None) -> None:
    tasks = [attrs.evolve(TASKS[0], id=each) for each in sorted((TASKS[0].id, TASKS[3].id))]
    site.store.write("b1", rows_of(tasks))
    (path,) = site.manifest.refresh().files
    put(site.root / path, name, values)

    with pytest.raises(Refused, match="is damaged") as refused:
        site.store.write("b2", rows_of(tasks[:1], digest=6))

    assert refused.value.code == "damaged_file" and [*site.manifest.refresh().files] == [path]


def test_when_tasks_of_a_file_ended_that_does_not_say_it_is_not_made_up(site: Site) -> None:
    files = closed_files(site)
    site.store.write("later", rows_of([plain(9, "a", at_ms=NOON_MS + 9 * 86_400_000)]))
    put(site.root / files["b"][1], "ended_ms", None)

    done = site.compact(keep_days=1, grace_ms=0)

    assert done.dropped == 5 and [each.code for each in done.unread] == ["damaged_file"]


# -- what the disk does not give ------------------------------------------------------------------------------


def loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


def file_for_directory(path: Path) -> None:
    shutil.rmtree(path.parent)
    path.parent.touch()


def directory_for_file(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(("break_it", "why"), [
    (loop, "Too many levels of symbolic links"), (file_for_directory, "Not a directory"),
    (directory_for_file, "")])
def test_what_the_disk_does_not_give_is_named_and_other_queues_are_compacted(
        site: Site, break_it: Callable[[Path], None], why: str) -> None:
    files = closed_files(site)
    break_it(site.root / files["b"][1])

    done = site.compact(grace_ms=0)

    assert (done.files, done.into) == (4, 2)
    unread, = done.unread
    assert unread.code in ("not_read", "damaged_file") and str(unread.path) in map(
        str, (site.root / each for each in files["b"]))
    assert f"root: {unread.path} " in unread.message and why in unread.message
    assert "restore it from a copy" in unread.message


@pytest.mark.parametrize(("number", "code"), [
    (errno.EIO, "not_read"), (errno.ELOOP, "not_read"), (errno.ENOTDIR, "not_read"),
    (errno.EMFILE, None), (errno.ENFILE, None), (errno.ENOMEM, None)])
def test_what_is_the_fault_of_the_process_is_not_told_of_a_file(
        tmp_path: Path, number: int, code: str | None) -> None:
    with pytest.raises(Refused if code else OSError) as raised, reading(tmp_path):
        raise OSError(number, os.strerror(number))

    assert getattr(raised.value, "code", None) == code
    assert code is None or os.strerror(number) in str(raised.value)
