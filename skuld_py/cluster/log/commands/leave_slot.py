"""``leave-slot``: a unit of capacity is gone, or will never come.

Slots also go with their member; this is for a worker that stops while its member goes on.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from skuld_py.cluster.log.commands.admission import less
from skuld_py.cluster.log.commands.command import Command, is_id
from skuld_py.cluster.log.replica import Replica


@attrs.frozen
class LeaveSlot(Command):
    """Changes nothing for a slot that is not known."""

    kind = "leave-slot"

    slot: str = attrs.field(validator=is_id)

    def apply(self, replica: Replica, position: int) -> Replica:
        """Take the slot out, counted or parked."""
        slots, parked = less(replica.slots, self.slot), less(replica.parked, self.slot)
        if slots is replica.slots and parked is replica.parked:
            return replica
        return attrs.evolve(replica, slots=slots, parked=parked)

    def diff(self, old: Replica, new: Replica) -> Mapping[str, str]:
        """The slot that is gone."""
        return {} if old is new else {"slot": self.slot, "state": "gone"}
