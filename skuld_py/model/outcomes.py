"""Where a claim's result and error stand: log entries with the last two numbers of its token.

So they merge, are compared, exchanged, handed over and dropped as the rest of a log is, and cost nothing where
there are none. Nobody appends under these numbers, nor under tokens below all claims', and no log shows them: a
reader sees the contiguous prefix from 0.

A holder that says two things about one claim is broken; then the smaller bytes stand, so that copies agree.
Rejected: a table of their own, one more in every batch; columns in the history, which the hot path reads.
"""

from __future__ import annotations

from collections.abc import Mapping

from skuld_py.model import columns
from skuld_py.model.client_messages import TaskRow
from skuld_py.model.fields import U32_MAX
from skuld_py.model.history import TOKEN_COUNTER_BITS, decode_history

RESULT_SEQ, ERROR_SEQ = U32_MAX, U32_MAX - 1
LOG_SEQS = U32_MAX + 1 - 256
"""Log entries are numbered below; the numbers from here on make up one unit of exchange (``partition.units``)."""
FIRST_TOKEN = 1 << TOKEN_COUNTER_BITS
"""No claim has a smaller token."""

Entries = Mapping[tuple[int, int], bytes]
"""By token and seq."""


def entries_of(row: TaskRow) -> dict[tuple[int, int], bytes]:
    """A row's entries."""
    keys = zip(columns.unpack_u64(row.tokens), columns.unpack_u64(row.seqs), strict=True)
    return dict(zip(keys, row.entries.unpack("entries"), strict=True))


def join_entries(mine: Entries, theirs: Entries) -> dict[tuple[int, int], bytes]:
    """All entries of both. Those of a log never differ; of two outcomes the smaller stands."""
    joined = {**mine, **theirs}
    for key in mine:
        if key in theirs and key[1] >= LOG_SEQS:
            joined[key] = min(mine[key], theirs[key])
    return joined


def facts_of(row: TaskRow) -> int:
    """How much a row knows: of two rows of a task, the one that covers the other has no fewer facts."""
    return decode_history(row.history or None).facts + len(row.entries)
