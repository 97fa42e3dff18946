"""Reads the documents of the partitions kept here again when they have changed: an operator's wish acts at once.

ZooKeeper's watches tell of a change, once after each read, and say not what it was. A read takes in what is new,
and arms the next watch. What this node leads is read first. Watches end with the connection, so a node that is
connected again reads all that it keeps; and in turns it reads each of them anyway, should a watch be lost.

A partition that is not kept here is not read again, so its watch is not armed again.

Rejected: to have the machine told what the document says now. It could be older than what the node has written
since, and a read that is synced has rules already.
"""

from __future__ import annotations

from skuld_py.model.events import ReadDocument
from skuld_py.node.operations.duty import NEVER_MS, Duty
from skuld_py.node.operations.operation import Operations
from skuld_py.partition.vnode import Vnode

ROUND_MS = 120_000
"""In this time each partition that is kept here is read once, watch or not."""
LEAST_MS = 5_000
"""Least time between two of these reads."""


class Watching(Duty):
    """The changes of documents that one node has to look at."""

    def __init__(self, operations: Operations) -> None:
        self._view = operations.view
        self._outbox = operations.outbox
        self._changed: dict[int, None] = {}
        """Partitions whose document is to be read again."""
        self._rights = operations.view.bulletin.subscribe_to_rights()
        self._was_connected: bool | None = None
        self._next_poll = 0
        self._poll_ms = NEVER_MS
        self.due_ms = NEVER_MS
        self.news = self._changed, self._rights

    def note(self, partition: int) -> None:
        """Its document is not as it was last read."""
        if self._is_kept(self._view.vnodes[partition]):
            self._changed[partition] = None

    def _is_kept(self, vnode: Vnode) -> bool:
        return vnode.takes_writes or not vnode.election.is_idle

    def look(self, now_ms: int) -> None:
        """Read what has changed, of much some at a time; and the next one of the round."""
        view, timing = self._view, self._view.timing
        if self._rights:
            self._rights.clear()
            self._note_session(now_ms)
        self.rests_until_ms = now_ms
        self.due_ms = NEVER_MS
        if not view.is_connected:
            self._changed.clear()  # all is read when it is connected again
            return
        if now_ms >= self._poll_ms:
            self._poll(now_ms)
        asked = sorted(self._changed, key=lambda partition: not view.vnodes[partition].is_leading)
        for partition in asked[: timing.look_due]:
            del self._changed[partition]
            self._outbox.carry_out([ReadDocument(partition)])
        if self._changed:
            self.rests_until_ms = now_ms + timing.heir_delay_ms
        self.due_ms = self._poll_ms

    def _note_session(self, now_ms: int) -> None:
        """Connected again: the watches are gone. At a start all is read anyway."""
        is_connected = self._view.is_connected
        if is_connected and not self._was_connected:
            self._poll_ms = now_ms + self._pause_ms()
            if self._was_connected is False:
                self._changed.update(
                    (vnode.partition, None) for vnode in self._view.vnodes if self._is_kept(vnode))
        if is_connected or self._was_connected:
            self._was_connected = is_connected

    def _pause_ms(self) -> int:
        return max(LEAST_MS, ROUND_MS // len(self._view.vnodes))

    def _poll(self, now_ms: int) -> None:
        vnodes = self._view.vnodes
        self._poll_ms = now_ms + self._pause_ms()
        for step in range(len(vnodes)):
            vnode = vnodes[(self._next_poll + step) % len(vnodes)]
            if self._is_kept(vnode):
                self._changed[vnode.partition] = None
                self._next_poll = (vnode.partition + 1) % len(vnodes)
                return
