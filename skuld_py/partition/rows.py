"""A task's records as they travel between replicas, and their way into a replica.

Everything a peer sends is checked before it is merged: the id belongs to the partition, the body
parses, the history parses. A body that differs from the stored one is refused and reported, never
merged.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence

from skuld_py.errors import Malformed, Refused
from skuld_py.model import columns, ids
from skuld_py.model.messages import TaskRow
from skuld_py.model.names import check_name
from skuld_py.model.task import History, decode_body
from skuld_py.partition import tables
from skuld_py.partition.replica import Replica


def read_rows(replica: Replica, task_ids: Sequence[bytes]) -> list[TaskRow]:
    """What a replica has of these tasks; tasks it has nothing of are left out."""
    prefix = replica.prefix
    histories = replica.histories(task_ids)
    rows = []
    for task_id, body in zip(task_ids, replica.bodies(task_ids), strict=True):
        history = histories.get(prefix + task_id, b"")
        entries = replica.entries(task_id)
        if body is None and not history and not entries:
            continue
        rows.append(TaskRow(task_id, columns.pack([] if body is None else [body]), history,
                            columns.pack_u64([entry[0] for entry in entries]),
                            columns.pack_u64([entry[1] for entry in entries]),
                            columns.pack([entry[2] for entry in entries])))
    return rows


def merge_rows(replica: Replica, now_ms: int, partitions: int, rows: Iterable[TaskRow]) -> list[bytes]:
    """Join rows into a replica; gives the ids whose body conflicts. Raises ``Malformed``."""
    conflicts: list[bytes] = []
    for row in rows:
        if ids.partition_of(row.id, partitions) != replica.partition:
            raise Malformed("TaskRow.id", "belongs to another partition")
        conflicts += _merge_row(replica, now_ms, row)
    return conflicts


def _merge_row(replica: Replica, now_ms: int, row: TaskRow) -> list[bytes]:
    conflicts: list[bytes] = []
    try:
        for body in row.body.unpack("TaskRow.body"):
            header, payload = decode_body(body)
            check_name("queue", header.queue)
            conflicts += replica.store_tasks(now_ms, header.encode(), [row.id], [payload])
        if row.history:
            History.decode(row.history)
            replica.merge_history(now_ms, row.id, row.history, None)
    except (ValueError, Refused) as problem:
        raise Malformed("TaskRow", str(problem)) from None
    entries = row.entries.unpack("TaskRow.entries")
    tokens, seqs = columns.unpack_u64(row.tokens), columns.unpack_u64(row.seqs)
    for token, seq, entry in zip(tokens, seqs, entries, strict=True):
        if not replica.append(row.id, token, seq, [entry]):
            conflicts.append(row.id)
    return conflicts


def digests(replica: Replica, after: bytes, upto: bytes, limit: int) -> tuple[dict[bytes, int], bytes]:
    """Digest of every task in ``after < id <= upto`` (empty: to the end), at most ``limit`` ids.

    Also gives the id up to which the digests are complete: ``upto`` itself, or less when the limit
    cut the page short. A digest is 64 bits over body, history and log.
    """
    start = tables.end_of(replica.prefix + after) if after else replica.prefix
    stop = tables.end_of(replica.prefix + upto) if upto else tables.end_of(replica.prefix)
    bodies = replica.store.scan("body", start, stop, limit)
    histories = replica.store.scan("history", start, stop, limit)
    logs = _logged(replica, start, stop, limit)
    for keys in ([key for key, _ in bodies], [key for key, _ in histories], logs):
        if len(keys) == limit and tables.end_of(keys[-1]) < stop:
            upto, stop = keys[-1][2:], tables.end_of(keys[-1])
    found = dict.fromkeys((key[2:] for key in logs if key < stop), 0)
    for task_id in found:
        for token, seq, entry in replica.entries(task_id):
            found[task_id] ^= zlib.crc32(entry, token << 7 ^ seq & 0xFFFFFFFF) << 16
    for key, body in bodies:
        if key < stop:
            found[key[2:]] = found.get(key[2:], 0) ^ zlib.crc32(body) << 32
    for key, history in histories:
        if key < stop:
            found[key[2:]] = found.get(key[2:], 0) ^ zlib.crc32(history)
    return dict(sorted(found.items())), upto


def _logged(replica: Replica, start: bytes, stop: bytes, limit: int) -> list[bytes]:
    """Keys (prefix + id) of the tasks that have a log: one seek for each."""
    found: list[bytes] = []
    while len(found) < limit and (rows := replica.store.scan("log", start, stop, 1)):
        found.append(rows[0][0][:22])
        start = tables.end_of(found[-1])
    return found
