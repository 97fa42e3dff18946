"""``skuld workflow submit``: have a cluster run a workflow.

The verb reads the file, checks it, and hands over its text; the client does the rest, so it may be said again.
"""

from __future__ import annotations

import click

from skuld_py.cli.definitions import definition_argument, definition_of
from skuld_py.cli.options import client_options, connected


@click.command()
@definition_argument
@client_options
def submit(file: str, nodes: str, timeout_s: float, as_json: bool) -> None:
    """Have the workflow run whose definition is FILE. Submitted again it is the same one, even if it has ended.

    FILE is JSON, TOML, - for standard input, or MODULE:NAME. It is checked whole first, as by 'skuld workflow
    check'. Another definition under the id of a known workflow is refused.

    \b
    Examples:
      skuld workflow submit census.toml
      skuld workflow submit acme.flows:census --json
    """
    from skuld_py.cli.showing import print_event
    from skuld_py.cli.workflow_status import line_of
    from skuld_py.verbs.workflows import document

    definition = definition_of(file)
    with connected(nodes, timeout_s) as client:
        status = client.submit_workflow(definition)
    again = "" if status.is_live else "; it does not run again, so give yours another id"
    print_event(as_json, line_of(status) + again, **document(status))
