"""``skuld log``: what the holders of a task wrote about it, claim by claim, and what they write next.

An entry is a line, or a document with ``--json``, so that the log of a task that runs for hours can be followed
by a program. Entries of different claims are told apart by their tokens: a later claim may begin again where an
earlier one was lost. On a terminal, bars below the lines show how far the claim is that is being followed; they
are gone when the log is over.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from skuld_py.cli.acting import taking
from skuld_py.cli.options import client_options, connected
from skuld_py.cli.values import TASK_ID
from skuld_py.verbs import tasks

if TYPE_CHECKING:
    from rich.console import Console

    from skuld_py.model.task import LogEntry


@click.command()
@click.argument("task_id", metavar="ID", type=TASK_ID)
@taking(*tasks.log.asks.options)
@client_options
def log(task_id: bytes, token: int | None, follow: bool, nodes: str, timeout_s: float, as_json: bool) -> None:
    """Show the log of the task ID: of each entry, tab-separated, token, number, local time and what it says.

    With --follow on a terminal, bars below show how far the task is. Entries that are no sentences are shown as
    text, and what is no UTF-8 as base64:...; --json has them exactly.

    \b
    Examples:
      skuld log 000006cvl5s5o0000000e1k0g5u3k7qh
      skuld log 000006cvl5s5o0000000e1k0g5u3k7qh --follow
      skuld log 000006cvl5s5o0000000e1k0g5u3k7qh --token 4294967297 --json | jq -r .data
    """
    from skuld_py.cli import showing
    from skuld_py.cli.collected import told_where
    from skuld_py.verbs import documents

    with connected(nodes, timeout_s) as client, told_where(client, [task_id]):
        entries = client.log(task_id, token=token, follow_s=math.inf if follow else 0)
        if as_json:
            for entry in entries:
                showing.print_json(documents.log_line(entry))
        elif follow and (terminal := showing.console()).is_terminal and not terminal.is_dumb_terminal:
            draw(terminal, entries)
        else:
            for entry in entries:
                click.echo(line_of(entry))


def line_of(entry: LogEntry) -> str:
    """An entry as a line."""
    from skuld_py.verbs.progress import sentence, time_of

    return "\t".join((str(entry.token), str(entry.seq), time_of(entry.data), sentence(entry.data)))


def draw(terminal: Console, entries: Iterable[LogEntry]) -> None:
    """Print what is said, and below it, as long as there is more to come, how far the claim is. At the end the
    newest progress is printed."""
    from rich.live import Live
    from rich.text import Text

    from skuld_py.cli.bars import bars
    from skuld_py.verbs import progress

    seen: progress.Progress | None = None
    newest: LogEntry | None = None
    with Live(console=terminal, auto_refresh=False, transient=True) as live:
        for entry in entries:
            seen = progress.followed(seen, entry.token, entry.data)
            if progress.is_progress(entry.data):
                newest = entry
            else:
                terminal.print(Text(line_of(entry)), soft_wrap=True)
            live.update(bars(seen) if seen is not None else "", refresh=True)
    if newest is not None:
        terminal.print(Text(line_of(newest)), soft_wrap=True)
