"""``skuld cluster secure``: the keys of a cluster itself. Those of its clients are ``skuld keys``.

The key file is written before anything is changed by it: a cluster whose key is nowhere could not even be
destroyed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from skuld_py.cli.options import json_option, servers_option, timeout_option
from skuld_py.errors import Refused

if TYPE_CHECKING:
    from skuld_py.config import Parameters
    from skuld_py.keys.files import ClusterKey
    from skuld_py.runtime.zookeeper.servers import Servers


@click.command()
@click.argument("name")
@servers_option
@click.option("--cluster-key", "key_file", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              default=None, show_default="NAME.key",
              help="Where to write the cluster's key; or the one that a run before has written.")
@timeout_option("10s", "ZooKeeper's answer")
@json_option
def secure(name: str, hosts: str, key_file: Path | None, timeout_s: float, as_json: bool) -> None:
    """Give keys to the cluster NAME, which was created without. Stop its nodes first; their data stays as it is.

    From then on ZooKeeper shows the cluster to the owner of its key alone, and its nodes speak to owners of keys
    only. Start them again on their directories with --cluster-key, make a key for each client ('skuld keys make'),
    and give gateways, workers and clients theirs. Interrupted, it goes on when it is run again with the same file.

    \b
    Examples:
      skuld cluster secure prod --zookeeper 127.0.0.1:2181
      skuld cluster secure prod --cluster-key /etc/skuld/prod.key --zookeeper zk1:2181,zk2:2181,zk3:2181
    """
    from skuld_py.cli.showing import print_event
    from skuld_py.keys.files import read_cluster_key, write_new
    from skuld_py.model.names import check_name
    from skuld_py.runtime.zookeeper.securing import check_stopped, secure_cluster

    path = key_file or Path(f"{check_name('cluster', name)}.key")
    if path.exists():
        key = check_key_of(name, read_cluster_key(path))
    else:
        check_stopped(hosts, name, timeout_s)
        key = fresh_key(name)
        write_new(path, key.text)
    has_changed = secure_cluster(shown_to(hosts, key), name, timeout_s)
    done = f"cluster {name} has keys{'' if has_changed else ', as it had before'}; its own is in {path}"
    next_steps = ("\nNext, start its nodes as before, on the directories that they have, with one option more:\n"
                  f"  --cluster-key {path}\nThen a key for each client:\n  skuld keys make NAME --role producer"
                  f" --cluster {name} --zookeeper {hosts} --cluster-key {path}")
    print_event(as_json, done + next_steps, cluster=name, has_changed=has_changed, file=str(path))


def check_key_of(name: str, key: ClusterKey) -> ClusterKey:
    """The key itself; ``Refused`` for that of another cluster."""
    if key.cluster != name:
        raise Refused("wrong_cluster_key", f"cluster-key: the file holds the key of cluster {key.cluster}, not of"
                      f" {name}; give that of {name}", cluster=name)
    return key


def fresh_key(name: str) -> ClusterKey:
    """A new key for a cluster."""
    import secrets

    from skuld_py.keys.files import ClusterKey
    from skuld_py.keys.pair import fresh

    return ClusterKey(name, fresh(), f"skuld-{name}:{secrets.token_hex(32)}")


def shown_to(hosts: str, key: ClusterKey) -> Servers:
    """The servers, asked under the name that a key holds."""
    from skuld_py.runtime.zookeeper.servers import Servers

    return Servers.of(hosts).owned(lambda: key.zookeeper)


def create_secure(hosts: str, parameters: Parameters, path: Path, timeout_s: float) -> None:
    """A new cluster with a new key."""
    from skuld_py.keys.files import write_new
    from skuld_py.model.roster import Roster
    from skuld_py.runtime.zookeeper.clusters import create_cluster

    key = fresh_key(parameters.cluster)
    write_new(path, key.text)
    try:
        create_cluster(shown_to(hosts, key), parameters, timeout_s, roster=Roster())
    except Refused:
        path.unlink()
        raise
