"""Making a worker of what the command line says, and running it in this process.

What only some workers need is imported where it is needed: most of the time from the start of a worker to its
first task goes into imports.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from skuld_py.client.verbs import NODES_VARIABLE
from skuld_py.embedded.process import standing
from skuld_py.worker.apps import load_apps, warn_of_spark
from skuld_py.worker.kinds.allowed import Allowed, allowing
from skuld_py.worker.late_engine import LateEngine
from skuld_py.worker.leaving import leave
from skuld_py.worker.masters import check_master
from skuld_py.worker.renewer import STALL_S
from skuld_py.worker.run import Engine
from skuld_py.worker.spark_conf import MASTER, py_files_here
from skuld_py.worker.worker import GRACE_S, LEASE_S, SLOTS, Worker


def run_worker(nodes: list[str], queue: str, app: list[str], *, slots: int = SLOTS, lease_s: float = LEASE_S,
               directory: Path | None = None, grace_s: float = GRACE_S, stall_s: float = STALL_S,
               holder: str | None = None, metrics: str | None = None, conf: Mapping[str, str] | None = None,
               machine_learning: bool = False, allowed: Allowed | None = None, takes_seats: bool = False,
               tags: Sequence[str] = ()) -> int:
    """Run a worker in this process, until a signal; the exit status, with which the process must end: it does,
    soon (``leaving``). ``conf`` are the settings of its Spark, which starts with the first task that asks for it.
    ``allowed``: what tasks may bring besides arguments."""
    if conf and MASTER in conf:
        check_master(conf[MASTER])
    os.environ[NODES_VARIABLE] = ",".join(nodes)  # what tasks send goes where they come from
    started_in = standing(None, "a worker")  # a task may change the current one
    has_kinds = allowed is not None and (allowed.kinds or allowed.scripts is not None)
    load_apps(app, py_files_here(conf or {}), may_lack=bool(has_kinds))
    status: int | None = None
    with contextlib.ExitStack() as held:
        held.callback(lambda: None if status is None else leave(status))
        held.enter_context(allowing(attrs.evolve(allowed or Allowed(), apps=tuple(app), conf=dict(conf or {}),
                                                 lease_s=lease_s, started_in=started_in)))
        if directory is None:
            directory = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="skuld-worker-")))
        directory = directory.absolute()
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        place = directory / "spark"

        def make() -> Engine:
            from skuld_py.worker.spark_worker import SparkEngine

            return SparkEngine(place, conf=conf, machine_learning=machine_learning, apps=app,
                               started_in=started_in)

        engine = LateEngine(make)
        warn_of_spark(engine.missing)
        worker = Worker(nodes, queue, engine, slots=slots, lease_s=lease_s, grace_s=grace_s,
                        stall_s=stall_s, holder=holder, renewer_log=directory / "renewer.log",
                        takes_seats=takes_seats, tags=tags)
        if metrics is not None:
            from skuld_py.exposition import exposed
            from skuld_py.worker.metrics import WorkerMetrics

            held.enter_context(exposed(metrics, WorkerMetrics(worker.counts, queue, slots)))
        status = 1  # if it fails
        status = worker.run()
    return status
