"""The thread that claims tasks for a worker: as many as it has room for, and not one more.

Invariants:

* Room is a count of permits. A request takes all there are, keeps one for each task it is granted, and gives
  the rest back; a task that ends gives its permit back. So claims under way and claims not yet seen count.
* A request waits at the cluster for at most ``WAIT_S``: it cannot be called off, and a task granted after the
  worker has gone would lie until its lease ends. What comes while closing is given back.
* Claims are handed over before their tasks are read: they are held meanwhile, however long the reading takes.
  What cannot be read counts as never claimed before.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable

from skuld_py.client.client import Claim, Client
from skuld_py.errors import SkuldError
from skuld_py.model.task import Task

WAIT_S = 1.0
PAUSE_S, PAUSE_S_MAX = 0.5, 10.0

_log = logging.getLogger(__name__)


class Claimer:
    """Claims from one queue, by a client of its own. Callbacks come from its thread, ``on_end`` last."""

    def __init__(self, client: Client, queue: str, lease_s: float, permits: int, *,
                 on_claims: Callable[[list[Claim]], None],
                 on_known: Callable[[list[Claim], dict[bytes, Task]], None],
                 on_error: Callable[[SkuldError], None],
                 on_end: Callable[[], None]) -> None:
        self._client = client
        self._queue = queue
        self._lease_s = lease_s
        self._permits = permits
        self._on_claims = on_claims
        self._on_known = on_known
        self._on_error = on_error
        self._on_end = on_end
        self._is_paused = True
        self._is_closing = False
        self._changed = threading.Condition()

    def start(self) -> None:
        """Start the thread; it claims nothing until ``resume``."""
        threading.Thread(target=self._serve, name="claimer", daemon=True).start()

    def give(self, permits: int) -> None:
        """Note room for this many more tasks."""
        with self._changed:
            self._permits += permits
            self._changed.notify()

    def pause(self) -> None:
        """Claim nothing for now; a request under way may still bring something."""
        self._is_paused = True

    def resume(self) -> None:
        """Claim again."""
        with self._changed:
            self._is_paused = False
            self._changed.notify()

    def close(self) -> None:
        """Claim nothing any more. ``on_end`` is called when the last request is over."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()

    def _serve(self) -> None:
        with self._client:
            self._claim_until_closed()
        self._on_end()

    def _claim_until_closed(self) -> None:
        pause_s = PAUSE_S
        while permits := self._take():
            try:
                claims = self._client.claim(self._queue, n=permits, lease_s=self._lease_s, wait_s=WAIT_S)
            except SkuldError as error:
                self.give(permits)
                self._on_error(error)
                with self._changed:
                    self._changed.wait_for(lambda: self._is_closing, pause_s)
                pause_s = min(PAUSE_S_MAX, pause_s * 2)
                continue
            pause_s = PAUSE_S
            self.give(permits - len(claims))
            if claims and self._is_closing:
                with contextlib.suppress(SkuldError):
                    self._client.release(*claims)
            elif claims:
                self._on_claims(claims)
                self._on_known(claims, self._read(claims))

    def _read(self, claims: list[Claim]) -> dict[bytes, Task]:
        try:
            return {task.id: task for task in self._client.get_many([claim.id for claim in claims])}
        except SkuldError as error:
            _log.warning("what %d tasks went through is not known: %s", len(claims), error)
            return {}

    def _take(self) -> int:
        """Take all the permits, once there are some; 0 to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closing or (self._permits > 0 and not self._is_paused))
            if self._is_closing:
                return 0
            permits, self._permits = self._permits, 0
            return permits
