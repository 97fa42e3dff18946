"""Which members a member must watch: a function of the replica, computed after every entry, never by deltas.

A member watches its neighbour in the ring and its joiner. While it joins itself, it watches its observer and its
neighbour to be. A joiner that found no observer watches one of those that are taken: if all of them are dead, it
must say so.

Onyx sets watches from what one entry changed, through a single remembered channel. So a ring member could end up
watched by no other (two neighbours joining and dying at the right moments); then its death is never noticed.
Derived from the whole replica, whatever happened before is made good by the next entry.
"""

from __future__ import annotations

from skuld_py.cluster.log.commands.prepare_join import busy
from skuld_py.cluster.log.replica import Replica


def watched(replica: Replica, me: str) -> tuple[str, ...]:
    """The ids whose pulse ``me`` watches; if one is missing, it writes their leave."""
    joins, ring = replica.joins, replica.ring
    wanted = [ring.pairs.get(me, ""), joins.joiner_of(me)]
    observer = joins.observers.get(me, "")
    if observer:
        wanted.append(observer)
        if joins.accepted.get(observer) == me:
            wanted.append(ring.after(observer))
    elif me in replica.aborted and (taken := sorted(busy(replica))):
        wanted.append(taken[replica.aborted[me] % len(taken)])
    return tuple(dict.fromkeys(name for name in wanted if name and name != me))
