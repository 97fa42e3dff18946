"""``skuld drain``: take a node out for good without taking anything with it.

It marks the node as leaving in the coordination log, as ``cluster remove`` does, and watches until nothing depends
on the node any more: it owns no partition, votes in none, leads none, and has handed off what it had. Other nodes
are asked how far that is, for the node's own word ends with it. They are asked once before the node is marked: who
may not know how far it is does not take it out.

Rejected: stopping the node from here. Whatever started it would start it again. A node that only restarts needs no
draining: told to stop, it hands over what it leads by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import click

from skuld_py.cli.options import cluster_option, json_option, key_option, timeout_option, zookeeper_option
from skuld_py.cli.values import DAY_S, Duration
from skuld_py.errors import Refused, SkuldError
from skuld_py.verbs.words import many

if TYPE_CHECKING:
    from skuld_py.model.messages import Described

LOOK_S = 0.5
LOOKS = 3
"""What must be seen this often: a node takes a moment to say that it has something to hand off."""


class Left(NamedTuple):
    """In how many partitions a node still has a part, of which kinds, as another node knows."""

    owns: int
    votes: int
    leads: int
    hands_off: int
    rows: int

    @property
    def is_nothing(self) -> bool:
        """Whether nothing depends on the node."""
        return not (self.owns or self.votes or self.leads or self.hands_off)

    def said(self) -> str:
        """In words."""
        return (f"owns {self.owns}, votes in {self.votes}, leads {self.leads}, hands off"
                f" {many(self.hands_off, 'partition')} ({self.rows:,} rows so far)")


def left_of(described: Described, node: str) -> Left:
    """What a node still has; a partition whose voters have not gone over to its owners may have a vote of it that
    is not known here."""
    rows = described.partitions
    moves = [row for row in described.moves if row.node == node and row.role == "zombie"]
    return Left(sum(node in row.owners for row in rows),
                sum(node in row.cohort or not row.cohort or not row.leader for row in rows),
                sum(row.leader == node for row in rows), len(moves), sum(row.rows for row in moves))


@click.command()
@click.argument("node", metavar="NODE")
@cluster_option
@zookeeper_option
@click.option("--out", is_flag=True, required=True, show_default=False,
              help="Take it out for good. A node that is only to restart hands over by itself when it stops.")
@click.option("--limit", "limit_s", type=Duration(most_s=7 * DAY_S), metavar="DURATION", default="1h",
              help="How long to watch until it has handed everything over.")
@key_option
@timeout_option("10s", "ZooKeeper's answer, and the nodes'")
@json_option
def drain(node: str, cluster: str, hosts: str, out: bool, limit_s: float, timeout_s: float, as_json: bool) -> None:
    """Take NODE (HOST:PORT) out of the cluster, and say when it may be stopped: once it owns and votes nothing.

    Its partitions are filled elsewhere meanwhile, and its tasks stay where they can be claimed. Interrupted, or at
    its time limit, the node goes on handing over; the same command watches it again, and 'skuld cluster remove
    CLUSTER NODE --back' keeps the node after all.

    \b
    Examples:
      skuld drain 10.0.0.7:13000 --out --cluster skuld
      skuld drain 10.0.0.7:13000 --out --cluster skuld --limit 10m && systemctl disable --now skuld-node@13000
      skuld drain 10.0.0.7:13000 --out --cluster prod --cluster-key prod.key --client-key me.key
    """
    from skuld_py.cli.showing import print_event
    from skuld_py.client.client import Client
    from skuld_py.client.node_names import node_name
    from skuld_py.model.names import check_name
    from skuld_py.runtime.zookeeper.log_following import set_leaving

    check_name("cluster", cluster)
    node = node_name("NODE", node)
    others = _others(hosts, cluster, node, timeout_s)
    back = f"'skuld cluster remove {cluster} {node} --back' puts it back"

    def report(left: Left | SkuldError) -> None:
        if isinstance(left, SkuldError):
            print_event(as_json, f"no other node says how far {node} is: {left}; asking again", node=node,
                        is_drained=False, code=left.code)
        else:
            print_event(as_json, f"node {node} {left.said()}", node=node, is_drained=False, **left._asdict())
    with Client(others, timeout_s=timeout_s) as client:
        _asked(client.status)
        set_leaving(hosts, cluster, node, True, timeout_s)
        if not as_json:
            click.echo(f"node {node} is leaving cluster {cluster}; asking {', '.join(others)} how far it is")
        try:
            watch(client.status, node, limit_s, report)
        except KeyboardInterrupt:
            click.echo(f"node {node} goes on handing over what it has; {back}", err=True)
            raise
    print_event(as_json, f"node {node} is drained and may be stopped; then 'skuld cluster forget {cluster}"
                f" {node}' removes its name, or {back}", node=node, is_drained=True)


def _others(hosts: str, cluster: str, node: str, timeout_s: float) -> list[str]:
    """Where the nodes of the cluster beside this one are; ``Refused`` if there is none."""
    from skuld_py.cli.journal import at_end
    from skuld_py.client.dial import address_of

    replica, _ = at_end(hosts, cluster, timeout_s)
    others = [address_of(member.host, member.port) for member in replica.members.values() if member.name != node]
    if not others:
        raise Refused("no_other_node", f"NODE: no node of cluster {cluster} runs beside {node}, so none can take"
                      " over what it has; start others first", name=node)
    return others


def watch(look: Callable[[], Described], node: str, limit_s: float,
          report: Callable[[Left | SkuldError], None]) -> None:
    """Return once nothing is left; tell of each change. Raises at the limit, and what does not pass at once."""
    deadline, told, clear = time.monotonic() + limit_s, "", 0
    while True:
        seen = _asked(look)
        left = seen if isinstance(seen, SkuldError) else left_of(seen, node)
        words = left.said() if isinstance(left, Left) else str(left)
        clear = clear + 1 if isinstance(left, Left) and left.is_nothing else 0
        if clear == LOOKS:
            return
        if words != told and not clear:
            report(left)
        told = words
        if time.monotonic() >= deadline:
            state = f"it {words}" if isinstance(left, Left) else f"no other node says how far it is: {words}"
            raise Refused("not_drained", f"--limit: node {node} is not drained yet: {state}. It goes on; do"
                          " not stop it, and watch it with the same command", name=node)
        time.sleep(LOOK_S)


def _asked(look: Callable[[], Described]) -> Described | SkuldError:
    """The answer, or an error that passes by itself; raises any other."""
    from skuld_py.client.pursuit import RETRIED_CODES

    try:
        return look()
    except SkuldError as error:
        if isinstance(error, Refused) and error.code not in (*RETRIED_CODES, "unreachable"):
            raise
        return error
