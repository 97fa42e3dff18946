"""All that a replica holds of some tasks, in columns: what is compared before they go, and goes then.

A task's digest is that of all its records: bodies and histories are read as two runs, by one seek each where the
tasks lie one behind the other, and their digests are those that the store has verified anyway. Logs are looked for
only where there is any in the stretch, and never held whole.

Rejected: an object for each task, with its records (ten times the time; and the log of one task may be larger than
memory).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import attrs

from skuld_py.config import DEFAULT_LIMITS
from skuld_py.model import columns
from skuld_py.model.ids import ID_BYTES
from skuld_py.partition.data import merkle
from skuld_py.partition.data.replica import Replica
from skuld_py.partition.data.tables import end_of

ROW_BYTES = 64
"""What a record takes on its way, besides its value."""
NEVER = bytes(8)
"""How a history begins whose task was not completed."""
_DIGEST_BYTES = 8


@attrs.frozen
class Log:
    """The entries of one task: their digest, their number, the bytes of their contents."""

    digest: int
    count: int
    size: int


@attrs.frozen
class Remains:
    """Of each of ``ids``: its body and its history, None where there is none, each with its digest; ``digests``:
    those of all its records together, as they travel. ``logs`` has only tasks with entries."""

    ids: Sequence[bytes]
    bodies: Sequence[bytes | None]
    body_digests: Sequence[bytes]
    histories: Sequence[bytes | None]
    history_digests: Sequence[bytes]
    logs: Mapping[bytes, Log]
    digests: bytes

    def __len__(self) -> int:
        return len(self.ids)

    def is_nothing(self, index: int) -> bool:
        """Whether nothing is held of a task."""
        return self.bodies[index] is None and self.histories[index] is None and self.ids[index] not in self.logs

    def completions(self) -> tuple[bytes, bytes] | None:
        """When the first and the last of all histories say that a task was completed, as u64, 0 for never; None
        where a task has no history, or there is no task. Histories begin with it, and so sort by it."""
        histories = [history for history in self.histories if history is not None]
        return (min(histories)[:8], max(histories)[:8]) if len(histories) == len(self) > 0 else None

    def first_end_ms(self) -> int:
        """When the first of those that were completed was; 0 if none was."""
        ends = self.completions()
        if ends is not None and ends[0] > NEVER:
            return int.from_bytes(ends[0], "big")
        return int.from_bytes(min((history[:8] for history in self.histories
                                   if history is not None and history[:8] > NEVER), default=NEVER), "big")

    def sizes(self) -> list[int]:
        """About how many bytes each takes on its way."""
        plain = [len(body or b"") + len(history or b"") + ROW_BYTES
                 for body, history in zip(self.bodies, self.histories, strict=True)]
        if not self.logs:
            return plain
        logs = [self.logs.get(task_id) for task_id in self.ids]
        return [size + (log.size + log.count * ROW_BYTES if log else 0)
                for size, log in zip(plain, logs, strict=True)]

    def with_long_logs(self) -> list[bytes]:
        """The tasks of which a read shows only the end of the log."""
        return [task_id for task_id, log in self.logs.items()
                if log.count > DEFAULT_LIMITS.log_entries or log.size > DEFAULT_LIMITS.log_bytes]

    def at(self, indexes: Sequence[int]) -> Remains:
        """Only the tasks at rising indexes."""
        if len(indexes) == len(self.ids):
            return self
        ids, pick = columns.pick(self.ids, indexes), columns.pick
        logs = {task_id: self.logs[task_id] for task_id in ids if task_id in self.logs} if self.logs else self.logs
        return Remains(ids, pick(self.bodies, indexes), pick(self.body_digests, indexes),
                       pick(self.histories, indexes), pick(self.history_digests, indexes), logs,
                       b"".join(pick(columns.split(self.digests, _DIGEST_BYTES), indexes)))


def remains_of(replica: Replica, task_ids: Sequence[bytes]) -> Remains:
    """The remains of these tasks, in their order; a task is named once."""
    keys = columns.wrap(task_ids, replica.prefix)
    bodies, body_digests = replica.store.get_run("body", keys)
    histories, history_digests = replica.store.get_run("history", keys)
    logs = _logs(replica, task_ids)
    digests = columns.xor(b"".join(body_digests), b"".join(history_digests))
    if logs:
        digests = columns.xor(digests, columns.pack_u64([
            logs[task_id].digest if task_id in logs else 0 for task_id in task_ids]))
    return Remains(task_ids, bodies, body_digests, histories, history_digests, logs, digests)


def digests_of(replica: Replica, task_ids: Sequence[bytes]) -> bytes:
    """The digests alone of tasks, in a third of the time: of such that lie in this order one behind the other,
    each with a body and a history and none with a log; else none. What they stand for is not read, and may be
    damaged."""
    keys = columns.wrap(task_ids, replica.prefix)
    bodies, histories = (b"".join(replica.store.sums_of_run(table, keys)) for table in ("body", "history"))
    size = _DIGEST_BYTES * len(keys)  # a damaged record may be shorter than its digest
    if len(bodies) != size or len(histories) != size or (
            keys and replica.store.is_any_between("log", keys[0], end_of(keys[-1]))):
        return b""
    return columns.xor(bodies, histories)


def joined(parts: Sequence[Remains]) -> Remains:
    """Several, one behind the other."""
    if len(parts) == 1:
        return parts[0]
    logs: dict[bytes, Log] = {}
    for part in parts:
        logs.update(part.logs)
    behind = chain.from_iterable
    return Remains(list(behind(part.ids for part in parts)), list(behind(part.bodies for part in parts)),
                   list(behind(part.body_digests for part in parts)),
                   list(behind(part.histories for part in parts)),
                   list(behind(part.history_digests for part in parts)), logs,
                   b"".join(part.digests for part in parts))


def _logs(replica: Replica, task_ids: Sequence[bytes]) -> dict[bytes, Log]:
    found: dict[bytes, Log] = {}
    if not task_ids or not replica.store.is_any_between(
            "log", replica.prefix + min(task_ids), end_of(replica.prefix + max(task_ids))):
        return found
    for task_id in task_ids:
        key = replica.prefix + task_id
        digest = count = size = 0
        for row in replica.store.walk("log", key, end_of(key)):
            digest ^= merkle.digest_of(*row)
            count, size = count + 1, size + len(row[1])
        if count:
            found[task_id] = Log(digest, count, size)
    return found


def log_keys(replica: Replica, task_id: bytes) -> list[bytes]:
    """The keys of a task's entries."""
    key = replica.prefix + task_id
    return replica.store.keys("log", key, end_of(key), 1 << 62)


def ids_behind(replica: Replica, after: bytes, upto_ms: int, limit: int) -> list[bytes]:
    """The next ids, in order, up to ``limit``, behind one and up to a time, of which anything is held."""
    store, prefix = replica.store, replica.prefix
    start = prefix + (after + b"\xff" * ID_BYTES if after else b"")
    stop = prefix + (upto_ms + 1).to_bytes(8, "big")
    keys, others = store.keys("body", start, stop, limit), store.keys("history", start, stop, limit)
    if keys != others:
        keys = sorted({*keys, *others})[:limit]
    bound = end_of(keys[-1]) if len(keys) == limit else stop
    if store.is_any_between("log", start, bound):
        keys = sorted({*keys, *_ids_of_logs(replica, start, min(stop, bound), limit)})[:limit]
    return [key[2:] for key in keys]


def _ids_of_logs(replica: Replica, start: bytes, stop: bytes, limit: int) -> list[bytes]:
    """The same of the log alone, with the prefix: a seek for each task."""
    found: list[bytes] = []
    while len(found) < limit and (keys := replica.store.keys("log", start, stop, 1)):
        found.append(keys[0][: 2 + ID_BYTES])
        start = end_of(found[-1])
    return found

