"""Counts of all nodes together, and queues by the thousand."""

from __future__ import annotations

import attrs
import pytest

from node.machines import Machines
from skuld_py.config.timing import DEFAULT_TIMING
from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.body import Header
from skuld_py.model.state import State
from skuld_py.node.reads import counts
from skuld_py.partition.data.filing import Filing
from skuld_py.wire.codec import Envelope, decode, encode


def enqueue(machines: Machines, queues: list[str], route: int | None = None) -> None:
    """A task in each of these queues; in one partition, if a route is given."""
    for first in range(0, len(queues), 500):
        batches = []
        for queue in queues[first : first + 500]:
            at = machines.random.getrandbits(32) if route is None else route
            task_id, = machines.mint.mint(machines.now_ms, 1, at)
            batches.append(m.TaskBatch(Header(queue).encode(), task_id, columns.pack([b"x"])))
        machines.ask(machines.names[0], m.Enqueue(1, 0, tuple(batches)), b"producer")
        machines.pass_time(100)
    assert all(isinstance(answer, m.Acked) for answer in machines.answers_to(b"producer"))


def count(machines: Machines, queue: str = "", client: bytes = b"counter") -> dict[str, m.CountRow]:
    """Counts, asked for at the first node."""
    before = len(machines.answers_to(client))
    machines.ask(machines.names[0], m.Count(3, queue), client)
    machines.pass_time(10)
    counted, = machines.answers_to(client)[before:]
    assert isinstance(counted, m.Counted), counted
    return {row.queue: row for row in counted.rows}


@pytest.fixture
def machines() -> Machines:
    made = Machines()
    made.pass_time(2_000)
    return made


def test_counts_are_sums_over_the_partitions_wherever_they_are_led(machines: Machines) -> None:
    enqueue(machines, ["a", "b", "a", "b", "a"] * 20)

    assert {queue: row.waiting for queue, row in count(machines).items()} == {"a": 60, "b": 40}
    assert {queue: row.waiting for queue, row in count(machines, "a").items()} == {"a": 60}


def test_pages_of_many_queues_are_joined(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "ROWS_MAX", 7)
    names = [f"q{number:03}" for number in range(100)]
    enqueue(machines, names + names)

    assert {queue: row.waiting for queue, row in count(machines).items()} == dict.fromkeys(names, 2)


@pytest.mark.parametrize(("page", "poor"), [(3, 0), (20_000, 2)])
def test_what_nobody_leads_is_counted_by_the_copy_that_knows_the_most(machines: Machines, page: int, poor: int,
                                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "ROWS_MAX", page)
    enqueue(machines, ["a", "b", "c"] * 40)
    vnode = next(vnode for vnode in machines.nodes[machines.names[1]].view.vnodes if vnode.is_leading)
    vnode.resign(machines.now_ms)
    for name in machines.names:  # so that it is not led again at once
        machines.nodes[name].view.vnodes[vnode.partition].election.make_way(machines.now_ms + 60_000)
    lost = machines.nodes[machines.names[poor]].view.vnodes[vnode.partition].replica
    for queue in (b"a", b"b"):
        lost.filing.tally.add(queue, State.WAITING, -1)

    assert {queue: row.waiting for queue, row in count(machines).items()} == {"a": 40, "b": 40, "c": 40}
    assert not vnode.is_leading


def test_a_partition_that_two_say_they_lead_counts_once(machines: Machines) -> None:
    """One of them was deposed, and has not heard of it."""
    enqueue(machines, ["a"] * 80)
    vnode = next(vnode for vnode in machines.nodes[machines.names[1]].view.vnodes if vnode.is_leading)
    other = machines.nodes[machines.names[2]].view.vnodes[vnode.partition]
    other.election, other.promise = vnode.election, vnode.promise
    other.me = vnode.me
    assert vnode.is_leading and other.is_leading

    assert count(machines)["a"].waiting == 80


def test_counts_with_as_many_partitions_as_may_be_travel() -> None:
    every = columns.pack_u64(range(4_096))
    for message in (m.Sum(1, 1, "q", "", every), m.Summed(1, 1, every, every, (), ""), m.Listed(
            1, every, b"", b"", columns.pack([]), columns.pack([]))):
        assert decode(encode(Envelope("127.0.0.1:13000", "main", (message,)))).messages == (message,)


# -- queues by the thousand ------------------------------------------------------------------------


