"""``skuld workflow status``: how a workflow is, as the coordination log knows it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import click

from skuld_py.cli.options import client_options, connected

if TYPE_CHECKING:
    from rich.table import Table

    from skuld_py.client.client import Client
    from skuld_py.client.flows import WorkflowStatus, WorkflowStep
    from skuld_py.client.reading import Depth
    from skuld_py.model.task import Task
    from skuld_py.workflow.acking.checkpoint import Book


SEALS_SHOWN, CALL_CHARS, WORDS_CHARS = 100, 80, 200
STATES = ("waiting", "claimed", "completed")
"""Always shown of a step; the others where there are any."""
FAILING = {"scheduled": "to be tried again", "dead": "dead"}
"""The states of segments that have failed, and what is said of them."""
UNBOUNDED = 1 << 30
MARGIN_S = 600.0
"""How far clocks may be apart: no segment is older than its workflow's submission."""


@click.command()
@click.argument("id")
@client_options
def status(id: str, nodes: str, timeout_s: float, as_json: bool) -> None:
    """Show the workflow ID: its state, how far its steps are, and while it lives its inputs, and what fails.

    Of each step it says how many segments are in each state, as 'skuld list wf.ID.STEP' shows them, and of a live
    one how many slots it wants. A scheduled segment is to be tried again.

    Refused (no_such_workflow) when it was never submitted, or ended long ago, some thousand entries of the
    coordination log.

    \b
    Examples:
      skuld workflow status census
      skuld workflow status census --json | jq .state
    """
    import attrs

    from skuld_py.cli.showing import harmless, print_event, print_table
    from skuld_py.verbs.workflows import document
    from skuld_py.workflow.acking.checkpoint import roots_said

    with connected(nodes, timeout_s) as client:
        found = client.workflow(id)
        starved = starved_in(client, found)
        feeders = client.get_many([*found.feeders.values()]) if found.is_live else []
        books = books_of(found, feeders)
        depths = depths_of(client, found)
        troubles = troubles_of(found, feeders, seals_of(client, found)) + failing_of(client, found, depths or {})
    roots = {name: {"drawn": book.next, "complete": book.completed, "pending": book.pending,
                    "is_drained": book.is_drained} for name, book in books.items()}
    print_event(as_json, line_of(found), **document(found), roots=roots, starved=starved,
                troubles=troubles, segments={step: attrs.asdict(depth) for step, depth in (depths or {}).items()})
    if as_json:
        return
    if starved:
        click.echo(starving(starved))
    for name, book in books.items():
        click.echo(f"input {name}: {roots_said(book)}")
    for trouble in troubles:
        click.echo(harmless(trouble))
    if found.steps or depths:
        print_table(steps_table(found, depths))


def steps_table(found: WorkflowStatus, counted: Mapping[str, Depth] | None) -> Table:
    """The steps and their segments by states; of a live workflow also how each step is, and what it wants."""
    from skuld_py.cli.showing import table

    depths = counted or {}
    rare = [state for state in (*FAILING, "cancelled") if any(getattr(depth, state) for depth in depths.values())]
    states = [] if counted is None else [*STATES, *rare]
    has_tags = any(step.tags for step in found.steps)
    kinds, wants = (["kind", "state"], ["wants", *["tags"] * has_tags]) if found.steps else ([], [])
    rows = table("step", *kinds, *(f"{state}>" for state in states), *wants)
    counts = {step: [f"{getattr(depths.get(step), state, 0):,}" for state in states]
              for step in (*depths, *(each.name for each in found.steps))}
    for step in found.steps:
        rows.add_row(step.name, step.kind, progress_of(found, step), *counts[step.name], wants_of(step),
                     *[", ".join(step.tags)] * has_tags)
    for name in () if found.steps else sorted(depths):
        rows.add_row(name, *counts[name])
    return rows


def progress_of(found: WorkflowStatus, step: WorkflowStep) -> str:
    """How a step is, by what the log knows: once all inputs are exhausted, every step has done what it had to."""
    if step.name in found.exhausted:
        return "exhausted"
    if step.name in found.sealed:
        return "sealed"
    if not found.is_sealing:
        return "open"
    return "sealing" if step.kind == "output" else "finished"


def wants_of(step: WorkflowStep) -> str:
    """How many slots it needs, and can use; of an input, how many feeders."""
    from skuld_py.verbs.words import many
    from skuld_py.workflow.graph.words import feeders_said

    if step.kind == "input":
        return feeders_said(step.least, len(step.sources))
    if step.most >= UNBOUNDED:
        return f"{step.least} or more slots"
    return many(step.most, "slot") if step.least == step.most else f"{step.least}..{step.most} slots"


def depths_of(client: Client, found: WorkflowStatus) -> dict[str, Depth] | None:
    """By step, how many segments are in each state; None for a key that may not count all queues."""
    from skuld_py.errors import Refused
    from skuld_py.workflow.definition.names import is_own, step_of

    try:
        every = client.depths()
    except Refused:
        return None
    named = [(step_of(queue) or ("", ""), depth) for queue, depth in every.items()]
    return {step: depth for (workflow, step), depth in named if workflow == found.id and not is_own(step)}


def failing_of(client: Client, found: WorkflowStatus, depths: Mapping[str, Depth]) -> list[str]:
    """Of each step how many segments are to be tried again, or are dead; and of one of them the error: of a dead
    one, which nodes find by an index, or else of one that is among the first of all that a node looks at for a
    page. To look on could take thousands of requests."""
    from skuld_py.model.ids import TaskId
    from skuld_py.workflow.definition.names import queue_of

    said = []
    for step, depth in depths.items() if found.is_live else ():
        known = [(getattr(depth, state), words) for state, words in FAILING.items()]
        counts = [f"{count:,} {words}" for count, words in known if count]
        if not counts:
            continue
        listed = client.list_page(queue_of(found.id, step), states=["dead" if depth.dead else "scheduled"], page=1,
                                  since=max(0.0, found.life / 1000 - MARGIN_S))
        failed = client.get_many([task.id for task in listed.tasks])
        errors = [f"; see 'skuld get {TaskId(task.id)}': {first_line(task.error)}" for task in failed
                  if task.error is not None]
        said.append(f"step {step}, segments: {', '.join(counts)}{''.join(errors)}")
    return said


def starved_in(client: Client, found: WorkflowStatus) -> str:
    """Why no slot works on a workflow; nothing where one does, or nobody is told so."""
    from skuld_py.errors import Refused

    with contextlib.suppress(Refused):  # a key that may not ask for the cluster's status
        return next((row.reason for row in client.status().starved if row.workflow == found.id), "")
    return ""


def starving(reason: str) -> str:
    """Why no slot works on a workflow, and where slots come from."""
    from skuld_py.cli.showing import harmless

    return (f"it waits, no slot works on it: {harmless(reason)}; slots are what 'skuld worker --workflows' brings,"
            " by its --slots and --tag")


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
            said.append(f"{name} failed, see 'skuld get {TaskId(task.id)}'; {end}: {first_line(task.error)}")
    return said


def first_line(error: bytes) -> str:
    """Of an error the line that says what it is, shortened."""
    return error.decode("utf-8", "replace").partition("\n")[0][:WORDS_CHARS]


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
