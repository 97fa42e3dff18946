"""Operations that send nothing by themselves: they wait for parts of their own."""

from __future__ import annotations

from skuld_py.node.operations.operation import Operation, Origin


class SilentOperation(Operation):
    """An operation that waits for parts of its own only: operations of this node, which answer it by its number.

    What its deadline means must be said by whoever inherits; until then it sends nothing by itself.
    """

    def on_timer(self, now_ms: int) -> None:
        """End at the deadline, which may have moved."""
        if now_ms >= self.deadline_ms:
            self.on_deadline(now_ms)

    def extend(self, now_ms: int) -> None:
        """Something went on: wait as long again."""
        self.deadline_ms = now_ms + self.host.timing.request_ms
        self.host.timers.set(self.deadline_ms, self)

    @property
    def origin_of_parts(self) -> Origin:
        """Whom its parts answer."""
        return Origin(self.request, peer=self.host.me.name)
