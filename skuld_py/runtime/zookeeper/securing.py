"""A cluster without keys is given them: all that it keeps in ZooKeeper becomes its owner's, and it gets a roster.
The key that proves claims, which everyone could read, is replaced.

Its nodes are stopped for that: one without keys and one with keys would not understand each other. So it is
refused while a node lives.

Invariants:

* The roster comes last. Without one no node starts with a key, so whoever does finds everything owned.
* A roster that was there before its cluster had an owner counts for nothing: anyone may have put it there. It is
  known by its owners, and is taken away once the root is owned, so that nobody puts another one there, and before
  anything else is, so that it never gets the owners of one that counts.
* What a start reads and what a node shows itself by is owned first. From then on no node starts without the key,
  and none that is starting shows itself; those that did before are looked for once more.
* A folder is owned before what is in it: nobody else adds anything behind the walk.
* Every step may be repeated, so what was interrupted is done by doing it again with the same key.

Rejected: nodes that change over while they run (each would need both kinds of sockets, and the cluster would be as
open as before until the last of them had changed); to take such a roster over, and to name its keys (who
overlooks one has given a stranger the cluster).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import attrs
from kazoo.exceptions import NoAuthError, NodeExistsError, NoNodeError, NotEmptyError
from kazoo.security import ACL, OPEN_ACL_UNSAFE

from skuld_py.errors import Malformed, Refused
from skuld_py.model.proofs import with_first_own_key
from skuld_py.model.roster import Roster
from skuld_py.runtime.zookeeper import clusters
from skuld_py.runtime.zookeeper.rosters import roster_path
from skuld_py.runtime.zookeeper.servers import Servers

GRACE_MS = 24 * 3600 * 1000
"""How long claims from before are renewed."""
_FIRST = ("/parameters", "/members", "/nodes")
"""What a start reads, and where a node shows itself."""


@attrs.frozen
class Secured:
    """What became of a cluster. ``has_changed``: False when it was so already. ``planted``: a roster that was
    there before the cluster had keys, and is taken away; without rows if it could not be read. ``roster``: that by
    which the cluster goes."""

    has_changed: bool
    planted: Roster | None
    roster: Roster


def check_stopped(hosts: str, cluster: str, timeout_s: float = 10.0) -> None:
    """``Refused`` when there is no such cluster, or while nodes of it live."""
    with clusters.connection(hosts, timeout_s, is_write=False) as client:
        _check_stopped(client, hosts, cluster, timeout_s)


def secure_cluster(hosts: Servers, cluster: str, public: str, timeout_s: float = 10.0) -> Secured:
    """Give all that a cluster keeps to the login of ``hosts``, and keys to the cluster, this one first.
    ``Refused`` while nodes live."""
    root = clusters.path_of(cluster)
    with clusters.connection(hosts, timeout_s, is_write=True) as client:
        _check_stopped(client, hosts, cluster, timeout_s)
        owners: Sequence[ACL] = client.default_acl
        _close_root(client, timeout_s)
        has_changed = _own(client, root, owners, timeout_s)
        planted = _remove_planted(client, root, owners, timeout_s)
        has_changed = sum(_own(client, root + path, owners, timeout_s) for path in _FIRST) > 0 or has_changed
        _check_stopped(client, hosts, cluster, timeout_s)
        has_changed = own_all(client, root, owners, timeout_s) > 0 or has_changed
        _replace_claim_key(client, cluster, timeout_s)
        made = Roster(cluster=(public,))
        try:
            client.create_async(roster_path(root), made.encode()).get(timeout=timeout_s)
            return Secured(True, planted, made)
        except NodeExistsError:
            raw = client.get_async(roster_path(root)).get(timeout=timeout_s)[0]
            return Secured(has_changed, planted, Roster.decode(raw))


def _remove_planted(client: Any, root: str, owners: Sequence[ACL], timeout_s: float) -> Roster | None:
    """Take away a roster that none of these owners has made; gives it."""
    path = roster_path(root)
    try:
        if {*client.get_acls_async(path).get(timeout=timeout_s)[0]} & {*owners}:
            return None
        planted = Roster.decode(client.get_async(path).get(timeout=timeout_s)[0])
    except NoNodeError:
        return None
    except (NoAuthError, Malformed):
        planted = Roster()
    try:
        client.delete_async(path).get(timeout=timeout_s)
    except NotEmptyError:
        clusters.remove_tree(client, path, timeout_s)
    return planted


def _replace_claim_key(client: Any, cluster: str, timeout_s: float) -> None:
    """Everyone could read the key that proves claims. Nobody runs, so all will know the new one."""
    if client.exists_async(roster_path(clusters.path_of(cluster))).get(timeout=timeout_s) is None:
        now_ms, key = time.time_ns() // 1_000_000, secrets.token_hex(32)
        clusters.set_parameters(client, cluster, lambda known: with_first_own_key(
            known, key, now_ms, GRACE_MS) if known.claim_key else known, timeout_s)


def own_all(client: Any, root: str, owners: Sequence[ACL], timeout_s: float) -> int:
    """Give a znode and all below it to these owners, and to nobody else; how many had others."""
    changed, folders = 0, [root]
    while folders:
        path = folders.pop()
        changed += _own(client, path, owners, timeout_s)
        with suppress(NoNodeError):
            folders += [f"{path}/{child}" for child in client.get_children_async(path).get(timeout=timeout_s)]
    return changed


def _own(client: Any, path: str, owners: Sequence[ACL], timeout_s: float) -> bool:
    """Whether it had other owners. What is gone has none."""
    with suppress(NoNodeError):
        if {*client.get_acls_async(path).get(timeout=timeout_s)[0]} != {*owners}:
            client.set_acls_async(path, owners).get(timeout=timeout_s)
            return True
    return False


def _close_root(client: Any, timeout_s: float) -> None:
    """Earlier releases left even the folder of all clusters to everyone."""
    if client.get_acls_async(clusters.ROOT).get(timeout=timeout_s)[0] == OPEN_ACL_UNSAFE:
        client.set_acls_async(clusters.ROOT, clusters.ROOT_ACL).get(timeout=timeout_s)


def _check_stopped(client: Any, hosts: str, cluster: str, timeout_s: float) -> None:
    path = f"{clusters.path_of(cluster)}/members"
    try:
        client.sync_async(path)
        pulses = client.get_children_async(path).get(timeout=timeout_s)
    except NoNodeError:
        raise clusters.unknown(client, hosts, cluster, timeout_s) from None
    if pulses:
        live = sorted({pulse.rpartition("~")[0] or pulse for pulse in pulses})
        raise Refused("cluster_alive", f"cluster {cluster} has live nodes: {', '.join(live)}; stop them first, and"
                      " run this again. One that was killed counts until its session ends, some seconds later",
                      cluster=cluster)