@pytest.mark.parametrize("is_done", [False, True])
def test_a_queue_behind_a_thousand_others_of_a_partition_wakes_who_waits_for_it(is_done: bool) -> None:
    machines = Machines(partitions=1)
    machines.pass_time(2_000)
    leader = machines.documents[0][1].leader
    enqueue(machines, [f"a{number:05}" for number in range(1_700)])
    if is_done:
        finish_all(machines, leader)
    other = next(name for name in machines.names if name != leader)
    machines.ask(other, m.Claim(2, "zzz", 1, 20_000, 28_000, "w"), b"patient")
    machines.pass_time(3_000)
    assert not machines.answers_to(b"patient")

    enqueue(machines, ["zzz"])
    machines.pass_time(200)

    answer, = machines.answers_to(b"patient")
    assert isinstance(answer, m.Claimed) and len(answer.batches) == 1


def finish_all(machines: Machines, leader: str) -> None:
    """Complete all tasks there are."""
    rows = machines.stores[leader].rows("body")
    for first in range(0, len(rows), 500):
        task_ids = [key[2:] for key in [*rows][first : first + 500]]
        machines.ask(leader, m.Complete(3, 0, 0, b"".join(task_ids), columns.pack_u64([1 << 32] * len(task_ids))))
        machines.pass_time(100)


def test_what_gained_work_just_now_is_told_of_first() -> None:
    machines = Machines(partitions=1, timing=attrs.evolve(DEFAULT_TIMING, gossip_queues=20))
    machines.pass_time(2_000)
    leader = machines.documents[0][1].leader
    enqueue(machines, [f"a{number:05}" for number in range(300)])
    other = next(name for name in machines.names if name != leader)
    for number in range(10):
        enqueue(machines, [f"z{number}"])
        assert machines.nodes[other].view.router.hinted(f"z{number}", [leader]) == [leader]


def test_all_queues_with_work_are_told_of_in_turns_when_they_are_too_many_for_one_message() -> None:
    machines = Machines(partitions=1)
    machines.pass_time(2_000)
    leader = machines.documents[0][1].leader
    names = [f"a{number:05}" for number in range(1_500)]
    enqueue(machines, names)
    other = machines.restart(next(name for name in machines.names if name != leader))
    machines.pass_time(5_000)

    assert [name for name in names if not other.view.router.hinted(name, [leader])] == []


def test_of_a_queue_in_many_partitions_few_are_looked_at_and_it_is_told_of_all_the_same(
        monkeypatch: pytest.MonkeyPatch) -> None:
    machines = Machines(timing=attrs.evolve(DEFAULT_TIMING, gossip_heads=2))
    machines.pass_time(2_000)
    enqueue(machines, ["q"] * 100)
    node = max(machines.nodes.values(), key=lambda each: len(each.view.led()))
    looked: list[str] = []

    def gone(_: Filing, queue: str, after: bytes | None, limit: int) -> list[bytes]:
        looked.append(queue)
        return []

    monkeypatch.setattr(Filing, "heads", gone)
    told = node._steward.gossiper._look_up(["q", "r"], node.view.leaderships.bits())

    assert len(node.view.led()) == 3 and looked == ["q", "q"]
    assert told == ({}, ["q", "r"])


def test_a_queue_of_which_nothing_is_left_has_no_row(machines: Machines) -> None:
    tally = machines.nodes[machines.names[0]].view.vnodes[0].replica.filing.tally
    tally.add(b"q", State.WAITING, 2)
    tally.settle()
    assert [*tally.rows()] == [("q", (2, 0, 0, 0, 0, 0, 0))]

    tally.add(b"q", State.WAITING, -2)
    assert [*tally.rows()] == [] and not any(tally.row(b"q"))


def test_a_claim_looks_only_where_tasks_of_its_queue_may_wait(machines: Machines) -> None:
    enqueue(machines, ["q"], route=5)
    leader = next(node for node in machines.nodes.values() if node.view.vnodes[5].is_leading)

    assert [vnode.partition for vnode in leader.view.stocked("q")] == [5]
    assert leader.view.stocked("other") == []

    machines.ask(leader.view.me.name, m.Claim(2, "q", 1, 20_000, 0, "w"))
    machines.pass_time(100)
    machines.ask(leader.view.me.name, m.Claim(3, "q", 1, 20_000, 0, "w"))
    machines.pass_time(100)
    assert leader.view.stocked("q") == [], "nothing was found there"


def test_after_a_start_it_is_known_where_tasks_wait(machines: Machines) -> None:
    enqueue(machines, ["a", "b", "b-c"], route=5)

    node = machines.restart(machines.names[0])

    stock = node.view.bulletin.stock
    assert stock.queues(b"", 1 << 5) == [b"a", b"b", b"b-c"] and stock.queues(b"", 1 << 4) == []
