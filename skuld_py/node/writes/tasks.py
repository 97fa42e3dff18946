"""The tasks of an enqueue: whether they may be stored, which have unique names, and how they are taken apart.

A refusal here is definite: nothing was sent anywhere yet. It names the field and the remedy.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import eq

from skuld_py.config import AHEAD_MS_MAX
from skuld_py.errors import Refused
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.body import ON_FAILURE_INSTEAD, Header, encode_body, is_plain, split_body
from skuld_py.model.prelude import NAMED, ONE_DEP_BYTES, Prelude, only_deps
from skuld_py.node.knowledge.floor import FUTURE_MS_MAX
from skuld_py.node.knowledge.view import View
from skuld_py.node.writes.names import Found
from skuld_py.node.writes.write import Named

LATE_MS_MAX = 60_000
"""How long ago a task with a unique name may have been asked for, besides the skew bound; clients ask again for
seconds only. So no clock that is far behind puts another content in the place of one acknowledged long ago."""


INSTEAD_RULES = 4
"""Nodes that know older ones only take a task that is there instead of another one for malformed."""


def check_tasks(now_ms: int, view: View, batches: Sequence[m.TaskBatch]) -> bool:
    """Whether any of them has options. Raises ``Refused`` for what is empty, too large, or makes no sense."""
    limits, is_odd = view.limits, False
    count, size = 0, 0
    for batch in batches:
        count += len(batch.ids) // ids.ID_BYTES
        size += len(batch.payloads.data)
    if not batches or b"" in [batch.ids for batch in batches]:
        raise Refused("empty", "tasks: none given")
    if count > limits.batch_tasks or size > limits.batch_bytes:
        raise Refused("too_large", f"tasks: a request holds at most {limits.batch_tasks} tasks and"
                      f" {limits.batch_bytes} payload bytes; send several")
    for batch in batches:
        payloads = batch.payloads.unpack("payloads")
        if not is_plain(batch.header):
            is_odd, header = True, Header.decode(batch.header)
            _check_window(header.window_ms, view.retention.keep_ms)
            _check_policy(header.policy, view)
            payloads = _behind_preludes(now_ms, view.parameters.skew_ms, header, batch)
        elif ids.any_laned(batch.ids):
            raise Refused("bad_id", "id: is of a lane, but the task has no key; give the key, or another id")
        size = max(map(len, payloads), default=0)
        if size > limits.payload_bytes:
            raise Refused("payload_too_large", f"payload: {size} bytes, the limit is"
                          f" {limits.payload_bytes}; store the data elsewhere and send its path", size=size)
    return is_odd


def _behind_preludes(now_ms: int, skew_ms: int, header: Header, batch: m.TaskBatch) -> list[bytes]:
    """The payloads without their preludes; options that make no sense are refused."""
    payloads: list[bytes] = []
    task_ids, rests = ids.split(batch.ids), batch.payloads.unpack("payloads")
    deps = only_deps(header.prelude, rests)
    if deps and not ids.any_laned(batch.ids) and not any(map(eq, task_ids, deps)):
        return [rest[ONE_DEP_BYTES:] for rest in rests]
    for task_id, rest in zip(task_ids, rests, strict=True):
        prelude, size = Prelude.decode(header.prelude, rest)
        _check_prelude(now_ms, prelude)
        problem = prelude.problem_of(task_id, header.queue, header.window_ms)
        if problem:
            raise Refused("bad_deps" if problem.startswith("deps") else "bad_id", problem)
        if prelude.unique:
            _check_made(now_ms, prelude.made_ms, skew_ms)
        payloads.append(rest[size:])
    return payloads


def _check_window(window_ms: int, keep_ms: int) -> None:
    """Refuse a window that is longer than ended tasks are kept. An id made of a name is as old as the window:
    late in it nothing that old is added or found any more, so the name could be neither taken nor found."""
    if keep_ms and window_ms > keep_ms:
        raise Refused("bad_unique", f"window: a name would be unique for {window_ms / 1000:g} s, but ended tasks"
                      f" are kept for {keep_ms / 1000:g} s, the nodes' --retention; use a shorter window, or start"
                      " the nodes with a longer retention")


def _check_policy(policy: int, view: View) -> None:
    if policy == ON_FAILURE_INSTEAD and view.rules < INSTEAD_RULES:
        raise Refused("old_rules", f"policy: this cluster goes by rules {view.rules}, and a task that is there"
                      f" instead of another one, as a moved one, needs rules {INSTEAD_RULES}; once all its nodes"
                      f" know them, raise them with 'skuld cluster rules {view.parameters.cluster} --raise'",
                      rules=view.rules)


def _check_made(now_ms: int, made_ms: int, skew_ms: int) -> None:
    if not now_ms - skew_ms - LATE_MS_MAX <= made_ms <= now_ms + skew_ms + FUTURE_MS_MAX:
        raise Refused("bad_unique", f"made: {made_ms} ms is too far from this node's clock; check the clock")


def _check_prelude(now_ms: int, prelude: Prelude) -> None:
    not_before_ms, expires_ms = prelude.not_before_ms, prelude.expires_ms
    if 0 < expires_ms <= not_before_ms:
        raise Refused("bad_time", f"expires: {expires_ms} ms is not later than not_before, {not_before_ms} ms;"
                      " the task could never be claimed")
    if max(not_before_ms, expires_ms) > now_ms + AHEAD_MS_MAX:
        raise Refused("bad_time", f"{'expires' if expires_ms > not_before_ms else 'not_before'}: more than ten"
                      " years ahead; milliseconds since 1970 are wanted")


def named_in(batches: Sequence[m.TaskBatch]) -> dict[bytes, Named]:
    """The tasks with unique names, by their numbers in the request."""
    asked: dict[bytes, dict[int, bytes]] = {}
    start = 0
    for batch in batches:
        if not is_plain(batch.header) and Header.decode(batch.header).prelude & NAMED:
            rows = zip(ids.split(batch.ids), batch.payloads.unpack(), strict=True)
            for number, (task_id, rest) in enumerate(rows, start):
                asked.setdefault(task_id, {})[number] = encode_body(batch.header, rest)
        start += len(batch.ids) // ids.ID_BYTES
    return {task_id: Named(bodies) for task_id, bodies in asked.items()}


def without(batch: m.TaskBatch, found: Found) -> m.TaskBatch | None:
    """The batch without the tasks that are there already."""
    task_ids = ids.split(batch.ids)
    left = [index for index, task_id in enumerate(task_ids) if task_id not in found]
    if len(left) == len(task_ids):
        return batch
    return part_of(batch, task_ids, left) if left else None


def batch_of(task_id: bytes, record: bytes) -> m.TaskBatch:
    """A batch of one task, from its stored record."""
    header, rest = split_body(record)
    return m.TaskBatch(header, task_id, columns.pack([rest]))


def part_of(batch: m.TaskBatch, task_ids: Sequence[bytes], indexes: Sequence[int]) -> m.TaskBatch:
    """Some tasks of a batch."""
    payloads = batch.payloads.unpack("payloads")
    return m.TaskBatch(batch.header, b"".join(task_ids[index] for index in indexes),
                       columns.pack([payloads[index] for index in indexes]))
