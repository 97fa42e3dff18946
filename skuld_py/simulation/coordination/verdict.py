"""What must hold once all is quiet: of the ring, places, watches, joins, replicas, slots, and of the log.

At every position of the log the replicas are compared as they are played (``same``); here is what else is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.member.membership import Membership
from skuld_py.simulation.coordination.ensemble import Ensemble
from skuld_py.simulation.coordination.shell import Shell

ORDERED = ("members", "joiners", "aborted", "left", "nodes", "slots", "parked", "writers")


def same(one: Replica, other: Replica) -> bool:
    """Whether two replicas have one canonical text, found without making it; and the same derived fields."""
    if one is other:
        return True
    if one != other or one.roster != other.roster or one.ring.watchers != other.ring.watchers \
            or one.joins.observers != other.joins.observers:
        return False
    pairs: list[tuple[Mapping[str, object], Mapping[str, object]]] = [
        (getattr(one, name), getattr(other, name)) for name in ORDERED]
    pairs += [(one.ring.pairs, other.ring.pairs), (one.joins.prepared, other.joins.prepared),
              (one.joins.accepted, other.joins.accepted)]
    return all([*left] == [*right] for left, right in pairs)


def lacks(shells: Sequence[Shell], ensemble: Ensemble) -> list[str]:
    """What is still missing of rest; empty when there is nothing to wait for."""
    live = {shell.node: shell.machine for shell in shells if shell.machine is not None}
    if not live:
        return []  # nobody is there who could notice anything
    newest = ensemble.newest
    missing = [f"{node} stopped: {machine.stopped_by}" for node, machine in live.items() if machine.stopped_by]
    missing += [f"{node} ({machine.me}) is not in" for node, machine in live.items()
                if machine.me not in newest.members]
    missing += [f"{node} lives as {machine.me}, and its place says {_holder(newest, node) or 'nobody'}"
                for node, machine in live.items() if _holder(newest, node) != machine.me]
    lives = {machine.me for machine in live.values()}
    missing += [f"{member} is in and dead" for member in newest.members if member not in lives]
    missing += [f"{observer} observes {joiner}, {phase}"
                for phase, joins in (("prepared", newest.joins.prepared), ("accepted", newest.joins.accepted))
                for observer, joiner in joins.items()]
    missing += [f"{node} is at {machine.replica.version}, not at {newest.version}"
                for node, machine in live.items() if machine.replica.version != newest.version]
    missing += [f"{shell.node} was not told that it is in" for shell in shells
                if shell.machine is not None and not shell.is_told_connected]
    return missing + _pulses(ensemble, lives) + _watches(shells, live) + _slots(live, newest)


def _holder(replica: Replica, node: str) -> str:
    place = replica.nodes.get(node)
    return place.member if place is not None else ""


def _pulses(ensemble: Ensemble, lives: set[str]) -> list[str]:
    pulses = {*ensemble.pulses}
    lost = lives - pulses if len(lives) > 1 else set()  # of one that is alone nobody sees that its pulse went
    return [f"{member} has no pulse" for member in sorted(lost)] + [
        f"{member} has a pulse and is dead" for member in sorted(pulses - lives)]


def _watches(shells: Sequence[Shell], live: Mapping[str, Membership]) -> list[str]:
    """Everybody is watched by exactly one, in the ensemble itself."""
    if len(live) < 2:
        return []
    watchers: dict[str, list[str]] = {}
    for shell in shells:
        if shell.machine is not None:
            for member in shell.armed:
                watchers.setdefault(member, []).append(shell.node)
    return [f"{machine.me} is watched by {' and '.join(watchers.get(machine.me, [])) or 'nobody'}"
            for machine in live.values() if len(watchers.get(machine.me, [])) != 1]


def _slots(live: Mapping[str, Membership], newest: Replica) -> list[str]:
    wanted = {slot: (machine.me, tags) for machine in live.values() for slot, tags in machine.slots.items()}
    counted = {slot: (each.member, each.tags) for slot, each in newest.slots.items()}
    return [] if wanted == counted else [f"slots are {counted}, not {wanted}"]


def final(shells: Sequence[Shell], ensemble: Ensemble) -> list[str]:
    """What waiting cannot mend: digests that differ."""
    digest = ensemble.newest.digest()
    return [f"{shell.node} has another digest" for shell in shells
            if shell.machine is not None and shell.machine.replica.digest() != digest]
