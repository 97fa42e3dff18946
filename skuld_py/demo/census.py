"""A census of archives (jar, zip, whl): what is in them, and which classes are in two of them and differ.

Two versions of one class on a class path are "jar hell": which one is loaded depends on the order of the
archives. Equal names with unequal checksums find it without running anything.

This is an application as a user would write it: a workflow, its task functions, and ordinary PySpark.

    archives >> read                           # groups of archives; a table of each group
    tables >> join >> duplicates >> report     # all that was read; one table; what differs; the whole, and a plot

What ``read`` returned meets in the input ``tables``, as one list, once all of it is there. What steps write goes
through ``context.output``: two runs of one task never write to one place, and what is read is what a completion
names. So along the edges go the ids of tasks.

A table has one row per archive (``entry`` is null; says whether the archive is damaged) and one per entry.
``count_independently`` counts the same things without Spark and without any code of the job, to check it.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

import attrs
from pyspark.sql import DataFrame, Observation
from pyspark.sql.functions import expr

import skuld_py
from skuld_py.errors import Refused

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

    from skuld_py import TaskContext

SCHEMA = ("archive string, entry string, package string, size long, compressed_size long, crc long,"
          " is_class boolean, damaged boolean, problem string")
VERSIONS = "META-INF/versions/"
PACKAGES_SHOWN = 10
GROUPS = 24
LABEL_WIDTH, BAR_WIDTH, ROW_HEIGHT = 320, 400, 22

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


def workflow(id: str, directory: str, place: str, groups: int = GROUPS) -> skuld_py.Workflow:
    """The census of a directory; what steps write is below ``place``."""
    flow = skuld_py.Workflow(id)
    archives = flow.input("archives", function=groups_of_archives,
                          parameters={"directory": directory, "groups": groups})
    tables = flow.input("tables", workflow={"step": "read", "together": True})
    steps = [flow.step("read", read, parameters={"output": f"{place}/tables"}),
             *(flow.step(name, function, parameters={"output": f"{place}/{name}"}, most=1)
               for name, function in (("join", join), ("duplicates", duplicates), ("report", report)))]
    archives >> steps[0]
    tables >> steps[1] >> steps[2] >> steps[3]
    return flow


def groups_of_archives(directory: str, groups: int) -> list[list[str]]:
    """The archives below a directory, in groups: each is a root."""
    return grouped(find_archives(Path(directory)), groups)


def find_archives(directory: Path) -> list[Path]:
    """All archives below a directory, in a fixed order."""
    found = sorted(path for path in directory.resolve().rglob("*")
                   if path.suffix in (".jar", ".zip", ".whl") and path.is_file())
    if not found:
        raise Refused("no_archives", f"{directory} holds no .jar, .zip or .whl; name a directory that does")
    return found


def grouped(archives: Sequence[Path], count: int) -> list[list[str]]:
    """At most ``count`` groups of about equal size: the largest archive left goes to the smallest group."""
    groups: list[tuple[int, list[str]]] = [(0, []) for _ in range(min(count, len(archives)))]
    for path in sorted(archives, key=lambda path: (-path.stat().st_size, path)):
        size, names = min(groups, key=lambda group: (group[0], len(group[1])))
        groups[groups.index((size, names))] = (size + path.stat().st_size, [*names, str(path)])
    return [names for _, names in groups]


@skuld_py.task
def read(spark: SparkSession, context: TaskContext, paths: list[str], output: str) -> dict[str, Any]:
    """Read the directories of these archives into a table; ``table`` is the task that wrote it, and the rest says
    what it holds."""
    context.progress(0, len(paths), "reading the archives' directories")
    partitions = min(len(paths), spark.sparkContext.defaultParallelism)
    rows = spark.sparkContext.parallelize(paths, partitions).flatMap(read_directory)
    counted = Observation()
    table = spark.createDataFrame(rows, SCHEMA, verifySchema=False).observe(counted, *_aggregates())
    context.output(output).write(table)
    context.progress(len(paths), len(paths), "written")
    return {"table": str(context.id), **counted.get}


@skuld_py.task
def join(spark: SparkSession, context: TaskContext, tables: list[dict[str, Any]], output: str) -> str:
    """One table of all that was read; the task that wrote it."""
    with skuld_py.Client() as client:
        found = [skuld_py.read_output(spark, row["table"], client=client) for row in tables]
    context.output(output).write(reduce(DataFrame.unionByName, found))
    return str(context.id)


@skuld_py.task
def duplicates(spark: SparkSession, context: TaskContext, table: str, output: str) -> dict[str, Any]:
    """The classes that two archives have and that differ, as a JSON file: the task that wrote it, that of the
    table, and how many they are."""
    with skuld_py.Client() as client:
        conflicts = conflicts_of(skuld_py.read_output(spark, table, client=client))
    with context.output(output).open("conflicts.json") as file:
        file.write(json.dumps([attrs.astuple(each) for each in conflicts]).encode())
    return {"table": table, "conflicts": str(context.id), "count": len(conflicts)}


@skuld_py.task
def report(spark: SparkSession, context: TaskContext, found: dict[str, Any], output: str) -> int:
    """The whole census, as a JSON file, with a plot beside it; gives how many conflicts it has."""
    with skuld_py.Client() as client:
        table = skuld_py.read_output(spark, found["table"], client=client)
        written, = skuld_py.output_files(found["conflicts"], client=client)
    conflicts = tuple(Conflict(*row) for row in json.loads(Path(written.path).read_text()))
    summary = summarise(table, conflicts)
    written_to = context.output(output)
    for name, text in (("report.json", summary.to_json()), ("packages.svg", plot(summary.packages))):
        with written_to.open(name) as file:
            file.write(text.encode())
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


def summarise(table: DataFrame, conflicts: tuple[Conflict, ...]) -> Summary:
    """The census of a table."""
    totals = table.agg(*_aggregates()).collect()[0]
    return Summary(Totals(**totals.asDict()), _biggest(table), conflicts)


def plot(packages: Sequence[Package]) -> str:
    """How large packages are, as bars, in SVG."""
    largest = max((package.bytes for package in packages), default=0) or 1
    rows = [f'<text x="{LABEL_WIDTH - 8}" y="{ROW_HEIGHT * at + 15}" text-anchor="end">'
            f'{escape(package.name or "(none)")}</text>'
            f'<rect x="{LABEL_WIDTH}" y="{ROW_HEIGHT * at + 4}" height="14" fill="#2f6fde"'
            f' width="{max(1, round(BAR_WIDTH * package.bytes / largest))}"/>'
            f'<text x="{LABEL_WIDTH + BAR_WIDTH + 8}" y="{ROW_HEIGHT * at + 15}">{package.bytes:,} bytes</text>'
            for at, package in enumerate(packages)]
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{LABEL_WIDTH + BAR_WIDTH + 140}"'
            f' height="{ROW_HEIGHT * len(packages) + 8}" font-family="sans-serif" font-size="12"'
            f' fill="#5b6b7b">{"".join(rows)}</svg>\n')


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


def conflicts_of(table: DataFrame) -> tuple[Conflict, ...]:
    """What differs, in order of name. Classes for other Java versions and module descriptors are meant to be in
    many archives."""
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
