"""Who waits for whom: a partition's index over its dependents, and over those that other partitions wait for.

Two tables, each with two families of rows, told apart by their first byte behind the partition:

    dep    0 dependency dependent -> index u16     a dependency that a blocked task still waits for
           1 dependent -> how many are left u16    of dependents with several dependencies
    tell   0 dependency partition u16              a partition waits for this task, which has not ended
           1 dependency partition u16 end u8       it has ended so, and the partition has not been told

Invariant: the rows are a function of the bodies, of the notes (``model.notes``), and of where the tasks are filed.
A blocked task has one row for each dependency not met; any other task has none. A subscribed dependency has one
row for each partition that was not told its end. So to meet a dependency takes one look for its dependents, a join
of a thousand meets each of them once, and nothing about dependencies is kept in memory: a new leader knows who is
to be told, and whom to ask about.

``fresh`` and ``has_news`` are hints to the leader that something is new, so that it need not look for it. They may
be lost; the leader's walk over ``dep`` and the rows of ``tell`` do not rest on them. """

from __future__ import annotations

from collections.abc import Sequence

from skuld_py.model.body import Body
from skuld_py.model.ids import ID_BYTES
from skuld_py.model.notes import MET, SUB, TOLD, End, split_told, told_seq, unmet
from skuld_py.model.store import Store
from skuld_py.partition.data import tables
from skuld_py.partition.data.bulletin import Bulletin

FRESH_MAX = 10_000
_OPEN, _TO_TELL = b"\x00", b"\x01"
_WAITS, _LEFT = b"\x00", b"\x01"
_U16_BYTES = 2
_PARTITIONS_END = 1 << 12

News = tuple[bytes, int, End]
"""A task that has ended, a partition that waits for it, and how it ended."""


