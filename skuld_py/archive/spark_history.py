"""The archive as a table of Spark SQL: ``tasks``, one row for each task, of the newest batch that has it.

The window that takes the newest row is partitioned by queue and day as well as by id. That changes no result,
since a task has one queue and one day; but Spark may then apply conditions on them before the window, and reads
only the directories concerned. The schema is given and not found out: no footers are read for it, and a queue
called 007 keeps its zeros.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from skuld_py.archive.filters import Condition, Filters
from skuld_py.archive.live import live
from skuld_py.archive.manifest import Manifest
from skuld_py.archive.places import local_path, uri_of
from skuld_py.archive.rows import STORED_SCHEMA
from skuld_py.archive.spark_errors import FAILURES, MEMORY, is_of_query, said
from skuld_py.errors import Refused

VIEW = "tasks"
_NUMBER = "row_number_in_archive"


class History:
    """The tasks of an archive that are asked for; ``enqueued`` and ``ended`` stand beside their milliseconds as
    timestamps. ``frame`` is the table."""

    def __init__(self, session: SparkSession, uri: str, filters: Filters) -> None:
        self._session = session
        stored = self._stored(uri, filters)
        newest = Window.partitionBy("queue", "day", "id").orderBy(f.col("batch").desc())
        found = stored if self._is_once else stored.withColumn(_NUMBER, f.row_number().over(newest)).where(
            f.col(_NUMBER) == 1).drop(_NUMBER)
        conditions = [_column(condition) for condition in filters.conditions()]
        found = found.where(reduce(and_, conditions)) if conditions else found
        self.frame = (found.withColumn("enqueued", f.timestamp_millis("enqueued_ms"))
                      .withColumn("ended", f.timestamp_millis("ended_ms")))

    def _stored(self, uri: str, filters: Filters) -> DataFrame:
        """The rows of live files, and those that no manifest names; ``_is_once`` if there are none of these."""
        path, found = local_path(uri), None
        if path is not None and Manifest(path).exists():
            found = live(path, filters)
        self._is_once = found is not None and not found.old
        read = self._session.read.schema(STORED_SCHEMA)
        try:
            if found is None or path is None:
                return read.parquet(uri)
            parts = [read.parquet(*map(uri_of, found.paths))] if found.files else []
            if found.old:
                parts.append(read.option("basePath", uri).parquet(*(uri_of(path / old) for old in found.old)))
            if not parts:
                return self._session.createDataFrame([], STORED_SCHEMA)
            return reduce(DataFrame.unionByName, parts)
        except FAILURES as error:
            is_none = found is None and isinstance(error, AnalysisException)
            raise _refusal("not_an_archive" if is_none else "not_read", "root", error) from None

    def count(self) -> int:
        """How many."""
        try:
            return self.frame.count()
        except FAILURES as error:
            raise _refusal("not_read", "root", error) from None

    def rows(self, limit: int | None = None, columns: Sequence[str] = ()) -> Iterator[Mapping[str, Any]]:
        """The rows in the order of their ids, which is that of their making; a part in memory at a time."""
        frame = self.frame.select(*columns) if columns else self.frame
        for row in _each(frame.orderBy("id"), limit):
            yield dict(zip(frame.columns, row, strict=True))

    def answer(self, query: str, limit: int | None = None) -> tuple[list[str], Iterator[Sequence[Any]]]:
        """The names of a query's columns, and its rows; in it these tasks are the table ``tasks``."""
        self.frame.createOrReplaceTempView(VIEW)
        try:
            made = self._session.sql(query)
        except (AnalysisException, ParseException) as error:
            raise _refusal("bad_sql", "sql", error) from None
        except FAILURES as error:
            raise _refusal("not_read", "root", error) from None
        return made.columns, _each(made, limit)


def _each(frame: DataFrame, limit: int | None) -> Iterator[Sequence[Any]]:
    asked = frame if limit is None else frame.limit(limit)
    try:
        yield from asked.toLocalIterator()
    except FAILURES as error:
        is_bad = is_of_query(error)
        raise _refusal("bad_sql" if is_bad else "not_read", "sql" if is_bad else "root", error) from None


def _column(condition: Condition) -> Column:
    name, comparison, value = condition
    column = f.col(name)
    match comparison:
        case "=":
            return column == f.lit(value)
        case ">=":
            return column >= f.lit(value)
        case "<":
            return column < f.lit(value)
        case "<=":
            return column <= f.lit(value)
        case _:
            return column.isin(*(value if isinstance(value, tuple) else (value,)))


def _refusal(code: str, field: str, error: Exception) -> Refused:
    remedies = {"bad_sql": "; the table is called tasks, and 'skuld history --help' lists its columns",
                "not_an_archive": "; name the root that 'skuld archive' writes to", "not_read": ""}
    return Refused(code, f"{field}: {MEMORY if isinstance(error, OSError) else said(error)}{remedies[code]}")
