"""The partition documents in ZooKeeper, read and swapped.

Every effect is answered by exactly one event. A swap whose answer is missing is ``UNCERTAIN``: it may even be
carried out later. Its version makes that harmless, its write id makes it recognisable. It writes its revision into
the partition's history, too, in the same transaction.

Every read leaves a watch behind, which tells once that the document has changed since. Watches go with the
connection; a node that is connected again reads anew (``node.leadership.watching``).

Rejected: kazoo's ``retry`` for swaps (a repeated swap that won the first time looks lost).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import attrs
from kazoo.exceptions import (
    BadVersionError,
    ConnectionLoss,
    KazooException,
    NodeExistsError,
    NoNodeError,
    RolledBackError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import EventType, WatchedEvent

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
    ReadRevisions,
    RevisionsRead,
    SwapDocument,
)
from skuld_py.node.leadership.consultation import Step, steps_of
from skuld_py.runtime.zookeeper.connection import Connection
from skuld_py.runtime.zookeeper.histories import Histories
from skuld_py.runtime.zookeeper.patience import Patience

DOCUMENT_BYTES_MAX = 64 << 10
"""ZooKeeper answers a node beyond 1 MiB by cutting the connection, which would look like a broken one."""

_DEFINITELY_LOST = (BadVersionError, NodeExistsError, NoNodeError)
"""What became of a document's part of a transaction that did nothing because of it."""

_log = logging.getLogger(__name__)


