"""Writing notes (``model.notes``) on all keepers of their tasks; the answer comes once a majority has them.

What is noted stays true whichever node says it, so notes rest on no epoch and need no leader: they are written as
completions are. A keeper that is silent is owed them, like any copy.
"""

from __future__ import annotations

from collections.abc import Sequence

from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.ids import group
from skuld_py.node.operations.operation import Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.node.operations.quorum import eras_of
from skuld_py.node.writes.write import WriteOperation

Noted = tuple[bytes, int, int]
"""Task id, token, seq."""


def write_notes(operations: Operations, now_ms: int, origin: Origin, notes: Sequence[Noted]) -> None:
    """Write notes, at least one; ``origin`` is answered ``Acked`` by a majority, or ``Failed``."""
    groups = group(b"".join([note[0] for note in notes]), operations.view.parameters.partitions)

    def make(request: int, partitions: list[int]) -> m.Message:
        is_all = len(partitions) == len(groups)
        rows = notes if is_all else [notes[index] for partition in partitions for index in groups[partition]]
        task_ids, tokens, seqs = zip(*rows, strict=True)
        return m.Note(request, b"".join(task_ids), columns.pack_u64(tokens), columns.pack_u64(seqs),
                      eras_of(operations.view, partitions))
    sizes = {partition: len(indexes) for partition, indexes in groups.items()}
    WriteOperation(operations, origin, now_ms, 0, sizes, make).start(now_ms)
