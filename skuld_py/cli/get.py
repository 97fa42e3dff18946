"""``skuld get``: everything about a task, above all its holders, their times, and what they logged.

Times are this machine's zone; they were taken by the clocks of the nodes, so over nodes they compare
only to within the cluster's skew bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import click

from skuld_py.cli.acting import taking
from skuld_py.cli.options import client_options, connected
from skuld_py.verbs import tasks
from skuld_py.verbs.options import IDS
from skuld_py.verbs.words import many, moment

if TYPE_CHECKING:
    from skuld_py.client.attending import BatchStatus
    from skuld_py.client.client import Client
    from skuld_py.model.task import Task

CALL_CHARS = 1_000
"""Of a call, here; ``--json`` has all of it, in the payload."""


@click.command()
@taking(IDS, *tasks.get.asks.options)
@client_options
def get(ids: tuple[bytes, ...], min_seq: int, nodes: str, timeout_s: float, as_json: bool) -> None:
    """Show the tasks ID...: payload, all claims and their logs. Fails when one of them does not exist.

    \b
    Examples:
      skuld get 000006cvl5s5o0000000e1k0g5u3k7qh
      skuld get 000006cvl5s5o0000000e1k0g5u3k7qh --json | jq .claims
      skuld list reports --json | jq -r .id | xargs skuld get --json
    """
    from skuld_py.cli.collected import where_else
    from skuld_py.cli.showing import now_ms, print_json
    from skuld_py.errors import Refused
    from skuld_py.model.ids import none_said
    from skuld_py.verbs import documents

    with connected(nodes, timeout_s) as client:
        found = {bytes(task.id): task for task in client.get_many(list(dict.fromkeys(ids)), min_seq=min_seq)}
        batches = {} if as_json else _batches(client, found)
        missing = next((task_id for task_id in ids if task_id not in found), None)
        where = "" if missing is None else where_else(client, missing)
    for number, task_id in enumerate(ids):
        if task_id not in found:
            raise Refused("no_such_task", none_said([task_id], "id") + (where if task_id == missing else ""),
                          id=task_id)
        if as_json:
            print_json(documents.task(found[task_id], has_logs=True))
            continue
        if number:
            click.echo()
        show_task(found[task_id], now_ms(), batches.get(task_id))


def _batches(client: Client, found: Mapping[bytes, Task]) -> dict[bytes, BatchStatus]:
    """The batches of the workers that hold tasks which say nothing themselves, by task. Asked once for all."""
    from skuld_py.calls.payloads import function_of
    from skuld_py.errors import SkuldError

    silent = {task_id: function for task_id, task in found.items() if task.state == "claimed"
              and not task.claims[-1].log and (function := function_of(task.payload)) is not None}
    if not silent:
        return {}
    try:
        told = {(worker.name, batch.queue, batch.function): batch for worker in client.workers().workers
                for batch in worker.batches}
    except SkuldError:
        return {}
    keys = {task_id: (found[task_id].claims[-1].holder, found[task_id].queue, function)
            for task_id, function in silent.items()}
    return {task_id: told[key] for task_id, key in keys.items() if key in told}


def show_task(task: Task, at_ms: int, batch: BatchStatus | None = None) -> None:
    """All about a task, for people. ``batch``: of its worker, function and queue."""
    from skuld_py.model.ids import to_text

    for name, value in (
            ("task", to_text(task.id)), ("queue", task.queue), ("priority", str(task.priority)),
            ("enqueued", _when(task.enqueued_ms, at_ms)), ("state", _state_said(task, at_ms)),
            *_options_said(task, at_ms),
            _content_said(task.payload), *_outcomes_said(task), *_checkpoint_said(task, at_ms)):
        click.echo(f"{name:<9} {value}")
    _show_claims(task, at_ms)
    _show_progress(task, at_ms)
    if batch is not None:
        _show_batch(batch, at_ms)
    _show_logs(task)


def _content_said(payload: bytes) -> tuple[str, str]:
    from skuld_py.calls.sight import call_line
    from skuld_py.cli import showing

    line = call_line(payload, CALL_CHARS)
    return ("payload", showing.shown(payload, is_one_line=False)) if line is None else ("call", line)


def _when(then_ms: int, at_ms: int) -> str:
    from skuld_py.cli import showing

    return f"{moment(then_ms)} ({showing.distance(then_ms, at_ms)})"


def _state_said(task: Task, at_ms: int) -> str:
    """The state, and since when or why."""
    if task.completed_ms is not None:
        return f"{task.state} {_when(task.completed_ms, at_ms)} by claim {task.completed_token}"
    if task.cancelled_ms is not None:
        is_held = task.state != "cancelled"
        return f"{task.state}{', cancelled' if is_held else ''} {_when(task.cancelled_ms, at_ms)}"
    if task.state == "dead":
        return f"dead: {task.death}" + (f", {_when(task.died_ms, at_ms)}" if task.died_ms else "")
    return task.state


def _options_said(task: Task, at_ms: int) -> Iterator[tuple[str, str]]:
    """What it was enqueued with, as far as it is not usual."""
    from skuld_py.cli import showing
    from skuld_py.model.body import DEFAULT_RETRY

    if task.due_ms and not (task.is_completed or task.state in ("dead", "cancelled")):
        yield "due", _when(task.due_ms, at_ms)
    if task.expires_ms is not None:
        yield "expires", _when(task.expires_ms, at_ms)
    if task.retry != DEFAULT_RETRY:
        yield "attempts", f"at most {task.retry.max_attempts}"
    if task.key:
        yield "key", showing.harmless(task.key)
    for dep in task.deps:
        yield "waits for" if dep in task.blocked_by else "waited for", str(dep)
    for other in task.blocked_by:
        if other not in task.deps:
            yield "behind", str(other)
    for key, value in task.headers.items():
        yield "header", showing.harmless(f"{key}={value}")


def _outcomes_said(task: Task) -> Iterator[tuple[str, str]]:
    from skuld_py.cli import showing
    from skuld_py.verbs.outputs import outputs_said

    if task.result is not None:
        yield "result", showing.result_shown(task.result, is_one_line=False)
    for line in outputs_said(task):
        yield "output", showing.harmless(line)
    if task.error is not None:
        told = "error" if task.state == "dead" else "last error"  # which another attempt may have cured
        yield told, showing.shown(task.error, is_one_line=False).rstrip()


def _checkpoint_said(task: Task, at_ms: int) -> Iterator[tuple[str, str]]:
    from skuld_py.cli import showing

    if (found := task.checkpoint) is not None:
        said = showing.result_shown(found.value) or "nothing"
        yield "reached", (f"{said} ({many(len(found.data), 'byte')}, by claim {found.token},"
                             f" {showing.distance(found.at_ms, at_ms)})")


def _show_claims(task: Task, at_ms: int) -> None:
    from skuld_py.cli import showing

    if not task.claims:
        click.echo("claims    none so far")
        return
    rows = showing.table("claim>", "holder", "from", "until", "outcome")
    for claim in task.claims:
        rows.add_row(str(claim.token), claim.holder, moment(claim.start_ms),
                     moment(claim.end_ms), showing.fate_of(claim, task, at_ms))
    showing.print_table(rows, many(len(task.claims), "claim"))


def _show_progress(task: Task, at_ms: int) -> None:
    """How far the claim is that is held, if it says."""
    from skuld_py.cli import showing
    from skuld_py.cli.bars import bars
    from skuld_py.verbs.progress import progress_of

    if task.state != "claimed":
        return
    claim = task.claims[-1]
    if (seen := progress_of(claim.token, claim.log)) is not None:
        since = "" if seen.at_ms is None else f", {showing.distance(seen.at_ms, at_ms)}"
        click.echo(f"\nprogress of claim {claim.token}{since}")
        showing.console().print(bars(seen))


def _show_batch(batch: BatchStatus, at_ms: int) -> None:
    """How far the worker is with the batch of tasks that are like this one."""
    from skuld_py.cli import showing
    from skuld_py.cli.bars import bars
    from skuld_py.verbs.progress import progress_of_batch

    click.echo(f"\nits worker runs {many(batch.tasks, 'task')} of {showing.harmless(batch.function)} together,"
               f" since {showing.distance(batch.since_ms, at_ms)}")
    showing.console().print(bars(progress_of_batch(batch)))


def _show_logs(task: Task) -> None:
    from skuld_py.cli import showing
    from skuld_py.verbs.progress import sentence, time_of

    if not any(claim.log for claim in task.claims):
        return
    rows = showing.table("claim>", "entry>", "at", "text")
    for claim in task.claims:
        for seq, data in enumerate(claim.log, claim.left_out):
            rows.add_row(str(claim.token), str(seq), time_of(data), sentence(data))
    showing.print_table(rows, "log")
    if task.is_cut:
        click.echo("          the oldest entries are left out; 'skuld log' shows all")
