"""What a leader records of claims and tasks besides grants, for its cohort to record too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from skuld_py.model.outcomes import ERROR_SEQ
from skuld_py.partition.facts import Amendment, Mark
from skuld_py.partition.replica import Replica


@attrs.frozen
class Change:
    """Renewed and ended claims, marks of tasks, and why claims failed (by id and token).

    ``known``: tasks of which nothing changes, and a majority shall know what the leader knows.
    """

    amendments: Sequence[Amendment] = ()
    marks: Sequence[Mark] = ()
    errors: Mapping[tuple[bytes, int], bytes] = attrs.field(factory=dict)
    known: Sequence[bytes] = ()

    @property
    def ids(self) -> list[bytes]:
        """The tasks that it is about, each once."""
        return list(dict.fromkeys([*(row.id for row in self.amendments), *(mark.id for mark in self.marks),
                                   *self.known]))

    def apply(self, now_ms: int, replica: Replica) -> None:
        """Record it on one copy."""
        replica.amend(now_ms, self.amendments)
        replica.mark(now_ms, self.marks)
        replica.note_outcomes(ERROR_SEQ, [row[0] for row in self.errors], [row[1] for row in self.errors],
                              list(self.errors.values()))

    def errors_of(self, task_ids: Sequence[bytes]) -> tuple[list[int], list[bytes]]:
        """Token and error for each task, 0 and nothing where it has none; two empty lists where none has."""
        if not self.errors:
            return [], []
        by_id = {task_id: (token, error) for (task_id, token), error in self.errors.items()}
        found = [by_id.get(task_id, (0, b"")) for task_id in task_ids]
        return [token for token, _ in found], [error for _, error in found]
