"""What holds for every test, wherever the run was started from.

A shell starts what it puts into the background with SIGINT ignored, and so does many a build server; Python leaves
it at that, and so do all processes that it starts. Tests that interrupt would wait for ever.

Hypothesis fails an example that takes more than 200 ms, if nobody says otherwise. How long work takes that is only
CPU says how busy the machine is, so there is no such limit here.

Where tests run in several processes, those of a file stay together; and so do all that start Spark in their own
process, in their order, for a process has one Spark and the first one to want it decides how it is; and the other
ones of workers, and those of the gateway, which share a cluster each. The scheduler is a class here, not xdist's
groups by mark, for pytest 9.2 ignores those in silence (pytest-xdist issue 1386). What takes long comes first, so
that no process is left alone with it in the end.

Tests that start real processes mostly wait, for elections, leases and sessions; others compute. Every second
process takes files of the first kind while there are any; the others those of the second kind. So cores are busy
from the beginning to the end. Rejected: first all that take long (those mostly wait, and leave cores idle); to
have those that compute give way (they start real processes in the end, which then starved beside those of the
others).

The tests of every day are those not marked ``slow``, and of each adapter one that is, marked ``smoke``. That there
are others is told at the end, by pytest's own count too, which xdist would keep to itself. ``scripts/test --slow``
are those others, and what hypothesis draws, with as many examples as it wants.

What is played in bulk (all deviations of a schedule, a campaign's seeds, what hypothesis draws) is shared out:
``--share 16`` plays a sixteenth, and the number of commits says which, so that sixteen commits play all. Every
part has been played before, so what fails is news. Of what takes minutes and has likes, marked ``in_turn`` with
the name of the family, it plays one.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

SPARK, WORKERS, GATEWAY = "spark", "workers", "gateway"
TOGETHER = {
    SPARK: ("tests/archive/", "tests/datasource/test_spark.py", "tests/demo/test_census.py",
            "tests/system/test_archive.py", "tests/system/test_datasource.py", "tests/worker/test_spark_kinds.py",
            "tests/worker/test_spark_session.py"),
    WORKERS: ("tests/worker/",),
    GATEWAY: ("tests/gateway/",)}
"""What one process has all of; a file belongs to the first that it fits."""
ALONE = ("tests/worker/test_census_flow.py", "tests/worker/test_flow_kills.py",
         "tests/worker/test_spark_worker.py")
"""Of these, those that take minutes and start Spark in no process of the tests: a cluster is started for each."""
LONGEST = (
    WORKERS, SPARK, "tests/worker/test_spark_worker.py", "tests/machines/test_machines.py", GATEWAY,
    "tests/installs/test_spark_range.py", "tests/installs/test_wheel.py", "tests/simulation/test_small.py",
    "tests/simulation/test_campaign.py", "tests/system/test_upgrade.py", "tests/worker/test_census_flow.py",
    "tests/worker/test_flow_kills.py", "tests/system/test_moves.py", "tests/system/test_stopping.py",
    "tests/system/test_sealed_zookeeper.py", "tests/system/test_standalone.py", "tests/system/test_catalogue.py",
    "tests/system/test_coordination.py", "tests/cli/test_readme_session.py", "tests/system/test_lives.py",
    "tests/simulation/test_coordination_talking.py", "tests/system/test_limits.py", "tests/system/test_kill.py",
    "tests/manual/test_session.py", "tests/simulation/test_covering.py", "tests/client/test_verbs.py",
    "tests/cli/test_cli.py", "tests/faults/test_smoke.py", "tests/system/test_scaling.py",
    "tests/system/test_dependencies.py", "tests/mutants/test_mutants.py", "tests/system/test_session.py",
    "tests/system/test_damage.py", "tests/system/test_placing.py")
"""What takes longest, in this order; all others take less, and come by how many tests they have."""
LEFT_OUT = pytest.StashKey[int]()
TOP = Path(__file__).resolve().parents[1]

settings.register_profile("unhurried", deadline=None)
settings.register_profile("few", deadline=None, max_examples=25)
settings.load_profile("unhurried")


class TogetherScheduling(LoadScopeScheduling):
    """Gives a process a whole file at a time, and all that stay together to one; the longest first."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::", 1)[0]
        if file in ALONE:
            return file
        return next((name for name, files in TOGETHER.items() if file.startswith(files)), file)

    def _assign_work_unit(self, node: Any) -> None:
        is_to_wait = _is_to_wait(node.gateway.id)
        first = min(self.workqueue, key=lambda scope: (_starts_processes(scope) is not is_to_wait, _place(scope)))
        self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)


