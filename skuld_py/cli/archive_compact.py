"""``skuld archive compact``: few large files instead of many small ones, and an end for what is too old.

No node is asked. It may run while archivers write and while others read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from skuld_py.cli.options import json_option
from skuld_py.cli.values import DURATION
from skuld_py.verbs.words import many

if TYPE_CHECKING:
    from skuld_py.archive.compaction import Compacted, OnPart
    from skuld_py.errors import Refused

F = TypeVar("F", bound=Any)
UNREAD = 1
"""Exit code of a compaction that could not read some files."""


def memory_from_system() -> None:
    """Have Arrow, which is not loaded yet, take its memory from the C library, unless somebody has chosen. Its own
    pool gives little back of what is freed: after a compaction of a million tasks it has 60 MB more, and was no
    faster."""
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def keep_option(function: F) -> F:
    """Retention of the archive itself."""
    return click.option(
        "--keep", "keep_days", type=click.IntRange(1, 36_500), metavar="DAYS", default=None,
        show_default="for ever",
        help="Remove days from the archive that lie so far behind the newest on which a task ended.")(function)


@click.command()
@click.argument("root")
@keep_option
@click.option("--grace", "grace_s", type=DURATION, metavar="DURATION", default="1h",
              help="How long files that were replaced stay on the disk, for the sake of who reads them.")
@json_option
@click.pass_context
def compact(ctx: click.Context, root: str, keep_days: int | None, grace_s: float, as_json: bool) -> None:
    """Merge the small files of an archive, by the day on which tasks ended and by queue, into files of 64 to 256
    MB, and take over what earlier releases wrote (batch=B/queue=Q/day=D). ROOT is a directory of this machine.

    \b
    Examples:
      skuld archive compact /srv/skuld-archive
      skuld archive compact /srv/skuld-archive --keep 400
    """
    from skuld_py.archive.places import check_archive, local_path
    from skuld_py.errors import Refused
    from skuld_py.extras import require

    require("datasource", who="skuld archive compact")
    memory_from_system()
    from skuld_py.archive.arrow_site import Site
    from skuld_py.cli.failures import INTERRUPTED
    from skuld_py.cli.stopping import until_stopped

    path = local_path(root)
    if path is None:
        raise Refused("bad_root", f"root: {root} is no directory of this machine; what Spark has written elsewhere"
                      " is not compacted", root=root)
    check_archive(root)
    done: list[Compacted] = []
    with until_stopped(), Site.held(path) as site:
        with parts_shown(as_json) as on_part:
            done.append(site.compact(keep_days=keep_days, grace_ms=round(grace_s * 1000), on_part=on_part))
        say_compacted(done[0], as_json)
        for unread in done[0].unread:
            say_uncompacted(unread, as_json)
    if not done:
        click.echo("interrupted; nothing is lost, and the next compaction goes on", err=True)
        ctx.exit(INTERRUPTED)
    if done[0].unread:
        ctx.exit(UNREAD)


@contextmanager
def parts_shown(as_json: bool) -> Iterator[OnPart | None]:
    """On a terminal a bar of the day and the queue that are under way."""
    from skuld_py.cli.bars import PassingBar
    from skuld_py.cli.showing import console

    if as_json or not console().is_terminal:
        yield None
        return
    bar = PassingBar()
    try:
        yield lambda day, queue, share: bar.draw(share, f"compacting what of queue {queue} ended on {day}")
    finally:
        bar.wipe()


def say_compacted(done: Compacted, as_json: bool) -> None:
    """What was done, in a line."""
    from skuld_py.cli.showing import print_event

    words = (f"compacted {many(done.files, 'file')} of {many(done.rows, 'row')} into {done.into or 'none'},"
             f" unlinked {many(done.unlinked, 'file')}")
    if done.dropped:
        words += f", removed {many(done.dropped, 'task')} of days past"
    if done.left:
        words += (f"; left {many(done.left, 'file')} alone, of which the nodes may still have tasks: they are"
                  " compacted once 'skuld archive' has left none of these")
    print_event(as_json, words, event="compacted", files=done.files, into=done.into, rows=done.rows,
                unlinked=done.unlinked, dropped=done.dropped, left=done.left)


def say_uncompacted(why: Refused, as_json: bool) -> None:
    """What is left as it was, and why."""
    from skuld_py.cli.showing import print_event

    print_event(as_json, f"this is archived, and not compacted: {why}", event="uncompacted", code=why.code,
                message=why.message)
