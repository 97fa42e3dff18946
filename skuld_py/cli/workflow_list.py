"""``skuld workflow list``: the workflows that the coordination log knows."""

from __future__ import annotations

import click

from skuld_py.cli.options import client_options, connected


@click.command("list")
@client_options
def list_workflows(nodes: str, timeout_s: float, as_json: bool) -> None:
    """List the workflows that live, and those that ended not long ago, in the order of their submission.

    Entries are those of the coordination log: 'skuld cluster log NAME --from ENTRY' shows when one was written.

    \b
    Examples:
      skuld workflow list
      skuld workflow list --json | jq -r 'select(.state == "live") | .id'
    """
    from skuld_py.cli.showing import harmless, print_json, print_table, table
    from skuld_py.verbs.workflows import document

    with connected(nodes, timeout_s) as client:
        found = client.workflows()
    if as_json:
        for each in found:
            print_json(document(each))
        return
    if not found:
        click.echo("there are no workflows")
        return
    rows = table("workflow", "state", "submitted by entry>", "so since entry>", "reason")
    for each in found:
        rows.add_row(each.id, each.state, str(each.submitted), str(each.since), harmless(each.reason))
    print_table(rows)
