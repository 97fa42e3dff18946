"""The questions of peers, this node among them, for pages of listings and of the counts of all queues: they wait
here, and a turn ends with one page.

A page is some tens of milliseconds of reading, and a client asks for thousands with one message. Read as they
come, they would keep a node from everything else for half a minute, renewals included. So a turn has a budget of
records, which one long page or some short ones use up. While a question waits the next turn comes at once, behind
all that has arrived: between two pages the node does whatever else it is asked for. A listing alone is answered in
the turn in which it comes, as if there were no queue.

Equal questions that wait share a page: it is read after each was asked, so it shows each what it must. A page
that tells much is shared by few: to make, send and join the answers takes time too.

A question asked again while it waits stays where it is. One whose asker has given up goes unread, and beyond
``PLACES`` none is taken in: its asker asks again, as if the question had been lost. The places are few, so that
each question in one is answered in time; a longer queue would answer all too late.

Rejected: to end pages sooner, which makes each listing slower and many of them no shorter; to tell a peer that
there is no place, since it asks again anyway; and to keep a page for equal questions of later turns, which would
be answered by what was read before they were asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from skuld_py.model import ids
from skuld_py.model import messages as m
from skuld_py.node.operations.duty import NEVER_MS, Duty
from skuld_py.node.operations.operation import Operations
from skuld_py.node.reads.counts import summed
from skuld_py.node.reads.listing import SCAN_ROWS, Lister
from skuld_py.partition.vnode import Vnode

PLACES = 64
"""Questions that wait: with pages of full length less than two seconds, half of what an asker waits for."""
SHARED_ROWS = 5_000
"""What one page may tell in its answers to equal questions: tasks, kilobytes, or counts of queues."""
EACH_ROWS = 100
"""Records that a question costs at least: to begin, and to answer."""
Question = m.List | m.Sum
Page = m.Listed | m.Summed


@attrs.frozen
class Waiting:
    """A question, and without its number what it is about."""

    since_ms: int
    question: Question
    matter: Question


class Pages(Duty):
    """Questions that wait, the oldest first; ``owned`` gives the partitions that the node can speak for."""

    due_ms = NEVER_MS

    def __init__(self, operations: Operations, owned: Callable[[], Sequence[Vnode]]) -> None:
        self._view = operations.view
        self._outbox = operations.outbox
        self._owned = owned
        self.waiting: dict[tuple[str, int], Waiting] = {}
        """By asker and number of the question."""
        self.news = self.waiting,

    def put(self, now_ms: int, peer: str, question: Question) -> None:
        """A peer asks, perhaps again, or for something else by the same number."""
        key = peer, question.request
        known = self.waiting.get(key)
        if known is None and len(self.waiting) >= PLACES:
            return
        if known is None or known.question != question:
            self.waiting[key] = Waiting(now_ms, question, _matter(question))

    def look(self, now_ms: int) -> None:
        """Answer the oldest question, and others as far as the turn's budget goes."""
        given_up_ms = now_ms - self._view.timing.request_ms
        for key in [key for key, each in self.waiting.items() if each.since_ms <= given_up_ms]:
            del self.waiting[key]
        spent = 0
        while self.waiting and spent < SCAN_ROWS:
            spent += EACH_ROWS + self._answer(now_ms, next(iter(self.waiting.values())).matter)

    def _answer(self, now_ms: int, matter: Question) -> int:
        """Read a page for all that wait for it; gives the records that were looked at or told."""
        page, looked_at = self._read(now_ms, matter)
        told = 1 + _told(page)
        equal = [key for key, each in self.waiting.items() if each.matter == matter]
        shared = equal[:max(1, SHARED_ROWS // told)]
        for peer, request in shared:
            self._outbox.send(peer, _addressed(page, self.waiting.pop((peer, request)).question))
        return looked_at + len(shared) * told

    def _read(self, now_ms: int, matter: Question) -> tuple[Page, int]:
        owned = self._owned()
        if isinstance(matter, m.Sum):
            return summed(owned, matter), SCAN_ROWS
        owned = [vnode for vnode in owned if matter.place in (0, vnode.partition + 1)]
        lister = Lister(now_ms, [vnode.replica for vnode in owned], self._view.limits, matter)
        return lister.listed([vnode.partition for vnode in owned]), lister.scanned


def _matter(question: Question) -> Question:
    if isinstance(question, m.Sum):
        return attrs.evolve(question, request=0, turn=0)
    return attrs.evolve(question, request=0)


def _told(page: Page) -> int:
    if isinstance(page, m.Summed):
        return len(page.rows)
    size = len(page.bodies.data) + len(page.histories.data)
    return max(len(page.ids) // ids.ID_BYTES, size >> 10)


def _addressed(page: Page, question: Question) -> Page:
    if isinstance(page, m.Summed):
        assert isinstance(question, m.Sum)
        return attrs.evolve(page, request=question.request, turn=question.turn)
    return attrs.evolve(page, request=question.request)
