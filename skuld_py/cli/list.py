"""``skuld list``: tasks one per line, streamed, however many there are.

Lines of fixed columns and not a table, because a table must know its last row before it can print its
first. As JSON it is one document per line, for the same reason.
"""

from __future__ import annotations

from datetime import datetime
from itertools import islice

import click

from skuld_py.cli.options import client_options, connected, states_option
from skuld_py.cli.values import PAST

PAGE = 500
_COLUMNS = "{:<32}  {:<9}  {:>8}  {:>6}  {:<16}  "


@click.command("list")
@click.argument("queue", required=False)
@click.option("--limit", type=click.IntRange(1), default=None, show_default="all",
              help="How many tasks at most.")
@states_option
@click.option("--since", type=PAST, metavar="WHEN", default=None, show_default="the beginning",
              help="Only what was enqueued then or later: an age as 2h, or 2026-12-01T08:00+01:00.")
@click.option("--until", type=PAST, metavar="WHEN", default=None, show_default="now",
              help="Only what was enqueued before then.")
@client_options
def list_tasks(queue: str | None, limit: int | None, states: tuple[str, ...], since: datetime | None,
               until: datetime | None, nodes: str, timeout_s: float, as_json: bool) -> None:
    """List the tasks of QUEUE, or all, oldest first, whatever their state.

    \b
    Examples:
      skuld list
      skuld list reports --limit 20
      skuld list reports --state dead --state cancelled --since 24h
      skuld list reports --json | jq -r 'select(.state == "waiting") | .id'
    """
    from skuld_py.cli import showing
    from skuld_py.model.ids import to_text
    from skuld_py.model.names import check_name
    from skuld_py.verbs import documents

    if queue is not None:
        check_name("queue", queue)
    header = _COLUMNS.format("ID", "STATE", "PRIORITY", "CLAIMS", "QUEUE")
    with connected(nodes, timeout_s) as client:
        tasks = client.list(queue, states=states, since=since, until=until, page=min(PAGE, limit or PAGE))
        for number, task in enumerate(islice(tasks, limit)):
            if as_json:
                showing.print_json(documents.task(task, has_logs=False))
                continue
            if number == 0:
                click.echo(header + "PAYLOAD")
            line = _COLUMNS.format(to_text(task.id), task.state, task.priority,
                                   len(task.claims), task.queue)
            click.echo(line + showing.shortened(showing.shown(task.payload), len(line)))
