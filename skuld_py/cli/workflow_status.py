"""``skuld workflow status``: how a workflow is, as the coordination log knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skuld_py.cli.options import client_options, connected

if TYPE_CHECKING:
    from skuld_py.client.flows import WorkflowStatus


@click.command()
@click.argument("id")
@client_options
def status(id: str, nodes: str, timeout_s: float, as_json: bool) -> None:
    """Show the workflow ID: its state, and its steps while it lives.

    Refused (no_such_workflow) when it was never submitted, or ended long ago, some thousand entries of the
    coordination log.

    \b
    Examples:
      skuld workflow status census
      skuld workflow status census --json | jq .state
    """
    from skuld_py.cli.showing import print_event, print_table, table
    from skuld_py.verbs.workflows import document

    with connected(nodes, timeout_s) as client:
        found = client.workflow(id)
    print_event(as_json, line_of(found), **document(found))
    if as_json or not found.steps:
        return
    rows = table("step", "kind", "state", "slots", "tags")
    for step in found.steps:
        state = "exhausted" if step.name in found.exhausted else "sealed" if step.name in found.sealed else "open"
        most = "" if step.most >= 1 << 30 else f" to {step.most}"
        slots = "one feeder" if step.kind == "input" else f"{step.least}{most or ' or more'}"
        rows.add_row(step.name, step.kind, state, slots, ", ".join(step.tags))
    print_table(rows)


def line_of(found: WorkflowStatus) -> str:
    """A workflow in a line."""
    from skuld_py.cli.showing import harmless
    from skuld_py.verbs.words import many

    if found.state == "killed":
        return f"workflow {found.id} was killed{': ' * bool(found.reason)}{harmless(found.reason)}"
    if not found.is_live:
        return f"workflow {found.id} is complete"
    if not found.steps:
        return f"workflow {found.id} lives"
    inputs = sum(step.kind == "input" for step in found.steps)
    outputs = sum(step.kind == "output" for step in found.steps)
    return (f"workflow {found.id} lives: {len(found.exhausted)} of {many(inputs, 'input')} exhausted,"
            f" {len(found.sealed)} of {many(outputs, 'output')} sealed")
