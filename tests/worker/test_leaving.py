"""A worker's process ends, whatever its tasks have left running in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from skuld_py.embedded import python
from skuld_py.worker import start

LEFT = {
    "a thread": "threading.Thread(target=never.wait, name='stray', daemon=False).start()",
    "a pool": "ThreadPoolExecutor(1).submit(never.wait)",
}
PROGRAM = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
from skuld_py.worker.leaving import leave

never = threading.Event()
thread = threading.Thread(target=lambda: {left}, daemon=True)
thread.start()
thread.join()
leave(7, after_s=0.2)
sys.exit(7)
"""


@pytest.mark.parametrize("what", LEFT)
def test_what_a_task_left_running_does_not_keep_the_process(what: str) -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM.format(left=LEFT[what])], env=python.environment(),
                           capture_output=True, timeout=60, check=False)

    assert ended.returncode == 7, ended.stderr
    assert b"is ended: " + (b"stray" if what == "a thread" else b"a pool") in ended.stderr


def test_a_process_in_which_nothing_is_left_ends_by_itself() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM.format(left="0").replace("0.2", "600")],
                           env=python.environment(), capture_output=True, timeout=60, check=False)

    assert (ended.returncode, ended.stderr) == (7, b"")


@pytest.mark.parametrize("status", [0, None])
def test_the_process_of_a_worker_that_ends_is_left_however_that_ends(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int | None) -> None:
    left: list[int] = []

    class Broken:
        def __init__(self, *args: Any, **options: Any) -> None:
            pass

        def run(self) -> int:
            if status is None:
                raise SystemExit(9)
            return status
    monkeypatch.setattr(start, "Worker", Broken)
    monkeypatch.setattr(start, "leave", left.append)
    monkeypatch.setattr(start, "load_apps", lambda *args, **options: None)
    monkeypatch.setenv("SKULD_NODES", "127.0.0.1:1")
    try:
        start.run_worker(["127.0.0.1:1"], "lines", [], directory=tmp_path)
    except SystemExit:
        assert status is None
    assert left == [1 if status is None else status]
