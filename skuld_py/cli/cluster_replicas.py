"""``skuld cluster replicas``: how many copies of each task a cluster keeps, and another number."""

from __future__ import annotations

import click

from skuld_py.cli.options import json_option, timeout_option, zookeeper_option
from skuld_py.verbs.words import copies

MOST = 9
"""As many copies as a cluster may keep; written out, since the help loads nothing."""


@click.command()
@click.argument("name")
@click.argument("count", type=click.IntRange(1, MOST), required=False)
@zookeeper_option
@timeout_option("10s", "ZooKeeper's answer")
@json_option
def replicas(name: str, count: int | None, hosts: str, timeout_s: float, as_json: bool) -> None:
    """Show how many copies of each task the cluster NAME keeps; or have it keep COUNT.

    Start the nodes first: there must be as many as copies. Then every partition gets its new voters, once these
    have taken over what it holds; or gives some up, one at a time, each once the others hold all that it does.
    Tasks are stored and granted meanwhile, and 'skuld status' says what is still to be done. The number may be
    changed again at any time. It needs rules 4 ('skuld cluster rules').

    \b
    Examples:
      skuld cluster replicas skuld --zookeeper 127.0.0.1:2181
      skuld cluster replicas skuld 3
    """
    from skuld_py.cli.showing import print_event
    from skuld_py.model.names import check_name

    check_name("cluster", name)
    if count is not None:
        has_changed = _set(hosts, name, count, timeout_s)
        told = f"cluster {name} is to keep {copies(count)} of each task{'' if has_changed else ', as before'}"
        print_event(as_json, told, cluster=name, replicas=count, has_changed=has_changed)
        return
    from skuld_py.cli.journal import at_end

    replica, _ = at_end(hosts, name, timeout_s)
    print_event(as_json, f"cluster {name} keeps {copies(replica.replicas)} of each task", cluster=name,
                replicas=replica.replicas)


def _set(hosts: str, name: str, count: int, timeout_s: float) -> bool:
    """Write it; whether it was another number before."""
    from skuld_py.cluster.log.commands import SetReplicas
    from skuld_py.cluster.log.commands.set_replicas import REPLICAS_SINCE
    from skuld_py.cluster.log.play import Outcome
    from skuld_py.errors import Refused
    from skuld_py.runtime.zookeeper.clusters import read_parameters
    from skuld_py.runtime.zookeeper.log_following import command

    verdict = command(hosts, read_parameters(hosts, name, timeout_s), SetReplicas(count), timeout_s)
    if verdict.outcome in (Outcome.APPLIED, Outcome.UNCHANGED):
        return verdict.outcome is Outcome.APPLIED
    if verdict.replica.rules < REPLICAS_SINCE:
        raise Refused("not_upgraded", f"COUNT: the number of copies may change from rules {REPLICAS_SINCE} on, and"
                      f" the cluster goes by rules {verdict.replica.rules} ('skuld cluster rules {name} --raise')",
                      rules=verdict.replica.rules)
    raise Refused("too_few_nodes", f"COUNT: {verdict.reason or verdict.outcome.value}", replicas=count)
