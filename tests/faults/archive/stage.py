"""What a campaign of the archive plays on: nodes whose clocks can be stepped, archivers that are started again
whenever they end, a small disk, and the tasks that ended."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import psutil

from family import family, is_java
from faults.archive.judgement import judged, rows_of, tasks_of_batches
from skuld_py import Client, Retry, SkuldError
from skuld_py.archive.places import WRITING
from skuld_py.embedded.local import LocalCluster
from skuld_py.model.ids import to_text
from skuld_py.runtime.wrong_time import ALLOWED, FILE, YES
from system.conftest import SKEW_MS, await_leaders
from system.small_disk import Disk, a_disk
from system.test_archive_kills import BY_SPARK, PROGRAM

NODES, QUEUES, LOAD, EACH = 3, ("reports", "007"), 500, 20
"""Each so manieth task of a load is cancelled, and each so manieth of the others fails."""
LEASE_S = 30
GOES_ON = ("--every", "1s", "--wait", "5s")
KEEP_S = 1
ROOMY_KB = 256 << 10
PATIENCE_S = 180.0
LOOK_S = 0.1
ENDS, OPEN = ("completed", "cancelled", "dead"), ("waiting", "claimed", "scheduled", "blocked")


@attrs.define
class Archiver:
    """One that goes on, and is started again when it has ended. ``log``: all that its lives said."""

    command: list[str]
    log: Path
    running: subprocess.Popen[bytes] | None = None

    def ensure(self) -> None:
        """It runs."""
        if self.running is None or self.running.poll() is not None:
            with self.log.open("ab") as log:
                self.running = subprocess.Popen(self.command, stdout=log, stderr=log)

    def kill(self) -> None:
        """At once."""
        if self.running is not None:
            self.running.kill()
            self.running.wait()

    def end(self) -> None:
        """With what is under way."""
        if self.running is not None and self.running.poll() is None:
            self.running.terminate()
            self.running.wait()

    def java(self) -> psutil.Process | None:
        """Its JVM, if it has one."""
        return None if self.running is None else next(iter(family(self.running.pid, is_java)), None)


class Stage:
    """``told``: the tasks that ended. ``root``, ``program``: where archivers write now, and what they run."""

    def __init__(self, place: Path, cluster: LocalCluster, client: Client, disk: Disk, seed: int) -> None:
        self.place = place
        self.cluster = cluster
        self.client = client
        self.disk = disk
        self.chance = random.Random(seed)
        self.told: set[str] = set()
        self.by_spark = place / "by-spark"
        self.root, self.program = disk.root, PROGRAM
        self.archivers = [Archiver(self._command(*GOES_ON), place / f"archiver-{number}.log")
                          for number in range(2)]
        self._loads = 0

    # -- what ends -----------------------------------------------------------------------------

    def load(self, loads: int = 1) -> None:
        """Have tasks end in each way. What they hold cannot be packed, so that a disk can be filled with it."""
        for _ in range(loads):
            queue = QUEUES[self._loads % len(QUEUES)]
            self._loads += 1
            made = self.client.new_ids(LOAD, queue=queue)
            payloads = [self.chance.randbytes(100) for _ in made]
            self.answered(lambda queue=queue, made=made, payloads=payloads: self.client.enqueue_many(
                queue, payloads, ids=made, retry=Retry(1)))
            self.told |= {to_text(task_id) for task_id in made}
            with suppress(SkuldError):  # then they end otherwise
                self.client.cancel(*made[: LOAD // EACH])
            while self.answered(lambda queue=queue: self.client.count(queue, states=OPEN)):
                self.answered(lambda queue=queue: self._end_some(queue))

    def _end_some(self, queue: str) -> None:
        """A claim that nobody heard of dies with its lease."""
        claims = self.client.claim(queue, n=LOAD, lease_s=LEASE_S, wait_s=1)
        bad, good = claims[::EACH], [claim for number, claim in enumerate(claims) if number % EACH]
        self.client.fail_many(bad, ["it broke"] * len(bad))
        self.client.complete_many(good, [b"done"] * len(good))

    def left(self) -> set[str]:
        """What the nodes have."""
        return self.answered(lambda: {to_text(task.id) for queue in QUEUES for task in self.client.list(queue)})

    def check(self) -> tuple[list[str], str]:
        """What is wrong, and what was seen: first of the nodes, for what they lack later is in the archive."""
        left = self.left()
        rows = self.rows()
        seen = f"{len(self.told):>6} ended = {len({*rows} - left):>6} archived + {len(left):>5} on the nodes"
        return judged(self.told, rows, left), seen

    def rows(self) -> list[str]:
        """Of all that was archived."""
        return rows_of(self.disk.kept) + tasks_of_batches(self.by_spark)

    def counted(self) -> int:
        """How many tasks ``skuld history`` finds."""
        return sum(int(subprocess.run(
            self.disk.within(sys.executable, "-m", "skuld_py", "history", str(root), "--count"), check=True,
            stdout=subprocess.PIPE, text=True).stdout) for root in dict.fromkeys((self.disk.root, self.root)))

    # -- who works -----------------------------------------------------------------------------

    def _command(self, *options: str) -> list[str]:
        return self.disk.within(sys.executable, "-c", self.program, "archive", str(self.root), "--json", "--nodes",
                                ",".join(self.cluster.addresses), *options)

    def begin_by_spark(self) -> None:
        """From now on Spark writes, to another root, which is the cluster's from now on."""
        for archiver in self.archivers:
            archiver.end()
        self.root, self.program = self.by_spark, BY_SPARK
        self.archivers = [Archiver(self._command(*GOES_ON, "--replace"), self.place / "archiver-spark.log")]

    def is_writing_by_spark(self) -> bool:
        """A batch of it is under way."""
        return any((self.by_spark / WRITING).glob("batch=*"))

    def once(self) -> tuple[int, dict[str, Any]]:
        """A run of its own, with nothing beside it: how it ended, and what it said in the end."""
        for archiver in self.archivers:
            archiver.end()
        ran = subprocess.run(self._command("--wait", "60s"), stdout=subprocess.PIPE, text=True, check=False)
        return ran.returncode, json.loads((ran.stdout.splitlines() or ["{}"])[-1])

    def warm_up(self) -> None:
        """Archivers have begun to write."""
        self.ensure()
        self.load()
        self.await_said({}, '"batch"')

    def ensure(self) -> None:
        """All archivers run."""
        for archiver in self.archivers:
            archiver.ensure()

    def logs(self) -> list[Path]:
        """Of all archivers that there were."""
        return sorted(self.place.glob("archiver-*.log"))

    def mark(self) -> dict[Path, int]:
        """How much they have said so far."""
        return {log: log.stat().st_size for log in self.logs()}

    def await_said(self, mark: dict[Path, int], *words: str, within_s: float = PATIENCE_S) -> bool:
        """Whether one of the archivers has said one of these since a mark, or says it soon enough."""
        def is_said() -> bool:
            self.ensure()
            return any(each.encode() in log.read_bytes()[mark.get(log, 0) :] for log in self.logs()
                       for each in words)
        return self.awaited(is_said, within_s)

    def awaited(self, is_so: Callable[[], bool], within_s: float = PATIENCE_S) -> bool:
        """Whether it is, soon enough."""
        until = time.monotonic() + within_s
        while not is_so():
            if time.monotonic() > until:
                return False
            time.sleep(LOOK_S)
        return True

    def answered(self, ask: Callable[[], Any]) -> Any:
        """An answer, though a node may just have gone."""
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                return ask()
            except SkuldError:
                if time.monotonic() > until:
                    raise
                time.sleep(LOOK_S)

    # -- nodes ---------------------------------------------------------------------------------

    def clock_of(self, index: int) -> Path:
        """What its time is said to be."""
        return self.place / f"clock-{index}.json"

    def step(self, index: int, offset_ms: int) -> None:
        """The clock of a node's machine."""
        draft = self.clock_of(index).with_suffix(".new")
        draft.write_text(json.dumps({"offset_ms": offset_ms, "rate_ppm": 0}))
        draft.rename(self.clock_of(index))

    def start_node(self, index: int) -> None:
        """One that was killed, with the clock that it had."""
        os.environ[FILE], os.environ[ALLOWED] = str(self.clock_of(index)), YES
        try:
            self.cluster.start_node(index, PATIENCE_S)
        finally:
            del os.environ[FILE], os.environ[ALLOWED]
        self.answered(lambda: await_leaders(self.client))


@contextmanager
def staged(place: Path, seed: int) -> Iterator[Stage]:
    """All of it, in this directory."""
    with ExitStack() as stack:
        cluster = stack.enter_context(LocalCluster(
            place / "cluster", nodes=NODES, partitions=4, replicas=NODES, skew_ms=SKEW_MS, session_ms=4_000,
            node_options=("--retention", f"{KEEP_S}s", "--archive")))
        client = stack.enter_context(Client(cluster.addresses, timeout_s=60))
        (place / "disk").mkdir()
        disk = stack.enter_context(a_disk(place / "disk", ROOMY_KB))
        await_leaders(client)
        stage = Stage(place, cluster, client, disk, seed)
        for index in range(NODES):
            stage.step(index, 0)
            cluster.kill_node(index)
            stage.start_node(index)
        try:
            yield stage
        finally:
            for archiver in stage.archivers:
                archiver.kill()
