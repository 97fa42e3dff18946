"""What is looked at because it changed: a node whose slow round over all partitions never comes.

So whatever nobody marks stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from node.machines import Machines
from skuld_py.config import DEFAULT_LIMITS, Parameters
from skuld_py.config.timing import DEFAULT_TIMING
from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.body import Body, Header
from skuld_py.model.document import NOBODY, Member
from skuld_py.model.events import Event, MembersChanged, NodesChanged, Received, Session, SessionChanged, Ticked
from skuld_py.model.memory_store import MemoryStore
from skuld_py.node.leadership.elections import Steward
from skuld_py.node.operations.agenda import Agenda
from skuld_py.partition.data.bulletin import Bulletin
from skuld_py.partition.vnode import Vnode

NOW = 1_000_000
ONLY_MARKED = attrs.evolve(DEFAULT_TIMING, look_round=0)
ME = Member("me", "h", 1, "boot", "data")

CHANGES: dict[str, Callable[[Vnode], object]] = {
    "a leader is heard of": lambda vnode: vnode.note_leader("other", 7),
    "a leader leads no more": lambda vnode: vnode.forget_leader("first"),
    "a cohort is seated": lambda vnode: vnode.settle(NOW, 7, 7, ("me", "a", "b")),
    "a cohort may come": lambda vnode: vnode.expect(7, ("me", "a", "c"), 5),
    "an epoch is promised": lambda vnode: vnode.promise_to(NOW, 7, "other"),
    "its memory is in doubt": lambda vnode: vnode.doubt(NOW, "wiped"),
    "it is trusted, and another promise counts": lambda vnode: vnode.trust(NOW, 9),
    "it stands": lambda vnode: vnode.election.stand(NOW),
    "its document was written": lambda vnode: vnode.election.note_written(NOBODY, 3),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_every_change_is_told_once_for_each_who_listens(change: Callable[[Vnode], object]) -> None:
    bulletin = Bulletin()
    vnode = Vnode(5, ME, Parameters("c", "i", 8, 3), MemoryStore(), DEFAULT_TIMING, DEFAULT_LIMITS, lambda most: 0,
                  bulletin)
    vnode.nodes = ("me", "a", "b", "c", "first", "other")
    vnode.has_read = True
    vnode.settle(NOW, 5, 5, ("me", "a", "b"))
    vnode.note_leader("first", 5)
    one, other = bulletin.subscribe(), bulletin.subscribe()

    change(vnode)

    assert [*one] == [*other] == [5]


def machines(count: int = 3, partitions: int = 8) -> Machines:
    made = Machines(count, partitions=partitions, timing=ONLY_MARKED)
    made.pass_time(3_000)
    assert len(made.documents) == partitions and all(document.leader for _, document in made.documents.values())
    return made


def leaders(made: Machines) -> list[str]:
    """Who leads each partition, by the nodes' own word."""
    return [next((name for name, node in made.nodes.items() if node.view.vnodes[partition].is_leading), "")
            for partition in range(made.parameters.partitions)]


def test_who_hears_that_nobody_leads_stands() -> None:
    made = machines()
    name = leaders(made)[0]
    vnode = made.nodes[name].view.vnodes[0]
    vnode.resign(made.now_ms)
    vnode.election.make_way(made.now_ms + 60_000)

    made.pass_time(DEFAULT_TIMING.silence_ms + 3_000)

    assert leaders(made)[0] not in ("", name)


def test_a_leader_that_falls_silent_is_stood_against() -> None:
    made = machines()
    name = leaders(made)[0]
    made.is_deaf = name
    made.is_lost = lambda message: isinstance(message, m.Gossip | m.AskTime | m.ToldTime | m.Vote | m.Probe
                                              | m.Probed | m.Compare | m.Compared)
    made.pass_time(DEFAULT_TIMING.silence_ms + 500)
    made.is_lost = lambda message: False

    made.pass_time(4_000)

    assert name not in leaders(made) and "" not in leaders(made)


