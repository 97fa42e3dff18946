"""What may not be read or written is said in a line that names it, whichever verb meets it, and nothing of it is
left out in silence. Root may do everything, so the verbs run in processes that have given that up."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from archive.test_arrow import OLD, write_old
from archive.test_layout import TASKS, rows_of
from skuld_py.archive.arrow_site import Site
from skuld_py.archive.drafts import DIRECTORY as WRITING
from skuld_py.archive.drafts import LOCK
from skuld_py.archive.live import live
from skuld_py.archive.manifest import DIRECTORY

AS_ANYBODY = """
import ctypes, os, sys
drop_from_bounding_set, (override_access, override_search) = 24, (1, 2)
for capability in (override_access, override_search):
    ctypes.CDLL(None).prctl(drop_from_bounding_set, capability, 0, 0, 0)
os.execv(sys.executable, [sys.executable, "-m", "skuld_py", *sys.argv[1:]])
"""
COUNT, LIST, FILES = ("history", "ROOT", "--count"), ("history", "ROOT"), ("history", "files", "ROOT")
RESTORE, ARCHIVE, COMPACT = ("history", "restore", "ROOT"), ("archive", "ROOT"), ("archive", "compact", "ROOT")


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A small archive, whose modes are mended in the end."""
    made = tmp_path / "above" / "archive"
    with Site.held(made) as site:
        site.store.begin()
        site.store.write("b", rows_of(TASKS[:6]))
    yield made
    open_up(made.parent)


def open_up(path: Path) -> None:
    """With all that is below."""
    path.chmod(0o755)
    for below in path.iterdir() if path.is_dir() else ():
        open_up(below)


def protect(root: Path) -> None:
    """It may only be read."""
    for path in (*(path for path in root.rglob("*") if path.is_dir()), root):
        path.chmod(0o555)


def ran(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", AS_ANYBODY, *(str(root) if word == "ROOT" else word for word in words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", [COUNT, FILES, RESTORE, ARCHIVE, COMPACT])
def test_a_root_that_cannot_be_reached_is_said_in_a_line(root: Path, words: tuple[str, ...]) -> None:
    root.parent.chmod(0)

    said = ran(root, *words)

    assert said.returncode == 1 and said.stdout == ""
    assert said.stderr.startswith(f"error: root: {root} cannot be ") and said.stderr.count("\n") == 1
    assert ": Permission denied; " in said.stderr


@pytest.mark.parametrize(("closed", "words", "said"), [
    (".", COUNT, "root: ROOT cannot be read: Permission denied; mend its permissions"),
    (DIRECTORY, COUNT, f"root: ROOT/{DIRECTORY} cannot be read: Permission denied; mend its permissions"),
    (DIRECTORY, ARCHIVE, f"root: ROOT/{DIRECTORY} cannot be read: Permission denied; mend its permissions"),
    (f"{DIRECTORY}/{1:020}.json", COUNT, f"root: ROOT/{DIRECTORY}/{1:020}.json cannot be read: Permission"),
    ("FILE", LIST, "root: ROOT/FILE cannot be read: Permission denied; let this user read it, and enter the"),
    ("batch=20251101/queue=q", COUNT, "root: ROOT/batch=20251101/queue=q cannot be read: Permission denied;"),
])
def test_what_may_not_be_read_is_named(root: Path, closed: str, words: tuple[str, ...], said: str) -> None:
    if closed.startswith("batch"):
        (root / closed).mkdir(parents=True)
    file = live(root).files[0].path
    (root / closed.replace("FILE", file)).chmod(0)

    answer = ran(root, *words)

    assert answer.returncode == 1 and answer.stdout == "" and answer.stderr.count("\n") == 1, answer.stderr
    assert said.replace("ROOT", str(root)).replace("FILE", file) in answer.stderr


@pytest.mark.parametrize("words", [ARCHIVE, COMPACT])
def test_a_root_that_may_not_be_written_to_is_said_in_a_line(root: Path, words: tuple[str, ...]) -> None:
    protect(root)

    said = ran(root, *words).stderr

    assert said.startswith(f"error: root: {root} cannot be written to: Permission denied; name another one, or")
    assert said.count("\n") == 1


def test_what_compaction_may_not_read_or_write_is_named(root: Path) -> None:
    with Site.held(root) as site:
        site.store.begin()
        site.store.write("later", rows_of(TASKS[3:6], digest=6))
        for number in (0, 3):
            site.store.write(f"b{number}", rows_of([TASKS[number]], digest=7))
        site.store.settled(b"".join(bytes(task.id) for task in TASKS[:6]))
        site.store.end(True)
    small = [file for file in live(root).files if file.queue == TASKS[0].queue]
    (root / small[0].path).chmod(0)
    unread = ran(root, *COMPACT)
    (root / small[0].path).chmod(0o644)
    (root / small[0].path).parent.chmod(0o555)
    unwritten = ran(root, *COMPACT)

    assert len(small) == 2
    assert (unread.returncode, unread.stderr) == (1, "")
    assert f"not compacted: root: {root / small[0].path} cannot be read: Permission denied; let" in unread.stdout
    assert unwritten.returncode == 1 and unwritten.stderr.count("\n") == 1
    assert f": Permission denied at {root / Path(small[0].path).parent}/" in unwritten.stderr
    assert "; let this user write there; nothing is lost" in unwritten.stderr


def test_an_archive_that_may_only_be_read_is_read(root: Path) -> None:
    protect(root)

    assert ran(root, *COUNT).stdout == "6\n"
    assert ran(root, *FILES).returncode == 0


def test_what_another_user_is_about_to_write_is_in_nobodys_way(root: Path) -> None:
    others = root / WRITING / "others"
    others.mkdir()
    (others / LOCK).touch()
    others.chmod(0)

    answer = ran(root, *COMPACT)

    assert (answer.returncode, answer.stderr) == (0, "")
    assert [path.name for path in (root / WRITING).iterdir()] == ["others"]


def test_files_of_an_earlier_layout_are_found_in_their_order(tmp_path: Path) -> None:
    for batch in ("2", "10", "1"):
        write_old(tmp_path, batch)
    (tmp_path / "batch=3").touch()
    (tmp_path / "batch=4" / "other").mkdir(parents=True)

    found = live(tmp_path).old

    assert [path.split("/")[0] for path in found] == [f"batch={batch}" for batch in ("1", "10", "2")
                                                      for _ in OLD]
    assert set(found) == {os.path.relpath(path, tmp_path) for path in tmp_path.rglob("*.parquet")}
    assert list(found) == sorted(found, key=lambda path: path.split("/"))
