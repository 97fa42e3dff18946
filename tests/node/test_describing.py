"""What a node tells of collection: of each task once, whichever node is asked, and whom it waits for."""

from __future__ import annotations

import attrs
import pytest

from node.machines import Machines
from node.test_collecting import KEEP_MS, RETENTION, ask, complete, enqueue, follower_of, leader_of, left
from skuld_py.cluster.log.ring import Ring
from skuld_py.config import RULES
from skuld_py.config.timing import DEFAULT_TIMING
from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.body import Header
from skuld_py.model.document import Member
from skuld_py.model.events import MembersChanged, NodesChanged, Session, SessionChanged
from skuld_py.model.overview import Canvass, untold_by
from skuld_py.model.service import Service, services_of


def described_by(machines: Machines, name: str) -> m.Described:
    machines.pass_time(2_000)
    answer = ask(machines, m.Describe(9), name)
    assert isinstance(answer, m.Described)
    return answer


def test_every_node_tells_of_each_collected_task_once() -> None:
    machines = Machines(partitions=8, retention=RETENTION)
    machines.pass_time(10_000)
    leaders = {document.leader for _, document in machines.documents.values()}
    assert leaders == {*machines.names}
    made: list[bytes] = []
    for route in range(40):
        made += machines.mint.mint(machines.now_ms, 1, route)
    batch = m.TaskBatch(Header("q").encode(), b"".join(made), columns.pack([b"x"] * len(made)))
    assert isinstance(ask(machines, m.Enqueue(1, 3, (batch,))), m.Acked)
    complete(machines, made)
    begun_ms = machines.now_ms
    assert {row.collected for row in described_by(machines, machines.names[0]).collections} == {0}

    machines.pass_time(2 * KEEP_MS)
    assert left(machines) == [[]] * 3

    for name in machines.names:
        rows = described_by(machines, name).collections
        assert sorted(row.node for row in rows) == machines.names
        assert sum(row.collected for row in rows) == len(made)
        assert all(begun_ms - 1_000 <= row.sealed_ms <= machines.now_ms - KEEP_MS for row in rows)
        assert [row.awaited for row in rows] == [()] * 3
        assert all(row.sealed_ms >= machines.now_ms - KEEP_MS - 10_000 for row in rows), "though nothing comes"


def test_a_node_that_is_taken_out_and_whom_each_watches_are_told() -> None:
    machines = Machines()
    machines.pass_time(3_000)
    a, b, c = machines.names
    node = machines.nodes[a]
    assert {(row.is_leaving, row.watches) for row in node.description().nodes} == {(False, "")}

    machines.give(a, NodesChanged((a, b), (c,)))
    lives = {f"{name}~1": Member(name, "h", 1, "boot") for name in (a, b, c)}
    ring = Ring({f"{a}~1": f"{b}~1", f"{b}~1": f"{c}~1", f"{c}~1": f"{a}~1", "gone~1": f"{a}~1"})
    node.playback.settle(attrs.evolve(node.playback.replica, members=lives, ring=ring), True)

    assert [(row.name, row.is_leaving, row.watches) for row in node.description().nodes] == [
        (a, False, b), (b, False, c), (c, True, a)]


def test_a_node_that_says_nothing_is_told_although_it_is_live() -> None:
    """One with a revoked key was "live, all is well" for every other node."""
    machines = Machines()
    machines.pass_time(3_000)
    mute, other = machines.names[0], machines.names[1]
    assert not any(row.is_silent for row in described_by(machines, other).nodes)

    machines.is_mute = mute
    machines.pass_time(2 * DEFAULT_TIMING.silence_ms)

    silent = [row for row in described_by(machines, other).nodes if row.is_silent]
    assert [(row.name, row.is_live) for row in silent] == [(mute, True)]
    assert not any(row.is_silent for row in described_by(machines, mute).nodes), "it hears the others"
    machines.is_mute = ""
    assert not any(row.is_silent for row in described_by(machines, other).nodes)


