"""What holds of every replica, at every position, whatever was written: a sentence for each that does not."""

from __future__ import annotations

from collections.abc import Iterator

from skuld_py.cluster.log.canonical import from_text
from skuld_py.cluster.log.replica import FAILED_MAX, Replica
from skuld_py.cluster.member.watched import watched


def faults(replica: Replica) -> list[str]:
    """The rules that are broken."""
    return [each for rule in RULES for each in rule(replica)]


def ring(replica: Replica) -> Iterator[str]:
    """One cycle over the members, or none for fewer than two; and nobody is unwatched."""
    pairs, members = replica.ring.pairs, replica.members
    walk = list(replica.ring.walk())
    if sorted(walk) != (sorted(members) if len(members) > 1 else []):
        yield f"the ring is {dict(pairs)}, the members are {sorted(members)}"
    if len({*walk}) != len(walk) or len(pairs) != len(walk):
        yield f"the ring {dict(pairs)} is not one cycle"
    if replica.ring.watchers != {watched: watcher for watcher, watched in pairs.items()}:
        yield f"{dict(replica.ring.watchers)} is not who watches in {dict(pairs)}"
    seen = {name for me in (*members, *replica.joiners) for name in watched(replica, me)}
    if len(members) > 1 and (lost := members.keys() - seen):
        yield f"nobody watches {sorted(lost)}"
    if lost := replica.joiners.keys() - seen:
        yield f"nobody watches joining {sorted(lost)}"


def roster(replica: Replica) -> Iterator[str]:
    """The members by name, with nobody who has left."""
    if replica.roster != tuple(sorted(replica.members)):
        yield f"the roster is {replica.roster}, the members are {sorted(replica.members)}"
    for name, those in (("members", replica.members), ("writers", replica.writers), ("aborted", replica.aborted),
                        ("joiners", replica.joiners)):
        if both := those.keys() & replica.left.keys():
            yield f"{sorted(both)} have left and are among {name}"


def joins(replica: Replica) -> Iterator[str]:
    """Each observer is a member and has one joiner; each joiner, one observer, and is no member."""
    prepared, accepted = replica.joins.prepared, replica.joins.accepted
    if both := prepared.keys() & accepted.keys():
        yield f"{sorted(both)} observe twice"
    joiners = [*prepared.values(), *accepted.values()]
    if len({*joiners}) != len(joiners):
        yield f"one of {joiners} joins twice"
    if strangers := (prepared.keys() | accepted.keys()) - replica.members.keys():
        yield f"{sorted(strangers)} observe and are no members"
    if members := {*joiners} & replica.members.keys():
        yield f"{sorted(members)} join and are members"
    if replica.joins.observers != {joiner: observer for phase in (prepared, accepted)
                                   for observer, joiner in phase.items()}:
        yield f"{dict(replica.joins.observers)} are not the observers of {joiners}"
    if replica.joiners.keys() != {*joiners}:
        yield f"what is known of joiners is of {sorted(replica.joiners)}, not {sorted(joiners)}"
    if both := replica.aborted.keys() & (replica.members.keys() | replica.joiners.keys()):
        yield f"{sorted(both)} were told no and are in"


def slots(replica: Replica) -> Iterator[str]:
    """Slots count for members only; others wait."""
    if strangers := {each.member for each in replica.slots.values()} - replica.members.keys():
        yield f"slots count for {sorted(strangers)}"
    gone = replica.members.keys() | replica.left.keys()
    if waiting := {each.member for each in replica.parked.values()} & gone:
        yield f"slots are parked for {sorted(waiting)}"
    if both := replica.slots.keys() & replica.parked.keys():
        yield f"slots {sorted(both)} count and are parked"


def nodes(replica: Replica) -> Iterator[str]:
    """A node's life is a member of that name."""
    for name, place in replica.nodes.items():
        member = replica.members.get(place.member)
        if place.member and (member is None or member.name != name):
            yield f"node {name} lives as {place.member}, which is {member}"


def positions(replica: Replica) -> Iterator[str]:
    """Nothing is from beyond the version, or older than its bound."""
    said = [*replica.aborted.values(), *replica.left.values(), *replica.collected,
            *(place.since for place in replica.nodes.values()), *(failure.position for failure in replica.failed),
            *(last.position for last in replica.writers.values())]
    if max(said, default=-1) > replica.version:
        yield f"something is from {max(said)}, beyond {replica.version}"
    if len(replica.collected) > 2 or list(replica.collected) != sorted({*replica.collected}):
        yield f"collections are {replica.collected}"
    failed = [failure.position for failure in replica.failed]
    if len(failed) > FAILED_MAX or failed != sorted({*failed}):
        yield f"failures are {failed}"
    if not all(failure.reason.isascii() and failure.reason.isprintable() for failure in replica.failed):
        yield "a reason for a failure is not plain"
    if len(replica.collected) == 2:
        old = [name for those in (replica.left, replica.aborted) for name, at in those.items()
               if at <= replica.collected[0]]
        if old:
            yield f"{old} outlived two collections"


def workflows(replica: Replica) -> Iterator[str]:
    """A workflow lives with its steps, or has ended and has none; none is beyond its end."""
    for name, each in replica.workflows.items():
        if each.is_live != bool(each.steps) or (not each.is_live and (
                each.exhausted or each.sealed or each.drained)):
            yield f"workflow {name} is {each}"
        if (each.sealed and each.open_inputs) or (each.is_live and not each.open_outputs):
            yield f"workflow {name} sealed {each.sealed} of {each.outputs} with {each.open_inputs} open"
        if any(not 0 < each.open_strands(step) <= each.strands(step) for step in each.open_inputs):
            yield f"workflow {name} has open inputs without open strands: {each}"
        if {drained.partition(":")[0] for drained in each.drained} - {*each.open_inputs}:
            yield f"workflow {name} keeps strands of inputs that are exhausted: {each}"
        if not each.is_live and len(replica.collected) == 2 and each.since <= replica.collected[0]:
            yield f"the tombstone of {name} outlived two collections"
        if not 0 <= each.submitted <= each.since <= replica.version:
            yield f"workflow {name} was submitted at {each.submitted} and is as it is since {each.since}"
    if replica.workflows and replica.rules < 3:
        yield "there are workflows under rules that have none"


def text(replica: Replica) -> Iterator[str]:
    """The canonical text is the replica."""
    again = from_text(Replica, replica.text())
    if again != replica or again.text() != replica.text() or again.digest() != replica.digest():
        yield "another replica comes of its text"
    if faulty := [rule.__name__ for rule in RULES[:-1] if next(rule(again), "") != next(rule(replica), "")]:
        yield f"what is derived from its text differs: {faulty}"


RULES = (ring, roster, joins, slots, nodes, positions, workflows, text)
