"""The slots of a member, reconciled: what its workers bring, compared with what the replica counts for it.

All that the workers of a node bring is one slot, whose tag says how many claims they can hold: it stands for as
many units. Workers that take seats of workflows bring another one, and those with other tags, too. Another number
is another slot, so that it is there before the former one goes, and a change is two entries of the log, however
many workers have come.

An id of a slot belongs to one life for as long as that life is in the log. So a new life waits with a slot until
the old one has left, and then brings it as its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

import attrs

from skuld_py.cluster.log.commands import AddSlot, Command, LeaveSlot
from skuld_py.cluster.log.replica import Replica, Slot
from skuld_py.model.seats import CLAIMS, SEATED

Tags = tuple[str, ...]
_NOTHING: Mapping[str, Slot] = {}


@attrs.define
class Slots:
    """``wanted`` maps each slot to its tags."""

    wanted: Mapping[str, Tags] = attrs.field(factory=dict)
    _looked_at: tuple[str, Mapping[str, Slot], Mapping[str, Slot]] = ("", _NOTHING, _NOTHING)
    """The life and the slots for which ``wish`` was last computed."""

    def want(self, slots: Mapping[str, Tags]) -> None:
        """Have exactly these from now on."""
        self.wanted, self._looked_at = dict(slots), ("", _NOTHING, _NOTHING)

    def wish(self, replica: Replica, me: str) -> list[Command]:
        """What is missing and what is too many; nothing as long as nothing has changed."""
        life, slots, parked = self._looked_at
        if life == me and slots is replica.slots and parked is replica.parked:
            return []
        self._looked_at = (me, replica.slots, replica.parked)
        return [*self._missing(replica, me), *self._needless(replica, me)]

    def _missing(self, replica: Replica, me: str) -> list[Command]:
        return [AddSlot(slot, me, tags) for slot, tags in self.wanted.items() if known(replica, slot) is None]

    def _needless(self, replica: Replica, me: str) -> list[Command]:
        return [LeaveSlot(slot) for counted in (replica.slots, replica.parked) for slot in counted
                if self._is_needless(replica, me, slot)]

    def _is_needless(self, replica: Replica, me: str, slot: str) -> bool:
        each = known(replica, slot)
        if each is None or each.member == me:
            return each is not None and self.wanted.get(slot) != each.tags
        # parked for a life that was told no, and died without a watcher: an earlier one of this node
        return slot in self.wanted and slot in replica.parked and not replica.is_known(each.member)

    def is_due(self, replica: Replica, me: str, command: Command) -> bool:
        """Whether a change is still wanted."""
        match command:
            case AddSlot(slot, member, tags):
                return member == me and self.wanted.get(slot) == tags and known(replica, slot) is None
            case LeaveSlot(slot):
                return self._is_needless(replica, me, slot)
        return True


def known(replica: Replica, slot: str) -> Slot | None:
    """A slot, whether it counts already or waits for its member."""
    return replica.slots.get(slot) or replica.parked.get(slot)


def brought(node: str, claims: Mapping[Tags, int]) -> dict[str, Tags]:
    """What a node brings whose workers can hold so many claims, by what tells them apart."""
    return {_name(node, tags, count): (f"{CLAIMS}{count}", *tags) for tags, count in claims.items() if count}


def _name(node: str, tags: Tags, count: int) -> str:
    mark = f"{blake2b(' '.join(tags).encode(), digest_size=4).hexdigest()}-" if tags else ""
    return f"{node}~{mark}{CLAIMS}{count}"


def abilities(slot: Slot) -> Tags:
    """What its workers say that they can do, sorted."""
    return tuple(sorted(tag for tag in slot.tags if tag != SEATED and not tag.startswith(CLAIMS)))


def units(slot: Slot) -> int:
    """How many claims a slot stands for; one, unless it says otherwise."""
    said = [tag.removeprefix(CLAIMS) for tag in slot.tags if tag.startswith(CLAIMS)]
    return next((int(count) for count in said if count.isascii() and count.isdecimal()), 1)
