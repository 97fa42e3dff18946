"""A worker in a thread of the test's process, and an engine that dies and freezes to order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from skuld_py.calls.payloads import Call, decode_call
from skuld_py.worker.batches.part import Done, Item, Order, run_part
from skuld_py.worker.context import TaskContext
from skuld_py.worker.worker import Worker


class FakeEngine:
    """Calls functions; is alive, frozen or gone as the test says."""

    def __init__(self) -> None:
        self.is_frozen = False
        self.has_ended = False
        self.starts = 0
        self.cancelled: list[str] = []
        self.running: list[str] = []
        self.beside: dict[str, int] = {}
        """Of each call, by name, the most that ran at once while it did."""
        self.jobs: list[list[Any]] = []
        """The first arguments of the items of each job."""
        self.gate = threading.Event()
        """A job with an item that says "wait" goes on when it is open."""
        self.gate.set()
        self.counted: dict[str, dict[str, Any]] = {}
        """What it says of the jobs of single tasks (under ``""``), and of batches (under ``":batch"``)."""
        self.may_start = threading.Event()
        """It starts when this is set."""
        self.may_start.set()

    missing: str | None = None

    def describe(self) -> str:
        return f"engine {self.starts}"

    def start(self) -> None:
        self.may_start.wait(60)
        self.starts += 1
        self.is_frozen = self.has_ended = False

    restart = start

    def stop(self, grace_s: float) -> None:
        self.has_ended = True

    @property
    def process_id(self) -> int | None:
        return None

    def is_alive(self) -> bool:
        return not (self.is_frozen or self.has_ended)

    def is_gone(self) -> bool:
        return self.has_ended

    def call(self, function: Callable[..., Any], context: TaskContext, call: Call) -> Any:
        self.running.append(context.name)
        for name in self.running:
            self.beside[name] = max(self.beside.get(name, 0), len(self.running))
        try:
            return function(self, context, *call.args, **call.kwargs)
        finally:
            self.running.remove(context.name)

    def call_many(self, name: str, order: Order, items: Sequence[Item]) -> Sequence[Done]:
        """One part, here; an item that says so takes its process along, or the engine."""
        first = [decode_call(payload).args[0] for payload, _ in items]
        self.jobs.append(first)
        self.running.append(name)
        try:
            if "wait" in first:
                self.gate.wait(60)
            if "die" in first:
                self.has_ended = True
            if "crash" in first or "die" in first or name in self.cancelled:
                raise RuntimeError("Python worker exited unexpectedly")
            return list(run_part(order, items))
        finally:
            self.running.remove(name)

    def cancel(self, name: str, timeout_s: float = 5.0) -> bool:
        self.cancelled.append(name)
        self.gate.set()
        return self.is_alive()

    def is_swept(self) -> bool:
        return self.is_alive()

    def counts(self, name: str) -> dict[str, Any] | None:
        return self.counted.get(name.partition(":batch")[1])


class RunningWorker:
    """A worker in a thread, and what it reported."""

    def __init__(self, worker: Worker, engine: FakeEngine, lines: list[str]) -> None:
        self.worker = worker
        self.engine = engine
        self.lines = lines
        self.status: int | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self.status = self.worker.run()

    def has_said(self, words: str) -> bool:
        return any(words in line for line in self.lines)

    def end(self) -> int | None:
        self._thread.join(30)
        assert not self._thread.is_alive()
        return self.status
