"""The partition documents in ZooKeeper, read and swapped.

Every effect is answered by exactly one event. A swap whose answer is missing is ``UNCERTAIN``: it may even be
carried out later. Its version makes that harmless, its write id makes it recognisable.

Rejected: kazoo's ``retry`` for swaps (a repeated swap that won the first time looks lost).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from kazoo.exceptions import BadVersionError, ConnectionLoss, KazooException, NodeExistsError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

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
from skuld_py.runtime.connection import Connection

DOCUMENT_BYTES_MAX = 64 << 10
"""ZooKeeper answers a node beyond 1 MiB by cutting the connection, which would look like a broken one."""

_DEFINITELY_LOST = (BadVersionError, NodeExistsError, NoNodeError)

_log = logging.getLogger(__name__)


class Documents:
    """Carries out a node's effects on documents, in the worker's thread."""

    def __init__(self, connection: Connection, root: str, emit: Callable[[Event], None]) -> None:
        self._connection = connection
        self._root = root
        self._emit = emit

    def carry_out(self, effects: Sequence[ReadDocument | SwapDocument]) -> None:
        """Ask all, then wait for all: a start reads every partition in few round trips."""
        answers = [self._ask(effect) for effect in effects]
        for effect, answer in zip(effects, answers, strict=True):
            if isinstance(effect, ReadDocument):
                self._emit(self._read(effect, answer))
            else:
                outcome, version = self._outcome(answer)
                self._emit(DocumentSwapped(effect.partition, effect.document.write_id, outcome, version))

    def _ask(self, effect: ReadDocument | SwapDocument) -> Any:
        """The answer to come; a ready one when it is clear without asking; None when nobody is there."""
        client = self._connection.client
        if not client.connected:
            return None
        path = f"{self._root}/partitions/{effect.partition}"
        if isinstance(effect, ReadDocument):
            client.sync_async(path)  # requests of a session are answered in order: no need to wait
            return client.get_async(path)
        raw = effect.document.encode()
        if len(raw) > DOCUMENT_BYTES_MAX:
            _log.error("the document of partition %d has %d bytes, not written", effect.partition, len(raw))
            return BadVersionError()
        if effect.version < 0:
            return client.create_async(path, raw)
        return client.set_async(path, raw, version=effect.version)

    def _read(self, effect: ReadDocument, answer: Any) -> Event:
        try:
            raw, stat = self._wait(answer)
            return DocumentRead(effect.partition, stat.version, Document.decode(raw))
        except NoNodeError:
            return DocumentRead(effect.partition, -1, NOBODY)
        except (KazooException, KazooTimeoutError, Malformed) as problem:
            _log.warning("cannot read the document of partition %d: %r", effect.partition, problem)
            return ReadFailed(effect.partition)

    def _outcome(self, answer: Any) -> tuple[Outcome, int]:
        """How a swap ended, and the version it made; a creation answers with the path: version 0."""
        try:
            stat = self._wait(answer)
            return Outcome.WON, 0 if isinstance(stat, str) else stat.version
        except _DEFINITELY_LOST:
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
