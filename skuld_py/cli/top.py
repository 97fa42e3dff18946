"""``skuld top``: a cluster at a glance, again and again: what needs attention, queues, what runs, nodes, leaders.

On a terminal it is one screen that is drawn anew, and leaves no trace when it ends, by q or Ctrl-C. Into a file
or a pipe it is one look below the other, and with ``--json`` one document a line. A node that dies is no end of
it: what went wrong stands on top, and the next look asks another node. Only the first look may fail.
"""

from __future__ import annotations

import os
import re
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from skuld_py.cli.options import addresses_of, client_options
from skuld_py.cli.values import Duration

if TYPE_CHECKING:
    from rich.console import RenderableType

    from skuld_py.cli.rates import Look
    from skuld_py.cli.stopping import Stopping

QUIT = frozenset("qQ\x04")
_OTHER_KEY = re.compile(r"\x1b(?:O.|\[[0-9;?]*.)?")
"""An arrow or a function key, as terminals send it: F2 ends in a Q."""
LINES_OF_FILES = 10_000
FIXED_LINES = 12
"""Lines of a screen that are not rows: the head, the heads of tables, and the blanks between them."""

RUNNING_LINES = 3
"""Head and blank of the table of what runs."""

Draw = Callable[["Look", "Look | None", str], None]
Pause = Callable[[float], bool]


@click.command()
@click.option("--every", "every_s", type=Duration(least_s=0.1, most_s=3600), metavar="DURATION", default="2s",
              help="How often to look.")
@click.option("--once", is_flag=True, show_default=False, help="Look once, for scripts; without rates.")
@client_options
def top(every_s: float, once: bool, nodes: str, timeout_s: float, as_json: bool) -> None:
    """Watch a cluster: what needs attention, what is deleted and archived, queues and their rates, what runs,
    nodes, and who leads what.

    Of claimed tasks up to 20 are named, the oldest of the last hour, as far as a short search finds them. A bar
    shows how far one is, if its log says so. Tasks that run together as one Spark job are one row, if that takes
    longer than 2 s.

    q or Ctrl-C ends it. Into a file or a pipe it prints one look below the other.

    \b
    Examples:
      skuld top
      skuld top --every 500ms
      skuld top --once --json | jq '.queues[] | select(.waiting > 1000)'
    """
    from skuld_py.cli.stopping import until_stopped
    from skuld_py.client.connection import Connection
    from skuld_py.client.dial import key_of

    addresses = addresses_of(nodes)
    connection = Connection(addresses, key=key_of(None, addresses))
    try:
        if once:
            _draw_once(as_json)(_look(connection, timeout_s, as_json=as_json), None, "")
            return
        with until_stopped() as stopping:
            stopping.shield()
            with _screen(as_json) as (draw, pause):
                _watch(partial(_look, connection, timeout_s, as_json=as_json), every_s, draw, pause, stopping)
    finally:
        connection.close()


def _look(connection: Any, timeout_s: float, *, as_json: bool) -> Look:
    from skuld_py.cli import situation
    from skuld_py.cli.rates import Look
    from skuld_py.cli.running import running, with_batches, with_progress
    from skuld_py.cli.showing import now_ms

    seen, at_ms = situation.look(connection, timeout_s), now_ms()
    has_claims = any(row.claimed for row in seen.depths)
    found = running(connection, at_ms, timeout_s) if has_claims else ()
    if has_claims and not as_json:
        singles = with_progress(connection, found, at_ms, timeout_s) if found else ()
        found = with_batches(connection, singles, timeout_s)
    return Look(time.monotonic(), at_ms, seen, found)


def _watch(look: Callable[[], Look], every_s: float, draw: Draw, pause: Pause, stopping: Stopping) -> None:
    """Look until the user ends it, which is heard while it asks and while it waits."""
    from skuld_py.errors import SkuldError

    before: Look | None = None
    with stopping.listening():
        now = look()
    doubt = ""
    while True:
        draw(now, before, doubt)
        with stopping.listening():
            if not pause(every_s):
                return
            try:
                before, now, doubt = now, look(), ""
            except SkuldError as error:
                doubt = error.message


# -- places to draw ------------------------------------------------------------------------------


@contextmanager
def _screen(as_json: bool) -> Iterator[tuple[Draw, Pause]]:
    """Where looks are drawn, and how the next one is waited for; a terminal is left as it was found."""
    from skuld_py.cli.showing import console

    terminal = console()
    if as_json or not terminal.is_terminal:
        yield _draw_once(as_json), _sleep
        return
    from rich.live import Live

    with _keys() as pause, Live(console=terminal, screen=True, auto_refresh=False) as live:
        yield lambda now, before, doubt: live.update(
            frame(now, before, doubt, terminal.size.height), refresh=True), pause


