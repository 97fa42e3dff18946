"""The coordination log as it was last played, kept with the data: what is left of it should ZooKeeper lose it.

Kept soon after each change, and ever more seldom the longer the text is, so that a cluster of thousands of nodes
that start costs its disks little. Nodes never read it again; ``skuld cluster restore`` does.

Rejected: to keep the entries too. What was written into the log in the seconds before ZooKeeper was lost is lost.
"""

from __future__ import annotations

from skuld_py.cluster.log.canonical import from_text
from skuld_py.cluster.log.replica import Replica
from skuld_py.errors import Malformed
from skuld_py.model.store import Store

KEEPSAKE_KEY = b"coordination"
_PAUSE_MS, _CHARS_PER_MS = 1_000, 50


class Keepsake:
    """What one node keeps of the log."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept = -1
        self._next_ms = 0

    def keep(self, now_ms: int, replica: Replica) -> None:
        """Stage the replica, if it is another one and it is time."""
        if replica.version == self._kept or now_ms < self._next_ms:
            return
        text = replica.text()
        self._kept = replica.version
        self._next_ms = now_ms + max(_PAUSE_MS, len(text) // _CHARS_PER_MS)
        self._store.put_many("meta", [(KEEPSAKE_KEY, text.encode())])


def load_keepsake(store: Store) -> Replica | None:
    """What is kept; None in the store of a release that kept nothing, or where it cannot be read."""
    text = store.get("meta", KEEPSAKE_KEY)
    try:
        return None if text is None else from_text(Replica, text)
    except (Malformed, UnicodeDecodeError):
        return None
