"""Spark, loaded only when a task asks for it: a worker of plain functions needs neither PySpark nor Java.

What is asked of it before its first start is answered without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from skuld_py.calls.payloads import Call
from skuld_py.errors import Refused
from skuld_py.extras import require
from skuld_py.worker.batches.part import Done, Item, Order
from skuld_py.worker.context import TaskContext
from skuld_py.worker.run import Engine


class LateEngine:
    """Makes an engine at its first start."""

    def __init__(self, make: Callable[[], Engine]) -> None:
        self._make = make
        self._made: Engine | None = None

    @cached_property
    def missing(self) -> str | None:
        """That PySpark is not installed, and how to install it."""
        try:
            require("spark", who="this task")
        except Refused as refusal:
            return refusal.message
        return None

    def describe(self) -> str:
        """That of Spark, once it was started."""
        return "Spark" if self._made is None else self._made.describe()

    def start(self) -> None:
        """Load it, and start it."""
        if self._made is None:
            self._made = self._make()
        self._made.start()

    def restart(self) -> None:
        """Begin anew."""
        if self._made is None:
            self.start()
        else:
            self._made.restart()

    def stop(self, grace_s: float) -> None:
        """End it, if it was started."""
        if self._made is not None:
            self._made.stop(grace_s)

    @property
    def process_id(self) -> int | None:
        """Of the process that runs its jobs."""
        return None if self._made is None else self._made.process_id

    def is_alive(self) -> bool:
        """Whether it answers."""
        return self._made is not None and self._made.is_alive()

    def is_gone(self) -> bool:
        """Whether it ended."""
        return self._made is not None and self._made.is_gone()

    def call(self, function: Callable[..., Any], context: TaskContext, call: Call) -> Any:
        """The function's result."""
        assert self._made is not None
        return self._made.call(function, context, call)

    def call_many(self, name: str, order: Order, items: Sequence[Item]) -> Sequence[Done]:
        """How the items of one job ended."""
        assert self._made is not None
        return self._made.call_many(name, order, items)

    def cancel(self, name: str, timeout_s: float) -> bool:
        """End the jobs of a call; there are none without it."""
        return self._made is None or self._made.cancel(name, timeout_s)

    def is_swept(self) -> bool:
        """End the jobs that belong to no call."""
        return self._made is None or self._made.is_swept()

    def counts(self, name: str) -> dict[str, Any] | None:
        """How far the jobs of a call are."""
        return None if self._made is None else self._made.counts(name)
