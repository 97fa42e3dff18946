"""The data source itself, and how a session learns of it.

    skuld_py.register(spark)
    frame.write.format("skuld").option("queue", "mail").mode("append").save()
    spark.read.format("skuld").option("queue", "mail").load().groupBy("state").count().show()

Executors unpickle these classes by name, so Skuld is installed there, too, with the same extra. Spark looks for a
source in the session that is active in the thread that asks; a thread without one finds none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from skuld_py import extras
from skuld_py.datasource.choices import read_choices, stream_choices, write_choices
from skuld_py.datasource.columns import SCHEMA
from skuld_py.datasource.spark_reading import TasksReader
from skuld_py.datasource.spark_streaming import BatchWriter, EndedReader
from skuld_py.datasource.spark_writing import AtomicWriter, RepeatableWriter
from skuld_py.errors import Refused

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamWriter,
        DataSourceWriter,
        SimpleDataSourceStreamReader,
    )
    from pyspark.sql.types import StructType

NAME = "skuld"
_TOP = re.compile(r"(?:^|, )(\w+ \w+(?:<[^>]*>)?)")
_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


class SkuldSource(DataSource):
    """Spark makes one for each read and write, with its options."""

    @classmethod
    def name(cls) -> str:
        """What ``format`` takes."""
        return NAME

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A batch write."""
        if overwrite:
            raise Refused("bad_mode", "mode: a queue is not overwritten; say mode('append')")
        choices = write_choices(dict(self.options), schema.names)
        return AtomicWriter(choices) if choices.is_atomic else RepeatableWriter(choices)

    def schema(self) -> str:
        """The columns of a read."""
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch read."""
        _check_schema(schema)
        return TasksReader(read_choices(dict(self.options)))

    def simpleStreamReader(self, schema: StructType) -> SimpleDataSourceStreamReader:
        """A stream of ended tasks."""
        _check_schema(schema)
        return EndedReader(stream_choices(dict(self.options)))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """A sink of a stream."""
        choices = write_choices(dict(self.options), schema.names)
        if overwrite or not choices.is_atomic:
            raise Refused("bad_option", "atomic: a stream stores each batch at one moment, and appends; leave the"
                          " option out, and say outputMode('append')", field="atomic")
        return BatchWriter(choices)


def _check_schema(schema: StructType) -> None:
    if schema.names != [part.split()[0] for part in _TOP.findall(SCHEMA)]:
        raise Refused("bad_schema", "schema: the columns of a queue are given; leave .schema(...) out and select")


def register(spark: SparkSession) -> None:
    """Make ``format("skuld")`` known to a session. ``MissingExtra`` names what is not installed."""
    extras.require("datasource", who="Spark's data source skuld")
    spark.dataSource.register(SkuldSource)
    spark.conf.set(_PUSHDOWN, "true")
