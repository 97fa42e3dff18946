"""What holds for every test, wherever the run was started from.

A shell starts what it puts into the background with SIGINT ignored, and so does many a build server; Python leaves
it at that, and so do all processes that it starts. Tests that interrupt would wait for ever.

Hypothesis fails an example that takes more than 200 ms, if nobody says otherwise. How long work takes that is only
CPU says how busy the machine is, so there is no such limit here.

Where tests run in several processes, those of a file stay together; and so do all that start Spark in their own
process, in their order, for a process has one Spark and the first one to want it decides how it is. The scheduler
is a class here, not xdist's groups by mark, for pytest 9.2 ignores those in silence (pytest-xdist issue 1386).
"""

from __future__ import annotations

import signal

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

OF_SPARK = ("tests/archive/", "tests/demo/test_census.py", "tests/system/test_archive.py", "tests/worker/")


class TogetherScheduling(LoadScopeScheduling):
    """Gives a process a whole file at a time, and all files of Spark to one."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::", 1)[0]
        return "spark" if file.startswith(OF_SPARK) else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> TogetherScheduling:
    """Take the scheduler above, whatever --dist says."""
    return TogetherScheduling(config, log)


def pytest_configure() -> None:
    """Let Ctrl-C be heard, here and in all processes that the tests start; and examples take their time."""
    settings.register_profile("unhurried", deadline=None)
    settings.load_profile("unhurried")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)

