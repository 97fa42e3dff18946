"""``skuld cluster share``: how the workflows of a cluster share its slots."""

from __future__ import annotations

import click

from skuld_py.cli.options import json_option, timeout_option, zookeeper_option

WAYS = ("greedy", "balanced", "percentage")


@click.command()
@click.argument("name")
@click.argument("way", type=click.Choice(WAYS), required=False)
@zookeeper_option
@timeout_option("10s", "ZooKeeper's answer")
@json_option
def share(name: str, way: str | None, hosts: str, timeout_s: float, as_json: bool) -> None:
    """Show how the live workflows of the cluster NAME share the slots of its workers; or set it.

    \b
    balanced     all have as many, to within one
    greedy       the first that was submitted has all that it can use, then the next
    percentage   each has its part in a hundred; what nobody was promised is idle

    It holds at once, for all workflows: what runs runs on, and what workers claim next follows. It needs rules 3
    ('skuld cluster rules').

    \b
    Examples:
      skuld cluster share skuld --zookeeper 127.0.0.1:2181
      skuld cluster share skuld greedy
    """
    from skuld_py.cli.showing import print_event
    from skuld_py.model.names import check_name

    check_name("cluster", name)
    if way is not None:
        has_changed = _set(hosts, name, way, timeout_s)
        told = f"workflows of cluster {name} share slots: {way}{'' if has_changed else ', as before'}"
        print_event(as_json, told, cluster=name, sharing=way, has_changed=has_changed)
        return
    from skuld_py.cli.journal import at_end

    replica, _ = at_end(hosts, name, timeout_s)
    print_event(as_json, f"workflows of cluster {name} share slots: {replica.sharing or 'balanced'}",
                cluster=name, sharing=replica.sharing or "balanced")


def _set(hosts: str, name: str, way: str, timeout_s: float) -> bool:
    """Write it; whether it was otherwise before."""
    from skuld_py.cluster.log.commands import SetSharing
    from skuld_py.cluster.log.play import Outcome
    from skuld_py.errors import Refused
    from skuld_py.runtime.zookeeper.clusters import read_parameters
    from skuld_py.runtime.zookeeper.log_following import command

    verdict = command(hosts, read_parameters(hosts, name, timeout_s), SetSharing(way), timeout_s)
    if verdict.outcome not in (Outcome.APPLIED, Outcome.UNCHANGED):
        raise Refused("not_upgraded", f"sharing: {verdict.reason or verdict.outcome.value}; it needs rules 3, and"
                      f" the cluster goes by rules {verdict.replica.rules} ('skuld cluster rules {name} --raise')",
                      rules=verdict.replica.rules)
    return verdict.outcome is Outcome.APPLIED
