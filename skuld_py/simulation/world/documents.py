"""The partition documents in ZooKeeper: reads, synced or not, and test-and-sets whose outcome may stay unknown.

A read shows what the client's server has; what a node asks for begins with a sync (see
``node.leadership.consultation``). Without one, a client at the server that is behind reads an old document, though
never an older one after a newer one.

A test-and-set whose answer is lost is UNCERTAIN, and may have been applied, may be applied yet (a frozen
server finds it in its buffer; a survivor of a lost quorum had it logged), or never. Requests and answers
of one connection keep their order, as ZooKeeper promises.

Somebody may write by hand what is no document, and put back later what there was.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import attrs

from skuld_py.errors import Malformed
from skuld_py.model.document import NOBODY, Document
from skuld_py.model.events import (
    DocumentRead,
    DocumentSwapped,
    Event,
    Outcome,
    ReadDocument,
    ReadFailed,
    SwapDocument,
)
from skuld_py.node.leadership.consultation import Step, steps_of
from skuld_py.simulation.world.scheduler import Scheduler
from skuld_py.simulation.world.zookeeper import Connection, RegistryOptions, Service

_RESURRECTED = 0.2
"""Share of the writes sent without a quorum that a surviving server had logged, and that count later."""


SCRIBBLES = (b"", b"{", b"null", b"[]", b"\xff\xfe", b"[" * 50_000, b'{"floor": []}', b'{"epoch": -1}',
             b'{"seats": 7}', b'{"seats": [7]}', b'{"promises": []}', b'{"epoch": "1"}', b'{"format": 9}',
             b'{"freeze": {"whom": 1}}')
"""What an operator may leave where a document was."""


@attrs.frozen
class Write:
    """What took effect: together the order of epochs. Who scribbles over a document changes its version alone."""

    time_ms: int
    partition: int
    version: int
    document: Document


class Registry(Service):
    """The service with its documents. ``writes``: every test-and-set that took effect."""

    def __init__(self, scheduler: Scheduler, random: Random, options: RegistryOptions) -> None:
        super().__init__(scheduler, random, options)
        self.documents: dict[int, tuple[int, Document]] = {}
        self.writes: list[Write] = []
        self.on_written: list[Callable[[int, int, Document | None, Document], None]] = []
        self.before_swap: Callable[[], None] | None = None
        """What strikes the service, once, when the next swap is on its way."""
        self._buffered: list[tuple[Connection, SwapDocument]] = []
        self._scribbles: dict[tuple[int, int], bytes] = {}
        """What is none, by partition and version."""

    def _flush(self) -> None:
        """Servers that run again carry out what they find in their buffers, if the session still lives."""
        buffered, self._buffered = self._buffered, []
        for connection, swap in buffered:
            if connection.is_stalled:
                self._buffered.append((connection, swap))
            else:
                self.counts["swap uncertain, applied late"] += self._apply(connection, swap)

    def request(self, connection: Connection, effect: ReadDocument | SwapDocument) -> None:
        """A node's request leaves; it is served in its connection's order."""
        connection.asked_ms = max(connection.asked_ms + 1, self._scheduler.now_ms + self._leg())
        serve = self._read if isinstance(effect, ReadDocument) else self._swap
        self._scheduler.at(connection.asked_ms, serve, connection, effect)

    def _answer(self, connection: Connection, event: Event, otherwise: Event) -> None:
        if connection.is_choking:
            connection.is_choking = False
            self.counts["answer too large"] += 1
            self._break(connection, self._leg() * 3)
            self._fail_later(connection, otherwise)
            return
        connection.told_ms = max(connection.told_ms + 1, self._scheduler.now_ms + self._leg())
        self._scheduler.at(connection.told_ms, self._hand_over, connection, event, otherwise)

    def _read(self, connection: Connection, effect: ReadDocument) -> None:
        failed = ReadFailed(effect.partition)
        is_served = self._is_reachable(connection) and connection.session in self._open
        if not is_served or self._random.random() < self.options.failure:
            self._fail_later(connection, failed)
            return
        for step in steps_of(effect):
            self._see(connection, self._scheduler.now_ms if step is Step.SYNC else 0)
        write = self._write_at(effect.partition, connection.seen_ms)
        self.counts["document read at a server that was behind"] += self._lag(connection) > 0
        self._answer(connection, self._event_of(effect.partition, write), failed)

    def _write_at(self, partition: int, time_ms: int) -> Write | None:
        """What a server shows that is as new as this."""
        return next((write for write in reversed(self.writes)
                     if write.partition == partition and write.time_ms <= time_ms), None)

    def _event_of(self, partition: int, write: Write | None) -> Event:
        """As the shell reads it."""
        if write is None:
            return DocumentRead(partition, -1, NOBODY)
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
        version, document = self.documents[partition]
        if (partition, version) in self._scribbles:
            self._put(partition, document)

    def heal(self) -> None:
        """End all of this."""
        for partition in self.documents:
            self.correct(partition)
        super().heal()

    def _put(self, partition: int, document: Document) -> int:
        version = self.documents.get(partition, (-1, NOBODY))[0] + 1
        self.documents[partition] = (version, document)
        self.writes.append(Write(self._scheduler.now_ms, partition, version, document))
        return version

    def _swap(self, connection: Connection, effect: SwapDocument) -> None:
        swapped = DocumentSwapped(effect.partition, effect.document.write_id, Outcome.UNCERTAIN)
        strike, self.before_swap = self.before_swap, None
        if strike is not None:
            strike()
        if connection.is_stalled or (self.is_frozen and not connection.is_cut):
            self._buffered.append((connection, effect))
            self._fail_later(connection, swapped)
            return
        if not self.is_quorate:
            self._propose_in_vain(connection, effect)
            self._fail_later(connection, swapped)
            return
        is_ambiguous = self._random.random() < self.options.ambiguity
        if is_ambiguous and self._random.random() < 0.3:
            self.counts["connection broken at a swap"] += 1
            self._break(connection, self._random.randint(1, self.options.session_ms * 3 // 2))
            connection.is_stalled = True
            self._swap(connection, effect)
            return
        if connection.is_cut or connection.is_broken or (is_ambiguous and self._random.random() < 0.5):
            self.counts["swap uncertain, not applied"] += 1
            self._fail_later(connection, swapped)
            return
        if connection.session not in self._open:
            self._fail_later(connection, swapped)
            return
        outcome = Outcome.WON if self._apply(connection, effect) else Outcome.LOST
        self.counts[f"swap {outcome.value}"] += 1
        if is_ambiguous and outcome is Outcome.WON:
            self.counts["swap uncertain, applied"] += 1
            outcome = Outcome.UNCERTAIN
            if self._random.random() < 0.3:
                self.counts["session ended behind a swap"] += 1
                self.expire(connection)
        verdict = attrs.evolve(swapped, outcome=outcome,
                               version=effect.version + 1 if outcome is Outcome.WON else -1)
        self._answer(connection, verdict, swapped)

    def _propose_in_vain(self, connection: Connection, effect: SwapDocument) -> None:
        self.counts["swap without quorum"] += 1
        if self._random.random() < _RESURRECTED:
            self._buffered.append((connection, effect))

    def _apply(self, connection: Connection, effect: SwapDocument) -> bool:
        version, before = self.documents.get(effect.partition, (-1, None))
        if connection.session not in self._open or version != effect.version:
            return False
        document = Document.decode(effect.document.encode())
        self._put(effect.partition, document)
        for listener in list(self.on_written):
            listener(self._scheduler.now_ms, effect.partition, before, document)
        return True
