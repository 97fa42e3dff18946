"""What a node knows of a partition's voters: which nodes they are, since when, and which may come next.

``cohort`` was seated in ``era``, an epoch; the newest leadership known is ``epoch``. ``pending`` are
the cohorts of candidacies that this node has promised and whose end it does not know. A write or a
read needs its quorum in the cohort and in every pending one: a candidate with a new cohort has all
its new members take over what the voters hold, after they voted. So what was acknowledged before a
vote reaches a majority of the new cohort by that, and what is acknowledged after it by the quorum
in the pending cohort. Nothing acknowledged is forgotten by a move, completions included.

A pending cohort stays until an epoch at least as new as its number is known to have a leader: its swap
of the document may be on its way even when the candidate has given up. The number is the epoch after the
one that the candidate read in the document: a swap bound to that revision fails once a newer epoch stands
there. Were it the candidate's own epoch, a candidate that lost to an older one would leave it for ever.

Kept in the store, durable like a promise: a voter that forgot a pending cohort would let an acknowledgement pass
that the new cohort never hears of.

Rejected: counting by the placement alone, which members see change at different moments.
"""

from __future__ import annotations

import json
from collections.abc import Collection

import attrs

from skuld_py.errors import Corrupt
from skuld_py.model.store import Store
from skuld_py.partition.data.tables import standing_key

Names = tuple[str, ...]


@attrs.frozen
class Standing:
    """The newest ``epoch`` with a leader; ``cohort`` since ``era``; ``pending`` by epoch."""

    epoch: int = 0
    era: int = 0
    cohort: Names = ()
    pending: tuple[tuple[int, Names], ...] = ()
    groups: tuple[Names, ...] = attrs.field(init=False, eq=False, repr=False, default=attrs.Factory(
        lambda self: (self.cohort, *[cohort for _, cohort in self.pending]) if self.era else (), takes_self=True))
    """The cohorts in each of which a quorum is needed; none before the first leader."""

    def includes(self, node: str) -> bool:
        """Whether a node votes, or may come to vote."""
        return any(node in group for group in self.groups)

    def settled(self, epoch: int, era: int, cohort: Names) -> Standing:
        """After learning that an epoch has a leader, over a cohort seated in ``era``."""
        if epoch < self.epoch or era < self.era:
            return self
        pending = tuple(row for row in self.pending if row[0] > epoch)
        return Standing(epoch, era, cohort, pending)

    def proposed(self, epoch: int, cohort: Names) -> Standing:
        """After hearing of a candidacy for a cohort that an epoch like this one would settle."""
        if not self.era or _same(cohort, self.cohort) or any(_same(cohort, other) for _, other in self.pending):
            kept = tuple((max(at, epoch) if _same(cohort, other) else at, other) for at, other in self.pending)
            return attrs.evolve(self, pending=kept)
        return attrs.evolve(self, pending=(*self.pending, (epoch, cohort)))


def _same(one: Collection[str], other: Collection[str]) -> bool:
    return sorted(one) == sorted(other)


def load_standing(store: Store, partition: int) -> Standing:
    """What is stored, or nothing known."""
    record = store.get("meta", standing_key(partition))
    if record is None:
        return Standing()
    try:
        epoch, era, cohort, pending = json.loads(record)
        return Standing(epoch, era, tuple(cohort), tuple((at, tuple(names)) for at, names in pending))
    except (ValueError, TypeError):
        raise Corrupt("meta", standing_key(partition)) from None


def save_standing(store: Store, partition: int, standing: Standing) -> None:
    """Stage it."""
    record = json.dumps([standing.epoch, standing.era, standing.cohort, standing.pending])
    store.put_many("meta", [(standing_key(partition), record.encode())])
