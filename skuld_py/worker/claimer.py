"""The threads that claim tasks for a worker: as many as it has room for; one thread for each of its queues.

The queues that a worker is started with stay; those of its seats in workflows come and go (``seat``).

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
from collections.abc import Callable, Iterable, Mapping, Sequence

from skuld_py.client.claims import Claim
from skuld_py.client.client import Client
from skuld_py.errors import SkuldError
from skuld_py.model.task import Task
from skuld_py.worker.assignment import Assignment, assigned, turns_of
from skuld_py.worker.helped import Helped
from skuld_py.worker.lease import Key
from skuld_py.worker.shares import Shares, Wish

WAIT_S = 1.0
PAUSE_S, PAUSE_S_MAX = 0.5, 10.0
STALE = "stale_allocation"
"""Said by a node that knows newer seats than this worker."""

_log = logging.getLogger(__name__)


class Claimer(Helped):
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
        self._serving: set[str] = set()
        """Queues that have a thread."""
        self._is_over = False
        self._fences: dict[str, int] = {}
        self._held: dict[Key, str] = {}
        """Claims in queues with a cap that have not ended."""
        self._changed = threading.Condition()

    def start(self) -> None:
        """Start the threads; they claim nothing until ``resume``."""
        with self._changed:
            for queue in self._queues:
                self._begin(queue)

    def _begin(self, queue: str) -> None:
        if queue not in self._serving:
            self._serving.add(queue)
            self._helper(f"claimer {queue}", self._serve, queue).start()

    def seat(self, seats: Mapping[str, tuple[int, ...]]) -> None:
        """From now on claim in these queues beside its own, of each no more than so many at once, and by a fence;
        in no others that it was told before."""
        with self._changed:
            if self._is_closing:
                return
            self._shares.cap({queue: seat[0] for queue, seat in seats.items() if queue not in self._queues})
            self._fences = {queue: seat[1] for queue, seat in seats.items()}
            for queue in self._fences:
                self._begin(queue)
            self._changed.notify_all()

    def ahead(self, queue: str, count: int) -> None:
        """Of a queue with a cap, hold up to so many beyond it."""
        with self._changed:
            self._shares.ahead(queue, count)
            self._changed.notify_all()

    def ended(self, keys: Iterable[Key]) -> None:
        """Note claims whose tasks run no more: of queues with a cap, others may be claimed instead."""
        with self._changed:
            queues = [self._held.pop(key) for key in keys if key in self._held]
            for queue in queues:
                self._shares.ended(queue)
            if queues:
                self._changed.notify_all()

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
        self._end_if_last()

    def _serve(self, queue: str) -> None:
        self._claim_while_wanted(queue)
        self._end_if_last()

    def _end_if_last(self) -> None:
        with self._changed:
            is_last = self._is_closing and not self._serving and not self._is_over
            self._is_over |= is_last
        if is_last:
            self._client.close()
            self._on_end()

    def _claim_while_wanted(self, queue: str) -> None:
        pause_s = PAUSE_S
        while wish := self._take(queue):
            fence = self._fences.get(queue, 0)
            try:
                claims = self._client.claim(queue, n=wish.count, lease_s=self._lease_s,
                                            wait_s=WAIT_S if wish.waits else 0, fence=fence)
            except SkuldError as error:
                self._answer(queue, wish, ())
                if error.code != STALE:  # what its seats are now it is about to be told
                    self._on_error(error)
                self._pause(queue, fence, pause_s)
                pause_s = min(PAUSE_S_MAX, pause_s * 2)
                continue
            pause_s = PAUSE_S
            self._answer(queue, wish, claims)
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

    def _pause(self, queue: str, fence: int, pause_s: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_closing or self._fences.get(queue, 0) != fence, pause_s)

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
            while self._shares.has(queue) and not self._is_closing:
                wish = None if self._is_paused else self._shares.take(queue)
                if wish is not None:
                    return wish
                self._changed.wait()
            self._serving.discard(queue)
            return None

    def _answer(self, queue: str, wish: Wish, claims: Sequence[Claim]) -> None:
        with self._changed:
            if queue not in self._queues:
                self._held |= {(claim.id, claim.token, claim.proof): queue for claim in claims}
            self._shares.answered(queue, wish, len(claims))
            self._changed.notify_all()
