"""Where archives stand: a batch on a local disk is synced before it can be seen, and is there whole or not."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from skuld_py.archive import places
from skuld_py.archive.places import LocalPlace, RemotePlace, check_archive, local_path, place_of
from skuld_py.embedded import process
from skuld_py.errors import Refused


def write(where: str) -> list[Path]:
    """As Spark would."""
    top = local_path(where)
    assert top is not None
    day = top / "queue=q" / "day=2026-11-22"
    day.mkdir(parents=True)
    files = [day / "part-0.parquet", day / ".part-0.parquet.crc", top / "_SUCCESS"]
    for file in files:
        file.write_bytes(b"x")
    return [*files, day, day.parent, top]


def test_a_batch_is_synced_whole_then_renamed_and_that_is_synced(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[str, str]] = []
    root = tmp_path / "archive"
    rename, fsync = Path.rename, os.fsync

    def note_rename(path: Path, to: Path) -> Path:
        done.append(("rename", path.name))
        return rename(path, to)

    def note_sync(handle: int) -> None:
        done.append(("sync", os.readlink(f"/proc/self/fd/{handle}")))
        fsync(handle)

    place = LocalPlace(root)
    with place.held():
        written = write(place.begin("b1"))
        monkeypatch.setattr(Path, "rename", note_rename)
        monkeypatch.setattr(os, "fsync", note_sync)
        assert not (root / "batch=b1").exists()
        place.finish("b1")

    at = done.index(("rename", "batch=b1"))
    assert {path for kind, path in done[:at] if kind == "sync"} == {str(path) for path in written}
    assert ("sync", str(root)) in done[at:]
    assert (root / "batch=b1" / "queue=q" / "day=2026-11-22" / "part-0.parquet").exists()


@pytest.mark.parametrize("step", ["stat", "listdir"])
def test_an_archive_that_may_not_be_read_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                             step: str) -> None:
    (tmp_path / "batch=b1").mkdir()
    assert check_archive(str(tmp_path)) == f"file://{tmp_path}"

    def denied(path: object, **_: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    monkeypatch.setattr(os, step, denied)

    with pytest.raises(Refused, match="cannot be read: Permission denied; mend its permissions") as refusal:
        check_archive(str(tmp_path))
    assert refusal.value.code == "not_read"


def test_one_archiver_at_a_time_and_what_it_left_unfinished_is_wiped(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path)
    with place.held():
        write(place.begin("b1"))
        with pytest.raises(Refused, match="in use"), LocalPlace(tmp_path).held():
            pass
    assert list((tmp_path / places.WRITING).glob("batch=*"))

    with place.held():
        assert not list((tmp_path / places.WRITING).glob("batch=*"))


@pytest.mark.parametrize("is_another", [True, False])
def test_below_a_mount_that_has_vanished_no_batch_is_finished(tmp_path: Path, is_another: bool) -> None:
    """Spark would make the directories anew, where nobody looks for them."""
    root, place = tmp_path / "archive", LocalPlace(tmp_path / "archive")
    with place.held():
        where = place.begin("b1")
        root.rename(tmp_path / "unmounted")
        root.mkdir()
        with pytest.raises(Refused, match="is not the directory any more"):
            place.begin("b2")
        if is_another:
            other = root / places.WRITING
            other.mkdir()
            (other / places.LOCK).touch()
        write(where)
        with pytest.raises(Refused, match="is not the directory any more"):
            place.finish("b1")

    assert not list(root.glob("batch=*"))


def test_a_root_that_cannot_be_written_to_is_said_in_one_line(tmp_path: Path,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    def held(directory: Path) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(directory))
    monkeypatch.setattr(process, "held", held)

    with pytest.raises(Refused, match="cannot be written to: Read-only file system; name another one"), \
            LocalPlace(tmp_path).held():
        pass


@pytest.mark.parametrize(("root", "path"), [
    ("/a/b", "/a/b"), ("file:/a/b", "/a/b"), ("file:///a/b", "/a/b"), ("FILE:///a", "/a"), ("s3a://b/c", None),
    ("hdfs://h:1/x", None), ("memory:/x", None)])
def test_which_roots_are_local(root: str, path: str | None) -> None:
    assert local_path(root) == (None if path is None else Path(path))
    assert isinstance(place_of(root), RemotePlace if path is None else LocalPlace)


def test_a_relative_root_is_one_of_this_directory() -> None:
    assert local_path("archive/x") == Path.cwd() / "archive" / "x"


@pytest.mark.parametrize("root", ["", "/a/*", "s3a://b/{c}", "a\\b", "/a/[b]", "/a?"])
def test_no_root_and_what_spark_takes_for_a_pattern_are_refused(root: str) -> None:
    with pytest.raises(Refused, match="root"):
        local_path(root)


@pytest.mark.parametrize("root", ["file:archive", "file:", "file:../x", "file://archive/x", "file://", "FILE:x"])
def test_a_uri_of_no_absolute_path_is_refused(root: str) -> None:
    with pytest.raises(Refused, match="is no absolute path; say /srv/archive or file:///srv/archive"):
        local_path(root)


def test_elsewhere_a_batch_is_a_directory_of_its_own() -> None:
    assert RemotePlace("s3a://b/c/").begin("b1") == "s3a://b/c/batch=b1"


def test_a_root_to_read_must_be_an_archive(tmp_path: Path) -> None:
    for root, words in ((tmp_path / "no", "is no directory"), (tmp_path, "holds no archive yet")):
        with pytest.raises(Refused, match=words):
            check_archive(str(root))
    (tmp_path / "batch=b1").mkdir()

    assert check_archive(str(tmp_path)) == f"file://{tmp_path}"
    assert check_archive("s3a://b/c") == "s3a://b/c"
