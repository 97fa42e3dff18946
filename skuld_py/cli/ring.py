"""``skuld ring``: which member watches which, as one walk round the ring.

A member that dies is noticed by the one that watches it. So the walk shows which member should report one that has
no pulse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from skuld_py.cli.options import cluster_option, json_option, timeout_option, zookeeper_option

if TYPE_CHECKING:
    from skuld_py.cluster.log.replica import Replica


@click.command()
@cluster_option
@zookeeper_option
@timeout_option("10s", "ZooKeeper's answer")
@json_option
def ring(cluster: str, hosts: str, timeout_s: float, as_json: bool) -> None:
    """Show who watches whom in a cluster, once round the ring, and who joins between them.

    Each member watches the pulse of the next, and the last that of the first. One without a pulse is marked: it
    has died, and the member above it is about to say so in the log.

    \b
    Examples:
      skuld ring --cluster skuld
      skuld ring --cluster skuld --json | jq '.ring[] | select(.has_pulse | not)'
    """
    from skuld_py.cli.journal import at_end
    from skuld_py.cli.showing import print_json

    made = document(*at_end(hosts, cluster, timeout_s))
    if as_json:
        print_json(made)
    else:
        _show(cluster, made)


def document(replica: Replica, pulses: tuple[str, ...]) -> dict[str, Any]:
    """All that is shown, as JSON has it."""
    alive = frozenset(pulses)
    joins = replica.joins
    walk = list(replica.ring.walk()) or list(replica.roster)
    return {"position": replica.version, "ring": [
        {"member": name, "watches": replica.ring.pairs.get(name), "has_pulse": name in alive,
         "joiner": joins.joiner_of(name) or None,
         "phase": "prepared" if name in joins.prepared else "accepted" if name in joins.accepted else None,
         "joiner_has_pulse": joins.joiner_of(name) in alive} for name in walk]}


def _show(cluster: str, made: dict[str, Any]) -> None:
    walk = made["ring"]
    if not walk:
        where = f"at position {made['position']} of its log" if made["position"] >= 0 else "yet; its log is empty"
        click.echo(f"cluster {cluster} has no members {where}")
        return
    if len(walk) == 1:
        click.echo(f"cluster {cluster} has one member at position {made['position']} of its log, which nobody"
                   " watches")
    else:
        click.echo(f"cluster {cluster}: {len(walk)} members in the ring at position {made['position']} of its log,"
                   " each watches the next")
    click.echo()
    for row in walk:
        _line("  ", row["member"], row["has_pulse"])
        if row["joiner"]:
            _line(f"    + {row['phase']}: ", row["joiner"], row["joiner_has_pulse"])
    if len(walk) > 1:
        click.echo(f"  and back to {walk[0]['member']}")


def _line(before: str, name: str, has_pulse: bool) -> None:
    click.secho(before + name if has_pulse else f"{before}{name}  ! no pulse", fg=None if has_pulse else "red")
