"""Clusters in ZooKeeper, made, unmade and looked up; and how this package connects to ZooKeeper at all.

Layout below ``/skuld/CLUSTER``: ``parameters`` (JSON), ``nodes/NAME`` (persistent, a ``Registration``),
``members/ID`` (ephemeral, the pulse of a life), ``partitions/K`` (the partition document), and the coordination
log: ``log`` and ``origin`` (see ``log_reading``).

Invariants:

* A cluster appears whole or not at all: its nodes are created in one transaction.
* Every call ends within its timeout, whatever ZooKeeper does.
* Unreachable is ``Refused`` only before anything was asked that writes; afterwards it is ``Uncertain``.
"""

from __future__ import annotations

import json
import logging
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import attrs
from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    OperationTimeoutError,
    SessionClosedRequireSaslError,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KeeperState
from kazoo.security import ACL, make_acl, make_digest_acl

from skuld_py.config import Parameters
from skuld_py.errors import Malformed, Refused, Uncertain
from skuld_py.model.document import Document
from skuld_py.model.names import check_name
from skuld_py.model.registration import Registration
from skuld_py.model.roster import Roster
from skuld_py.runtime.zookeeper.handler import Handler, logger
from skuld_py.runtime.zookeeper.log_reading import Header
from skuld_py.runtime.zookeeper.servers import Servers
from skuld_py.runtime.zookeeper.unreached import check_names, unreached

ROOT = "/skuld"
ROOT_ACL = [make_acl("world", "anyone", read=True, create=True, delete=True)]
"""Anyone may create clusters, see which there are, and remove one that is empty; what may be done to what is in
one is for its owner to say."""
UNANSWERED = (ConnectionLoss, SessionExpiredError, OperationTimeoutError, ConnectionClosedError,
              KazooTimeoutError)
"""Ends of requests that may or may not have been carried out."""

_RECONNECT = {"max_tries": -1, "delay": 0.1, "backoff": 2, "max_jitter": 0.4, "max_delay": 1.0}

_BATCH = 128
_LATE = ("claim_from_ms", "former_keys")

_log = logging.getLogger(__name__)
_SILENCE_S = 2.0
"""After this it is said that ZooKeeper is waited for."""
warnings.filterwarnings("ignore", message="No chroot path exists", module="kazoo")  # we say it in words of ours


def create_cluster(hosts: str, parameters: Parameters, timeout_s: float = 10.0, *,
                   roster: Roster | None = None) -> None:
    """Write a new cluster, whole or not at all. With a ``roster`` it has keys, and ``hosts`` a login: whoever does
    not show it can read and write nothing of the cluster."""
    root = path_of(parameters.cluster)
    _make_path(Servers.of(hosts), timeout_s)
    with connection(hosts, timeout_s, is_write=True) as client:
        if client.exists_async(ROOT).get(timeout=timeout_s) is None:
            with suppress(NodeExistsError):
                client.create_async(ROOT, acl=ROOT_ACL).get(timeout=timeout_s)
        creation = client.transaction()
        creation.create(root)
        creation.create(f"{root}/parameters", encoded(parameters))
        for folder in ("nodes", "members", "partitions", "log"):
            creation.create(f"{root}/{folder}")
        creation.create(f"{root}/origin", Header().encode())
        if roster is not None:
            creation.create(f"{root}/roster", roster.encode())
        first = creation.commit_async().get(timeout=timeout_s)[0]
    if isinstance(first, NodeExistsError):
        raise Refused("cluster_exists", f"cluster {parameters.cluster} exists already; choose another name,"
                      " or destroy it first", cluster=parameters.cluster)
    if isinstance(first, Exception):
        raise Refused("zookeeper_refused", f"ZooKeeper did not create the cluster: {first!r}", hosts=hosts)


def _make_path(servers: Servers, timeout_s: float) -> None:
    """Make the path that may stand behind the servers, each part of it for everyone: several clusters are below
    it, each with a key of its own."""
    parts = servers.path.strip("/").split("/") if servers.path else []
    if not parts:
        return
    with connection(servers.without_path, timeout_s, is_write=True) as client:
        for end in range(1, len(parts) + 1):
            path = "/" + "/".join(parts[:end])
            with suppress(NodeExistsError):
                try:
                    if client.exists_async(path).get(timeout=timeout_s) is not None:
                        continue
                except NoAuthError:
                    continue  # somebody's, so it is there
                try:
                    client.create_async(path, acl=ROOT_ACL).get(timeout=timeout_s)
                except NoAuthError as problem:
                    raise Refused("zookeeper_denied", f"zookeeper: {path} cannot be made, for what is above it is"
                                  " somebody else's; have it made, or name another path behind the servers",
                                  hosts=str(servers)) from problem


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
            remove_tree(client, root, timeout_s)
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
    return parameters_of(root, raw)


