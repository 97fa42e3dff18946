"""Whom a member must watch, as a function of the replica: recomputed after every entry, never changed by deltas.

A member watches whom the ring says, its joiner, and, while it joins itself, its observer and whom it is going to
watch. A joiner that found no observer watches one of those that are taken: if all are dead, somebody must say so.

Onyx sets watches from what one entry changed, through a single remembered channel. So a ring member could end up
watched by nobody (two neighbours joining and dying at the right moments); then its death is never noticed. Derived
from the whole replica, whatever happened before is made good by the next entry.
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
