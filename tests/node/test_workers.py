"""Workers that report to nodes: who is listed, for how long, and when their slots go into the coordination log."""

from __future__ import annotations

import itertools

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.machines import Machines
from skuld_py.errors import Refused
from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.node.knowledge import attendance
from skuld_py.node.knowledge.attendance import NEVER_MS, Attendance
from skuld_py.node.workers.capacity import PATIENCE_MS, PAUSE_MS, QUIET_MS, Capacity

LEASE_MS = 30_000


def row(holder: str = "w", slots: int = 2, key: str = "", **more: object) -> m.WorkerRow:
    made = m.WorkerRow(holder, "host", slots, ("q",), columns.pack_u64([1]), "0.1.0", "", 1, 0, 0, key, "", 0)
    return attrs.evolve(made, **more)  # type: ignore[arg-type]


@pytest.fixture
def machines() -> Machines:
    made = Machines(partitions=4)
    made.pass_time(2_000)
    return made


def report(machines: Machines, worker: m.WorkerRow, at: int = 0, lease_ms: int = LEASE_MS) -> m.Message:
    machines.ask(machines.names[at], m.Report(1, lease_ms, (worker,)), b"w")
    machines.pass_time(1)
    return machines.answers_to(b"w")[-1]


def muster(machines: Machines, at: int = 0, behind: str = "", wait_ms: int = 20) -> m.Mustered:
    machines.ask(machines.names[at], m.Muster(2, behind), b"reader")
    machines.pass_time(wait_ms)
    answer = machines.answers_to(b"reader")[-1]
    assert isinstance(answer, m.Mustered), answer
    return answer


def names_of(answer: m.Mustered) -> list[tuple[str, str]]:
    return [(each.holder, each.node) for each in answer.workers]


# -- who is there ---------------------------------------------------------------------------------


def test_each_node_lists_the_workers_of_all(machines: Machines) -> None:
    for at, holder in enumerate(("b", "c", "a")):
        assert report(machines, row(holder), at) == m.Reported(1)

    for at in range(3):
        assert names_of(muster(machines, at)) == [
            ("a", machines.names[2]), ("b", machines.names[0]), ("c", machines.names[1])]


def test_a_worker_is_gone_when_its_lease_is_over_and_at_once_when_it_says_so(machines: Machines) -> None:
    report(machines, row("dies"))
    report(machines, row("stops"))

    report(machines, row("stops"), lease_ms=0)
    assert [holder for holder, _ in names_of(muster(machines))] == ["dies"]
    machines.pass_time(LEASE_MS - 100)
    assert [holder for holder, _ in names_of(muster(machines))] == ["dies"]
    machines.pass_time(200)
    assert names_of(muster(machines)) == []
    assert len(machines.nodes[machines.names[0]].view.attendance) == 0


def test_what_a_worker_says_anew_counts_and_lasts_anew(machines: Machines) -> None:
    report(machines, row())
    machines.pass_time(LEASE_MS - 100)
    report(machines, row(slots=5))
    machines.pass_time(1_000)

    listed = muster(machines).workers
    assert [(each.slots, 900 < each.age_ms < 1_100) for each in listed] == [(5, True)]
    assert machines.nodes[machines.names[0]].view.attendance.slots == 5


def test_a_worker_that_changed_its_node_is_listed_once_as_it_reported_last(machines: Machines) -> None:
    report(machines, row(slots=2), at=0)
    machines.pass_time(100)
    report(machines, row(slots=3), at=1)

    listed = muster(machines, at=2).workers
    assert [(each.holder, each.slots, each.node) for each in listed] == [("w", 3, machines.names[1])]


def test_nobody_speaks_for_a_worker_of_another_key(machines: Machines) -> None:
    report(machines, row(key="anna"))
    report(machines, row(key="berta"), lease_ms=0)
    report(machines, row(key="berta", slots=9))

    assert [(each.key, each.slots) for each in muster(machines).workers] == [("anna", 2), ("berta", 9)]


def test_a_node_that_is_silent_is_named_and_the_others_are_listed(machines: Machines) -> None:
    report(machines, row("here"), at=0)
    report(machines, row("there"), at=1)
    machines.is_deaf = machines.names[1]

    answer = muster(machines, wait_ms=1_500)
    assert names_of(answer) == [("here", machines.names[0])]
    assert answer.missing == (machines.names[1],)


