"""A page of a listing: the tasks that one node has, in id order, which is the order of their making.

The id of a task with a unique name is as old as the name's window, and such a task is listed there. Whether it
lies within the times of a question is decided by when the task was asked for (``windows`` says where to look for
such tasks).

The tables of the node's partitions are walked side by side, one record of each in memory besides the page. A page
ends at its number of tasks, at ``page_bytes``, or after ``SCAN_ROWS`` records, whether or not they were wanted: no
question holds a node up for long, however few of a million tasks it is after. So a page may be empty; the asker
goes on behind ``upto``.

Partitions that count no task of the question's queue in its states are passed over. Time alone moves tasks on that
are not over, from state to state, and counts follow a little later; so those states count as one. It also makes
tasks dead or cancelled whose last claim lapses, so whoever looks for these among all looks where any is open.

Whether a task has the key that is asked for shows mostly in its id: it tells whether the task has one, and, where
the queue is asked for too, whether it has the route of this key. What does not is passed over at little cost, so a
page goes further. A record may be a MiB with its payload, so a page ends as well after ``READ_BYTES`` of records.

Dead and cancelled tasks are found by their index. Those in other states are looked for among all, since an index
is in an order of its own that moves as one reads: a claim that is renewed would be listed again and again.

A state is that of this copy. Where the found tasks stand by what a majority knows, the asker must find out.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from functools import lru_cache

from skuld_py.config import Limits
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.body import Body, Header, split_body
from skuld_py.model.columns import Column
from skuld_py.model.history import decode_history
from skuld_py.model.ids import TIME_END, time_of
from skuld_py.model.prelude import NAMED
from skuld_py.model.state import OPEN, State, state_of
from skuld_py.model.store import Store
from skuld_py.partition.data import tables
from skuld_py.partition.data.replica import Replica
from skuld_py.partition.data.rows import last_error
from skuld_py.partition.data.tally import Tally
from skuld_py.partition.data.windows import begun_before

SCAN_ROWS = 5_000
"""Records looked at for a page: some tens of milliseconds."""
PASSED_ROWS = 5
"""Records passed over by their ids that count as one."""
READ_BYTES = 32 << 20
"""Bytes of the records that are read for a page, whether or not they were wanted."""
_INDEXED = 1 << State.CANCELLED | 1 << State.DEAD
_OPEN = sum(1 << state for state in OPEN)
_NEVER = bytes(8)

Found = tuple[bytes, int, bytes]
"""Id, which replica, and the record walked over."""


class Lister:
    """One question, asked of some replicas."""

    def __init__(self, now_ms: int, replicas: Sequence[Replica], limits: Limits, question: m.List) -> None:
        self._now_ms = now_ms
        self._replicas = replicas
        self._limits = limits
        self._question = question
        self._queue = question.queue.encode()
        self._is_indexed = bool(question.states) and not question.states & ~_INDEXED
        self._table = "dead" if self._is_indexed else "body"
        self._route = ids.lane_route(question.queue, question.key) if question.queue and question.key else None
        self._passed = 0
        self.scanned = 0
        """Records that were looked at."""
        self.read = 0
        """Bytes of the records that were read."""

    def page(self) -> tuple[bytes, list[tuple[bytes, bytes, bytes, bytes]]]:
        """The id up to which the page is complete (empty: to the end), and of each task id, body, history, and, if
        errors are asked for, the last one."""
        rows: list[tuple[bytes, bytes, bytes, bytes]] = []
        size, last = 0, b""
        for task_id, at, record in heapq.merge(*map(self._walk, self._places())):
            if (len(rows) >= self._question.limit or size >= self._limits.page_bytes
                    or self.scanned >= SCAN_ROWS or self.read >= READ_BYTES):
                return last, rows
            last = task_id
            self.read += len(record)
            if self._question.key and not self._may_have_key(task_id):
                self._passed += 1
                self.scanned += not self._passed % PASSED_ROWS
                continue
            self.scanned += 1
            row = self._wanted(self._replicas[at], task_id, record)
            if row is not None:
                error = last_error(self._replicas[at], task_id, row[1]) if self._question.with_errors else b""
                rows.append((task_id, *row, error))
                size += len(row[0]) + len(row[1]) + len(error)
        return b"", rows

    def listed(self, numbers: Sequence[int]) -> m.Listed:
        """A node's answer, which speaks for these partitions."""
        upto, rows = self.page()
        return m.Listed(self._question.request, columns.pack_u64(numbers), upto,
                        b"".join([row[0] for row in rows]), columns.pack([row[1] for row in rows]),
                        columns.pack([row[2] for row in rows]), columns.pack([row[3] for row in rows])
                        if self._question.with_errors else Column())

    def _places(self) -> Sequence[int]:
        """The replicas that may have something to list."""
        if not self._queue:
            return range(len(self._replicas))
        counts = Tally.rows_of([replica.filing.tally for replica in self._replicas], self._queue)
        states = self._question.states
        if states & _OPEN or (states & _INDEXED and not self._is_indexed):
            states |= _OPEN
        return [at for at, row in enumerate(counts)
                if any(count and (not states or states >> state & 1) for state, count in enumerate(row))]

    def _walk(self, at: int) -> Iterator[Found]:
        prefix, store = self._replicas[at].prefix, self._replicas[at].store
        behind = prefix + self._question.after + b"\0" if self._question.after else prefix
        for start, stop in self._spans(store, prefix):
            for key, record in store.walk(self._table, max(start, behind), stop) if behind < stop else ():
                yield key[2:], at, record

    def _spans(self, store: Store, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """What to walk over, rising: where it begins, and the key at which it stops."""
        since_ms, until_ms = self._question.since_ms, self._question.until_ms
        for start_ms, stop_ms in begun_before(store, prefix, since_ms) if since_ms else ():
            yield prefix + start_ms.to_bytes(8, "big"), prefix + stop_ms.to_bytes(8, "big")
        stop = prefix + until_ms.to_bytes(8, "big") if until_ms else tables.end_of(prefix)
        yield prefix + since_ms.to_bytes(8, "big"), stop

    def _wanted(self, replica: Replica, task_id: bytes, record: bytes) -> tuple[bytes, bytes] | None:
        """Body and history of a task that is asked for."""
        key = replica.prefix + task_id
        if self._is_indexed:
            if not self._question.states >> record[0] & 1 or (
                    self._queue and tables.queue_of(record[1:]) != self._queue):
                return None
            record = replica.store.get("body", key) or b""
            self.read += len(record)
            is_wanted = record and self._is_of_then(task_id, record) and self._has_key(record)
            return (record, replica.store.get("history", key) or b"") if is_wanted else None
        if (self._queue and record[7 : 7 + record[6]] != self._queue) or not self._is_of_then(task_id, record):
            return None
        if not self._has_key(record):
            return None
        history = replica.store.get("history", key) or b""
        states = self._question.states
        if states and not states >> self._state(replica, task_id, record, history) & 1:
            return None
        return record, history

    def _may_have_key(self, task_id: bytes) -> bool:
        """Whether a task may have the key that is asked for, by its id."""
        return ids.is_laned(task_id) and self._route in (None, ids.route_of(task_id))

    def _has_key(self, record: bytes) -> bool:
        """Whether a task has the key that is asked for, if one is: keys share routes by chance."""
        return not self._question.key or Body.options_of(record).key == self._question.key

    def _is_of_then(self, task_id: bytes, record: bytes) -> bool:
        """Whether a task was asked for within the times of the question."""
        since_ms, until_ms = self._question.since_ms, self._question.until_ms
        if not since_ms and not until_ms:
            return True
        is_named = _is_named(split_body(record)[0])
        asked_ms = Body.options_of(record).made_ms if is_named else time_of(task_id)
        return since_ms <= asked_ms < (until_ms or TIME_END)

    def _state(self, replica: Replica, task_id: bytes, record: bytes, history: bytes) -> State:
        if history[:8] > _NEVER:
            return State.COMPLETED
        body = Body.decode(record)
        is_blocked = replica.filing.is_blocked(task_id, body)
        return state_of(decode_history(history or None), body, self._now_ms, replica.skew_ms, is_blocked)


@lru_cache(maxsize=1_024)
def _is_named(header: bytes) -> bool:
    """Whether the tasks of a header have unique names. Tasks share few headers: kept."""
    return bool(Header.decode(header).prelude & NAMED)


def listed(now_ms: int, numbers: Sequence[int], replicas: Sequence[Replica], limits: Limits,
           question: m.List) -> m.Listed:
    """A node's answer, which speaks for these partitions."""
    return Lister(now_ms, replicas, limits, question).listed(numbers)
