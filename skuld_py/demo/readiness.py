"""Is a cluster ready to work? Asked from outside, with the client, as an operator would ask.

``LocalCluster`` takes ``what_is_missing`` to wait with: it starts processes and knows no client itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from skuld_py.client.client import Client
from skuld_py.errors import SkuldError


def what_is_missing(addresses: Sequence[str], key: Path | None = None) -> str:
    """What keeps the cluster from serving in full: nodes, leaders; empty when it does. ``key``: the file of the
    key to ask with."""
    try:
        with Client(addresses, timeout_s=2.0, key=key) as client:
            view = client.status()
    except SkuldError as error:
        return f"an answer of a node ({error.message})"
    absent = sorted(set(addresses) - {node.name for node in view.nodes if node.is_live})
    if absent:
        return f"the nodes {', '.join(absent)}"
    leaderless = [row.partition for row in view.partitions if not row.leader]
    if leaderless or not view.partitions:
        return f"leaders of the partitions {', '.join(map(str, leaderless)) or '(none is placed yet)'}"
    return ""
