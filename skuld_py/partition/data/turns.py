"""Whose turn it is in a lane: a part of ``filing``, which knows where tasks wait.

``Lanes`` keeps who is before whom. When that changes, tasks become claimable or cease to be, which moves them
between the indexes and the counts. What waits for dependencies stays where it is, its turn come or not.
"""

from __future__ import annotations

from collections.abc import Sequence

from skuld_py.model.body import Body
from skuld_py.model.history import History, decode_history
from skuld_py.model.ids import is_laned
from skuld_py.model.state import State, due_of
from skuld_py.model.store import Store
from skuld_py.partition.data import tables
from skuld_py.partition.data.bulletin import Bulletin
from skuld_py.partition.data.lanes import OPEN, Lanes
from skuld_py.partition.data.tally import Tally
from skuld_py.partition.data.waiting import Waiting


class Turns:
    """The part of ``Filing`` that lets tasks wait for their turn; it needs the indexes of a partition."""

    _store: Store
    _prefix: bytes
    tally: Tally
    lanes: Lanes
    waiting: Waiting
    _resettled: bytes | None
    _bulletin: Bulletin
    _partition: int
    """The last lane that was settled since a width, or the form of lanes, changed; None when all are."""

    def _enter(self, state: State, task_id: bytes, history: History, body: Body) -> None:
        raise NotImplementedError

    def _count(self, place: bytes, state: int, change: int) -> None:
        raise NotImplementedError

    def _pop(self, table: str, key: bytes) -> bytes | None:
        raise NotImplementedError

    def widen(self, queue: str, width: int) -> None:
        """Let ``width`` tasks of each ordering key of a queue be claimed at a time; the sweep sees to the lanes
        that there are already."""
        self.lanes.widths[queue.encode()] = width
        self._resettled = b""
        self._bulletin.timed[self._partition] = None

    def is_behind(self, task_id: bytes) -> bool:
        """Whether a task waits for others of its key to be done."""
        return is_laned(task_id) and self.lanes.is_closed(task_id)

    def ahead(self, task_id: bytes) -> list[bytes]:
        """The tasks of its key that a task is behind; none if it is not."""
        return self.lanes.ahead(task_id) if is_laned(task_id) else []

    def is_blocked(self, task_id: bytes, body: Body) -> bool:
        """Whether a task waits for others: for those that it needs, by its notes, or for those before it of its
        key."""
        return self.is_behind(task_id) or bool(self.waiting.unmet(task_id, body))

    def _leave_lanes(self, now_ms: int, ids: Sequence[bytes]) -> None:
        for task_id in filter(is_laned, ids):
            self.lanes.leave(task_id)
            self._settle_lane(now_ms, task_id)

    def _settle_lane(self, now_ms: int, task_id: bytes) -> None:
        """Let those wait whose turn has come in the lane of a task, and take back those who are not to be claimed
        any more."""
        changed = self.lanes.settle(task_id)
        if not changed:
            return
        keys = [self._prefix + each for each, _ in changed]
        bodies, histories = self._store.get_many("body", keys), self._store.get_many("history", keys)
        for key, (each, flag) in zip(keys, changed, strict=True):
            history, body = decode_history(histories.get(key)), Body.decode(bodies[key])
            place, due_ms = tables.place_of(body.header), due_of(history, body)
            if self.waiting.is_blocked(each, body):
                continue
            if flag == OPEN:
                self._count(place, State.BLOCKED, -1)
                self._enter(State.SCHEDULED if due_ms > now_ms else State.WAITING, each, history, body)
                continue
            self._count(place, State.BLOCKED, 1)
            if self._pop_ready(each, body):
                self._count(place, State.WAITING, -1)
            elif self._pop("time", tables.lease_key(self._prefix, due_ms, each)) is not None:
                self._count(place, State.SCHEDULED, -1)

    def _pop_ready(self, task_id: bytes, body: Body) -> bool:
        """Take a task out of those that are claimable; says whether it was one."""
        rows = self._store.pop_many("ready", tables.ready_keys(self._prefix, task_id, body))
        return any(row is not None for row in rows)

    def _resettle(self, now_ms: int, limit: int) -> None:
        """After a width has changed, or a release: settle the next lanes."""
        if self._resettled is None:
            return
        old = self.lanes.old(limit) if self.lanes.has_old else []
        for task_id in old:
            self._settle_lane(now_ms, task_id)
        if old:
            return
        following = self.lanes.following(self._resettled, limit)
        for task_id in following:
            self._settle_lane(now_ms, task_id)
        self._resettled = following[-1] if len(following) == limit else None
