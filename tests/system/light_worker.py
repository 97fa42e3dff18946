"""A worker without Spark, and the task functions of a group: what a test can kill and start again in a second.

It is the real worker with an engine that calls functions in Python. As a process: ``python light_worker.py NODES
QUEUE [LEASE_S]``; it runs until it is killed.
"""

from __future__ import annotations

import logging
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import skuld_py
from skuld_py.calls.payloads import Call
from skuld_py.worker.context import TaskContext
from skuld_py.worker.worker import Worker

SLOTS = 8
LEASE_S = 3.0


@skuld_py.task(name="test.spell", queue="group")
def spell(spark: object, context: TaskContext, letter: str) -> str:
    """The letter behind what the step before has spelt."""
    before = context.results()
    return str(before[0]) + letter if before else letter


@skuld_py.task(name="test.square", queue="group")
def square(spark: Any, context: TaskContext, number: int) -> int:
    """By a Spark job, where there is Spark."""
    return number * number if spark is None else number * spark.range(number).count()


@skuld_py.task(name="test.doze", queue="group")
def doze(spark: object, context: TaskContext, seconds: float) -> float:
    """Takes its time, over which its lease is renewed."""
    time.sleep(seconds)
    return seconds


@skuld_py.task(name="test.total", queue="group")
def total(spark: object, context: TaskContext) -> list[int]:
    """How many numbers were given, and their sum."""
    found = context.results()
    return [len(found), sum(found)]


@skuld_py.task(name="test.report", queue="group")
def report(spark: object, context: TaskContext) -> list[Any]:
    return context.results()


class PlainEngine:
    """Calls functions, and is always there."""

    def describe(self) -> str:
        return "no engine"

    def start(self) -> None:
        """There is nothing to start."""

    restart = start
    missing = process_id = None

    def stop(self, grace_s: float) -> None:
        """There is nothing to stop."""

    def is_alive(self) -> bool:
        return True

    def is_gone(self) -> bool:
        return False

    def call(self, function: Callable[..., Any], context: TaskContext, call: Call) -> Any:
        return function(None, context, *call.args, **call.kwargs)

    def cancel(self, name: str) -> bool:
        return True

    def is_swept(self) -> bool:
        return True

    def counts(self, name: str) -> dict[str, Any] | None:
        return None


def main(nodes: str, queue: str, lease_s: str = str(LEASE_S)) -> None:
    logging.basicConfig(level=logging.INFO)
    with tempfile.TemporaryDirectory() as directory:
        Worker(nodes.split(","), queue, PlainEngine(), slots=SLOTS, lease_s=float(lease_s),
               renewer_log=Path(directory) / "renewer.log").run()


if __name__ == "__main__":
    main(*sys.argv[1:])
