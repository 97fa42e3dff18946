"""``skuld workflow kill``: end a workflow before it is complete."""

from __future__ import annotations

import click

from skuld_py.cli.options import client_options, connected


@click.command()
@click.argument("id")
@click.option("--reason", metavar="TEXT", default="", show_default="none", help="Why; shown with the workflow.")
@client_options
def kill(id: str, reason: str, nodes: str, timeout_s: float, as_json: bool) -> None:
    """End the workflow ID before it is complete. One that has ended stays as it is.

    Segments that are being worked on are refused when they are completed; nobody claims the others.

    \b
    Example:
      skuld workflow kill census --reason 'the input is wrong'
    """
    from skuld_py.cli.showing import print_event
    from skuld_py.cli.workflow_status import line_of
    from skuld_py.verbs.workflows import document

    with connected(nodes, timeout_s) as client:
        status = client.kill_workflow(id, reason)
    print_event(as_json, line_of(status), **document(status))
