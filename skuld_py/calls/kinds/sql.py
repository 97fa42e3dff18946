"""A task of SQL: what it says, and its limits.

    skuld_py.sql("select * from sales where day = :day", {"day": day})

Values travel as parameters, never in the text. Dates, times, Decimals and bytes are written as results are
(``{"$date": "2026-11-20"}``), so that they arrive as what they were, from any client.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import attrs

from skuld_py.calls import payloads
from skuld_py.calls.kinds import SQL, fields
from skuld_py.calls.kinds.splitting import statements_of
from skuld_py.calls.results import marked, unmarked
from skuld_py.config import DEFAULT_LIMITS
from skuld_py.errors import Refused

STATEMENTS_MAX = 100
PARAMETERS_MAX = 100
LIST_MAX = 10_000
ROWS, ROWS_MAX = 1_000, 10_000
FORMAT = "parquet"
_NAME = re.compile(r"[A-Za-z_]\w{0,99}", re.ASCII)
_KINDS = (bool, int, float, str, bytes, date, datetime, timedelta, Decimal)
_LONG = 1 << 63


@attrs.frozen
class SqlTask:
    """Statements to run in order. Rows of the last one are the result, ``rows`` of them at most, or are written to
    ``output``."""

    statements: tuple[str, ...]
    parameters: Mapping[str, Any]
    output: str | None
    format: str
    options: Mapping[str, fields.Option]
    rows: int
    conf: Mapping[str, str]


def sql(text: str, parameters: Mapping[str, Any] | None = None, *, output: str | None = None,
        format: str = FORMAT, options: Mapping[str, fields.Option] | None = None, rows: int = ROWS,
        conf: Mapping[str, fields.Option] | None = None) -> bytes:
    """The payload of a task that runs statements of Spark SQL, ``;`` between them. ``parameters`` are what stands
    there as ``:name``. The last statement's rows, at most ``rows``, become the result, a list of dicts; or with
    ``output`` they are written below that path, in a ``format`` with its ``options``, and the result says where.
    ``conf``: settings of Spark SQL for this task. Raises ``Refused``, which names the field."""
    given = fields.table("parameters", None if parameters is None else dict(parameters), PARAMETERS_MAX)
    kwargs: dict[str, Any] = {"output": output, "format": format, "rows": rows}
    kwargs = {name: value for name, value in kwargs.items() if value != _DEFAULTS[name]}
    kwargs |= {name: dict(value) for name, value in (("options", options), ("conf", conf)) if value}
    values = {name: _written(name, value) for name, value in given.items()}
    return payloads.pack(SQL, [text, *([values] if values else [])], kwargs, payloads.AS_IT_IS)


_DEFAULTS = {"output": None, "format": FORMAT, "rows": ROWS}


def checked(text: str, parameters: Any = None, *, output: Any = None, format: Any = FORMAT, options: Any = None,
            rows: Any = ROWS, conf: Any = None) -> SqlTask:
    """The task of a call's arguments; ``Refused`` names the field that is wrong."""
    fields.text("text", text, DEFAULT_LIMITS.payload_bytes)
    statements = statements_of(text)
    if not 0 < len(statements) <= STATEMENTS_MAX:
        raise fields.wrong("text", f"has {len(statements)} statements; 1 to {STATEMENTS_MAX} are wanted")
    values = {name: _parameter(name, value)
              for name, value in fields.table("parameters", parameters, PARAMETERS_MAX).items()}
    return SqlTask(tuple(statements), values, None if output is None else fields.path("output", output),
                   fields.format_name("format", format), fields.options("options", options),
                   fields.whole("rows", rows, 1, ROWS_MAX), sql_conf(conf))


def sql_conf(conf: Any) -> dict[str, str]:
    """Settings that a running session may change; of some only Spark knows whether it may."""
    return fields.conf("conf", conf, ("spark.sql.",), (),
                       "only settings of Spark SQL, spark.sql..., are a task's; give others to the worker, --conf")


def _written(name: str, value: Any) -> Any:
    """A parameter as it travels."""
    try:
        return marked(value)
    except (TypeError, ValueError, RecursionError):
        every = value if type(value) is list else [value]
        odd = (each for each in every if each is not None and type(each) not in _KINDS)
        raise _strange(_place(name), next(odd, value)) from None


def _place(name: str) -> str:
    return f"parameters[{name!r:.60}]"


def _parameter(name: str, value: Any) -> Any:
    where = _place(name)
    if _NAME.fullmatch(name) is None:
        raise fields.wrong(where, "is no name that can stand behind a colon")
    try:
        found = unmarked(value)
    except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, RecursionError):
        raise fields.wrong(where, f"is not well-formed: {value!r:.60}") from None
    every = found if type(found) is list else [found]
    if len(every) > LIST_MAX:
        raise fields.wrong(where, f"has {len(every)} values, more than {LIST_MAX}; write them to a table")
    for each in every:
        if each is not None and type(each) not in _KINDS:
            raise _strange(where, each)
        if type(each) is int and not -_LONG <= each < _LONG:
            raise fields.wrong(where, f"{each} does not fit into 64 bits; give a Decimal")
    return found


def _strange(where: str, value: Any) -> Refused:
    return fields.wrong(where, f"is a {type(value).__name__}; a parameter is None, bool, int, float, str, bytes,"
                        " date, datetime, timedelta or Decimal, or a list of these")
