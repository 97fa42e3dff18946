"""Having cohorts record what their leader decides: each partition of a request is decided by its own cohort.

The leader records first on its own copy, then asks the others; it stands once a majority, leader included, has
recorded it.
"""

from __future__ import annotations

import attrs

from skuld_py.model import messages as m
from skuld_py.node.operations.operation import Operation, Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.partition.data.facts import Grant
from skuld_py.partition.leadership.quorum import has_majority
from skuld_py.partition.vnode import Vnode


@attrs.define
class Ballot:
    """The cohort's answers for one partition; ``against`` lists vetoers per index."""

    vnode: Vnode
    epoch: int
    cohort: tuple[str, ...]
    message: m.Grant | m.Amend
    grant: Grant | None = None
    acked: dict[str, None] = attrs.field(factory=dict)
    waiting: dict[str, None] = attrs.field(factory=dict)
    against: dict[int, dict[str, None]] = attrs.field(factory=dict)
    is_refused: bool = False
    """Whether a voter has promised this very epoch to another candidate or to none, or is suspect."""

    @property
    def is_led(self) -> bool:
        """Whether the vnode still leads the epoch of this ballot."""
        return self.vnode.leads(self.epoch)

    def has_majority(self, index: int = -1) -> bool:
        """Whether a majority has recorded it (or the claim at ``index``)."""
        vetoed = self.against.get(index, {})
        return self.is_led and has_majority(self.cohort, [name for name in self.acked if name not in vetoed])

    def may_stand(self, index: int) -> bool:
        """Whether, as far as its leader has heard, a majority may have recorded the claim at ``index``."""
        vetoed = self.against.get(index, {})
        return has_majority(self.cohort, [name for name in (*self.acked, *self.waiting) if name not in vetoed])

    def is_settled(self) -> bool:
        """Whether waiting longer cannot help."""
        if not self.waiting or not self.is_led:
            return True
        return self.has_majority() and all(self.has_majority(index) for index in self.against)


class CohortOperation(Operation):
    """Several partitions' ballots, one message per partition and follower."""

    def __init__(self, operations: Operations, origin: Origin, now_ms: int) -> None:
        super().__init__(operations, origin, now_ms, operations.view.timing.grant_ms)
        self.ballots: dict[int, Ballot] = {}

    def open_ballot(self, vnode: Vnode, message: m.Grant | m.Amend, grant: Grant | None = None) -> None:
        """Send to the cohort; the leader's own record counts as the first."""
        cohort = vnode.election.cohort
        ballot = Ballot(vnode, message.epoch, cohort, message, grant, {self.view.me.name: None})
        self.ballots[vnode.partition] = ballot
        vnode.open_grants += grant is not None
        for name in cohort:
            if name != self.view.me.name:
                ballot.waiting[name] = None
                self.outbox.send(name, message)

    def on_timer(self, now_ms: int) -> None:
        """Send again to the nodes that are silent and alive, or decide."""
        if now_ms >= self.deadline_ms:
            self.on_deadline(now_ms)
            return
        for ballot in self.ballots.values():
            for name in ballot.waiting:
                if name in self.view.live:
                    self.outbox.send(name, ballot.message)
        self._wake_later(now_ms)

    def end(self) -> None:
        """End: its node forgets it, and its grants are open no more at their partitions."""
        if not self.is_closed:
            for ballot in self.ballots.values():
                ballot.vnode.open_grants -= ballot.grant is not None
        super().end()

    def record(self, now_ms: int, peer: str, reply: m.Granted | m.Amended) -> Ballot | None:
        """Count an answer for its ballot, which is given back; None when no ballot waits for it."""
        ballot = self.ballots.get(reply.partition)
        if ballot is None or peer not in ballot.waiting:
            return None
        del ballot.waiting[peer]
        if reply.is_accepted:
            ballot.acked[peer] = None
        elif reply.promised > ballot.epoch and ballot.is_led:
            ballot.vnode.resign(now_ms, "a voter has promised a newer epoch")
        else:
            ballot.is_refused = True
        return ballot

    def decide_if_settled(self, now_ms: int) -> None:
        """Decide once no ballot can change any more."""
        if all(ballot.is_settled() for ballot in self.ballots.values()):
            self.decide(now_ms)

    def decide(self, now_ms: int) -> None:
        """Answer by the ballots as they stand."""
        raise NotImplementedError

    def on_deadline(self, now_ms: int) -> None:
        """Decide by the answers that have come."""
        self.decide(now_ms)
