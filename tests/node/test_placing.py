"""A placement that is decided elsewhere reaches the node with the news; everything else reaches it at once."""

from __future__ import annotations

from collections import deque

import pytest

from skuld_py.cluster.deciding import Deciding
from skuld_py.cluster.decisions import computed
from skuld_py.cluster.membership import Membership
from skuld_py.cluster.placement import place
from skuld_py.cluster.scheduling import Scheduling
from skuld_py.config import Parameters
from skuld_py.model.columns import Column
from skuld_py.model.decision_messages import DECLINED, Decide
from skuld_py.model.document import Member
from skuld_py.model.events import (
    Compute,
    Computed,
    Effect,
    Event,
    MembersChanged,
    NodesChanged,
    Received,
    SchedulersChanged,
    Send,
    Ticked,
)
from skuld_py.model.messages import Undecided
from skuld_py.node import node as node_module
from skuld_py.node.node import Node
from skuld_py.node.placing import Placing, placed_by
from skuld_py.node.process import Process
from skuld_py.simulation.store import MemoryStore

PARAMETERS = Parameters("test", "id", 64, 3)
NAMES = tuple(f"10.0.0.{n}:13000" for n in range(8))
ANNA = Member(NAMES[0], "10.0.0.0", 13000, "boot")


class Recorder:
    """A node that remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[Event] = []

    def step(self, now_ms: int, event: Event) -> list[Effect]:
        self.told.append(event)
        return []

    def deadline(self) -> int:
        return 70

    @property
    def news(self) -> list[NodesChanged]:
        return [event for event in self.told if isinstance(event, NodesChanged)]


class Cluster:
    """Nodes of which some are schedulers, too; messages arrive in order, computations end when told to."""

    def __init__(self, schedulers: tuple[str, ...]) -> None:
        self.nodes = {name: Recorder() for name in NAMES}
        self.machines = {
            name: Placing(self.nodes[name], PARAMETERS, Deciding(name), lambda: 5,
                          Scheduling() if name in schedulers else None) for name in NAMES}
        self.computing: list[tuple[str, Compute]] = []
        self.count = 0
        for name in NAMES:
            self.give(name, SchedulersChanged(schedulers))

    def give(self, name: str, event: Event) -> None:
        queue = deque([(name, event)])
        while queue:
            to, event = queue.popleft()
            for effect in self.machines[to].step(0, event):
                if isinstance(effect, Send):
                    queue.append((effect.peer, Received(to, effect.message)))
                elif isinstance(effect, Compute):
                    self.computing.append((to, effect))
                    self.count += 1

    def compute(self) -> None:
        while self.computing:
            name, asked = self.computing.pop(0)
            self.give(name, computed(asked))


def placed(*names: str, leaving: tuple[str, ...] = ()) -> NodesChanged:
    return NodesChanged(names, leaving, place(names, 64, 3))


def test_the_placement_is_worked_out_by_schedulers_and_reaches_all_nodes_with_the_news() -> None:
    cluster = Cluster(NAMES[:2])
    for name in NAMES:
        cluster.give(name, NodesChanged(NAMES[:5], NAMES[5:6]))
    assert not any(node.news for node in cluster.nodes.values())
    assert {name for name, _ in cluster.computing} == {*NAMES[:2]}
    cluster.compute()

    assert all(node.news == [placed(*NAMES[:5], leaving=NAMES[5:6])] for node in cluster.nodes.values())


def test_everything_else_reaches_the_node_while_the_decision_is_pending() -> None:
    cluster = Cluster(NAMES[:2])
    news = [MembersChanged((ANNA,)), Ticked()]
    cluster.give(NAMES[7], NodesChanged(NAMES[:5]))
    for event in news:
        cluster.give(NAMES[7], event)

    assert cluster.nodes[NAMES[7]].told == news


def test_news_that_are_overtaken_are_never_told_and_what_is_known_is_told_at_once() -> None:
    cluster = Cluster(NAMES[:2])
    me = NAMES[7]
    cluster.give(me, NodesChanged(NAMES[:5]))
    cluster.give(me, NodesChanged(NAMES[:6]))
    cluster.give(me, NodesChanged(NAMES[:6], NAMES[6:7]))
    cluster.compute()
    assert cluster.nodes[me].news == [placed(*NAMES[:6], leaving=NAMES[6:7])]

    cluster.give(me, NodesChanged(NAMES[:6]))

    assert cluster.nodes[me].news[1:] == [placed(*NAMES[:6])] and not cluster.computing


def test_back_to_what_was_before_while_something_else_is_pending() -> None:
    cluster = Cluster(())
    cluster.give(ANNA.name, NodesChanged(NAMES[:5]))
    cluster.compute()
    cluster.give(ANNA.name, NodesChanged(NAMES[:6]))
    cluster.give(ANNA.name, NodesChanged(NAMES[:5]))
    cluster.compute()

    assert cluster.nodes[ANNA.name].news == [placed(*NAMES[:5])] * 2


def test_without_schedulers_each_works_it_out_and_who_is_none_declines() -> None:
    cluster = Cluster(())
    for name in NAMES:
        cluster.give(name, NodesChanged(NAMES[:5]))
    assert cluster.count == len(NAMES)
    cluster.compute()
    assert all(node.news == [placed(*NAMES[:5])] for node in cluster.nodes.values())

    question = Decide("placement-1", 1, bytes(16), False, Column())
    sent, = cluster.machines[NAMES[0]].step(0, Received(NAMES[1], question))
    assert sent == Send(NAMES[1], Undecided(bytes(16), DECLINED))


def test_questions_and_answers_reach_the_node_s_side_of_a_process() -> None:
    node = Recorder()
    process = Process(node, Membership(ANNA, lambda: "a~1", lambda most: 0))
    told: list[Event] = [Received(NAMES[1], Decide("placement-1", 1, bytes(16), False, Column())),
                         Received(NAMES[1], Undecided(bytes(16), DECLINED)), Computed(bytes(16), "")]
    for event in told:
        process.step(0, event)

    assert node.told == told


def test_a_node_is_placed_by_the_schedulers_that_are_named() -> None:
    node = Recorder()
    assert placed_by((), node, NAMES[0], PARAMETERS, lambda: 1) is node

    asked = placed_by(NAMES[1:3], node, NAMES[0], PARAMETERS, lambda: 1).step(0, NodesChanged(NAMES))
    assert sorted(effect.peer for effect in asked if isinstance(effect, Send)) == [*NAMES[1:3]]
    own, = placed_by(NAMES[:3], node, NAMES[0], PARAMETERS, lambda: 1).step(0, NodesChanged(NAMES))
    assert isinstance(own, Compute)


def test_it_wants_a_tick_when_any_part_of_it_does() -> None:
    cluster = Cluster(NAMES[:2])
    machine = cluster.machines[NAMES[7]]
    assert machine.deadline() == 70
    machine.step(-1_000, NodesChanged(NAMES[:5]))

    assert machine.deadline() == -500


def test_a_node_takes_the_placement_it_is_told_and_works_out_the_one_it_is_not(
        monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(ANNA, PARAMETERS, MemoryStore(), lambda most: 0, 1)
    node.step(0, NodesChanged(NAMES[:4]))
    assert [node.owners(partition) for partition in range(64)] == list(place(NAMES[:4], 64, 3))
    monkeypatch.setattr(node_module, "place", None)

    node.step(0, placed(*NAMES))

    assert [node.owners(partition) for partition in range(64)] == list(place(NAMES, 64, 3))
