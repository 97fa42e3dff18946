"""``skuld workflow status``: how a workflow is, as the coordination log knows it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from skuld_py.cli.options import client_options, connected

if TYPE_CHECKING:
    from skuld_py.client.client import Client
    from skuld_py.client.flows import WorkflowStatus
    from skuld_py.model.task import Task
    from skuld_py.workflow.acking.checkpoint import Book


@click.command()
@click.argument("id")
@client_options
def status(id: str, nodes: str, timeout_s: float, as_json: bool) -> None:
    """Show the workflow ID: its state, and while it lives its steps, and how far its inputs are.

    Refused (no_such_workflow) when it was never submitted, or ended long ago, some thousand entries of the
    coordination log.

    \b
    Examples:
      skuld workflow status census
      skuld workflow status census --json | jq .state
    """
    from skuld_py.cli.showing import harmless, print_event, print_table, table
    from skuld_py.verbs.workflows import document
    from skuld_py.workflow.acking.checkpoint import roots_said

    with connected(nodes, timeout_s) as client:
        found = client.workflow(id)
        starved = starved_in(client, found)
        books = books_of(found, client.get_many([*found.feeders.values()])) if found.is_live else {}
    roots = {name: {"drawn": book.next, "complete": book.completed, "deferred": book.deferred,
                    "pending": book.pending, "is_drained": book.is_drained} for name, book in books.items()}
    print_event(as_json, line_of(found), **document(found), roots=roots, starved=starved)
    if as_json or not found.steps:
        return
    if starved:
        click.echo(f"it waits, no slot works on it: {harmless(starved)}")
    for name, book in books.items():
        click.echo(f"input {name}: {roots_said(book)}")
    rows = table("step", "kind", "state", "slots", "tags")
    for step in found.steps:
        state = "exhausted" if step.name in found.exhausted else "sealed" if step.name in found.sealed else "open"
        most = "" if step.most >= 1 << 30 else f" to {step.most}"
        slots = "one feeder" if step.kind == "input" else f"{step.least}{most or ' or more'}"
        rows.add_row(step.name, step.kind, state, slots, ", ".join(step.tags))
    print_table(rows)


def starved_in(client: Client, found: WorkflowStatus) -> str:
    """Why no slot works on a workflow; nothing where one does, or nobody is told so."""
    from skuld_py.errors import Refused

    with contextlib.suppress(Refused):  # a key that may not ask for the cluster's status
        return next((row.reason for row in client.status().starved if row.workflow == found.id), "")
    return ""


def books_of(found: WorkflowStatus, feeders: Sequence[Task]) -> dict[str, Book]:
    """By input, how far its feeder is, by its newest checkpoint; of one that has none, nothing was drawn."""
    from skuld_py.errors import Malformed
    from skuld_py.workflow.acking.checkpoint import Book

    known = {task.id: task.checkpoint for task in feeders}
    books: dict[str, Book] = {}
    for step, feeder in found.feeders.items():
        checkpoint = known.get(feeder)
        with contextlib.suppress(Malformed):
            books[step] = Book.decode(None if checkpoint is None else checkpoint.value)
    return books


def line_of(found: WorkflowStatus) -> str:
    """A workflow in a line."""
    from skuld_py.cli.showing import harmless
    from skuld_py.verbs.words import many

    if found.state == "killed":
        left = f"; {many(found.left, 'task')} of it still to be cancelled, or held" if found.left else ""
        return f"workflow {found.id} was killed{': ' * bool(found.reason)}{harmless(found.reason)}{left}"
    if not found.is_live:
        return f"workflow {found.id} is complete"
    if not found.steps:
        return f"workflow {found.id} lives"
    inputs = sum(step.kind == "input" for step in found.steps)
    outputs = sum(step.kind == "output" for step in found.steps)
    return (f"workflow {found.id} lives: {len(found.exhausted)} of {many(inputs, 'input')} exhausted,"
            f" {len(found.sealed)} of {many(outputs, 'output')} sealed")
