"""``skuld schedule``: periodic tasks, which the cluster itself enqueues.

The client's verbs and nothing else, but that the list says when each schedule is due next: that takes time zones,
which are read here and at the nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from skuld_py.cli.acting import Done, client_verb
from skuld_py.cli.conditions import periodic_options
from skuld_py.cli.pausing import except_at
from skuld_py.cli.values import DAY_S, Duration, said

if TYPE_CHECKING:
    from skuld_py.client.scheduling import Schedule

EVERY = Duration(least_s=0.1, most_s=366 * DAY_S)


@click.group()
def schedule() -> None:
    """Have tasks enqueued periodically, see which are, and end it."""


@client_verb
@click.argument("name")
@click.argument("queue")
@click.argument("payload", default="")
@click.option("--cron", metavar="LINE", default=None, show_default=False,
              help="Five fields: minute, hour, day of the month, month, day of the week.")
@click.option("--zone", metavar="ZONE", default="UTC", help="The time zone of --cron, as Europe/Berlin.")
@click.option("--every", "every_s", type=EVERY, metavar="DURATION", default=None, show_default=False,
              help="Instead of --cron: at the multiples of this since 1970.")
@click.option("--priority", type=int, default=0, help="Higher goes first; 32 bits, signed.")
@click.option("--catch-up", type=click.IntRange(0, 100), default=0,
              help="How many missed ticks are made up for, besides the newest.")
@periodic_options
def put(client: Any, name: str, queue: str, payload: str, conditions: dict[str, Any], **given: Any) -> Done:
    """Have a task with PAYLOAD enqueued to QUEUE at each tick of the schedule NAME, from now on.

    \b
    Examples:
      skuld schedule put nightly reports all --cron '30 2 * * *' --zone Europe/Berlin
      skuld schedule put beat health --every 10s
    """
    missing = client.put_schedule(name, queue, payload.encode("utf-8", "surrogateescape"), **given, **conditions)
    return f"schedule {name} is put{except_at(missing)}", {"name": name, "queue": queue, "missing": missing}


@client_verb
def list_schedules(client: Any) -> Done:
    """Print the schedules, and when each is due next.

    \b
    Example:
      skuld schedule list --json
    """
    from skuld_py.cli.showing import now_ms

    rows = [_document(made, now_ms()) for made in client.schedules()]
    words = [f"{row['name']}  {row['when']}  queue {row['queue']}  next {row['next'] or 'unknown'}"
             for row in rows]
    return "\n".join(words) or "there are no schedules", {"schedules": rows}


@client_verb
@click.argument("name")
def remove(client: Any, name: str) -> Done:
    """Have nothing more enqueued by the schedule NAME. Tasks that are there stay.

    \b
    Example:
      skuld schedule remove nightly
    """
    missing = client.remove_schedule(name)
    return f"schedule {name} is removed{except_at(missing)}", {"name": name, "missing": missing}


schedule.add_command(put, "put")
schedule.add_command(list_schedules, "list")
schedule.add_command(remove, "remove")


def _document(made: Schedule, now_ms: int) -> dict[str, object]:
    from skuld_py.verbs import documents

    when = f"cron {made.cron} {made.zone}" if made.cron else f"every {said(made.every_s or 0)}"
    return {**documents.schedule(made), "when": when, "next": _next(made, now_ms)}


def _next(made: Schedule, now_ms: int) -> str | None:
    """The next tick by this machine's clock and time zones."""
    from datetime import UTC, datetime

    from skuld_py.almanac import next_tick
    from skuld_py.errors import Refused

    try:
        every_ms = round((made.every_s or 0) * 1000)
        tick_ms = next_tick(made.cron, made.zone, now_ms) if made.cron else (now_ms // every_ms + 1) * every_ms
    except Refused:
        return None
    return None if tick_ms is None else datetime.fromtimestamp(tick_ms / 1000, UTC).isoformat()
