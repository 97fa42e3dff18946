"""``skuld members``: the members of the cluster by its coordination log, the joiners, and the nodes that are down.

A member is one life of a node process; the node is what owns partitions, and keeps its name. So a node that is
down is listed by itself: it has no member, and keeps its place until it is forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from skuld_py.cli.options import cluster_option, json_option, timeout_option, zookeeper_option

if TYPE_CHECKING:
    from skuld_py.cluster.log.replica import Replica
    from skuld_py.model.document import Member


@click.command()
@cluster_option
@zookeeper_option
@timeout_option("10s", "ZooKeeper's answer")
@json_option
def members(cluster: str, hosts: str, timeout_s: float, as_json: bool) -> None:
    """Show the members of a cluster: their nodes, addresses and slots, and since which position they are in.

    Slots are the claims that the workers can hold which report to a node, brought into the log some seconds after
    they have come or gone.

    A position is a place in the coordination log: 'skuld cluster log NAME --from POSITION' shows what was written
    there. Nodes that are down are shown below; they keep their partitions, for they may come back.

    \b
    Examples:
      skuld members --cluster skuld
      skuld members --cluster skuld --json | jq '.members[] | select(.slots == 0) | .node'
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
    from skuld_py.cluster.scale.slots import units

    alive = frozenset(pulses)
    counts: dict[str, int] = {}
    for slot in (*replica.slots.values(), *replica.parked.values()):
        counts[slot.member] = counts.get(slot.member, 0) + units(slot)

    def row(name: str, member: Member | None, state: str, since: int | None) -> dict[str, Any]:
        place = replica.nodes.get(member.name) if member else None
        return {"member": name, "node": member and member.name,
                "address": member and f"{member.host}:{member.port}", "state": state, "since": since,
                "slots": counts.get(name, 0), "has_pulse": name in alive,
                "is_leaving": place is not None and place.is_leaving}

    def came(name: str, member: Member) -> int | None:
        place = replica.nodes.get(member.name)
        return place.since if place is not None and place.member == name and place.since >= 0 else None

    rows = [row(name, replica.members[name], "in", came(name, replica.members[name])) for name in replica.roster]
    for phase, joins in (("prepared", replica.joins.prepared), ("accepted", replica.joins.accepted)):
        rows += [row(joiner, replica.joiners[joiner], f"joining ({phase} by {observer})", None)
                 for observer, joiner in sorted(joins.items())]
    rows += [row(joiner, None, "told no, tries again", at) for joiner, at in sorted(replica.aborted.items())]
    down = [{"node": name, "since": place.since, "is_leaving": place.is_leaving}
            for name, place in sorted(replica.nodes.items()) if not place.member]
    return {"position": replica.version, "members": rows, "down": down}


def _show(cluster: str, made: dict[str, Any]) -> None:
    from skuld_py.cli.showing import print_table, table
    from skuld_py.verbs.words import many

    count = sum(row["state"] == "in" for row in made["members"])
    where = f"at position {made['position']} of its log" if made["position"] >= 0 else "yet; its log is empty"
    click.echo(f"cluster {cluster}: {many(count, 'member')} {where}")
    for row in made["members"]:
        if row["state"] == "in" and not row["has_pulse"]:
            click.secho(f"! {row['member']} has no pulse; who watches it will say so", fg="yellow")
    rows = table("member", "node", "address", "state", "since>", "slots>")
    for row in made["members"]:
        state = f"{row['state']}, leaving" if row["is_leaving"] else row["state"]
        rows.add_row(row["member"], row["node"] or "", row["address"] or "", state,
                     "" if row["since"] is None else str(row["since"]), str(row["slots"]))
    if not made["members"]:
        rows.add_row("nobody so far", "", "", "", "", "")
    print_table(rows)
    if made["down"]:
        rows = table("node that is down", "since>", "")
        for row in made["down"]:
            state = "leaving" if row["is_leaving"] else "keeps its partitions"
            rows.add_row(row["node"], str(row["since"]), state)
        print_table(rows)
        click.echo(f"\nOne that will not come back: skuld cluster forget {cluster} NODE")
