"""Writers below a root, each in a process of its own, that are killed before one of their steps.

A step is what changes a file or a directory, as Python's audit events tell of it. Reading is none; nor is what
Arrow writes into a draft, which stands between two steps.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from archive.ended import NAMES, NOON_MS, plain
from skuld_py.archive import delta_log, manifest
from skuld_py.archive.arrow_site import Site
from skuld_py.archive.rows import row_of

TASKS = [plain(number, NAMES[number % 2], at_ms=NOON_MS) for number in range(24)]
FIRST, LATER = TASKS[:20], TASKS[16:]
"""Some of the later ones stand in the archive already, and have changed since."""
SNAPSHOT_EVERY = 4
"""So that the steps of a snapshot are among those that are tried."""
_STEPS = ("os.rename", "os.remove", "os.link", "os.mkdir", "os.rmdir")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def fill(root: Path) -> None:
    """What the nodes have deleted stands in many small files; a few more are still open."""
    with Site.held(root, begins_delta=True) as site:
        site.store.begin()
        for number in range(0, len(FIRST), 3):
            site.store.write(f"b{number}", [row_of(task, digest=5) for task in FIRST[number : number + 3]])
        site.store.settled(b"".join(bytes(task.id) for task in FIRST[:15]))
        site.store.end(is_whole=False)


def compact(root: Path) -> None:
    with Site.held(root) as site:
        site.compact(grace_ms=0)


def archive(root: Path) -> None:
    """A batch of which some rows replace others; then all is deleted by the nodes."""
    with Site.held(root) as site:
        site.store.begin()
        site.store.write("later", [row_of(task, digest=6) for task in LATER])
        site.store.settled(b"".join(bytes(task.id) for task in LATER))
        site.store.end(is_whole=True)


def killed(work: Callable[[Path], None], root: Path, step: int) -> bool:
    """Whether it was killed before its step of this number; else it took fewer, and came to its end."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    child = context.Process(target=_dying, args=(work, root, step))
    child.start()
    child.join()
    assert child.exitcode in (0, -signal.SIGKILL), child.exitcode
    return child.exitcode != 0


def _dying(work: Callable[[Path], None], root: Path, step: int) -> None:
    manifest.SNAPSHOT_EVERY = delta_log.SNAPSHOT_EVERY = SNAPSHOT_EVERY
    left = iter(range(step))

    def on_event(root: str, event: str, arguments: tuple[object, ...]) -> None:
        is_step = event in _STEPS or (event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITES)
        is_below = any(isinstance(each, str | Path) and str(each).startswith(root) for each in arguments) or (
            event in _STEPS and isinstance(arguments[-1], int) and arguments[-1] > 0)
        if is_step and is_below and next(left, None) == step - 1:
            os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(partial(on_event, str(root)))
    work(root)
