"""``abort-join``: a join is off, whatever phase it is in; the joiner tries again after a pause."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from skuld_py.cluster.log.commands.admission import less
from skuld_py.cluster.log.commands.command import Command, Reaction, Rejoin, is_id
from skuld_py.cluster.log.replica import Replica


@attrs.frozen
class AbortJoin(Command):
    """Written by the joiner. It changes nothing for one that is a member already, or has left."""

    kind = "abort-join"

    joiner: str = attrs.field(validator=is_id)

    def apply(self, replica: Replica, position: int) -> Replica:
        """Take the join back."""
        joiner = self.joiner
        if joiner in replica.members or joiner in replica.left:
            return replica
        observer = replica.joins.observers.get(joiner, "")
        if not observer and joiner in replica.aborted:
            return replica
        return attrs.evolve(replica, joins=replica.joins.without(observer), joiners=less(replica.joiners, joiner),
                            aborted={**replica.aborted, joiner: position})

    def reactions(self, old: Replica, new: Replica) -> tuple[Reaction, ...]:
        """The joiner comes back later."""
        if self.joiner in old.members or self.joiner in old.left:
            return ()
        return (Reaction(self.joiner, Rejoin()),)

    def diff(self, old: Replica, new: Replica) -> Mapping[str, str]:
        """The joiner that was told no, if a join was under way."""
        return {"aborted": self.joiner} if self.joiner in old.joins.observers and old is not new else {}
