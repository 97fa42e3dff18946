"""``skuld workflow status``: how a workflow is, as the coordination log knows it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

import click

from skuld_py.cli.options import client_options, connected

if TYPE_CHECKING:
    from skuld_py.client.client import Client
    from skuld_py.client.flows import WorkflowStatus
    from skuld_py.model.task import Task
    from skuld_py.workflow.acking.checkpoint import Book


SEALS_SHOWN, CALL_CHARS, WORDS_CHARS = 100, 80, 200


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
    from skuld_py.workflow.graph.words import feeders_said

    with connected(nodes, timeout_s) as client:
        found = client.workflow(id)
        starved = starved_in(client, found)
        feeders = client.get_many([*found.feeders.values()]) if found.is_live else []
        books = books_of(found, feeders)
        troubles = troubles_of(found, feeders, seals_of(client, found))
    roots = {name: {"drawn": book.next, "complete": book.completed, "deferred": book.deferred,
                    "pending": book.pending, "is_drained": book.is_drained} for name, book in books.items()}
    print_event(as_json, line_of(found), **document(found), roots=roots, starved=starved,
                troubles=troubles)
    if as_json or not found.steps:
        return
    if starved:
        click.echo(f"it waits, no slot works on it: {harmless(starved)}")
    for name, book in books.items():
        click.echo(f"input {name}: {roots_said(book)}")
    for trouble in troubles:
        click.echo(harmless(trouble))
    rows = table("step", "kind", "state", "slots", "tags")
    for step in found.steps:
        state = "exhausted" if step.name in found.exhausted else "sealed" if step.name in found.sealed else "open"
        most = "" if step.most >= 1 << 30 else f" to {step.most}"
        slots = (feeders_said(step.least, len(step.sources)) if step.kind == "input"
                 else f"{step.least}{most or ' or more'}")
        rows.add_row(step.name, step.kind, state, slots, ", ".join(step.tags))
    print_table(rows)


def starved_in(client: Client, found: WorkflowStatus) -> str:
    """Why no slot works on a workflow; nothing where one does, or nobody is told so."""
    from skuld_py.errors import Refused

    with contextlib.suppress(Refused):  # a key that may not ask for the cluster's status
        return next((row.reason for row in client.status().starved if row.workflow == found.id), "")
    return ""


def seals_of(client: Client, found: WorkflowStatus) -> list[Task]:
    """Of a workflow whose outputs are being sealed, the tasks that do it and that have not ended."""
    from skuld_py.workflow.definition.names import SEAL, are_alike, queue_of
    from skuld_py.workflow.segments import seal_queue

    if not found.is_sealing:
        return []
    leaves = [step for step in found.steps if step.kind == "output"]
    queues = ([queue_of(found.id, SEAL)] if are_alike(step.tags for step in leaves)
              else [seal_queue(found.id, step.name) for step in leaves if step.name not in found.sealed])
    tasks = (task for queue in queues for task in client.list(queue, page=SEALS_SHOWN))
    return client.get_many([task.id for task in islice(tasks, SEALS_SHOWN) if not task.is_completed])


def troubles_of(found: WorkflowStatus, feeders: Sequence[Task], seals: Sequence[Task]) -> list[str]:
    """What keeps failing of a workflow's own tasks, in words: those that draw from its inputs, and those that seal
    its outputs."""
    from skuld_py.calls.sight import call_line
    from skuld_py.model.ids import TaskId

    steps = {id: step for step, id in found.feeders.items()}
    rows = [(f"input {steps[TaskId(task.id)]}", task) for task in feeders if TaskId(task.id) in steps]
    rows += [(f"sealing, {call_line(task.payload, CALL_CHARS)}", task) for task in seals]
    said = []
    for name, task in rows:
        if task.error is not None and not task.is_completed:
            is_dead = task.state in ("dead", "cancelled")
            end = f"it is {task.state}, 'skuld retry' it once that is mended" if is_dead else "it is tried again"
            words = task.error.decode("utf-8", "replace").partition("\n")[0][:WORDS_CHARS]
            said.append(f"{name} failed, see 'skuld get {TaskId(task.id)}'; {end}: {words}")
    return said


def books_of(found: WorkflowStatus, feeders: Sequence[Task]) -> dict[str, Book]:
    """By input, how far its feeder is, by its newest checkpoint; of one that has none, nothing was drawn. Of one
    that has ended so long ago that it was collected nobody knows."""
    from skuld_py.errors import Malformed
    from skuld_py.workflow.acking.checkpoint import Book

    known = {task.id: task.checkpoint for task in feeders}
    books: dict[str, Book] = {}
    for step, feeder in found.feeders.items():
        if feeder not in known:
            continue
        checkpoint = known[feeder]
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
