"""Tasks of SQL: statements in order, in the claim's own session, so temporary views go from one to the next.

Invariants:

* A parameter is a value and never a part of the text, whatever it holds: Spark binds it behind the parser.
* What the next attempt would meet as well leaves the task dead: a statement that Spark cannot read, a setting that
  is fixed when Spark starts, rows that are too many for a result. Other errors are Spark's, and tried again.
* No more rows are fetched than the result may have, and one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skuld_py.calls.kinds import SQL
from skuld_py.calls.kinds.fields import Option
from skuld_py.calls.kinds.sql import FORMAT, ROWS, ROWS_MAX, SqlTask, checked
from skuld_py.calls.results import encode_result
from skuld_py.errors import Refused
from skuld_py.worker.context import TaskContext
from skuld_py.worker.directives import Dead
from skuld_py.worker.kinds.allowed import allowed, final
from skuld_py.worker.kinds.rows import values_of
from skuld_py.worker.registry import task

_FIXED = ("CANNOT_MODIFY_STATIC_CONFIG", "CANNOT_MODIFY_CONFIG")
_UNREADABLE = ("UNBOUND_SQL_PARAMETER",)
WORDS_CHARS_MAX = 500


@task(name=SQL)
def run_sql(spark: Any, context: TaskContext, text: str, parameters: dict[str, Any] | None = None, *,
            output: str | None = None, format: str = FORMAT, options: dict[str, Option] | None = None,
            rows: int = ROWS, conf: dict[str, Option] | None = None) -> Any:
    """Run the statements. The rows of the last one, if it has columns: a list of dicts, or where they are."""
    allowed(SQL)
    with final():
        job = checked(text, parameters, output=output, format=format, options=options, rows=rows, conf=conf)
    set_all(spark, job.conf)
    df: Any = None
    for number, statement in enumerate(job.statements, 1):
        context.check()
        context.progress(number - 1, len(job.statements), f"statement {number}")
        df = _ran(spark, statement, number, job.parameters)
    made = _outcome(df, job, context)
    context.progress(len(job.statements), len(job.statements))
    return made


def set_all(spark: Any, conf: Mapping[str, str]) -> None:
    """Settings of the claim's session; ``Dead`` for one that is fixed."""
    for name, value in conf.items():
        try:
            spark.conf.set(name, value)
        except Exception as error:
            if condition_of(error) in _FIXED:
                raise Dead(f"conf[{name!r}]: {_fixed(name)}") from error
            raise


def condition_of(error: Exception) -> str:
    """The name that Spark has for an error; empty for what is no error of Spark's."""
    ask = getattr(error, "getCondition", None)
    return str(ask() or "") if callable(ask) else ""


def _ran(spark: Any, statement: str, number: int, parameters: Mapping[str, Any]) -> Any:
    try:
        return spark.sql(statement, args=dict(parameters) or None)
    except Exception as error:
        condition = condition_of(error)
        words = " ".join(str(error).split())[:WORDS_CHARS_MAX]
        if condition in _FIXED:
            raise Dead(f"statement {number}: {_fixed('this')} ({words})") from error
        if condition in _UNREADABLE or type(error).__name__ == "ParseException":
            raise Dead(f"statement {number}: {words}") from error
        raise


def _fixed(name: str) -> str:
    return f"{name} is fixed when Spark starts; give it to the worker, --conf NAME=VALUE"


def _outcome(df: Any, job: SqlTask, context: TaskContext) -> Any:
    if not df.columns:
        return None
    if job.output is not None:
        context.output(job.output).write(df, job.format, partition_by=(), **job.options)
        return {"path": job.output, "format": job.format}
    found = df.take(job.rows + 1)
    if len(found) > job.rows:
        raise Dead(f"rows: the last statement gives more than {job.rows}; write them with output='PATH', select"
                   f" fewer with LIMIT, or allow up to {ROWS_MAX}")
    with final():
        values = values_of(df.schema, found)
    try:
        return encode_result(values)
    except Refused as refusal:
        raise Dead(f"the rows of the last statement are no result: {refusal.message}; output='PATH' writes"
                   " them") from None
