"""Whoever writes to an archive is killed before each single step: readers see each task once all the while, and
the next writer takes away what is left and comes to the same end."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from archive.dying import FIRST, LATER, SNAPSHOT_EVERY, TASKS, archive, compact, fill, killed
from archive.test_delta import in_table
from archive.test_layout import ids_of, kept
from skuld_py.archive import delta_log, manifest
from skuld_py.archive.live import live
from skuld_py.archive.manifest import DIRECTORY, Manifest
from skuld_py.model.task import Task

pytestmark = pytest.mark.slow
LEAST_STEPS = 20
SHARES = 4
"""Steps are tried in so many tests: each step is a process of its own, and a busy machine takes seconds for it."""


@pytest.fixture(scope="module", autouse=True)
def _often_short() -> Iterator[None]:
    """As in the processes that are killed."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (manifest, delta_log):
            patch.setattr(module, "SNAPSHOT_EVERY", SNAPSHOT_EVERY)
        yield


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("filled") / "archive"
    fill(made)
    return made


@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize(("work", "after"), [(compact, FIRST), (archive, TASKS)])
def test_killed_before_any_step_it_loses_nothing_doubles_nothing_and_leaves_nothing(
        filled: Path, tmp_path: Path, work: Callable[[Path], None], after: list[Task], share: int) -> None:
    root = tmp_path / "archive"
    for step in count(1 + share, SHARES):
        shutil.copytree(filled, root)
        was_killed = killed(work, root, step)
        assert kept(root) in (ids_of(FIRST), ids_of(after)), step
        seen = in_table(root)
        assert sorted(seen) in (ids_of(FIRST), ids_of(after)), step

        work(root)

        assert kept(root) == ids_of(after) == sorted(in_table(root)), step
        state = Manifest(root).refresh()
        assert {str(path.relative_to(root)) for path in root.rglob("*.parquet") if "_delta_log" not in path.parts
                } == {*state.files, *state.removed}, step
        assert not list((root / "_writing").iterdir()) and not list((root / DIRECTORY).glob(".*")), step
        assert work is not compact or not state.removed, step
        shutil.rmtree(root)
        if not was_killed:
            break
    assert step > LEAST_STEPS


def test_the_same_rows_stand_there_however_it_was_killed(filled: Path, tmp_path: Path) -> None:
    """What has changed since it was archived first is there as it is now."""
    root = tmp_path / "archive"
    shutil.copytree(filled, root)
    killed(archive, root, LEAST_STEPS)
    archive(root)

    assert sum(file.rows for file in live(root).files) == len(TASKS)
    assert len(LATER) + len(FIRST) > len(TASKS)
