"""One question of a leader to several nodes, and what all of them answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from skuld_py.model import messages as m
from skuld_py.node.operations.operation import Operation, Operations
from skuld_py.node.operations.outbox import Origin

Then = Callable[[int, Mapping[str, m.Message]], None]


class Round(Operation):
    """One question to several nodes. ``then`` gets the answers, in the end those of all unless one is silent."""

    def __init__(self, operations: Operations, now_ms: int, make: Callable[[int, str], m.Message],
                 names: Collection[str], then: Then) -> None:
        super().__init__(operations, Origin(0), now_ms)
        self._make = make
        self._names = names
        self._then = then
        self._answers: dict[str, m.Message] = {}

    def begin(self, now_ms: int) -> None:
        """Ask all; of none there is nothing to wait for."""
        self.ask(now_ms, {name: self._make(self.request, name) for name in self._names})
        if not self._names:
            self._finish(now_ms)

    def on_reply(self, now_ms: int, peer: str, message: m.Message) -> None:
        """One more."""
        if self.pending.pop(peer, None) is not None:
            self._answers[peer] = message
            if not self.pending:
                self._finish(now_ms)

    def on_deadline(self, now_ms: int) -> None:
        """Somebody is silent."""
        self._finish(now_ms)

    def on_gone(self, now_ms: int, gone: Collection[str]) -> None:
        """Somebody is no member any more."""
        if any(name in self.pending for name in gone):
            self._finish(now_ms)

    def _finish(self, now_ms: int) -> None:
        if not self.is_closed:
            self.end()
            self._then(now_ms, self._answers)
