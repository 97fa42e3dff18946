"""An operator's change of a document is seen at once, by its leader and by those that may succeed it."""

from __future__ import annotations

import attrs
import pytest

from node.machines import Machines
from skuld_py.model.document import Freeze, Promotion
from skuld_py.model.events import (
    DocumentChanged,
    DocumentSwapped,
    Effect,
    Outcome,
    ReadDocument,
    Session,
    SessionChanged,
)
from skuld_py.node.leadership.watching import ROUND_MS

FROZEN = Freeze("f", "op", "why", 1)


@pytest.fixture
def machines() -> Machines:
    machines = Machines(partitions=1)
    machines.pass_time(2_000)
    return machines


def leader_of(machines: Machines) -> str:
    return str(machines.documents[0][1].leader)


def freeze(machines: Machines) -> None:
    document = machines.documents[0][1]
    machines.write(0, attrs.evolve(document, freeze=FROZEN))


def test_a_leader_acts_by_what_an_operator_wrote(machines: Machines) -> None:
    leader = leader_of(machines)
    freeze(machines)
    machines.pass_time(10)

    election = machines.nodes[leader].view.vnodes[0].election
    assert election.is_leading
    assert (election.document.freeze, election.version) == (FROZEN, machines.documents[0][0])


def test_a_promotion_is_obeyed_within_a_second(machines: Machines) -> None:
    document = machines.documents[0][1]
    heir = next(name for name in document.cohort if name != document.leader)
    wish = Promotion("p", "lead", heir, document.epoch, machines.now_ms + 30_000, "op")
    machines.write(0, attrs.evolve(document, promote=wish))
    machines.pass_time(1_000)

    after = machines.documents[0][1]
    assert (after.leader, after.promote, after.cohort[0]) == (heir, None, heir)


def test_its_own_write_and_another_s_at_once_are_both_seen(machines: Machines) -> None:
    """The other's comes between its write and the answer to that: what the write said is not all there is."""
    leader = leader_of(machines)
    candidacy = machines.nodes[leader].view.candidacy(machines.nodes[leader].view.vnodes[0])
    election = machines.nodes[leader].view.vnodes[0].election
    document = attrs.evolve(election.document, horizon_ms=election.document.horizon_ms + 1, write_id="own")
    candidacy._written = document
    machines.write(0, document)
    freeze(machines)
    while machines.flying:
        machines.deliver(1)
    machines.give(leader, DocumentSwapped(0, "own", Outcome.WON, machines.documents[0][0] - 1))
    machines.pass_time(200)

    assert election.document.freeze == FROZEN


class Counting(Machines):
    """Counts the documents that its nodes ask for."""

    asked = 0

    def _carry_out(self, name: str, effect: Effect) -> None:
        self.asked += isinstance(effect, ReadDocument)
        super()._carry_out(name, effect)


def test_who_is_connected_again_reads_all_that_it_keeps() -> None:
    machines = Counting(partitions=2)
    machines.pass_time(2_000)
    name, before = machines.names[0], machines.asked
    machines.give(name, SessionChanged(Session.SUSPENDED))
    machines.give(name, DocumentChanged(0))
    machines.pass_time(10)
    assert machines.asked == before
    machines.give(name, SessionChanged(Session.CONNECTED))
    machines.pass_time(10)
    assert machines.asked == before + 2


def test_a_watch_that_was_lost_costs_one_round(machines: Machines) -> None:
    version, document = machines.documents[0]
    machines.documents[0] = version + 1, attrs.evolve(document, freeze=FROZEN)
    machines.pass_time(ROUND_MS)

    assert machines.nodes[leader_of(machines)].view.vnodes[0].election.document.freeze == FROZEN


def test_nobody_reads_what_it_does_not_keep() -> None:
    machines = Counting(partitions=4, replicas=1)
    machines.pass_time(2_000)
    before = machines.asked
    for name in machines.names:
        if not machines.nodes[name].view.vnodes[0].takes_writes:
            machines.give(name, DocumentChanged(0))

    assert machines.asked == before
