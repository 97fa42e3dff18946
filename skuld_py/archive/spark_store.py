"""Batches of tasks, written as Parquet by Spark.

A batch is one directory, ``ROOT/batch=B/queue=Q/day=D/part-*.parquet``, whose names Spark reads as columns. Within
it one file for each queue and day: all rows of a batch come from this process, and one Spark task writes them.

On a disk of this machine the rows are counted before a batch is one, by what its files say. Executors elsewhere
write to disks of their own unless they share this one, and Spark's commit, which looks here, finds nothing amiss.

Rows travel to Spark inside its tasks, whose size Spark limits, so a batch is handed over in parts
(``PART_BYTES``). A task larger than that goes by itself. Rejected: files of JSON for Spark to read, which
executors elsewhere could not; Arrow, which is one dependency more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from skuld_py.archive.places import LocalPlace, RemotePlace, local_path, uri_of
from skuld_py.archive.rows import COLUMNS, PARTITIONED_BY, SCHEMA, Row, size_of
from skuld_py.archive.spark_errors import FAILURES, MEMORY, said
from skuld_py.errors import Refused
from skuld_py.worker.spark_session import SparkRuntime

SLOTS = 2
PART_BYTES = 32 << 20
ELSEWHERE = ("not all of its rows are here, since Spark's executors do not share this directory with this machine;"
             " name a place that they share, or --master local[2]")
_TIMES = [index for index, kind in enumerate(COLUMNS.values()) if kind == "timestamp"]
CONF = {
    # A task of an archive may be large; Spark's own limit is 128 MiB.
    "spark.rpc.message.maxSize": "1024",
    # A queue may be called 007: directories' names are texts.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    # Of ten thousand files that are named, Spark looks for each in a task of its own unless it is told not to.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",
}
SHORT = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
"""A JVM that lives for one question never earns back what its optimising compiler costs."""


@contextmanager
def spark(directory: Path, conf: Mapping[str, str]) -> Iterator[SparkRuntime]:
    """A Spark that starts when it is needed, and ends with the block. ``conf`` are settings of the user's."""
    runtime = SparkRuntime(directory, slots=SLOTS, conf={**CONF, **conf})
    try:
        yield runtime
    finally:
        # What Python still drops of Java's, an error for one, cannot be told to a JVM that ends: no news.
        logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
        runtime.stop()


class SparkStore:
    """A sink of the archiver. The JVM starts with the first batch, and anew when it has died."""

    def __init__(self, runtime: SparkRuntime, place: LocalPlace | RemotePlace) -> None:
        self._runtime = runtime
        self._place = place

    def check(self) -> None:
        """``Refused`` where Spark cannot make the root, elsewhere than on a local disk: that was tried already."""
        if isinstance(self._place, LocalPlace):
            return
        session: Any = self._runtime.start()
        try:
            root = session._jvm.org.apache.hadoop.fs.Path(self._place.name)
            is_made = root.getFileSystem(session._jsc.hadoopConfiguration()).mkdirs(root)
            reason = "it makes no directory there"
        except FAILURES as error:
            is_made, reason = False, said(error)
        if not is_made:
            raise Refused("not_written", f"root: Spark cannot write to {self._place.name}: {reason}")

    def begin(self) -> None:
        """What is where is not known: there is no manifest."""

    def settled(self, ids: bytes) -> None:
        """Nor is this noted."""

    def end(self, is_whole: bool, are_gone: Callable[[Sequence[str]], bool]) -> None:
        """Nor that."""

    def write(self, batch: str, rows: Sequence[Row]) -> int:
        """Returns when the batch is durable: how many it has. ``Refused`` when it could not be written: then it is
        not there, or, elsewhere than on a local disk, in part."""
        session = self._runtime.start()
        where = self._place.begin(batch)
        try:
            for part in parts(rows, PART_BYTES):
                _write(session, where, part)
            if (path := local_path(where)) is not None and _rows_below(session, path) != len(rows):
                raise OSError(ELSEWHERE)
            self._place.finish(batch)
            return len(rows)
        except FAILURES as error:
            reason = said(error)
            if not self._runtime.is_alive():
                reason = MEMORY
                self._runtime.stop(grace_s=0)  # a process that is about to end would be taken for one that runs
            raise Refused("not_written", f"root: Spark could not write batch {batch}: {reason}; nothing of it is"
                          " deleted") from None


def parts(rows: Sequence[Row], most: int) -> Iterator[list[Row]]:
    """Together no more than ``most`` bytes each, but for a row that is larger by itself."""
    part: list[Row] = []
    size = 0
    for row in rows:
        own = size_of(row)
        if part and size + own > most:
            yield part
            part, size = [], 0
        part.append(row)
        size += own
    if part:
        yield part


def _write(session: SparkSession, where: str, rows: Sequence[Row]) -> None:
    frame = session.createDataFrame([_timed(row) for row in rows], SCHEMA).coalesce(1)
    frame.write.mode("append").option("compression", "zstd").partitionBy(*PARTITIONED_BY).parquet(where)


def _rows_below(session: Any, directory: Path) -> int:
    """How many there are, as this machine sees its files."""
    jvm, conf, count = session._jvm.org.apache, session._jsc.hadoopConfiguration(), 0
    for path in directory.rglob("*.parquet"):
        file = jvm.parquet.hadoop.util.HadoopInputFile.fromPath(jvm.hadoop.fs.Path(uri_of(path)), conf)
        reader = jvm.parquet.hadoop.ParquetFileReader.open(file)
        try:
            count += reader.getRecordCount()
        finally:
            reader.close()
    return count


def _timed(row: Row) -> Row:
    return tuple(datetime.fromtimestamp(value / 1000, UTC) if index in _TIMES and value is not None else value
                 for index, value in enumerate(row))