def _place(scope: str) -> int:
    return LONGEST.index(scope) if scope in LONGEST else len(LONGEST)


@cache
def _starts_processes(scope: str) -> bool:
    return scope in TOGETHER or scope.startswith("tests/system/") or "mark.cluster" in (TOP / scope).read_text()


def _is_to_wait(process: str) -> bool:
    """Whether a process of xdist's, gw0 or gw1 and so on, takes tests that wait before others."""
    return int(process.removeprefix("gw")) % 2 == 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> TogetherScheduling:
    """Take the scheduler above, whatever --dist says."""
    return TogetherScheduling(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    """What a test expects may be a file that it can write itself."""
    parser.addoption("--rewrite", action="store_true",
                     help="write the files of what is expected anew, from what is found; look at the difference")
    parser.addoption("--share", type=int, default=1, metavar="N",
                     help="of what is played in bulk play an Nth, another one with each commit")


def pytest_configure() -> None:
    """Let Ctrl-C be heard, here and in all processes that the tests start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def share(pytestconfig: pytest.Config) -> range:
    """The numbers that are played of what is played in bulk."""
    return _share_of(pytestconfig)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of the tests that run only since hypothesis draws for them, keep a share. It marks them before. Of each
    family, keep the one whose turn it is."""
    share = _share_of(config)
    kept = [item for item in items if item.get_closest_marker("slow") is not None
            or item.get_closest_marker("hypothesis") is None or crc32(item.nodeid.encode()) in share]
    chosen = {*kept}
    if share.step > 1:
        chosen -= {*_out_of_turn(kept)}
        kept = [item for item in kept if item in chosen]
    left_out = [item for item in items if item not in chosen]
    items[:] = kept
    if left_out:
        config.hook.pytest_deselected(items=left_out)


def _out_of_turn(items: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
    families: dict[str, list[pytest.Item]] = {}
    for item in items:
        if (mark := item.get_closest_marker("in_turn")) is not None:
            families.setdefault(mark.args[0], []).append(item)
    for family in families.values():
        del family[_commits() % len(family)]
        yield from family


def _share_of(config: pytest.Config) -> range:
    parts = config.getoption("share")
    return range(_commits() % parts if parts > 1 else 0, sys.maxsize, parts)


@cache
def _commits() -> int:
    """How many there are; so that a share is the same one whenever a commit is tested."""
    words = ("git", "rev-list", "--count", "HEAD")
    return int(subprocess.run(words, cwd=TOP, check=True, capture_output=True).stdout)


# -- what was left out -------------------------------------------------------------------------------


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Count; a process of xdist's sends its count home."""
    config = items[0].config
    config.stash[LEFT_OUT] = config.stash.get(LEFT_OUT, 0) + len(items)
    if hasattr(config, "workeroutput"):
        config.workeroutput["left out"] = config.stash[LEFT_OUT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A process of xdist's has ended; each collects all tests, so each leaves out the same."""
    output = getattr(node, "workeroutput", {})
    node.config.stash[LEFT_OUT] = max(node.config.stash.get(LEFT_OUT, 0), output.get("left out", 0))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say that the run was not of everything, and what is."""
    count = config.stash.get(LEFT_OUT, 0)
    if count and "slow" in config.option.markexpr:
        terminalreporter.stats.setdefault("deselected", [SimpleNamespace() for _ in range(count)])
        terminalreporter.write_line(f"{count} tests were left out; scripts/test --all runs them, too.")
