"""Tests that want the same ports, files or Spark run in one process, one after the other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).parent.parent.parent
LISTED = ("tests/tidy/test_names.py", "tests/worker", "tests/archive")
NOTING = """
import os

def pytest_runtest_protocol(item):
    with open(os.path.join(os.environ["NOTES"], os.environ["PYTEST_XDIST_WORKER"]), "a") as notes:
        print(item.nodeid.split("::")[0], file=notes)
    return True
"""


def test_two_processes_get_whole_files_and_one_gets_all_of_spark(tmp_path: Path) -> None:
    """Two processes share these files out in earnest and note whose turn a test is, instead of running it."""
    (tmp_path / "noting.py").write_text(NOTING)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "noting", *LISTED]
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}:{TOP}", "NOTES": str(tmp_path)}
    subprocess.run(command, cwd=TOP, env=environment, check=True, capture_output=True)
    of_one, of_other = (set((tmp_path / worker).read_text().split()) for worker in ("gw0", "gw1"))

    assert of_one and of_other and not of_one & of_other
    assert {"tests/tidy/test_names.py"} in (of_one, of_other)
