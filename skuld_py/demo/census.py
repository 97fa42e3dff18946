"""A census of archives (jar, zip, whl): what is in them, and which classes are in two of them and differ.

Two versions of one class on a class path are "jar hell": which one is loaded depends on the order of the
archives. Equal names with unequal checksums find it without running anything.

This is an application as a user would write it: task functions, and ordinary PySpark. ``scan`` reads a group
of archives and writes a table; ``report`` reads the tables of all these tasks. What is written goes through
``context.output``: two runs of one task never write to one place, and what is read is what a completion names.

A table has one row per archive (``entry`` is null; says whether the archive is damaged) and one per entry.
``count_independently`` counts the same things without Spark and without any code of the job, to check it.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Iterator
from functools import reduce
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
from pyspark.sql import DataFrame, Observation
from pyspark.sql.functions import expr

import skuld_py

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

    from skuld_py import TaskContext

SCHEMA = ("archive string, entry string, package string, size long, compressed_size long, crc long,"
          " is_class boolean, damaged boolean, problem string")
VERSIONS = "META-INF/versions/"
PACKAGES_SHOWN = 10

Row = tuple[str, str | None, str | None, int, int, int, bool, bool, str | None]


@attrs.frozen
class Totals:
    """How much there is. ``bytes`` are uncompressed; damaged archives are archives, without entries."""

    archives: int
    damaged: int
    entries: int
    classes: int
    bytes: int


@attrs.frozen
class Package:
    """A package and what its classes take."""

    name: str
    classes: int
    bytes: int


@attrs.frozen
class Conflict:
    """A class that two archives have, with different content."""

    entry: str
    archive: str
    crc: int
    other: str
    other_crc: int


@attrs.frozen
class Summary:
    """The whole census: totals, the biggest packages, and every conflict in order of name."""

    totals: Totals
    packages: tuple[Package, ...]
    conflicts: tuple[Conflict, ...]

    def to_json(self) -> str:
        """The text that ``from_json`` reads."""
        return json.dumps(attrs.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Summary:
        """A summary from its text."""
        read = json.loads(text)
        return cls(Totals(**read["totals"]), tuple(Package(**row) for row in read["packages"]),
                   tuple(Conflict(**row) for row in read["conflicts"]))


@skuld_py.task
def scan(spark: SparkSession, context: TaskContext, paths: list[str], output: str) -> dict[str, Any]:
    """Read the directories of these archives; the result says what the table holds."""
    context.progress(0, len(paths), "reading the archives' directories")
    partitions = min(len(paths), spark.sparkContext.defaultParallelism)
    rows = spark.sparkContext.parallelize(paths, partitions).flatMap(read_directory)
    counted = Observation()
    table = spark.createDataFrame(rows, SCHEMA, verifySchema=False).observe(counted, *_aggregates())
    context.output(output).write(table)
    context.progress(len(paths), len(paths), "written")
    return counted.get


@skuld_py.task
def report(spark: SparkSession, context: TaskContext, scans: list[str], output: str) -> int:
    """Summarise the tables of these tasks into one JSON file; gives how many conflicts it has."""
    with skuld_py.Client() as client:
        tables = [skuld_py.read_output(spark, scan, client=client) for scan in scans]
    summary = summarise(reduce(DataFrame.unionByName, tables))
    with context.output(output).open("report.json") as file:
        file.write(summary.to_json().encode())
    return len(summary.conflicts)


def read_directory(path: str) -> Iterator[Row]:
    """The rows of one archive. Runs in Spark's Python processes."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except Exception as problem:  # zipfile meets damage with many kinds of them
        yield (path, None, None, 0, 0, 0, False, True, f"{type(problem).__name__}: {problem}")
        return
    yield (path, None, None, 0, 0, 0, False, False, None)
    for entry in entries:
        name = entry.filename
        is_class = name.endswith(".class")
        yield (path, name, package_of(name) if is_class else None, entry.file_size, entry.compress_size,
               entry.CRC, is_class, False, None)


def package_of(entry: str) -> str:
    """The package of a class by its entry's name, whatever Java version the entry is for."""
    if entry.startswith(VERSIONS):
        entry = entry[len(VERSIONS) :].partition("/")[2]
    return entry.rpartition("/")[0].replace("/", ".")


def summarise(table: DataFrame) -> Summary:
    """The census of a table."""
    totals = table.agg(*_aggregates()).collect()[0]
    return Summary(Totals(**totals.asDict()), _biggest(table), _conflicts(table))


def _aggregates() -> list[Column]:
    """The fields of ``Totals``."""
    return [expr("count_if(entry IS NULL)").alias("archives"), expr("count_if(damaged)").alias("damaged"),
            expr("count(entry)").alias("entries"), expr("count_if(is_class)").alias("classes"),
            expr("coalesce(sum(size), 0)").alias("bytes")]


def _biggest(table: DataFrame) -> tuple[Package, ...]:
    table.createOrReplaceTempView("census")
    rows = table.sparkSession.sql(f"""
        SELECT package AS name, count(*) AS classes, sum(size) AS bytes FROM census WHERE is_class
        GROUP BY package ORDER BY bytes DESC, name LIMIT {PACKAGES_SHOWN}""").collect()
    return tuple(Package(**row.asDict()) for row in rows)


def _conflicts(table: DataFrame) -> tuple[Conflict, ...]:
    """Classes for other Java versions and module descriptors are meant to be in many archives."""
    table.createOrReplaceTempView("census")
    rows = table.sparkSession.sql(f"""
        SELECT entry, array_sort(collect_set(struct(archive, crc))) AS copies FROM census
        WHERE is_class AND NOT startswith(entry, '{VERSIONS}') AND NOT endswith(entry, 'module-info.class')
        GROUP BY entry HAVING min(crc) <> max(crc) ORDER BY entry""").collect()
    return tuple(Conflict(row.entry, one.archive, one.crc, other.archive, other.crc)
                 for row in rows for one, other in combinations(row.copies, 2)
                 if one.archive != other.archive and one.crc != other.crc)


def count_independently(archives: Iterable[Path]) -> Totals:
    """The totals by plain Python, to hold against those of the job; shares no code with it on purpose."""
    count = damaged = entries = classes = size = 0
    for path in archives:
        count += 1
        try:
            opened = zipfile.ZipFile(path)
        except Exception:
            damaged += 1
            continue
        with opened:
            for name in opened.namelist():
                entries += 1
                classes += name[-6:] == ".class"
            size += sum(information.file_size for information in opened.filelist)
    return Totals(count, damaged, entries, classes, size)
