"""A task's records as they travel between replicas, and their way into a replica.

Everything a peer sends is checked before it is merged: the id belongs to the partition, the body
parses, the history parses. A body that differs from the stored one is refused and reported, never
merged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from skuld_py.config import Limits
from skuld_py.errors import Malformed, Refused
from skuld_py.model import columns, ids
from skuld_py.model.body import Body, Header, header_of, split_body, stands_over
from skuld_py.model.checkpoint import SLOT, Checkpoint
from skuld_py.model.cuts import WHOLE, Cuts
from skuld_py.model.history import EMPTY_HISTORY, FAILED, History, decode_history
from skuld_py.model.messages import TaskRow
from skuld_py.model.names import check_name
from skuld_py.model.notes import MET, check_note
from skuld_py.model.outcomes import ERROR_SEQ, FIRST_TOKEN, RESULT_SEQ, entries_of, join_entries
from skuld_py.model.prelude import DEPS, NAMED
from skuld_py.partition.data import tables
from skuld_py.partition.data.checkpoints import join_checkpoint
from skuld_py.partition.data.replica import Replica
from skuld_py.partition.data.tables import end_of, split_number
from skuld_py.partition.data.units import Unit

Entry = tuple[int, int, bytes]
"""Token, seq, content."""
ROW_BYTES = 64


def read_rows(replica: Replica, task_ids: Sequence[bytes], is_bare: bool = False) -> list[TaskRow]:
    """What a replica has of these tasks, without logs, but with the notes that let dependents go; tasks it lacks
    are left out."""
    return [row for row, _ in read_cut(replica, task_ids, is_bare)]


def read_columns(replica: Replica, task_ids: Sequence[bytes]
                 ) -> tuple[list[bytes], list[bytes], list[list[Entry]]]:
    """The same in columns, of each task its body, its history (empty where there is none) and its entries; a look
    for entries only if there is one of any of them."""
    keys = columns.wrap(task_ids, replica.prefix)
    bodies, histories = ([value or b"" for value in replica.store.get_run(table, keys)[0]]
                         for table in ("body", "history"))
    if not (keys and replica.store.is_any_between("log", min(keys), end_of(max(keys)))):
        return bodies, histories, [[] for _ in keys]
    entries = [replica.entries(task_id)[0] for task_id in task_ids]
    return bodies, histories, [
        _with_outcomes(replica, task_id, decode_history(history or None), each) if each else each
        for task_id, history, each in zip(task_ids, histories, entries, strict=True)]


def read_cut(replica: Replica, task_ids: Sequence[bytes], is_bare: bool = False) -> list[tuple[TaskRow, Cuts]]:
    """Rows with the ends of logs, and what is left out of each log."""
    prefix = replica.prefix
    histories = replica.histories(task_ids)
    rows: list[tuple[TaskRow, Cuts]] = []
    for task_id, body in zip(task_ids, replica.bodies(task_ids), strict=True):
        history = histories.get(prefix + task_id, b"")
        entries, cuts = (_met(replica, task_id, body), WHOLE) if is_bare else replica.entries(task_id)
        if entries and not is_bare:
            entries = _with_outcomes(replica, task_id, decode_history(history or None), entries)
        if body is None and not history and not entries:
            continue
        rows.append((TaskRow(task_id, columns.pack([] if body is None else [body]), history,
                             columns.pack_u64([entry[0] for entry in entries]),
                             columns.pack_u64([entry[1] for entry in entries]),
                             columns.pack([entry[2] for entry in entries])), cuts))
    return rows


def _met(replica: Replica, task_id: bytes, body: bytes | None) -> list[Entry]:
    has_deps = body is not None and header_of(body).prelude & DEPS
    return [(MET, seq, b"") for seq in replica.filing.waiting.met(task_id)] if has_deps else []


def read_ends(replica: Replica, task_ids: Sequence[bytes], token: int, after: int,
              limit: int) -> list[tuple[TaskRow, bytes]]:
    """What a replica has of the ends of tasks, and of the log of the claim ``token`` from ``after`` on: rows
    without bodies, each with the header of its body, or nothing."""
    histories, rows = replica.histories(task_ids), list[tuple[TaskRow, bytes]]()
    for task_id, body in zip(task_ids, replica.bodies(task_ids), strict=True):
        history = histories.get(replica.prefix + task_id, b"")
        entries = replica.page(task_id, token, after, limit) if token else []
        entries = _with_outcomes(replica, task_id, decode_history(history or None), entries)
        if body is not None or history or entries:
            row = TaskRow(task_id, columns.pack([]), history, columns.pack_u64([entry[0] for entry in entries]),
                          columns.pack_u64([entry[1] for entry in entries]),
                          columns.pack([entry[2] for entry in entries]))
            rows.append((row, b"" if body is None else split_body(body)[0]))
    return rows


def last_error(replica: Replica, task_id: bytes, record: bytes) -> bytes:
    """The token, as u64, of the newest claim that failed with an error, and the error; empty if none did. It
    mostly is the last entry of the task's log: so one look, and the history only where it is not."""
    base = replica.prefix + task_id
    last = next(replica.store.walk_back("log", base, tables.end_of(base)), None)
    if last is None:
        return b""
    _, token, seq = tables.split_log_key(last[0])
    if seq == ERROR_SEQ:
        return columns.pack_u64([token]) + last[1]
    failed = [token for token, claim in decode_history(record or None).claims.entries.items()
              if claim.kind == FAILED]
    found = replica.outcomes(task_id, [(token, ERROR_SEQ) for token in failed])
    return max((columns.pack_u64([token]) + error for token, _, error in found), default=b"")


