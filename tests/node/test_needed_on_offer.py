"""What others come to need while it is on offer to an archive; and since when what is on offer waits."""

from __future__ import annotations

from node.machines import Machines
from node.test_collecting import KEEP_MS, complete, enqueue, leader_of, left, needy
from node.test_offering import discard, grow_old, in_columns, started
from skuld_py.model import ids
from skuld_py.model import messages as m


def since_ms(machines: Machines) -> int:
    return machines.nodes[leader_of(machines)]._steward.slices.unarchived_since_ms(0)


def test_what_others_come_to_need_while_it_is_on_offer_stays_and_is_offered_again() -> None:
    machines = started()
    made = grow_old(machines, 3)
    page = in_columns(machines)
    assert ids.split(page.ids) == made
    dependent = needy(machines, made[:1])

    assert discard(machines, page) == m.Discarded(8, True, 2)
    assert left(machines) == [[made[0], dependent]] * 3

    machines.pass_time(10_000)
    none = in_columns(machines, wanted_ms=page.due_ms)
    assert none.ids == b"" and none.upto_ms >= page.due_ms, "a run is done, and it is there"
    complete(machines, [dependent])
    machines.pass_time(2 * KEEP_MS)
    again = in_columns(machines)
    assert ids.split(again.ids) == [made[0], dependent]


def test_since_when_tasks_wait_is_told_by_their_ends_whoever_leads() -> None:
    machines = started()
    made = enqueue(machines, 2)
    complete(machines, made)
    machines.pass_time(KEEP_MS + 10_000)
    assert in_columns(machines).ids
    first = since_ms(machines)
    assert 0 < first - KEEP_MS <= machines.now_ms - KEEP_MS - 10_000

    machines.pass_time(60_000)
    machines.restart(leader_of(machines))
    machines.pass_time(15_000)
    assert in_columns(machines).ids and since_ms(machines) == first
