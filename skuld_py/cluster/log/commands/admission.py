"""How a member comes into the replica and out of it: what all ways of joining, and of leaving, share.

A node's place belongs to its newest life. An older life may come in late, stitched in by a member that was asked
before the node was started again. It is a member then, until it leaves, but it takes no place from a newer life
that is in, and its leave empties none.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping
from typing import Any, TypeVar

import attrs

from skuld_py.cluster.log.lives import is_newer
from skuld_py.cluster.log.replica import PLACES_BY_AGE, Place, Replica, Slot
from skuld_py.model.document import Member

V = TypeVar("V")


def less(mapping: Mapping[str, V], *keys: str) -> Mapping[str, V]:
    """The mapping without some keys; the same object when it has none of them."""
    if not any(key in mapping for key in keys):
        return mapping
    copy = dict(mapping)
    for key in keys:
        copy.pop(key, None)
    return copy


def admitted(replica: Replica, position: int, joiners: Mapping[str, Member], **changes: Any) -> Replica:
    """With new members: their nodes are placed, their parked slots count."""
    roster, nodes = list(replica.roster), dict(replica.nodes)
    for joiner, member in joiners.items():
        insort(roster, joiner)
        known = nodes.get(member.name, Place())
        if replica.rules < PLACES_BY_AGE or not is_newer(known.member, joiner):
            nodes[member.name] = attrs.evolve(known, member=joiner, since=position)
    parked = {slot: each for slot, each in replica.parked.items() if each.member in joiners}
    return attrs.evolve(
        replica, members={**replica.members, **joiners}, roster=tuple(roster), nodes=nodes,
        joiners=less(replica.joiners, *joiners), aborted=less(replica.aborted, *joiners),
        slots={**replica.slots, **parked} if parked else replica.slots, parked=less(replica.parked, *parked),
        **changes)


def evicted(replica: Replica, position: int, member: str) -> Replica:
    """Without a member: its node stays placed, its slots go, the joiner that it observed is told no."""
    joins, aborted = replica.joins, dict(replica.aborted)
    if joiner := joins.joiner_of(member):
        aborted[joiner] = position
    aborted.pop(member, None)
    gone = [*filter(None, (joiner, member))]
    joins = joins.without(member)
    if observer := joins.observers.get(member, ""):
        joins = joins.without(observer)
    return attrs.evolve(
        replica, members=less(replica.members, member), roster=_without(replica.roster, member),
        ring=replica.ring.without(member), joins=joins, joiners=less(replica.joiners, *gone), aborted=aborted,
        left={**replica.left, member: position}, nodes=_down(replica, position, member),
        slots=_others(replica.slots, member), parked=_others(replica.parked, member),
        writers=less(replica.writers, member))


def _without(roster: tuple[str, ...], member: str) -> tuple[str, ...]:
    at = bisect_left(roster, member)
    return (*roster[:at], *roster[at + 1 :]) if roster[at : at + 1] == (member,) else roster


def _down(replica: Replica, position: int, member: str) -> Mapping[str, Place]:
    known = replica.members.get(member)
    place = replica.nodes.get(known.name) if known is not None else None
    if known is None or place is None or place.member != member:
        return replica.nodes  # the node has a newer life already
    return {**replica.nodes, known.name: attrs.evolve(place, member="", since=position)}


def _others(slots: Mapping[str, Slot], member: str) -> Mapping[str, Slot]:
    return less(slots, *(slot for slot, each in slots.items() if each.member == member))