def draw_key(hosts: str, cluster: str, claim_key: str, proofs_from_ms: int, timeout_s: float = 10.0) -> bool:
    """Have claims proved with this key from now on, and proofs demanded from then on; False when the cluster has a
    key already. Its nodes see it by themselves."""
    def with_key(known: Parameters) -> Parameters:
        return known if known.claim_key else attrs.evolve(
            known, claim_key=claim_key, proofs_from_ms=proofs_from_ms)
    return change_parameters(hosts, cluster, with_key, timeout_s).claim_key == claim_key


def change_parameters(hosts: str, cluster: str, change: Callable[[Parameters], Parameters],
                      timeout_s: float = 10.0) -> Parameters:
    """Have changed parameters in the place of the present ones; gives them."""
    with connection(hosts, timeout_s, is_write=True) as client:
        try:
            return set_parameters(client, cluster, change, timeout_s)
        except NoNodeError:
            raise unknown(client, hosts, cluster, timeout_s) from None


def set_parameters(client: Any, cluster: str, change: Callable[[Parameters], Parameters],
                   timeout_s: float) -> Parameters:
    """The same over a connection; raises ``NoNodeError`` where there is no cluster."""
    path = f"{path_of(cluster)}/parameters"
    while True:
        raw, stat = client.get_async(path).get(timeout=timeout_s)
        known = parameters_of(path_of(cluster), raw)
        wanted = change(known)
        if wanted == known:
            return known
        with suppress(BadVersionError):
            client.set_async(path, encoded(wanted), version=stat.version).get(timeout=timeout_s)
            return wanted


def encoded(parameters: Parameters) -> bytes:
    """JSON of parameters, without what the release before does not know, where it says nothing."""
    fields = {field: value for field, value in attrs.asdict(parameters).items() if value or field not in _LATE}
    return json.dumps(fields, sort_keys=True).encode()


def parameters_of(root: str, raw: bytes) -> Parameters:
    """What the node ``parameters`` says; ``Refused`` when it cannot be read."""
    try:
        return Parameters(**json.loads(raw))
    except (ValueError, TypeError, RecursionError) as problem:
        raise Refused("bad_parameters", f"{root}/parameters in ZooKeeper cannot be read as a cluster's: {problem};"
                      " upgrade this program, or mend the znode", cluster=root.rpartition("/")[2]) from problem


def read_registration(hosts: str, cluster: str, name: str, timeout_s: float = 10.0) -> Registration | None:
    """What is registered under a node's name; None before its first start."""
    path = f"{path_of(cluster)}/nodes/{name}"
    with connection(hosts, timeout_s, is_write=False) as client:
        try:
            client.sync_async(path)  # requests of a session are answered in order: no need to wait
            raw = client.get_async(path).get(timeout=timeout_s)[0]
        except NoNodeError:
            return None
    return registration_of(name, raw)


def read_names(hosts: str, cluster: str, timeout_s: float = 10.0) -> list[str]:
    """The names of all nodes that are registered."""
    path = f"{path_of(cluster)}/nodes"
    with connection(hosts, timeout_s, is_write=False) as client:
        try:
            client.sync_async(path)
            return sorted(client.get_children_async(path).get(timeout=timeout_s))
        except NoNodeError:
            return []


def read_registrations(hosts: str, cluster: str, timeout_s: float = 10.0) -> dict[str, Registration]:
    """The entries of all nodes that are registered, by name."""
    path = f"{path_of(cluster)}/nodes"
    found: dict[str, Registration] = {}
    with connection(hosts, timeout_s, is_write=False) as client:
        client.sync_async(path)
        for name in sorted(client.get_children_async(path).get(timeout=timeout_s)):
            with suppress(NoNodeError):
                raw = client.get_async(f"{path}/{name}").get(timeout=timeout_s)[0]
                found[name] = registration_of(name, raw)
    return found