class Documents:
    """Carries out a node's effects on documents, in the worker's thread."""

    def __init__(self, connection: Connection, root: str, emit: Callable[[Event], None],
                 writer: str = "") -> None:
        self._connection = connection
        self._root = root
        self._emit = emit
        self._histories = Histories(connection, root, writer)
        self._patience: dict[int, Patience] = {}
        """Of partitions whose document cannot be read."""
        self._doubted: dict[int, Any] = {}
        """Partitions of which a swap failed by how often the document was put back; and how often that was, as it
        was asked for."""
        self._watches: dict[int, Callable[[WatchedEvent], None]] = {}
        """One function for each partition: kazoo calls it once however often it was given."""

    def carry_out(self, effects: Sequence[ReadDocument | SwapDocument]) -> None:
        """Ask all, then wait for all: a start reads every partition in few round trips."""
        answers = [self._ask(effect) for effect in effects]
        for effect, answer in zip(effects, answers, strict=True):
            if isinstance(effect, ReadDocument):
                self._emit(self._read(effect, answer))
            else:
                outcome, version = self._outcome(effect.partition, answer)
                self._emit(DocumentSwapped(effect.partition, effect.document.write_id, outcome, version))

    def recall(self, effect: ReadRevisions) -> None:
        """Read a history. Nothing waits for it but people, so it is the one thing of its pass."""
        is_connected = self._connection.client.connected
        self._emit(self._histories.read(effect.partition, effect.most) if is_connected else
                   RevisionsRead(effect.partition, effect.most, None))

    def _ask(self, effect: ReadDocument | SwapDocument) -> Any:
        """The answer to come; a ready one when it is clear without asking; None when not connected."""
        if not self._connection.client.connected:
            return None
        return [self._request(step, effect) for step in steps_of(effect)][-1]

    def _request(self, step: Step, effect: ReadDocument | SwapDocument) -> Any:
        client, path = self._connection.client, f"{self._root}/partitions/{effect.partition}"
        if isinstance(effect, ReadDocument):
            if step is Step.SYNC:
                return client.sync_async(path)
            if effect.partition in self._doubted:
                self._doubted[effect.partition] = self._histories.ask_put_back(effect.partition)
            return client.get_async(path, watch=self._watch_of(effect.partition))
        raw = effect.document.encode()
        if len(raw) > DOCUMENT_BYTES_MAX:
            _log.error("the document of partition %d has %d bytes, not written", effect.partition, len(raw))
            return BadVersionError()
        self._histories.make(effect)
        if step is Step.CREATE:
            client.create_async(f"{self._root}/partitions", b"")  # somebody may have deleted it, too
        transaction = client.transaction()
        if step is Step.CREATE:
            transaction.create(path, raw)
        else:
            transaction.set_data(path, raw, version=effect.version)
        self._histories.enter(transaction, effect)
        self._histories.bind(transaction, effect)
        return transaction.commit_async()

    def _watch_of(self, partition: int) -> Callable[[WatchedEvent], None]:
        return self._watches.setdefault(partition, partial(self._on_watch, partition))

    def _on_watch(self, partition: int, event: WatchedEvent) -> None:
        """By kazoo's thread; also for each watch that ends with the connection."""
        if event.type != EventType.NONE:
            self._emit(DocumentChanged(partition))

    def _read(self, effect: ReadDocument, answer: Any) -> Event:
        try:
            raw, stat = self._wait(answer)
            document = Document.decode(raw)
            self._patience.pop(effect.partition, None)
            return DocumentRead(effect.partition, stat.version, self._mended(effect.partition, document))
        except NoNodeError:  # which leaves no watch behind
            self._connection.client.exists_async(f"{self._root}/partitions/{effect.partition}",
                                                 watch=self._watch_of(effect.partition))
            return self._gone(effect.partition)
        except (KazooException, KazooTimeoutError, Malformed) as problem:
            self._complain(effect.partition, problem)
            return ReadFailed(effect.partition)

    def _mended(self, partition: int, document: Document) -> Document:
        """With how often it was put back, where a swap has failed by that."""
        asked = self._doubted.get(partition)
        if asked is None:
            return document
        begun = self._wait(asked)
        del self._doubted[partition]
        put_back = document.put_back if begun is None else max(document.put_back, begun.version)
        return attrs.evolve(document, put_back=put_back)

    def _gone(self, partition: int) -> Event:
        """There is no document; whether there was one is asked behind that, so what was begun meanwhile counts. It
        may have been deleted as somebody had written it, so it is mended as others are."""
        try:
            return DocumentRead(partition, -1, self._mended(partition, NOBODY), self._histories.has(partition))
        except (KazooException, KazooTimeoutError) as problem:
            self._complain(partition, problem)
            return ReadFailed(partition)

    def _complain(self, partition: int, problem: Exception) -> None:
        """Log it in one line, and ever more seldom; the document is asked for much more often."""
        now_s = time.monotonic()
        patience = self._patience.setdefault(partition, Patience())
        if now_s >= patience.until_s:
            pause_s = patience.fail(now_s)
            _log.warning("cannot read %s/partitions/%d, silent about it for %d s: %r", self._root, partition,
                         pause_s, problem)

    def _outcome(self, partition: int, answer: Any) -> tuple[Outcome, int]:
        """How a swap ended, and the version it made; a creation answers with the path: version 0. Without the
        revision in the history there is none."""
        try:
            stat, revision, *bound = self._wait(answer)
            if isinstance(stat, RolledBackError) and any(isinstance(each, BadVersionError) for each in bound):
                self._doubted.setdefault(partition, None)
            if not isinstance(stat, _DEFINITELY_LOST):
                self._histories.settle(partition, revision)
            if isinstance(stat, Exception):
                raise stat
            return Outcome.WON, 0 if isinstance(stat, str) else stat.version
        except (*_DEFINITELY_LOST, RolledBackError):
            return Outcome.LOST, -1
        except (KazooException, KazooTimeoutError) as problem:
            _log.warning("a swap of a partition document is uncertain: %r", problem)
            return Outcome.UNCERTAIN, -1

    def _wait(self, answer: Any) -> Any:
        if answer is None:
            raise ConnectionLoss()
        if isinstance(answer, Exception):
            raise answer
        return self._connection.wait(answer)
