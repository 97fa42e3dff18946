"""The threads that claim tasks for a worker: as many as it has room for; one thread for each of its queues.

Invariants:

* Whom to ask for how many, ``shares`` decides. A request has its permits from when it is made, and gives back
  those that it did not use: so claims under way and claims not yet seen count.
* A request waits at the cluster for at most ``WAIT_S``: it cannot be called off, and a task granted after the
  worker has gone would lie until its lease ends. What comes while closing is given back.
* Claims are handed over before their tasks are read: they are held meanwhile, however long the reading takes.
  Only those are read that need Spark (``blame``), and of batched ones those that may have been claimed before;
  what cannot be read counts as never claimed before.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Mapping

from skuld_py.client.client import Client
from skuld_py.errors import SkuldError
from skuld_py.model.task import Task
from skuld_py.worker.assignment import Assignment, assigned, turns_of
from skuld_py.worker.shares import Shares, Wish

WAIT_S = 1.0
PAUSE_S, PAUSE_S_MAX = 0.5, 10.0

_log = logging.getLogger(__name__)


class Claimer:
    """Claims from queues, by a client of its own. Callbacks come from its threads, ``on_end`` last."""

    def __init__(self, client: Client, weights: Mapping[str, int], lease_s: float, permits: int, *,
                 on_claims: Callable[[list[Assignment]], None],
                 on_known: Callable[[list[Assignment], dict[bytes, Task]], None],
                 on_error: Callable[[SkuldError], None],
                 on_end: Callable[[], None]) -> None:
        self._client = client
        self._queues = tuple(weights)
        self._shares = Shares(weights, permits)
        self._lease_s = lease_s
        self._on_claims = on_claims
        self._on_known = on_known
        self._on_error = on_error
        self._on_end = on_end
        self._is_paused = True
        self._is_closing = False
        self._serving = len(self._queues)
        self._changed = threading.Condition()

    def start(self) -> None:
        """Start the threads; they claim nothing until ``resume``."""
        for queue in self._queues:
            threading.Thread(target=self._serve, args=(queue,), name=f"claimer {queue}", daemon=True).start()

    def give(self, permits: int) -> None:
        """Note room for this many more tasks; less, if it is negative."""
        with self._changed:
            self._shares.give(permits)
            self._changed.notify_all()

    def pause(self) -> None:
        """Claim nothing for now; a request under way may still bring something."""
        self._is_paused = True

    def resume(self) -> None:
        """Claim again."""
        if self._is_paused:
            with self._changed:
                self._is_paused = False
                self._changed.notify_all()

    def close(self) -> None:
        """Claim nothing any more. ``on_end`` is called when the last request is over."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()

    def _serve(self, queue: str) -> None:
        self._claim_until_closed(queue)
        with self._changed:
            self._serving -= 1
            is_last = not self._serving
        if is_last:
            self._client.close()
            self._on_end()

    def _claim_until_closed(self, queue: str) -> None:
        pause_s = PAUSE_S
        while wish := self._take(queue):
            try:
                claims = self._client.claim(queue, n=wish.count, lease_s=self._lease_s,
                                            wait_s=WAIT_S if wish.waits else 0)
            except SkuldError as error:
                self._answer(queue, wish, 0)
                self._on_error(error)
                with self._changed:
                    self._changed.wait_for(lambda: self._is_closing, pause_s)
                pause_s = min(PAUSE_S_MAX, pause_s * 2)
                continue
            pause_s = PAUSE_S
            self._answer(queue, wish, len(claims))
            if claims and self._is_closing:
                with contextlib.suppress(SkuldError):
                    self._client.release(*claims)
            elif claims:
                made = [assigned(claim) for claim in claims]
                if joined := len(made) - turns_of(made):
                    with self._changed:
                        self._shares.joined(queue, joined)
                        self._changed.notify_all()
                self._hand_over(made)

    def _hand_over(self, made: list[Assignment]) -> None:
        self._on_claims(made)
        if claimed_before := [each for each in made if each.has_past]:
            self._on_known(claimed_before, self._read(claimed_before))

    def _read(self, made: list[Assignment]) -> dict[bytes, Task]:
        try:
            return {task.id: task for task in self._client.get_many([each.claim.id for each in made])}
        except SkuldError as error:
            _log.warning("what %d tasks went through is not known: %s", len(made), error)
            return {}

    def _take(self, queue: str) -> Wish | None:
        """What to ask for, once there is room; None to end."""
        with self._changed:
            wish: Wish | None = None
            while not self._is_closing and wish is None:
                wish = None if self._is_paused else self._shares.take(queue)
                if wish is None:
                    self._changed.wait()
            return None if self._is_closing else wish

    def _answer(self, queue: str, wish: Wish, count: int) -> None:
        with self._changed:
            self._shares.answered(queue, wish, count)
            self._changed.notify_all()
