"""The reference: the replica at every position of the log, played once and without jumps.

Every member that plays the log is compared with it, and so with all others. And each entry is judged as it comes:
that it leaves the ring, the joins and the places sound, changes nothing when it is a repetition, takes out no
member that lives, and lets a workflow do only what comes next.

A member that stands where the reference stood is given what the reference made of the entry, for playing is a
function of both; only a member that came over a jump, with a replica read from a text, plays the entry itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping

import attrs

from skuld_py.cluster.log.commands import Leave
from skuld_py.cluster.log.lives import is_newer
from skuld_py.cluster.log.play import Outcome, Played, Player
from skuld_py.cluster.log.replica import PLACES_BY_AGE, Replica
from skuld_py.simulation.world.zookeeper.workflow_lives import strays

DAMAGE = "nobody~0"
"""The id that has left in a replica damaged on purpose, and in no other: that replica may differ."""
ENDS = ("completed", "killed")
_ORDERED = ("members", "joiners", "aborted", "left", "nodes", "slots", "parked", "writers", "workflows")


class Reference:
    """``base``: the replica before the first entry. ``blame`` takes a sentence about what must not be."""

    def __init__(self, base: Replica, player: Player, blame: Callable[[str], None]) -> None:
        self.base = base
        self.newest = base
        self.counts: Counter[str] = Counter()
        self._player = player
        self.blame = blame
        self._played: dict[int, tuple[bytes, Replica, Played]] = {}
        """By position: the entry, the replica before it, and what it made."""
        self._begun: Replica | None = None
        """The replica of the origin that the log began with."""
        self._seen: dict[bytes, int] = {}

    def begin(self, replica: Replica) -> None:
        """The log goes on from a replica."""
        self._begun = self.newest = replica

    def restore(self, replica: Replica) -> None:
        """All entries are lost, and the log goes on from a replica."""
        self._played.clear()
        self._seen.clear()
        self._begun = self.newest = replica

    def at(self, version: int) -> Replica:
        """The replica of a position, or of the last one before it that was given to an entry."""
        while version >= 0 and version not in self._played:
            version -= 1
        if version >= 0:
            return self._played[version][2].replica
        return self._begun or self.base

    # -- entries as they come --------------------------------------------------------------------

    def take(self, position: int, raw: bytes, pulses: Collection[str]) -> None:
        """Play the next entry, and judge it."""
        played = self._player(self.newest, position, raw)
        self._played[position] = raw, self.newest, played
        self._count(played)
        self._judge(played, raw, pulses)
        self.newest = played.replica

    def _count(self, played: Played) -> None:
        self.counts[f"entry {played.outcome.value}"] += 1
        self.counts["joiner told no"] += len(played.replica.aborted) > len(self.newest.aborted)
        command = played.entry.command if played.entry is not None else None
        if played.outcome is Outcome.APPLIED and command is not None:
            self.counts[f"applied {command.kind}"] += 1
            self.counts["observer gone in the middle of a join"] += isinstance(command, Leave) and bool(
                self.newest.joins.joiner_of(command.member))
            if played.diff.get("state") in ENDS:
                self.counts[f"workflow {played.diff['state']}"] += 1

    def _judge(self, played: Played, raw: bytes, pulses: Collection[str]) -> None:
        at, old, new = played.position, self.newest, played.replica
        horizon = old.collected[0] if len(old.collected) > 1 else -1  # numbers before it may be forgotten
        if self._seen.get(raw, -1) > horizon and played.entry is not None and attrs.evolve(old, version=at) != new:
            self.blame(f"entry {at} repeats entry {self._seen[raw]} and changed the replica")
        if played.entry is not None:  # what was written for later rules than these counts once they hold
            self._seen.setdefault(raw, at)
        if played.entry is not None and isinstance(command := played.entry.command, Leave) \
                and not played.entry.writer.startswith("operator") and played.entry.writer != command.member \
                and command.member in pulses:
            self.blame(f"entry {at}: {played.entry.writer} evicts {command.member}, which lives")
        if played.outcome is Outcome.FAILED and attrs.evolve(old, version=at, failed=new.failed,
                                                             writers=new.writers) != new:
            self.blame(f"entry {at} failed and changed the replica")
        for fault in (*faults_of(new), *_takings(old, new), *strays(old, played)):
            self.blame(f"after entry {at}: {fault}")

    # -- those who play it -----------------------------------------------------------------------

    def player_of(self, name: str) -> Player:
        """Plays for a node, and compares what it has with the reference."""
        last: Replica | None = None

        def play(replica: Replica, position: int, raw: bytes) -> Played:
            nonlocal last
            known = self._played.get(position)
            if known is None or known[0] != raw:
                self.blame(f"{name} plays at {position} what never stood there")
                return self._player(replica, position, raw)
            self.counts["plays"] += 1
            self.counts["member jumps over what was collected"] += last is not None and replica is not last
            played = known[2]
            if replica is not known[1]:
                own = self._player(replica, position, raw)
                if not same(own.replica, played.replica):
                    if DAMAGE not in own.replica.left:
                        self.blame(f"{name} has another replica at {position}")
                    played = own
            last = played.replica
            return played
        return play

    def compare_origin(self, position: int, text: str) -> None:
        """An origin is written."""
        self.counts["origins"] += 1
        if text != self.at(position).text():
            self.blame(f"the origin at {position} is not the replica of that position")


def same(one: Replica, other: Replica) -> bool:
    """Whether two replicas have one canonical text, found without making it; and the same derived fields."""
    if one is other:
        return True
    if one != other or one.roster != other.roster or one.ring.watchers != other.ring.watchers \
            or one.joins.observers != other.joins.observers:
        return False
    pairs: list[tuple[Mapping[str, object], Mapping[str, object]]] = [
        (getattr(one, name), getattr(other, name)) for name in _ORDERED]
    pairs += [(one.ring.pairs, other.ring.pairs), (one.joins.prepared, other.joins.prepared),
              (one.joins.accepted, other.joins.accepted)]
    return all([*left] == [*right] for left, right in pairs)


def _takings(old: Replica, new: Replica) -> list[str]:
    """Places that a newer life, which is still in, has lost to an older one."""
    if new.rules < PLACES_BY_AGE or old.nodes is new.nodes:
        return []
    return [f"the place of {node}, which is {old.nodes[node].member}'s, says {place.member or 'nobody'}"
            for node, place in new.nodes.items()
            if node in old.nodes and old.nodes[node].member in new.members
            and is_newer(old.nodes[node].member, place.member)]


def faults_of(replica: Replica) -> list[str]:
    """What is wrong with a replica by itself."""
    faults = []
    members, pairs = replica.members, replica.ring.pairs
    ring = [*replica.ring.walk()] if len(pairs) <= len(members) else []
    if sorted(ring) != (sorted(members) if len(members) > 1 else []):
        faults.append(f"the ring {' '.join(ring)} is not one ring over {' '.join(members)}")
    if replica.roster != tuple(sorted(members)):
        faults.append(f"the roster is {' '.join(replica.roster)}")
    if replica.ring.watchers != {watched: watcher for watcher, watched in pairs.items()}:
        faults.append("the ring's inverse is another ring")
    joins = {**replica.joins.prepared, **replica.joins.accepted}
    if replica.joins.observers != {joiner: observer for observer, joiner in joins.items()}:
        faults.append("the joins' inverse differs")
    if {*joins} - {*members} or {*joins.values()} & {*members} or {*joins.values()} != {*replica.joiners}:
        faults.append(f"joins {joins} with joiners {[*replica.joiners]} and members {[*members]}")
    if {*replica.left} & ({*members} | {*joins.values()}):
        faults.append("somebody that has left is in")
    lives = {place.member for place in replica.nodes.values() if place.member}
    if lives - {*members} or {member.name for member in members.values()} - {*replica.nodes}:
        faults.append("nodes and members do not fit")
    if any(slot.member not in members for slot in replica.slots.values()):
        faults.append("a slot counts whose member is not in")
    return faults
