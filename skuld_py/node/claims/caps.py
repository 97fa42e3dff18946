"""How many more claims of a queue one holder may be granted, where the queue caps them.

A leader counts at the moment at which it grants, over all partitions that it keeps copies of, and not only those
that it leads: what another leader has granted a majority has recorded, and mostly this node is one of it. So no
loan and no message is needed, and of the partitions that one node leads no holder is ever given more than the cap.
A holder that asks several leaders in the same moment may get as much from each; and where the cluster has more
nodes than copies, a leader does not see what is held of the partitions that it does not keep.

A queue is counted once, in one walk over the leases of all queues here, when all its claims together are first
more than its cap: a few milliseconds for a thousand claims of the queue, in one turn. From then on the filing
keeps the count up to date (``partition.data.holders``), so a claim costs one look-up however many are held, until
the cap is taken away or the node starts anew.

Rejected: an exact account of each holder at the queue's home, as limits of a whole queue have. Each grant would
wait for a loan, for a rule that protects workers from one another, and not what the queue's tasks use.
"""

from __future__ import annotations

from skuld_py.model.limiting import QueueLimits
from skuld_py.model.state import State
from skuld_py.node.knowledge.view import View
from skuld_py.partition.data.holders import Held, holder_in
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
    """How many of as many claims as wanted the holder may be granted now. Who holds is first looked for when all
    claims of the queue together, with these, are more than the cap."""
    cap, name = limits.holder_concurrency, queue.encode()
    if not cap:
        return wanted
    counts = view.bulletin.holders.counts(name)
    if counts is None:
        rows = Tally.rows_of([vnode.replica.filing.tally for vnode in view.vnodes], name)
        if sum(row[State.CLAIMED] for row in rows) + wanted <= cap:
            return wanted
        held = view.bulletin.holders.queues[name] = counted(view, name)
        counts = held.counts
    return max(0, min(wanted, cap - counts.get(holder, 0)))


def has_room(view: View, queue: str, holder: str) -> bool:
    """Whether the holder may have more, as far as is known here without looking for it."""
    limits, counts = view.settings.capped.get(queue), view.bulletin.holders.counts(queue.encode())
    if limits is None or counts is None or not limits.holder_concurrency:
        return True
    return counts.get(holder, 0) < limits.holder_concurrency


def counted(view: View, queue: bytes) -> Held:
    """Who holds the claims of a queue, by all leases here."""
    held = Held()
    for vnode in view.vnodes:
        if vnode.replica.filing.tally.row(queue)[State.CLAIMED]:
            _count(vnode, queue, held)
    return held


def _count(vnode: Vnode, queue: bytes, held: Held) -> None:
    """Note who holds the tasks of a queue in one partition."""
    after = b""
    while True:
        rows = vnode.replica.filing.leases(after, PAGE)
        wanted = [task_id for _, task_id, place in rows if queue_of(place) == queue]
        for key, record in vnode.replica.histories(wanted).items():
            held.begin(key[2:], holder_in(record))
        if len(rows) < PAGE:
            return
        after = rows[-1][0]
