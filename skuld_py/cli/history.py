"""``skuld history``: tasks that the cluster has deleted, as ``skuld archive`` has kept them.

No node is asked. Where a manifest names the files they are read here; queries, and files that none names, are
Spark's, which takes some seconds to start. A task is shown as ``skuld get`` shows one that is still there, and as
``skuld list`` when there are several.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from datetime import datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from skuld_py.cli.archive import MASTER
from skuld_py.cli.history_files import files
from skuld_py.cli.history_restore import ENDED, restore
from skuld_py.cli.options import json_option
from skuld_py.cli.spark_options import master_options
from skuld_py.cli.values import PAST, TASK_ID
from skuld_py.cli.verbed import Verbed

if TYPE_CHECKING:
    from skuld_py.archive.arrow_history import ArrowHistory
    from skuld_py.archive.filters import Filters
    from skuld_py.archive.spark_history import History
    from skuld_py.errors import Refused
    from skuld_py.model.ids import TaskId

Found: TypeAlias = "History | ArrowHistory"
_COLUMNS = "{:<32}  {:<9}  {:<23}  {:>8}  {:<16}  "
_SHOWN = ("id", "state", "ended_ms", "attempts", "queue", "payload")


@click.command(cls=Verbed, others={"compact": "'skuld archive compact'"})
@click.argument("root")
@click.option("--id", "task_id", metavar="ID", type=TASK_ID, default=None, show_default=False,
              help="This task, with its claims and logs; only its day is looked into.")
@click.option("--queue", metavar="QUEUE", default=None, show_default="all", help="Only tasks of this queue.")
@click.option("--key", metavar="KEY", default=None, show_default="all",
              help="Only tasks with this ordering key; what earlier releases have written has none.")
@click.option("--state", "states", type=click.Choice(ENDED), multiple=True,
              help="Only tasks that ended so; may be given again, for one of several.")
@click.option("--since", type=PAST, metavar="WHEN", default=None, show_default="the beginning",
              help="Only what was enqueued then or later: an age as 48h, or 2026-12-01T08:00+01:00.")
@click.option("--until", type=PAST, metavar="WHEN", default=None, show_default="now",
              help="Only what was enqueued before then.")
@click.option("--limit", type=click.IntRange(1), default=None, show_default="all",
              help="How many at most; with --sql, how many rows of the answer.")
@click.option("--count", "is_count", is_flag=True, show_default=False, help="Only say how many.")
@click.option("--sql", metavar="QUERY", default=None, show_default=False,
              help="Ask this of the table tasks, which holds those that the other options choose.")
@master_options(MASTER)
@json_option
def history(root: str, task_id: TaskId | None, queue: str | None, key: str | None, states: tuple[str, ...],
            since: datetime | None, until: datetime | None, limit: int | None, is_count: bool, sql: str | None,
            conf: dict[str, str], as_json: bool) -> None:
    """Show tasks that 'skuld archive' has written below ROOT, each once, oldest first.

    \b
    Columns of the table tasks, for --sql:
      id, queue, day (of its enqueuing, in UTC), priority, state, death, enqueued, ended (times; enqueued_ms and
      ended_ms in milliseconds), attempts, payload, result, error (binary), headers (map), claims (array of token,
      holder, start_ms, end_ms, is_released, outcome, until_ms, error), logs (array of token, seq, entry),
      completed_ms, completed_token, cancelled_ms, not_before_ms, expires_ms, due_ms, retry, deps, seq, batch;
      and of rows that no earlier release has written: result_type (text, json or bytes), checkpoint (struct of
      token, number, at_ms, data), outputs (JSON), key, unique_name, on_dep_failure, function, arguments (JSON),
      cluster, schema_version, digest

    \b
    Examples:
      skuld history /srv/skuld-archive --queue reports --state dead --since 48h
      skuld history /srv/skuld-archive --id 000006cvl5s5o0000000e1k0g5u3k7qh
      skuld history /srv/skuld-archive --key customer-42 --since 720h --json
      skuld history /srv/skuld-archive --sql "SELECT queue, day, count(*) AS n FROM tasks GROUP BY ALL ORDER BY n"
    """
    from skuld_py.archive.filters import Filters
    from skuld_py.archive.places import check_archive
    from skuld_py.model.names import check_name

    if is_count and sql is not None:
        raise click.UsageError("--count and --sql exclude each other; count in the query.")
    if queue is not None:
        check_name("queue", queue)
    uri, filters = check_archive(root), Filters(task_id, queue, states, since, until, key)
    with ExitStack() as stack:
        if sql is not None:
            _show_answer(by_spark(stack, uri, filters, conf), sql, limit, as_json)
            return
        found = by_arrow(root, filters, conf) or by_spark(stack, uri, filters, conf)
        if is_count:
            _show_count(found, limit, as_json)
        elif task_id is not None:
            _show_one(found, task_id, filters, as_json)
        else:
            _show_list(found, limit, as_json)


history.add_command(files)
history.add_command(restore)


def by_spark(stack: ExitStack, uri: str, filters: Filters, conf: dict[str, str]) -> History:
    """With Spark, until the stack is left."""
    from skuld_py.archive.scratch import scratch_directory
    from skuld_py.archive.spark_history import History
    from skuld_py.archive.spark_store import SHORT, spark

    scratch = stack.enter_context(scratch_directory("skuld-history-"))
    runtime = stack.enter_context(spark(scratch, {**SHORT, **conf}))
    return History(runtime.start(), uri, filters)


def by_arrow(root: str, filters: Filters, conf: dict[str, str]) -> ArrowHistory | None:
    """Without Spark, where a manifest names all files."""
    from skuld_py.archive.live import live
    from skuld_py.archive.places import local_path

    path = local_path(root)
    if path is None or conf or find_spec("pyarrow") is None:
        return None
    found = live(path, filters)
    if found.old:
        return None
    from skuld_py.archive.arrow_history import ArrowHistory

    return ArrowHistory(found, filters)


def _show_count(found: Found, limit: int | None, as_json: bool) -> None:
    from skuld_py.cli.showing import print_json

    number = found.count() if limit is None else min(found.count(), limit)
    print_json({"count": number}) if as_json else click.echo(str(number))


def _show_one(found: Found, task_id: TaskId, filters: Filters, as_json: bool) -> None:
    from skuld_py.archive.rows import task_of
    from skuld_py.cli.get import show_task
    from skuld_py.cli.showing import now_ms, print_json

    for row in found.rows(1):
        print_json(document(row)) if as_json else show_task(task_of(row), now_ms())
        return
    raise not_there(task_id, filters)


def not_there(task_id: TaskId, filters: Filters) -> Refused:
    """What is said of a task that an archive has not, or that other options leave out."""
    import attrs

    from skuld_py.archive.filters import Filters
    from skuld_py.errors import Refused

    such = "" if attrs.evolve(filters, id=None) == Filters() else " as the other options want it"
    return Refused("no_such_task", f"id: no task {task_id} is in this archive{such}; if it is not deleted yet,"
                   " 'skuld get' shows it", id=task_id)


def _show_list(found: Found, limit: int | None, as_json: bool) -> None:
    from skuld_py.cli import showing
    from skuld_py.verbs.words import moment

    if as_json:
        for row in found.rows(limit):
            showing.print_json(document(row))
        return
    number = -1
    for number, row in enumerate(found.rows(limit, _SHOWN)):
        if number == 0:
            click.echo(_COLUMNS.format("ID", "STATE", "ENDED", "ATTEMPTS", "QUEUE") + "CALL OR PAYLOAD")
        ended = "" if row["ended_ms"] is None else moment(row["ended_ms"])
        line = _COLUMNS.format(row["id"], row["state"], ended, row["attempts"], row["queue"])
        click.echo(line + showing.shortened(showing.content_shown(bytes(row["payload"])), len(line)))
    if number < 0:
        click.echo("no such tasks", err=True)


def document(row: Mapping[str, Any]) -> dict[str, Any]:
    """As ``skuld get`` has it, and what only the archive knows."""
    from skuld_py.archive.rows import task_of
    from skuld_py.verbs import documents

    return {**documents.task(task_of(row), has_logs=True), "ended_ms": row["ended_ms"],
            "attempts": row["attempts"], "day": row["day"], "batch": row["batch"]}


def _show_answer(found: History, sql: str, limit: int | None, as_json: bool) -> None:
    from skuld_py.cli import showing, sql_values

    names, rows = found.answer(sql, limit)
    if not as_json:
        click.echo("\t".join(map(showing.harmless, names)))
    for row in rows:
        if as_json:
            showing.print_json(sql_values.document(names, row))
        else:
            click.echo("\t".join(map(sql_values.text, row)))
