"""A clock that is set ahead while its node leads: by it all leases are over, and no task gets a second holder."""

from __future__ import annotations

import pytest

from node.machines import Machines
from skuld_py.model import messages as m
from skuld_py.model.events import Ticked

LEASE_MS = 1_000


def claimed(machines: Machines, at: str, request: int) -> int:
    machines.ask(at, m.Claim(request, "q", 1, LEASE_MS, 0, f"holder {request}"))
    machines.pass_time(100)
    return sum(len(batch.ids) // 20 for answer in machines.answers_to(b"client")
               if isinstance(answer, m.Claimed) and answer.request == request for batch in answer.batches)


@pytest.mark.parametrize("ahead_ms", [200, LEASE_MS + 500, 60_000, 365 * 86_400_000])
def test_a_leader_whose_clock_is_set_ahead_gives_no_task_a_second_holder(ahead_ms: int) -> None:
    machines = Machines(partitions=1)
    machines.pass_time(2_000)
    leader = machines.documents[0][1].leader
    machines.ask(leader, m.Enqueue(1, 3, (machines.batch("q", 1),)))
    machines.pass_time(100)
    assert claimed(machines, leader, 2) == 1

    machines.ahead_ms[leader] = ahead_ms
    machines.give(leader, Ticked())  # it finds that all leases are over, and has compared clocks with nobody yet
    assert claimed(machines, leader, 3) == 0, "the task has two holders"
    machines.ahead_ms[leader] = 0
    machines.pass_time(20_000)
    assert claimed(machines, machines.documents[0][1].leader, 4) == 1, "nobody may have it any more"


def test_clocks_within_the_bound_keep_nobody_from_granting() -> None:
    machines = Machines(partitions=1)
    machines.pass_time(2_000)
    leader = machines.documents[0][1].leader
    machines.ahead_ms[leader] = 200
    machines.ask(leader, m.Enqueue(1, 3, (machines.batch("q", 1),)))
    machines.pass_time(100)
    assert claimed(machines, leader, 2) == 1
