"""``leave``: a member, or one that was joining, is gone; the ring closes over it.

Written by the watcher when the pulse is gone, or by the member itself when it stops. It names a life, not a node:
the node stays placed. A process that reads of its own leave starts a new life.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from skuld_py.cluster.log.commands.abort_join import AbortJoin
from skuld_py.cluster.log.commands.admission import evicted
from skuld_py.cluster.log.commands.command import Command, Reaction, is_id
from skuld_py.cluster.log.replica import Replica


@attrs.frozen
class Leave(Command):
    """``member`` is gone for good."""

    kind = "leave"

    member: str = attrs.field(validator=is_id)

    def apply(self, replica: Replica, position: int) -> Replica:
        """Take the member out; the ring closes over it."""
        return replica if self.member in replica.left else evicted(replica, position, self.member)

    def reactions(self, old: Replica, new: Replica) -> tuple[Reaction, ...]:
        """The joiner whose observer is gone aborts."""
        joiner = old.joins.joiner_of(self.member)
        return (Reaction(joiner, AbortJoin(joiner)),) if joiner and old is not new else ()

    def diff(self, old: Replica, new: Replica) -> Mapping[str, str]:
        """The member that is gone, and which members watch each other now."""
        if old is new:
            return {}
        watcher = old.ring.watchers.get(self.member, "")
        closed = {"watcher": watcher, "watches": new.ring.after(watcher)} if watcher else {}
        return {"left": self.member, **closed}