def _draw_once(as_json: bool) -> Draw:
    from skuld_py.cli.rates import document
    from skuld_py.cli.showing import console, print_json

    def draw(now: Look, before: Look | None, doubt: str) -> None:
        if as_json:
            print_json({"doubt": doubt} if doubt else document(now, before))
        else:
            console().print(frame(now, before, doubt, LINES_OF_FILES))
        sys.stdout.flush()

    return draw


def _sleep(seconds: float) -> bool:
    time.sleep(max(0.0, seconds))
    return True


@contextmanager
def _keys() -> Iterator[Pause]:
    """Wait for a time or for q; where no keys can be read, for the time alone."""
    import termios
    import tty

    try:
        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
    except (termios.error, OSError, ValueError):
        yield _sleep
        return
    try:
        tty.setcbreak(descriptor)
        yield lambda seconds: _heard(descriptor, seconds)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _heard(descriptor: int, seconds: float) -> bool:
    """Whether to go on: False as soon as a key says no."""
    deadline = time.monotonic() + seconds
    while True:
        left = max(0.0, deadline - time.monotonic())
        if not select.select([descriptor], [], [], left)[0]:
            return True
        typed = os.read(descriptor, 64).decode(errors="replace")
        if not typed or not QUIT.isdisjoint(_OTHER_KEY.sub("", typed)):
            return False


# -- a look as lines -----------------------------------------------------------------------------


def frame(now: Look, before: Look | None, doubt: str, height: int) -> RenderableType:
    """What is drawn: the head, what needs attention, and as many rows as fit."""
    from rich.console import Group
    from rich.text import Text

    from skuld_py.cli import situation as situations
    from skuld_py.cli.rates import queue_rows
    from skuld_py.cli.showing import harmless
    from skuld_py.verbs.words import many, moment

    seen = now.situation
    live = sum(node.is_live for node in seen.described.nodes)
    head = Text(f"cluster {seen.greeted.cluster}: {live} of {many(len(seen.described.nodes), 'node')} live,"
                f" {many(seen.greeted.partitions, 'partition')}; seen by {seen.described.node}"
                f" {moment(now.at_ms)[11:19]}")
    troubles = situations.attention(seen)
    if doubt:
        troubles.insert(0, f"the next look failed, this is the one before: {harmless(doubt)}")
    lines = [Text(f"! {line}", style="yellow") for line in troubles] or [Text("all is well", style="green")]
    if seen.collection is not None:
        lines.append(Text(situations.collection_said(seen.collection)))
    room = max(6, height - FIXED_LINES - len(lines))
    works, room = _running_table(now, room)
    nodes, partitions = situations.node_table(seen.described), _partition_table(now, max(2, room // 3))
    for_queues = max(3, room - len(seen.described.nodes) - min(len(seen.described.partitions), room // 3))
    queues = _queue_table(queue_rows(now, before), situations.states_shown(seen.depths), for_queues)
    return Group(head, *lines, Text(""), queues, Text(""), *works, nodes, Text(""), partitions)


def _running_table(now: Look, room: int) -> tuple[list[RenderableType], int]:
    """What runs, in a quarter of the room; and the room that is left."""
    from rich.text import Text

    from skuld_py.cli.bars import short_bar
    from skuld_py.cli.showing import distance, harmless, table

    most = min(len(now.running), (room - RUNNING_LINES) // 4)
    if most < 1:
        return [], room
    made = table("runs", "queue", "progress", "", "held by", "since")
    for row in now.running[:most]:
        made.add_row(row.call or row.id, row.queue, *short_bar(row.progress), harmless(row.holder),
                     distance(row.start_ms, now.at_ms))
    return [made, Text("")], room - most - RUNNING_LINES


def _queue_table(rows: list[Any], states: tuple[str, ...], most: int) -> RenderableType:
    from skuld_py.cli.showing import table

    made = table("queue", *(f"{state}>" for state in states), "in/s>", "done/s>")
    for row in rows[:most]:
        made.add_row(row.queue, *(f"{getattr(row, state):,}" for state in states),
                     _rate_said(row.enqueued_per_s), _rate_said(row.completed_per_s))
    if len(rows) > most:
        made.add_row(f"and {len(rows) - most} more")
    if not rows:
        made.add_row("no tasks so far")
    return made


def _rate_said(rate: float | None) -> str:
    return "" if rate is None else f"{rate:,.1f}"


def _partition_table(now: Look, most: int) -> RenderableType:
    """All partitions when they fit, else those without a leader first."""
    from skuld_py.cli.showing import table

    every = now.situation.described.partitions
    made = table("partition>", "epoch>", "leader", "voters")
    ordered = every if len(every) <= most else sorted(every, key=lambda row: (bool(row.leader), row.partition))
    for row in ordered[:most]:
        made.add_row(str(row.partition), str(row.epoch), row.leader or "none",
                     ", ".join(row.cohort or row.owners) or "none yet")
    if len(every) > most:
        made.add_row("…", "", f"{len(every) - most} more", "")
    return made
