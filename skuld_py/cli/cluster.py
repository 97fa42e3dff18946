"""``skuld cluster``: making and unmaking clusters in ZooKeeper, and taking nodes out of them.

A cluster is a name and numbers that mostly never change afterwards; its nodes come by themselves (``skuld
node``). They do not go by themselves: a node that is down keeps its share, for it may come back. Destroying a
cluster is the single thing here that cannot be undone, so it asks.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skuld_py.cli.cluster_documents import documents
from skuld_py.cli.cluster_force import force_epoch
from skuld_py.cli.cluster_history import history
from skuld_py.cli.cluster_keys import create_secure, rotate, secure
from skuld_py.cli.cluster_log import log
from skuld_py.cli.cluster_proofs import proofs
from skuld_py.cli.cluster_replicas import replicas
from skuld_py.cli.cluster_restore import restore
from skuld_py.cli.cluster_rules import rules
from skuld_py.cli.cluster_sharing import share
from skuld_py.cli.groups import Words
from skuld_py.cli.options import json_option, servers_option, timeout_option, zookeeper_option
from skuld_py.cli.values import KEY_FILE, Duration
from skuld_py.cli.zookeeper_access import words_of
from skuld_py.errors import Refused
from skuld_py.verbs.words import copies, many, said

if TYPE_CHECKING:
    from skuld_py.config import Parameters


@click.group(cls=Words)
def cluster() -> None:
    """Create, upgrade, secure or destroy a cluster in ZooKeeper, read its log, or take a node out."""


cluster.add_command(log)
cluster.add_command(documents)
cluster.add_command(secure)
cluster.add_command(rotate)
cluster.add_command(proofs)
cluster.add_command(replicas)
cluster.add_command(rules)
cluster.add_command(share)
cluster.add_command(force_epoch)
cluster.add_command(history)
cluster.add_command(restore)


@cluster.command()
@click.argument("name")
@servers_option
@click.option("--secure", is_flag=True, show_default=False,
              help="Give it keys: its nodes speak to owners of keys only, and may listen on any address.")
@click.option("--cluster-key", "key_file", type=KEY_FILE, metavar="FILE", default=None, show_default="NAME.key",
              help="With --secure: where to write the cluster's key; or the one that a run before has written.")
@click.option("--first-client", "client_file", type=KEY_FILE, metavar="FILE", default=None, show_default="none",
              help="With --secure: also write a key for a client of yours, which may do everything.")
@click.option("--partitions", type=int, default=8,
              help="Slices of the tasks: a power of two, fixed for ever.")
@click.option("--replicas", "replica_count", type=int, default=3,
              help="Nodes that keep a copy of each task; 1 on a single node.")
@click.option("--skew", "skew_s", type=Duration(least_s=0.001, most_s=3600), metavar="DURATION", default="2s",
              help="How far the nodes' clocks may differ. A lapsed claim is granted again this much later.")
@timeout_option("10s", "ZooKeeper's answer")
@json_option
def create(name: str, hosts: str, secure: bool, key_file: Path | None, client_file: Path | None,
           partitions: int, replica_count: int, skew_s: float, timeout_s: float, as_json: bool) -> None:
    """Create the cluster NAME. Then start its nodes; it serves once there are as many as replicas.

    \b
    Examples:
      skuld cluster create skuld --zookeeper 127.0.0.1:2181
      skuld cluster create skuld --zookeeper zk1:2181,zk2:2181,zk3:2181 --partitions 16 --replicas 3
      skuld cluster create laptop --partitions 8 --replicas 1
      skuld cluster create prod --secure --cluster-key /etc/skuld/prod.key --zookeeper zk1:2181
    """
    import secrets

    import attrs

    from skuld_py.cli.showing import print_json
    from skuld_py.config import Parameters
    from skuld_py.runtime.zookeeper.clusters import create_cluster

    parameters = Parameters(name, secrets.token_hex(16), partitions, replica_count, round(skew_s * 1000),
                            claim_key=secrets.token_hex(32))
    for option, file in (("--cluster-key", key_file), ("--first-client", client_file)):
        if file is not None and not secure:
            raise click.UsageError(f"{option}: without --secure the cluster has no key; say both, or neither.")
    if secure:
        create_secure(hosts, parameters, key_file or Path(f"{name}.key"), client_file, timeout_s)
    else:
        create_cluster(hosts, parameters, timeout_s)
    shown = words_of(hosts) + (f" --cluster-key {key_file or f'{name}.key'}" if secure else "")
    if as_json:
        hidden = ("claim_key", "claim_from_ms", "former_keys")
        print_json({field: value for field, value in attrs.asdict(parameters).items() if field not in hidden})
        return
    click.echo(f"cluster {name} is created: {many(partitions, 'partition')}, {copies(replica_count)} of each task,"
               f" clocks within {said(skew_s)}")
    click.echo("Next, on each of its machines:\n"
               f"  skuld node --cluster {name} {shown} --port 13000 --data DIRECTORY"
               f"{' --host ADDRESS' if secure else ''}")
    if secure:
        click.echo("Its key file goes to those machines and to nobody else. Then a key for each client:\n"
                   f"  skuld keys make NAME --role producer --cluster {name} {shown}")


@cluster.command()
@click.argument("name")
@zookeeper_option
@click.option("--yes", is_flag=True, show_default=False, help="Do not ask.")
@click.option("--force", is_flag=True, show_default=False, help="Destroy it even while nodes of it run.")
@timeout_option("10s", "ZooKeeper's answer")
@json_option
def destroy(name: str, hosts: str, yes: bool, force: bool, timeout_s: float, as_json: bool) -> None:
    """Destroy the cluster NAME. Stop its nodes first; what they stored stays in their directories.

    \b
    Examples:
      skuld cluster destroy skuld --zookeeper 127.0.0.1:2181
      skuld cluster destroy skuld --zookeeper 127.0.0.1:2181 --yes
    """
    from skuld_py.cli.showing import print_event
    from skuld_py.model.names import check_name
    from skuld_py.runtime.zookeeper.clusters import destroy_cluster, read_parameters

    # A name that is wrong is refused before anyone is asked.
    read_parameters(hosts, check_name("cluster", name), timeout_s)
    if not yes and not _is_confirmed(name, hosts):
        raise Refused("not_confirmed", f"cluster {name} was not destroyed; answer with its name, or use"
                      " --yes")
    destroy_cluster(hosts, name, timeout_s, is_forced=force)
    print_event(as_json, f"cluster {name} is destroyed; the data directories of its nodes can be removed",
                cluster=name, is_destroyed=True)


@cluster.command()
@click.argument("name")
@click.argument("node", metavar="NODE")
@zookeeper_option
@click.option("--back", is_flag=True, show_default=False, help="Put the node back where it was.")
@timeout_option("10s", "ZooKeeper's answer")
@json_option
def remove(name: str, node: str, hosts: str, back: bool, timeout_s: float, as_json: bool) -> None:
    """Take NODE (HOST:PORT), alive or dead, out of the cluster NAME: it owns no partition any more.

    A node that runs hands on what it has; let it run until it owns and leads nothing. Of one that is dead the
    others fill up from each other. It stays out over its restarts, until it is put back.

    \b
    Examples:
      skuld cluster remove skuld 10.0.0.7:13000 --zookeeper 127.0.0.1:2181
      skuld cluster remove skuld 10.0.0.7:13000 --back
    """
    from skuld_py.cli.showing import print_event
    from skuld_py.client.node_names import node_name
    from skuld_py.model.names import check_name
    from skuld_py.runtime.zookeeper.log_following import set_leaving

    check_name("cluster", name)
    node = node_name("NODE", node)
    has_changed = set_leaving(hosts, name, node, not back, timeout_s)
    state = "placed in" if back else "taken out of"
    print_event(as_json, f"node {node} is {state} cluster {name}{'' if has_changed else ', as it was before'}",
                cluster=name, node=node, is_placed=back, has_changed=has_changed)


@cluster.command()
@click.argument("name")
@click.argument("node", metavar="NODE")
@zookeeper_option
@click.option("--force", is_flag=True, show_default=False,
              help="Forget it although partitions need its vote; then they stay without a leader.")
@timeout_option("10s", "ZooKeeper's answer")
@json_option
def forget(name: str, node: str, hosts: str, force: bool, timeout_s: float, as_json: bool) -> None:
    """Forget NODE (HOST:PORT) of the cluster NAME: it is down and will not come back.

    Its partitions go to the others, which fill up from each other. The key that it had counts no more. Started
    again it is a new node, and fills, too: on its old data as well, once no partition needs its vote. A node that
    runs cannot be forgotten, nor one whose vote a partition needs for a majority, and as many must stay placed as
    there are copies of each task.

    \b
    Examples:
      skuld cluster forget skuld 10.0.0.7:13000 --zookeeper 127.0.0.1:2181
    """
    from skuld_py.cli.showing import print_event
    from skuld_py.client.node_names import node_name
    from skuld_py.cluster.log.commands import ForgetNode
    from skuld_py.cluster.log.play import Outcome
    from skuld_py.model.names import check_name
    from skuld_py.runtime.zookeeper.clusters import read_parameters
    from skuld_py.runtime.zookeeper.log_following import command
    from skuld_py.runtime.zookeeper.rosters import drop_node

    check_name("cluster", name)
    node = node_name("NODE", node)
    parameters = read_parameters(hosts, name, timeout_s)
    lost = _check_votes(hosts, parameters, node, timeout_s, is_forced=force)
    verdict = command(hosts, parameters, ForgetNode(node), timeout_s)
    if verdict.outcome is Outcome.UNCHANGED:
        known = ", ".join(sorted(verdict.replica.nodes)) or "none"
        raise Refused("unknown_node", f"NODE: cluster {name} has no node {node}; it has: {known}", name=node)
    if verdict.outcome is not Outcome.APPLIED:
        raise Refused("not_forgotten", f"NODE: {verdict.reason or verdict.outcome.value}", name=node)
    drop_node(hosts, name, node, timeout_s)
    print_event(as_json, f"node {node} of cluster {name} is forgotten (entry {verdict.position} of its log){lost}",
                cluster=name, node=node, position=verdict.position, is_forced=force)


def _check_votes(hosts: str, parameters: Parameters, node: str, timeout_s: float, *, is_forced: bool) -> str:
    """Refuse to forget a node that partitions need for a majority; in words what is lost, if that is forced."""
    from skuld_py.cli.journal import at_end
    from skuld_py.errors import Refused
    from skuld_py.runtime.zookeeper.clusters import read_cohorts
    from skuld_py.verbs.votes import partitions_said, shortages

    replica, pulses = at_end(hosts, parameters.cluster, timeout_s)
    if node not in replica.nodes or replica.nodes[node].member:
        return ""  # for the log to refuse
    live = {member.name for life, member in replica.members.items() if life in pulses}
    cohorts = read_cohorts(hosts, parameters, timeout_s)
    needed = shortages({each: cohort for each, cohort in cohorts.items() if node in cohort}, live)
    words = "; ".join(f"{partitions_said(each)} cannot elect a leader without {lacking.said()}"
                      for lacking, each in needed.items())
    if needed and not is_forced:
        raise Refused("votes_needed", f"NODE: {words}; start {node} again on its data, or another of these, and"
                      " forget it once 'skuld status' is content. If its data is gone for good, --force"
                      " forgets it, and gives these partitions up", name=node)
    return (f".\nLOST: {words}, started on the data that it had. Until then their tasks are neither granted"
            " nor surely read") if needed else ""


def _is_confirmed(name: str, hosts: str) -> bool:
    """Ask for the name and not for a letter, which fingers know by heart."""
    click.echo(f"This destroys cluster {name} in ZooKeeper at {hosts}; its tasks cannot be reached any"
               " more.\nType the cluster's name to go on: ", nl=False, err=True)
    return sys.stdin.readline().strip() == name
