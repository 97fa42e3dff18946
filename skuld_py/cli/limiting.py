"""``skuld limit``, ``skuld unlimit`` and ``skuld limits``: how much of a queue may be claimed.

A limit is in force where it is known, so what is said names the nodes that have not confirmed it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from skuld_py.cli.acting import Done, client_verb
from skuld_py.cli.pausing import except_at
from skuld_py.cli.values import Duration, said

if TYPE_CHECKING:
    from skuld_py.model.limiting import QueueLimits

ABOVE_0 = click.IntRange(1)


@client_verb
@click.argument("queue")
@click.option("--concurrency", type=ABOVE_0, help="So many tasks claimed at once, by all workers together.")
@click.option("--rate", type=ABOVE_0, help="So many tasks claimed in the time of --per.")
@click.option("--per", "per_s", type=Duration(least_s=0.001), default="1s", help="The time that --rate is for.")
@click.option("--burst", type=ABOVE_0, show_default="what the rate gives in a second",
              help="So many more than the rate in any time.")
@click.option("--key-concurrency", type=ABOVE_0, show_default="1",
              help="So many tasks of one ordering key claimed at once.")
def limit(client: Any, queue: str, **limits: Any) -> Done:
    """Limit how much of QUEUE is claimed at once, or in a time.

    These replace all limits that the queue had. Claims that are held stay.

    \b
    Examples:
      skuld limit reports --concurrency 3
      skuld limit mails --rate 100 --per 1m --burst 10
    """
    missing = client.set_limits(queue, **limits)
    return f"{queue} is limited{except_at(missing)}", {"queue": queue, "is_limited": True, "missing": missing}


@client_verb
@click.argument("queue")
def unlimit(client: Any, queue: str) -> Done:
    """Limit QUEUE no more.

    \b
    Example:
      skuld unlimit reports
    """
    missing = client.remove_limits(queue)
    return f"{queue} has no limits{except_at(missing)}", {"queue": queue, "is_limited": False, "missing": missing}


@client_verb
@click.argument("queue", required=False)
def limits(client: Any, queue: str | None) -> Done:
    """Print the limits of QUEUE, or of all queues that have some.

    \b
    Examples:
      skuld limits
      skuld limits reports --json
    """
    found: dict[str, QueueLimits] = client.limits(queue)
    lines = [f"{name}: {_in_words(of)}" for name, of in found.items()]
    rows = {name: of.given for name, of in found.items()}
    nothing = "no queue is limited" if queue is None else f"{queue} has no limits"
    return "\n".join(lines) or nothing, {"queues": rows}


def _in_words(of: QueueLimits) -> str:
    words = []
    if of.concurrency:
        words.append(f"{of.concurrency} claimed at once")
    if of.rate:
        words.append(f"{of.rate} claimed in {said(of.window_ms / 1000)}, and {of.burst} more")
    if of.key_concurrency:
        words.append(f"{of.key_concurrency} of a key claimed at once")
    return ", ".join(words)
