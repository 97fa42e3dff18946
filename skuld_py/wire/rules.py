"""What must be true of a record beyond the kinds of its fields.

Two sorts: that fields which list the same things have equal counts (declared by the message itself, in
``columns``), and the few rules below. They are here and not in the machines because a machine takes
apart what it is handed without asking again: a header that does not parse, a payload without the options that
its header says stand before it, or a log number that does not fit its key, must not get that far.

Bounds on sizes that a cluster may lower (a payload's, a batch's) are not here: they hold for what clients
send, where the node refuses them by name, and not between nodes, where what was stored must still travel.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from skuld_py.model.body import Header
from skuld_py.model.columns import Column, unpack_u64
from skuld_py.model.fields import U32_MAX
from skuld_py.model.ids import ID_BYTES
from skuld_py.model.messages import Amend, Append, Complete, Conclude, Get, Note, ReadLog, TaskBatch, TaskRow
from skuld_py.model.names import NAME
from skuld_py.model.notes import check_note
from skuld_py.model.outcomes import FIRST_TOKEN, LOG_SEQS
from skuld_py.model.prelude import Prelude, only_deps
from skuld_py.wire.stream import Fault

Rule = Callable[[Any], None]


def check_header(batch: TaskBatch) -> None:
    """The header parses and names a queue; before each payload stands what the header says."""
    problem, prelude = _read_header(batch.header)
    if problem:
        raise Fault(problem, ".header")
    if prelude:
        _check_preludes(prelude, batch.payloads)


@lru_cache(maxsize=1_024)
def _read_header(header: bytes) -> tuple[str, int]:
    """What is wrong with it, or ``""``, and the flags of its prelude. Tasks share few headers: kept."""
    try:
        parsed = Header.decode(header)
    except ValueError as problem:
        return f"is no task header: {problem}", 0
    return "" if NAME.fullmatch(parsed.queue) else "its queue has no valid name", parsed.prelude


def _check_preludes(prelude: int, rests: Column) -> None:
    rows = rests.unpack()
    for index, rest in enumerate(() if only_deps(prelude, rows) else rows):
        try:
            Prelude.decode(prelude, rest)
        except ValueError as problem:
            raise Fault(str(problem), f".payloads[{index}]") from None


def check_append(request: Append) -> None:
    """One task, and numbers that do not run out."""
    _check_one_id(request.id)
    if request.token < FIRST_TOKEN:
        raise Fault("is no claim's token", ".token")
    if request.seq + len(request.entries) > LOG_SEQS:
        raise Fault(f"numbers entries beyond {LOG_SEQS - 1}", ".seq")


def check_complete(request: Complete) -> None:
    """A result for each claim, or none at all."""
    _check_one_for_each(request.ids, request.results, ".results")


def check_conclude(request: Conclude) -> None:
    """An error for each claim, or none at all."""
    _check_one_for_each(request.ids, request.errors, ".errors")


def check_get(request: Get) -> None:
    """A least number of facts for each task, or none at all."""
    if len(request.least) not in (0, 8 * (len(request.ids) // ID_BYTES)):
        raise Fault(f"lists {len(request.least) // 8}, but ids lists {len(request.ids) // ID_BYTES}", ".least")


def check_read_log(request: ReadLog) -> None:
    """One task."""
    _check_one_id(request.id)


def check_amend(request: Amend) -> None:
    """Errors come with the tokens they are of."""
    _check_one_for_each(request.ids, request.errors, ".errors")
    if len(request.tokens) != 8 * len(request.errors):
        raise Fault(f"lists {len(request.tokens) // 8}, but errors lists {len(request.errors)}", ".tokens")


def _check_one_for_each(ids: bytes, column: Column, path: str) -> None:
    if len(column) not in (0, len(ids) // ID_BYTES):
        raise Fault(f"lists {len(column)}, but ids lists {len(ids) // ID_BYTES}", path)


def check_note_rows(request: Note) -> None:
    """Notes as there are. Many are the same but for the task."""
    notes = list(zip(unpack_u64(request.tokens), unpack_u64(request.seqs), strict=True))
    for index, note in enumerate(notes if len(set(notes)) > 1 else notes[:1]):
        try:
            check_note(*note)
        except ValueError as problem:
            raise Fault(str(problem), f".seqs[{index}]") from None


def check_task_row(row: TaskRow) -> None:
    """One task, and log numbers that fit a key."""
    _check_one_id(row.id)
    if row.seqs and max(unpack_u64(row.seqs)) > U32_MAX:
        raise Fault(f"numbers entries beyond {U32_MAX}", ".seqs")


def _check_one_id(task_id: bytes) -> None:
    if len(task_id) != ID_BYTES:
        raise Fault(f"has {len(task_id)} bytes, not {ID_BYTES}", ".id")


RULES: dict[type, Rule] = {
    TaskBatch: check_header,
    Append: check_append,
    Amend: check_amend,
    Complete: check_complete,
    Conclude: check_conclude,
    Get: check_get,
    ReadLog: check_read_log,
    TaskRow: check_task_row,
    Note: check_note_rows,
}
