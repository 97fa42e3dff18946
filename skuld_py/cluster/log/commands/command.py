"""What every command is: a change of the replica, and what members append because of it.

Invariants: ``apply`` is a function of replica and position, and changes nothing where the entry comes late, twice
or out of turn; the same object comes back then, which is how a caller sees it. ``reactions`` name the one member
that appends each, so of thousands that play an entry hardly any has to act. What a member must watch is no
reaction: that is derived from the replica as a whole (``watched``), never from what one entry changed.

What an entry names is checked where a command is made, so that no id breaks the ring and no text the terminal that
shows it: ids, names of nodes, and tags each have a grammar and a bound.

Source: Onyx's apply-log-entry, replica-diff and reactions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from skuld_py.cluster.log.replica import Replica
from skuld_py.errors import Malformed
from skuld_py.model.document import Member
from skuld_py.model.names import LIFE, WIDE_NAME

ID = LIFE
"""Ids of members and slots: the name of a node, and what tells its lives apart."""
TAGS_MAX = 64
_PRINTABLE = re.compile(r"[!-~]{0,255}", re.ASCII)


class Inapplicable(Exception):
    """The entry must not change anything; the sentence says why, and is kept in the replica."""


@attrs.frozen
class Rejoin:
    """Prepare to join again, after a pause of its own: joiners that were told no must not come back together."""


class Command:
    """A command, as an entry carries it."""

    kind: ClassVar[str]
    since: ClassVar[int] = 1
    """From these rules on it is a command; before that, an entry with it is one that cannot be read."""

    def newer_than(self, rules: int) -> str:
        """A field that says something and came with later rules than these (``since`` in its metadata); nothing
        if there is none. The first by name, which is the one that a release without it tells of."""
        kind: Any = type(self)
        later = [field for field in attrs.fields(kind) if field.metadata.get("since", 1) > rules]
        return min((field.name for field in later if getattr(self, field.name) != field.default), default="")

    def apply(self, replica: Replica, position: int) -> Replica:
        """The next replica; the same one if nothing changes. May raise ``Inapplicable``."""
        raise NotImplementedError

    def reactions(self, old: Replica, new: Replica) -> tuple[Reaction, ...]:
        """What members append because of it."""
        return ()

    def diff(self, old: Replica, new: Replica) -> Mapping[str, str]:
        """What the entry changed, for people to read; empty if nothing."""
        return {}


def is_id(command: Any, field: Any, value: str) -> None:
    """Validate the id of a member or a slot."""
    if not ID.fullmatch(value):
        raise Malformed(f"{type(command).__name__}.{field.name}", "is no id")


def is_node(command: Any, field: Any, value: str) -> None:
    """Validate the name of a node."""
    if not WIDE_NAME.fullmatch(value):
        raise Malformed(f"{type(command).__name__}.{field.name}", "is no name of a node")


def is_member(command: Any, field: Any, value: Member) -> None:
    """Validate the description of a node's process."""
    is_node(command, field, value.name)
    if not all(map(_PRINTABLE.fullmatch, (value.host, value.boot, value.incarnation))):
        raise Malformed(f"{type(command).__name__}.{field.name}", "has a text that is long or not printable")
    if not 0 <= value.port <= 65_535:
        raise Malformed(f"{type(command).__name__}.{field.name}", "has no port")


def are_tags(command: Any, field: Any, value: tuple[str, ...]) -> None:
    """Validate the tags of a slot."""
    if len(value) > TAGS_MAX or not all(map(WIDE_NAME.fullmatch, value)):
        raise Malformed(f"{type(command).__name__}.{field.name}", "are no tags, or too many")


@attrs.frozen
class Reaction:
    """``member`` appends ``command``."""

    member: str
    command: Command | Rejoin
