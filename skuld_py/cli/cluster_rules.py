"""``skuld cluster rules``: by which rules a cluster goes, and newer ones, once all its nodes know them."""

from __future__ import annotations

import click

from skuld_py.cli.options import json_option, timeout_option, zookeeper_option
from skuld_py.cli.values import Duration
from skuld_py.errors import Refused
from skuld_py.verbs.words import said


@click.command()
@click.argument("name")
@zookeeper_option
@click.option("--raise", "is_raise", is_flag=True, show_default=False,
              help="Go by the newest rules that this program knows, if all nodes know them.")
@click.option("--grace", "grace_s", type=Duration(most_s=366 * 24 * 3600.0), metavar="DURATION", default="24h",
              help="How long claims go on counting without a proof, as those have that are older than rules 2.")
@timeout_option("10s", "ZooKeeper's answer")
@json_option
def rules(name: str, hosts: str, is_raise: bool, grace_s: float, timeout_s: float, as_json: bool) -> None:
    """Show the rules that the cluster NAME goes by, and the newest that each of its nodes knows; or raise them.

    Rules say what nodes make of the entries of their coordination log, and in which protocol they speak. Nodes of
    two releases run side by side under the older rules. Raise the rules once all nodes run the newer release, and
    once you will not go back: rules never fall again, and a node that does not know them ends.

    In a cluster from before rules 2, whoever acts for a claim then has to show that it was granted, where any
    token would do before. Claims from before, which come without a proof, go on counting for --grace.

    \b
    Examples:
      skuld cluster rules skuld --zookeeper 127.0.0.1:2181
      skuld cluster rules skuld --raise
    """
    from skuld_py.cli.showing import print_event
    from skuld_py.config import RULES
    from skuld_py.model.names import check_name

    known = known_rules(hosts, check_name("cluster", name), timeout_s)
    if is_raise:
        check_all_know(name, known)
        _raise_rules(name, hosts, grace_s, timeout_s, as_json)
        return
    from skuld_py.cli.journal import at_end

    replica, _ = at_end(hosts, name, timeout_s)
    each = ", ".join(f"{node} {newest}" for node, newest in known.items()) or "no node so far"
    print_event(as_json, f"cluster {name} goes by rules {replica.rules}; this program knows rules up to {RULES},"
                f" and of its nodes: {each}", cluster=name, rules=replica.rules, newest=RULES, nodes=known)


def known_rules(hosts: str, name: str, timeout_s: float) -> dict[str, int]:
    """The newest rules that each node of the cluster knows, or knew when it last ran."""
    from skuld_py.cli.journal import at_end
    from skuld_py.runtime.zookeeper.clusters import read_registrations

    replica, _ = at_end(hosts, name, timeout_s)
    return {node: entry.known_rules for node, entry in read_registrations(hosts, name, timeout_s).items()
            if node in replica.nodes}


def check_all_know(name: str, known: dict[str, int]) -> None:
    """``Refused`` while a node does not know the newest rules of this program."""
    from skuld_py.config import RULES

    older = [node for node, newest in known.items() if newest < RULES]
    if older:
        raise Refused("not_upgraded", f"rules: node {', '.join(older)} of cluster {name} does not know rules"
                      f" {RULES}, or did not when it was last up; upgrade it and start it, or forget it ('skuld"
                      " cluster forget')", nodes=", ".join(older))


def _raise_rules(name: str, hosts: str, grace_s: float, timeout_s: float, as_json: bool) -> None:
    import secrets
    import time

    from skuld_py.cli.showing import print_event
    from skuld_py.cluster.log.commands import SetRules
    from skuld_py.cluster.log.play import Outcome
    from skuld_py.config import RULES
    from skuld_py.runtime.zookeeper.clusters import draw_key, read_parameters
    from skuld_py.runtime.zookeeper.log_following import command

    verdict = command(hosts, read_parameters(hosts, name, timeout_s), SetRules(RULES), timeout_s)
    has_changed = verdict.outcome is Outcome.APPLIED
    if not has_changed and verdict.outcome is not Outcome.UNCHANGED:
        raise Refused("not_upgraded", f"rules: {verdict.reason or verdict.outcome.value}", rules=RULES)
    is_drawn = draw_key(hosts, name, secrets.token_hex(32), round((time.time() + grace_s) * 1000), timeout_s)
    proved = f", proves claims, and takes those without a proof for {said(grace_s)} more" if is_drawn else ""
    has_changed = has_changed or is_drawn
    print_event(as_json, f"cluster {name} goes by rules {RULES}{proved if has_changed else ', as it did before'}",
                cluster=name, rules=RULES, has_changed=has_changed)
