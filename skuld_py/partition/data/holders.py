"""Who holds the claims of the queues that cap them for each holder, as far as this node keeps copies.

A queue is counted once, by a walk over its claims (``node.claims.caps``), when its cap may first bind. From then
on the filing says what is claimed and what is claimed no more, so a look at one holder costs one look-up, however
much is held; each claim of such a queue takes some hundred bytes. Queues without a cap are not here: they cost the
filing one truth test for each batch.

Invariant: for a queue that was counted, ``tasks`` has exactly the tasks with a lease in some copy here, each with
the holder of its newest claim. (Before a node lives its leases may be written otherwise; nothing is counted then.)

Rejected: to count anew each second. Ten thousand claims take a quarter of a second to read, and what other leaders
grant in between would not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from skuld_py.model.history import CLAIM, HISTORY_HEAD, History, decode_history
from skuld_py.partition.data.tables import queue_of

_ONE_CLAIM = HISTORY_HEAD.size + CLAIM.size


def holder_of(history: History) -> str:
    """The holder of the newest claim; empty without one."""
    claim = history.claims.entries.get(history.newest_token)
    return claim.holder if claim is not None else ""


def holder_in(record: bytes) -> str:
    """The same of a stored history; that of one claim and nothing else, as most are, is not decoded."""
    if len(record) == _ONE_CLAIM + record[_ONE_CLAIM - 1]:
        return record[_ONE_CLAIM:].decode()
    return holder_of(decode_history(record))


@attrs.define
class Held:
    """The claims of one queue: their holders by task, and how many each has."""

    tasks: dict[bytes, str] = attrs.field(factory=dict)
    counts: dict[str, int] = attrs.field(factory=dict)
    ended: dict[bytes, str] = attrs.field(factory=dict)
    """What has ended since this was last emptied, and is not claimed again by the same holder. (A claim that is
    renewed is taken out and filed again.)"""

    def begin(self, task_id: bytes, holder: str) -> None:
        """A task is claimed, perhaps by another holder than before."""
        self.end(task_id)
        self.tasks[task_id] = holder
        self.counts[holder] = self.counts.get(holder, 0) + 1
        if self.ended.get(task_id) == holder:
            del self.ended[task_id]

    def end(self, task_id: bytes) -> None:
        """A task is claimed no more, if it was."""
        holder = self.tasks.pop(task_id, None)
        if holder is None:
            return
        self.ended[task_id] = holder
        left = self.counts.pop(holder) - 1
        if left:
            self.counts[holder] = left


class Holders:
    """The queues that were counted."""

    def __init__(self) -> None:
        self.queues: dict[bytes, Held] = {}

    def begin(self, task_ids: Iterable[bytes], places: Iterable[bytes], holder: str) -> None:
        """Tasks are claimed by one holder; ``places``: where each would wait."""
        for task_id, place in zip(task_ids, places, strict=True):
            held = self.queues.get(queue_of(place))
            if held is not None:
                held.begin(task_id, holder)

    def begin_one(self, task_id: bytes, place: bytes, history: History) -> None:
        """A task is claimed, as its history says."""
        self.begin([task_id], [place], holder_of(history) if self.queues else "")

    def end(self, leases: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Tasks whose leases are gone, each with what its lease said; None for one that had none."""
        for task_id, lease in leases:
            held = self.queues.get(queue_of(lease[1:])) if lease is not None else None
            if held is not None:
                held.end(task_id)

    def counts(self, queue: bytes) -> Mapping[str, int] | None:
        """How many each holder has of a queue; None if it is not counted."""
        held = self.queues.get(queue)
        return held.counts if held is not None else None

    def take_ended(self, queue: bytes) -> int | None:
        """How many claims of a queue have ended since the last call; None if it is not counted."""
        held = self.queues.get(queue)
        if held is None:
            return None
        ended = len(held.ended)
        held.ended.clear()
        return ended

    def forget(self, queue: bytes) -> None:
        """The queue caps its holders no more."""
        self.queues.pop(queue, None)
