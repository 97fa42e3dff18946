"""``skuld status``: is the cluster whole, and if not, what is missing, in words.

What needs attention stands on top, before the tables: the user wants to know that first. It is the cluster as one
of its nodes sees it, with what those say of partitions who keep them; the queue depths are asked of all nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skuld_py.cli.options import addresses_of, client_options, naming_unknown_hosts

if TYPE_CHECKING:
    from skuld_py.cli.situation import Situation
    from skuld_py.model.messages import Described

ROWS_MAX = 64
"""Beyond this many partitions only those that need attention are shown; JSON has them all."""


@click.command()
@client_options
def status(nodes: str, timeout_s: float, as_json: bool) -> None:
    """Show what needs attention, then nodes, partitions and queues.

    \b
    Examples:
      skuld status
      skuld status --nodes 127.0.0.1:13001 --json | jq .attention
    """
    from skuld_py.cli.showing import print_json
    from skuld_py.cli.situation import ask, document

    addresses = addresses_of(nodes)
    with naming_unknown_hosts(addresses):
        situation = ask(addresses, timeout_s)
    if as_json:
        print_json(document(situation))
    else:
        _show(situation)


def _show(situation: Situation) -> None:
    from skuld_py.cli.situation import attention, collection_said
    from skuld_py.verbs.words import copies, many, said

    greeted, described = situation.greeted, situation.described
    live = sum(node.is_live for node in described.nodes)
    click.echo(f"cluster {greeted.cluster}: {live} of {many(len(described.nodes), 'node')} live,"
               f" {many(greeted.partitions, 'partition')}, {copies(greeted.replicas)}, clocks within"
               f" {said(greeted.skew_ms / 1000)}; seen by {described.node}")
    if described.workers:
        click.echo(f"{many(described.workers, 'worker')} with {many(described.slots, 'slot')} report to its nodes"
                   " ('skuld workers' lists them)")
    troubles = attention(situation)
    for line in troubles:
        click.secho(f"! {line}", fg="yellow")
    if not troubles:
        click.secho("all is well", fg="green")
    if situation.collection is not None:
        click.echo(collection_said(situation.collection))
    _show_nodes(described)
    _show_partitions(situation)
    if not situation.doubt:
        _show_queues(situation)
        _show_blocked(situation)


def _show_nodes(described: Described) -> None:
    from skuld_py.cli.showing import print_table
    from skuld_py.cli.situation import node_table

    print_table(node_table(described))


def _show_partitions(situation: Situation) -> None:
    from skuld_py.cli.showing import print_table, table

    every, services = situation.described.partitions, situation.services
    shown = every if len(every) <= ROWS_MAX else situation.troubled[:ROWS_MAX]
    rows = table("partition>", "epoch>", "leader", "voters", "service")
    for row in shown:
        rows.add_row(str(row.partition), str(row.epoch), row.leader or "none",
                     ", ".join(row.cohort or row.owners) or "none yet", services[row.partition])
    if shown is every:
        print_table(rows)
    else:
        print_table(rows, f"of {len(every)} partitions, those without a leader (--json has all)")


def _show_queues(situation: Situation) -> None:
    from skuld_py.cli.showing import print_table, table
    from skuld_py.cli.situation import states_shown

    states = states_shown(situation.depths)
    rows = table("queue", *(f"{state}>" for state in states))
    for row in sorted(situation.depths, key=lambda row: row.queue):
        rows.add_row(row.queue, *(str(getattr(row, state)) for state in states))
    if not situation.depths:
        rows.add_row("no tasks so far", *("" for _ in states))
    print_table(rows)


def _show_blocked(situation: Situation) -> None:
    """Show the oldest blocked task of each queue: what holds it up mostly holds up the others."""
    from skuld_py.cli.showing import harmless
    from skuld_py.verbs.words import many

    named = [row for row in situation.blocked if row.id]
    for row in named:
        click.echo(harmless(f"{row.queue}: the oldest blocked task, {row.id}, waits for {', '.join(row.waits_for)}"
                            f" ('skuld list {row.queue} --state blocked' shows all)"))
    others = [row.queue for row in situation.blocked if not row.id]
    if others:
        click.echo(harmless(f"blocked tasks of {many(len(others), 'queue')} are not named here, such as of"
                            f" {others[0]}: 'skuld list {others[0]} --state blocked' shows for whom they wait"))
