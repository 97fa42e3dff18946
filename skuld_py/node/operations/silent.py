"""Operations that send nothing by themselves: they wait for parts of their own."""

from __future__ import annotations

from skuld_py.node.operations.operation import Operation
from skuld_py.node.operations.outbox import Origin


class SilentOperation(Operation):
    """An operation that waits for its parts only: operations of this node, which answer it by its number.

    A subclass says what its deadline means.
    """

    def on_timer(self, now_ms: int) -> None:
        """End at the deadline, which may have moved."""
        if now_ms >= self.deadline_ms:
            self.on_deadline(now_ms)

    def extend(self, now_ms: int) -> None:
        """A part got on: wait as long again from now."""
        self.deadline_ms = now_ms + self.view.timing.request_ms
        self.operations.timers.set(self.deadline_ms, self)

    @property
    def origin_of_parts(self) -> Origin:
        """The origin of its parts: they answer this operation."""
        return Origin(self.request, peer=self.view.me.name)
