"""``skuld history restore``: tasks of an archive, back on the nodes as data that nothing will ever run.

An id that was deleted stays deleted: nodes refuse it for ever. So a task comes back as a new one, whose payload is
the document that ``skuld history --json`` shows of the old one, and which is cancelled: no worker gets it, nor can
it be retried. It cannot be claimed before it is cancelled, for it is not due by then. It has a unique name, so who
was interrupted says the same again.

A document may be larger than a payload may be: it has logs, and bytes as base64 beside their text. Such a task
stays in the archive and is named, and the others come.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import click

from skuld_py.cli.options import connected, json_option, nodes_option, timeout_option
from skuld_py.cli.values import PAST, TASK_ID
from skuld_py.verbs.words import many

EACH = 200
FAR = timedelta(days=300)
NAMED = "restored-from"
LEFT = 1
"""Exit code when some were too large."""


@click.command()
@click.argument("root")
@click.option("--into", metavar="QUEUE", default="restored", help="The queue that they come to.")
@click.option("--id", "task_id", metavar="ID", type=TASK_ID, default=None, show_default=False, help="This task.")
@click.option("--queue", metavar="QUEUE", default=None, show_default="all", help="Only tasks of this queue.")
@click.option("--key", metavar="KEY", default=None, show_default="all", help="Only tasks with this ordering key.")
@click.option("--since", type=PAST, metavar="WHEN", default=None, show_default="the beginning",
              help="Only what was enqueued then or later.")
@click.option("--until", type=PAST, metavar="WHEN", default=None, show_default="now",
              help="Only what was enqueued before then.")
@click.option("--limit", type=click.IntRange(1), default=None, show_default="all", help="How many at most.")
@nodes_option
@timeout_option("30s")
@json_option
def restore(root: str, into: str, task_id: Any, queue: str | None, key: str | None, since: datetime | None,
            until: datetime | None, limit: int | None, nodes: str, timeout_s: float, as_json: bool) -> None:
    """Bring tasks from the archive below ROOT back as data: as new, cancelled tasks, which no worker ever gets.
    The payload of each is the document that 'skuld history --json' shows. One that is too large for a payload is
    named, and then this ends with 1.

    \b
    Examples:
      skuld history restore /srv/skuld-archive --id 000006cvl5s5o0000000e1k0g5u3k7qh
      skuld history restore /srv/skuld-archive --queue reports --since 48h --into reports-of-last-week
    """
    from skuld_py.archive.filters import Filters
    from skuld_py.archive.places import check_archive
    from skuld_py.cli import history
    from skuld_py.cli.showing import print_event
    from skuld_py.model.names import check_name

    check_name("into", into)
    uri, filters = check_archive(root), Filters(task_id, queue, (), since, until, key)
    count, too_large = 0, list[str]()
    with ExitStack() as stack:
        found = history.by_arrow(root, filters, {}) or history.by_spark(stack, uri, filters, {})
        client = stack.enter_context(connected(nodes, timeout_s))
        fitting = _fitting(found.rows(limit), too_large, as_json)
        while part := dict(islice(fitting, EACH)):
            far = datetime.now(UTC) + FAR
            made = client.enqueue_many(into, [*part.values()], not_before=far,
                                       unique=[f"{NAMED}:{old}" for old in part])
            client.cancel(*made)
            count += len(made)
            for old, new in zip(part, made, strict=True):
                print_event(as_json, f"{old} is back as {new}", event="restored", id=old, new=str(new))
    words = f"; {many(len(too_large), 'task')} too large" if too_large else ""
    print_event(as_json, f"restored {many(count, 'task')} into queue {into}{words}", event="done", restored=count,
                too_large=len(too_large))
    if too_large:
        click.get_current_context().exit(LEFT)


def _fitting(rows: Iterable[Mapping[str, Any]], too_large: list[str], as_json: bool
             ) -> Iterator[tuple[str, bytes]]:
    """Ids with documents that fit a payload; the others are named."""
    from skuld_py.cli import history
    from skuld_py.cli.showing import print_event
    from skuld_py.config import DEFAULT_LIMITS

    for row in rows:
        document = json.dumps(history.document(row)).encode()
        if len(document) <= DEFAULT_LIMITS.payload_bytes:
            yield row["id"], document
        else:
            too_large.append(row["id"])
            words = f"{row['id']} stays in the archive: its document has {len(document)} bytes"
            print_event(as_json, words, event="too_large", id=row["id"], bytes=len(document))