def test_that_a_leader_is_silent_is_seen_in_that_moment() -> None:
    """Not at the next round, which comes with a gossip."""
    timing = attrs.evolve(DEFAULT_TIMING, gossip_ms=700, silence_ms=2_000)
    made = Machines(3, partitions=1, timing=timing)
    made.pass_time(20_000)
    name, = leaders(made)
    other = next(node for node in made.nodes.values() if node.view.me.name != name)
    other._steward.hear(made.now_ms, name)
    silent_ms = made.now_ms + timing.silence_ms
    made.is_lost = lambda message: True

    made.pass_time(timing.silence_ms + 50)

    assert other.view.vnodes[0].leaderless_since_ms == silent_ms


SELDOM = attrs.evolve(DEFAULT_TIMING, gossip_ms=60_000)
"""The slow round comes with a gossip, so it does not come in time."""


def test_who_has_a_session_again_looks_at_once() -> None:
    made = Machines(3, partitions=8, timing=attrs.evolve(SELDOM, silence_ms=600_000))
    made.pass_time(10_000)
    assert "" not in leaders(made)
    for name in made.names:
        made.give(name, SessionChanged(Session.LOST))
    made.pass_time(1_000)

    for name in made.names:
        made.give(name, SessionChanged(Session.CONNECTED))
    made.pass_time(4_000)

    assert "" not in leaders(made)


def test_who_may_grant_by_its_clock_at_last_looks_at_once() -> None:
    made = Machines(3, partitions=8, timing=SELDOM)
    made.is_lost = lambda message: isinstance(message, m.ToldTime)
    made.pass_time(1_500)
    assert {*leaders(made)} == {""}
    made.is_lost = lambda message: False

    made.pass_time(1_000)

    assert "" not in leaders(made)


def test_an_idle_node_takes_hardly_a_turn_of_its_own_but_for_gossip() -> None:
    """Looks, and questions for the others' clocks, go along with it."""
    made = Machines(3, partitions=8)
    made.pass_time(20_000)
    ticks = dict.fromkeys(made.names, 0)
    give = made.give

    def counted(name: str, *events: Event) -> None:
        node = made.nodes[name]
        ticks[name] += any(isinstance(event, Ticked) for event in events) and node.deadline() <= made.now_ms
        give(name, *events)
    made.give = counted  # type: ignore[method-assign]
    made.pass_time(60_000)

    gossips = 60_000 // DEFAULT_TIMING.gossip_ms
    assert all(gossips <= count <= gossips * 1.5 for count in ticks.values()), ticks


def test_leaderships_are_looked_at_only_so_often_however_much_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    made = machines()
    name, looks = made.names[0], list[int]()
    steward = made.nodes[name]._steward
    monkeypatch.setattr(steward, "look", lambda now_ms: looks.append(now_ms) or Steward.look(steward, now_ms))
    began_ms = made.now_ms
    while made.now_ms < began_ms + 1_000:
        made.nodes[name].view.bulletin.change(0)
        made.give(name, Ticked())
        made.pass_time(1)

    assert 2 <= len(looks) <= 1 + 1_000 // DEFAULT_TIMING.heir_delay_ms


def test_when_the_registry_is_back_candidates_stand() -> None:
    made = machines()
    for name in made.names:
        made.give(name, SessionChanged(Session.LOST))
    made.pass_time(3_000)
    assert {*leaders(made)} == {""}

    for name in made.names:
        made.give(name, SessionChanged(Session.CONNECTED))
    made.pass_time(4_000)

    assert "" not in leaders(made)


def test_a_dead_leader_is_followed_by_another() -> None:
    made = machines()
    name = leaders(made)[0]
    made.is_deaf = name
    members = tuple(member for member in made.members if member.name != name)
    for other in made.names:
        if other != name:
            made.give(other, MembersChanged(members))
    made.pass_time(3_000)

    live = [node for other, node in made.nodes.items() if other != name]
    assert all(any(node.view.vnodes[partition].is_leading for node in live) for partition in range(8))


