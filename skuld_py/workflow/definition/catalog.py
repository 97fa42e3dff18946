"""Entries of a catalog out of plain data. Which keys an entry may have depends on its kind.

    [catalog.words]
    kind = "function"
    function = "acme.jobs:words"
    most = 4

Secrets do not belong into a definition: it is stored, shown and copied as it is. So what reads a database names
the credentials that its workers have.
"""

from __future__ import annotations

import re
from typing import Any

from skuld_py.config import DEFAULT_LIMITS
from skuld_py.workflow.definition.entries import (
    ATTEMPTS,
    FORMATS,
    MAX_PENDING,
    ROOT_TIMEOUT_MS,
    Entry,
    Kind,
    Target,
)
from skuld_py.workflow.definition.faults import Faults, Wrong, listed, quoted
from skuld_py.workflow.definition.fields import (
    INT_MAX,
    INT_MIN,
    Table,
    choice,
    flag,
    function,
    name,
    one_or_several,
    one_place,
    place,
    plain,
    seconds,
    several,
    text,
    whole,
    word,
)
from skuld_py.workflow.definition.names import (
    GLOBS_MAX,
    ID,
    ID_CHARS_MAX,
    QUEUES,
    RESERVED_STEPS,
    STEP,
    STEP_CHARS_MAX,
    STRANDS_MAX,
    TAG,
    TAGS_MAX,
)
from skuld_py.workflow.definition.sources import Files, Jdbc, Offsets, Outputs, Queue, Source, Values
from skuld_py.workflow.scheduling.demand import UNBOUNDED, Flux

SOURCES = ("files", "jdbc", "offsets", "workflow", "queue", "function")
"""The keys of which an input has exactly one."""
PARTITIONS_MAX = 100_000
PENDING_MAX = 1_000_000
_LETTERS = "letters, digits, '_' and '-'"
_DOTTED = "letters, digits, '.', '_' and '-'"
_HEX = re.compile("[0-9a-f]{64}")
OPTIONS = ("driver", "fetchsize", "querytimeout", "sessioninitstatement", "customschema", "prefertimestampntz",
           "preparequery", "pushdownpredicate", "pushdownaggregate", "pushdownlimit", "pushdownoffset",
           "isolationlevel")
"""Of Spark's reader, in any case of letters. What is none of them would go to the driver, beside the password."""
_SECRETS = ("password", "user", "secret", "token")

workflow_id = name(ID, _DOTTED, ID_CHARS_MAX)
_is_step = name(STEP, _LETTERS, STEP_CHARS_MAX)
_queue = name(ID, _DOTTED, ID_CHARS_MAX)
_tags = several(name(TAG, _DOTTED, 64), TAGS_MAX)

_WORKING = ("percentage", "flux", "batch", "timeout_s", "attempts")
_DRAWING = ("max_pending", "root_timeout_s", *SOURCES[:-1])
_ELSEWHERE = {
    Kind.INPUT: {**dict.fromkeys(_WORKING, "feeders draw from an input; give it to the steps behind it"),
                 **dict.fromkeys(("path", "format"), "it is for outputs")},
    Kind.FUNCTION: {**dict.fromkeys(_DRAWING, "it is for inputs"),
                    **dict.fromkeys(("path", "format"), "it is for outputs: make this one, or write by"
                                    " context.output")},
    Kind.OUTPUT: dict.fromkeys(_DRAWING, "it is for inputs"),
}


def step_name(value: Any) -> str:
    """A step's name, which is none of the reserved words."""
    step = _is_step(value)
    if step in RESERVED_STEPS:
        raise Wrong(f"{quoted(step)} has a meaning of its own in workflows", f"call it otherwise, and not"
                    f" {', '.join(sorted(RESERVED_STEPS - {step}))}")
    return step


