"""The thread that enqueues what segments emitted, once their completions are written, and tells the feeders.

It takes all that waits for it at once: so of a batch of segments the children are one request for each step that
they are for, and the acks are one task for each input. Meanwhile the next batch runs, and one more is claimed.

Invariants:

* Nothing is enqueued of a completion that another one may yet replace (``segments.is_sole``): the feeder is told
  that these segments have ended, and looks after them.
* What cannot be enqueued within ``PATIENCE_S`` is left to the feeder, too, which finds it missing. So this process
  may end, or drop anything, at any point.

Rejected: to enqueue in the thread that writes completions. It would wait for two answers more before it wrote the
next ones.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import attrs

from skuld_py.client.options import Retry
from skuld_py.client.steady import sleep, steady_s
from skuld_py.errors import SkuldError
from skuld_py.worker.scribe import is_passing
from skuld_py.worker.workflows.children import Completed, Nursery
from skuld_py.workflow.acking.acks import ACKS_MAX, Acks
from skuld_py.workflow.segments import ack_of, ack_queue

T = TypeVar("T")
PATIENCE_S = 30.0
AGAIN_S = 0.5

_log = logging.getLogger(__name__)


class Enqueueing(Protocol):
    """Who stores tasks: a client."""

    def enqueue_many(self, queue: str, payloads: Iterable[bytes], *, ids: Sequence[bytes | str] | None = None,
                     retry: Retry | None = None, headers: Mapping[str, str] | None = None) -> Any:
        """Many of a queue."""


@attrs.frozen
class Written:
    """A completion that is written. ``is_sure``: no other one can replace it."""

    completed: Completed
    nursery: Nursery
    workflow: str
    is_sure: bool


class Emitter:
    """Enqueues children and sends acks."""

    def __init__(self, client: Enqueueing) -> None:
        self._client = client
        self._inbox: queue.SimpleQueue[list[Written] | threading.Event | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._is_closing = False

    def emit(self, written: list[Written]) -> None:
        """These are written. In one thread."""
        self._inbox.put(written)
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="emitter", daemon=True)
            self._thread.start()

    def settle(self, timeout_s: float) -> bool:
        """Wait for what was emitted before; whether it is done in time."""
        is_settled = threading.Event()
        self._inbox.put(is_settled)
        return self._thread is None or is_settled.wait(timeout_s)

    def close(self, timeout_s: float) -> bool:
        """Enqueue what is left; whether that succeeded in time."""
        if self._thread is None:
            return True
        self._is_closing = True
        self._inbox.put(None)
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _serve(self) -> None:
        is_open = True
        while is_open:
            taken = [self._inbox.get()]
            while not self._inbox.empty():
                taken.append(self._inbox.get_nowait())
            is_open = None not in taken
            written = [each for some in taken if isinstance(some, list) for each in some]
            try:
                self._emit(written)
            except Exception:
                _log.exception("what %d segments emitted is left to the feeder", len(written))
            for each in taken:
                if isinstance(each, threading.Event):
                    each.set()

    def _emit(self, written: Sequence[Written]) -> None:
        until = steady_s() + PATIENCE_S
        for nursery, some in _by(written, lambda each: each.nursery):
            for lot in nursery.lots(each.completed for each in some if each.is_sure):
                self._store(until, lot.queue, lot.payloads, ids=lot.ids, **lot.options)
        for name, some in _by(written, lambda each: ack_queue(each.workflow, each.completed.source)):
            for start in range(0, len(some), ACKS_MAX):
                self._store(until, name, [_acks(some[start : start + ACKS_MAX]).encode()])

    def _store(self, until: float, name: str, payloads: Sequence[bytes], **options: Any) -> None:
        """Until it is stored, or it is clear that it will not be."""
        while True:
            try:
                self._client.enqueue_many(name, payloads, **options)
                return
            except SkuldError as error:
                if not is_passing(error) or steady_s() >= until or self._is_closing:
                    _log.warning("%d tasks for %s are left to the feeder: %s", len(payloads), name, error)
                    return
            sleep(AGAIN_S)


def _acks(written: Sequence[Written]) -> Acks:
    sure = [each.completed for each in written if each.is_sure]
    return Acks(tuple((each.root, each.segment, ack_of(each.segment, each.token, len(each.emission.rows)))
                      for each in sure),
                tuple((each.completed.root, each.completed.segment) for each in written if not each.is_sure))


def _by(written: Iterable[Written], key: Callable[[Written], T]) -> Iterable[tuple[T, list[Written]]]:
    found: dict[T, list[Written]] = {}
    for each in written:
        found.setdefault(key(each), []).append(each)
    return found.items()
