"""Where a claim's result and error stand: log entries with the last two numbers of its token.

So they merge, are compared, exchanged, handed over and dropped as the rest of a log is, and cost nothing where
there are none. No client appends under these numbers, nor under tokens below all claims', and no log shows them: a
reader sees the contiguous prefix from 0.

Of several claims that completed a task the earliest completion stands, and its result is the task's. If it has no
result, the result is that of the newest claim that completed with one: the earliest completion may become known
late, after another one's result was read, and what was shown is not to vanish. Claims that come after a completion
are refused, so among these few a newer result is hardly ever replaced. Where both have results, the earlier one
replaces the later: a register that any ``w`` owners write without a leader cannot be set just once. Rejected:
owners that hold a completion refuse another one, or tell its coordinator (an owner that had not heard of the first
has recorded the second by then, for good). Also rejected: a question before each completion, which would double
its cost and not see what is on its way.

A holder that says two things about one claim is broken; then the smaller bytes stand, so that copies agree.
Rejected: a table of their own, one more in every batch; columns in the history, which the hot path reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.bounds import U32_MAX
from skuld_py.model.checkpoint import SLOT, newer
from skuld_py.model.history import TOKEN_COUNTER_BITS, decode_history

RESULT_SEQ, ERROR_SEQ = U32_MAX, U32_MAX - 1
LOG_SEQS = U32_MAX + 1 - 256
"""Log entries are numbered below; the numbers from here on make up one unit of exchange
(``partition.data.units``)."""
FIRST_TOKEN = 1 << TOKEN_COUNTER_BITS
"""No claim has a smaller token."""

Entries = Mapping[tuple[int, int], bytes]
"""By token and seq."""


def entries_of(row: m.TaskRow) -> dict[tuple[int, int], bytes]:
    """A row's entries."""
    keys = zip(columns.unpack_u64(row.tokens), columns.unpack_u64(row.seqs), strict=True)
    return dict(zip(keys, row.entries.unpack("entries"), strict=True))


def result_of(completion: tuple[int, int] | None, entries: Entries) -> bytes | None:
    """The result of a task, by when and by which claim it was completed."""
    if completion is None:
        return None
    own, others = (completion[1], RESULT_SEQ), [key for key in entries if key[1] == RESULT_SEQ]
    return entries[own if own in entries else max(others)] if others else None


def with_entries(row: m.TaskRow, entries: Entries) -> m.TaskRow:
    """The row with these entries, in the order of their numbers."""
    keys = sorted(entries)
    return attrs.evolve(row, tokens=columns.pack_u64([token for token, _ in keys]),
                        seqs=columns.pack_u64([seq for _, seq in keys]),
                        entries=columns.pack([entries[key] for key in keys]))


def join_entries(mine: Entries, theirs: Entries) -> dict[tuple[int, int], bytes]:
    """All entries of both. Those of a log never differ; of two outcomes the smaller stands, and of two checkpoints
    the newer."""
    joined = {**mine, **theirs}
    if SLOT in mine and SLOT in theirs:
        joined[SLOT] = newer(mine[SLOT], theirs[SLOT])
    for key in mine:
        if key in theirs and key[1] >= LOG_SEQS:
            joined[key] = min(mine[key], theirs[key])
    return joined


def facts_of(row: m.TaskRow, left_out: Iterable[int] = ()) -> int:
    """How much a row knows: of two rows of a task, the one that covers the other has no fewer facts. ``left_out``:
    how many entries of each claim it does not show (``model.cuts``)."""
    return decode_history(row.history or None).facts + len(row.entries) + sum(left_out)
