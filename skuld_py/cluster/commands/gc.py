"""``gc``: the log is long enough; the replica here becomes the origin, and what only old entries need is dropped.

The writer stores the origin and removes the entries before it, with some grace for readers that are on their way
(``collecting``). What is dropped from the replica is older than the collection before this one, so that an entry
that was on its way then still finds the tombstone it would have met.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from skuld_py.cluster.commands.command import Command
from skuld_py.cluster.replica import Replica


@attrs.frozen
class Gc(Command):
    """Written by the member whose turn it is."""

    kind = "gc"

    def apply(self, replica: Replica, position: int) -> Replica:
        """Drop the tombstones that nothing can need any more."""
        since = replica.collected[-1] if replica.collected else -1
        return attrs.evolve(
            replica, collected=(*replica.collected[-1:], position),
            left={member: at for member, at in replica.left.items() if at > since},
            aborted={joiner: at for joiner, at in replica.aborted.items() if at > since},
            writers={writer: last for writer, last in replica.writers.items()
                     if last.position > since or replica.is_known(writer)})

    def diff(self, old: Replica, new: Replica) -> Mapping[str, str]:
        """How many tombstones went."""
        gone = len(old.left) + len(old.aborted) - len(new.left) - len(new.aborted)
        return {"origin": str(new.collected[-1]), "tombstones dropped": str(gone)}
