"""Spark's settings: what users say by options, what follows from the master, and what holds for every worker.

An option is another word for a setting, so both ways mean the same, and a setting that is given twice with two
values is refused. What users say goes on top of what is said here; what nobody says is Spark's own default, or
what the installation's ``spark-defaults.conf`` has.

With a master elsewhere, less is said here: how many partitions a shuffle has and where tables lie is for the
cluster to say. Its executors get the worker's Python by no path of this machine, and no socket of its file system.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from skuld_py.errors import Refused
from skuld_py.worker.masters import CONNECT, check_master, driver_address, is_local, threads_of

if TYPE_CHECKING:
    from skuld_py.worker.spark_jvm import Files

MASTER, PYTHON = "spark.master", "spark.pyspark.python"
HOST, BIND = "spark.driver.host", "spark.driver.bindAddress"
PY_FILES, ARCHIVES = "spark.submit.pyFiles", "spark.archives"
OPTIONS = {"master": MASTER, "driver-memory": "spark.driver.memory", "packages": "spark.jars.packages",
           "py-files": PY_FILES, "archives": ARCHIVES}
"""The settings that have options of their own."""
_LOOPBACK = "127.0.0.1"
# The kernel's limit for the path of a Unix socket (macOS has the smaller one), less "/.<uuid>.sock".
_LONGEST_SOCKET_DIRECTORY = 103 - 43
_HAS_SCHEME = re.compile(r"[A-Za-z][\w+.-]*:")


def folded(conf: Iterable[tuple[str, str]], options: Mapping[str, str | None]) -> dict[str, str]:
    """The settings that a user asks for, by name and by options; ``Refused`` if they cannot be meant."""
    made = dict(conf)
    for option, value in options.items():
        name = OPTIONS[option]
        if value is not None and made.setdefault(name, value) != value:
            raise Refused("bad_setting", f"{option}: is given as {name}={made[name]}, too; keep one of them",
                          setting=name)
    if "spark.remote" in made:
        check_master(CONNECT + made["spark.remote"].removeprefix(CONNECT))
    if MASTER in made:
        check_master(made[MASTER])
    for name, option in ((PY_FILES, "py-files"), (ARCHIVES, "archives")):
        if name in made:
            made[name] = ",".join(_found(path, option) for path in _listed(made[name]))
    return made


def py_files_here(conf: Mapping[str, str]) -> list[Path]:
    """Those of the user's Python files that lie on this machine."""
    paths = (path.removeprefix("file://").removeprefix("file:") for path in _listed(conf.get(PY_FILES, "")))
    return [Path(path) for path in paths if not _HAS_SCHEME.match(path)]


def whole(files: Files, slots: int, asked: Mapping[str, str]) -> dict[str, str]:
    """All settings of one start; the user's on top. Looks for the way to a master that is elsewhere."""
    master = check_master(asked.get(MASTER, f"local[{slots}]"))
    placed = _local(files, master) if is_local(master) else _elsewhere(master, asked)
    return {**_always(files), MASTER: master, **placed, **asked}


def python_of(conf: Mapping[str, str]) -> str:
    """The program that runs Python partitions. Without a word, here this Python; elsewhere what is called so."""
    own = sys.executable if is_local(conf[MASTER]) else os.environ.get("PYSPARK_PYTHON", "python3")
    return conf.get(PYTHON, own)


def has_varying_executors(conf: Mapping[str, str]) -> bool:
    """Whether having no executors says nothing: there are none anyway, or they come and go with the work."""
    return is_local(conf[MASTER]) or conf.get("spark.dynamicAllocation.enabled", "false").lower() == "true"


def _always(files: Files) -> dict[str, str]:
    return {
        "spark.app.name": "skuld",
        "spark.driver.memory": "1g",
        "spark.local.dir": str(files.scratch),
        # Running tasks share the slots fairly, each in its own pool.
        "spark.scheduler.mode": "FAIR",
        # A cancelled Python partition is killed soon.
        "spark.python.task.killTimeout": "200ms",
        # One that crashes says where.
        "spark.python.worker.faulthandler.enabled": "true",
        # A long-lived session must not grow: threads, finished jobs, forgotten broadcasts.
        "spark.sql.resultQueryStage.maxThreadThreshold": "16",
        "spark.sql.shuffleExchange.maxThreadThreshold": "16",
        "spark.sql.broadcastExchange.maxThreadThreshold": "16",
        "spark.ui.retainedJobs": "100",
        "spark.ui.retainedStages": "100",
        "spark.ui.retainedTasks": "2000",
        "spark.sql.ui.retainedExecutions": "50",
        "spark.cleaner.periodicGC.interval": "5min",
        # Quiet: no web page, nothing on the terminal.
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


def _local(files: Files, master: str) -> dict[str, str]:
    sockets = files.scratch if len(str(files.scratch)) <= _LONGEST_SOCKET_DIRECTORY else tempfile.gettempdir()
    return {
        HOST: _LOOPBACK,
        BIND: _LOOPBACK,
        "spark.sql.warehouse.dir": str(files.directory / "warehouse"),
        "spark.sql.shuffle.partitions": str(threads_of(master)),
        # No delay of TCP between the JVM and Python.
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": str(sockets),
    }


def _elsewhere(master: str, asked: Mapping[str, str]) -> dict[str, str]:
    made = {"spark.python.unix.domain.socket.enabled": "false"}
    address = None if HOST in asked else driver_address(master)
    return made if address is None else {**made, HOST: address, BIND: address}


def _listed(paths: str) -> list[str]:
    return [path.strip() for path in paths.split(",") if path.strip()]


def _found(path: str, option: str) -> str:
    """A path that holds wherever this process goes. What stands behind ``#`` is the name at the executors."""
    if _HAS_SCHEME.match(path):
        return path
    name, sign, alias = path.partition("#")
    if not Path(name).is_file():
        raise Refused("no_such_file", f"{option}: there is no file {name} here; write paths with commas between"
                      " them, or where all machines see it, as s3a://bucket/name", path=name)
    return f"{Path(name).absolute()}{sign}{alias}"
