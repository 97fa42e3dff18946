"""Clusters in ZooKeeper, made, unmade and looked up; and how this package connects to ZooKeeper at all.

Layout below ``/skuld/CLUSTER``: ``parameters`` (JSON), ``nodes/NAME`` (persistent, a ``Registration``),
``members/NAME`` (ephemeral, with the boot id), ``partitions/K`` (the partition document), and the coordination
log: ``log`` and ``origin`` (see ``log_reading``).

Invariants:

* A cluster appears whole or not at all: its nodes are created in one transaction.
* Every call ends within its timeout, whatever ZooKeeper does.
* Unreachable is ``Refused`` only before anything was asked that writes; afterwards it is ``Uncertain``.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import attrs
from kazoo.client import KazooClient
from kazoo.exceptions import (
    ConnectionClosedError,
    ConnectionLoss,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    OperationTimeoutError,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError

from skuld_py.config import Parameters
from skuld_py.errors import Malformed, Refused, Uncertain
from skuld_py.model.names import WIDE_NAME, check_name
from skuld_py.model.registration import Registration
from skuld_py.runtime.log_reading import Header

ROOT = "/skuld"
UNANSWERED = (ConnectionLoss, SessionExpiredError, OperationTimeoutError, ConnectionClosedError,
              KazooTimeoutError)
"""What a request ends with that may or may not have been carried out."""

_RECONNECT = {"max_tries": -1, "delay": 0.1, "backoff": 2, "max_jitter": 0.4, "max_delay": 1.0}

_BATCH = 128
_TRIES = 10
"""A node's entry changes once per start, so hardly ever twice in a row."""

_log = logging.getLogger(__name__)


def create_cluster(hosts: str, parameters: Parameters, timeout_s: float = 10.0) -> None:
    """Write a new cluster, whole or not at all."""
    root = path_of(parameters.cluster)
    with connection(hosts, timeout_s, is_write=True) as client:
        with suppress(NodeExistsError):
            client.create_async(ROOT).get(timeout=timeout_s)
        creation = client.transaction()
        creation.create(root)
        creation.create(f"{root}/parameters", json.dumps(attrs.asdict(parameters), sort_keys=True).encode())
        for folder in ("nodes", "members", "partitions", "log"):
            creation.create(f"{root}/{folder}")
        creation.create(f"{root}/origin", Header().encode())
        first = creation.commit_async().get(timeout=timeout_s)[0]
    if isinstance(first, NodeExistsError):
        raise Refused("cluster_exists", f"cluster {parameters.cluster} exists already; choose another name,"
                      " or destroy it first", cluster=parameters.cluster)
    if isinstance(first, Exception):
        raise Refused("zookeeper_refused", f"ZooKeeper did not create the cluster: {first!r}", hosts=hosts)


def destroy_cluster(hosts: str, cluster: str, timeout_s: float = 10.0, *, is_forced: bool = False) -> None:
    """Remove all that ZooKeeper knows of a cluster; ``Refused`` while nodes of it live, unless forced. Its
    nodes, and what they store, are not touched."""
    root = path_of(cluster)
    with connection(hosts, timeout_s, is_write=True) as client:
        try:
            live = sorted(client.get_children_async(f"{root}/members").get(timeout=timeout_s))
            if live and not is_forced:
                raise Refused("cluster_alive", f"cluster {cluster} has live nodes: {', '.join(live)}; stop them"
                              " first, or use --force", cluster=cluster)
            _remove(client, root, timeout_s)
        except NoNodeError:
            raise unknown(client, hosts, cluster, timeout_s) from None


def read_parameters(hosts: str, cluster: str, timeout_s: float = 10.0) -> Parameters:
    """What a cluster is."""
    root = path_of(cluster)
    with connection(hosts, timeout_s, is_write=False) as client:
        try:
            raw = client.get_async(f"{root}/parameters").get(timeout=timeout_s)[0]
        except NoNodeError:
            raise unknown(client, hosts, cluster, timeout_s) from None
    try:
        return Parameters(**json.loads(raw))
    except (ValueError, TypeError) as problem:
        raise Refused("bad_parameters", f"the parameters of cluster {cluster} in ZooKeeper are not of this"
                      f" version: {problem}", cluster=cluster) from problem


def read_registration(hosts: str, cluster: str, name: str, timeout_s: float = 10.0) -> Registration | None:
    """What is registered under a node's name; None before its first start."""
    path = f"{path_of(cluster)}/nodes/{name}"
    with connection(hosts, timeout_s, is_write=False) as client:
        try:
            raw = client.get_async(path).get(timeout=timeout_s)[0]
        except NoNodeError:
            return None
    return registration_of(name, raw)


