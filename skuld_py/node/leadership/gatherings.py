"""Whether those who stay hold the data of a partition whose voters are to become fewer: an operator has a dead one
taken out for good, or the cluster is to keep fewer copies.

A task may be acknowledged by two of three, one of them the one that goes. So before the voters become fewer, the
leader is compared with every voter that is there, and with a majority of all, after the wish was seen, or within
its epoch: then it has all that was acknowledged before, and all that any of them has, and has given them what they
lacked. Other voters that are down need not come back for that.

Rejected: to trust the comparisons of every day (the last one may be of before the last write).
"""

from __future__ import annotations

import attrs

from skuld_py.model.document import REAP, Promotion
from skuld_py.node.copies.exchanges import Exchanges
from skuld_py.node.operations.duty import NEVER_MS, Duty
from skuld_py.node.operations.operation import Operations
from skuld_py.partition.copies.exchange import Pass
from skuld_py.partition.leadership.quorum import has_majority
from skuld_py.partition.vnode import Vnode

PURSUE_MS = 500


@attrs.define
class _Gathering:
    """For one reason: an operator's wish, or the epoch. Exchanges from the one numbered ``first`` on count."""

    reason: Promotion | int
    voters: tuple[str, ...]
    first: int
    through: dict[str, None] = attrs.field(factory=dict)

    @property
    def lacking(self) -> list[str]:
        """Those that were not compared with yet."""
        return [name for name in self.voters if name not in self.through]


class Gatherings(Duty):
    """The gatherings of one node, for what it leads."""

    def __init__(self, operations: Operations, exchanges: Exchanges) -> None:
        self._view = operations.view
        self._exchanges = exchanges
        exchanges.on_pass.append(self._on_pass)
        self._open: dict[int, _Gathering] = {}
        self._changed = operations.view.bulletin.subscribe()
        self.due_ms = NEVER_MS
        self.news = (self._changed,)

    def is_through(self, vnode: Vnode) -> bool:
        """Whether the leader was compared with all who stay and are there, and a majority, since there is
        reason."""
        gathering, reason = self._open.get(vnode.partition), _reason(vnode)
        if gathering is None or reason is None or gathering.reason != reason:
            return False
        if any(name in self._view.live for name in gathering.lacking):
            return False
        return has_majority(vnode.election.document.cohort, (self._view.me.name, *gathering.through))

    def look(self, now_ms: int) -> None:
        """Begin where there is reason to, and go on until all were compared."""
        for partition in self._changed:
            self._note(self._view.vnodes[partition])
        self._changed.clear()
        self.due_ms = NEVER_MS
        for partition, gathering in self._open.items():
            for name in gathering.lacking:
                if name in self._view.live:
                    self._exchanges.pursue(partition, name)
                self.due_ms = now_ms + PURSUE_MS

    def _note(self, vnode: Vnode) -> None:
        reason, known = _reason(vnode), self._open.get(vnode.partition)
        if not vnode.is_leading or reason is None:
            self._open.pop(vnode.partition, None)
        elif known is None or known.reason != reason:
            gone = reason.target if isinstance(reason, Promotion) else ""
            voters = tuple(name for name in vnode.election.cohort if name not in (self._view.me.name, gone))
            self._open[vnode.partition] = _Gathering(reason, voters, self._exchanges.begun + 1)

    def _on_pass(self, now_ms: int, ended: Pass) -> None:
        gathering = self._open.get(ended.partition)
        if gathering is not None and ended.serial >= gathering.first:
            gathering.through[ended.peer] = None
            self._view.bulletin.change(ended.partition)


def _reason(vnode: Vnode) -> Promotion | int | None:
    """Why the voters are to become fewer, if they are."""
    document = vnode.election.document
    if document.promote is not None and document.promote.kind == REAP:
        return document.promote
    return document.epoch if 0 < len(vnode.owners) < len(document.cohort) else None