def read_cohorts(hosts: str, parameters: Parameters, timeout_s: float = 10.0) -> dict[int, tuple[str, ...]]:
    """The voters of each partition that has had a leader. A document that cannot be read is ``Refused``."""
    return {partition: document.cohort for partition, document in
            read_documents(hosts, parameters, timeout_s).items()}


def read_documents(hosts: str, parameters: Parameters, timeout_s: float = 10.0) -> dict[int, Document]:
    """The documents of all partitions that have had a leader. One that cannot be read is ``Refused``."""
    found = {}
    for partition, (_, raw) in _read_raw(hosts, parameters, timeout_s).items():
        try:
            found[partition] = Document.decode(raw)
        except Malformed as problem:
            raise Refused("bad_document", f"partitions/{partition} of the cluster in ZooKeeper cannot be read:"
                          f" {problem.message}; mend that znode", partition=partition) from problem
    return found


def read_texts(hosts: str, parameters: Parameters, timeout_s: float = 10.0) -> dict[int, tuple[int, str]]:
    """The revisions and the texts of these documents, whatever they say."""
    return {partition: (version, raw.decode("utf-8", "replace"))
            for partition, (version, raw) in _read_raw(hosts, parameters, timeout_s).items()}


def _read_raw(hosts: str, parameters: Parameters, timeout_s: float) -> dict[int, tuple[int, bytes]]:
    root, found = path_of(parameters.cluster), {}
    with connection(hosts, timeout_s, is_write=False) as client:
        client.sync_async(root)
        answers = [client.get_async(f"{root}/partitions/{each}") for each in range(parameters.partitions)]
        for partition, answer in enumerate(answers):
            with suppress(NoNodeError):
                raw, status = answer.get(timeout=timeout_s)
                found[partition] = status.version, raw
    return found


def registration_of(name: str, raw: bytes) -> Registration:
    """A node's entry; ``Refused`` when it cannot be read, which no node of this version writes."""
    try:
        return Registration.decode(raw)
    except Malformed as problem:
        raise Refused("bad_registration", f"nodes/{name} of the cluster in ZooKeeper cannot be read:"
                      f" {problem.message}; upgrade this node, or remove that znode, and the node fills from the"
                      " others", name=name) from problem


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
        raise unreached(Servers.of(hosts)) from problem
    except SessionClosedRequireSaslError as problem:
        raise _name_needed(hosts) from problem
    except (NoAuthError, AuthFailedError) as problem:
        raise denied(hosts) from problem
    finally:
        stop(client)


def remove_tree(client: Any, path: str, timeout_s: float) -> None:
    """Children first, many at a time; what appears meanwhile is removed, too."""
    while True:
        children = [f"{path}/{child}" for child in client.get_children_async(path).get(timeout=timeout_s)]
        for start in range(0, len(children), _BATCH):
            answers = [(child, client.delete_async(child)) for child in children[start : start + _BATCH]]
            for child, answer in answers:
                with suppress(NoNodeError):
                    try:
                        answer.get(timeout=timeout_s)
                    except NotEmptyError:
                        remove_tree(client, child, timeout_s)
        try:
            client.delete_async(path).get(timeout=timeout_s)
            return
        except NotEmptyError:
            continue


def unknown(client: Any, hosts: str, cluster: str, timeout_s: float) -> Refused:
    """The refusal when there is no such cluster; it names those that exist."""
    try:
        known = ", ".join(sorted(client.get_children_async(ROOT).get(timeout=timeout_s)))
    except NoNodeError:
        known = ""
    has = f"it has: {known}" if known else (
        f"it has: none. 'skuld cluster create {cluster}' makes a new one; where nodes have data of it, and"
        f" ZooKeeper has lost its own, 'skuld cluster restore {cluster} --from DATA' brings it back")
    return Refused("unknown_cluster", f"ZooKeeper at {hosts} knows no cluster {cluster}; {has}", cluster=cluster,
                   hosts=hosts)


def open_client(hosts: str, session_s: float) -> Any:
    """A client that tries to connect for ever, soon and with jitter; not yet started. ``Refused`` when a file that
    it is to show, or to judge servers by, is no use."""
    servers = Servers.of(hosts)
    try:
        return KazooClient(hosts=hosts, timeout=session_s, connection_retry=dict(_RECONNECT), **_shown_to(servers))
    except ValueError as problem:
        raise Refused("bad_hosts", f"hosts: {hosts!r} is not of the form host:port,host:port",
                      hosts=hosts) from problem


