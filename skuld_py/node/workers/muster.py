"""A page of the workers of a cluster: a question to every node that may know some.

A worker that has changed its node is known to two of them until its former report is over: the newer one counts. A
node that is silent is named, and its workers are missing, so as to list the others while it dies.
"""

from __future__ import annotations

import attrs

from skuld_py.model import messages as m
from skuld_py.node.knowledge.attendance import Name, cursor_of, name_of
from skuld_py.node.operations.operation import Operation, Operations
from skuld_py.node.operations.outbox import Origin

PATIENCE_MS = 1_000
KNOWN_SINCE = 3
"""The protocol that brought the question."""


class MusterOperation(Operation):
    """Ask all live nodes for their page."""

    def __init__(self, operations: Operations, origin: Origin, now_ms: int, question: m.Muster) -> None:
        super().__init__(operations, origin, now_ms, PATIENCE_MS)
        self._question = question
        self._answers: dict[str, m.Mustered] = {}

    def begin(self, now_ms: int) -> None:
        """Ask."""
        others = self.view.live if self.view.protocol >= KNOWN_SINCE else ()
        names = sorted({self.view.me.name, *others})
        self.ask(now_ms, dict.fromkeys(names, attrs.evolve(self._question, request=self.request)))

    def on_reply(self, now_ms: int, peer: str, message: m.Message) -> None:
        """Note an answer."""
        if isinstance(message, m.Mustered) and self.pending.pop(peer, None) is not None:
            self._answers[peer] = message
            if not self.pending:
                self.on_deadline(now_ms)

    def on_deadline(self, now_ms: int) -> None:
        """Answer with what there is."""
        self.answer(self._page())
        self.end()

    def _page(self) -> m.Mustered:
        last = min((each.last for each in self._answers.values() if each.last), default="")
        found: dict[Name, m.WorkerRow] = {}
        for node, answer in sorted(self._answers.items()):
            for row in answer.workers:
                known = found.get(name_of(row))
                if known is None or row.age_ms < known.age_ms:
                    found[name_of(row)] = attrs.evolve(row, node=node)
        rows = sorted((row for row in found.values() if not last or cursor_of(row) <= last), key=cursor_of)
        if len(rows) > m.WORKERS_IN_PAGE:
            rows = rows[: m.WORKERS_IN_PAGE]
            last = cursor_of(rows[-1])
        return m.Mustered(self.origin.request, tuple(rows), last, tuple(sorted(self.pending))[: m.MISSING_MAX])
