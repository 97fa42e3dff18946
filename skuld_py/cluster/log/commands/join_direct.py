"""``join-direct``: a member stitches joiners in behind itself, in one entry, after agreeing with them off the log.

The others need to know only which members are in. The entry holds while ``observer`` still watches ``before``;
otherwise it changes nothing, and the observer writes another. Joiners in a row of one entry cost one write
together.

Source: "Join Direct" of Onyx's proposals for scale.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from skuld_py.cluster.log.commands.admission import admitted
from skuld_py.cluster.log.commands.command import Command, is_id, is_member
from skuld_py.cluster.log.replica import Replica
from skuld_py.model.document import Member


@attrs.frozen
class Joining:
    """A joiner: its id and what it is."""

    id: str = attrs.field(validator=is_id)
    member: Member = attrs.field(validator=is_member)


@attrs.frozen
class JoinDirect(Command):
    """``joiners`` come, in a row, between ``observer`` and ``before``, the member it watches (itself when
    alone)."""

    kind = "join-direct"

    observer: str = attrs.field(validator=is_id)
    before: str = attrs.field(validator=is_id)
    joiners: tuple[Joining, ...]

    def apply(self, replica: Replica, position: int) -> Replica:
        """Those that are new are members."""
        if self.observer not in replica.members or replica.ring.after(self.observer) != self.before:
            return replica
        fresh = {each.id: each.member for each in self.joiners
                 if not replica.is_known(each.id) and each.id not in replica.left}
        if not fresh:
            return replica
        return admitted(replica, position, fresh, ring=replica.ring.stitched(self.observer, list(fresh)))

    def diff(self, old: Replica, new: Replica) -> Mapping[str, str]:
        """The new members."""
        came = dict.fromkeys(each.id for each in self.joiners
                             if each.id in new.members and each.id not in old.members)
        return {"observer": self.observer, "joined": " ".join(came)} if came else {}