def test_workers_come_in_pages(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(m, "WORKERS_IN_PAGE", 2)
    for at in range(3):
        for number in range(3):
            report(machines, row(f"w{number}{at}"), at)

    pages, behind = [muster(machines)], ""
    while behind := pages[-1].last:
        pages.append(muster(machines, behind=behind))
    assert all(len(page.workers) <= 2 for page in pages)
    assert [holder for page in pages for holder, _ in names_of(page)] == sorted(
        f"w{number}{at}" for number in range(3) for at in range(3))


def test_a_description_counts_the_workers_of_all_nodes(machines: Machines) -> None:
    report(machines, row("a", slots=2), at=0)
    report(machines, row("b", slots=3), at=1)
    machines.pass_time(2_000)

    seen = machines.nodes[machines.names[2]].description()
    assert [(node.workers, node.slots) for node in seen.nodes] == [(1, 2), (1, 3), (0, 0)]
    assert (seen.workers, seen.slots) == (2, 5)


# -- bounds ---------------------------------------------------------------------------------------


def test_a_full_node_refuses_new_workers_and_hears_those_it_knows() -> None:
    seen = Attendance(workers_max=2)
    seen.note(0, row("a"), LEASE_MS)
    seen.note(0, row("b"), LEASE_MS)

    with pytest.raises(Refused, match="2 workers report to this node") as refused:
        seen.note(0, row("c"), LEASE_MS)
    assert refused.value.code == "busy"
    seen.note(1, row("b", slots=7), LEASE_MS)
    seen.note(1, row("a"), 0)
    seen.note(1, row("c"), LEASE_MS)
    assert [each.holder for each in seen.page(1, "")[0]] == ["b", "c"] and seen.slots == 9


def test_what_workers_say_of_themselves_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attendance, "BYTES_MAX", 600)
    seen = Attendance()
    seen.note(0, row("a", spark="x" * 250), LEASE_MS)

    with pytest.raises(Refused, match="has room for no more"):
        seen.note(0, row("b", spark="x" * 250), LEASE_MS)
    seen.note(0, row("a", spark="y" * 250), LEASE_MS)  # in the place of what it said before
    seen.note(0, row("a"), 0)
    seen.note(0, row("b", spark="x" * 250), LEASE_MS)
    with pytest.raises(Refused, match="has room for no more"):
        seen.note(0, row("c", batches=(m.BatchRow("q", "f", 1, 0, 1, 0, 0),) * 2), LEASE_MS)


def test_weights_that_are_not_one_for_each_queue_are_refused(machines: Machines) -> None:
    answer = report(machines, row(weights=b""))

    assert isinstance(answer, m.Failed) and answer.code == "malformed" and "weights" in answer.text
    assert names_of(muster(machines)) == []


def test_a_clock_that_falls_back_keeps_nobody_for_longer() -> None:
    seen = Attendance()
    seen.note(100_000, row(), LEASE_MS)

    assert seen.page(50_000, "")[0] == ()
    seen.expire(50_000)
    assert (len(seen), seen.slots, seen.due_ms) == (0, 0, NEVER_MS)


# -- slots in the log -----------------------------------------------------------------------------


def units(slots: int) -> dict[tuple[str, ...], int]:
    return {(): slots} if slots else {}


def told_at(changes: list[tuple[int, int]], until_ms: int) -> list[tuple[int, int]]:
    """When which number is to be written, for numbers that come at these times: looked at when due."""
    capacity, told, now_ms, slots = Capacity(), [], 0, 0
    pending = sorted(changes)
    due_ms = NEVER_MS
    while now_ms <= until_ms:
        while pending and pending[0][0] <= now_ms:
            slots = pending.pop(0)[1]
        before = capacity.told
        due_ms = capacity.see(now_ms, units(slots))
        if capacity.told != before:
            told.append((now_ms, capacity.told.get((), 0)))
        assert due_ms > now_ms
        now_ms = min(due_ms, pending[0][0] if pending else NEVER_MS)
    return told


def test_a_fleet_that_starts_is_one_change() -> None:
    starts = [(number * 20, 4 * (number + 1)) for number in range(200)]

    assert told_at(starts, 10 * PAUSE_MS) == [(199 * 20 + QUIET_MS, 800)]


def test_a_fleet_that_comes_slowly_is_not_waited_for_for_ever() -> None:
    starts = [(number * 4_000, number + 1) for number in range(100)]

    told = told_at(starts, 500_000)
    assert told[0] == (PATIENCE_MS, 8) and told[-1][1] == 100
    assert all(later - sooner >= PAUSE_MS for (sooner, _), (later, _) in itertools.pairwise(told))


def test_a_worker_that_is_started_again_changes_nothing() -> None:
    assert told_at([(0, 4), (20_000, 0), (23_000, 4)], 500_000) == [(QUIET_MS, 4)]


@given(st.lists(st.tuples(st.integers(0, 300_000), st.integers(0, 50)), max_size=40))
def test_the_last_number_is_written_and_seldom(changes: list[tuple[int, int]]) -> None:
    last = ([0] + [slots for _, slots in sorted(changes)])[-1]

    told = told_at(changes, 300_000 + PAUSE_MS + PATIENCE_MS + QUIET_MS)
    assert ([0] + [slots for _, slots in told])[-1] == last
    assert all(later - sooner >= PAUSE_MS for (sooner, _), (later, _) in itertools.pairwise(told))


def test_a_clock_that_falls_far_back_delays_nothing_for_long() -> None:
    capacity = Capacity()
    capacity.see(1_000_000_000, units(4))
    capacity.see(1_000_010_000, units(4))
    assert capacity.told == units(4)

    capacity.see(5_000, units(7))
    assert capacity.told == units(7)
