"""``prepare-join``: first phase. A process asks to join; an observer is chosen that will stitch it into the ring.

The observer is picked by position among the sorted candidates, which all members do alike. A member that observes
a joiner already is no candidate, nor is the watcher of an observer in the first phase: its ring neighbour is about
to change. The first member of a cluster is in at once.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from skuld_py.cluster.log.commands.abort_join import AbortJoin
from skuld_py.cluster.log.commands.admission import admitted, less
from skuld_py.cluster.log.commands.command import Command, Reaction, is_id, is_member
from skuld_py.cluster.log.commands.notify_join import NotifyJoin
from skuld_py.cluster.log.replica import Replica
from skuld_py.model.document import Member


def busy(replica: Replica) -> dict[str, None]:
    """Members that cannot observe a joiner now."""
    joins, watchers = replica.joins, replica.ring.watchers
    near = [watchers[observer] for observer in joins.prepared if observer in watchers]
    return dict.fromkeys((*joins.prepared, *joins.accepted, *near))


@attrs.frozen
class PrepareJoin(Command):
    """``joiner`` is the id of a life that never was in the log before, of the node that ``member`` describes."""

    kind = "prepare-join"

    joiner: str = attrs.field(validator=is_id)
    member: Member = attrs.field(validator=is_member)

    def apply(self, replica: Replica, position: int) -> Replica:
        """Choose the observer, or note that there is none."""
        joiner = self.joiner
        if replica.is_known(joiner) or joiner in replica.left:
            return replica
        if not replica.members:
            return admitted(replica, position, {joiner: self.member})
        taken = busy(replica)
        candidates = [name for name in replica.roster if name not in taken]
        if not candidates:
            return attrs.evolve(replica, aborted={**replica.aborted, joiner: position})
        observer = candidates[position % len(candidates)]
        return attrs.evolve(replica, joins=replica.joins.with_prepared(observer, joiner),
                            joiners={**replica.joiners, joiner: self.member},
                            aborted=less(replica.aborted, joiner))

    def reactions(self, old: Replica, new: Replica) -> tuple[Reaction, ...]:
        """The observer notifies; without one, the joiner aborts."""
        if old.is_known(self.joiner) or self.joiner in old.left or self.joiner in new.members:
            return ()
        observer = new.joins.observers.get(self.joiner)
        if observer is None:
            return (Reaction(self.joiner, AbortJoin(self.joiner)),)
        return (Reaction(observer, NotifyJoin(self.joiner)),)

    def diff(self, old: Replica, new: Replica) -> Mapping[str, str]:
        """The observer; or that there is none, or that the joiner is in at once."""
        if old is new:
            return {}
        if self.joiner in new.aborted:
            return {"told no": self.joiner}
        if self.joiner in new.members:
            return {"joined": self.joiner}
        return {"observer": new.joins.observers[self.joiner], "joiner": self.joiner}
