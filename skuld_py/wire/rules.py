"""What must be true of a record beyond the kinds of its fields.

Two sorts: that fields which list the same things have equal counts (declared by the message itself, in
``columns``), and the few rules below. They are here and not in the machines because a machine takes
apart what it is handed without asking again: a header that does not parse, or a log number that does
not fit its key, must not get that far.

Bounds that a cluster may lower (a payload's size) hold for what clients send, not between nodes: what
was stored under an older bound must still travel.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from skuld_py.config import Limits
from skuld_py.model.columns import Column, unpack_u64
from skuld_py.model.fields import U32_MAX
from skuld_py.model.ids import ID_BYTES
from skuld_py.model.messages import Append, Enqueue, TaskBatch, TaskRow
from skuld_py.model.names import NAME
from skuld_py.model.task import Header
from skuld_py.wire.stream import Fault

Rule = Callable[[Any, Limits], None]


def check_header(batch: TaskBatch, limits: Limits) -> None:
    """The header parses and names a queue."""
    problem = _problem_of_header(batch.header)
    if problem:
        raise Fault(problem, ".header")


@lru_cache(maxsize=1_024)
def _problem_of_header(header: bytes) -> str:
    """What is wrong with it, or ``""``. Tasks share few headers, so the answers are kept."""
    try:
        queue = Header.decode(header).queue
    except ValueError:
        return "is no task header"
    return "" if NAME.fullmatch(queue) else "its queue has no valid name"


def check_enqueue(request: Enqueue, limits: Limits) -> None:
    """Not too many tasks, not too large, each and together."""
    tasks = size = 0
    for index, batch in enumerate(request.batches):
        payloads = batch.payloads
        tasks += len(payloads)
        size += len(payloads.data)
        if len(payloads.data) > limits.payload_bytes:
            _check_sizes(payloads, limits.payload_bytes, f".batches[{index}].payloads")
    if tasks > limits.batch_tasks:
        raise Fault(f"hold {tasks} tasks, more than {limits.batch_tasks}; send several requests", ".batches")
    if size > limits.batch_bytes:
        raise Fault(f"hold {size} payload bytes, more than {limits.batch_bytes}; send several requests",
                    ".batches")


def check_append(request: Append, limits: Limits) -> None:
    """One task, entries not too large, and numbers that do not run out."""
    _check_one_id(request.id)
    _check_sizes(request.entries, limits.entry_bytes, ".entries")
    if request.seq + len(request.entries) > U32_MAX + 1:
        raise Fault(f"numbers entries beyond {U32_MAX}", ".seq")


def check_task_row(row: TaskRow, limits: Limits) -> None:
    """One task, and log numbers that fit a key."""
    _check_one_id(row.id)
    if row.seqs and max(unpack_u64(row.seqs)) > U32_MAX:
        raise Fault(f"numbers entries beyond {U32_MAX}", ".seqs")


def _check_one_id(task_id: bytes) -> None:
    if len(task_id) != ID_BYTES:
        raise Fault(f"has {len(task_id)} bytes, not {ID_BYTES}", ".id")


def _check_sizes(column: Column, bytes_max: int, path: str) -> None:
    largest = max(struct.unpack(f">{len(column)}I", column.lengths), default=0)
    if largest > bytes_max:
        raise Fault(f"one has {largest} bytes, more than {bytes_max}", path)


RULES: dict[type, Rule] = {
    TaskBatch: check_header,
    Enqueue: check_enqueue,
    Append: check_append,
    TaskRow: check_task_row,
}
