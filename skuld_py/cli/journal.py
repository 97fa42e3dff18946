"""The coordination log for the verbs that show it: played from its origin on, as every member plays it.

ZooKeeper alone is asked, so it works while no node runs. Entries older than the origin have no replica before them
any more: they are shown as they stand, without a verdict.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from skuld_py.cluster.log.canonical import from_text, to_plain
from skuld_py.cluster.log.commands import Command, Rejoin
from skuld_py.cluster.log.entries import Entry, decode
from skuld_py.cluster.log.play import Outcome, Played, play
from skuld_py.cluster.log.replica import Replica
from skuld_py.config import Parameters
from skuld_py.errors import Malformed
from skuld_py.model.names import check_name
from skuld_py.runtime.zookeeper import clusters, log_following

COLLECTED = "collected"
"""The outcome of an entry that is older than the origin."""
BAD = (Outcome.FAILED.value, Outcome.REFUSED.value)


@attrs.frozen
class Line:
    """An entry as it is shown. ``entry`` is None when it cannot be read; ``diff`` says what it changed."""

    position: int
    entry: Entry | None
    outcome: str
    reason: str = ""
    diff: dict[str, str] = attrs.field(factory=dict)
    reactions: tuple[str, ...] = ()
    at_ms: int = 0
    """When it was written, by ZooKeeper's clock."""

    @property
    def is_bad(self) -> bool:
        """Whether it was skipped by all, and is kept among the failures."""
        return self.outcome in BAD

    @property
    def detail(self) -> str:
        """Why it was refused, or what it changed, or else what its command names."""
        changed = ", ".join(f"{key} {value}" for key, value in self.diff.items())
        return self.reason or changed or (named(self.entry.command) if self.entry else "")

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        entry = self.entry
        return {"position": self.position, "at_ms": self.at_ms,
                "writer": entry and entry.writer, "seq": entry and entry.seq,
                "command": entry and entry.command.kind, "with": entry and to_plain(entry.command),
                "outcome": self.outcome, "reason": self.reason, "changed": self.diff,
                "reactions": list(self.reactions)}


def named(command: Command) -> str:
    """What a command names, in short."""
    plain = to_plain(command)
    joiners = [each["id"] for each in plain.get("joiners", [])]
    return " ".join([*(str(value) for value in plain.values() if type(value) in (str, int)), *joiners])


def at_end(hosts: str, cluster: str, timeout_s: float) -> tuple[Replica, tuple[str, ...]]:
    """The replica at the end of a cluster's log, and the ids that have a pulse now."""
    check_name("cluster", cluster)
    replica = Journal(hosts, clusters.read_parameters(hosts, cluster, timeout_s), timeout_s).to_end()
    return replica, log_following.read_pulses(hosts, cluster, timeout_s)


class Journal:
    """Reads and plays one cluster's log. ``replica`` is as of the newest entry that was played."""

    def __init__(self, hosts: str, parameters: Parameters, timeout_s: float) -> None:
        self._hosts = hosts
        self._cluster = parameters.cluster
        self._timeout_s = timeout_s
        self.replica = Replica.base(parameters)
        self._jump()

    def to_end(self) -> Replica:
        """The replica at the end of the log."""
        for _ in self.lines(self.replica.version + 1):
            pass
        return self.replica

    def lines(self, start: int | None = None, *, is_endless: bool = False) -> Iterator[Line]:
        """Entries from ``start`` on, by default from the oldest that stands; what lies before it is played."""
        reading = start if start is None else min(start, self.replica.version + 1)
        times_ms = dict[int, int]()
        for position, raw in log_following.follow(self._hosts, self._cluster, reading, self._timeout_s,
                                                  is_endless=is_endless, times_ms=times_ms):
            if position > self.replica.version + 1:
                self._jump()
            line = attrs.evolve(self._line(position, raw), at_ms=times_ms.pop(position, 0))
            if start is None or position >= start:
                yield line

    def _line(self, position: int, raw: bytes) -> Line:
        if position <= self.replica.version:
            return Line(position, _readable(raw), COLLECTED)
        played = play(self.replica, position, raw)
        self.replica = played.replica
        return Line(position, played.entry, played.outcome.value, played.reason, dict(played.diff), _said(played))

    def _jump(self) -> None:
        """Begin from the origin, if it is ahead."""
        position, text = log_following.read_origin(self._hosts, self._cluster, self._timeout_s)
        if position > self.replica.version:
            self.replica = from_text(Replica, text)


def _readable(raw: bytes) -> Entry | None:
    try:
        return decode(raw)
    except Malformed:
        return None


def _said(played: Played) -> tuple[str, ...]:
    return tuple(f"{each.member}: {'rejoin' if isinstance(each.command, Rejoin) else each.command.kind}"
                 for each in played.reactions)
