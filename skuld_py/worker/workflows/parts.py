"""The parts of a database's table, each of which is a root of a workflow; and reading one of them.

    @skuld_py.task
    def prices(spark, part):                       # by Spark, with any JDBC driver that it has
        return skuld_py.read_part(spark, part).groupBy("shop").count().toJSON().collect()

    @skuld_py.task
    def rows(part):                                # by any DB-API driver
        database = sqlite3.connect("/data/shop.db")
        return database.execute(f"select * from {part['table']} where {part['where'] or '1 = 1'}").fetchall()

A part is plain data: ``url``, ``table``, ``where``, ``options``, ``credentials`` (a name), ``part`` and ``parts``.
It says which rows, so whoever reads it again reads what stands there then, and a part is drawn again by the
definition alone. The feeder asks no database.

Users of Spark expect its cuts (``JDBCRelation``): all rows are in one part each, those below ``lower`` and those
without a number in the first, those above in the last.

Rejected: rows as roots, drawn by the feeder. It would be the one reader of a table that many workers are to read;
a row has no place from which it could be drawn again; and drivers of Python and Java would have to be at hand
where feeders run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from skuld_py.worker.credentials import credentials_for
from skuld_py.workflow.definition.sources import Jdbc


def parts_of(source: Jdbc) -> Iterator[dict[str, Any]]:
    """The parts, in order."""
    found = wheres(source)
    for number, where in enumerate(found):
        yield {"url": source.url, "table": source.table, "where": where, "options": dict(source.options),
               "credentials": source.credentials, "part": number, "parts": len(found)}


def wheres(source: Jdbc) -> list[str]:
    """What tells the rows of each part, in SQL; empty for all. There are fewer when there are fewer numbers."""
    span, count = source.upper - source.lower, source.partitions
    cuts = sorted({source.lower + span * number // count for number in range(1, count)} - {source.lower})
    if not cuts:
        return [""]
    column = source.column
    middle = [f"{column} >= {one} and {column} < {other}" for one, other in pairwise(cuts)]
    return [f"({column} < {cuts[0]} or {column} is null)", *middle, f"{column} >= {cuts[-1]}"]


def part_credentials(part: Mapping[str, Any]) -> dict[str, str]:
    """User, password and what else this worker knows for a part's database. ``Refused`` as ``bad_credentials``."""
    return credentials_for(part["credentials"], part["url"])
