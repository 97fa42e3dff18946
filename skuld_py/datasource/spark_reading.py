"""What Spark calls to read the queue: one part for each partition of the cluster, a page of it in memory.

Conditions are taken over where the installed PySpark hands them out (4.1 and later); otherwise Spark applies them,
and ``option("queue", ...)`` and ``option("state", ...)`` narrow what is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from skuld_py.calls.payloads import function_of
from skuld_py.client.client import Client
from skuld_py.datasource.asked import Asked
from skuld_py.datasource.choices import ReadChoices
from skuld_py.datasource.columns import Row, rows_of
from skuld_py.datasource.spark_writing import client_of
from skuld_py.model.ids import partition_of
from skuld_py.model.task import Task


@dataclass
class Slice(InputPartition):
    """A partition of the cluster, by number; None for the tasks named by id."""

    partition: int | None
    partitions: int


class TasksReader(DataSourceReader):
    """Reads tasks as they are; it is no snapshot: a task that changes meanwhile is read as it was, or as it is."""

    def __init__(self, choices: ReadChoices) -> None:
        self._asked = Asked(choices)

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Take over the conditions that the queue knows; gives the others."""
        for each in filters:
            values = _values_of(each)
            taken = None if values is None else self._asked.narrowed(each.attribute[0], values)
            if taken is None:
                yield each
            else:
                self._asked = taken

    def partitions(self) -> list[InputPartition]:
        """One for each partition of the cluster."""
        if self._asked.is_nothing or self._asked.ids is not None:
            return [Slice(None, 0)]
        with client_of(self._asked.choices.place) as client:
            count = client.greeting().partitions
        return [Slice(number, count) for number in range(count)]

    def read(self, partition: InputPartition) -> Iterator[Row]:
        """The rows of one."""
        assert isinstance(partition, Slice)
        if self._asked.is_nothing:
            return
        choices = self._asked.choices
        with client_of(choices.place) as client:
            asker = client if choices.has_results else None
            if self._asked.ids is not None:
                named = client.get_many(self._asked.ids)
                yield from rows_of([task for task in named if _is_wanted(choices, task)], None)
                return
            for queue in choices.queues or (None,):
                yield from _listed(client, asker, choices, queue, partition)


def _listed(client: Client, asker: Client | None, choices: ReadChoices, queue: str | None,
            part: Slice) -> Iterator[Row]:
    page = []
    for task in client.list(queue, states=choices.states, function=choices.function, page=choices.page,
                            partition=part.partition):
        if partition_of(task.id, part.partitions) != part.partition:
            continue  # a node of an older release lists all
        page.append(task)
        if len(page) >= choices.page:
            yield from rows_of(page, asker)
            page = []
    yield from rows_of(page, asker)


def _values_of(condition: Any) -> list[Any] | None:
    """The values of which a column has one by this condition; None for a condition of another kind. By its name,
    for PySpark 4.0 has no such classes."""
    if len(getattr(condition, "attribute", ())) != 1:
        return None
    match type(condition).__name__:
        case "EqualTo":
            return [condition.value]
        case "In":
            return list(condition.value)
        case _:
            return None


def _is_wanted(choices: ReadChoices, task: Task) -> bool:
    return ((not choices.queues or task.queue in choices.queues)
            and (not choices.states or task.state in choices.states)
            and (choices.function is None or function_of(task.payload) == choices.function))
