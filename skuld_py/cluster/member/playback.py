"""The newest entries that a member has played, for those that follow the log through it, and the replica then.

It is kept in memory once for all followers: ``ENTRIES_MAX`` entries and ``BYTES_MAX`` bytes of what is told of
each. That is more than stands in the log, which is collected every thousand entries; so whoever asks for what is
not here any more is told where to begin, and reads the replica instead.

Rejected: reading ZooKeeper for those that are behind. Each follower would cost it what a member does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice

import attrs

from skuld_py.cluster.log.play import Played
from skuld_py.cluster.log.replica import Replica

ENTRIES_MAX = 4_000
BYTES_MAX = 4 << 20
ROW_BYTES = 200
VALUE_CHARS = 1_000
"""Of what an entry changed: the ids of hundreds that joined at once are cut."""


@attrs.frozen
class Happening:
    """An entry, and what became of it. ``played_ms``: when it was played here, 0 for what was found at the start;
    ``kind`` and ``writer`` are empty where it cannot be read."""

    position: int
    played_ms: int
    kind: str
    writer: str
    outcome: str
    reason: str
    changes: tuple[tuple[str, str], ...]

    @property
    def weight(self) -> int:
        """About how many bytes it takes."""
        return ROW_BYTES + len(self.reason) + sum(len(name) + len(value) for name, value in self.changes)


class Playback:
    """``replica`` is the newest, ``is_current`` once the log was read to its end. ``fresh``: what was played since
    somebody took it out. ``changed`` is not empty when workflows are others than when it was cleared."""

    def __init__(self) -> None:
        self.replica = Replica()
        self.is_current = False
        self.fresh: dict[int, Played] = {}
        self.changed: dict[str, None] = {}
        self._kept: deque[Happening] = deque()
        self._weight = 0
        self._next = 0

    @property
    def first(self) -> int:
        """The position of the oldest entry that is kept; that of the next one if there is none."""
        return self._kept[0].position if self._kept else self._next

    @property
    def next(self) -> int:
        """The position of the entry that comes next."""
        return self._next

    def note(self, now_ms: int, played: Played) -> None:
        """An entry was played."""
        self._jump(played.position)
        entry = played.entry
        kind, writer = (entry.command.kind, entry.writer) if entry is not None else ("", "")
        changes = tuple((name, value[:VALUE_CHARS]) for name, value in played.diff.items())
        happening = Happening(played.position, now_ms if self.is_current else 0, kind, writer,
                              played.outcome.value, played.reason, changes)
        self._kept.append(happening)
        self._weight += happening.weight
        self._next = played.position + 1
        self.fresh[played.position] = played
        while len(self._kept) > ENTRIES_MAX or self._weight > BYTES_MAX:
            self._weight -= self._kept.popleft().weight

    def settle(self, replica: Replica, is_current: bool) -> None:
        """So the member stands after a step."""
        if replica.workflows is not self.replica.workflows:
            self.changed["workflows"] = None
        self.replica, self.is_current = replica, is_current
        self._jump(replica.version + 1)

    def since(self, position: int, most: int) -> Sequence[Happening]:
        """Entries from a position on, or from the oldest."""
        begin = max(position - self.first, 0)
        return [*islice(self._kept, begin, begin + most)]

    def _jump(self, position: int) -> None:
        """What lies between was never played here: nothing before it may look as if it joined on."""
        if position > self._next:
            self._kept.clear()
            self._weight, self._next = 0, position
