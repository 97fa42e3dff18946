"""How many more claims of a queue one holder may be granted, where the queue caps them.

A leader counts at the moment at which it grants, over all partitions that it keeps copies of, and not only those
that it leads: what another leader has granted a majority has recorded, and mostly this node is one of it. So no
loan and no message is needed, and of the partitions that one node leads no holder is ever given more than the cap.
A holder that asks several leaders in the same moment may get as much from each; and where the cluster has more
nodes than copies, a leader does not see what is held of the partitions that it does not keep.

Rejected: an exact account of each holder at the queue's home, as limits of a whole queue have. Each grant would
wait for a loan, for a rule that protects workers from one another, and not what the queue's tasks use.
"""

from __future__ import annotations

from skuld_py.model.history import decode_history
from skuld_py.model.limiting import QueueLimits
from skuld_py.model.state import State
from skuld_py.node.knowledge.view import View
from skuld_py.partition.data.tables import queue_of
from skuld_py.partition.data.tally import Tally
from skuld_py.partition.vnode import Vnode

PAGE = 1_000
CAPPED = "capped"
"""Why a claim gets nothing, as its answer says it."""


def allows_lease(limits: QueueLimits, lease_ms: int) -> bool:
    """Whether a lease is no longer than a queue allows."""
    return not limits.lease_ms or lease_ms <= limits.lease_ms


def most_of(limits: QueueLimits, wanted: int) -> int:
    """How many of as many claims as wanted one request may get, from however many leaders."""
    return min(wanted, limits.holder_concurrency or wanted)


def room_of(view: View, limits: QueueLimits, queue: str, holder: str, wanted: int) -> int:
    """How many of as many claims as wanted the holder may be granted now. Who holds is only looked at where all
    claims of the queue together, with these, are more than the cap."""
    cap = limits.holder_concurrency
    if not cap:
        return wanted
    name = queue.encode()
    rows = Tally.rows_of([vnode.replica.filing.tally for vnode in view.vnodes], name)
    if sum(row[State.CLAIMED] for row in rows) + wanted <= cap:
        return wanted
    held = 0
    for vnode, row in zip(view.vnodes, rows, strict=True):
        if row[State.CLAIMED] and held < cap:
            held += _held(vnode, name, holder, cap - held)
    return max(0, min(wanted, cap - held))


def _held(vnode: Vnode, queue: bytes, holder: str, most: int) -> int:
    """How many tasks of a queue a holder has in one partition; it stops counting at ``most``."""
    held, after = 0, b""
    while held < most:
        rows = vnode.replica.filing.leases(after, PAGE)
        wanted = [task_id for _, task_id, place in rows if queue_of(place) == queue]
        for record in vnode.replica.histories(wanted).values():
            history = decode_history(record)
            claim = history.claims.entries.get(history.newest_token)
            held += claim is not None and claim.holder == holder
        if len(rows) < PAGE:
            break
        after = rows[-1][0]
    return held
