"""What a member wants to append: in order, one at a time, each command once until it has been played.

A command is held from the moment it is wished until this member has played it (or an entry after it); the same
wish again meanwhile adds nothing. An append in doubt is made again under its number: whichever copy stands first
counts (``entries``). Before it leaves, a command that has lost its meaning is dropped.

Numbers never begin again within a process, so an answer that belongs to an earlier life is recognised.

Bounds: as many commands as there are different wishes: a few of the joining protocol, one leave for each id
watched, one change for each slot.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from skuld_py.cluster.log.commands import Command
from skuld_py.cluster.log.entries import Entry
from skuld_py.cluster.log.replica import Replica
from skuld_py.model.coordination import Append, Appended, AppendUncertain


@attrs.frozen
class Sent:
    """An entry on its way: ``position`` is where it stands, -1 while that is not known."""

    seq: int
    command: Command
    position: int = -1
    raw: bytes = b""
    """As it leaves: under the id of the life that wished it."""


@attrs.define
class Outbox:
    """``writer`` is the present life."""

    writer: str = ""
    _seq: int = 0
    _waiting: list[Command] = attrs.field(factory=list)
    _sent: Sent | None = None
    """The append that is outstanding."""
    _is_void: bool = False
    """Whether what is outstanding need not be repeated: played already, or of an earlier life."""
    _is_in_doubt: bool = False
    """Whether it was answered by a doubt and is to be made again."""
    _landed: list[Sent] = attrs.field(factory=list)
    """What stands in the log and has not been played here yet."""

    def begin(self, writer: str) -> None:
        """A new life: what the last one wished is void."""
        self.writer, self._is_void = writer, True
        self._waiting.clear()
        self._landed.clear()
        self._drop_doubt()

    def void(self) -> None:
        """The session is lost: no answer will come."""
        self._sent, self._is_in_doubt = None, False

    def holds(self, command: Command) -> bool:
        """Whether a command waits, is on its way, or stands unplayed."""
        return (command in self._waiting or (self._sent is not None and not self._is_void
                                             and self._sent.command == command)
                or any(sent.command == command for sent in self._landed))

    def add(self, command: Command) -> None:
        """Wish for a command, unless it is held already."""
        if not self.holds(command):
            self._waiting.append(command)

    def settle(self, replica: Replica) -> None:
        """Let go of what this replica has played."""
        written = replica.writers.get(self.writer)
        seq = written.seq if written is not None else -1
        self._landed = [sent for sent in self._landed if sent.seq > seq and sent.position > replica.version]
        if self._sent is not None and self._sent.seq <= seq:
            self._is_void = True
            self._drop_doubt()

    def next(self, is_wanted: Callable[[Command], bool]) -> list[Append]:
        """The append to make now, if any."""
        self.prune(is_wanted)
        if self._sent is not None:
            is_again, self._is_in_doubt = self._is_in_doubt, False
            return [Append(self._sent.seq, self._sent.raw)] if is_again else []
        if not self._waiting:
            return []
        command = self._waiting.pop(0)
        self._sent = Sent(self._seq, command, raw=Entry(self.writer, self._seq, command).encode())
        self._is_void = self._is_in_doubt = False
        self._seq += 1
        return [Append(self._sent.seq, self._sent.raw)]

    def prune(self, is_wanted: Callable[[Command], bool]) -> None:
        """Drop what has lost its meaning and need not have left."""
        if self._sent is not None and self._is_in_doubt and not is_wanted(self._sent.command):
            self._sent = None
        self._waiting = [command for command in self._waiting if is_wanted(command)]

    def on_appended(self, event: Appended) -> bytes:
        """It stands: the entry, empty if it was none of those outstanding."""
        if self._sent is None or event.seq != self._sent.seq:
            return b""
        if not self._is_void:
            self._landed.append(attrs.evolve(self._sent, position=event.position))
        raw, self._sent = self._sent.raw, None
        return raw

    def on_uncertain(self, event: AppendUncertain) -> None:
        """It may stand or not: append it again, unless it is known to stand or not wanted any more."""
        if self._sent is not None and event.seq == self._sent.seq:
            self._is_in_doubt = True
            if self._is_void:
                self._drop_doubt()

    def _drop_doubt(self) -> None:
        if self._is_in_doubt:
            self._sent, self._is_in_doubt = None, False
