"""The eleven faults that were found in Manatee (B1 to B11), each by its own name, on this project's roles."""

from __future__ import annotations

import itertools
import json
from typing import Any

import attrs
import pytest

from node.machines import Machines
from skuld_py.model.document import Document, Freeze, Member, Promotion, seats_of
from skuld_py.model.events import (
    DocumentChanged,
    Effect,
    MembersChanged,
    NodesChanged,
    Session,
    SessionChanged,
    SwapDocument,
)
from skuld_py.model.memory_store import MemoryStore
from skuld_py.node.node import Node
from skuld_py.node.turn import take_turn
from skuld_py.partition.leadership.evaluator import Facts, Resign, Stand, Write, evaluate, next_cohort
from skuld_py.partition.leadership.standing import Standing

NOW = 1_000
NAMES = ("n1", "n2", "n3")
LIVE = {name: Member(name, "h", 1, f"boot of {name}") for name in NAMES}
LEADER = Facts(LIVE["n1"], LIVE, NAMES, 4, 4)
DOCUMENT = Document(4, "n1", "boot of n1", seats_of(NAMES), era=1, horizon_ms=9_000)
WISH = Promotion("p", "lead", "n3", 4, NOW + 1, "op")
FROZEN = Freeze("f", "op", "why", 1)


def led() -> Machines:
    machines = Machines(partitions=1)
    machines.pass_time(2_000)
    return machines


def test_b1_a_deposed_leader_that_hears_of_its_end_and_of_a_wish_at_once_obeys_nothing() -> None:
    newer = attrs.evolve(DOCUMENT, epoch=5, leader="n2", boot="boot of n2", promote=attrs.evolve(WISH, epoch=5))

    assert isinstance(evaluate(LEADER, newer, NOW), Resign)
    assert isinstance(evaluate(LEADER, attrs.evolve(newer, freeze=FROZEN), NOW), Resign)


def test_b2_a_write_is_bound_to_what_it_was_made_of_so_no_freeze_is_overwritten() -> None:
    machines = led()
    version, document = machines.documents[0]
    machines.documents[0] = version + 1, attrs.evolve(document, freeze=FROZEN, unknown={"later": 1})
    vnode = machines.nodes[document.leader].view.vnodes[0]
    vnode.wanted_horizon_ms = document.horizon_ms + 1
    vnode.election.changed(0)
    machines.pass_time(3_000)

    after = machines.documents[0][1]
    assert after.horizon_ms > document.horizon_ms
    assert (after.epoch, after.freeze, after.unknown) == (document.epoch, FROZEN, {"later": 1})


def test_b2_a_freeze_that_lands_during_a_candidacy_ends_it_and_the_recorded_leader_leads_again() -> None:
    machines = led()
    document = machines.documents[0][1]
    heir = next(name for name in document.cohort if name != document.leader)
    wish = Promotion("p", "lead", heir, document.epoch, machines.now_ms + 30_000, "op")
    machines.write(0, attrs.evolve(document, promote=wish))
    stands = machines.nodes[heir].view.vnodes[0].election
    while stands.is_idle or not machines.nodes[heir].view.vnodes[0].promise.epoch > document.epoch:
        machines.deliver(1) if machines.flying else machines.pass_time(1)
    machines.write(0, attrs.evolve(machines.documents[0][1], freeze=FROZEN))
    machines.pass_time(10_000)

    after = machines.documents[0][1]
    assert (after.leader, after.freeze) == (document.leader, FROZEN)
    assert machines.nodes[document.leader].view.vnodes[0].is_leading


def test_b3_a_wish_for_a_node_that_is_gone_promotes_no_other_one() -> None:
    here = {name: LIVE[name] for name in ("n1", "n2")}

    assert evaluate(attrs.evolve(LEADER, live=here), attrs.evolve(DOCUMENT, promote=WISH), NOW) == Write(DOCUMENT)


def test_b4_a_swap_in_doubt_is_settled_by_what_is_read() -> None:
    machines = led()
    leader = machines.documents[0][1].leader
    machines.is_in_doubt = True
    machines.nodes[leader].view.vnodes[0].resign(machines.now_ms)
    machines.pass_time(5_000)
    machines.is_in_doubt = False
    machines.pass_time(5_000)

    version, document = machines.documents[0]
    election = machines.nodes[document.leader].view.vnodes[0].election
    assert election.is_leading
    assert (election.document, election.version, election.epoch) == (document, version, document.epoch)


class Losing(Machines):
    """All writes fail, once ``is_losing``."""

    is_losing = False
    swaps = 0

    def _carry_out(self, name: str, effect: Effect) -> None:
        if isinstance(effect, SwapDocument) and self.is_losing:
            self.swaps += 1
            effect = attrs.evolve(effect, version=effect.version + 99)
        super()._carry_out(name, effect)


def test_b5_writes_that_fail_are_not_made_again_without_a_pause() -> None:
    machines = Losing(partitions=1)
    machines.pass_time(2_000)
    machines.is_losing = True
    wish = Promotion("p", "nonsense", "", 1, machines.now_ms + 30_000, "op")
    machines.write(0, attrs.evolve(machines.documents[0][1], promote=wish))
    machines.pass_time(10_000)

    assert 1 <= machines.swaps <= 10_000 // 100


def test_b6_an_older_epoch_is_no_news() -> None:
    known = Standing(5, 2, NAMES)

    assert known.settled(4, 1, ("n2", "n3", "n4")) is known


def test_b7_who_must_fill_again_gets_no_vote_because_it_is_there() -> None:
    assert next_cohort(NAMES, ("n1", "n2", "n4"), (), ("n1", "n2", "n3", "n4")) == NAMES


EVENTS = (SessionChanged(Session.CONNECTED), MembersChanged(tuple(LIVE.values())), NodesChanged(NAMES),
          DocumentChanged(0))


@pytest.mark.parametrize("order", list(itertools.permutations(EVENTS)), ids=str)
def test_b8_news_come_in_any_order(order: tuple[Any, ...]) -> None:
    machines = Machines(partitions=1)
    node = Node(LIVE["n1"], machines.parameters, MemoryStore(), lambda most: most, 1)
    for event in order:
        take_turn(node, 1_000, [event])
    assert node.deadline() > 0


@pytest.mark.parametrize("raw", [{"promote": {**attrs.asdict(WISH), "target": None}}, {"promote": []},
                                 {"promote": {**attrs.asdict(WISH), "epoch": None}}, {"freeze": {"by": 1}}],
                         ids=["b9 nobody", "b10 nothing", "b10 no epoch", "a freeze"])
def test_b9_b10_a_wish_with_a_field_missing_stops_no_node(raw: dict[str, Any]) -> None:
    read = Document.decode(json.dumps({**json.loads(DOCUMENT.encode()), **raw}).encode())

    assert evaluate(LEADER, read, NOW) == Write(DOCUMENT)


def test_b11_a_wish_is_over_by_time_alone_and_presence_is_not_health() -> None:
    machines = led()
    document = machines.documents[0][1]
    wish = Promotion("p", "lead", document.cohort[1], document.epoch, machines.now_ms + 1_500, "op")
    machines.is_lost = lambda message: type(message).__name__ == "Abdicate"
    machines.write(0, attrs.evolve(document, promote=wish))
    machines.pass_time(1_000)
    assert machines.documents[0][1].promote == wish
    machines.pass_time(1_000)
    assert machines.documents[0][1].promote is None

    heir = attrs.evolve(LEADER, me=LIVE["n2"], epoch=0, is_overdue=True)
    assert evaluate(heir, DOCUMENT, NOW) == Stand(NAMES)
