"""By option, tasks are refused that nobody would be granted: their partition has had no leader for long.

Without the option they are stored, as ever: a majority of owners keeps them until somebody leads. What ends,
appends or cancels is stored always, for it concerns tasks that were accepted before.

A node goes by what it knows: it follows the leaders of all partitions, and elections tell it since when one for
which it votes has none. Of the others it notes that itself, from the first task that comes for one, until it sees
one led when a task comes for any, or hears of a newer leader.
"""

from __future__ import annotations

from collections.abc import Iterable

from skuld_py.errors import Refused
from skuld_py.node.knowledge.view import View


class Unled:
    """The partitions that a node refuses tasks for."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._since: dict[int, tuple[int, int]] = {}
        """By partition: the newest epoch known when it was first met without a leader, and when that was."""

    def check(self, now_ms: int, partitions: Iterable[int]) -> None:
        """``Refused`` if one of them has had no leader for as long as the option, which is given, says."""
        limit_ms = self._view.timing.refuse_unled
        for partition in [known for known in self._since if self._view.leader_of(known)]:
            del self._since[partition]
        for partition in partitions:
            unled_ms = self._unled_ms(now_ms, partition)
            if unled_ms >= limit_ms:
                why = self._view.vnodes[partition].why_unled
                raise Refused("unled", f"partition {partition} has had no leader for {unled_ms // 1000} s"
                              f"{f' ({why})' if why else ''}, and by --refuse-unled it takes no tasks that nobody"
                              " would be granted; see 'skuld status', or enqueue later", partition=partition)

    def _unled_ms(self, now_ms: int, partition: int) -> int:
        """How long it has had no leader, as far as is known; 0 if it has one."""
        vnode = self._view.vnodes[partition]
        if self._view.leader_of(partition):
            return 0
        newest = max(vnode.standing.epoch, vnode.leader_epoch)
        epoch, met_ms = self._since.get(partition, (-1, now_ms))
        if epoch != newest:
            met_ms = now_ms
            self._since[partition] = newest, now_ms
        return now_ms - (vnode.leaderless_since_ms or met_ms)
