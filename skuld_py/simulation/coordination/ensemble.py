"""A ZooKeeper as far as the coordination log sees it: a sequence of entries, an origin, ephemerals, watches.

Every operation happens at one moment of virtual time; what is slow, lost or in doubt is the connection's affair
(``shell``). Beside the log stands the reference: the replica at every position, played once, without jumps. All
members are compared with it, so also with each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import attrs

from skuld_py.cluster.log.commands import Leave
from skuld_py.cluster.log.lives import is_newer
from skuld_py.cluster.log.play import Outcome, Played, Player
from skuld_py.cluster.log.replica import PLACES_BY_AGE, Replica
from skuld_py.model.coordination import EntriesRead
from skuld_py.simulation.trace import Trace

Watcher = Callable[[str], None]


@attrs.define
class Pulse:
    """An ephemeral: whose session holds it, of which node it is, and where the log ended when it was made."""

    session: int
    node: str
    end: int


@attrs.define
class Ensemble:
    """``now`` tells the virtual time for the trace."""

    base: Replica
    player: Player
    trace: Trace
    now: Callable[[], int]
    entries: dict[int, bytes] = attrs.field(factory=dict)
    """What stands there, by position."""
    end: int = 0
    origin: tuple[int, str] = (-1, "")
    pulses: dict[str, Pulse] = attrs.field(factory=dict)
    reference: dict[int, Replica] = attrs.field(factory=dict)
    """The replica after each entry that ever stood there."""
    newest: Replica = attrs.field(default=attrs.Factory(lambda self: self.base, takes_self=True))
    violations: list[str] = attrs.field(factory=list)
    on_entry: list[Callable[[], None]] = attrs.field(factory=list)
    """Called after each append."""
    stats: Counter[str] = attrs.field(factory=Counter)
    _watchers: dict[str, dict[int, Watcher]] = attrs.field(factory=dict)
    _seen: dict[bytes, int] = attrs.field(factory=dict)

    # -- the log -------------------------------------------------------------------------------

    def append(self, raw: bytes, who: str) -> int:
        """An entry at the next position."""
        position = self.end
        self.end += 1
        self.entries[position] = raw
        played = self.player(self.newest, position, raw)
        self.trace.note(self.now(), who, "append", f"@{position}",
                        f"{played.outcome.value} {raw[:160].decode(errors='replace')}")
        self.stats[f"entry {played.outcome.value}"] += 1
        self.stats["joins aborted"] += len(played.replica.aborted) > len(self.newest.aborted)
        self._judge(played, raw)
        self.newest = self.reference[position] = played.replica
        for call in [*self.on_entry]:
            call()
        return position

    def _judge(self, played: Played, raw: bytes) -> None:
        """What a single entry may not do."""
        at, old, new = played.position, self.newest, played.replica
        horizon = old.collected[0] if len(old.collected) > 1 else -1  # numbers before it may be forgotten
        if self._seen.get(raw, -1) > horizon and played.entry is not None and attrs.evolve(old, version=at) != new:
            self.violations.append(f"entry {at} repeats entry {self._seen[raw]} and changed the replica")
        self._seen.setdefault(raw, at)
        if played.entry is not None and isinstance(command := played.entry.command, Leave) \
                and played.entry.writer not in ("operator", command.member) and command.member in self.pulses:
            self.violations.append(f"entry {at}: {played.entry.writer} evicts {command.member}, which lives")
        if played.outcome is Outcome.FAILED and attrs.evolve(old, version=at, failed=new.failed,
                                                             writers=new.writers) != new:
            self.violations.append(f"entry {at} failed and changed the replica")
        self.violations += [f"after entry {at}: {fault}" for fault in (*faults_of(new), *_takings(old, new))]

    def skip(self) -> None:
        """A number of the sequence that no entry ever got."""
        self.end += 1

    def read(self, start: int, limit: int, hidden: int = 0) -> EntriesRead | None:
        """Entries from ``start`` on; None if there is none. A server that lags hides the newest ones."""
        last = self.end - hidden
        found = self.entries.get(start)
        if found is None:
            later = sorted(position for position in self.entries if start < position < last)[:limit]
            if not later:
                return None
            return EntriesRead(start, tuple((at, self.entries[at]) for at in later), False, True)
        made: list[tuple[int, bytes]] = []
        while len(made) < limit and start + len(made) < last:
            raw = self.entries.get(start + len(made))
            if raw is None:
                break
            made.append((start + len(made), raw))
        if not made:
            return None
        return EntriesRead(start, tuple(made), made[-1][0] == last - 1)

    def write_origin(self, position: int, text: str) -> bool:
        """Unless a later one stands."""
        if position < self.origin[0]:
            return False
        if text != self.reference[position].text():
            self.violations.append(f"the origin at {position} is not the replica of that position")
        self.origin = position, text
        return True

    def remove(self, below: int) -> None:
        """Entries below a position, which an origin must cover."""
        assert below <= self.origin[0], "somebody removes what no origin holds"
        self.entries = {position: raw for position, raw in self.entries.items() if position >= below}

    # -- pulses --------------------------------------------------------------------------------

    def make_pulse(self, member: str, node: str, session: int) -> None:
        """An ephemeral; those of earlier lives of the node go."""
        for other in [other for other, pulse in self.pulses.items() if pulse.node == node and other != member]:
            self.drop_pulse(other)
        self.pulses.setdefault(member, Pulse(session, node, self.end))

    def drop_pulse(self, member: str) -> None:
        """It goes; who watches it is told, once."""
        if self.pulses.pop(member, None) is not None:
            self.trace.note(self.now(), member, "gone", "")
            for watcher in self._watchers.pop(member, {}).values():
                watcher(member)

    def expire(self, session: int) -> None:
        """A session ends, and its pulses with it."""
        for member in [member for member, pulse in self.pulses.items() if pulse.session == session]:
            self.drop_pulse(member)

    def watch(self, member: str, session: int, watcher: Watcher) -> bool:
        """Arm a watch; whether the pulse stands."""
        self._watchers.setdefault(member, {})[session] = watcher
        return member in self.pulses

    def is_behind(self, member: str, seen: int) -> bool:
        """Whether a server may not know yet of a pulse that stands, by what was read from it of the log."""
        pulse = self.pulses.get(member)
        return pulse is not None and seen <= pulse.end

    def unwatch(self, member: str, session: int) -> None:
        """Disarm."""
        self._watchers.get(member, {}).pop(session, None)

    def break_connection(self, session: int) -> None:
        """The watches of a session are gone with its connection."""
        for armed in self._watchers.values():
            armed.pop(session, None)

    def watchers_of(self, member: str) -> list[int]:
        """The sessions that really watch a pulse."""
        return [*self._watchers.get(member, {})]


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
