"""Makes lines of a log of what a node remarks on, few enough to be read.

Like remarks (the same kind, for the same reason) are told together. The first is told when its turn ends; those
that follow within the pause are one more line when the pause ends, and with each such line the pause doubles, up
to ``PAUSE_MS_MAX``. A kind that was quiet for its pause is told at once again. So an election is a line within
milliseconds, and those of 4,096 partitions at a start are about six.

A line names at most ``NAMED`` of what it is about, and says how many there are. Beside the words a record has
``facts``, for logs that are read by programs.

Nothing here is timed by itself: ``look`` is called after each turn of the loop, and an idle node takes a turn at
least as often as it gossips. Rejected: a filter of the logging library, which sees texts and not what is alike.
"""

from __future__ import annotations

import logging

import attrs

from skuld_py.model.remarks import Kind, Remark

NAMED = 8
PAUSE_MS, PAUSE_MS_MAX = 1_000, 60_000
GROUPS_MAX = 256
"""Groups of like remarks that are kept; of more, the oldest quiet one is dropped."""

_WORDS = {
    Kind.JOINED: "node {about} has joined",
    Kind.LEFT: "node {about} has left, or is down",
    Kind.SESSION: "the session with ZooKeeper is {why}",
    Kind.ELECTED: "elected leader of {about}: {why}",
    Kind.DEPOSED: "no longer leader of {about}: {why}",
    Kind.MAJORITY_LOST: "no majority of the voters is alive for {about}: no claims are granted there",
    Kind.MAJORITY_REGAINED: "a majority of the voters is alive again for {about}",
    Kind.FILL_BEGUN: "begins to fill {about} from the other nodes: {why}",
    Kind.FILL_DONE: "has filled {about} from the other nodes: {why}",
    Kind.CLOCK: "the judgement on this node's clock is {why}",
    Kind.DOUBT: "does not trust its memory of {about} any more: {why}. It fills it from the other nodes, and takes"
                " no part in its elections and claims before that; nothing needs to be done",
    Kind.LOSS: "voters of {about} were given up; of the tasks that are known, {why} are lost with them, and"
               " 'skuld status' names them",
    Kind.PUT_BACK: "the document of {about} was gone from ZooKeeper while this node led it; it is put back",
    Kind.LACKED: "as the new leader it lacked what voters of the leader before it hold, and has fetched it now:"
                 " {about}",
}
_WARNINGS = frozenset({Kind.PUT_BACK, Kind.DOUBT, Kind.MAJORITY_LOST, Kind.LOSS})

_log = logging.getLogger(__name__)


@attrs.define
class _Group:
    """Like remarks that were not told yet, and when the next line may be written."""

    count: int = 0
    about: list[str] = attrs.field(factory=list)
    next_ms: int = -PAUSE_MS
    pause_ms: int = PAUSE_MS

    def add(self, about: str) -> None:
        self.count += 1
        if len(self.about) < NAMED:
            self.about.append(about)

    def take(self, now_ms: int) -> tuple[int, list[str]]:
        """What the next line says; after it the pause is longer, unless it was kept."""
        was_quiet = now_ms >= self.next_ms + self.pause_ms
        self.pause_ms = PAUSE_MS if was_quiet else min(2 * self.pause_ms, PAUSE_MS_MAX)
        self.next_ms = now_ms + self.pause_ms
        told = self.count, self.about
        self.count, self.about = 0, []
        return told


class Chronicle:
    """The log of the node ``me``."""

    def __init__(self, me: str) -> None:
        self._me = me
        self._groups: dict[tuple[Kind, str], _Group] = {}
        self._untold: dict[tuple[Kind, str], None] = {}

    def note(self, remark: Remark) -> None:
        """Take a remark; by the thread of the loop."""
        key = remark.kind, remark.why
        group = self._groups.get(key)
        if group is None:
            if len(self._groups) >= GROUPS_MAX:
                self._forget()
            group = self._groups[key] = _Group()
        group.add(remark.about)
        self._untold[key] = None

    def look(self, now_ms: int) -> None:
        """Tell what may be told by now."""
        for key in [key for key in self._untold if now_ms >= self._groups[key].next_ms]:
            self._tell(now_ms, key)

    def close(self) -> None:
        """Tell all that is left."""
        for key in list(self._untold):
            self._tell(0, key)

    def _tell(self, now_ms: int, key: tuple[Kind, str]) -> None:
        del self._untold[key]
        kind, why = key
        count, about = self._groups[key].take(now_ms)
        named = ", ".join(about) if count <= NAMED else f"{count:,} times, the first {NAMED}: {', '.join(about)}"
        _log.log(logging.WARNING if kind in _WARNINGS else logging.INFO, "node %s: %s", self._me,
                 _WORDS[kind].format(about=named, why=why or "no reason is known"),
                 extra={"facts": {"event": kind.value, "node": self._me, "count": count, "about": about,
                                  "why": why}})

    def _forget(self) -> None:
        quiet = [key for key in self._groups if key not in self._untold]
        del self._groups[quiet[0] if quiet else next(iter(self._groups))]
        self._untold = {key: None for key in self._untold if key in self._groups}
