"""A worker tells the cluster that it is there: who it is, its slots, queues and Spark, and how much it has to do.

One thread, for each report may wait for a node. A report lasts ``LEASE_S``, and is made again after a third of
that, so that one may be lost; when something changes that people wait for (Spark has started, a batch takes long),
at once. The last one says goodbye; of a worker that dies, the cluster knows within the lease.

Why not with claims and renewals, which are under way anyway: a claim goes to another node each time, so each node
would know of the worker; one whose slots are taken makes none; and renewals are another process's, which knows
nothing of the worker's load. One request of 200 bytes every ten seconds, that no disk sees, is less than a few
bytes more in each claim. That a node lacks the request (of an older release), or that the key may not make it, is
said once, and it is tried again every ``REFUSED_S``: nothing but the list of workers depends on it.
"""

from __future__ import annotations

import contextlib
import logging
import random
import socket
import threading
from collections.abc import Callable, Mapping

import attrs

from skuld_py import __version__
from skuld_py.client.attending import BatchStatus, WorkerStatus
from skuld_py.client.client import Client
from skuld_py.client.steady import wall_ms
from skuld_py.errors import SkuldError
from skuld_py.worker.helped import Helped
from skuld_py.worker.scribe import is_passing

LEASE_S = 30.0
AGAIN_S = LEASE_S / 3
REFUSED_S = 300.0
"""After a refusal that does not pass by itself."""
GOODBYE_S = 1.0

_log = logging.getLogger(__name__)


def profile(holder: str, slots: int, weights: Mapping[str, int], tags: tuple[str, ...], *,
            takes_seats: bool) -> WorkerStatus:
    """What a worker says of itself as it starts, with nothing to do."""
    return WorkerStatus(holder, "", socket.gethostname(), slots, dict(weights), __version__, "",
                        wall_ms(), 0, 0, takes_seats=takes_seats, tags=tags)


def status(of: WorkerStatus, spark: str, running: int, waiting: int,
           batches: tuple[BatchStatus, ...] = ()) -> WorkerStatus:
    """The same while it works: on so many tasks, with others that it has claimed ahead, and in these batches."""
    return attrs.evolve(of, spark=spark, running=running, claimed=running + waiting, batches=batches)


def work_said(worker: WorkerStatus) -> str:
    """What a worker works on, and on how much at once, for people."""
    queues = ",".join(name if weight == 1 else f"{name}:{weight}" for name, weight in worker.queues.items())
    work = " and ".join([*([f"queue {queues}"] if queues else []), *(["workflows"] if worker.takes_seats else [])])
    return f"worker {worker.name} on {work}: {worker.slots} slots"


class Attendance(Helped):
    """Reports what ``look`` says of the worker, by a client of its own."""

    refused = "the cluster does not list this worker: %s"
    after_failure_s = AGAIN_S
    """How long to pause after a failure that passes by itself."""

    def __init__(self, client: Client, look: Callable[[], WorkerStatus]) -> None:
        self._client = client
        self._look = look
        self._is_closing = False
        self._news = threading.Event()
        self._was_refused = False
        self._thread = self._helper("attendance", self._serve)

    def start(self) -> None:
        """Say that the worker is there."""
        self._thread.start()

    def hasten(self) -> None:
        """Report again soon: something has changed."""
        self._news.set()

    def close(self) -> None:
        """Say goodbye, if that takes no longer than ``GOODBYE_S``."""
        self._is_closing = True
        self._news.set()
        if self._thread.is_alive():
            self._say_goodbye()
            self._thread.join(GOODBYE_S)

    def _serve(self) -> None:
        with self._client:
            while not self._is_closing:
                self._news.clear()
                pause_s = self._turn()
                if not self._is_closing:
                    self._news.wait(pause_s * random.uniform(0.9, 1.1))
            self._end()

    def _turn(self) -> float:
        """Report, and say when to do so again."""
        try:
            pause_s = self._report()
        except SkuldError as error:
            if is_passing(error):
                return self.after_failure_s
            if not self._was_refused:
                self._was_refused = True
                _log.warning(self.refused, error)
            return REFUSED_S
        self._was_refused = False
        return pause_s

    def _report(self) -> float:
        """Report once; how long to pause then."""
        self._client.report(self._look(), LEASE_S)
        return AGAIN_S

    def _say_goodbye(self) -> None:
        """Have the thread end soon."""

    def _end(self) -> None:
        """The thread's last word: goodbye."""
        with contextlib.suppress(SkuldError):
            self._client.report(self._look(), 0)
