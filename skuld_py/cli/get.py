"""``skuld get``: everything about a task, above all who held it, when, and what they logged.

Times are this machine's zone; they were taken by the clocks of the nodes, so over nodes they compare
only to within the cluster's skew bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skuld_py.cli.options import client_options, connected
from skuld_py.cli.values import TASK_ID, many

if TYPE_CHECKING:
    from skuld_py.model.task import Task


@click.command()
@click.argument("ids", metavar="ID...", type=TASK_ID, nargs=-1, required=True)
@client_options
def get(ids: tuple[bytes, ...], nodes: str, timeout_s: float, as_json: bool) -> None:
    """Show the tasks ID...: payload, all claims and their logs. Fails when one of them does not exist.

    \b
    Examples:
      skuld get 000006cvl5s5o0000000e1k0g5u3k7qh
      skuld get 000006cvl5s5o0000000e1k0g5u3k7qh --json | jq .claims
      skuld list reports --json | jq -r .id | xargs skuld get --json
    """
    from skuld_py.cli.showing import now_ms, print_json, task_document
    from skuld_py.errors import Refused
    from skuld_py.model.ids import to_text

    with connected(nodes, timeout_s) as client:
        found = {bytes(task.id): task for task in client.get_many(list(dict.fromkeys(ids)))}
    for number, task_id in enumerate(ids):
        if task_id not in found:
            raise Refused("no_such_task", f"id: no task {to_text(task_id)}", id=task_id)
        if as_json:
            print_json(task_document(found[task_id], now_ms()))
            continue
        if number:
            click.echo()
        _show(found[task_id], now_ms())


def _show(task: Task, at_ms: int) -> None:
    from skuld_py.cli import showing
    from skuld_py.model.ids import time_of, to_text

    state = showing.state_of(task, at_ms)
    if task.completed_ms is not None:
        state += (f" {showing.moment(task.completed_ms)} ({showing.distance(task.completed_ms, at_ms)})"
                  f" by claim {task.completed_token}")
    made_ms = time_of(task.id)
    for name, value in (
            ("task", to_text(task.id)), ("queue", task.queue), ("priority", str(task.priority)),
            ("enqueued", f"{showing.moment(made_ms)} ({showing.distance(made_ms, at_ms)})"), ("state", state),
            ("payload", showing.shown(task.payload, is_one_line=False))):
        click.echo(f"{name:<10}{value}")
    _show_claims(task, at_ms)
    _show_logs(task)


def _show_claims(task: Task, at_ms: int) -> None:
    from skuld_py.cli import showing

    if not task.claims:
        click.echo("claims    none so far")
        return
    rows = showing.table("claim>", "holder", "from", "until", "outcome")
    for claim in task.claims:
        rows.add_row(str(claim.token), claim.holder, showing.moment(claim.start_ms),
                     showing.moment(claim.end_ms), showing.fate_of(claim, task, at_ms))
    showing.print_table(rows, many(len(task.claims), "claim"))


def _show_logs(task: Task) -> None:
    from skuld_py.cli import showing

    if not any(claim.log for claim in task.claims):
        return
    rows = showing.table("claim>", "entry>", "text")
    for claim in task.claims:
        for seq, data in enumerate(claim.log):
            rows.add_row(str(claim.token), str(seq), showing.shown(data))
    showing.print_table(rows, "log")
