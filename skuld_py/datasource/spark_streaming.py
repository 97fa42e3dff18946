"""What Spark's Structured Streaming calls: a stream of what ended, and a sink that stores each batch once.

A page of ended tasks is small, and comes with its tasks; so the driver reads it, and Spark takes the rows from
there. Spark reads a batch again, between two offsets, after a restart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamWriter, SimpleDataSourceStreamReader, WriterCommitMessage

from skuld_py.client.steady import monotonic_s, sleep
from skuld_py.datasource.choices import StreamChoices, WriteChoices
from skuld_py.datasource.columns import Row, row_of
from skuld_py.datasource.fence import commit_batch
from skuld_py.datasource.gates import Commit, Write
from skuld_py.datasource.offers import Offset, Stream
from skuld_py.datasource.spark_writing import Stored, client_of, gates_in, write_behind_gate
from skuld_py.errors import Refused

if TYPE_CHECKING:
    import pyarrow

    class AvailableNow:
        """A stream that can be asked to end with what there is."""

    HAS_ARROW = True
    Sink = DataSourceStreamWriter
else:
    try:
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as AvailableNow
    except ImportError:
        AvailableNow = object
    try:
        from pyspark.sql.datasource import DataSourceStreamArrowWriter as Sink
    except ImportError:
        Sink = DataSourceStreamWriter
    HAS_ARROW = Sink is not DataSourceStreamWriter


class EndedReader(SimpleDataSourceStreamReader, AvailableNow):
    """Tasks that ended, each in one batch; they are deleted from the cluster when their batch is committed."""

    def __init__(self, choices: StreamChoices) -> None:
        self._choices = choices
        self._wait_s = 0.0

    def initialOffset(self) -> dict[str, Any]:
        """Before the first batch."""
        return Offset().encode()

    def prepareForTriggerAvailableNow(self) -> None:
        """End with what there is: pages that are about to be offered are waited for."""
        self._wait_s = self._choices.wait_s

    def read(self, start: dict[str, Any]) -> tuple[Iterator[Row], dict[str, Any]]:
        """The next batch."""
        with client_of(self._choices.place) as client:
            stream = Stream(client, client.greeting().partitions, self._choices.most, monotonic_s, sleep)
            tasks, end = stream.read(Offset.decode(start), self._wait_s)
        return iter([row_of(task) for task in tasks]), end.encode() if tasks else start

    def readBetweenOffsets(self, start: dict[str, Any], end: dict[str, Any]) -> Iterator[Row]:
        """A batch again."""
        with client_of(self._choices.place) as client:
            stream = Stream(client, client.greeting().partitions, self._choices.most, monotonic_s, sleep)
            return iter([row_of(task) for task in stream.again(Offset.decode(end))])


class BatchWriter(Sink):
    """Each batch of a query is stored once, all of its rows at one moment."""

    def __init__(self, choices: WriteChoices) -> None:
        self._choices = choices
        self._write = Write.begin(choices.ttl_s)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """One attempt at a part of a batch, on an executor."""
        batches = iterator if HAS_ARROW else _batches(iterator)
        return write_behind_gate(self._choices, self._write, batches)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Let a batch's tasks go, on the driver, in a process that made this object anew."""
        gates, first = gates_in(messages), _first(messages)
        if first is None or not gates:
            return
        if not first.query:
            raise Refused("no_query", "the executors were not told which query this is; run it by writeStream")
        with client_of(self._choices.place) as client:
            commit_batch(client, first.query, batchId, first.write, gates, self._choices.window_s)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Let none go."""
        first = _first(messages)
        if first is not None:
            with client_of(self._choices.place) as client:
                Commit(client, first.write, gates_in(messages)).abort()


def _first(messages: list[WriterCommitMessage | None]) -> Stored | None:
    return next((message for message in messages if isinstance(message, Stored)), None)


def _batches(rows: Iterator[Any]) -> Iterator[pyarrow.RecordBatch]:
    """Rows as PySpark 4.0 hands them out, as batches."""
    import pyarrow

    part: list[dict[str, Any]] = []
    for row in rows:
        part.append(row.asDict())
        if len(part) == 1_000:
            yield pyarrow.RecordBatch.from_pylist(part)
            part = []
    if part:
        yield pyarrow.RecordBatch.from_pylist(part)
