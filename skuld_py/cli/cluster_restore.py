"""``skuld cluster restore``: ZooKeeper has lost a cluster, and its nodes' data directories are there."""

from __future__ import annotations

from pathlib import Path

import click

from skuld_py.cli.options import json_option, timeout_option, zookeeper_option
from skuld_py.cli.zookeeper_access import words_of


@click.command()
@click.argument("name")
@zookeeper_option
@click.option("--from", "directories", type=click.Path(file_okay=False, path_type=Path), multiple=True,
              required=True, metavar="DATA", help="A data directory of the cluster; may be given several times.")
@timeout_option("30s", "ZooKeeper's answers")
@json_option
def restore(name: str, hosts: str, directories: tuple[Path, ...], timeout_s: float, as_json: bool) -> None:
    """Put the cluster NAME back into a ZooKeeper that has lost it, from the data directories of its nodes.

    Stop all its nodes first, then give the directories that they ran on last, or copies of these: all of them, or
    as many as a majority of each partition's voters have had. Then start the nodes again as before. Every task
    that was acknowledged is there; claims that run are lost to their holders and granted again, with higher
    tokens. What operators held (frozen, solo) and what was written into the log in the last seconds is forgotten.

    \b
    Examples:
      skuld cluster restore skuld --from /var/lib/skuld/13000 --from /var/lib/skuld/13001
      skuld cluster restore prod --zookeeper zk1:2181 --from a/data --from b/data --from c/data
    """
    import secrets

    from skuld_py.cli.showing import print_event
    from skuld_py.errors import Refused
    from skuld_py.model.names import check_name
    from skuld_py.node.life.rebuilding import rebuilt
    from skuld_py.runtime.remains import remains_in
    from skuld_py.runtime.zookeeper.restoring import shown, write_cluster
    from skuld_py.runtime.zookeeper.servers import Servers
    from skuld_py.verbs.words import many

    check_name("cluster", name)
    if Servers.of(hosts).logins():
        raise Refused("not_restorable", "cluster-key: a cluster with keys cannot be restored yet, for the keys of"
                      " its nodes and clients were in ZooKeeper alone; restore ZooKeeper's own snapshot")
    made = rebuilt(name, [remains_in(each) for each in directories], secrets.token_hex(32))
    write_cluster(hosts, made, timeout_s)
    words = (f"cluster {name} is restored: {many(len(made.documents), 'partition')},"
             f" {many(len(made.registrations), 'node')}. Next, on each machine, start its node as before:\n"
             f"  skuld node --cluster {name} {words_of(hosts)} --port PORT --data DIRECTORY")
    print_event(as_json, "\n".join((words, *(f"! {each}" for each in made.warnings))), **shown(made))
