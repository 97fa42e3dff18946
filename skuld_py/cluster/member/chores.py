"""Duties of one elected member: collecting the log when it is long, forgetting nodes that stay down, and removing
what ZooKeeper still keeps of forgotten nodes.

Which member is elected follows from the replica: the position of the last collection, or the one at which a node
went down, picks a member from the roster. If nothing comes of it, the next in the roster takes over after some
more entries or some time, and so on: a dead or deaf elected member costs a delay. Two at once do no harm: a
collection names the one that it follows, the origin is only replaced by a later one, and a node is forgotten once.

The writer of a collection stores the origin when it plays its own entry, from the replica of just that position.
If it dies in between, the next collection makes that good.

Rejected: collecting by an outside program, as Onyx has it. It is never run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import attrs

from skuld_py.cluster.log.commands import Command, ForgetNode, Leave
from skuld_py.cluster.log.commands.gc import Gc, collected
from skuld_py.cluster.log.commands.retire_node import placed
from skuld_py.cluster.log.play import Outcome, Played
from skuld_py.cluster.log.replica import Place, Replica
from skuld_py.cluster.member.settings import LogSettings
from skuld_py.model.coordination import OriginWritten, SweepEntries, WriteOrigin

SCANS = 64
"""How often nodes that are down are looked for within ``forget_ms``."""
SCAN_MS_MIN = 1_000
SWEEP_MS = 600_000
"""A sweep without a reason, this often: the member whose turn the last one was may have died."""
SETTLE_MS = 60_000
"""A sweep comes this long after a node was forgotten: candidacies that counted on its vote are settled."""


def rank(replica: Replica, me: str, position: int) -> int:
    """The place of a member in the line for a duty that a position picks; it must be a member."""
    roster = replica.roster
    return (roster.index(me) - max(position, 0)) % len(roster)


@attrs.define
class Collector:
    """Wishes for ``gc`` when it is this member's turn, and after its own ``gc`` for the origin to be written."""

    settings: LogSettings
    _after: int = -1
    """The collection since which the log is too long, and when that was seen."""
    _since_ms: int = -1
    _origin: WriteOrigin | None = None
    """The origin that is to be written."""
    _is_writing: bool = False

    def wish(self, now_ms: int, replica: Replica, me: str) -> Gc | None:
        """The collection that is this member's to make now."""
        after = collected(replica)
        excess = replica.version - after - self.settings.length_max
        if excess < 0:
            self._since_ms = -1
            return None
        if self._since_ms < 0 or after != self._after:
            self._after, self._since_ms = after, now_ms
        turn = rank(replica, me, after)
        if 2 * excess < turn * self.settings.length_max and now_ms < self._due_ms(turn):
            return None
        self._since_ms = now_ms + self.settings.takeover_ms  # look again if nothing comes of it
        return Gc(after)

    def deadline(self, replica: Replica, me: str) -> int | None:
        """When it is this member's turn, if the log is too long."""
        return self._due_ms(rank(replica, me, self._after)) if self._since_ms >= 0 else None

    def _due_ms(self, turn: int) -> int:
        return self._since_ms + turn * self.settings.takeover_ms

    def on_played(self, played: Played, me: str) -> None:
        """Keep what the origin is to be, if this was our collection."""
        entry = played.entry
        if entry is not None and entry.writer == me and isinstance(entry.command, Gc) \
                and played.outcome is Outcome.APPLIED:
            keep_from = max(played.position - self.settings.grace, 0)
            self._origin = WriteOrigin(played.position, played.replica.text(), keep_from)

    def write(self) -> list[WriteOrigin]:
        """The origin to write, once; again in a new session if the answer was lost with the last one."""
        if self._origin is None or self._is_writing:
            return []
        self._is_writing = True
        return [self._origin]

    def void(self) -> None:
        """The session is lost."""
        self._is_writing = False

    def on_written(self, event: OriginWritten) -> None:
        """The origin was written, or a later one stands: let go of ours unless it is later still."""
        self._is_writing = False
        if self._origin is not None and self._origin.position <= event.position:
            self._origin = None


@attrs.frozen
class _Down:
    since: int
    seen_ms: int


