"""The demo: ZooKeeper, three nodes and a worker as real processes; a census as a workflow; a node dies in the
middle of it.

What it shows can be checked: the totals that Spark found are put beside those of a plain count, and the exit
status is 1 when they differ. Every task is listed with its fencing token and how often it was claimed.

Invariants:

* Nothing is left behind: every process is tied to this one, and the directory is temporary unless ``keep``
  names one. The list of all conflicts is the exception, when there are more than fit on the screen.
* A task whose claim was lost is counted once: only the result of the completing claim is read.
* It ends, one way or the other, within ``LIMIT_S``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any

import attrs

import skuld_py
from skuld_py.client.client import Client
from skuld_py.demo import census, story
from skuld_py.demo.readiness import what_is_missing
from skuld_py.demo.screen import Screen
from skuld_py.embedded import process
from skuld_py.embedded.local import LocalCluster
from skuld_py.errors import Refused, SkuldError
from skuld_py.model.ids import partition_of
from skuld_py.model.task import Task
from skuld_py.workflow.graph.rails import drawing

WORKFLOW = "census"
APP = "skuld_py.demo.census"
SLOTS = 8
"""One for each step, and some more for reading."""
REST = {"join": "all is read; joining the tables", "duplicates": "looking for classes that differ",
        "report": "writing the report, and a plot"}
STEPS = ("read", *REST)
QUICK_JAVA = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}
"""A JVM that lives for a minute never earns back what its optimising compiler costs."""
LIMIT_S = 300.0
LOOK_S = 0.25
DOWN_S, DOWN_S_MAX = 3.0, 15.0
INTERRUPTED = 130


def run_demo(input: Path | None, *, nodes: int = 3, keep: Path | None = None,
             as_json: bool = False) -> int:
    """Run it; the exit status: 0 when the census agrees with the independent count."""
    screen = Screen(as_json)
    with _terminated_like_interrupted():
        try:
            source = (input if input is not None else _jars_of_spark()).resolve()
            archives = census.find_archives(source)
            with _directory(keep) as directory:
                return _Demo(screen, directory, source, archives, nodes, is_kept=keep is not None).run()
        except KeyboardInterrupt:
            screen.say("interrupted; everything is stopped")
            return INTERRUPTED


@attrs.define
class _Victim:
    """The node that is killed: not yet, dead, replaced as leader, and back."""

    index: int
    address: str
    died_at: float = 0.0
    is_replaced: bool = False
    is_back: bool = False


class _Demo:
    """One run. Its parts are told in order by ``run``."""

    def __init__(self, screen: Screen, directory: Path, source: Path, archives: list[Path], nodes: int, *,
                 is_kept: bool) -> None:
        self._screen = screen
        self._directory = directory
        self._source = source
        self._flow = census.workflow(WORKFLOW, str(source), str(directory)).definition()
        self._archives = archives
        self._is_kept = is_kept
        self._cluster = LocalCluster(directory / "cluster", nodes, replicas=min(3, nodes), session_ms=2000,
                                     what_is_missing=what_is_missing)
        self._victim: _Victim | None = None
        self._deadline = time.monotonic() + LIMIT_S

    def run(self) -> int:
        screen = self._screen
        screen.say(f"census of {len(self._archives)} archives in {self._source}")
        screen.say("starting ZooKeeper and the nodes")
        with self._cluster as cluster, contextlib.ExitStack() as held:
            screen.good(f"the cluster serves: {', '.join(cluster.addresses)}")
            worker = cluster.start_worker("", APP, "--workflows", "--slots", str(SLOTS), "--lease", "15s",
                                          "--grace", "0s", environment=QUICK_JAVA)
            client = held.enter_context(Client(cluster.addresses))
            client.submit_workflow(self._flow)
            screen.say(f"workflow {WORKFLOW} is submitted, and a worker is starting:")
            screen.drawing(drawing(self._flow))
            expected = census.count_independently(self._archives)
            screen.say(f"counted independently meanwhile: {expected.entries:,} entries")
            self._watch_reading(client, worker, min(census.GROUPS, len(self._archives)), expected.entries)
            reported = self._watch_rest(client, worker)
            files = {Path(file.path).name: Path(file.path) for file in skuld_py.output_files(reported)}
            summary = census.Summary.from_json(files["report.json"].read_text())
            self._bring_back()
            tasks = [task for step in STEPS for task in self._look(client, worker, step)]
            leaders = {row.partition: row.leader for row in client.status().partitions}
        screen.say("all processes are stopped")
        return self._tell(summary, expected, tasks, leaders)

    # -- watching ------------------------------------------------------------------------------

    def _watch_reading(self, client: Client, worker: subprocess.Popen[bytes], groups: int, entries: int) -> None:
        with self._screen.bars("tables", "entries"):
            while True:
                tasks = self._look(client, worker, "read")
                done = [task for task in tasks if task.is_completed]
                self._screen.count({"tables": (len(done), groups),
                                    "entries": (sum(_result(task)["entries"] for task in done), entries)})
                if len(done) == groups:
                    return
                if self._victim is None and 2 * len(done) >= groups and len(self._cluster.addresses) > 1:
                    self._kill_one(client, tasks)
                self._follow_victim(client)
                time.sleep(LOOK_S)

    def _watch_rest(self, client: Client, worker: subprocess.Popen[bytes]) -> Task:
        """All that was read is there: what comes of it, until the workflow is complete; the report."""
        said: list[str] = []
        while (status := client.await_workflow(WORKFLOW, timeout_s=LOOK_S)).is_live:
            for step, words in REST.items():
                if step not in said and self._look(client, worker, step):
                    said.append(step)
                    self._screen.say(words)
            self._follow_victim(client)
        if status.state != "completed":
            raise Refused("demo_failed", f"the workflow was killed: {status.reason}")
        reported, = self._look(client, worker, "report")
        return reported

    def _look(self, client: Client, worker: subprocess.Popen[bytes], step: str) -> list[Task]:
        """The tasks of a step; raises when waiting longer is no use."""
        log = self._cluster.worker_log(worker)
        if worker.poll() is not None:
            raise Refused("demo_failed", f"the worker ended with status {worker.returncode}. The end of its"
                          f" log:\n{process.tail(log)}")
        if time.monotonic() > self._deadline:
            raise Refused("demo_failed", f"not done within {LIMIT_S:.0f} s. The end of the worker's log:\n"
                          f"{process.tail(log)}")
        return client.get_many([task.id for task in client.list(self._flow.queue(step))])

    # -- the victim ----------------------------------------------------------------------------

    def _kill_one(self, client: Client, tasks: list[Task]) -> None:
        """The node that leads most of what is not read yet."""
        view = client.status()
        leads = {node.name: node.leads for node in view.nodes}
        leaders = {row.partition: row.leader for row in view.partitions}
        left = Counter(leaders[partition_of(task.id, len(leaders))] for task in tasks if not task.is_completed)
        address = max(self._cluster.addresses, key=lambda address: (left[address], leads.get(address, 0)))
        self._victim = _Victim(self._cluster.addresses.index(address), address, time.monotonic())
        self._screen.alarm(f"kill -9 of node {address}, which leads {leads.get(address, 0)} partitions"
                           f" (process {self._cluster.node_process_id(self._victim.index)})")
        self._cluster.kill_node(self._victim.index)

    def _follow_victim(self, client: Client) -> None:
        victim = self._victim
        if victim is None or victim.is_back:
            return
        gone_s = time.monotonic() - victim.died_at
        if not victim.is_replaced:
            with contextlib.suppress(SkuldError):
                view = client.status()
                leaders = {row.leader for row in view.partitions}
                is_live = {node.name for node in view.nodes if node.is_live}
                if leaders <= is_live - {victim.address}:
                    victim.is_replaced = True
                    self._screen.good(f"{gone_s:.1f} s later the others lead all partitions; work goes on")
        if gone_s > (DOWN_S if victim.is_replaced else DOWN_S_MAX):
            self._bring_back()

    def _bring_back(self) -> None:
        victim = self._victim
        if victim is None or victim.is_back:
            return
        self._screen.say(f"starting node {victim.address} again, on the data it had")
        self._cluster.start_node(victim.index)
        victim.is_back = True
        self._screen.good(f"node {victim.address} is back")

    # -- the end -------------------------------------------------------------------------------

    def _tell(self, summary: census.Summary, expected: census.Totals, tasks: list[Task],
              leaders: dict[int, str]) -> int:
        screen = self._screen
        story.tell_tasks(screen, tasks, leaders)
        story.tell_packages(screen, summary)
        story.tell_conflicts(screen, summary, self._conflicts_file)
        is_equal = story.tell_totals(screen, summary.totals, expected)
        if self._is_kept:
            screen.say(f"kept in {self._directory}: cluster/ (data and logs), tables/ and join/ (Parquet),"
                       " duplicates/, report/ (JSON, and a plot)")
        if is_equal:
            screen.good("Spark's census and the independent count agree")
            return 0
        screen.alarm("Spark's census and the independent count DIFFER")
        return 1

    def _conflicts_file(self) -> Path:
        if self._is_kept:
            return self._directory / "conflicts.tsv"
        descriptor, name = tempfile.mkstemp(prefix="skuld-census-", suffix=".tsv")
        os.close(descriptor)
        return Path(name)


def _result(task: Task) -> dict[str, Any]:
    result: dict[str, Any] = task.result
    return result


def _jars_of_spark() -> Path:
    """Where PySpark has what it puts on its class path."""
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).resolve().parent / "jars"


@contextlib.contextmanager
def _directory(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="skuld-demo-", ignore_cleanup_errors=True) as name:
        yield Path(name).resolve()


@contextlib.contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM takes the same clean way out as Ctrl-C."""
    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
