"""The cluster's own key is replaced while its nodes run: for a while two count, and then the new one alone.

The key is two things. Clients know the nodes by its pair: a client's file may name both, and each node shows one
of them, the other from its next start on. And ZooKeeper knows the nodes by its login. Whom the cluster belongs to
stands at its root znode: whoever makes a znode gives it to these (``clusters.heed_owners``). What a node with the
file before made for itself alone is open to one with the new file, which knows both logins.

Invariants:

* What the new file makes is open to nodes with the one before until no live node shows that: none is locked out.
* When the key before has been ended, its login opens nothing, and no node starts with it.
* Every step may be repeated, so what was interrupted is done by doing it again.

Rejected: two ports, one for each key (clients would have to learn the second); to have clients learn the new key
from the nodes (their files are theirs, and mostly cannot be written).
"""

from __future__ import annotations

import time
from typing import Any

from skuld_py.keys.files import ClusterKey
from skuld_py.runtime.zookeeper import clusters
from skuld_py.runtime.zookeeper.rosters import change_roster, no_keys, read_roster
from skuld_py.runtime.zookeeper.securing import own_all
from skuld_py.runtime.zookeeper.servers import Servers

SETTLE_S = 2.0
"""So long after it was told that the key before has ended, no node makes anything for its owner."""


def begin_rotation(hosts: Servers, key: ClusterKey, timeout_s: float = 10.0) -> None:
    """Let this key and the one before count. ``Refused`` while another one is being replaced."""
    assert key.before is not None
    before, root = key.before.public, clusters.path_of(key.cluster)
    known = read_roster(hosts, key.cluster, timeout_s)
    if known is None:
        raise no_keys(key.cluster)
    known.succeeded(key.pair.public, before)
    with clusters.connection(hosts, timeout_s, is_write=True) as client:
        client.set_acls_async(root, clusters.owners_of(key.logins)).get(timeout=timeout_s)
    change_roster(hosts, key.cluster, lambda roster: roster.succeeded(key.pair.public, before), timeout_s)


def end_rotation(hosts: Servers, key: ClusterKey, timeout_s: float = 10.0) -> int:
    """Let this key alone count, and give all that there is to its owner alone; how many znodes had another.
    ``Refused`` while a live node shows the key before."""
    root, owners = clusters.path_of(key.cluster), clusters.owners_of([key.zookeeper])
    known = read_roster(hosts, key.cluster, timeout_s)
    if known is None:
        raise no_keys(key.cluster)
    with clusters.connection(hosts, timeout_s, is_write=True) as client:
        known.settled(key.pair.public, _live(client, root, timeout_s))
        client.set_acls_async(root, owners).get(timeout=timeout_s)
        change_roster(hosts, key.cluster, lambda roster: roster.settled(key.pair.public, ()), timeout_s)
        changed = own_all(client, root, owners, timeout_s)
        while True:
            time.sleep(SETTLE_S)
            more = own_all(client, root, owners, timeout_s)
            changed += more
            if not more:
                return changed


def _live(client: Any, root: str, timeout_s: float) -> list[str]:
    client.sync_async(f"{root}/members")
    pulses = client.get_children_async(f"{root}/members").get(timeout=timeout_s)
    return sorted({pulse.rpartition("~")[0] for pulse in pulses})
