"""``skuld workflow await``: wait for the end of a workflow; the exit code says which."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import click

from skuld_py.cli.options import client_options, connected
from skuld_py.cli.values import Duration

if TYPE_CHECKING:
    from skuld_py.client.client import Client
    from skuld_py.client.flows import WorkflowStatus

LOOK_S = 10.0
"""How often it is asked whether any slot works on it."""


@click.command("await")
@click.argument("id")
@click.option("--wait", "wait_s", type=Duration(), metavar="DURATION", default=None, show_default="for ever",
              help="How long to wait.")
@client_options
def await_workflow(id: str, wait_s: float | None, nodes: str, timeout_s: float, as_json: bool) -> None:
    """Wait until the workflow ID has ended. Fails when it was killed, or has not ended by then (not_ended).

    While no slot works on it, a line on standard error says why; Ctrl-C ends the waiting, not the workflow.

    \b
    Examples:
      skuld workflow await census
      skuld workflow await census --wait 2h --json
    """
    from skuld_py.cli.showing import print_event
    from skuld_py.cli.workflow_status import line_of
    from skuld_py.errors import Refused
    from skuld_py.verbs.workflows import document

    with connected(nodes, timeout_s) as client:
        status = awaited(client, id, wait_s, (lambda words: None) if as_json else partial(click.echo, err=True))
    print_event(as_json, line_of(status), **document(status))
    if status.is_live:
        raise Refused("not_ended", f"id: the workflow {id} has not ended by now; wait longer")
    if status.state == "killed":
        raise Refused("killed", f"id: the workflow {id} was killed", workflow=id)


def awaited(client: Client, id: str, wait_s: float | None, say: Callable[[str], object]) -> WorkflowStatus:
    """A workflow once it has ended, or how it is when the wait is over. Why no slot works on it is said once, and
    again when the reason is another."""
    from skuld_py.cli.workflow_status import starved_in, starving

    said = ""
    while True:
        slice_s = LOOK_S if wait_s is None else min(LOOK_S, wait_s)
        status = client.await_workflow(id, timeout_s=slice_s)
        wait_s = None if wait_s is None else wait_s - slice_s
        if not status.is_live or wait_s == 0.0:
            return status
        starved = starved_in(client, status)
        if starved and starved != said:
            say(starving(starved))
        said = starved
