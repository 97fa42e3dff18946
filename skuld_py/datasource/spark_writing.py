"""What Spark calls to write: a part's rows become tasks on an executor, and the driver commits or aborts.

An object is made on the driver, and travels pickled to executors and to the process that commits; so it holds
choices and the write's name, and no connection.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from skuld_py.client.client import Client
from skuld_py.client.options import Retry
from skuld_py.client.steady import wall_s
from skuld_py.datasource import gates, repeats
from skuld_py.datasource.choices import Place, WriteChoices
from skuld_py.datasource.gates import Commit, Write
from skuld_py.datasource.rows import Tasks, tasks_of
from skuld_py.errors import SkuldError

if TYPE_CHECKING:
    import pyarrow

NODES = "127.0.0.1:13000"


def client_of(place: Place) -> Client:
    """A client for what the options say, or else the environment of this process."""
    return Client(place.nodes or os.environ.get("SKULD_NODES") or NODES, key=place.key, timeout_s=place.timeout_s)


@dataclass
class Stored(WriterCommitMessage):
    """What an attempt stored: its write, its gate (empty when there is none), how many tasks; and of which batch
    of which stream."""

    write: Write
    gate: bytes
    count: int
    query: str = ""
    batch: int = -1


class Part:
    """The tasks of one attempt at one part of a write."""

    def __init__(self, client: Client, choices: WriteChoices) -> None:
        self._client = client
        self._choices = choices
        self._retry = None if choices.max_attempts is None else Retry(max_attempts=choices.max_attempts)

    def store(self, tasks: Tasks, **options: Any) -> int:
        """Store them; gives how many."""
        self._client.enqueue_many(self._choices.queue, tasks.payloads, priority=tasks.priority, key=tasks.keys,
                                  not_before=tasks.not_before, expires=tasks.expires, retry=self._retry, **options)
        return len(tasks.payloads)


def write_behind_gate(choices: WriteChoices, write: Write, batches: Iterator[pyarrow.RecordBatch]) -> Stored:
    """An attempt's tasks, which nobody can claim before their gate is completed."""
    context = TaskContext.get()
    assert context is not None
    gates.check_part(context.partitionId())
    query = context.getLocalProperty("sql.streaming.queryId") or ""
    batch_id = int(context.getLocalProperty("streaming.sql.batchId") or -1)
    with client_of(choices.place) as client:
        part, count, gate = Part(client, choices), 0, b""
        try:
            for batch in batches:
                for tasks in tasks_of(batch, choices):
                    gate = gate or gates.open_attempt(client, write, wall_s())
                    count += part.store(tasks, deps=[gate], on_dep_failure="fail", dep_wait_s=write.ttl_s)
        except BaseException:
            if gate:
                gates.shut_own(client, write, gate)
            raise
        return Stored(write, bytes(gate), count, query, batch_id)


class AtomicWriter(DataSourceArrowWriter):
    """All rows become claimable at one moment, or none does."""

    def __init__(self, choices: WriteChoices) -> None:
        self._choices = choices
        self._write = Write.begin(choices.ttl_s)

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> WriterCommitMessage:
        """One attempt at a part, on an executor."""
        return write_behind_gate(self._choices, self._write, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Let all tasks go, on the driver."""
        with client_of(self._choices.place) as client:
            Commit(client, self._write, gates_in(messages)).commit()

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Let none go."""
        with client_of(self._choices.place) as client:
            Commit(client, self._write, gates_in(messages)).abort()


class RepeatableWriter(DataSourceArrowWriter):
    """Tasks are claimable as soon as they are stored; a repeated part must have the same rows, in their order."""

    def __init__(self, choices: WriteChoices) -> None:
        self._choices = choices
        self._write = Write.begin(choices.ttl_s)

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> WriterCommitMessage:
        """One attempt at a part: what another one stored is stored once."""
        context = TaskContext.get()
        assert context is not None
        with client_of(self._choices.place) as client:
            part, count = Part(client, self._choices), 0
            namer = repeats.Namer(self._write, self._choices.queue, context.partitionId())
            for batch in iterator:
                first = count
                for tasks in tasks_of(batch, self._choices):
                    ids = namer.ids([first + number for number in tasks.numbers], tasks.keys)
                    try:
                        count += part.store(tasks, ids=ids)
                    except SkuldError as error:
                        raise repeats.explained(error, context.partitionId()) from error
            return Stored(self._write, b"", count)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """All is stored already."""

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """What is stored stays."""


def gates_in(messages: list[WriterCommitMessage | None]) -> list[bytes]:
    """The gates of the attempts that count."""
    return [message.gate for message in messages if isinstance(message, Stored) and message.gate]
