"""The coordination log of a simulated cluster, played once for all: at one position all members hold one replica.

Every entry goes through its encoding and ``play``, as a member's would. That members share what comes of it is
what lets one process hold ten thousand of them. That they would come to the same on their own is looked at every
now and then (``SAMPLE``): a replica that took another way, through its text and the entries after it, must have
the same digest.
"""

from __future__ import annotations

from collections import deque
from itertools import islice

import attrs

from skuld_py.cluster.log.canonical import from_text
from skuld_py.cluster.log.commands import Command, JoinDirect, Reaction
from skuld_py.cluster.log.entries import Entry
from skuld_py.cluster.log.play import Outcome, play
from skuld_py.cluster.log.replica import Replica
from skuld_py.simulation.coordination.scale.concerned import concerned

CHUNK_BYTES = 512 << 10
"""Of the origin, in one znode."""
WINDOW, WINDOW_MEMBERS = 24, 400_000
"""Keep at least 24 replicas for members that lag, and more while their members add up to 400,000."""
SAMPLE, SAMPLE_LENGTH = 1_000, 20
"""Every 1,000 entries take the replica's text, and compare it 20 entries later."""
CONTACTS = 128
"""How many of the members that the oldest entries name are asked to let others in: more would write more entries,
fewer would each lend their replica to more joiners."""


@attrs.frozen
class News:
    """An entry in the log and what it means to the processes that it concerns."""

    position: int
    command: Command
    size: int
    reactions: tuple[Reaction, ...]
    concerned: tuple[str, ...]
    is_moving: bool
    """Whether placement must be decided anew."""


class Log:
    """``origin`` is the first position behind the origin; ``faults`` says what must not have happened."""

    def __init__(self, replicas: int = 3) -> None:
        self.replica = Replica(replicas=replicas)
        self.origin = self.origin_bytes = 0
        self.faults: list[str] = []
        self.samples = 0
        self._arrivals: deque[tuple[int, tuple[str, ...]]] = deque()
        """Entries that let joiners in, and the members that they name."""
        self._sizes = [0]
        self._window: deque[Replica] = deque()
        self._measured = (1, 0)
        self._sample = (-1, "")
        self._raws: list[bytes] = []
        """Since the sample."""

    @property
    def end(self) -> int:
        """The position that the next entry gets."""
        return len(self._sizes) - 1

    def size(self, start: int, end: int) -> int:
        """Bytes of the entries in between."""
        return self._sizes[end] - self._sizes[start]

    def append(self, writer: str, seq: int, command: Command) -> News:
        """Write and play an entry."""
        position, old = self.end, self.replica
        raw = Entry(writer, seq, command).encode()
        played = play(old, position, raw)
        new = self.replica = played.replica
        if played.outcome in (Outcome.FAILED, Outcome.REFUSED, Outcome.REPEATED):
            self.faults.append(f"entry {position}, {command.kind} of {writer}, is {played.outcome.value}"
                               f" {played.reason}")
        self._sizes.append(self._sizes[-1] + len(raw))
        self._window.append(new)
        while len(self._window) > max(WINDOW, WINDOW_MEMBERS // (len(new.writers) + 1)):
            self._window.popleft()
        self._raws.append(raw)
        self._look()
        if new.members is not old.members and len(new.members) > len(old.members):
            came = (each.id for each in command.joiners) if isinstance(command, JoinDirect) else ()
            self._arrivals.append((position, (writer, *came)))
        return News(position, command, len(raw), played.reactions, concerned(old, new, command),
                    new.nodes is not old.nodes)

    def replica_at(self, position: int) -> Replica:
        """What a member holds that has played the entry at a position; the newest if that is too long ago."""
        at = position - self.end + len(self._window)
        return self._window[at] if 0 <= at < len(self._window) else self.replica

    def contacts(self, keep: int) -> tuple[str, ...]:
        """Members named in the oldest entries that let joiners in, ``keep`` before the origin or later."""
        while self._arrivals and self._arrivals[0][0] < self.origin - keep:
            self._arrivals.popleft()
        return tuple(islice((name for _, names in self._arrivals for name in names), CONTACTS))

    def collect(self) -> int:
        """The newest replica becomes the origin; returns how many entries are behind it."""
        gone = self.end - self.origin
        self.origin, self.origin_bytes = self.end, self.text_bytes()
        return gone

    def text_bytes(self) -> int:
        """Length of the newest replica's text: measured, then scaled until there is a tenth more or less in it."""
        replica = self.replica
        rows = 16 + sum(map(len, (replica.members, replica.nodes, replica.writers, replica.left, replica.aborted,
                                  replica.joiners)))
        measured_rows, measured = self._measured
        if abs(rows - measured_rows) * 10 > measured_rows:
            measured_rows, measured = self._measured = (rows, len(replica.text()))
        return measured * rows // measured_rows

    def _look(self) -> None:
        if self.end % SAMPLE == 0:
            self.sample()
        elif self.end % SAMPLE == SAMPLE_LENGTH and self._sample[1]:
            self.compare()

    def sample(self) -> None:
        """Take the text of the replica here."""
        self._sample = (self.end - 1, self.replica.text())
        self._raws.clear()

    def compare(self) -> None:
        """Whether the sample's text, and the entries since, come to the replica that is here."""
        version, text = self._sample
        replica = from_text(Replica, text) if text else Replica(replicas=self.replica.replicas)
        for position, raw in enumerate(self._raws, version + 1):
            replica = play(replica, position, raw).replica
        self.samples += 1
        if replica.digest() != self.replica.digest():
            self.faults.append(f"the replica at {self.end - 1} is another one when it is played from {version} on")
