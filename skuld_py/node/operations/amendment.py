"""What a leader changes besides grants, each by a majority: leases, endings, marks."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from skuld_py.model import messages as m
from skuld_py.node.operations.cohort import CohortOperation
from skuld_py.node.operations.operation import Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.partition.data.change import Change
from skuld_py.partition.vnode import Vnode


class AmendOperation(CohortOperation):
    """The changes besides grants, by partition. ``answer`` is true once a majority has recorded it.

    What one message cannot hold travels in pages, one after the other, each with the number and the patience of an
    operation of its own: an answer tells by its number which page was recorded.
    """

    def __init__(self, operations: Operations, origin: Origin, now_ms: int, changes: Mapping[Vnode, Change],
                 answer: m.Message) -> None:
        super().__init__(operations, origin, now_ms)
        self._changes = changes
        self._answer = answer
        self._pages: dict[Vnode, list[m.Amend]] = {}
        """Recorded here, and not sent yet."""

    def begin(self, now_ms: int) -> None:
        """Record here, ask the cohorts."""
        self._pages.update((vnode, vnode.amend(now_ms, change)) for vnode, change in self._changes.items())
        for vnode, pages in self._pages.items():
            self.open_ballot(vnode, attrs.evolve(pages.pop(0), request=self.request))
        self._pages = {vnode: pages for vnode, pages in self._pages.items() if pages}
        self._wake(now_ms)
        self.decide_if_settled(now_ms)

    def on_reply(self, now_ms: int, peer: str, message: m.Message) -> None:
        """A follower recorded or refused."""
        if isinstance(message, m.Amended) and self.record(now_ms, peer, message) is not None:
            self.decide_if_settled(now_ms)

    def decide(self, now_ms: int) -> None:
        """Answer; without a majority the outcome is not known."""
        if all(ballot.has_majority() for ballot in self.ballots.values()):
            if self._pages:
                self._turn_over(now_ms)
                return
            self.answer(self._answer)
        else:
            self.give_up("the claim's cohort did not acknowledge in time; try again")
        self.end()
        self._leave_a_split_cohort(now_ms)

    def _turn_over(self, now_ms: int) -> None:
        self.end()
        following = AmendOperation(self.operations, self.origin, now_ms, {}, self._answer)
        following.has_answered, following._pages = self.has_answered, self._pages
        following.start(now_ms)

    def _leave_a_split_cohort(self, now_ms: int) -> None:
        """Resign where too many refused: in this epoch no leader can grant, in a newer one perhaps this one."""
        for ballot in self.ballots.values():
            if ballot.is_refused and ballot.is_led and not ballot.has_majority():
                ballot.vnode.resign(now_ms, "a majority of its voters refused")
