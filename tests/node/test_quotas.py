"""Quotas: what a node lets in by its own count, when it counts again, and what it does not count."""

from __future__ import annotations

from itertools import pairwise

import pytest

from node.machines import Machines
from skuld_py.model import ids
from skuld_py.model import messages as m
from skuld_py.model.limiting import decode_quota, is_quota
from skuld_py.model.setting import QUOTA, UNSET
from skuld_py.node.writes import quotas
from skuld_py.node.writes.quotas import Quotas
from skuld_py.partition.data.tally import Tally


@pytest.fixture
def machines() -> Machines:
    made = Machines(partitions=4)
    made.pass_time(4_000)
    return made


def quota(machines: Machines, prefix: str, value: bytes, version: int = 1) -> None:
    for node in machines.nodes.values():
        node.view.settings.join([m.SettingRow(QUOTA, prefix, version, "w", value)])


def enqueue(machines: Machines, count: int, queue: str = "a.x", node: int = 0) -> str:
    """What came of it: how many have it, or the code of the refusal."""
    client = b"%d" % machines.now_ms
    machines.ask(machines.names[node], m.Enqueue(1, 3, (machines.batch(queue, count),)), client)
    machines.pass_time(10)
    answer, = machines.answers_to(client)
    return answer.code if isinstance(answer, m.Failed) else "acked"


def test_what_is_open_and_what_is_let_in_counts_over_all_queues_that_begin_so(machines: Machines) -> None:
    assert enqueue(machines, 4, "a.x") == enqueue(machines, 2, "b") == "acked"
    quota(machines, "a.", b"10")

    assert enqueue(machines, 7, "a.y") == "quota_full" and enqueue(machines, 5, "a.y") == "acked"
    assert enqueue(machines, 2, "a.x") == "quota_full" and enqueue(machines, 1, "a.z") == "acked"
    assert enqueue(machines, 1, "a.x") == "quota_full" and enqueue(machines, 100, "b") == "acked"


def test_what_ends_makes_room_and_what_another_node_let_in_takes_it_at_the_next_count(machines: Machines) -> None:
    quota(machines, "a.", b"10")
    assert [enqueue(machines, count, node=node) for count in (1, 6) for node in (0, 1)] == ["acked"] * 4
    machines.pass_time(1_100)
    assert [enqueue(machines, 1, node=node) for node in (0, 1, 2)] == ["quota_full"] * 3

    rows = [task for node in machines.nodes.values() for vnode in node.view.vnodes
            for task in vnode.replica.filing.heads("a.x", None, 99)]
    some = dict.fromkeys(head[-ids.ID_BYTES:] for head in rows)
    machines.ask(machines.names[0], m.Cancel(1, 0, 0, b"".join([*some][:6])), b"canceller")
    machines.pass_time(1_100)
    assert enqueue(machines, 3) == "quota_full" and enqueue(machines, 2) == "acked"


def test_a_request_is_let_in_as_a_whole_or_not_at_all(machines: Machines) -> None:
    quota(machines, "a.", b"6")
    quota(machines, "a.b.", b"2")
    both = m.Enqueue(1, 0, (machines.batch("a.c", 3), machines.batch("a.b.c", 3)))
    machines.ask(machines.names[0], both, b"both")
    machines.pass_time(10)

    refused, = machines.answers_to(b"both")
    assert isinstance(refused, m.Failed) and refused.is_definite and "begin with a.b. about 0" in refused.text
    assert enqueue(machines, 3, "a.c") == enqueue(machines, 2, "a.b.c") == "acked"


def test_a_workflow_is_let_go_on_and_is_not_counted(machines: Machines) -> None:
    quota(machines, "w", b"2")

    assert enqueue(machines, 3, "wf.nightly.step") == "acked"
    machines.pass_time(1_100)
    assert enqueue(machines, 2, "walk") == "acked" and enqueue(machines, 1, "walk") == "quota_full"


def test_a_quota_that_is_removed_binds_no_more_and_one_that_is_set_again_counts_anew(machines: Machines) -> None:
    quota(machines, "a.", b"1")
    assert enqueue(machines, 2) == "quota_full"
    quota(machines, "a.", UNSET, 2)
    assert enqueue(machines, 5) == "acked"
    machines.pass_time(1_100)
    quota(machines, "a.", b"5", 3)
    assert enqueue(machines, 1) == "quota_full"


