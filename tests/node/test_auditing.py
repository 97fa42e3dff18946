"""A new leader is held against what the leader before it began with, and what it lacked is named."""

from __future__ import annotations

from node.machines import Machines
from node.operating import down
from node.test_overseeing import asked
from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.document import Document, Floor
from skuld_py.model.events import Received
from skuld_py.model.ids import split, to_text
from skuld_py.model.remarks import Kind, Remark
from skuld_py.verbs import attention


class Led(Machines):
    """One partition, led; what the nodes remark on is kept."""

    def __init__(self) -> None:
        super().__init__(partitions=1)
        self.said: list[Remark] = []
        for name in self.names:
            self.nodes[name].view.bulletin.remark = self.said.append
        self.pass_time(2_000)

    @property
    def document(self) -> Document:
        return self.documents[0][1]

    def lose_leader(self) -> Document:
        """Its leader dies, and another one follows."""
        before = self.document
        down(self, before.leader)
        self.pass_time(15_000)
        assert self.document.epoch > before.epoch
        return before

    def lacked(self) -> list[str]:
        return [remark.about for remark in self.said if remark.kind is Kind.LACKED]


def root(machines: Machines, name: str) -> int:
    return machines.nodes[name].view.vnodes[0].replica.tree.root


def test_the_floor_is_the_root_of_what_the_leader_has_and_a_leader_with_the_same_is_compared_too() -> None:
    machines = Led()
    machines.ask(machines.document.leader, m.Enqueue(1, 3, (machines.batch("q", 2),)))
    machines.pass_time(1_000)
    assert machines.document.floor.digest == 0
    machines.lose_leader()
    document = machines.document
    assert document.floor == Floor(0, root(machines, document.leader), document.floor.end_ms)
    assert document.floor.digest

    machines.is_lost = lambda message: isinstance(message, (m.Probe, m.Probed))
    machines.nodes[document.leader].hand_over(machines.now_ms)
    machines.pass_time(5_000)
    after = machines.document
    assert after.leader != document.leader and after.floor.digest == document.floor.digest
    machines.pass_time(120_000)
    (words,) = attention_of(machines, after.leader)
    assert f"of epoch {document.epoch}" in words and "other records" not in words
    machines.is_lost = lambda message: False
    machines.pass_time(10_000)
    assert not attention_of(machines, after.leader) and not machines.lacked()


def test_what_a_new_leader_lacked_is_named_once_a_majority_before_it_was_compared() -> None:
    machines = Led()
    leader, _, lagging = machines.document.cohort
    batch = machines.batch("q", 3)
    machines.is_deaf = lagging
    machines.ask(leader, m.Enqueue(1, 2, (batch,)))
    machines.deliver(100)
    machines.is_deaf = ""
    machines.is_lost = lambda message: isinstance(message, (m.Probe, m.Probed, m.Replicate))
    asked(machines, leader, kind="lead", target=lagging, over_ms=1_000)
    assert machines.document.leader == lagging and root(machines, leader) != root(machines, lagging)
    machines.is_lost = lambda message: isinstance(message, m.Replicate)
    machines.pass_time(10_000)

    (told,) = machines.lacked()
    assert f"(epoch {machines.document.epoch}), something of 3 records, the first of" in told
    assert all(to_text(task_id) in told for task_id in split(batch.ids))
    assert root(machines, leader) == root(machines, lagging)


def test_what_a_leader_missed_of_all_that_was_written_before_it_is_named_though_it_began_with_the_same() -> None:
    machines = Led()
    first, second, lagging = machines.document.cohort
    machines.ask(first, m.Enqueue(1, 3, (machines.batch("q", 2),)))
    machines.pass_time(1_000)
    asked(machines, first, kind="lead", target=second, over_ms=5_000)
    before = machines.document
    machines.is_deaf = lagging
    batch = machines.batch("q", 3)
    machines.ask(second, m.Enqueue(1, 2, (batch,)))
    machines.deliver(100)
    machines.is_deaf = ""
    machines.is_lost = lambda message: isinstance(message, (m.Probe, m.Probed, m.Replicate))
    asked(machines, second, kind="lead", target=lagging, over_ms=1_000)
    after = machines.document
    assert (before.leader, after.leader) == (second, lagging) and after.floor.digest == before.floor.digest != 0
    machines.is_lost = lambda message: isinstance(message, m.Replicate)
    machines.pass_time(10_000)

    (told,) = machines.lacked()
    assert "something of 3 records" in told and all(to_text(task_id) in told for task_id in split(batch.ids))


def test_what_others_give_a_new_leader_unasked_is_named_too() -> None:
    machines = Led()
    machines.is_lost = lambda message: isinstance(message, (m.Probe, m.Probed))
    machines.lose_leader()
    node = machines.nodes[machines.document.leader]
    task_id = split(machines.batch("q", 1).ids)[0]
    row = m.TaskRow(task_id, columns.pack([]), b"", b"", b"", columns.pack([]))
    machines.give(machines.document.leader, Received(machines.document.cohort[1], m.Repair(0, (row,))))
    machines.is_lost = lambda message: False
    machines.pass_time(10_000)

    assert not node.view.audited
    assert to_text(task_id) in machines.lacked()[0]


def test_a_leader_that_stands_again_owes_what_it_owed_before() -> None:
    machines = Led()
    machines.is_lost = lambda message: isinstance(message, (m.Probe, m.Probed))
    machines.ask(machines.document.leader, m.Enqueue(1, 3, (machines.batch("q", 1),)))
    before = machines.lose_leader()
    asked(machines, machines.document.leader, kind="reorder", target=machines.document.cohort[-1], over_ms=2_000)
    again = machines.document
    assert again.previous.leader == again.leader
    machines.pass_time(60_000)

    (words,) = attention_of(machines, again.leader)
    assert f"of epoch {before.epoch}" in words


def test_a_leader_that_was_not_compared_names_whom_it_waits_for() -> None:
    machines = Led()
    for leader in machines.document.cohort[:2]:
        asked(machines, leader, kind="lead", target=leader, over_ms=5_000)
        machines.ask(leader, m.Enqueue(1, 3, (machines.batch("q", 1),)))
        machines.pass_time(1_000)
    machines.is_lost = lambda message: isinstance(message, (m.Probe, m.Probed))
    before = machines.lose_leader()
    now = machines.document.leader
    assert not attention_of(machines, now)
    machines.pass_time(60_000)

    (words,) = attention_of(machines, now)
    assert all(name in words for name in before.cohort if name != now) and now not in words
    assert f"of epoch {before.epoch}" in words and "other records than the leader now" in words
    machines.is_lost = lambda message: False
    machines.pass_time(10_000)
    assert not attention_of(machines, now)


def attention_of(machines: Machines, name: str) -> list[str]:
    told = attention.concerns(attention.Facts("c", 3, 200, machines.nodes[name].description()))
    return [each.words for each in told if each.kind == "held"]
