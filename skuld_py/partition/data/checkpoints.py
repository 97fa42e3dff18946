"""The checkpoints of a partition's tasks: what a copy takes from holders, and what from its peers.

A holder's word is taken while its claim is open by this copy's own record: known here, the newest, not ended, its
lease not over by this node's clock, the task not completed. That is the rule by which a leader renews a claim
(``model.history.open_claim``). So a zombie's word is refused by every copy that knows of a later claim; and by one
that missed it too, for the lease that it knows of was over, by any clock within the bound, before another claim
was granted. Each majority of copies has one that recorded the latest renewal, so a claim that is held is open on
enough of them.

Two kinds of no: a claim that is over for good (``OVER``) stays so on this copy whatever it hears. One that is not
known here, or whose lease seems over, may yet turn out to be open (``UNSURE``): then this copy is none of those
that count, and the holder is not told that nothing was stored.

What comes from a peer was taken by some copy before, so it is joined as it is.

Rejected: to fence by the leader, as renewals are. A checkpoint is written once a second by each task that runs,
and needs no majority in an epoch: it is a maximum, and a copy that is behind takes part in no acknowledgement.
"""

from __future__ import annotations

from enum import Enum

from skuld_py.model.checkpoint import SLOT, Checkpoint
from skuld_py.model.history import decode_history, open_claim
from skuld_py.model.store import digests_of
from skuld_py.partition.data import merkle, tables
from skuld_py.partition.data.replica import Replica


class Word(Enum):
    """What a copy makes of a holder's checkpoint."""

    FRESH = "it is to be kept"
    KNOWN = "it, or a newer one, is here"
    BOUND = "its number stands for other data"
    OVER = "its claim is over for good"
    UNSURE = "its claim is not known here, or its lease seems to be over"


def judged(replica: Replica, now_ms: int, task_id: bytes, said: Checkpoint) -> Word:
    """What is to be made of a holder's checkpoint. One that was taken before is known for ever, so a repeated
    request is harmless."""
    record = replica.store.get("log", tables.log_key(replica.prefix, task_id, *SLOT))
    if record is not None:
        known = Checkpoint.decode(record)
        if (known.token, known.number) == (said.token, said.number):
            return Word.KNOWN if known.data == said.data else Word.BOUND
        if known.token == said.token and known.number > said.number:
            return Word.KNOWN
    history = decode_history(replica.store.get("history", replica.prefix + task_id))
    if open_claim(history, said.token, now_ms) is not None:
        return Word.FRESH
    claim = history.claims.entries.get(said.token)
    is_over = history.is_completed or history.newest_token > said.token or (claim is not None and claim.kind > 0)
    return Word.OVER if is_over else Word.UNSURE


def join_checkpoint(replica: Replica, task_id: bytes, record: bytes) -> None:
    """Keep a checkpoint, unless a newer one is here, or its task was collected."""
    key = tables.log_key(replica.prefix, task_id, *SLOT)
    known = replica.store.get("log", key)
    if (known is not None and known >= record) or replica.gone([task_id]):
        return
    before = [] if known is None else [digests_of([key], [known])]
    replica.tree.toggle(merkle.ENTRY, [key], replica.store.put_many("log", [(key, record)]), *before)