@attrs.define
class Forgetter:
    """Wishes to forget nodes that were down for ``forget_ms`` by this member's clock, since it saw them so; and,
    after ``return_ms``, nodes that it saw come and, within ``brief_ms``, stop cleanly: such a visitor gives back
    what was placed on it. A node that partitions need for a majority is never forgotten."""

    settings: LogSettings
    _down: dict[str, _Down] = attrs.field(factory=dict)
    _scan_ms: int = 0
    _places: Mapping[str, Place] = attrs.field(factory=dict)
    _joined_ms: dict[str, int] = attrs.field(factory=dict)
    """When nodes came for the first time; of those that were there before this member, nothing is known."""
    _brief: dict[str, int] = attrs.field(factory=dict)
    """Visitors that have stopped, and the position at which each did."""

    def on_played(self, now_ms: int, played: Played, is_current: bool) -> None:
        """Note which nodes come, and which stop soon after. What is played to catch up tells no times."""
        places, known = played.replica.nodes, self._places
        self._places = places
        if not is_current or played.entry is None:
            return
        if len(places) > len(known):
            self._joined_ms |= {name: now_ms for name in places if name not in known}
        command = played.entry.command
        if isinstance(command, Leave) and command.member == played.entry.writer:
            self._joined_ms = {name: at_ms for name, at_ms in self._joined_ms.items() if name in places}
            went = {name: place.since for name, place in places.items()
                    if place.since == played.position and not place.member and self._is_young(now_ms, name)}
            self._brief |= went
            self._scan_ms = 0 if went else self._scan_ms

    def _is_young(self, now_ms: int, name: str) -> bool:
        return name in self._joined_ms and now_ms - self._joined_ms[name] < self.settings.brief_ms

    def wish(self, now_ms: int, replica: Replica, me: str,
             needs_vote_of: Callable[[str], bool] = lambda name: False) -> list[Command]:
        """The node that is this member's to forget now, if any; none that copies still need as a place."""
        limit_ms = self.settings.forget_ms
        if limit_ms is None or now_ms < self._scan_ms:
            return []
        self._brief = {name: at for name, at in self._brief.items() if name in replica.nodes
                       and not replica.nodes[name].member and replica.nodes[name].since == at}
        soonest_ms = min(limit_ms, self.settings.return_ms) if self._brief else limit_ms
        self._scan_ms = now_ms + max(soonest_ms // SCANS, SCAN_MS_MIN)
        self._down = {name: self._seen(now_ms, name, place.since) for name, place in replica.nodes.items()
                      if not place.member}
        due = self._due(now_ms, replica, me, limit_ms)
        name = next((name for name in due if not needs_vote_of(name)), None)
        return [] if name is None else [ForgetNode(name)]

    def _seen(self, now_ms: int, name: str, since: int) -> _Down:
        known = self._down.get(name)
        return known if known is not None and known.since == since else _Down(since, now_ms)

    def _due(self, now_ms: int, replica: Replica, me: str, limit_ms: int) -> Iterator[str]:
        has_spare = len(placed(replica)) > replica.replicas
        for name, down in self._down.items():
            patience_ms = min(limit_ms, self.settings.return_ms) if name in self._brief else limit_ms
            due_ms = down.seen_ms + patience_ms + rank(replica, me, down.since) * self.settings.takeover_ms
            if now_ms >= due_ms and (has_spare or replica.nodes[name].is_leaving):
                yield name

    def deadline(self) -> int | None:
        """When to look again."""
        return None if self.settings.forget_ms is None else self._scan_ms


@attrs.define
class Sweeper:
    """Wishes for sweeps of what ZooKeeper keeps of forgotten nodes: ``SETTLE_MS`` after one was forgotten, and
    every ``SWEEP_MS``."""

    _due_ms: int | None = None
    _places: Mapping[str, Place] = attrs.field(factory=dict)

    def wish(self, now_ms: int, replica: Replica, me: str) -> list[SweepEntries]:
        """The sweep that is due, if it is this member's: each collection of the log picks another member."""
        places, self._places = self._places, replica.nodes
        if self._due_ms is None:
            self._due_ms = now_ms + SWEEP_MS
        elif len(replica.nodes) < len(places):
            self._due_ms = now_ms + SETTLE_MS
        if now_ms < self._due_ms:
            return []
        self._due_ms = now_ms + SWEEP_MS
        return [SweepEntries(tuple(replica.nodes))] if rank(replica, me, collected(replica)) == 0 else []

    def deadline(self) -> int | None:
        """When the next sweep is due, whichever member's it is."""
        return self._due_ms