def set_leaving(hosts: str, cluster: str, name: str, is_leaving: bool, timeout_s: float = 10.0) -> bool:
    """Take a node out of the placement, alive or dead, or put it back; False when it was so already.

    ``Refused`` when there is no such node, or too few would be left to hold every copy; that is decided and
    written in one transaction, so of two nodes that are taken out at once the second may be refused.
    """
    replicas = read_parameters(hosts, cluster, timeout_s / 2).replicas
    with connection(hosts, timeout_s / 2, is_write=True) as client:
        for _ in range(_TRIES):
            entries = _read_entries(client, cluster, timeout_s)
            entry, version = entries.get(name, (None, -1))
            if entry is None:
                raise Refused("unknown_node", f"NODE: cluster {cluster} has no node {name}; it has:"
                              f" {', '.join(entries) or 'none'}", name=name)
            if entry.is_leaving == is_leaving:
                return False
            placed = [other for other, (known, _) in entries.items() if other != name and not known.is_leaving]
            if is_leaving and len(placed) < replicas:
                raise Refused("too_few_nodes", f"NODE: without {name} cluster {cluster} has {len(placed)} nodes"
                              f" for {replicas} copies of each task; start another node first", name=name)
            change = client.transaction()
            for other in placed:
                change.check(f"{path_of(cluster)}/nodes/{other}", entries[other][1])
            change.set_data(f"{path_of(cluster)}/nodes/{name}",
                            attrs.evolve(entry, is_leaving=is_leaving).encode(), version)
            if not any(isinstance(each, Exception) for each in change.commit_async().get(timeout=timeout_s)):
                return True
    raise Refused("busy", f"the nodes of cluster {cluster} change all the time; try again", cluster=cluster)


def _read_entries(client: Any, cluster: str, timeout_s: float) -> dict[str, tuple[Registration, int]]:
    """All nodes' entries with their versions, by name order."""
    folder = f"{path_of(cluster)}/nodes"
    names = sorted(filter(WIDE_NAME.fullmatch, client.get_children_async(folder).get(timeout=timeout_s)))
    answers = [(name, client.get_async(f"{folder}/{name}")) for name in names]
    entries = {}
    for name, answer in answers:
        with suppress(NoNodeError):
            raw, stat = answer.get(timeout=timeout_s)
            entries[name] = registration_of(name, raw), stat.version
    return entries


def registration_of(name: str, raw: bytes) -> Registration:
    """A node's entry; ``Refused`` when it cannot be read, which no node of this version writes."""
    try:
        return Registration.decode(raw)
    except Malformed as problem:
        raise Refused("bad_registration", f"the entry of node {name} in ZooKeeper cannot be read:"
                      f" {problem.message}; upgrade this node, or mend the entry", name=name) from problem


def path_of(cluster: str) -> str:
    """Where a cluster is kept; ``Refused`` when the name is none, which also keeps paths out of it."""
    return f"{ROOT}/{check_name('cluster', cluster)}"


@contextmanager
def connection(hosts: str, timeout_s: float, *, is_write: bool) -> Iterator[Any]:
    """A short-lived client; its session is a part of the timeout, so that giving up is in time as well."""
    client = open_client(hosts, timeout_s / 3)
    start(client, hosts, timeout_s * 2 / 3)
    try:
        yield client
    except UNANSWERED as problem:
        if is_write:
            raise Uncertain("zookeeper_uncertain", f"the connection to ZooKeeper at {hosts} broke before it"
                            " answered; look whether it happened before you try again",
                            hosts=hosts) from problem
        raise unreachable(hosts) from problem
    finally:
        stop(client)


def _remove(client: Any, path: str, timeout_s: float) -> None:
    """Children first, many at a time; what appears meanwhile is removed as well."""
    while True:
        children = [f"{path}/{child}" for child in client.get_children_async(path).get(timeout=timeout_s)]
        for start in range(0, len(children), _BATCH):
            answers = [(child, client.delete_async(child)) for child in children[start : start + _BATCH]]
            for child, answer in answers:
                with suppress(NoNodeError):
                    try:
                        answer.get(timeout=timeout_s)
                    except NotEmptyError:
                        _remove(client, child, timeout_s)
        try:
            client.delete_async(path).get(timeout=timeout_s)
            return
        except NotEmptyError:
            continue


def unknown(client: Any, hosts: str, cluster: str, timeout_s: float) -> Refused:
    """What to say when there is no such cluster: those that exist."""
    try:
        known = ", ".join(sorted(client.get_children_async(ROOT).get(timeout=timeout_s)))
    except NoNodeError:
        known = ""
    return Refused("unknown_cluster", f"ZooKeeper at {hosts} knows no cluster {cluster}; it has:"
                   f" {known or 'none, create one first'}", cluster=cluster, hosts=hosts)


def open_client(hosts: str, session_s: float) -> Any:
    """A client that tries to connect for ever, soon and with jitter; not yet started."""
    try:
        return KazooClient(hosts=hosts, timeout=session_s, connection_retry=dict(_RECONNECT))
    except ValueError as problem:
        raise Refused("bad_hosts", f"hosts: {hosts!r} is not of the form host:port,host:port",
                      hosts=hosts) from problem


def start(client: Any, hosts: str, timeout_s: float) -> None:
    """Connect, or ``Refused`` once the time is over."""
    try:
        client.start(timeout=timeout_s)
    except KazooTimeoutError as problem:
        raise unreachable(hosts) from problem


def stop(client: Any) -> None:
    """End the session and its ephemerals; a connection that will not end well is left to its timeout."""
    try:
        client.stop()
        client.close()
    except Exception:
        _log.warning("the connection to ZooKeeper did not close cleanly", exc_info=True)


def unreachable(hosts: str) -> Refused:
    """What to say when nobody answers."""
    return Refused("zookeeper_unreachable", f"no ZooKeeper answers at {hosts}; check that it runs, that the"
                   " address is right and that this machine may connect to it", hosts=hosts)
