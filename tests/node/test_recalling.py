"""Any node tells how documents came about, a page at a time."""

from __future__ import annotations

import pytest

from node.machines import Machines
from node.test_overseeing import asked
from skuld_py.model import messages as m
from skuld_py.model.messages.operating import REVISIONS_MAX


def recalled(machines: Machines, at: str, first: int = 0, count: int = 0, most: int = 0) -> m.Message:
    machines.ask(at, m.Recall(3, first, count, most))
    machines.pass_time(100)
    return machines.answers_to(b"client")[-1]


def test_who_froze_it_and_who_leads_it_is_told_the_newest_first() -> None:
    machines = Machines(partitions=4)
    machines.pass_time(2_000)
    leader, other = machines.documents[2][1].leader, machines.documents[2][1].cohort[1]
    asked(machines, other, first=2, count=1)
    answer = recalled(machines, machines.names[0], 2, 1)

    assert isinstance(answer, m.Recalled) and answer.next == 0
    frozen, elected = answer.rows
    assert (frozen.partition, frozen.writer, frozen.leader) == (2, other, leader)
    assert frozen.cause == "freeze by me: why"
    assert (elected.writer, elected.cause, elected.epoch) == (leader, "the first leader", 1)
    assert frozen.version == elected.version + 1 and sorted(elected.voters) == sorted(machines.names)
    assert recalled(machines, other, 2, 1, 1) == m.Recalled(3, 0, (frozen,))


def test_who_asks_for_less_does_not_shorten_what_another_is_told() -> None:
    machines = Machines(partitions=4)
    machines.pass_time(2_000)
    asked(machines, machines.documents[2][1].leader, first=2, count=1)
    machines.ask(machines.names[0], m.Recall(7, 2, 1, 1))
    answer = recalled(machines, machines.names[0], 2, 1)

    assert isinstance(answer, m.Recalled) and len(answer.rows) == 2


def test_of_many_partitions_it_says_where_to_go_on() -> None:
    machines = Machines(partitions=128)
    machines.pass_time(6_000)
    some = recalled(machines, machines.names[0], 0, 0, 1)
    assert isinstance(some, m.Recalled) and (some.next, len(some.rows)) == (64, 64)
    few = recalled(machines, machines.names[0], 64, 0, REVISIONS_MAX // 2)
    assert isinstance(few, m.Recalled) and few.next == 66
    last = recalled(machines, machines.names[0], 126, 0, REVISIONS_MAX // 2)
    assert isinstance(last, m.Recalled) and (last.next, {row.partition for row in last.rows}) == (0, {126, 127})


@pytest.mark.parametrize(("first", "is_in_doubt", "code"), [(4, False, "unknown_partition"),
                                                           (0, True, "unavailable")])
def test_what_cannot_be_told_is_refused(first: int, is_in_doubt: bool, code: str) -> None:
    machines = Machines(partitions=4)
    machines.pass_time(2_000)
    machines.is_in_doubt = is_in_doubt
    answer = recalled(machines, machines.names[0], first, 1)

    assert isinstance(answer, m.Failed) and answer.code == code
