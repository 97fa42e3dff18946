"""What tasks know of each other across partitions: log entries without content, under tokens that no claim has.

    token 1 MET   on a dependent   seq = index of the dependency * 4 + end    it ended so
    token 2 SUB   on a dependency  seq = partition                            a task of that partition waits for it
    token 3 TOLD  on a dependency  seq = round * 2^14 + partition * 4 + end   that partition has recorded its end

Notes are only ever added, each is a key of its own, and all say what stays true. So they merge, are compared,
exchanged, handed over and dropped as the rest of a log is, and any number of leaders may write them at once. A
task that failed may be revived and fail again: ``TOLD`` names the round of its life that it speaks of. That it is
completed is told once for ever, in round 0.

Rejected: facts about a foreign task under its own id (records of another partition, which would never be
collected); a table of subscriptions of its own, which would have to be merged, compared and handed over by code of
its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from skuld_py.model import columns, ids
from skuld_py.model.body import ON_FAILURE_IGNORE, ON_FAILURE_INSTEAD, Body
from skuld_py.model.outcomes import LOG_SEQS
from skuld_py.model.prelude import DEPS_MAX

MET, SUB, TOLD = 1, 2, 3
_END_BITS, _PARTITION_BITS = 2, 12
_ROUND_BITS = _END_BITS + _PARTITION_BITS
_ROUNDS_END = LOG_SEQS >> _ROUND_BITS


class End(IntEnum):
    """What is known of a dependency. ``FAILED``: dead or cancelled, and not held. ``UNKNOWN``: no task. ``GONE``:
    nor will there be one, since it was collected or is too old to come; noted as ``UNKNOWN``."""

    OPEN = 0
    DONE = 1
    FAILED = 2
    UNKNOWN = 3
    GONE = 4


def met_seq(index: int, end: End) -> int:
    """The number of the note that the ``index``-th dependency ended so."""
    return index << _END_BITS | min(end, End.UNKNOWN)


def split_met(seq: int) -> tuple[int, End]:
    """Index and end of a MET note."""
    return seq >> _END_BITS, End(seq & (1 << _END_BITS) - 1)


def told_seq(partition: int, end: End, round_number: int) -> int:
    """The number of the note that a partition knows the end. Rounds beyond the last that fits count as the
    last."""
    number = min(round_number, _ROUNDS_END - 1) if end is End.FAILED else 0
    return number << _ROUND_BITS | partition << _END_BITS | end


def split_told(seq: int) -> tuple[int, End]:
    """Partition and end of a TOLD note."""
    return seq >> _END_BITS & (1 << _PARTITION_BITS) - 1, End(seq & (1 << _END_BITS) - 1)


def check_note(token: int, seq: int) -> None:
    """Raises ``ValueError`` when there is no such note."""
    end = {MET: (DEPS_MAX << _END_BITS), SUB: 1 << _PARTITION_BITS, TOLD: LOG_SEQS}.get(token, 0)
    if seq >= end or (token != SUB and split_told(seq)[1] is End.OPEN):
        raise ValueError(f"note {seq} under token {token} is none")


def alike(blob: bytes, tokens: bytes, seqs: bytes) -> dict[tuple[int, int], list[bytes]]:
    """The tasks of a column of notes by token and seq; that all are alike, the common case, is seen as such."""
    task_ids = ids.split(blob)
    if task_ids and tokens == tokens[:8] * len(task_ids) and seqs == seqs[:8] * len(task_ids):
        return {(int.from_bytes(tokens[:8], "big"), int.from_bytes(seqs[:8], "big")): task_ids}
    found: dict[tuple[int, int], list[bytes]] = {}
    for task_id, *kind in zip(task_ids, columns.unpack_u64(tokens), columns.unpack_u64(seqs), strict=True):
        found.setdefault((kind[0], kind[1]), []).append(task_id)
    return found


def lets_go(end: End, policy: int) -> bool:
    """Whether a dependent of this policy waits no more for a dependency that ended so, and may run."""
    if policy == ON_FAILURE_INSTEAD:
        return end is End.FAILED
    return end is End.DONE or (policy == ON_FAILURE_IGNORE and end is not End.OPEN)


def is_waiting(body: Body, entries: Iterable[tuple[int, int]]) -> bool:
    """Whether a task waits for others that it needs, by the tokens and numbers of its entries."""
    return bool(unmet(len(body.deps), body.header.policy, [seq for token, seq in entries if token == MET]))


def unmet(count: int, policy: int, seqs: Iterable[int]) -> list[int]:
    """Of ``count`` dependencies, the indexes of those still waited for, by the MET notes of a task."""
    met = {index for index, end in map(split_met, seqs) if lets_go(end, policy)}
    return [index for index in range(count) if index not in met]