def entry_of(faults: Faults, step: str, value: Any, *, is_stored: bool = False) -> Entry | None:
    """An entry; None when not even its kind can be read. ``is_stored``: it was submitted, maybe by a release that
    took more."""
    table = Table(faults, step, value)
    if not table.is_table:
        return None
    with table.noting(""):
        step_name(step)
    kind = table.need("kind", choice(Kind), None, "write kind = \"input\", \"function\" or \"output\"")
    if kind is None:
        return None
    parameters = table.take("parameters", plain, {})
    tags = frozenset(table.take("tags", _tags, ()))
    doc = table.take("doc", text, "")
    if kind is Kind.INPUT:
        source = _source(table)
        least, most = _feeders(table, source)
        pending = table.take("max_pending", whole(1, PENDING_MAX), MAX_PENDING)
        if most > pending and not is_stored:
            table.fault("most", f"{most} feeders share max_pending, {pending}", "write no more feeders than roots"
                        " that may be under way")
        made = Entry(step, kind, source=source, parameters=parameters, tags=tags, doc=doc, least=least, most=most,
                     max_pending=pending,
                     root_timeout_ms=table.take("root_timeout_s", seconds, ROOT_TIMEOUT_MS))
    else:
        made = _working(table, step, kind, parameters, tags, doc)
    table.end(_ELSEWHERE[kind])
    return made


def _feeders(table: Table, source: Source | None) -> tuple[int, int]:
    """How many feeders an input has, at least and at most: one, where it has one part only."""
    least, most = _slots(table, STRANDS_MAX, 1)
    if most > 1 and isinstance(source, Outputs | Queue | Values):
        table.fault("most", "what it draws from has one part, so one feeder", "leave it out; files, jdbc and"
                    " offsets have parts that several may draw")
        return 1, 1
    if isinstance(source, Jdbc) and most > source.partitions:
        table.fault("most", f"{most} feeders have {source.partitions} partitions to draw", "write no more feeders"
                    " than partitions")
    return least, most


def _slots(table: Table, limit: int, default: int) -> tuple[int, int]:
    least = table.take("least", whole(1, limit), 1)
    most = table.take("most", whole(1, limit), default)
    if least > most:
        table.fault("least", f"{least} is more than most, {most}", "write no more slots at least than at most")
    return least, max(least, most)


def _working(table: Table, step: str, kind: Kind, parameters: dict[str, Any], tags: frozenset[str], doc: str
             ) -> Entry:
    remedy = "name the task function that gets this step's segments"
    named = (table.take("function", function, "") if kind is Kind.OUTPUT
             else table.need("function", function, "", remedy))
    if kind is Kind.OUTPUT and parameters and not named and "function" not in table:
        table.fault("parameters", "nobody takes them", "name the output's function, or leave them out")
    least, most = _slots(table, UNBOUNDED, UNBOUNDED)
    return Entry(step, kind, named, target=_target(table) if kind is Kind.OUTPUT else None, parameters=parameters,
                 least=least, most=most, tags=tags,
                 percentage=table.take("percentage", whole(0, 100), 0),
                 flux=table.take("flux", choice(Flux), Flux.CONTINUE),
                 batch=table.take("batch", whole(1, DEFAULT_LIMITS.batch_tasks), 0),
                 timeout_ms=table.take("timeout_s", seconds, 0),
                 attempts=table.take("attempts", whole(1, 1_000), ATTEMPTS), doc=doc)


def _target(table: Table) -> Target:
    path = table.need("path", one_place, "", "say where it writes, as /data/words, or as a URI")
    return Target(path, table.take("format", word(FORMATS), FORMATS[0]))


# -- what inputs draw from -----------------------------------------------------------------------


