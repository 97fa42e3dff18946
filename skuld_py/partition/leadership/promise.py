"""What a replica has promised: the newest epoch it voted in or obeyed, and to whom.

Kept in the store, so it is durable before any answer that rests on it leaves, and a restarted
voter still knows it. It never falls, and one epoch is promised to one candidate only.

Source: Raft's durable term and vote. Skuld kept both in memory, and a restarted replica could
acknowledge claims for a deposed leader.
"""

from __future__ import annotations

import attrs

from skuld_py.model.store import Store
from skuld_py.partition.data.tables import promise_key

EPOCHS_AHEAD = 1 << 10
"""How far above the newest epoch of the document an epoch may be, to be promised or believed. Epochs are numbers
of 32 bits, and a message must not use them up. A candidate that needs one beyond first writes into the document
which epochs are ``spent``, so a peer that lies costs at most these each time."""


@attrs.frozen
class Promise:
    """The newest epoch promised, and its candidate; ``""`` when it was learned from the others."""

    epoch: int = 0
    candidate: str = ""

    def allows_vote(self, epoch: int, candidate: str) -> bool:
        """Whether this epoch may be promised to this candidate: newer, or the same promise again."""
        return epoch > self.epoch or (epoch == self.epoch and candidate == self.candidate)


def load_promise(store: Store, partition: int) -> Promise:
    """What is stored, or no promise."""
    record = store.get("meta", promise_key(partition))
    if record is None:
        return Promise()
    return Promise(int.from_bytes(record[:8], "big"), record[8:].decode())


def save_promise(store: Store, partition: int, promise: Promise) -> None:
    """Stage a promise."""
    record = promise.epoch.to_bytes(8, "big") + promise.candidate.encode()
    store.put_many("meta", [(promise_key(partition), record)])