def test_data_moves_to_a_node_that_came() -> None:
    timing = attrs.evolve(ONLY_MARKED, gossip_partitions=1, look_due=3, look_shifts=1)
    made = Machines(4, partitions=16, timing=timing)
    for name in made.names:
        made.give(name, NodesChanged(tuple(made.names[:3])))
    made.pass_time(20_000)
    for name in made.names:
        made.give(name, NodesChanged(tuple(made.names)))
    made.pass_time(60_000)

    for partition, (_, document) in made.documents.items():
        owners = made.future_owners(partition)
        assert sorted(document.cohort) == sorted(owners) and document.leader == owners[0], partition
        for name, node in made.nodes.items():
            role = node.view.vnodes[partition].role.value
            assert role == ("member" if name in owners else "stranger"), (partition, name)


def test_a_leader_that_must_wait_before_it_stands_again_does_so_then() -> None:
    made = machines(partitions=1)
    made.pass_time(12_000)
    node = made.nodes[leaders(made)[0]]
    vnode = node.view.vnodes[0]
    node.view.candidacy(vnode)._next_move_ms = made.now_ms + 3_000
    made.ask(node.view.me.name, m.Enqueue(1, 0, (made.batch("q", 1),)))
    made.pass_time(10)
    epoch, vnode.granted = vnode.epoch, vnode.limits.tokens - 1
    made.ask(node.view.me.name, m.Claim(2, "q", 1, 60_000, 0, "w"))
    made.pass_time(2_000)
    assert vnode.is_spent and vnode.epoch == epoch

    made.pass_time(3_000)

    assert vnode.is_leading and vnode.epoch > epoch


