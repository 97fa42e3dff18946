"""``gc``: the log is long enough; the replica here becomes the origin, and what only old entries need is dropped.

It names the collection that it follows. Otherwise two members that saw the same long log would collect twice in a
row, and the second would drop what the first had kept for entries on their way.

The writer stores the origin and removes the entries before it, with some grace for readers that are on their way
(``member.chores``). What is dropped from the replica is older than the collection before this one, so that an
entry that was on its way then still finds the tombstone it would have met. A parked slot goes once its member has
neither joined nor written anything for as long; the tombstone of a workflow goes as all others do.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from skuld_py.cluster.log.commands.command import Command
from skuld_py.cluster.log.replica import Replica

ANY = -2


def collected(replica: Replica) -> int:
    """Where the log was last collected; -1 when it never was."""
    return replica.collected[-1] if replica.collected else -1


@attrs.frozen
class Gc(Command):
    """Written by the member whose turn it is. ``after`` is where the last collection was, -1 before the first;
    an operator's follows ``ANY``."""

    kind = "gc"

    after: int = ANY

    def apply(self, replica: Replica, position: int) -> Replica:
        """Drop the tombstones that nothing can need any more."""
        since = collected(replica)
        if self.after not in (since, ANY):
            return replica
        writers = {writer: last for writer, last in replica.writers.items()
                   if last.position > since or replica.is_known(writer)}
        return attrs.evolve(
            replica, collected=(*replica.collected[-1:], position), writers=writers,
            left={member: at for member, at in replica.left.items() if at > since},
            aborted={joiner: at for joiner, at in replica.aborted.items() if at > since},
            parked={slot: each for slot, each in replica.parked.items()
                    if each.member in writers or replica.is_known(each.member)},
            workflows={name: each for name, each in replica.workflows.items()
                       if each.is_live or each.since > since})

    def diff(self, old: Replica, new: Replica) -> Mapping[str, str]:
        """How many tombstones went."""
        if old is new:
            return {}
        gone = sum(map(len, (old.left, old.aborted, old.workflows))) - sum(map(len, (
            new.left, new.aborted, new.workflows)))
        return {"origin": str(new.collected[-1]), "tombstones dropped": str(gone)}
