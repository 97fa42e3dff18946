"""``skuld cluster history``: who changed a partition's document, when, and why."""

from __future__ import annotations

import click

from skuld_py.cli.options import client_options, connected

COLUMNS = "{:<19}  {:>9}  {:>6}  {:<22}  "


@click.command()
@click.argument("partition", type=click.IntRange(0, 4_095), required=False)
@click.option("-n", "--most", type=click.IntRange(1, 108), default=None,
              show_default="5 of each, or all of PARTITION", help="At most so many of each partition.")
@client_options
def history(nodes: str, timeout_s: float, as_json: bool, partition: int | None, most: int | None) -> None:
    """Show how leader, voters and wishes of PARTITION came about, or of all: when, by whom and why.

    The newest come first. Of each partition the last 100 revisions are kept in ZooKeeper, by whose clock the times
    are; those by which a leader only moved its horizon on, as it does all the time, are the last 8. WRITER is the
    node that wrote; what an operator asked for names the operator in CAUSE.

    \b
    Examples:
      skuld cluster history 3
      skuld cluster history --json | jq '.revisions[] | select(.cause | startswith("freeze"))'
    """
    from skuld_py.cli import showing
    from skuld_py.verbs.histories import document
    from skuld_py.verbs.words import moment

    with connected(nodes, timeout_s) as client:
        found = client.partition_history(partition, most=most)
    if as_json:
        showing.print_json(document(found))
        return
    if not found:
        click.echo("nothing is known yet; nodes of releases before keep no history")
        return
    click.echo(COLUMNS.format("TIME", "PARTITION", "EPOCH", "WRITER") + "CAUSE")
    for each in found:
        text = COLUMNS.format(moment(each.at_ms)[:19], each.partition, each.epoch, each.writer)
        led = f"; led by {each.leader} / {', '.join(name for name in each.voters if name != each.leader)}"
        click.echo(text + showing.shown(f"{each.cause}{led}".encode()))
