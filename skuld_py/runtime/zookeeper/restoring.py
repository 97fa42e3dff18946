"""Writes into an empty ZooKeeper what a cluster was, as it was made anew from data directories.

The parameters come last: without them no node finds a cluster here. So what was broken off is no cluster, and the
next attempt takes it away first. Each document has its revision in its history: who looks later how it came about
that a partition is led as it is finds that it was restored.

Sequential nodes are numbered by how many their parent ever had; the log goes on behind the origin's position only
once as many were made and removed again.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from kazoo.exceptions import NodeExistsError, NoNodeError

from skuld_py.errors import Refused
from skuld_py.model.revision import revision_of
from skuld_py.model.roster import Roster
from skuld_py.node.life.rebuilding import Rebuilt
from skuld_py.runtime.zookeeper.clusters import (
    ROOT,
    ROOT_ACL,
    connection,
    encoded,
    path_of,
    remove_tree,
)
from skuld_py.runtime.zookeeper.histories import BEGUN
from skuld_py.runtime.zookeeper.log_reading import CHUNK_BYTES_MAX, Header, chunk_path, digest_of, entry_path
from skuld_py.runtime.zookeeper.rosters import roster_path

_BATCH = 200
WRITER = "skuld cluster restore"
FIRST = f"r-{0:010d}"
"""The revision of a restored document: those that ZooKeeper numbers come behind it."""
FOLDERS = ("nodes", "members", "partitions", "log", "origin")


def write_cluster(hosts: str, made: Rebuilt, timeout_s: float = 10.0, *, roster: Roster | None = None) -> None:
    """Write it; ``Refused`` when ZooKeeper has such a cluster. With a ``roster`` it has keys, and ``hosts`` a
    login, to which all of it belongs."""
    root = path_of(made.parameters.cluster)
    with connection(hosts, timeout_s, is_write=True) as client:
        client.ensure_path("/")
        with suppress(NodeExistsError):
            client.create_async(ROOT, acl=ROOT_ACL).get(timeout=timeout_s)
        if client.exists_async(f"{root}/parameters").get(timeout=timeout_s) is not None:
            raise Refused("cluster_exists", f"ZooKeeper has a cluster {made.parameters.cluster}; its nodes run"
                          " with it, and nothing has to be restored. If it was created anew after the old one was"
                          f" lost, and nothing is in it yet: 'skuld cluster destroy {made.parameters.cluster}'"
                          " first", cluster=made.parameters.cluster)
        with suppress(NoNodeError):
            remove_tree(client, root, timeout_s)
        client.create_async(root).get(timeout=timeout_s)
        for folder in FOLDERS:
            client.create_async(f"{root}/{folder}", b"{}" if folder == "origin" else b"").get(timeout=timeout_s)
        _advance(client, root, made.origin.version, timeout_s)
        _fill(client, root, made, timeout_s)
        if roster is not None:
            client.create_async(roster_path(root), roster.encode()).get(timeout=timeout_s)
        client.create_async(f"{root}/parameters", encoded(made.parameters)).get(timeout=timeout_s)


def _advance(client: Any, root: str, position: int, timeout_s: float) -> None:
    """Have the log go on behind a position."""
    for start in range(0, position + 1, _BATCH):
        step = client.transaction()
        for number in range(start, min(start + _BATCH, position + 1)):
            step.create(f"{root}/log/entry-", b"", sequence=True)
            step.delete(entry_path(root, number))
        _commit(step, timeout_s)


def _fill(client: Any, root: str, made: Rebuilt, timeout_s: float) -> None:
    rows = [(f"{root}/nodes/{name}", entry.encode()) for name, entry in made.registrations.items()]
    rows += [(f"{root}/history", b"")]
    for partition, document in made.documents.items():
        rows += [(f"{root}/partitions/{partition}", document.encode()), (f"{root}/history/{partition}", b""),
                 (f"{root}/history/{partition}/{BEGUN}", b""),
                 (f"{root}/history/{partition}/{FIRST}", revision_of(document, 0, WRITER).encode())]
    header = Header()
    if made.origin.version >= 0:
        text = made.origin.text().encode(errors="surrogatepass")
        pieces = [text[start : start + CHUNK_BYTES_MAX] for start in range(0, len(text), CHUNK_BYTES_MAX)]
        header = Header(made.origin.version, len(pieces), digest_of(text))
        rows += [(chunk_path(root, header.position, number), piece) for number, piece in enumerate(pieces)]
    for path, raw in rows:
        client.create_async(path, raw).get(timeout=timeout_s)
    client.set_async(f"{root}/origin", header.encode()).get(timeout=timeout_s)


def _commit(step: Any, timeout_s: float) -> None:
    for outcome in step.commit_async().get(timeout=timeout_s):
        if isinstance(outcome, Exception):
            raise Refused("zookeeper_refused", f"ZooKeeper did not restore the cluster: {outcome!r}; try again")


def shown(made: Rebuilt) -> dict[str, object]:
    """What was made, for people and their tools; without the key."""
    return {"cluster": made.parameters.cluster, "partitions": len(made.documents),
            "nodes": made.nodes, "position": made.origin.version,
            "warnings": json.loads(json.dumps(made.warnings))}
