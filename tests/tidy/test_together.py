"""Tests that want the same ports, files or Spark run in one process; and none is left out unseen."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import chain
from pathlib import Path

import attrs
import pytest

TOP = Path(__file__).parent.parent.parent
LISTED = ("tests/tidy/test_names.py", "tests/archive", "tests/datasource/test_spark.py",
          "tests/demo/test_census.py")
NOTING = """
import os

def pytest_runtest_protocol(item):
    with open(os.path.join(os.environ["NOTES"], os.environ["PYTEST_XDIST_WORKER"]), "a") as notes:
        print(item.nodeid.split("::")[0], file=notes)
    return True
"""


@attrs.frozen
class Ran:
    """The files that each process had tests of, and what was said in the end."""

    files: tuple[set[str], set[str]]
    told: str


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Two processes share these files out in earnest and note whose turn a test is, instead of running it."""
    notes = tmp_path_factory.mktemp("notes")
    (notes / "noting.py").write_text(NOTING)
    command = [sys.executable, "-m", "pytest", "-n", "2", "-m", "not slow", "-p", "noting", *LISTED]
    environment = os.environ | {"PYTHONPATH": f"{notes}:{TOP}", "NOTES": str(notes)}
    told = subprocess.run(command, cwd=TOP, env=environment, check=True, capture_output=True, text=True).stdout
    of_one, of_other = (set((notes / worker).read_text().split()) for worker in ("gw0", "gw1"))
    return Ran((of_one, of_other), told)


def test_two_processes_get_whole_files_and_the_one_that_waits_gets_all_of_spark(ran: Ran) -> None:
    of_one, of_other = ran.files

    assert of_one == {"tests/tidy/test_names.py"}
    assert len(of_other) > 3 and {file.split("/")[1] for file in of_other} == {"archive", "demo"}


def test_how_many_were_left_out_is_told_though_the_tests_ran_elsewhere(ran: Ran) -> None:
    left_out = re.search(r"^(\d+) tests were left out; scripts/test --all runs them, too", ran.told, re.M)

    assert left_out is not None and int(left_out[1]) > 20
    assert f" {left_out[1]} deselected in " in ran.told


def test_what_is_said_to_take_longest_exists(pytestconfig: pytest.Config) -> None:
    here, = (each for each in pytestconfig.pluginmanager.get_plugins() if hasattr(each, "LONGEST"))
    files = [*here.LONGEST, *chain.from_iterable(here.TOGETHER.values()), *here.ALONE]

    assert [file for file in files if file not in here.TOGETHER and not (TOP / file).exists()] == []
