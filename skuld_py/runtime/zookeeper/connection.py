"""One ZooKeeper connection of a process, and the one thread in which the process waits for ZooKeeper.

Invariants:

* kazoo's threads never wait here: listener and watches only put an order into the worker's queue, or tell of a
  break. One worker thread does all that blocks, and all it waits for has a time limit.
* A break is told at once (``on_break``, under ``lock``), and counted: what was read or armed before it counts
  for nothing after it. Being connected again always leads to an order to ``LOOK``.
* The session does not outlive the worker: an exception that nothing expects ends both, and ``on_failure`` is told.
  Otherwise kazoo's threads would keep the pulse of a node alive that watches no other.
* kazoo does not keep watches over a break: each fires once, with an event of type NONE, and is dropped. Such an
  event says nothing; the next look arms again.

Source: kazoo's notes on its threads; its connection loop, which ends on an error that it does not expect.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from typing import Any

from kazoo.exceptions import ConnectionLoss
from kazoo.protocol.states import EventType, KazooState, KeeperState

from skuld_py.model.events import Session
from skuld_py.runtime.zookeeper import clusters

_PIPELINE = 64
_REVIVALS_S = 2.0
"""The least time between two new clients."""

_log = logging.getLogger(__name__)


class Order(Enum):
    """What kazoo's threads ask of the worker."""

    LOOK = "look"
    """Something may have changed: compare all that is wished with all that is."""
    READ = "read"
    """There is a new entry in the log."""
    STOP = "stop"


class Connection:
    """A client that is replaced when it dies. ``work`` is called in the worker's thread with what was put in, and
    gives the seconds after which it wants to be called again."""

    def __init__(self, hosts: str, session_s: float, on_break: Callable[[Session], None],
                 work: Callable[[list[Any]], float], on_failure: Callable[[Exception], None]) -> None:
        self.hosts = hosts
        self.patience_s = session_s
        self.lock = threading.Lock()
        self.breaks = 0
        self.client = clusters.open_client(hosts, session_s)
        self._on_break = on_break
        self._work = work
        self._on_failure = on_failure
        self._jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._worker = threading.Thread(target=self._run, name="registry", daemon=True)
        self._is_dead = False
        self._revival_s = 0.0
        self._is_away = False

    def open(self, timeout_s: float) -> None:
        """Connect; ``Refused`` when ZooKeeper does not answer in time. The caller's thread is the worker until
        ``begin``."""
        self.client.add_listener(self._on_state)
        clusters.start(self.client, self.hosts, timeout_s)

    def begin(self) -> None:
        """Let the worker work."""
        self._worker.start()

    def close(self) -> None:
        """End the session: what is ephemeral goes at once, not when the session would time out."""
        self.client.remove_listener(self._on_state)
        if self._worker.is_alive():
            self._jobs.put(Order.STOP)
            self._worker.join(2 * self.patience_s)
        clusters.stop(self.client)

    def put(self, job: Any) -> None:
        """Have something done by the worker; from any thread."""
        self._jobs.put(job)

    # For the worker.

    @property
    def is_connected(self) -> bool:
        """Whether a request would be sent now, and not some time later."""
        return bool(self.client.connected)

    def session(self) -> int:
        """The id of the present session."""
        known = self.client.client_id
        if known is None:
            raise ConnectionLoss()
        session: int = known[0]
        return session

    def wait(self, answer: Any) -> Any:
        """The answer, or an exception: one of ``clusters.UNANSWERED`` when there is none in time."""
        return answer.get(timeout=self.patience_s)

    def revive(self) -> None:
        """kazoo's connection thread ends on an error it does not expect. A new client is needed then: the
        old one, started again, would first carry out its own order to close. It ends each time by a name that the
        servers do not know, so it is not replaced at once again: ``ConnectionLoss`` then."""
        if self._is_dead:
            if time.monotonic() < self._revival_s:
                raise ConnectionLoss()
            self._revival_s = time.monotonic() + _REVIVALS_S
            _log.error("the connection to ZooKeeper at %s ended; starting a new one", self.hosts)
            made = clusters.open_client(self.hosts, self.patience_s)  # refused, it is for the next look to do
            self.client.remove_listener(self._on_state)
            clusters.stop(self.client)
            self._is_dead, self.client = False, made
            self.client.add_listener(self._on_state)
            self.client.start_async()

    def _run(self) -> None:
        try:
            self._work_on()
        except Exception as problem:
            self._on_failure(problem)
            self.client.remove_listener(self._on_state)
            clusters.stop(self.client)

    def _work_on(self) -> None:
        pause_s = 0.0
        while True:
            jobs = self._next_jobs(pause_s)
            if Order.STOP in jobs:
                return
            pause_s = self._work(jobs)

    def _next_jobs(self, pause_s: float) -> list[Any]:
        """What is queued, as one batch; nothing after a pause without anything."""
        jobs: list[Any] = []
        with suppress(queue.Empty):
            jobs.append(self._jobs.get(timeout=max(0.0, pause_s)))
            while len(jobs) < _PIPELINE:
                jobs.append(self._jobs.get_nowait())
        return jobs

    # Called by kazoo's threads.

    def _on_state(self, state: str) -> None:
        self._log_state(state == KazooState.CONNECTED)
        if state != KazooState.CONNECTED:
            with self.lock:
                self.breaks += 1
                self._is_dead = self.client.client_state in (KeeperState.CLOSED, KeeperState.AUTH_FAILED)
                self._on_break(Session.LOST if state == KazooState.LOST else Session.SUSPENDED)
        self._jobs.put(Order.LOOK)

    def _log_state(self, is_connected: bool) -> None:
        if self._is_away and is_connected:
            _log.info("ZooKeeper at %s is back", self.hosts)
        elif not self._is_away and not is_connected:
            _log.warning("ZooKeeper at %s is out of reach, trying again; until it is back new claims wait, and no"
                         " leaders are elected; everything else goes on", self.hosts)
        self._is_away = not is_connected

    def on_watch(self, event: Any) -> None:
        """For watches on what is kept or compared."""
        if event.type != EventType.NONE:
            self._jobs.put(Order.LOOK)

    def on_entry(self, event: Any) -> None:
        """For the watch on the next entry of the log."""
        if event.type != EventType.NONE:
            self._jobs.put(Order.READ)
