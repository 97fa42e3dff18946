"""``skuld list``: tasks one per line, streamed, however many there are.

Lines of fixed columns and not a table, because a table must know its last row before it can print its
first. As JSON it is one document per line, for the same reason.
"""

from __future__ import annotations

from datetime import datetime
from itertools import islice

import click

from skuld_py.cli.acting import taking
from skuld_py.cli.options import client_options, connected
from skuld_py.verbs import tasks

PAGE = 500
_COLUMNS = "{:<32}  {:<9}  {:>8}  {:>6}  {:<16}  "


@click.command("list")
@taking(*tasks.list_tasks.asks.options)
@client_options
def list_tasks(queue: str | None, limit: int | None, states: tuple[str, ...], since: datetime | None,
               until: datetime | None, function: str | None, argument: str | None, header: str | None,
               error: str | None, key: str | None, after: bytes | None, nodes: str, timeout_s: float,
               as_json: bool) -> None:
    """List the tasks of QUEUE, or all, oldest first, whatever their state.

    \b
    Examples:
      skuld list
      skuld list reports --limit 20
      skuld list reports --state dead --state cancelled --since 24h
      skuld list shop --function shop:add --argument 'day=2026-11-*'
      skuld list --state dead --error '*timeout*' --header 'tenant=acme'
      skuld list shop --key customer-7
      skuld list reports --json | jq -r 'select(.state == "waiting") | .id'
    """
    from skuld_py.cli import showing
    from skuld_py.model.ids import to_text
    from skuld_py.model.names import check_name
    from skuld_py.verbs import documents

    if queue is not None:
        check_name("queue", queue)
    heads = _COLUMNS.format("ID", "STATE", "PRIORITY", "CLAIMS", "QUEUE")
    is_chosen = bool(function or argument or header or error or key)
    with connected(nodes, timeout_s) as client:
        found = client.list(queue, states=states, since=since, until=until, function=function,
                            argument=argument, header=header, error=error, key=key, after=after,
                            page=PAGE if is_chosen else min(PAGE, limit or PAGE))
        for number, task in enumerate(islice(found, limit)):
            if as_json:
                showing.print_json(documents.task(task, has_logs=False))
                continue
            if number == 0:
                click.echo(heads + "CALL OR PAYLOAD")
            line = _COLUMNS.format(to_text(task.id), task.state, task.priority,
                                   len(task.claims), task.queue)
            click.echo(line + showing.shortened(showing.content_shown(task.payload), len(line)))
