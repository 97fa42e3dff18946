"""``skuld workers``: which workers are there, for which queues, and how much each has to do.

What a worker says of itself is shown with escapes: its host and its Spark are any text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skuld_py.cli.options import client_options, connected

if TYPE_CHECKING:
    from skuld_py.client.attending import WorkerStatus


@click.command()
@client_options
def workers(nodes: str, timeout_s: float, as_json: bool) -> None:
    """Show the workers that are there: slots, tasks, queues with their weights, and for how long.

    A worker says every ten seconds that it is there, and that it stops; one that dies is listed for half a minute
    more. Claimed are the tasks that it holds, of which as many run as it has slots.

    \b
    Examples:
      skuld workers
      skuld workers --json | jq '.workers[] | select(.running < .slots) | .name'
    """
    from skuld_py.cli.showing import print_json
    from skuld_py.verbs.words import many
    from skuld_py.verbs.workers import document

    with connected(nodes, timeout_s) as client:
        found = client.workers()
    if as_json:
        print_json(document(found))
        return
    for node in found.missing:
        click.secho(f"! node {node} did not answer; the workers that report to it are missing", fg="yellow")
    if not found.workers:
        click.echo("no worker is there" + (" that this can tell of" if found.missing else ""))
        return
    click.echo(f"{many(len(found.workers), 'worker')}, {many(found.slots, 'slot')}")
    _show(found.workers)


def _show(every: tuple[WorkerStatus, ...]) -> None:
    from skuld_py.cli.showing import distance, harmless, now_ms, print_table, said_weights, table

    has_keys = any(worker.key for worker in every)
    rows = table("worker", *(["key"] if has_keys else []), "slots>", "running>", "claimed>", "queues", "since",
                 "seen", "release", "spark")
    at_ms = now_ms()
    for worker in every:
        rows.add_row(worker.name, *([worker.key] if has_keys else []), str(worker.slots), str(worker.running),
                     str(worker.claimed), said_weights(worker.queues), distance(worker.since_ms, at_ms),
                     distance(at_ms - round(worker.age_s * 1000), at_ms), harmless(worker.release),
                     harmless(worker.spark))
    print_table(rows)
