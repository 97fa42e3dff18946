"""The task that a unique name stands for already: read from a majority before anything is written under the name.

Invariant: once a majority has stored a content under a name, no call that begins later changes it. Any two
majorities share a node, and a read gives back what it shows (``reads.get``). So a later call finds the task,
writes nothing of its own anywhere, and its caller is told. That holds for callers whose clocks are behind, and
where a copy has missed the first call. Of calls at the same time, none of which finds the other, copies take the
one asked for first (``model.body``), so they agree in whatever order they meet.

Rejected: copies that keep what they heard first, which never agree when two heard differently; a word of the
leader, without which no client could enqueue; and a digest in the task's history, which could name a content that
no copy has kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from skuld_py.model import ids
from skuld_py.model.messages import Message
from skuld_py.node.operations.operation import Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.node.operations.quorum import Make
from skuld_py.node.reads.get import ReadOperation, Rows

NAMES_AT_ONCE = 25
"""Names of one read: that many contents of the largest size fit into an answer."""
Found = Mapping[bytes, bytes]
"""Body records by id, of the tasks that exist."""


class NamingOperation(ReadOperation):
    """A read of some names of a request."""

    def __init__(self, naming: Naming, operations: Operations, origin: Origin, now_ms: int,
                 task_ids: Sequence[bytes], make: Make) -> None:
        partitions = ids.by_partition(task_ids, operations.view.parameters.partitions)
        super().__init__(operations, origin, now_ms, task_ids, partitions, make)
        self._naming = naming

    def conclude(self, now_ms: int, rows: Rows) -> None:
        """Hand on what is found under these names."""
        self._naming.note(now_ms, {row.id: body for row in rows.values() for body in row.body.unpack()})

    def answer(self, message: Message) -> None:
        """The read failed: refuse the request, once."""
        if not self._naming.is_refused:
            self._naming.is_refused = True
            super().answer(message)


class Naming:
    """The names of one request; ``then`` is told of what they stand for."""

    def __init__(self, then: Callable[[int, Found], None]) -> None:
        self.is_refused = False
        self._then = then
        self._found: dict[bytes, bytes] = {}
        self._left = 0

    def begin(self, now_ms: int, operations: Operations, origin: Origin, task_ids: Sequence[bytes],
              make_of: Callable[[Sequence[bytes]], Make]) -> None:
        """Ask, in as many parts as it takes; ``make_of`` gives the message about some ids."""
        parts = [task_ids[at : at + NAMES_AT_ONCE] for at in range(0, len(task_ids), NAMES_AT_ONCE)]
        self._left = len(parts)
        for part in parts:
            NamingOperation(self, operations, origin, now_ms, part, make_of(part)).start(now_ms)

    def note(self, now_ms: int, found: Found) -> None:
        """Take in what a part found; with the last part, call ``then``."""
        self._found.update(found)
        self._left -= 1
        if not self._left:
            self._then(now_ms, self._found)
