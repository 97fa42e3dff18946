"""``skuld list``: tasks one per line, streamed, however many there are.

Lines of fixed columns and not a table, because a table must know its last row before it can print its
first. As JSON it is one document per line, for the same reason.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from skuld_py.cli.acting import taking
from skuld_py.cli.options import client_options, connected
from skuld_py.verbs import tasks
from skuld_py.verbs.options import FILTERS

if TYPE_CHECKING:
    from skuld_py.model.task import Task

PAGE = 500
NEW_LINE = b"\n"
_COLUMNS = "{:<32}  {:<9}  {:>8}  {:>6}  {:<16}  "


@click.command("list")
@taking(*tasks.list_tasks.asks.options)
@client_options
def list_tasks(queue: str | None, limit: int | None, nodes: str, timeout_s: float, as_json: bool,
               **which: Any) -> None:
    """List the tasks of QUEUE, or all, oldest first, whatever their state.

    What --function, --argument, --header and --error ask for nodes do not know: all other tasks are read, too.
    With --error, '*' for any, the error stands behind each task. 'skuld bulk' does something to all that are
    found so, but has no --key and no --state. When there are none it prints nothing, and says so on standard
    error.

    \b
    Examples:
      skuld list
      skuld list reports --limit 20
      skuld list reports --state dead --error '*timeout*' --since 24h
      skuld list shop --function shop:add --argument 'day=2026-11-*'
      skuld list shop --header 'tenant=acme*'
      skuld list shop --key customer-7
      skuld list reports --json | jq -r 'select(.state == "waiting") | .id'
    """
    from skuld_py.cli import showing
    from skuld_py.model.ids import to_text
    from skuld_py.model.names import check_name
    from skuld_py.verbs import documents

    if queue is not None:
        check_name("queue", queue)
    header = _COLUMNS.format("ID", "STATE", "PRIORITY", "CLAIMS", "QUEUE")
    is_filtered = any(which[name] is not None for name in (*FILTERS, "key"))
    with connected(nodes, timeout_s) as client:
        found = client.list(queue, page=PAGE if is_filtered else min(PAGE, limit or PAGE), **which)
        number = -1
        for number, task in enumerate(islice(found, limit)):
            if as_json:
                showing.print_json(documents.task(task, has_logs=False))
                continue
            if number == 0:
                click.echo(header + "CALL OR PAYLOAD" + ("; ERROR" if which["error"] is not None else ""))
            line = _COLUMNS.format(to_text(task.id), task.state, task.priority,
                                   len(task.claims), task.queue)
            click.echo(line + showing.shortened(_content_of(task), len(line)))
    if number < 0 and not as_json:
        click.echo("no such tasks", err=True)


def _content_of(task: Task) -> str:
    """What a task is, and where it was asked for the first line of its error."""
    from skuld_py.cli import showing

    content = showing.content_shown(task.payload)
    return content if task.error is None else f"{content}; {showing.shown(task.error.partition(NEW_LINE)[0])}"
