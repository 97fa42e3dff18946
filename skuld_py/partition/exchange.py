"""Anti-entropy, first form: two replicas of a partition walk it together, page by page.

The initiator sends the digests of a page of ids; the peer answers with the tasks that the initiator
lacks or has otherwise, and the ids it wants in return; the initiator repairs it and goes on. One
pass makes both equal in everything that did not change meanwhile. Memory is one page.

A walk costs the whole partition, so it runs when there is reason: a node came up, a leader was
made, a copy was not acknowledged; and rarely otherwise. The page walk is the floor under Merkle
trees, which only choose the pages.

Rejected: sending whole trees or whole tasks, as Skuld did every ten seconds.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from skuld_py.config import Limits
from skuld_py.errors import Malformed
from skuld_py.model import columns, ids
from skuld_py.model.events import Effect, Send
from skuld_py.model.messages import Compare, Compared, Repair, TaskRow
from skuld_py.partition.replica import Replica
from skuld_py.partition.rows import digests, merge_rows, read_rows


@attrs.define
class Exchange:
    """A walk with one peer; ``expires_ms`` is when an unanswered page ends it."""

    replica: Replica
    peer: str
    limits: Limits
    partitions: int
    patience_ms: int
    expires_ms: int = 0
    is_done: bool = False
    _after: bytes = b""

    def ask(self, now_ms: int) -> list[Effect]:
        """Send the next page."""
        self.expires_ms = now_ms + self.patience_ms
        page, upto = digests(self.replica, self._after, b"", self.limits.page_rows)
        return [Send(self.peer, Compare(self.replica.partition, self._after, upto, b"".join(page),
                                        columns.pack_u64(list(page.values()))))]

    def on_compared(self, now_ms: int, answer: Compared) -> list[Effect]:
        """Merge the peer's page, repair the peer, go on."""
        if self.is_done or answer.after != self._after or (answer.upto and answer.upto <= self._after):
            return []
        merge_rows(self.replica, now_ms, self.partitions, answer.tasks)
        effects: list[Effect] = [
            Send(self.peer, Repair(self.replica.partition, tuple(rows)))
            for rows in _in_messages(read_rows(self.replica, ids.split(answer.wanted)), self.limits)]
        self._after = answer.upto
        self.is_done = not answer.upto
        return effects if self.is_done else effects + self.ask(now_ms)


def compare(replica: Replica, limits: Limits, question: Compare) -> Compared:
    """The answer to a page: what I have more or other, what I want, and how far that reaches."""
    theirs = dict(zip(ids.split(question.ids), columns.unpack_u64(question.digests), strict=True))
    if any(not question.after < task_id for task_id in theirs):
        raise Malformed("Compare.ids", "an id is outside the page")
    mine, upto = digests(replica, question.after, question.upto, limits.page_rows)
    differing = [task_id for task_id, digest in mine.items() if theirs.get(task_id) != digest]
    rows = read_rows(replica, differing)
    kept = next(_in_messages(rows, limits), [])
    if len(kept) < len(rows):
        upto = kept[-1].id
    wanted = [task_id for task_id, digest in sorted(theirs.items())
              if mine.get(task_id) != digest and (not upto or task_id <= upto)]
    return Compared(question.partition, question.after, upto, tuple(kept), b"".join(wanted))


def _in_messages(rows: list[TaskRow], limits: Limits) -> Iterator[list[TaskRow]]:
    """Cut rows into messages of at most ``page_rows`` rows and about ``page_bytes`` bytes."""
    part: list[TaskRow] = []
    size = 0
    for row in rows:
        if part and (len(part) >= limits.page_rows or size >= limits.page_bytes):
            yield part
            part, size = [], 0
        part.append(row)
        size += len(row.body.data) + len(row.history) + len(row.entries.data) + 64
    if part:
        yield part
