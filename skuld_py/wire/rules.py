"""What must be true of a record beyond the kinds of its fields.

Two sorts: that fields which list the same things have equal counts (declared by the message itself, in
``columns``), and the few rules below. They are here and not in the machines because a machine takes
apart what it is handed without asking again: a header that does not parse, or a log number that does
not fit its key, must not get that far.

Bounds on sizes that a cluster may lower (a payload's, a batch's) are not here: they hold for what clients
send, where the node refuses them by name, and not between nodes, where what was stored must still travel.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from skuld_py.model.body import Header
from skuld_py.model.columns import unpack_u64
from skuld_py.model.fields import U32_MAX
from skuld_py.model.ids import ID_BYTES
from skuld_py.model.messages import Append, TaskBatch, TaskRow
from skuld_py.model.names import NAME
from skuld_py.wire.stream import Fault

Rule = Callable[[Any], None]


def check_header(batch: TaskBatch) -> None:
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


def check_append(request: Append) -> None:
    """One task, and numbers that do not run out."""
    _check_one_id(request.id)
    if request.seq + len(request.entries) > U32_MAX + 1:
        raise Fault(f"numbers entries beyond {U32_MAX}", ".seq")


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
    TaskRow: check_task_row,
}
