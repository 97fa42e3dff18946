"""What every command is: a change of the replica, and what members append because of it.

Invariants: ``apply`` is a function of replica and position, and changes nothing where the entry comes late, twice
or out of turn; the same object comes back then, which is how a caller sees it. ``reactions`` name the one member
that appends each, so of thousands that play an entry hardly any has to act. What a member must watch is no
reaction: that is derived from the replica as a whole (``watching``), never from what one entry changed.

Source: Onyx's apply-log-entry, replica-diff and reactions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs

from skuld_py.cluster.replica import Replica


class Inapplicable(Exception):
    """The entry must not change anything; the sentence says why, and is kept in the replica."""


@attrs.frozen
class Rejoin:
    """Prepare to join again, after a pause of its own: all who were told no must not come back together."""


class Command:
    """A command, as an entry carries it."""

    kind: ClassVar[str]

    def apply(self, replica: Replica, position: int) -> Replica:
        """The next replica; the same one if nothing changes. May raise ``Inapplicable``."""
        raise NotImplementedError

    def reactions(self, old: Replica, new: Replica) -> tuple[Reaction, ...]:
        """What members append because of it."""
        return ()

    def diff(self, old: Replica, new: Replica) -> Mapping[str, str]:
        """What came of it, for people; empty if nothing did."""
        return {}


@attrs.frozen
class Reaction:
    """``member`` appends ``command``."""

    member: str
    command: Command | Rejoin
