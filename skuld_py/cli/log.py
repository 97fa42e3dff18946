"""``skuld log``: what the holders of a task wrote about it, claim by claim, and what they write next.

An entry is a line, or a document with ``--json``, so that the log of a task that runs for hours can be followed
by a program. Entries of different claims are told apart by their tokens: a later claim may begin again where an
earlier one was lost.
"""

from __future__ import annotations

import math

import click

from skuld_py.cli.acting import taking
from skuld_py.cli.options import client_options, connected
from skuld_py.cli.values import TASK_ID
from skuld_py.verbs import tasks


@click.command()
@click.argument("task_id", metavar="ID", type=TASK_ID)
@taking(*tasks.log.asks.options)
@client_options
def log(task_id: bytes, token: int | None, follow: bool, nodes: str, timeout_s: float, as_json: bool) -> None:
    """Show the log of the task ID: token, number and text of each entry, tab-separated.

    Texts that are no UTF-8 are shown as base64:...; --json has them exactly.

    \b
    Examples:
      skuld log 000006cvl5s5o0000000e1k0g5u3k7qh
      skuld log 000006cvl5s5o0000000e1k0g5u3k7qh --follow
      skuld log 000006cvl5s5o0000000e1k0g5u3k7qh --token 4294967297 --json | jq -r .data
    """
    from skuld_py.cli import showing
    from skuld_py.verbs import documents

    with connected(nodes, timeout_s) as client:
        for entry in client.log(task_id, token=token, follow_s=math.inf if follow else 0):
            showing.print_event(as_json, f"{entry.token}\t{entry.seq}\t{showing.shown(entry.data)}",
                                **documents.log_line(entry))
