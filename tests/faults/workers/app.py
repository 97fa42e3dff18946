"""What the workers run: a task that shows for how long anything of it acts, and a census that sets checkpoints.

``hold`` acts at two places at once, in one of Spark's Python processes and in Spark's JVM, so that neither can
outlive its claim unseen. Its signs of life are below ``place``, named by the claim's token:

    TOKEN.python     when its Python partition acted last, by the steady clock
    TOKEN.deadline   until when the worker believes that it holds the claim, by the same
    data/_claims/TASK/TOKEN/...   a file more with each row that the JVM writes: the claim's output

The claims of a task after its first one write an output of their own at once, and are done.

``survey`` is the demonstration's ``read`` as one long task: a checkpoint after each slice of the archives.
``report`` is what the demonstration makes of all tables, in one task.
"""

from __future__ import annotations

import os
import struct
import threading
import time
from collections.abc import Callable, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

import skuld_py
from skuld_py.client.steady import steady_s
from skuld_py.demo import census

BEAT_S = 0.02
HOLD_S = 300.0
ROWS = 900_000
"""Of a file each: Spark takes about a million."""
WINNER = "winner.csv"
_MOMENT = struct.Struct("d")


def show(path: str, moment: Callable[[], float]) -> None:
    """Tell a moment in a file, again and again."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT)
    until = time.monotonic() + HOLD_S
    while time.monotonic() < until:
        os.pwrite(file, _MOMENT.pack(moment()), 0)
        time.sleep(BEAT_S)


def shown(path: Path) -> float | None:
    """The moment that was told last."""
    try:
        return float(_MOMENT.unpack(path.read_bytes())[0])
    except (OSError, struct.error):
        return None


@skuld_py.task
def hold(spark: Any, context: skuld_py.TaskContext, place: str) -> str:
    """Act for as long as nobody stops it. A claim after one that acted is done at once; one whose granting nobody
    heard of does not count."""
    output = context.output(f"{place}/data")
    if any(Path(place).glob("*.python")):
        output.write_csv(WINNER, [[context.token]])
        return str(context.token)
    mark = f"{place}/{context.token}"
    threading.Thread(target=show, args=(f"{mark}.deadline", lambda: context.deadline), daemon=True).start()
    written = context.spawn(_write_slowly, spark, output.path)
    spark.sparkContext.parallelize([f"{mark}.python"], 1).foreach(lambda path: show(path, steady_s))
    written.result()
    return str(context.token)


def _write_slowly(spark: Any, path: str) -> None:
    """A file a row, as fast as that goes, by the JVM alone."""
    spark.range(0, ROWS, 1, 1).write.option("maxRecordsPerFile", 1).csv(path)


@skuld_py.task
def survey(spark: Any, context: skuld_py.TaskContext, slices: Sequence[Sequence[str]], place: str) -> int:
    """The rows of all archives, a slice at a time; gives how many there are. What each claim did when, is told in
    ``place/TOKEN.told``: a line when a slice began, and when a checkpoint was said."""
    parts = list(context.resumed or [])
    with open(f"{place}/{context.token}.told", "a", buffering=1) as told:
        for number in range(len(parts), len(slices)):
            told.write(f"begun {number} {steady_s()}\n")
            rows = spark.sparkContext.parallelize(slices[number], 1).flatMap(census.read_directory)
            part = f"{context.claim_path(f'{place}/parts')}/{number}"
            spark.createDataFrame(rows, census.SCHEMA, verifySchema=False).write.parquet(part)
            parts.append(part)
            context.checkpoint(parts)
            told.write(f"said {number} {steady_s()}\n")
    whole = spark.read.parquet(*parts)
    context.output(f"{place}/survey").write(whole)
    return int(whole.count())


@skuld_py.task
def report(spark: Any, context: skuld_py.TaskContext, scans: list[str], output: str) -> int:
    """Summarise the tables of these tasks into one JSON file; gives how many conflicts it has."""
    with skuld_py.Client() as client:
        tables = [skuld_py.read_output(spark, scan, client=client) for scan in scans]
    table = reduce(DataFrame.unionByName, tables)
    summary = census.summarise(table, census.conflicts_of(table))
    with context.output(output).open("report.json") as file:
        file.write(summary.to_json().encode())
    return len(summary.conflicts)
