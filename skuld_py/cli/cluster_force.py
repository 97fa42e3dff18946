"""``skuld cluster force-epoch``: go on without voters whose data is lost for good.

Which partitions are meant is always said, and that it is meant is asked for: no other command gives up what was
acknowledged.
"""

from __future__ import annotations

import sys

import click

from skuld_py.cli.options import client_options, connected
from skuld_py.errors import Refused


@click.command(name="force-epoch")
@click.argument("partition", type=click.IntRange(0, 4_095), required=False)
@click.option("--all", "is_all", is_flag=True, show_default=False, help="All partitions that have no majority.")
@click.option("--reason", default="", show_default="none", metavar="TEXT", help="Why; kept with what is done.")
@click.option("--noted", is_flag=True, show_default=False,
              help="Change nothing but that 'skuld status' tells no more of what was lost.")
@click.option("--yes", is_flag=True, show_default=False, help="Do not ask.")
@client_options
def force_epoch(nodes: str, timeout_s: float, as_json: bool, partition: int | None, is_all: bool, reason: str,
                noted: bool, yes: bool) -> None:
    """Have PARTITION led again although a majority of its voters is lost for good, data and all.

    The voters that are there with their data elect a leader without the others. What only the others had
    acknowledged is gone: tasks, ends of tasks, entries of logs. Nothing is granted before every claim is over
    that the others may have granted. 'skuld status' says when that is: after 30 minutes at most, or the nodes'
    --timing-horizon; where leases are longer, after the longest that was asked for and half of that time. A
    partition with a majority stays as it is. If data of a lost node can be saved, start that node on it instead.

    \b
    Examples:
      skuld cluster force-epoch 3 --reason "two disks of rack 2 burnt"
      skuld cluster force-epoch --all --yes
      skuld cluster force-epoch --all --noted
    """
    from skuld_py.cli.acting import leave_if_refused
    from skuld_py.cli.showing import print_event
    from skuld_py.verbs.operators import say_done, told

    if (partition is None) is not is_all:
        raise click.UsageError("name a partition, or say --all.")
    whose = "all partitions without a majority" if partition is None else f"partition {partition}"
    if not (yes or noted or _is_confirmed(whose)):
        raise Refused("not_confirmed", "nothing was given up; answer with 'lost', or use --yes")
    with connected(nodes, timeout_s) as client:
        done = client.force_epoch(partition, noted=noted, reason=reason)
    words, document = say_done("noted" if noted else "forced")(told(done), {})
    print_event(as_json, words, **document)
    leave_if_refused(document)


def _is_confirmed(whose: str) -> bool:
    """Ask for a word and not for a letter, which fingers know by heart."""
    click.echo(f"This gives up, of {whose}, all that only voters have which are not there now.\n"
               "Type 'lost' to go on: ", nl=False, err=True)
    return sys.stdin.readline().strip() == "lost"
