"""``notify-join``: second phase. The observer watches the joiner; the joiner learns which member it is to
watch."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from skuld_py.cluster.log.commands.abort_join import AbortJoin
from skuld_py.cluster.log.commands.accept_join import AcceptJoin
from skuld_py.cluster.log.commands.command import Command, Reaction, is_id
from skuld_py.cluster.log.replica import Replica


@attrs.frozen
class NotifyJoin(Command):
    """Written by the observer of ``joiner``."""

    kind = "notify-join"

    joiner: str = attrs.field(validator=is_id)

    def apply(self, replica: Replica, position: int) -> Replica:
        """The join is accepted by the observer, if it is still prepared."""
        observer = replica.joins.observers.get(self.joiner, "")
        if replica.joins.prepared.get(observer) != self.joiner:
            return replica
        return attrs.evolve(replica, joins=replica.joins.with_accepted(observer))

    def reactions(self, old: Replica, new: Replica) -> tuple[Reaction, ...]:
        """The joiner accepts; if it was not prepared, it aborts."""
        if old is not new:
            return (Reaction(self.joiner, AcceptJoin(new.joins.observers[self.joiner], self.joiner)),)
        if old.is_known(self.joiner) or self.joiner in old.left:
            return ()
        return (Reaction(self.joiner, AbortJoin(self.joiner)),)

    def diff(self, old: Replica, new: Replica) -> Mapping[str, str]:
        """The observer, the joiner, and the member that the joiner will watch."""
        if old is new:
            return {}
        observer = new.joins.observers[self.joiner]
        return {"observer": observer, "joiner": self.joiner, "watches": new.ring.after(observer)}
