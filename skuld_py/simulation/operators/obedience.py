"""O1: no node obeys a wish, or moves a leadership, that it knows to be over.

A leader that reads a newer document has lost: what stands in that document is for the leader that it names. Votes
and test-and-sets mostly hide a breach of this from all others, so it is looked for where it begins: in what a node
that leads asks of others once it was given a newer document.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from skuld_py.model.events import DocumentRead, Send
from skuld_py.model.messages import Abdicate, RequestVote
from skuld_py.node.process import Told, Wish
from skuld_py.simulation.cluster import Cluster
from skuld_py.simulation.world.process import Process

DEPOSED_OBEY = "O1 a leader that knows of a newer one moves no leadership"
Blame = Callable[[str, str], None]


class Attended(Cluster):
    """A cluster that is looked at for this. A leader asks for votes without a trial; so does a candidate that had
    one, for an epoch of its own."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self._read: dict[tuple[str, int], int] = {}
        """The newest epoch of a document that a process was given, by its boot and the partition."""
        self._leading: dict[tuple[str, int], int] = {}
        """The epochs that it led when its turn began."""
        self.on_candidacy: list[Callable[[str, RequestVote], None]] = []
        """Each is given a node that asks for votes, not on trial, before it does."""

    def begin_anew(self, name: str) -> None:
        """A node that is down has nothing, and nobody knows any more that there was one: it comes as a new one."""
        for partition in range(self.partitions):
            self.monitor.forget(name, partition)
            self.notetaker.note_trusted(name, partition)

    def before_turn(self, process: Process, events: Sequence[Told]) -> None:
        """Note what it leads, and what it is given."""
        super().before_turn(process, events)
        if process.node is None:
            return
        for event in events:
            if type(event) is DocumentRead:
                where = f"{process.name}.{process.boots}", event.partition
                self._read[where] = max(event.document.epoch, self._read.get(where, 0))
        for vnode in process.node.view.vnodes:
            where = f"{process.name}.{process.boots}", vnode.partition
            self._leading[where] = vnode.election.epoch if vnode.election.is_leading else 0

    def let_out(self, process: Process, effects: Sequence[Wish]) -> None:
        """Judge what it asks of others."""
        for effect in effects:
            message = effect.message if type(effect) is Send else None
            if isinstance(message, RequestVote) and not message.is_trial:
                for listener in self.on_candidacy:
                    listener(process.name, message)
            if isinstance(message, Abdicate) or (isinstance(message, RequestVote) and not message.is_trial):
                self._judge(process, message)
        super().let_out(process, effects)

    def _judge(self, process: Process, message: Abdicate | RequestVote) -> None:
        where = f"{process.name}.{process.boots}", message.partition
        led, known = self._leading.get(where, 0), self._read.get(where, 0)
        self.monitor.counts[DEPOSED_OBEY] += bool(led)
        if led and known > led:
            self.monitor.blame(DEPOSED_OBEY, f"{process.name} leads {led}, was given {known}, and asks {message}")
