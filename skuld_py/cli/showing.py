"""How tasks look on a terminal; as JSON they are ``verbs.documents``.

Payloads come from any client. On a terminal, bytes that are no UTF-8 are shown as ``base64:...`` and control
characters as escapes, so that no payload can move the cursor or recolour the screen. JSON has the same characters
escaped as JSON does it.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from skuld_py.client.json_text import harmless_text, json_text
from skuld_py.verbs import contents
from skuld_py.verbs.words import moment, said

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from skuld_py.client.client import Claim
    from skuld_py.model.task import ClaimView, Task

NEW_LINE = b"\n"
WIDTH_OF_FILES = 200
"""Columns of a table that goes to a file or a pipe: wide enough not to break ids and tokens."""


def now_ms() -> int:
    """This machine's wall clock."""
    return time.time_ns() // 1_000_000


def console() -> Console:
    """Where tables go; never interprets what a task holds as markup."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else WIDTH_OF_FILES
    return Console(width=width, markup=False, highlight=False, emoji=False)


def table(*columns: str) -> Table:
    """An empty table in the style of all others; columns that end in ``>`` hold numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in columns:
        made.add_column(column.rstrip(">"), justify="right" if column.endswith(">") else "left",
                        overflow="fold")
    return made


def print_table(rows: Table, title: str = "") -> None:
    """Below an empty line and its title."""
    click.echo(f"\n{title}" if title else "")
    console().print(rows)


def print_json(document: object) -> None:
    """One JSON document on one line; in ASCII where the output cannot take more."""
    is_wide = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "") == "utf8"
    click.echo(json_text(document, is_ascii=not is_wide))


def print_event(as_json: bool, words: str, **document: object) -> None:
    """Print a report of a verb that is done, or runs: a line for people, or a document."""
    print_json(document) if as_json else click.echo(words)


def show_progress(tasks: int) -> None:
    """Show how many tasks are done so far, if anyone watches; the next line printed takes its place."""
    if sys.stderr.isatty():
        click.echo(f"{tasks} tasks\r", nl=False, err=True)


# -- payloads ------------------------------------------------------------------------------------


shown = contents.shown
"""Bytes for a terminal: harmless text, or base64 with a mark."""


def result_shown(value: object, *, is_one_line: bool = True) -> str:
    """What a task returned, for a terminal: text as it is, bytes as bytes are, other values as JSON."""
    from skuld_py.calls.results import shown as parts_of

    return shown(parts_of(value)[1], is_one_line=is_one_line)


def content_shown(payload: bytes, *, is_one_line: bool = True) -> str:
    """A payload, as a call if it is one."""
    from skuld_py.calls.sight import call_line

    return call_line(payload) or shown(payload, is_one_line=is_one_line)


harmless = harmless_text
"""Text that others wrote, with all that could move a cursor as escapes."""


def shortened(text: str, taken: int) -> str:
    """Cut to what is left of a terminal's line; whole when it goes to a file or a pipe."""
    if not sys.stdout.isatty():
        return text
    room = max(20, shutil.get_terminal_size().columns - taken)
    return text if len(text) <= room else text[: room - 1] + "…"


# -- times ---------------------------------------------------------------------------------------


def distance(at_ms: int, from_ms: int) -> str:
    """How far a time is from another one: ``3 s ago``, ``in 2 min``."""
    apart = said(abs(at_ms - from_ms) / 1000)
    return f"in {apart}" if at_ms > from_ms else f"{apart} ago"


def said_weights(queues: Mapping[str, int]) -> str:
    """Queues as a worker was given them: ``a:3, b``."""
    return ", ".join(queue if weight == 1 else f"{queue}:{weight}" for queue, weight in queues.items())


# -- tasks and claims ----------------------------------------------------------------------------


def fate_of(claim: ClaimView, task: Task, at_ms: int) -> str:
    """What became of a claim, in a few words; of an error its first line."""
    if claim.completed_ms is not None:
        return f"completed {moment(claim.completed_ms)}"
    if claim.is_released:
        why = f": {shown(claim.error.partition(NEW_LINE)[0])}" if claim.error else ""
        is_last = task.state == "dead" and claim == task.claims[-1]
        until = f", rests until {moment(claim.until_ms)}" if claim.until_ms and not is_last else ""
        return (claim.outcome or "released") + why + until
    if claim.end_ms > at_ms and not task.is_completed:
        return f"held, ends {distance(claim.end_ms, at_ms)}"
    return f"ended {distance(claim.end_ms, at_ms)}" if claim.end_ms <= at_ms else "superseded"


def token_text(claim: Claim) -> str:
    """A claim's token, with its proof where it has one."""
    return f"{claim.token}-{claim.proof.hex()}" if claim.proof else str(claim.token)