def test_a_horizon_is_moved_before_it_is_near() -> None:
    made = machines(partitions=1)
    for _ in range(20):
        made.pass_time(DEFAULT_TIMING.horizon_ms // 20)

    assert made.documents[0][1].horizon_ms - made.now_ms > DEFAULT_TIMING.horizon_ms // 2 - 10_000


def test_tasks_that_expire_and_leases_that_end_are_seen_to() -> None:
    made = machines()
    task_ids = made.mint.mint(made.now_ms, 2, 3)
    for task_id, until_ms in zip(task_ids, (made.now_ms + 5_000, 0), strict=True):
        body = Body(Header("q"), 0, until_ms, b"x")
        batch = m.TaskBatch(body.header.encode(), task_id, columns.pack([body.rest]))
        made.ask(made.names[0], m.Enqueue(1, 0, (batch,)))
        made.pass_time(10)
    name = leaders(made)[3]
    filing = made.nodes[name].view.vnodes[3].replica.filing
    made.ask(name, m.Claim(2, "q", 1, 1_000, 0, "w"))
    made.pass_time(6_000)

    assert filing.tally.row(b"q")[6] == 1, "dead"
    assert filing.tally.row(b"q")[0] == 1, "waiting again"


@pytest.mark.parametrize("failures", [0, 8])
def test_a_write_that_lost_is_made_again_by_what_was_written(failures: int) -> None:
    """That a node is placed which never came is all that happens, and documents cannot be read for a while."""
    made = machines()
    made.pass_time(10_000)
    for partition, (version, document) in [*made.documents.items()]:
        made.documents[partition] = version + 1, attrs.evolve(document, cause="an operator's")
    made.reads_failing = failures
    nodes = (*made.names, "127.0.0.1:13009")
    for name in made.names:
        made.give(name, NodesChanged(nodes))
    made.pass_time(1_000)

    vnodes = made.nodes[made.names[0]].view.vnodes
    assert any(nodes[-1] in vnodes[partition].owners for partition in range(8))
    for partition, (_, document) in made.documents.items():
        assert (nodes[-1] in document.learners) == (nodes[-1] in vnodes[partition].owners)


def test_what_comes_to_a_node_that_owns_nothing_of_it_is_handed_off() -> None:
    made = machines(4, 16)
    made.pass_time(20_000)
    name, partition = next((name, partition) for name, node in made.nodes.items() for partition in range(16)
                           if name not in node.view.vnodes[partition].owners)
    replica = made.nodes[name].view.vnodes[partition].replica
    replica.store_tasks(made.now_ms, Header("q").encode(), made.mint.mint(made.now_ms, 3, partition), [b""] * 3)
    made.pass_time(20_000)

    assert replica.is_empty()
    owner = made.nodes[made.nodes[name].view.vnodes[partition].owners[0]]
    assert owner.view.vnodes[partition].replica.filing.tally.row(b"q")[0] == 3


# -- gossip ----------------------------------------------------------------------------------------


def test_gossip_of_many_partitions_speaks_of_what_changed_and_of_the_others_in_turns() -> None:
    made = Machines(partitions=32, timing=attrs.evolve(ONLY_MARKED, gossip_partitions=8))
    made.pass_time(10_000)
    told: list[m.PartialGossip] = []

    def hear(message: m.Message) -> bool:
        if isinstance(message, m.PartialGossip):
            told.append(message)
        return False

    made.is_lost = hear
    made.pass_time(600)
    spoken = [[*zip(spans[::2], spans[1::2], strict=True)]
              for gossip in told if (spans := columns.unpack_u64(gossip.spans))]
    assert spoken and all(len(spans) == 1 and spans[0][1] - spans[0][0] == 8 for spans in spoken)


def test_what_changed_is_told_before_its_turn_comes() -> None:
    made = Machines(partitions=32, timing=attrs.evolve(ONLY_MARKED, gossip_partitions=1))
    made.pass_time(20_000)
    for partition, name in enumerate(leaders(made)):
        vnode = made.nodes[name].view.vnodes[partition]
        vnode.resign(made.now_ms)
        vnode.election.make_way(made.now_ms + 60_000)
    made.pass_time(DEFAULT_TIMING.gossip_ms + 10)

    assert {vnode.leader for node in made.nodes.values() for vnode in node.view.vnodes} == {""}


def test_what_one_gossip_does_not_speak_of_stays_known() -> None:
    made = Machines(partitions=32, timing=attrs.evolve(ONLY_MARKED, gossip_partitions=8))
    made.pass_time(10_000)
    name, peer = made.names[:2]
    node = made.nodes[name]
    led = [vnode.partition for vnode in node.view.vnodes if vnode.leader == peer]
    assert len(led) > 3
    spans = columns.pack_u64([led[1], led[1] + 1])
    made.give(name, Received(peer, m.PartialGossip((), (), spans=spans)))

    assert [partition for partition in led if node.view.vnodes[partition].leader != peer] == [led[1]]


@pytest.mark.parametrize("spans", [(3,), (5, 3), (0, 33), (4, 8, 6, 10)])
def test_spans_that_are_none_are_malformed(spans: tuple[int, ...]) -> None:
    made = Machines(partitions=32)
    node = made.nodes[made.names[0]]
    made.give(made.names[0], Received(made.names[1], m.PartialGossip((), (), spans=columns.pack_u64(list(spans)))))

    assert node.malformed_count == 1


# -- the agenda ------------------------------------------------------------------------------------


def test_an_agenda_gives_what_is_due_the_longest_first_and_the_rest_later() -> None:
    agenda = Agenda()
    for partition, due_ms in ((1, 50), (2, 20), (3, 90), (2, 40), (1, 10)):
        agenda.note(partition, due_ms)

    assert agenda.due_ms == 10
    assert agenda.take(60, 1) == [1] and agenda.take(60, 9) == [2] and agenda.take(60, 9) == []
    assert agenda.due_ms == 90


def test_an_agenda_keeps_no_more_than_it_has() -> None:
    agenda = Agenda()
    for at in range(10_000, 0, -1):
        agenda.note(at % 3, at)

    assert len(agenda._heap) < 200 and agenda.take(10_000, 9) == [1, 2, 0]