class Waiting:
    """The rows of ``dep`` and ``tell`` of one partition."""

    def __init__(self, store: Store, prefix: bytes, bulletin: Bulletin) -> None:
        self._store = store
        self._prefix = prefix
        self._bulletin = bulletin
        self.fresh: dict[bytes, None] = {}
        """Dependencies that tasks began to wait for, since the owner last cleared this."""
        self.is_overfull = False
        """Whether there were more fresh dependencies than are kept."""
        self.has_news = False
        """Whether an end is to be told that was not when the owner last cleared this."""

    def _stir(self) -> None:
        self._bulletin.stir(int.from_bytes(self._prefix, "big"))

    # -- dependents ----------------------------------------------------------------------------

    def unmet(self, task_id: bytes, body: Body) -> list[int]:
        """The indexes of the dependencies that a task still waits for, by its notes."""
        return unmet(len(body.deps), body.header.policy, self.met(task_id)) if body.deps else []

    def met(self, task_id: bytes) -> list[int]:
        """The numbers of a task's MET notes."""
        return self._seqs(task_id, MET)

    def has_notes(self, ids: Sequence[bytes]) -> bool:
        """Whether any of these tasks may have a dependency met: one seek, so that fresh ids skip look-ups."""
        return self._store.is_any_between("log", tables.log_key(self._prefix, min(ids), MET, 0),
                                          tables.log_key(self._prefix, max(ids), MET + 1, 0))

    def block(self, task_id: bytes, body: Body, missing: Sequence[int]) -> None:
        """Enter a task that waits for those of its dependencies."""
        deps = body.deps
        rows = [(self._wait_key(deps[index], task_id), index.to_bytes(_U16_BYTES, "big")) for index in missing]
        if len(deps) > 1:
            rows.append((self._left_key(task_id), len(missing).to_bytes(_U16_BYTES, "big")))
        self._store.put_many("dep", rows)
        self._note_fresh([deps[index] for index in missing])

    def block_by_one(self, ids: Sequence[bytes], deps: Sequence[bytes]) -> None:
        """Enter tasks that wait for the only one that they need."""
        base, first = self._prefix + _WAITS, bytes(_U16_BYTES)
        self._store.put_many("dep", [(base + dep + task_id, first)
                                     for dep, task_id in zip(deps, ids, strict=True)])
        self._note_fresh(deps)

    def _note_fresh(self, deps: Sequence[bytes]) -> None:
        self._stir()
        self.fresh.update(dict.fromkeys(deps))
        if len(self.fresh) > FRESH_MAX:
            self.fresh, self.is_overfull = {}, True

    def is_blocked(self, task_id: bytes, body: Body) -> bool:
        """Whether a task is among those that wait."""
        deps = body.deps
        key = self._left_key(task_id) if len(deps) > 1 else self._wait_key(deps[0], task_id) if deps else b""
        return bool(deps) and self._store.get("dep", key) is not None

    def unblock(self, task_id: bytes, body: Body) -> bool:
        """Take a task out; says whether it was there."""
        deps = body.deps
        if not deps or (len(deps) > 1 and self._pop("dep", self._left_key(task_id)) is None):
            return False
        found = self._store.pop_many("dep", [self._wait_key(dep, task_id) for dep in deps])
        return any(row is not None for row in found)

    def meet(self, task_id: bytes, body: Body, index: int) -> bool:
        """A dependency is met; says whether it was the last that the task waited for."""
        if self._pop("dep", self._wait_key(body.deps[index], task_id)) is None:
            return False
        if len(body.deps) == 1:
            return True
        key = self._left_key(task_id)
        left = int.from_bytes(self._store.get("dep", key) or b"", "big") - 1
        if left > 0:
            self._store.put_many("dep", [(key, left.to_bytes(_U16_BYTES, "big"))])
            return False
        self._pop("dep", key)
        return True

    def meet_only(self, pairs: Sequence[tuple[bytes, bytes]]) -> list[bool]:
        """For tasks that need one other task only, as (dependency, task): it is met; says which waited for it."""
        rows = self._store.pop_many("dep", [self._wait_key(dep, task_id) for dep, task_id in pairs])
        return [row is not None for row in rows]

    def dependents(self, dependency: bytes, after: bytes, limit: int) -> list[tuple[bytes, int]]:
        """Tasks that wait for this one, with its index among their dependencies, behind ``after``."""
        base = self._prefix + _WAITS + dependency
        rows = self._store.scan("dep", base + after + b"\0" * bool(after), tables.end_of(base), limit)
        return [(key[-ID_BYTES:], int.from_bytes(value, "big")) for key, value in rows]

    def dependencies(self, after: bytes, limit: int) -> tuple[list[bytes], bytes]:
        """Tasks that others wait for, behind ``after``, and where to go on; empty at the end."""
        base = self._prefix + _WAITS
        start = tables.end_of(base + after) if after else base
        rows = self._store.scan("dep", start, self._prefix + _LEFT, limit)
        found = list(dict.fromkeys(key[-2 * ID_BYTES : -ID_BYTES] for key, _ in rows))
        return found, found[-1] if len(rows) == limit else b""

    # -- dependencies --------------------------------------------------------------------------

    def subscribe(self, task_id: bytes, partition: int, end: End, round_number: int) -> None:
        """A partition waits for a task, which has ended so or has not."""
        if end is End.OPEN:
            self._store.put_many("tell", [(self._open_key(task_id, partition), b"")])
        else:
            self._put_news(task_id, [partition], end, round_number)

    def subscribe_many(self, task_ids: Sequence[bytes], partition: int) -> None:
        """A partition waits for tasks to which nothing has happened."""
        base, tail = self._prefix + _OPEN, partition.to_bytes(_U16_BYTES, "big")
        self._store.put_many("tell", [(base + task_id + tail, b"") for task_id in task_ids])

    def end(self, task_id: bytes, end: End, round_number: int) -> None:
        """A task has ended: tell all that wait for it and do not know."""
        base = self._prefix + _OPEN + task_id
        keys = [key for key, _ in self._store.scan("tell", base, tables.end_of(base), _PARTITIONS_END)]
        if keys:
            self._store.pop_many("tell", keys)
            self._put_news(task_id, [int.from_bytes(key[-_U16_BYTES:], "big") for key in keys], end, round_number)

    def finish(self, ids: Sequence[bytes]) -> None:
        """Many tasks are done, of which mostly nobody waits for any: a seek or two."""
        base = self._prefix + _OPEN
        if (ids and self._store.is_any_between("tell", base, tables.end_of(base))
                and self._store.is_any_between("tell", self._open_key(min(ids), 0),
                                               self._open_key(max(ids), _PARTITIONS_END))):
            for task_id in ids:
                self.end(task_id, End.DONE, 0)

    def reopen(self, task_id: bytes) -> None:
        """A task that had ended has not: who waits for it shall hear of its next end."""
        base = self._prefix + _TO_TELL + task_id
        self._store.pop_many("tell", [key for key, _ in self._store.scan(
            "tell", base, tables.end_of(base), _PARTITIONS_END)])
        self._store.put_many("tell", [(self._open_key(task_id, partition), b"")
                                      for partition in self._seqs(task_id, SUB)])

    def news_of(self, task_ids: Sequence[bytes]) -> dict[bytes, None]:
        """The tasks among these of whose end a partition that waits is still to be told: mostly a seek for all."""
        base = self._prefix + _TO_TELL
        if not self._is_any(base, task_ids):
            return {}
        return {task_id: None for task_id in task_ids if self._is_any(base, [task_id])}

    def has_any_of(self, task_ids: Sequence[bytes]) -> bool:
        """Whether anybody waits for one of these tasks, or of those between, or is still to be told of its end."""
        return any(self._is_any(self._prefix + kind, task_ids) for kind in (_OPEN, _TO_TELL))

    def _is_any(self, base: bytes, task_ids: Sequence[bytes]) -> bool:
        return bool(task_ids) and self._store.is_any_between("tell", base + min(task_ids),
                                                             tables.end_of(base + max(task_ids)))

    def forget(self, task_id: bytes) -> None:
        """A task goes for good."""
        for base in (self._prefix + _OPEN + task_id, self._prefix + _TO_TELL + task_id):
            self._store.pop_many("tell", [key for key, _ in self._store.scan(
                "tell", base, tables.end_of(base), _PARTITIONS_END)])

    def told(self, task_id: bytes, seq: int, round_number: int) -> None:
        """A partition knows the end that a TOLD note speaks of."""
        partition, end = split_told(seq)
        if told_seq(partition, end, round_number) == seq:
            self._pop("tell", self._news_key(task_id, partition, end))

    def is_told(self, task_id: bytes, end: End, round_number: int) -> bool:
        """Whether any partition has been told this end, and so a majority of this one knows it."""
        return any(told_seq(split_told(seq)[0], end, round_number) == seq for seq in self._seqs(task_id, TOLD))

    def subscribed(self, task_ids: Sequence[bytes], partition: int) -> list[bytes]:
        """The tasks that the partition is known to wait for; fresh ids cost one seek for the whole batch."""
        tail = tables.log_key(b"", b"", SUB, partition)
        keys = [self._prefix + task_id + tail for task_id in task_ids]
        if not keys or not self._store.is_any_between("log", min(keys), max(keys)):
            return []
        known = self._store.get_many("log", keys)
        return [task_id for key, task_id in zip(keys, task_ids, strict=True) if key in known]

    def news(self, after: bytes, limit: int) -> tuple[list[News], bytes]:
        """What is to be told, behind a cursor, and where to go on; empty at the end."""
        start = self._prefix + _TO_TELL + after + b"\0" * bool(after)
        rows = self._store.scan("tell", start, self._prefix + _TO_TELL + b"\xff" * 24, limit)
        cursor = rows[-1][0][3:] if len(rows) == limit else b""
        found = [(key[3 : 3 + ID_BYTES], int.from_bytes(key[-3:-1], "big"), End(key[-1])) for key, _ in rows]
        return found, cursor

    # -- rows ----------------------------------------------------------------------------------

    def _put_news(self, task_id: bytes, partitions: Sequence[int], end: End, round_number: int) -> None:
        notes = {tables.log_key(self._prefix, task_id, TOLD, told_seq(partition, end, round_number)): partition
                 for partition in partitions}
        told = self._store.get_many("log", list(notes))
        rows = [(self._news_key(task_id, partition, end), b"")
                for key, partition in notes.items() if key not in told]
        self._store.put_many("tell", rows)
        if rows:
            self.has_news = True
            self._stir()

    def _seqs(self, task_id: bytes, token: int) -> list[int]:
        start, stop = (tables.log_key(self._prefix, task_id, number, 0) for number in (token, token + 1))
        return [tables.split_log_key(key)[2] for key, _ in self._store.walk("log", start, stop)]

    def _pop(self, table: str, key: bytes) -> bytes | None:
        return self._store.pop_many(table, [key])[0]

    def _wait_key(self, dependency: bytes, task_id: bytes) -> bytes:
        return self._prefix + _WAITS + dependency + task_id

    def _left_key(self, task_id: bytes) -> bytes:
        return self._prefix + _LEFT + task_id

    def _open_key(self, task_id: bytes, partition: int) -> bytes:
        return self._prefix + _OPEN + task_id + partition.to_bytes(_U16_BYTES, "big")

    def _news_key(self, task_id: bytes, partition: int, end: End) -> bytes:
        return self._prefix + _TO_TELL + task_id + partition.to_bytes(_U16_BYTES, "big") + bytes([end])