def _shown_to(servers: Servers) -> dict[str, Any]:
    """By what the servers know the client, and it them, in kazoo's words."""
    shown: dict[str, Any] = {}
    if logins := servers.logins():
        shown |= {"auth_data": [("digest", login) for login in logins], "default_acl": owners_of(logins)}
    if servers.tls is not None:
        servers.tls.context()  # so that a file that is no use is refused here, and not by kazoo's thread
        shown["use_ssl"] = True
    if servers.sasl is not None:
        name, password = servers.sasl()
        shown["sasl_options"] = {"mechanism": "DIGEST-MD5", "username": name, "password": password}
    if servers.tls is not None or servers.sasl is not None:
        shown |= {"handler": Handler(servers.tls), "logger": logger}
    return shown


def owners_of(logins: Iterable[str]) -> list[ACL]:
    """Those who may do everything, and nobody else anything."""
    return [make_digest_acl(name, password, all=True) for name, _, password in
            (login.partition(":") for login in logins)]


def heed_owners(client: Any, root: str, timeout_s: float) -> None:
    """Let what this client makes belong to whom the cluster belongs. While its key is replaced these are two, as
    nodes show either; and then it is the new one alone, though this client still knows both."""
    if client.default_acl:
        client.default_acl = client.get_acls_async(root).get(timeout=timeout_s)[0]


def start(client: Any, hosts: str, timeout_s: float) -> None:
    """Connect, or ``Refused`` once the time is over, or the name and password are not taken; at once when no
    server's name is known."""
    servers, denials = Servers.of(hosts), [False]
    check_names(servers)
    silence = threading.Timer(_SILENCE_S, _log.warning, (
        "ZooKeeper at %s has not answered for %.0f s; it is waited for %.0f s at most", servers, _SILENCE_S,
        timeout_s))
    silence.daemon = True
    silence.start()

    def note(_: str) -> None:
        denials[0] |= client.client_state == KeeperState.AUTH_FAILED
    client.add_listener(note)
    try:
        with suppress(NoAuthError):  # a path behind the servers may be somebody else's, and what is below it ours
            client.start(timeout=timeout_s)
            if servers.sasl is not None:  # kazoo is connected before it has said who asks
                client.exists_async("/").get(timeout=timeout_s)
    except (*UNANSWERED, AuthFailedError, SessionClosedRequireSaslError) as problem:
        stop(client)
        if servers.sasl is not None and (denials[0] or client.handler.is_denied):
            raise _name_denied(hosts) from problem
        raise (_name_needed(hosts) if isinstance(problem, SessionClosedRequireSaslError) else
               unreached(servers)) from problem
    finally:
        silence.cancel()
        client.remove_listener(note)


def stop(client: Any) -> None:
    """End the session and its ephemerals; a connection that does not end is left to its timeout."""
    try:
        client.stop()
        client.close()
    except Exception:
        _log.warning("the connection to ZooKeeper did not close cleanly", exc_info=True)


def denied(hosts: str) -> Refused:
    """The refusal when ZooKeeper lets others than us at the cluster: us with a key, or without one."""
    if Servers.of(hosts).logins():
        return Refused("zookeeper_denied", f"cluster-key: ZooKeeper at {hosts} shows this cluster to the owner of"
                       " another key: the one given is not, or no longer, the cluster's; give the newest file"
                       " ('skuld cluster rotate' writes one), or that of this cluster", hosts=hosts)
    return Refused("zookeeper_denied", f"ZooKeeper at {hosts} shows this cluster to its owner only; give the"
                   " cluster's key (--cluster-key FILE, or $SKULD_CLUSTER_KEY)", hosts=hosts)


def _name_denied(hosts: str) -> Refused:
    return Refused("zookeeper_denied", f"zookeeper-user: ZooKeeper at {hosts} does not know this name and"
                   " password; give those that its servers have (--zookeeper-user, --zookeeper-password-file)",
                   hosts=hosts)


def _name_needed(hosts: str) -> Refused:
    return Refused("zookeeper_denied", f"zookeeper-user: ZooKeeper at {hosts} lets in nobody without a name and a"
                   " password; give them (--zookeeper-user, --zookeeper-password-file)", hosts=hosts)
