"""A cluster that is to keep more copies, or fewer: owners follow, tasks stay, and nobody waits for it."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from node.machines import Machines
from node.operating import down, up
from node.test_moving import enqueue, missing
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.body import Body, Header, split_body
from skuld_py.model.document import Document, Member, seats_of
from skuld_py.model.events import NodesChanged
from skuld_py.partition.data.tables import prefix_of
from skuld_py.partition.leadership.election import Election
from skuld_py.partition.leadership.evaluator import NO_MAJORITY, Action, Facts, Rest, Stand, Yield, evaluate
from skuld_py.verbs.attention import Facts as Judged
from skuld_py.verbs.attention import concerns

NAMES = ("n1", "n2", "n3")
LIVE = {name: Member(name, "h", 1, f"boot of {name}") for name in NAMES}
DOCUMENT = Document(4, "n1", "boot of n1", seats_of(NAMES), era=1, horizon_ms=9_000)
COMPARED_FIRST = Rest("those who stay are compared first")


def keep(machines: Machines, replicas: int) -> None:
    """The log says that so many copies are to be kept."""
    for name in machines.names:
        if name not in machines.down:
            machines.give(name, NodesChanged(tuple(machines.names), replicas=replicas))


def sizes(machines: Machines) -> set[int]:
    return {len(document.cohort) for _, document in machines.documents.values()}


def more(machines: Machines, count: int) -> list[bytes]:
    """Tasks that are acknowledged while the voters change."""
    made: list[bytes] = []
    for number in range(count):
        batch = machines.batch("q", 1)
        made.append(batch.ids)
        machines.ask(machines.names[0], m.Enqueue(number, 0, (batch,)), b"more")
    machines.pass_time(500)
    assert [type(answer) for answer in machines.answers_to(b"more")] == [m.Acked] * count
    return made


def told(machines: Machines, replicas: int) -> dict[str, str]:
    """What people are told, but that this cluster proves no claims."""
    description = attrs.evolve(machines.nodes[machines.names[0]].description(), is_unproven=False)
    return {each.kind: each.words for each in concerns(Judged("c", replicas, 200, description))}


@pytest.fixture
def solo() -> tuple[Machines, list[bytes]]:
    """Three nodes, of which one keeps each task."""
    machines = Machines(partitions=4, replicas=1)
    machines.pass_time(3_000)
    return machines, enqueue(machines)


@pytest.fixture
def three() -> tuple[Machines, list[bytes]]:
    machines = Machines(partitions=4)
    machines.pass_time(3_000)
    return machines, enqueue(machines)


def test_from_one_copy_to_three_all_tasks_are_on_all_nodes_and_new_ones_were_taken_meanwhile(
        solo: tuple[Machines, list[bytes]]) -> None:
    machines, made = solo
    assert sizes(machines) == {1} and set(told(machines, 1)) == {"solo"}
    keep(machines, 3)
    made += more(machines, 8)
    assert "1 at the least" in told(machines, 3)["under_target"]
    machines.pass_time(20_000)

    assert sizes(machines) == {3} and not missing(machines, made) and told(machines, 3) == {}
    for store in machines.stores.values():
        kept = {key[2:] for partition in range(4) for key in store.rows("body", prefix_of(partition))}
        assert kept >= {*made}


def test_while_there_is_one_voter_owners_that_fill_count_as_copies(solo: tuple[Machines, list[bytes]]) -> None:
    machines, _ = solo
    keep(machines, 3)
    more(machines, 4)
    copies = [answer.copies for answer in machines.answers_to(b"more") if isinstance(answer, m.Acked)]
    assert len(copies) == 4 and min(copies) >= 2
    alone = machines.documents[0][1].leader
    for name in machines.names:
        if name != alone:
            down(machines, name)
    batch = next(batch for number in range(200) if batch_partition(batch := machines.batch("q", 1)) == 0)
    machines.ask(alone, m.Enqueue(9, 0, (batch,)), b"alone")
    machines.pass_time(10_000)
    (answer,) = machines.answers_to(b"alone")
    assert isinstance(answer, m.Failed) and "1 of 2 copies" in answer.text


def batch_partition(batch: m.TaskBatch) -> int:
    return int.from_bytes(batch.ids[16:20], "big") & 3


def test_a_name_that_stands_for_a_task_tells_of_no_more_copies_than_there_are() -> None:
    machines = Machines(partitions=1, replicas=1)
    machines.pass_time(3_000)
    leader = machines.documents[0][1].leader
    began_ms = machines.now_ms - machines.now_ms % 3_600_000

    def named(payload: bytes) -> m.TaskBatch:
        body = Body(Header("q", window_ms=3_600_000), payload=payload, made_ms=machines.now_ms, unique="once")
        header, rest = split_body(body.encode())
        return m.TaskBatch(header, ids.named_id("q", "once", began_ms, ""), columns.pack([rest]))
    machines.ask(leader, m.Enqueue(1, 0, (named(b"1"),)), b"one")
    machines.pass_time(200)
    for name in machines.names:
        if name != leader:
            down(machines, name)
    machines.give(leader, NodesChanged(tuple(machines.names), replicas=3))
    machines.ask(leader, m.Enqueue(2, 0, (named(b"2"),)), b"two")
    machines.pass_time(10_000)

    assert [type(answer) for answer in machines.answers_to(b"one")] == [m.Acked]
    assert [type(answer) for answer in machines.answers_to(b"two")] == [m.Failed]


def test_from_three_copies_to_one_voters_go_one_at_a_time_and_no_task_goes_with_them(
        three: tuple[Machines, list[bytes]]) -> None:
    machines, made = three
    keep(machines, 1)
    seen, more = set[int](), ""
    for _ in range(400):
        machines.pass_time(50)
        seen |= sizes(machines)
        more = more or told(machines, 1).get("over_target", "")
    assert seen == {3, 2, 1} and sizes(machines) == {1} and "they go one by one" in more
    assert not missing(machines, made)


def test_what_two_of_three_had_is_on_the_one_that_stays(three: tuple[Machines, list[bytes]]) -> None:
    machines, made = three
    keep(machines, 1)
    stays = machines.nodes[machines.names[0]].view.vnodes[0].owners[0]
    machines.is_deaf = stays
    machines.pass_time(200)
    asked = next(name for name in machines.names if name != stays)
    batch = next(batch for _ in range(200) if batch_partition(batch := machines.batch("q", 1)) == 0)
    machines.ask(asked, m.Enqueue(9, 0, (batch,)), b"two")
    machines.pass_time(5_000)
    assert isinstance(machines.answers_to(b"two")[0], m.Acked)
    machines.is_deaf = ""
    machines.pass_time(30_000)

    assert machines.documents[0][1].cohort == (stays,)
    assert machines.stores[stays].get("body", prefix_of(0) + batch.ids) is not None
    assert not missing(machines, made)


def test_a_copy_is_not_enough_before_the_voters_are_fewer(three: tuple[Machines, list[bytes]]) -> None:
    machines, _ = three
    leader = machines.documents[0][1].leader
    others = [name for name in machines.names if name != leader]
    for name in others:
        down(machines, name)
    keep(machines, 1)
    batch = next(batch for _ in range(200) if batch_partition(batch := machines.batch("q", 1)) == 0)
    machines.ask(leader, m.Enqueue(9, 0, (batch,)), b"early")
    machines.pass_time(10_000)
    (answer,) = machines.answers_to(b"early")
    assert isinstance(answer, m.Failed)
    for name in others:
        up(machines, name)


def alive(*names: str) -> dict[str, Member]:
    return {name: LIVE[name] for name in names}


def facts(me: str, *owners: str, **changes: Any) -> Facts:
    return attrs.evolve(Facts(LIVE[me], LIVE, owners, 4, 4), **changes)


@pytest.mark.parametrize(("known", "changes", "action"), [
    (facts("n1", "n1"), {}, COMPARED_FIRST),
    (facts("n1", "n1", is_gathered=True), {}, Stand(("n1", "n2"))),
    (facts("n1", "n3", is_gathered=True), {}, Stand(("n1", "n3"))),
    (facts("n1", "n3", is_gathered=True), {"seats": seats_of(("n1", "n3"))}, Yield(("n3",), ("n3",))),
    (facts("n1", "n1", is_gathered=True, live=alive("n1", "n3")), {}, Stand(("n1", "n3"))),
    (facts("n1", "n3", is_gathered=True, live=alive("n1", "n2")), {}, Rest(NO_MAJORITY)),
    (facts("n1", *NAMES, is_gathered=True), {}, Rest())])
def test_who_goes_next(known: Facts, changes: dict[str, Any], action: Action) -> None:
    assert evaluate(known, attrs.evolve(DOCUMENT, **changes), 1_000) == action


def test_a_smaller_cohort_loses_no_more_live_voters_than_it_is_smaller() -> None:
    election = Election(0, LIVE["n1"], timing=None, jitter_ms=lambda most: 0)  # type: ignore[arg-type]
    election.document = DOCUMENT
    for cohort, live, loses in (
            (("n1", "n2"), NAMES, False), (("n1", "n2"), ("n1", "n3"), True), (("n1",), ("n1", "n2", "n3"), False),
            (("n1", "n2", "n4"), NAMES, True)):
        election.cohort = cohort
        assert election.would_lose_votes(live) is loses
