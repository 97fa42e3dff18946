"""``skuld workflow await``: wait for the end of a workflow; the exit code says which."""

from __future__ import annotations

import click

from skuld_py.cli.options import client_options, connected
from skuld_py.cli.values import Duration


@click.command("await")
@click.argument("id")
@click.option("--wait", "wait_s", type=Duration(), metavar="DURATION", default=None, show_default="for ever",
              help="How long to wait.")
@client_options
def await_workflow(id: str, wait_s: float | None, nodes: str, timeout_s: float, as_json: bool) -> None:
    """Wait until the workflow ID has ended. Fails when it was killed, or has not ended by then (not_ended).

    \b
    Examples:
      skuld workflow await census
      skuld workflow await census --wait 2h --json
    """
    import math

    from skuld_py.cli.showing import print_event
    from skuld_py.cli.workflow_status import line_of
    from skuld_py.errors import Refused
    from skuld_py.verbs.workflows import document

    with connected(nodes, timeout_s) as client:
        status = client.await_workflow(id, timeout_s=math.inf if wait_s is None else wait_s)
    print_event(as_json, line_of(status), **document(status))
    if status.is_live:
        raise Refused("not_ended", f"id: the workflow {id} has not ended by now; wait longer")
    if status.state == "killed":
        raise Refused("killed", f"id: the workflow {id} was killed", workflow=id)