def _source(table: Table) -> Source | None:
    given = [key for key in SOURCES if key in table]
    if len(given) != 1:
        table.fault("", f"draws from {' and '.join(given) or 'nothing'}", f"give it one of {listed(SOURCES)}")
        for key in given:
            table.raw(key)
        return None
    match given[0]:
        case "files":
            globs = table.take("files", one_or_several(place, GLOBS_MAX), ())
            return Files(globs) if globs else None
        case "jdbc":
            return _jdbc(Table(table.faults, table.entry, table.raw("jdbc"), "jdbc."))
        case "offsets":
            return Offsets(table.take("offsets", function, ""))
        case "workflow":
            return _outputs(table)
        case "queue":
            return Queue(table.take("queue", _plain_queue, ""))
        case _:
            return Values(table.take("function", function, ""))


def _plain_queue(value: Any) -> str:
    queue = _queue(value)
    if queue.startswith(QUEUES):
        raise Wrong(f"{quoted(queue)} is a queue of a workflow", f"name one that does not begin with {QUEUES}, or"
                    " draw from a workflow")
    return queue


def _outputs(table: Table) -> Outputs:
    value = table.raw("workflow")
    if isinstance(value, str):
        return Outputs(table.take("workflow", workflow_id, ""))
    inner = Table(table.faults, table.entry, value, "workflow.")
    remedy = "name the workflow, or a step of this one"
    of = inner.take("id", workflow_id, "") if "step" in inner else inner.need("id", workflow_id, "", remedy)
    made = Outputs(of, inner.take("step", step_name, ""), inner.take("routed", flag, False),
                   inner.take("content", _digest, ""), inner.take("together", flag, False))
    if (made.routed or made.content) and not made.step and "step" not in inner:
        inner.fault("step", "is missing", "name the step whose values are meant")
    for key in ("routed", "content"):
        if getattr(made, key) and "step" in inner and "id" not in inner:
            inner.fault(key, "goes with another workflow", "name that one as id, or leave this out")
    if made.routed and made.together:
        inner.fault("together", "goes not with routed, by which each value has its own way", "leave one out")
    inner.end()
    return made


def _digest(value: Any) -> str:
    if not isinstance(value, str) or not _HEX.fullmatch(value):
        raise Wrong(f"{quoted(value)} is no digest", "leave it out; resuming writes it")
    return value


def _jdbc(table: Table) -> Jdbc:
    made = Jdbc(
        table.need("url", _url, "", "write it as jdbc:postgresql://host/database"),
        table.need("table", text, "", "name the table, or write a query in parentheses with a name behind it"),
        table.take("column", text, ""),
        table.take("lower", whole(INT_MIN, INT_MAX), 0), table.take("upper", whole(INT_MIN, INT_MAX), 0),
        table.take("partitions", whole(1, PARTITIONS_MAX), 1), table.take("credentials", text, ""),
        table.take("options", _options, {}))
    if made.partitions > 1 and not made.column and "column" not in table:
        table.fault("column", "is missing", f"name the number by which {made.partitions} partitions are cut")
    if made.partitions > 1 and made.lower >= made.upper:
        table.fault("upper", f"{made.upper} is not above lower, {made.lower}", "say between which numbers the"
                    " partitions are cut")
    table.end()
    return made


def _url(value: Any) -> str:
    url = text(value)
    if not url.startswith("jdbc:"):
        raise Wrong(f"{quoted(url)} is no JDBC address", "write it as jdbc:postgresql://host/database")
    if "password" in url.lower():
        raise Wrong("holds a password, and a definition is no secret", "leave it out, and name the workers'"
                    " credentials")
    return url


def _options(value: Any) -> dict[str, str]:
    options = plain(value)
    for key, option in options.items():
        if not isinstance(option, str):
            raise Wrong(f"{quoted(key)} is no text", "put its value in quotes, as Spark's reader takes it")
        if key.lower() in _SECRETS:
            raise Wrong(f"{quoted(key)} would be seen by all: a definition is no secret", "leave it out, and name"
                        " the workers' credentials")
        if key.lower() not in OPTIONS:
            raise Wrong(f"{quoted(key)} is none of {listed(OPTIONS)}", "put what the driver is to know besides"
                        " into the workers' credentials")
    return options