def test_a_leader_that_may_not_grant_is_none_for_itself_as_it_is_for_others() -> None:
    """Without ZooKeeper each node told of leaderships of its own, and of none of the others: three pictures."""
    machines = Machines(partitions=8)
    assert {row.leader for row in described_by(machines, machines.names[0]).partitions} == {*machines.names}

    for name in machines.names:
        machines.give(name, SessionChanged(Session.SUSPENDED))
    for name in machines.names:
        rows = described_by(machines, name)
        assert [row.leader for row in rows.partitions] == [""] * 8 and {row.leads for row in rows.nodes} == {0}
    assert any(vnode.is_leading for vnode in machines.nodes[name].view.vnodes), "once it is back, it goes on"


def test_where_nodes_are_more_than_copies_others_tell_of_the_partitions_that_one_does_not_keep() -> None:
    """Of a partition of others behind a barrier the node asked said that all is well."""
    machines = Machines(5, partitions=8)
    machines.pass_time(5_000)
    first = machines.names[0]
    barred = next(each for each in range(8) if first not in machines.documents[each][1].cohort)
    machines.write(barred, attrs.evolve(machines.documents[barred][1], write_id="restored",
                                        no_grant_before_ms=machines.now_ms + 600_000))
    seen = described_by(machines, first)
    assert not seen.held and services_of(seen)[barred] is Service.FULL, "as it looks from outside"
    assert services_of(seen, untold_by(seen))[barred] is Service.UNKNOWN

    canvass, asked = Canvass(seen), list[str]()
    while name := canvass.wanted():
        asked.append(name)
        canvass.hear(name, described_by(machines, name))

    services = services_of(canvass.overview().described, canvass.overview().untold)
    assert len(asked) < 4 and first not in asked
    assert {each for each, service in services.items() if service is not Service.FULL} == {barred}
    assert services[barred] is Service.ENQUEUE_ONLY


def test_whom_collection_waits_for_is_told_until_it_is_back() -> None:
    machines = Machines(partitions=1, retention=RETENTION)
    machines.pass_time(2_000)
    complete(machines, enqueue(machines, 4))
    away, all_members = follower_of(machines), machines.members
    other = next(name for name in machines.names if name not in (away, leader_of(machines)))
    for name in machines.names:
        machines.give(name, MembersChanged(tuple(member for member in all_members if member.name != away)))
    machines.pass_time(2 * KEEP_MS)

    for name in (leader_of(machines), other):
        row, = (row for row in described_by(machines, name).collections if row.node == leader_of(machines))
        assert (row.awaited, row.collected) == ((away,), 0)
        assert away not in [row.node for row in described_by(machines, name).collections]

    for name in machines.names:
        machines.give(name, MembersChanged(all_members))
    machines.pass_time(KEEP_MS)
    row, = (row for row in described_by(machines, other).collections if row.node == leader_of(machines))
    assert (row.awaited, row.collected) == ((), 4)


def test_without_a_retention_nothing_is_told_of_collection() -> None:
    machines = Machines(partitions=1)
    machines.pass_time(2_000)

    assert [described_by(machines, name).collections for name in machines.names] == [()] * 3


@pytest.mark.parametrize("gossip_partitions", [256, 2], ids=["all partitions at once", "some at a time"])
def test_every_node_tells_which_program_each_runs_while_it_is_up(gossip_partitions: int) -> None:
    machines = Machines(partitions=8, timing=attrs.evolve(DEFAULT_TIMING, gossip_partitions=gossip_partitions))
    one, other, older = machines.names
    for name, release in ((one, "0.3.0"), (other, "0.3.0"), (older, "0.2.0")):
        machines.nodes[name].view.release = release
    seen = {row.name: (row.release, row.rules) for row in described_by(machines, one).nodes}
    assert seen == {one: ("0.3.0", RULES), other: ("0.3.0", RULES), older: ("0.2.0", RULES)}

    machines.is_lost = lambda message: isinstance(message, m.Gossip)  # it was stopped, and may come back newer
    machines.give(one, MembersChanged(tuple(each for each in machines.members if each.name != older)))
    row, = (row for row in described_by(machines, one).nodes if row.name == older)
    assert (row.is_live, row.release, row.rules) == (False, "", 0)