def test_where_a_node_keeps_some_partitions_the_others_are_taken_to_be_like_them() -> None:
    machines = Machines(5, partitions=8, replicas=3)
    machines.pass_time(6_000)
    for _ in range(40):
        assert enqueue(machines, 10) == "acked"
    quota(machines, "a.", b"200")
    machines.pass_time(1_100)

    assert [enqueue(machines, 1, node=node) for node in range(5)] == ["quota_full"] * 5
    quota(machines, "a.", b"1200", 2)
    assert [enqueue(machines, 1, node=node) for node in range(5)] == ["acked"] * 5


@pytest.mark.parametrize("value", [b"0", b"", b"-1", b"1.5", b"01", b" 1", b"1000000001", b"1" * 5_000, b"\xb2"])
def test_what_is_no_quota_sets_none(machines: Machines, value: bytes) -> None:
    assert not is_quota(value)
    if value:
        quota(machines, "a.", value)
        assert machines.nodes[machines.names[0]].view.settings.quotas == {}
    assert decode_quota(b"1000000000") == 1_000_000_000


def test_batches_of_a_request_are_counted_together(machines: Machines) -> None:
    quota(machines, "a.", b"3")
    machines.ask(machines.names[0], m.Enqueue(1, 0, (machines.batch("a.x", 2), machines.batch("a.y", 2))), b"two")
    machines.pass_time(10)

    assert [type(answer) for answer in machines.answers_to(b"two")] == [m.Failed]


def test_a_request_that_is_repeated_is_refused_nothing_that_is_stored_and_counts_once(machines: Machines) -> None:
    quota(machines, "a.", b"10")
    first, both = machines.batch("a.x", 6), machines.batch("a.x", 5)

    def asked(*batches: m.TaskBatch) -> str:
        client = b"again %d" % machines.now_ms
        machines.ask(machines.names[0], m.Enqueue(1, 0, batches), client)
        machines.pass_time(10)
        answer, = machines.answers_to(client)
        return answer.code if isinstance(answer, m.Failed) else "acked"
    assert [asked(first), asked(first)] == ["acked"] * 2
    assert asked(first, both) == "quota_full" and enqueue(machines, 4) == "acked"
    machines.pass_time(1_100)
    assert [asked(first), enqueue(machines, 1)] == ["acked", "quota_full"]


def test_very_many_queues_are_counted_over_some_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "ROWS", 3)
    machines = Machines(partitions=2)
    machines.pass_time(4_000)
    batches = tuple(machines.batch(f"a.{at}", 2) for at in range(20))
    machines.ask(machines.names[0], m.Enqueue(1, 0, batches), b"all")
    machines.pass_time(100)
    read, turns = [0], [0]
    beginning, look = Tally.beginning, Quotas.look

    def counted(tally: Tally, prefix: str, after: str, limit: int) -> list[tuple[str, tuple[int, ...]]]:
        rows = beginning(tally, prefix, after, limit)
        read[0] += len(rows)
        return rows

    def looked(self: Quotas, now_ms: int) -> None:
        look(self, now_ms)
        turns.append(read[0])
    monkeypatch.setattr(Tally, "beginning", counted)
    monkeypatch.setattr(Quotas, "look", looked)

    quota(machines, "a.", b"45")
    assert enqueue(machines, 1) == "acked"  # by what was found so far
    machines.pass_time(100)
    assert read[0] >= 20 and max(after - before for before, after in pairwise(turns)) == 3
    assert enqueue(machines, 5) == "quota_full" and enqueue(machines, 3) == "acked"
    ended = len(turns)
    machines.pass_time(500)
    assert len(turns) == ended  # and rests when it has counted


def test_what_is_let_in_while_a_first_count_is_under_way_counts_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "ROWS", 3)
    machines = Machines(partitions=2)
    machines.pass_time(4_000)
    batches = tuple(machines.batch(f"a.{at}", 2) for at in range(20))
    machines.ask(machines.names[0], m.Enqueue(1, 0, batches), b"all")
    machines.pass_time(100)

    quota(machines, "a.", b"10")
    for client, count in ((b"four", 4), (b"one", 1)):  # three queues of two were found
        machines.ask(machines.names[0], m.Enqueue(1, 0, (machines.batch("a.x", count),)), client)
    machines.pass_time(10)
    assert [type(machines.answers_to(client)[0]) for client in (b"four", b"one")] == [m.Acked, m.Failed]
