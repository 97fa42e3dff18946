"""``skuld history restore``: tasks of an archive, back on the nodes as data that nothing will ever run.

An id that was deleted stays deleted: nodes refuse it for ever. So a task comes back as a new one, whose payload is
the document that ``skuld history --json`` shows of the old one, and which is cancelled: no worker gets it, nor can
it be retried. It cannot be claimed before it is cancelled, for it is not due by then; where this dies in between,
it expires as it becomes due, a day later, and is deleted as what has ended. It has a unique name, so who
was interrupted says the same again. Nodes allow no name for longer than they keep ended tasks, and say only by a
refusal how long that is: so names are unique for the longest of some spans that they allow. Such spans follow the
clock, and a new one may begin between two calls; and nodes may allow more than a span, and less than the next
longer one: so what earlier spans have is looked for, too, as far back as that one reaches.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from skuld_py.cli.archive import LEFT, MASTER
from skuld_py.cli.options import connected, json_option, nodes_option, timeout_option
from skuld_py.cli.spark_options import master_options
from skuld_py.cli.values import PAST, TASK_ID
from skuld_py.verbs.words import many

if TYPE_CHECKING:
    from skuld_py.client.client import Client
    from skuld_py.model.task import Task

EACH = 200
FAR, INSTANT = timedelta(days=1), timedelta(milliseconds=1)
NAMED = "restored-from"
ENDED = ("completed", "cancelled", "dead")
WINDOWS_S = (3_600.0, 600.0, 60.0, 10.0, 1.0)
"""For so long the name of a restored task is unique, or else for so long."""


@click.command()
@click.argument("root")
@click.option("--into", metavar="QUEUE", default="restored", help="The queue that they come to.")
@click.option("--id", "task_id", metavar="ID", type=TASK_ID, default=None, show_default=False, help="This task.")
@click.option("--queue", metavar="QUEUE", default=None, show_default="all", help="Only tasks of this queue.")
@click.option("--key", metavar="KEY", default=None, show_default="all", help="Only tasks with this ordering key.")
@click.option("--state", "states", type=click.Choice(ENDED), multiple=True,
              help="Only tasks that ended so; may be given again, for one of several.")
@click.option("--since", type=PAST, metavar="WHEN", default=None, show_default="the beginning",
              help="Only what was enqueued then or later.")
@click.option("--until", type=PAST, metavar="WHEN", default=None, show_default="now",
              help="Only what was enqueued before then.")
@click.option("--limit", type=click.IntRange(1), default=None, show_default="all", help="How many at most.")
@master_options(MASTER)
@nodes_option
@timeout_option("30s")
@json_option
@click.pass_context
def restore(ctx: click.Context, root: str, into: str, task_id: Any, queue: str | None, key: str | None,
            states: tuple[str, ...], since: datetime | None, until: datetime | None, limit: int | None,
            conf: dict[str, str], nodes: str, timeout_s: float, as_json: bool) -> None:
    """Bring tasks from the archive below ROOT back as data: as new, cancelled tasks, which no worker ever gets.
    The payload of each is the document that 'skuld history --json' shows. Those of which that is larger than a
    payload may be are named and left out, and then it ends with 1 instead of 0.

    \b
    Examples:
      skuld history restore /srv/skuld-archive --id 000006cvl5s5o0000000e1k0g5u3k7qh
      skuld history restore /srv/skuld-archive --queue reports --state dead --since 48h --into reports-that-died
    """
    from skuld_py.archive.filters import Filters
    from skuld_py.archive.places import check_archive
    from skuld_py.cli import history
    from skuld_py.cli.showing import print_event
    from skuld_py.model.names import check_name

    check_name("into", into)
    if queue is not None:
        check_name("queue", queue)
    uri, filters = check_archive(root), Filters(task_id, queue, states, since, until, key)
    back, windows = list[bool](), [*WINDOWS_S]
    with ExitStack() as stack:
        found = history.by_arrow(root, filters, conf) or history.by_spark(stack, uri, filters, conf)
        client = stack.enter_context(connected(nodes, timeout_s))
        rows = iter(found.rows(limit))
        try:
            while part := [*islice(rows, EACH)]:
                back += _brought(client, into, part, windows, as_json)
        except KeyboardInterrupt:
            print_event(as_json, f"interrupted, with {many(sum(back), 'task')} back, or a few more; say the same"
                        " again for the others", event="interrupted", restored=sum(back))
            raise
    if task_id is not None and not back:
        raise history.not_there(task_id, filters)
    count, left = sum(back), back.count(False)
    words = f"restored {many(count, 'task')} into queue {into}"
    print_event(as_json, words + (f", and not {many(left, 'other')}" if left else ""), event="done",
                restored=count, left=left)
    if left:
        ctx.exit(LEFT)


def _brought(client: Client, into: str, rows: list[Any], windows: list[float], as_json: bool) -> list[bool]:
    """Of each row whether it is back; one that is too large is not, and keeps no other one away."""
    from skuld_py.cli.showing import print_event
    from skuld_py.errors import Refused

    try:
        made, uncancelled = _stored(client, into, rows, windows)
    except Refused as refusal:
        if refusal.code != "payload_too_large":
            raise
        if half := len(rows) // 2:
            return [*_brought(client, into, rows[:half], windows, as_json),
                    *_brought(client, into, rows[half:], windows, as_json)]
        print_event(as_json, f"{rows[0]['id']} is not back: what 'skuld history ROOT --json' shows of it is larger"
                    f" than a payload may be ({refusal.message})", event="left", id=rows[0]["id"],
                    why=refusal.message)
        return [False]
    if to_cancel := [task_id for task_id in made if task_id in uncancelled]:
        client.cancel(*to_cancel)
    for row, new in zip(rows, made, strict=True):
        print_event(as_json, f"{row['id']} is back as {new}", event="restored", id=row["id"], new=str(new))
    return [True] * len(rows)


def _stored(client: Client, into: str, rows: list[Any], windows: list[float]) -> tuple[list[Any], set[Any]]:
    """Tasks that have these rows as payloads: their ids, and which of them are to be cancelled. One that is may be
    too old to be cancelled once more. Of the windows those go that the nodes refuse."""
    from skuld_py.cli.history import document
    from skuld_py.errors import Refused

    payloads = [json.dumps(document(row)).encode() for row in rows]
    names = [f"{NAMED}:{row['id']}" for row in rows]
    due = datetime.now(UTC).replace(microsecond=0) + FAR  # else both ends of an instant may be rounded to one
    while True:
        earlier = _earlier(client, into, names, windows[0])
        new = [index for index, name in enumerate(names) if name not in earlier]
        try:
            made = client.enqueue_many(into, [payloads[index] for index in new], not_before=due,
                                       expires=due + INSTANT, unique=[names[index] for index in new],
                                       unique_window_s=windows[0]) if new else []
            known = {name: task.id for name, task in earlier.items()}
            known |= {names[index]: task_id for index, task_id in zip(new, made, strict=True)}
            uncancelled = {*made, *(task.id for task in earlier.values() if task.state != "cancelled")}
            return [known[name] for name in names], uncancelled
        except Refused as refusal:
            if refusal.code != "bad_unique" or len(windows) == 1:
                raise
            windows.pop(0)


def _earlier(client: Client, into: str, names: list[str], window_s: float) -> dict[str, Task]:
    """The tasks of these names that are there since the windows before, for as long as any that nodes refuse."""
    from skuld_py.cli.showing import now_ms
    from skuld_py.model.ids import named_id

    window_ms = round(window_s * 1_000)
    longer_ms = round(min((each for each in WINDOWS_S if each > window_s), default=window_s) * 1_000)
    slot_ms = now_ms() // window_ms * window_ms
    ids = {named_id(into, name, at_ms, ""): name for name in names
           for at_ms in range(slot_ms - longer_ms, slot_ms + 1, window_ms)}
    return {ids[bytes(task.id)]: task for task in client.get_many([*ids])}
