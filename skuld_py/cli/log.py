"""``skuld log``: what the holders of a task wrote about it, claim by claim, and what they write next.

An entry is a line, or a document with ``--json``, so that the log of a task that runs for hours can be followed
by a program. Entries of different claims are told apart by their tokens: a later claim may begin again where an
earlier one was lost.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from skuld_py.cli.options import client_options, connected
from skuld_py.cli.values import TASK_ID, TOKEN, Duration

if TYPE_CHECKING:
    from skuld_py.client.client import Client


@click.command()
@click.argument("task_id", metavar="ID", type=TASK_ID)
@click.option("--token", type=TOKEN, default=None, show_default="all claims", help="Only the log of this claim.")
@click.option("-f", "--follow", is_flag=True, show_default=False,
              help="Go on with what is added, until the task is completed or Ctrl-C.")
@click.option("--every", "every_s", type=Duration(least_s=0.1, most_s=3600), metavar="DURATION", default="1s",
              help="How often to look, with --follow.")
@client_options
def log(task_id: bytes, token: int | None, follow: bool, every_s: float, nodes: str, timeout_s: float,
        as_json: bool) -> None:
    """Show the log of the task ID: token, number and text of each entry, tab-separated.

    Texts that are no UTF-8 are shown as base64:...; --json has them exactly.

    \b
    Examples:
      skuld log 000006cvl5s5o0000000e1k0g5u3k7qh
      skuld log 000006cvl5s5o0000000e1k0g5u3k7qh --follow
      skuld log 000006cvl5s5o0000000e1k0g5u3k7qh --token 4294967297 --json | jq -r .data
    """
    from skuld_py.cli import showing

    with connected(nodes, timeout_s) as client:
        for of, seq, data in _entries(client, task_id, token, every_s if follow else None):
            showing.print_event(as_json, f"{of}\t{seq}\t{showing.shown(data)}", token=of, seq=seq,
                                **showing.bytes_fields("data", data))


def _entries(client: Client, task_id: bytes, token: int | None,
             every_s: float | None) -> Iterator[tuple[int, int, bytes]]:
    """Token, number and text of each entry, once; again and again if it is followed."""
    shown: dict[int, int] = {}
    while True:
        task = client.get(task_id)
        for claim in task.claims:
            if token in (None, claim.token):
                first = shown.get(claim.token, 0)
                yield from ((claim.token, first + at, data) for at, data in enumerate(claim.log[first:]))
                shown[claim.token] = max(first, len(claim.log))
        if every_s is None or task.is_completed:
            return
        time.sleep(every_s)
