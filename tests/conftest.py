"""What holds for every test, wherever the run was started from.

A shell starts what it puts into the background with SIGINT ignored, and so does many a build server; Python leaves
it at that, and so do all processes that it starts. Tests that interrupt would wait for ever.

Hypothesis fails an example that takes more than 200 ms, if nobody says otherwise. How long work takes that is only
CPU says how busy the machine is, so there is no such limit here.

Where tests run in several processes, those of a file stay together; and so do all that start Spark in their own
process, in their order, for a process has one Spark and the first one to want it decides how it is.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from hypothesis import settings

HERE = Path(__file__).parent
OF_SPARK = ("archive/", "demo/test_census.py", "system/test_archive.py", "worker/")


def pytest_configure() -> None:
    """Let Ctrl-C be heard, here and in all processes that the tests start; and examples take their time."""
    settings.register_profile("unhurried", deadline=None)
    settings.load_profile("unhurried")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say which tests are to run in one process."""
    for item in items:
        file = item.path.relative_to(HERE).as_posix()
        item.add_marker(pytest.mark.xdist_group("spark" if file.startswith(OF_SPARK) else file))
