"""``skuld cluster proofs``: the key by which nodes prove that a claim was granted: since when, and another one.

The key itself is shown to nobody: it is made here, and goes to ZooKeeper, where nodes read it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from skuld_py.cli.options import json_option, timeout_option, zookeeper_option
from skuld_py.cli.values import Duration

if TYPE_CHECKING:
    from skuld_py.config import Parameters


@click.command()
@click.argument("name")
@zookeeper_option
@click.option("--rotate", is_flag=True, show_default=False, help="Have claims proved by a new key.")
@click.option("--grace", "grace_s", type=Duration(most_s=366 * 24 * 3600.0), metavar="DURATION", default="24h",
              help="With --rotate: how long claims of the key before are renewed; longer than any task runs.")
@click.option("--leaked", is_flag=True, show_default=False,
              help="With --rotate: claims of all keys before count no more, once the new one is used.")
@timeout_option("10s", "ZooKeeper's answer")
@json_option
def proofs(name: str, hosts: str, rotate: bool, grace_s: float, leaked: bool, timeout_s: float,
           as_json: bool) -> None:
    """Show since when the key that proves the claims of cluster NAME is used, and replace it.

    Who holds a claim shows that it was granted by a proof, which nodes make with a key that ZooKeeper keeps. A new
    one is used some two minutes after it was made, when all nodes know it. Claims of the one before are renewed
    for --grace, and count for a day longer than that, until the last lease has ended: nobody notices.

    If the key has leaked, --leaked has it count no more once the new one is used. Whoever holds a claim then loses
    it, and its task is granted again when the lease ends.

    \b
    Examples:
      skuld cluster proofs prod --zookeeper 127.0.0.1:2181
      skuld cluster proofs prod --rotate --grace 3d --cluster-key prod.key
      skuld cluster proofs prod --rotate --leaked --cluster-key prod.key
    """
    import secrets

    from skuld_py.cli.cluster_rules import check_all_know, known_rules
    from skuld_py.model.names import check_name
    from skuld_py.model.proofs import with_new_key
    from skuld_py.runtime.zookeeper.clusters import change_parameters, read_parameters

    if leaked and not rotate:
        raise click.UsageError("--leaked: without --rotate nothing is replaced; say both, or neither.")
    check_name("cluster", name)
    if rotate:
        check_all_know(name, known_rules(hosts, name, timeout_s))
        key, now_ms = secrets.token_hex(32), time.time_ns() // 1_000_000
        made = change_parameters(hosts, name, lambda known: with_new_key(
            known, key, now_ms, round(grace_s * 1000), is_leaked=leaked), timeout_s)
    else:
        made = read_parameters(hosts, name, timeout_s)
    _say(as_json, made)


def _say(as_json: bool, made: Parameters) -> None:
    from skuld_py.cli.showing import print_event
    from skuld_py.verbs.words import moment

    now_ms = time.time_ns() // 1_000_000
    former = [each for each in made.former_keys if now_ms < each.until_ms]
    lines = [f"cluster {made.cluster} " + (
        "has no key to prove claims with" if not made.claim_key else
        f"proves claims by a new key from {moment(made.claim_from_ms)} on" if now_ms < made.claim_from_ms else
        f"proves claims by the key of {moment(made.claim_from_ms)}" if made.claim_from_ms else
        "proves claims by the key that it was made with")]
    lines += [f"claims of a key before are renewed until {moment(each.renewed_until_ms)}, and count until"
              f" {moment(each.until_ms)}" for each in former]
    print_event(as_json, "\n".join(lines), cluster=made.cluster, has_key=bool(made.claim_key),
                from_ms=made.claim_from_ms, former=[
                    {"renewed_until_ms": each.renewed_until_ms, "until_ms": each.until_ms} for each in former])
