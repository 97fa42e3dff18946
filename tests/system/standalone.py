"""Spark's own cluster, from PySpark's jars: a master, and workers that see none of the files of ours.

Each worker of Spark's is in a mount namespace in which directories are covered by empty file systems; its
executors are its children, so it is with them as on another machine. Mounting takes root. The executors' Python is
the one that our environment was made of: it has nothing installed, neither this package nor what it needs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import psutil
import pytest

from family import family
from skuld_py.embedded import process
from skuld_py.embedded.java import find_java
from skuld_py.embedded.ports import held_port
from skuld_py.worker.spark_jvm import spark_home

HOST = "127.0.0.1"
CORES = 2
PYTHON = str(Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}")
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
CONF = {
    "spark.executor.memory": "256m", "spark.testing.reservedMemory": str(32 << 20), "spark.driver.memory": "512m",
    "spark.executor.extraJavaOptions": QUICK, "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.pyspark.python": PYTHON,
    # Or Spark has functions of columns read Arrow's format, since the driver has pandas and pyarrow.
    "spark.sql.execution.pythonUDF.arrow.enabled": "false",
    # No task before all executors are there: or one would do for both.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "5min",
}
START_S = 90.0
_COVER = 'for place in "$@"; do [ "$place" = -- ] && break; mount -t tmpfs none "$place" || exit 9; done\n' \
         'while [ "$1" != -- ]; do shift; done; shift; exec "$@"'


def can_cover() -> bool:
    """Whether directories can be hidden from a process: root can mount."""
    mount = ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"]
    return sys.platform == "linux" and not subprocess.run(mount, capture_output=True, check=False).returncode


def require_namespaces() -> None:
    """Skip the tests where nothing can be mounted."""
    if not can_cover():
        pytest.skip("only root can mount: NOT TESTED is whether executors on other machines run a worker's tasks")


class Standalone:
    """A master and workers, one executor each. ``covered``: the directories that executors do not see. ``memory``:
    what a worker lends."""

    def __init__(self, directory: Path, covered: Sequence[Path], workers: int = 2, memory: str = "400m") -> None:
        self._directory = directory
        self._memory = memory
        self._covered = [str(path) for path in covered]
        self._count = workers
        self._port = held_port(self, HOST)
        self._master: subprocess.Popen[bytes] | None = None
        self._workers: list[subprocess.Popen[bytes]] = []

    @property
    def master(self) -> str:
        """What ``--master`` takes."""
        return f"spark://{HOST}:{self._port}"

    @property
    def options(self) -> list[str]:
        """What a worker of ours is given."""
        return ["--master", self.master, *(word for name, value in CONF.items()
                                           for word in ("--conf", f"{name}={value}"))]

    def start_master(self) -> None:
        """Start it, and wait until it serves."""
        self._master = self._spawn("master", ["org.apache.spark.deploy.master.Master", "--host", HOST, "--port",
                                              str(self._port), "--webui-port", "0"])
        self._await("master", "New state: ALIVE")

    def kill_master(self) -> None:
        """End it at once."""
        assert self._master is not None
        process.stop(self._master, grace_s=0)

    def executors(self) -> list[psutil.Process]:
        """The processes of executors that run."""
        return [executor for worker in self._workers if worker.poll() is None
                for executor in family(worker.pid, _is_executor)]

    def __enter__(self) -> Self:
        try:
            self.start_master()
            for number in range(self._count):
                (self._directory / f"work-{number}").mkdir()
                self._workers.append(self._spawn(
                    f"worker-{number}", ["org.apache.spark.deploy.worker.Worker", self.master, "--host", HOST,
                                         "--cores", str(CORES), "--memory", self._memory, "--webui-port", "0",
                                         "--work-dir", str(self._directory / f"work-{number}")], self._covered))
            for number in range(self._count):
                self._await(f"worker-{number}", "Successfully registered with master")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for running in [*self._workers, self._master]:
            if running is not None:
                process.stop(running, grace_s=10)

    def _spawn(self, name: str, arguments: list[str], covered: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        java = find_java()
        options = ["-Xmx256m", *QUICK.split(), "-cp", f"{spark_home()}/jars/*"]
        command = [str(java.executable), *options, *arguments]
        if covered:
            command = ["unshare", "-m", "sh", "-c", _COVER, "sh", *covered, "--", *command]
        # Without the Scala version a worker of Spark's looks for a build directory, to find it.
        environment = {**os.environ, "SPARK_HOME": str(spark_home()), "JAVA_HOME": str(java.home),
                       "SPARK_SCALA_VERSION": "2.13", "SPARK_LOCAL_IP": HOST}
        environment.pop("PYTHONPATH", None)
        self._log(name).unlink(missing_ok=True)
        return process.spawn(command, log=self._log(name), environment=environment)

    def _log(self, name: str) -> Path:
        return self._directory / f"{name}.log"

    def _await(self, name: str, words: str) -> None:
        deadline = time.monotonic() + START_S
        while not re.search(words, self._log(name).read_text()):
            assert time.monotonic() < deadline, f"{name} has not started: {process.tail(self._log(name))}"
            time.sleep(0.1)


def _is_executor(process: psutil.Process) -> bool:
    return "CoarseGrainedExecutorBackend" in " ".join(process.cmdline())
