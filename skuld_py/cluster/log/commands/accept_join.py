"""``accept-join``: third phase. The joiner watches; it is stitched into the ring behind its observer.

It is put between the observer and the member that this one watches *now*, which may be another than when the
joiner was notified. What the joiner must watch is derived from the replica, so nothing is lost by that.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from skuld_py.cluster.log.commands.abort_join import AbortJoin
from skuld_py.cluster.log.commands.admission import admitted
from skuld_py.cluster.log.commands.command import Command, Reaction, is_id
from skuld_py.cluster.log.replica import Replica


@attrs.frozen
class AcceptJoin(Command):
    """Written by the joiner."""

    kind = "accept-join"

    observer: str = attrs.field(validator=is_id)
    joiner: str = attrs.field(validator=is_id)

    def apply(self, replica: Replica, position: int) -> Replica:
        """The joiner is a member."""
        if replica.joins.accepted.get(self.observer) != self.joiner:
            return replica
        return admitted(replica, position, {self.joiner: replica.joiners[self.joiner]},
                        ring=replica.ring.stitched(self.observer, [self.joiner]),
                        joins=replica.joins.without(self.observer))

    def reactions(self, old: Replica, new: Replica) -> tuple[Reaction, ...]:
        """Not accepted any more: the joiner aborts."""
        if old is not new or self.joiner in old.members or self.joiner in old.left:
            return ()
        return (Reaction(self.joiner, AbortJoin(self.joiner)),)

    def diff(self, old: Replica, new: Replica) -> Mapping[str, str]:
        """The new member and its watcher."""
        return {} if old is new else {"observer": self.observer, "joined": self.joiner}
