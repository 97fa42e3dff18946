"""Writing notes (``model.notes``): on all who keep their tasks, and heard of once a majority has them.

What is noted stays true whoever says it, so notes rest on no epoch and need no leader: they are written as
completions are. A keeper that is silent is owed them, like any copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.ids import group
from skuld_py.node.operation import Host, Operation, Origin
from skuld_py.node.storing import WriteOperation
from skuld_py.partition.leadership.quorum import majority

Noted = tuple[bytes, int, int]
"""Task id, token, seq."""


class SilentOperation(Operation):
    """An operation that waits for parts of its own only: operations of this node, which answer it by its number.

    What its deadline means must be said by whoever inherits; until then it sends nothing by itself.
    """

    def on_timer(self, now_ms: int) -> None:
        """End at the deadline, which may have moved."""
        if now_ms >= self.deadline_ms:
            self.on_deadline(now_ms)

    def extend(self, now_ms: int) -> None:
        """Something went on: wait as long again."""
        self.deadline_ms = now_ms + self.host.timing.request_ms
        self.host.schedule(self.deadline_ms, self)

    @property
    def origin_of_parts(self) -> Origin:
        """Whom its parts answer."""
        return Origin(self.request, peer=self.host.me.name)


def write_notes(host: Host, now_ms: int, origin: Origin, notes: Sequence[Noted]) -> None:
    """Write notes, at least one; ``origin`` is answered ``Acked`` by a majority, or ``Failed``."""
    groups = group(b"".join([note[0] for note in notes]), host.parameters.partitions)

    def make(request: int, partitions: list[int]) -> m.Message:
        is_all = len(partitions) == len(groups)
        rows = notes if is_all else [notes[index] for partition in partitions for index in groups[partition]]
        task_ids, tokens, seqs = zip(*rows, strict=True)
        return m.Note(request, b"".join(task_ids), columns.pack_u64(tokens), columns.pack_u64(seqs),
                      eras_of(host, partitions))
    sizes = {partition: len(indexes) for partition, indexes in groups.items()}
    host.start(WriteOperation(host, origin, now_ms, majority(host.parameters.replicas), sizes, make), now_ms)


def not_leading(origin: Origin) -> m.Failed:
    """Whoever asks shall look for another leader."""
    return m.Failed(origin.request, "not_leader", "no longer the leader", True)


def eras_of(host: Host, partitions: Iterable[int]) -> bytes:
    """By which cohorts this node counts."""
    return columns.pack_u64([number for partition in partitions
                             for number in (partition, host.vnode(partition).standing.era)])
