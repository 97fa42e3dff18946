"""``skuld pause``, ``skuld resume`` and ``skuld paused``: what holds for a whole queue.

A pause is in force where it is known, so what is said names the nodes that have not confirmed it.
"""

from __future__ import annotations

from typing import Any

import click

from skuld_py.cli.acting import Done, client_verb


@client_verb
@click.argument("queue")
def pause(client: Any, queue: str) -> Done:
    """Let nothing more be claimed from QUEUE until it is resumed.

    Claims that are held stay; tasks may be added.

    \b
    Example:
      skuld pause reports
    """
    missing = client.pause(queue)
    return f"{queue} is paused{except_at(missing)}", {"queue": queue, "is_paused": True, "missing": missing}


@client_verb
@click.argument("queue")
def resume(client: Any, queue: str) -> Done:
    """Let the tasks of QUEUE be claimed again.

    \b
    Example:
      skuld resume reports
    """
    missing = client.resume(queue)
    return f"{queue} is resumed{except_at(missing)}", {"queue": queue, "is_paused": False, "missing": missing}


@client_verb
def paused(client: Any) -> Done:
    """Print the queues that are paused.

    \b
    Example:
      skuld paused --json
    """
    queues = client.paused()
    return "\n".join(queues) or "no queue is paused", {"queues": queues}


def except_at(missing: list[str]) -> str:
    """Who is still to confirm it."""
    return f", but these nodes have not confirmed it: {', '.join(missing)}" if missing else ""
