"""A node's keys at its start: the cluster's, its own, and its place in the roster.

Whoever holds the cluster's key file may be a node: the node makes a pair of its own, keeps it with its data, and
authorises it. A node that has lost its directory comes with a new pair in the place of the old one. Its place in
the roster also says where other nodes dial it, so it is written once the port is bound, and before the node joins.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs

from skuld_py.errors import Refused
from skuld_py.keys.files import ClusterKey, NodeKey, read_node_key, write_new
from skuld_py.keys.pair import check_library, fresh
from skuld_py.model.roster import NODE_ROLE, KeyRow, Roster
from skuld_py.runtime.keyring import Keyring
from skuld_py.runtime.zookeeper.rosters import change_roster, no_keys, read_roster

NODE_FILE = "node.key"
"""In the node's data directory."""
ROSTER_FILE = "roster.json"
"""There, too: the newest roster that the node knows, for the day on which ZooKeeper has lost it; public keys."""


def open_keyring(hosts: str, key: ClusterKey, name: str, data: Path,
                 keep: Callable[[Roster], None] = lambda roster: None) -> Keyring:
    """The keys of a node that is about to start; ``keep`` keeps each roster. ``Refused`` for a cluster without
    keys."""
    check_library()
    roster = read_roster(hosts, key.cluster)
    if roster is None:
        raise no_keys(key.cluster)
    roster.check_shown(key.pair.public)
    return Keyring(key.pair, _own(data / NODE_FILE, name).pair, roster, keep)


def _own(path: Path, name: str) -> NodeKey:
    """The node's key; made when it has none, or one under another name, which its data then has, too."""
    if not path.exists():
        made = NodeKey(name, fresh())
        write_new(path, made.text)
    try:
        return read_node_key(path)
    except Refused as problem:
        if problem.code != "bad_key_file":
            raise
        raise Refused(problem.code, f"{problem.message}; or remove it, and start this node again: it makes"
                      " another", **problem.facts) from problem


def take_place(hosts: str, cluster: str, keyring: Keyring, name: str, address: str) -> None:
    """Have the roster say that this node shows its key, and is dialled at this address; it has no other place."""
    mine = keyring.mine = KeyRow(keyring.me.public, name, (NODE_ROLE,), address=address,
                                 shows=keyring.cluster.public)

    def placed(roster: Roster) -> Roster:
        others = tuple(row for row in roster.rows if row.name != name or row.key == mine.key)
        return attrs.evolve(roster, rows=others).authorised(mine)
    if mine not in keyring.roster.rows or len(keyring.roster.node(name)) > 1:
        keyring.put(change_roster(hosts, cluster, placed))
