"""``add-slot``: a member's workers bring a unit of capacity. It may be said before the member has joined."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from skuld_py.cluster.log.commands.command import Command, Inapplicable, are_tags, is_id
from skuld_py.cluster.log.replica import Replica, Slot


@attrs.frozen
class AddSlot(Command):
    """Said again, it changes nothing; of one id there is one slot for ever."""

    kind = "add-slot"

    slot: str = attrs.field(validator=is_id)
    member: str = attrs.field(validator=is_id)
    tags: tuple[str, ...] = attrs.field(default=(), validator=are_tags)

    def apply(self, replica: Replica, position: int) -> Replica:
        """Count it; park it while its member is on the way."""
        made = Slot(self.member, self.tags)
        known = replica.slots.get(self.slot) or replica.parked.get(self.slot)
        if known == made or self.member in replica.left:
            return replica
        if known is not None:
            raise Inapplicable(f"slot {self.slot} is {known.member}'s, with other tags or for another member")
        if self.member in replica.members:
            return attrs.evolve(replica, slots={**replica.slots, self.slot: made})
        return attrs.evolve(replica, parked={**replica.parked, self.slot: made})

    def diff(self, old: Replica, new: Replica) -> Mapping[str, str]:
        """The slot, and whether it counts yet."""
        return {} if old is new else {"slot": self.slot, "state": "counts" if self.slot in new.slots else "parked"}
