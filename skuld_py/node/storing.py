"""Writes that any owner takes: enqueue, log entries, completions. And reads over all owners.

A write goes to every live owner of its partitions and is answered when each partition has ``w``
fsynced copies. It needs no leader and no registry, so it works with any ``w`` owners alive.
"""

from __future__ import annotations

from collections.abc import Mapping

from skuld_py.model import ids
from skuld_py.model.messages import Acked, Append, Got, Kept, Message
from skuld_py.node.merging import merge_task_rows
from skuld_py.node.operation import Host, Operation, Origin
from skuld_py.partition.quorum import has_majority


class WriteOperation(Operation):
    """Copies of one request on the owners of its partitions."""

    def __init__(self, host: Host, origin: Origin, now_ms: int, w: int, messages: Mapping[str, Message],
                 partitions: Mapping[int, tuple[str, ...]]) -> None:
        super().__init__(host, origin, now_ms)
        self._w = w
        self.messages = dict(messages)
        self._partitions = partitions
        self._acked: dict[str, None] = {}
        self._refused: dict[bytes, None] = {}

    def begin(self, now_ms: int) -> None:
        """Send to all owners; those known to be down are owed."""
        reachable = {peer: message for peer, message in self.messages.items() if peer in self.host.live}
        for peer in self.messages:
            if peer not in reachable:
                self._owe(peer)
        self.ask(now_ms, reachable)

    def on_reply(self, now_ms: int, peer: str, message: Message) -> None:
        """Count a copy."""
        if not isinstance(message, Kept) or peer not in self.pending:
            return
        del self.pending[peer]
        self._acked[peer] = None
        self._refused.update(dict.fromkeys(ids.split(message.refused)))
        if self._refused:
            self.refuse("conflict", _conflict(list(self._refused), isinstance(self.messages[peer], Append)))
        elif self._copies() >= self._w:
            self.answer(Acked(self.origin.request, self._copies()))
        if not self.pending:
            if self._copies() < self._w:
                self._fall_short()
            self.end()

    def _copies(self) -> int:
        return min(sum(1 for owner in owners if owner in self._acked)
                   for owners in self._partitions.values())

    def _fall_short(self) -> None:
        self.give_up(f"w: {self._copies()} of {self._w} copies were acknowledged in time;"
                     " try again with the same ids")

    def on_deadline(self, now_ms: int) -> None:
        """Say what is missing; owe the rest."""
        self._fall_short()
        for peer in self.pending:
            self._owe(peer)
        self.end()

    def _owe(self, peer: str) -> None:
        self.host.owe(peer, [partition for partition, owners in self._partitions.items() if peer in owners])


def _conflict(refused: list[bytes], is_log: bool) -> str:
    listed = ", ".join(ids.to_text(task_id) for task_id in refused[:5])
    if is_log:
        return f"seq: the log of {listed} has other content under this number; number entries on from the last"
    return f"id: {len(refused)} exist with other content: {listed}; use a fresh id for other content"


class GetOperation(Operation):
    """A read of tasks from all live owners; answers when a majority of each partition's has answered."""

    def __init__(self, host: Host, origin: Origin, now_ms: int, messages: Mapping[str, Message],
                 partitions: Mapping[int, tuple[str, ...]]) -> None:
        super().__init__(host, origin, now_ms)
        self.messages = dict(messages)
        self._partitions = partitions
        self._answers: dict[str, Got] = {}

    def begin(self, now_ms: int) -> None:
        """Ask."""
        self.ask(now_ms, {peer: message for peer, message in self.messages.items()
                          if peer in self.host.live})

    def on_reply(self, now_ms: int, peer: str, message: Message) -> None:
        """Join an answer in."""
        if not isinstance(message, Got) or peer not in self.pending:
            return
        del self.pending[peer]
        self._answers[peer] = message
        if all(has_majority(owners, self._answers) for owners in self._partitions.values()):
            rows = merge_task_rows([row for answer in self._answers.values() for row in answer.tasks])
            self.answer(Got(self.origin.request, tuple(rows)))
            self.end()

    def on_deadline(self, now_ms: int) -> None:
        """Too few owners answered."""
        self.refuse("unavailable", "fewer than a majority of a task's owners answered; try again")
        self.end()
