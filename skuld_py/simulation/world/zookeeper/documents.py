"""The partition documents in ZooKeeper: reads, synced or not, and test-and-sets whose outcome may stay unknown.

A read shows what the client's server has; what a node asks for begins with a sync (see
``node.leadership.consultation``). Without one, a client at the server that is behind reads an old document, though
never an older one after a newer one.

A read leaves a watch behind, which tells once that the document has changed; those of a client that was parted
from its server are void when it is connected again.

A test-and-set whose answer is lost is UNCERTAIN (``proposals``). An operator may write by hand what is no
document, and put back later what there was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from skuld_py.errors import Malformed
from skuld_py.model.document import NOBODY, Document
from skuld_py.model.events import (
    DocumentChanged,
    DocumentRead,
    DocumentSwapped,
    Event,
    Outcome,
    ReadDocument,
    ReadFailed,
    SwapDocument,
)
from skuld_py.node.leadership.consultation import Step, steps_of
from skuld_py.simulation.world.zookeeper.proposals import Proposal, Writes
from skuld_py.simulation.world.zookeeper.sessions import Connection

SCRIBBLES = (b"", b"{", b"null", b"[]", b"\xff\xfe", b"[" * 50_000, b'{"floor": []}', b'{"epoch": -1}',
             b'{"seats": 7}', b'{"seats": [7]}', b'{"promises": []}', b'{"epoch": "1"}', b'{"format": 9}',
             b'{"freeze": {"whom": 1}}')
"""What an operator may leave where a document was."""


@attrs.frozen
class Write:
    """What took effect: together the order of epochs. A scribble over a document changes its version alone."""

    time_ms: int
    partition: int
    version: int
    document: Document


class Documents(Writes):
    """The service with its documents. ``writes``: every test-and-set that took effect."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        self.documents: dict[int, tuple[int, Document]] = {}
        self.writes: list[Write] = []
        self.on_written: list[Callable[[int, int, Document | None, Document], None]] = []
        self._begun: dict[int, None] = {}
        """Partitions that have a history: one is begun once."""
        self._returned: dict[int, int] = {}
        """How often the documents of partitions were put back."""
        self._removed: dict[int, list[tuple[int, int]]] = {}
        """When a document was removed, and how many writes there had been by then, by partition."""
        self._scribbles: dict[tuple[int, int], bytes] = {}
        """What is none, by partition and version."""
        self._watches: dict[int, dict[Connection, None]] = {}
        """Who has read a document since it changed, by partition."""
        self._missed: dict[Connection, dict[int, None]] = {}
        """Changes that a client would have heard of if it had had contact."""

    def _read_document(self, connection: Connection, effect: ReadDocument) -> None:
        failed = ReadFailed(effect.partition)
        if not self._is_served(connection) or self._random.random() < self.options.failure:
            self._fail_later(connection, failed)
            return
        for step in steps_of(effect):
            self._see(connection, self._scheduler.now_ms if step is Step.SYNC else 0)
        write = self._write_at(effect.partition, connection.seen_ms)
        self.counts["document read at a server that was behind"] += self._lag(connection) > 0
        self._answer(connection, self._event_of(effect.partition, write), failed)
        if write is not None:
            self._watch(connection, effect.partition, write.version)

    def _watch(self, connection: Connection, partition: int, seen: int) -> None:
        if not self.options.has_document_watches:
            return
        if self.documents.get(partition, (-1, NOBODY))[0] == seen:
            self._watches.setdefault(partition, {})[connection] = None
        else:
            delay_ms = self._lag(connection) + self._watch_delay()
            self._scheduler.after(delay_ms, self._tell_change, connection, partition)

    def _tell_change(self, connection: Connection, partition: int) -> None:
        if self._is_served(connection):
            self._tell(connection, DocumentChanged(partition))
        else:
            self._missed.setdefault(connection, {})[partition] = None

    def _tell_missed(self, connection: Connection) -> None:
        for partition in self._missed.pop(connection, ()):
            self._tell(connection, DocumentChanged(partition))

    def _void_watches(self, connection: Connection) -> None:
        self._missed.pop(connection, None)
        for watching in self._watches.values():
            watching.pop(connection, None)

    def _write_at(self, partition: int, time_ms: int) -> Write | None:
        """What a server shows that is as new as this."""
        removed = self._removed.get(partition, ())
        since = max((count for gone_ms, count in removed if gone_ms <= time_ms), default=0)
        return next((write for write in reversed(self.writes[since:])
                     if write.partition == partition and write.time_ms <= time_ms), None)

    def _event_of(self, partition: int, write: Write | None) -> Event:
        """As the shell reads it."""
        if write is None:
            return DocumentRead(partition, -1, NOBODY, partition in self._begun)
        raw = self._scribbles.get((partition, write.version))
        try:
            document = write.document if raw is None else Document.decode(raw)
        except Malformed:
            self.counts["document that is none"] += 1
            return ReadFailed(partition)
        return DocumentRead(partition, write.version, document)

    def scribble(self, partition: int, raw: bytes) -> bool:
        """Put something else where a document is; says whether there is one."""
        if partition not in self.documents:
            return False
        version = self._put(partition, self.documents[partition][1])
        self._scribbles[partition, version] = raw
        return True

    def correct(self, partition: int) -> None:
        """Put back what was there."""
        version, document = self.documents.get(partition, (-1, NOBODY))
        if (partition, version) in self._scribbles:
            self._put(partition, document)

    def newest(self, partition: int) -> Document:
        """The last one that was written, also where it was deleted since."""
        if partition in self.documents:
            return self.documents[partition][1]
        return next((write.document for write in reversed(self.writes) if write.partition == partition), NOBODY)

    def edit(self, partition: int, change: Callable[[Document], Document]) -> bool:
        """An operator changes a document with another tool, bound to the revision that is there; says whether
        there is one."""
        version, before = self.documents.get(partition, (-1, NOBODY))
        is_there = version >= 0 and (partition, version) not in self._scribbles
        if is_there:
            self._take(partition, before, change(before))
        return is_there

    def remove(self, partition: int) -> bool:
        """Somebody deletes a document; says whether there was one. Its versions begin anew with the next one."""
        if self.documents.pop(partition, None) is None:
            return False
        self._removed.setdefault(partition, []).append((self._scheduler.now_ms, len(self.writes)))
        self._scribbles = {place: raw for place, raw in self._scribbles.items() if place[0] != partition}
        self._tell_watchers_of(partition)
        return True

    def put_back(self, documents: Mapping[int, Document]) -> None:
        """All are lost, histories with them, and these are written in their places."""
        for partition in [*self.documents]:
            self.remove(partition)
        self._begun.clear()
        self._returned = {partition: document.put_back for partition, document in documents.items()}
        for partition, document in documents.items():
            self._put(partition, Document.decode(document.encode()))

    def heal(self) -> None:
        """End all of this."""
        for partition in self.documents:
            self.correct(partition)
        super().heal()

    def _put(self, partition: int, document: Document) -> int:
        version = self.documents.get(partition, (-1, NOBODY))[0] + 1
        self.documents[partition] = (version, document)
        self._begun[partition] = None
        self.writes.append(Write(self._scheduler.now_ms, partition, version, document))
        self._tell_watchers_of(partition)
        return version

    def _tell_watchers_of(self, partition: int) -> None:
        for connection in self._watches.pop(partition, ()):
            delay_ms = self._lag(connection) + self._watch_delay()
            self._scheduler.after(delay_ms, self._tell_change, connection, partition)

    def _swap(self, connection: Connection, effect: SwapDocument) -> None:
        strike, self.before_swap = self.before_swap, None
        if strike is not None:
            strike()
        swapped = DocumentSwapped(effect.partition, effect.document.write_id, Outcome.UNCERTAIN)

        def apply() -> Event | None:
            if not self._apply(effect):
                return None
            return attrs.evolve(swapped, outcome=Outcome.WON, version=effect.version + 1)
        refused = attrs.evolve(swapped, outcome=Outcome.LOST)
        self._propose(connection, Proposal("swap", self.options.ambiguity, apply, refused, swapped))

    def _apply(self, effect: SwapDocument) -> bool:
        version, before = self.documents.get(effect.partition, (-1, None))
        if version != effect.version or (effect.is_founding and effect.partition in self._begun):
            self.counts["begun only once"] += version == effect.version
            return False
        put_back = effect.document.put_back
        if put_back != self._returned.get(effect.partition, 0) + (effect.version < 0 and put_back > 0):
            self.counts["made of a document before it was put back"] += 1
            return False
        self._returned[effect.partition] = put_back
        self._take(effect.partition, before, effect.document)
        return True

    def _take(self, partition: int, before: Document | None, document: Document) -> None:
        written = Document.decode(document.encode())
        self._put(partition, written)
        for listener in list(self.on_written):
            listener(self._scheduler.now_ms, partition, before, written)
