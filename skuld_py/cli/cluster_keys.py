"""``skuld cluster secure`` and ``rotate``: the key of a cluster itself. Those of its clients are ``skuld keys``.

The key file is written before anything is changed by it: a cluster whose key is nowhere could not even be
destroyed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from skuld_py.cli.options import cluster_key_of, json_option, servers_option, timeout_option, zookeeper_option
from skuld_py.cli.values import KEY_FILE
from skuld_py.cli.zookeeper_access import words_of
from skuld_py.errors import Refused

if TYPE_CHECKING:
    from skuld_py.config import Parameters
    from skuld_py.keys.files import ClientKey, ClusterKey
    from skuld_py.model.roster import Roster
    from skuld_py.runtime.zookeeper.servers import Servers

FIRST_CLIENT = "first-client"
"""The name of the key that is made together with its cluster."""


@click.command()
@click.argument("name")
@servers_option
@click.option("--cluster-key", "key_file", type=KEY_FILE, metavar="FILE", default=None, show_default="NAME.key",
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
    from skuld_py.keys.files import read_cluster_key, write_where_told
    from skuld_py.model.names import check_name
    from skuld_py.runtime.zookeeper.securing import check_stopped, secure_cluster

    path = key_file or Path(f"{check_name('cluster', name)}.key")
    if path.exists():
        key = check_key_of(name, read_cluster_key(path))
    else:
        check_stopped(hosts, name, timeout_s)
        key = fresh_key(name)
        write_where_told(path, key.text)
    made = secure_cluster(shown_to(hosts, key), name, key.pair.public, timeout_s)
    done = f"cluster {name} has keys{'' if made.has_changed else ', as it had before'}; its own is in {path}"
    next_steps = ("\nNext, start its nodes as before, on the directories that they have, with one option more:\n"
                  f"  --cluster-key {path}\nThen a key for each client:\n  skuld keys make NAME --role producer"
                  f" --cluster {name} {words_of(hosts)} --cluster-key {path}")
    removed, known = _names(made.planted), _names(made.roster)
    if made.planted is not None:
        done += ("\nSomebody had put a list of keys there while all could. It is removed, and counts for nothing;"
                 f" it named {', '.join(removed) or 'nobody'}")
    if known:
        done += f"\nClients that have keys: {', '.join(known)}"
    print_event(as_json, done + next_steps, cluster=name, has_changed=made.has_changed, file=str(path),
                removed=removed, clients=known)


def _names(roster: Roster | None) -> list[str]:
    """Those of the clients that a roster names."""
    return sorted({row.name for row in roster.rows if not row.is_node} if roster is not None else ())


@click.command()
@click.argument("name")
@zookeeper_option
@click.option("--to", "path", type=KEY_FILE, metavar="FILE", default=None,
              show_default="NAME-next.key",
              help="Where to write the new key; or the file that a run before has written.")
@click.option("--finish", is_flag=True, show_default=False,
              help="Let the new key, which --cluster-key names then, alone count from now on.")
@timeout_option("10s", "ZooKeeper's answer")
@json_option
@click.pass_context
def rotate(ctx: click.Context, name: str, hosts: str, path: Path | None, finish: bool, timeout_s: float,
           as_json: bool) -> None:
    """Replace the key of the cluster NAME itself, while nodes and clients go on.

    \b
    1. Run this with the present key. It writes a new one; from now on both count.
    2. Let each client's key file name both: add the line that this prints, or make new files ('skuld keys rotate'
       with the new key). Start clients, workers and gateways again with them.
    3. Start the nodes again, one after the other, with the new file as --cluster-key.
    4. Run this with --finish and the new file. From then on the one before opens nothing.

    A client whose file names the old key alone does not find nodes that show the new one. Interrupted, either step
    goes on when it is run again.

    \b
    Examples:
      skuld cluster rotate prod --cluster-key prod.key --to prod-2.key --zookeeper zk1:2181
      skuld cluster rotate prod --finish --cluster-key prod-2.key --zookeeper zk1:2181
    """
    from skuld_py.cli.showing import print_event
    from skuld_py.runtime.zookeeper.rotation import begin_rotation, end_rotation

    known = cluster_key_of(ctx)
    if known is None:
        raise click.UsageError("--cluster-key: give the file of the key that the cluster has now; with --finish,"
                               " that of the new one.")
    check_key_of(name, known)
    if finish:
        changed = end_rotation(shown_to(hosts, known), known, timeout_s)
        print_event(as_json, f"the key {known.pair.public} of cluster {name} alone counts from now on: the one"
                    " before opens nothing any more", cluster=name, key=known.pair.public, changed=changed)
        return
    path = path or Path(f"{name}-next.key")
    key = _successor(hosts, known, path, timeout_s)
    begin_rotation(shown_to(hosts, key), key, timeout_s)
    print_event(as_json, f"cluster {name} has a new key beside its present one, in {path}\nNext, add this line to"
                f" the key file of each client, or make a new one for it, and start the client again:\n"
                f'  also = "{key.pair.public}"\nThen start the nodes again, one after the other, with'
                f" --cluster-key {path}\nThen:\n  skuld cluster rotate {name} --finish --cluster-key {path}"
                f" {words_of(hosts)}",
                cluster=name, key=key.pair.public, file=str(path))


def _successor(hosts: str, known: ClusterKey, path: Path, timeout_s: float) -> ClusterKey:
    """The key that takes the place of the known one: made now, or by a run before."""
    import attrs

    from skuld_py.keys.files import Before, read_cluster_key, write_where_told
    from skuld_py.runtime.zookeeper.rosters import no_keys, read_roster

    if path.exists():
        found = check_key_of(known.cluster, read_cluster_key(path))
        if found.before is None or found.before.public != known.pair.public:
            raise Refused("key_exists", f"{path} exists, and does not take the place of the key that --cluster-key"
                          " names; choose another file", file=str(path))
        return found
    roster = read_roster(shown_to(hosts, known), known.cluster, timeout_s)
    if roster is None:
        raise no_keys(known.cluster)
    key = attrs.evolve(fresh_key(known.cluster), before=Before(known.pair.public, known.zookeeper))
    roster.succeeded(key.pair.public, known.pair.public)
    write_where_told(path, key.text)
    return key


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

    return Servers.of(hosts).owned(lambda: key.logins)


def create_secure(hosts: str, parameters: Parameters, path: Path, client_path: Path | None,
                  timeout_s: float) -> None:
    """A new cluster with a new key, and perhaps one for a client that may do everything; or with those that a run
    before has written, which came no further."""
    from skuld_py.keys.files import read_cluster_key, write_where_told
    from skuld_py.model.roles import CLIENTS
    from skuld_py.model.roster import Roster, make_row
    from skuld_py.runtime.zookeeper.clusters import create_cluster

    name = parameters.cluster
    key = check_key_of(name, read_cluster_key(path)) if path.exists() else fresh_key(name)
    texts, roster = {path: key.text}, Roster(cluster=(key.pair.public,))
    if client_path is not None:
        client = _first_client(client_path, key)
        texts[client_path] = client.text
        roster = roster.authorised(make_row(client.pair.public, client.name, tuple(CLIENTS)))
    written: list[Path] = []
    try:
        for file, text in texts.items():
            if not file.exists():
                write_where_told(file, text)
                written.append(file)
        create_cluster(shown_to(hosts, key), parameters, timeout_s, roster=roster)
    except Refused:
        for file in written:
            file.unlink()
        raise


def _first_client(path: Path, key: ClusterKey) -> ClientKey:
    """The key of the first client: made now, or by a run before."""
    from skuld_py.keys.files import ClientKey, read_client_key
    from skuld_py.keys.pair import fresh

    if not path.exists():
        return ClientKey(FIRST_CLIENT, fresh(), key.pair.public)
    found = read_client_key(path)
    if (found.name, found.cluster) != (FIRST_CLIENT, key.pair.public):
        raise Refused("key_exists", f"{path} exists, and is not the first client's key of this cluster; choose"
                      " another file", file=str(path))
    return found