def _with_outcomes(replica: Replica, task_id: bytes, history: History, entries: list[Entry]) -> list[Entry]:
    """Entries with the result and the last error, which are shown even if the log is too long to be read whole; if
    the claim that completed the task first gave no result, with those of the other claims."""
    done = history.completion.value
    failed = [token for token, claim in history.claims.entries.items() if claim.kind == FAILED]
    found = replica.outcomes(task_id, [(max(failed), ERROR_SEQ)]) if failed else []
    for tokens in ([done[1]], history.claims.entries) if done else ():
        if not any(seq == RESULT_SEQ for _, seq, _ in found):
            found += replica.outcomes(task_id, [(token, RESULT_SEQ) for token in tokens])
    return sorted({*entries, *found})


def row_of(unit: Unit) -> TaskRow:
    """A unit on its way to a peer."""
    values = [[value for _, rank, value in unit.records if rank == wanted] for wanted in range(3)]
    numbers = [split_number(key) for key, rank, _ in unit.records if rank == 2]
    return TaskRow(unit.key[: ids.ID_BYTES], columns.pack(values[0]), b"".join(values[1]),
                   columns.pack_u64([token for token, _ in numbers]),
                   columns.pack_u64([seq for _, seq in numbers]), columns.pack(values[2]))


def size_of(row: TaskRow) -> int:
    """Bytes of a row on its way, and some for its frames. A note is its number alone."""
    return (len(row.body.data) + len(row.history) + len(row.tokens) + len(row.seqs) + len(row.entries.lengths)
            + len(row.entries.data) + ROW_BYTES)


def in_messages(rows: Sequence[TaskRow], limits: Limits) -> Iterator[Sequence[TaskRow]]:
    """Rows cut into messages of at most ``page_rows`` rows and, but for a single row, ``page_bytes`` bytes."""
    start = 0
    while start < len(rows):
        count = columns.fitting(map(size_of, rows[start : start + limits.page_rows]), limits.page_bytes)
        yield rows[start : start + count]
        start += count


def covers(theirs: TaskRow, mine: TaskRow) -> bool:
    """Whether a peer's unit knows all that mine does. Of two bodies neither knows the other and theirs stands,
    unless mine is that of a unique name that was asked for first."""
    if len(mine.body) > len(theirs.body):
        return False
    if mine.body != theirs.body and len(mine.body) and stands_over(*mine.body.unpack(), *theirs.body.unpack()):
        return False
    if mine.history:
        known = History.decode(theirs.history) if theirs.history else EMPTY_HISTORY
        if known.merge(History.decode(mine.history)) != known:
            return False
    held, known_entries = entries_of(mine), entries_of(theirs)
    return held.keys() <= known_entries.keys() and join_entries(held, known_entries) == known_entries


def merge_rows(replica: Replica, now_ms: int, partitions: int, rows: Sequence[TaskRow]) -> list[bytes]:
    """Join rows into a replica; gives the ids whose body or log conflicts. Raises ``Malformed``. Two bodies of a
    unique name are no conflict: one stands."""
    bodies = [(row.id, *_check(row, replica, partitions)) for row in rows]
    conflicts: list[bytes] = []
    for header, group in groupby((body for body in bodies if body[1]), lambda body: body[1]):
        tasks = list(group)
        refused = replica.store_tasks(now_ms, header, [task[0] for task in tasks], [task[2] for task in tasks])
        conflicts += [] if Header.decode(header).prelude & NAMED else refused
    for row in rows:
        if row.history:
            replica.merge_history(now_ms, row.id, row.history, None)
        conflicts += _merge_log(replica, now_ms, row)
    return conflicts


def _check(row: TaskRow, replica: Replica, partitions: int) -> tuple[bytes, bytes]:
    """The header of a row's body, and what is behind it; empty without one."""
    if ids.partition_of(row.id, partitions) != replica.partition:
        raise Malformed("TaskRow.id", "belongs to another partition")
    try:
        if row.history:
            replica.read_history(row.history)
        for token, seq in zip(columns.unpack_u64(row.tokens), columns.unpack_u64(row.seqs), strict=True):
            if (token, seq) == SLOT:
                _check_checkpoint(row, replica)
            elif token < FIRST_TOKEN:
                check_note(token, seq)
        for record in row.body.unpack("TaskRow.body"):
            body = Body.decode(record)
            check_name("queue", body.header.queue)
            problem = body.prelude.problem_of(row.id, body.header.queue, body.header.window_ms)
            if problem:
                raise ValueError(problem)
            return split_body(record)
    except (ValueError, Refused) as problem:
        raise Malformed("TaskRow", str(problem)) from None
    return b"", b""


def _check_checkpoint(row: TaskRow, replica: Replica) -> None:
    """Raises ``ValueError`` when it is none, or of a claim that no sound peer knows of."""
    token = Checkpoint.decode(entries_of(row)[SLOT]).token
    if token > replica.token_max:
        raise ValueError(f"checkpoint has a token above {replica.token_max}, of an epoch that nobody has come to")


def _merge_log(replica: Replica, now_ms: int, row: TaskRow) -> list[bytes]:
    entries = row.entries.unpack("TaskRow.entries")
    numbers = list(zip(columns.unpack_u64(row.tokens), columns.unpack_u64(row.seqs), strict=True))
    for token, seq in numbers:
        if FIRST_TOKEN > token > SLOT[0]:
            replica.note(now_ms, token, seq, [row.id])
    for number, entry in zip(numbers, entries, strict=True):
        if number == SLOT:
            join_checkpoint(replica, row.id, entry)
    return [row.id for (token, seq), entry in zip(numbers, entries, strict=True)
            if token >= FIRST_TOKEN and not replica.append(row.id, token, seq, [entry])]
