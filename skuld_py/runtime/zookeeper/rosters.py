"""The roster of a cluster's keys in ZooKeeper: read, changed by test-and-set, and watched by nodes.

A cluster without this znode has no keys. A roster that cannot be read says nothing new to a node that runs; it is
named in the log, and hinders the node at its next start.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress

from kazoo.exceptions import BadVersionError, NoNodeError

from skuld_py.errors import Malformed, Refused
from skuld_py.model.roster import Roster
from skuld_py.runtime.zookeeper.clusters import connection, path_of, unknown
from skuld_py.runtime.zookeeper.connection import Connection

LOOK_S = 15.0
"""How often a roster that is followed is looked at without news: a watch may be lost."""

_log = logging.getLogger(__name__)


def roster_path(root: str) -> str:
    """Where the roster of a cluster is."""
    return f"{root}/roster"


def read_roster(hosts: str, cluster: str, timeout_s: float = 10.0) -> Roster | None:
    """The roster; None for a cluster without keys. ``Refused`` where there is no such cluster."""
    path = roster_path(path_of(cluster))
    with connection(hosts, timeout_s, is_write=False) as client:
        try:
            client.sync_async(path)
            raw = client.get_async(path).get(timeout=timeout_s)[0]
        except NoNodeError:
            if client.exists_async(path_of(cluster)).get(timeout=timeout_s) is None:
                raise unknown(client, hosts, cluster, timeout_s) from None
            return None
    return _decoded(path, raw)


def follow_roster(hosts: str, cluster: str, put: Callable[[Roster], object], is_over: threading.Event,
                  timeout_s: float = 10.0) -> None:
    """Put each new roster in, until it is over; for a process that has no session of its own. Raises what hinders
    it."""
    path, news = roster_path(path_of(cluster)), threading.Event()
    with connection(hosts, timeout_s, is_write=False) as client:
        while not is_over.is_set():
            news.clear()
            raw, _ = client.get_async(path, watch=lambda event: news.set()).get(timeout=timeout_s)
            put(_decoded(path, raw))
            news.wait(LOOK_S)


def change_roster(hosts: str, cluster: str, change: Callable[[Roster], Roster], timeout_s: float = 10.0) -> Roster:
    """Have a changed roster in the place of the present one; gives it. ``Refused`` for a cluster without keys."""
    path = roster_path(path_of(cluster))
    with connection(hosts, timeout_s, is_write=True) as client:
        while True:
            try:
                raw, stat = client.get_async(path).get(timeout=timeout_s)
            except NoNodeError:
                raise no_keys(cluster) from None
            wanted = change(_decoded(path, raw))
            with suppress(BadVersionError):
                client.set_async(path, wanted.encode(), version=stat.version).get(timeout=timeout_s)
                return wanted


def drop_node(hosts: str, cluster: str, name: str, timeout_s: float = 10.0) -> None:
    """Let the keys of a forgotten node count no more; a cluster without keys has none."""
    try:
        change_roster(hosts, cluster, lambda roster: roster.without_nodes((name,)), timeout_s)
    except Refused as problem:
        if problem.code != "no_keys":
            raise


def no_keys(cluster: str) -> Refused:
    """The refusal where a key is shown to a cluster that has none."""
    return Refused("no_keys", f"cluster {cluster} has no keys; leave the key out, or stop its nodes and give"
                   f" it keys ('skuld cluster secure {cluster}')", cluster=cluster)


class RosterWatch:
    """Puts each new roster in, and writes the one that ``put`` gives, if it gives one; all in the registry's
    thread."""

    def __init__(self, connection: Connection, root: str, put: Callable[[Roster], Roster | None]) -> None:
        self._connection = connection
        self._path = roster_path(root)
        self._put = put
        self._unread = b""

    def look(self) -> None:
        """Read it, watched."""
        try:
            raw, stat = self._connection.wait(
                self._connection.client.get_async(self._path, watch=self._connection.on_watch))
        except NoNodeError:
            _log.error("the roster of keys is gone from ZooKeeper (%s); this node goes by what it knows",
                       self._path)
            return
        try:
            wanted = self._put(Roster.decode(raw))
            if wanted is not None:
                with suppress(BadVersionError):  # then the watch leads here again
                    self._connection.wait(self._connection.client.set_async(
                        self._path, wanted.encode(), version=stat.version))
        except (Malformed, Refused) as problem:
            if raw != self._unread:
                _log.error("%s cannot be used: %s; this node goes by what it knows", self._path, problem.message)
            self._unread = raw


def _decoded(path: str, raw: bytes) -> Roster:
    try:
        return Roster.decode(raw)
    except Malformed as problem:
        raise Refused("bad_roster", f"{path} in ZooKeeper cannot be read: {problem.message}; upgrade this program,"
                      " or mend the znode") from problem
