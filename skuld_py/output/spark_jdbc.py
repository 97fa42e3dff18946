"""Rows of a task in a table of a database: those of its newest claim that wrote, once, whatever dies when.

    skuld_py.write_jdbc(context, frame, "jdbc:postgresql://db/shop", "public.prices", {"user": ...})

Spark writes into a staging table of the claim's own. Then one transaction takes the task's row in the fence, a
table of tasks and tokens, where the token there is not a greater one; replaces the task's rows in the table by
those of the staging table; and commits. The table has a column that says which task a row is of.

Invariants:

* A claim's rows are there whole or not at all; of two claims those of the greater token, in whichever order they
  commit: the fence's row is locked by the first, and tells the second.
* A claim that writes again, and the next claim of a task whose worker died behind its commit, add nothing.

The rows are visible from their commit on, before the task is completed: a database has no rename. A claim that is
tried again replaces them.

Rejected: rows without their task. What an earlier claim committed could not be told from what others wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame
from pyspark.sql.functions import lit

from skuld_py.errors import Fenced, Refused
from skuld_py.model.ids import TaskId

FENCE, TASK_COLUMN = "skuld_fence", "skuld_task"
_EXISTS_ALREADY = ("X0Y32", "42P07", "42S01")
"""What Derby, PostgreSQL and MySQL call it."""
_IS_A_ROW_ALREADY = "23"


class Holder(Protocol):
    """What is needed of a task's context."""

    id: TaskId
    token: int

    def check(self) -> None:
        """Raise when the claim is lost."""


def write_jdbc(context: Holder, frame: DataFrame, url: str, table: str,
               properties: Mapping[str, str] | None = None, *, fence: str = FENCE,
               task_column: str = TASK_COLUMN) -> int:
    """Make these the task's rows in a table; gives how many they are.

    The table has the frame's columns, by name, and ``task_column``, a text of 32 characters. ``fence`` is made
    where it is missing. ``properties``: user, password, driver and the like. Raises ``Fenced`` when a newer claim
    of the task has written, and what Spark or the database raise; then nothing has changed.
    """
    given = dict(properties or {})
    task, staging = str(context.id), f"skuld_{context.id}_{context.token:x}"
    context.check()
    frame.withColumn(task_column, lit(task)).write.jdbc(url, staging, "overwrite", given)
    with _connected(frame, url, given) as connection:
        try:
            _prepare(connection, fence, task)
            context.check()
            if not _changed(connection, f"update {fence} set token = ? where task = ? and token <= ?",
                            context.token, task, context.token):
                raise Fenced(f"task: a newer claim of {task} has written to {table}")
            into, of = (_columns(connection, each, [*frame.columns, task_column]) for each in (table, staging))
            _changed(connection, f"delete from {table} where {into[-1]} = ?", task)
            count = _changed(connection, f"insert into {table} ({', '.join(into)})"
                                         f" select {', '.join(of)} from {staging}")
            connection.commit()
            return count
        except BaseException:
            connection.rollback()
            raise
        finally:
            with suppress(Py4JJavaError):
                _changed(connection, f"drop table {staging}")
                connection.commit()


@contextmanager
def _connected(frame: DataFrame, url: str, properties: Mapping[str, str]) -> Iterator[Any]:
    jvm: Any = frame.sparkSession._jvm
    if "driver" in properties:  # one that Spark has loaded, by --packages
        jvm.org.apache.spark.sql.execution.datasources.jdbc.DriverRegistry.register(properties["driver"])
    given = jvm.java.util.Properties()
    for name, value in properties.items():
        given.setProperty(name, value)
    connection = jvm.java.sql.DriverManager.getConnection(url, given)
    try:
        connection.setAutoCommit(False)
        yield connection
    finally:
        connection.close()


def _prepare(connection: Any, fence: str, task: str) -> None:
    """There is a fence, with a row of the task's, committed: two claims then meet at the row."""
    for statement, values, but in (
            (f"create table {fence} (task varchar(32) not null primary key, token bigint not null)", (),
             _EXISTS_ALREADY),
            (f"insert into {fence} (task, token) values (?, ?)", (task, 0), _IS_A_ROW_ALREADY)):
        try:
            _changed(connection, statement, *values)
            connection.commit()
        except Py4JJavaError as error:
            connection.rollback()
            if not str(error.java_exception.getSQLState()).startswith(but):
                raise


def _columns(connection: Any, table: str, names: Sequence[str]) -> list[str]:
    """What columns are called in a table, quoted: databases differ in how they write names that nobody quoted."""
    statement = connection.createStatement()
    try:
        known = statement.executeQuery(f"select * from {table} where 1 = 0").getMetaData()
        called = [str(known.getColumnName(at + 1)) for at in range(known.getColumnCount())]
    finally:
        statement.close()
    quote = str(connection.getMetaData().getIdentifierQuoteString()).strip()
    found = {name.lower(): name for name in called}
    missing = [name for name in names if name.lower() not in found]
    if missing:
        raise Refused("bad_columns", f"table: {table} has no column {', '.join(missing)}; it has"
                      f" {', '.join(called)}")
    return [quote + found[name.lower()] + quote for name in names]


def _changed(connection: Any, statement: str, *values: int | str) -> int:
    """How many rows a statement changed."""
    prepared = connection.prepareStatement(statement)
    try:
        for at, value in enumerate(values, 1):
            if isinstance(value, str):
                prepared.setString(at, value)
            else:
                prepared.setLong(at, value)
        return int(prepared.executeUpdate())
    finally:
        prepared.close()
