"""Changes besides grants, which a leader records and has its cohort record.

A follower may have missed the claim that is renewed or ended, so the claim travels whole: no follower acknowledges
its renewal without recording the claim itself. With it go the marks, the newest claim, and those claims of the
present round that count as attempts: what a majority counts decides when a task is dead. Claims that were snoozed
or released before, and those of earlier rounds, stay behind. There may be a thousand of them, and no verdict of a
follower rests on them.

Rejected: the whole history, which grew so long for tasks that are snoozed again and again that no message held
those of a batch; the renewed end alone, which a follower without the claim could not record.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import attrs

from skuld_py.crdt import LatticeMap
from skuld_py.model.history import FAILED, History
from skuld_py.model.outcomes import ERROR_SEQ
from skuld_py.partition.data.facts import Amendment, Mark
from skuld_py.partition.data.replica import Replica

SHORT_BYTES = 256
"""A history no longer than this travels as it is: to take anything out would cost more."""


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
        """The tasks that it changes or makes known, each once."""
        return list(dict.fromkeys([*(row.id for row in self.amendments), *(mark.id for mark in self.marks),
                                   *self.known]))

    def apply(self, now_ms: int, replica: Replica) -> None:
        """Record the change on one copy."""
        replica.amend(now_ms, self.amendments)
        replica.mark(now_ms, self.marks)
        replica.note_outcomes(ERROR_SEQ, [row[0] for row in self.errors], [row[1] for row in self.errors],
                              list(self.errors.values()))

    def records(self, histories: Sequence[bytes]) -> list[bytes]:
        """Of the histories of ``ids``, in their order, what the cohort must record."""
        if all(len(history) <= SHORT_BYTES for history in histories):
            return list(histories)
        tokens: dict[bytes, dict[int, None]] = {}
        for row in self.amendments:
            tokens.setdefault(row.id, {})[row.token] = None
        whole = dict.fromkeys(self.known)
        return [history if len(history) <= SHORT_BYTES or task_id in whole
                else excerpt(history, tokens.get(task_id, {}))
                for task_id, history in zip(self.ids, histories, strict=True)]

    def errors_of(self, task_ids: Sequence[bytes]) -> tuple[list[int], list[bytes]]:
        """Token and error for each task, 0 and nothing where it has none; two empty lists where none has."""
        if not self.errors:
            return [], []
        by_id = {task_id: (token, error) for (task_id, token), error in self.errors.items()}
        found = [by_id.get(task_id, (0, b"")) for task_id in task_ids]
        return [token for token, _ in found], [error for _, error in found]


def excerpt(record: bytes, tokens: Collection[int]) -> bytes:
    """A history without the claims on which nothing rests while these ones change."""
    history = History.decode(record)
    newest, base = history.newest_token, history.base
    claims = {token: claim for token, claim in history.claims.entries.items()
              if token == newest or token in tokens or (token > base and claim.kind in (0, FAILED))}
    return attrs.evolve(history, claims=LatticeMap(claims)).encode()
