"""The replica: the value that every member builds by playing the coordination log, equal at every position.

Immutable; each entry makes the next one from it (``play``). Mappings keep the order in which the log put things
in, which is the same for all; nothing depends on any other order. ``digest`` is taken over the canonical text, so
two members that differ anywhere show it at the first position where they do. Only the words of a failure may
differ, for another release may word it otherwise: that an entry failed is what all must agree on.

A *member* is one life of a node process in the log, under an id that is never used again; a *node* is what owns
partitions, under a name that it keeps. So liveness is not placement: a member that goes leaves its node placed.

Bounds: ``left`` and ``writers`` keep what is younger than the last two collections (``gc``), ``failed`` the last
``FAILED_MAX``. ``aborted`` holds joiners that were told no, until they are prepared, leave, or are collected;
``parked`` slots go with the member that they wait for, or once it has written nothing for two collections. Of
``workflows`` those that live are bounded (``workflows``), those that have ended go as ``left`` does.

Rejected: ids of nodes as members (a restarted node would answer for what its former life had asked); persistent
trees for the mappings (their order is that of hashes; a copy of ten thousand entries takes 0.1 ms).
Source: Onyx's replica, without what it never removes.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import attrs

from skuld_py.cluster.log.canonical import SPARSE, to_text
from skuld_py.cluster.log.ring import Ring
from skuld_py.cluster.log.workflows import Workflows
from skuld_py.config import RULES, Parameters
from skuld_py.model.document import Member

FAILED_MAX = 32
PLACES_BY_AGE = 2
"""From these rules on a place belongs to its node's newest life, and failures have no words in the digest."""


@attrs.frozen
class Place:
    """A node that owns partitions. ``member`` is its life in the ring, empty while it is down; ``since`` is the
    position at which it came or went."""

    member: str = ""
    since: int = -1
    is_leaving: bool = False


@attrs.frozen
class Slot:
    """A unit of capacity that a member's workers bring."""

    member: str
    tags: tuple[str, ...] = ()


@attrs.frozen
class Written:
    """The newest entry of a writer: its number, and where it stands."""

    seq: int
    position: int


@attrs.frozen
class Failure:
    """An entry that changed nothing because it could not be applied, and why."""

    position: int
    reason: str


@attrs.frozen
class Joins:
    """Joins under way: each observer has one joiner, first prepared, then accepted."""

    prepared: Mapping[str, str] = attrs.field(factory=dict)
    accepted: Mapping[str, str] = attrs.field(factory=dict)
    observers: Mapping[str, str] = attrs.field(
        default=attrs.Factory(lambda self: {joiner: observer for phase in (self.prepared, self.accepted)
                                            for observer, joiner in phase.items()}, takes_self=True),
        eq=False, repr=False)
    """Joiner to observer, whatever the phase."""

    def joiner_of(self, observer: str) -> str:
        """The joiner that a member observes; empty if none."""
        return self.prepared.get(observer) or self.accepted.get(observer, "")

    def with_prepared(self, observer: str, joiner: str) -> Joins:
        """A first phase begins."""
        return Joins({**self.prepared, observer: joiner}, self.accepted, {**self.observers, joiner: observer})

    def with_accepted(self, observer: str) -> Joins:
        """The first phase becomes the second."""
        return Joins(_less(self.prepared, observer), {**self.accepted, observer: self.prepared[observer]},
                     self.observers)

    def without(self, observer: str) -> Joins:
        """An observer's join ends, either way."""
        joiner = self.joiner_of(observer)
        return self if not joiner else Joins(
            _less(self.prepared, observer), _less(self.accepted, observer), _less(self.observers, joiner))


def _less(mapping: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    if key not in mapping:
        return mapping
    copy = dict(mapping)
    del copy[key]
    return copy


@attrs.frozen
class Replica:
    """``version`` is the position of the last entry played, -1 before the first. All by member id, except
    ``nodes`` (by node name), ``slots`` and ``parked`` (by slot id), ``writers`` (by writer) and ``workflows``."""

    replicas: int = 3
    """How many nodes keep a copy of each task; as many must stay placed. An entry may change it."""
    version: int = -1
    rules: int = RULES
    members: Mapping[str, Member] = attrs.field(factory=dict)
    roster: tuple[str, ...] = attrs.field(
        default=attrs.Factory(lambda self: tuple(sorted(self.members)), takes_self=True), eq=False, repr=False)
    """The members by name: what a choice by position is made from."""
    ring: Ring = attrs.field(factory=Ring)
    joins: Joins = attrs.field(factory=Joins)
    joiners: Mapping[str, Member] = attrs.field(factory=dict)
    aborted: Mapping[str, int] = attrs.field(factory=dict)
    """Joiners that were told no, and where."""
    left: Mapping[str, int] = attrs.field(factory=dict)
    """Members that have left, and where: nothing that they write later counts."""
    nodes: Mapping[str, Place] = attrs.field(factory=dict)
    slots: Mapping[str, Slot] = attrs.field(factory=dict)
    parked: Mapping[str, Slot] = attrs.field(factory=dict)
    """Slots of members that have not joined yet."""
    writers: Mapping[str, Written] = attrs.field(factory=dict)
    failed: tuple[Failure, ...] = ()
    collected: tuple[int, ...] = ()
    """Positions of the last collections, newest last."""
    workflows: Workflows = attrs.field(factory=dict, metadata=SPARSE)
    """Empty under rules before 3."""
    sharing: str = attrs.field(default="", metadata=SPARSE)
    """How workflows share slots (``workflow``'s ``Sharing``); empty while nobody has said so: balanced."""

    @classmethod
    def base(cls, parameters: Parameters) -> Replica:
        """The replica before the first entry: the same for all members of a cluster."""
        return cls(replicas=parameters.replicas, rules=parameters.rules)

    def is_known(self, member: str) -> bool:
        """Whether an id is that of a member, or of a joiner that has an observer."""
        return member in self.members or member in self.joins.observers

    def text(self) -> str:
        """The canonical text."""
        return to_text(self)

    def digest(self) -> str:
        """32 hex digits over the canonical text, without the words of failures."""
        wordless = self if self.rules < PLACES_BY_AGE else attrs.evolve(
            self, failed=tuple(Failure(each.position, "") for each in self.failed))
        return blake2b(wordless.text().encode(), digest_size=16).hexdigest()
