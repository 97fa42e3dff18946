"""Unique names on real machines: one task in a window, and who comes second is told so."""

from __future__ import annotations

import pytest

from node.machines import Machines
from skuld_py.config.timing import Retention
from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.body import PRIORITY_MAX, Body, Header
from skuld_py.model.history import RELEASED
from skuld_py.model.ids import named_id
from skuld_py.node.knowledge.heads import head_of
from skuld_py.node.writes.names import NAMES_AT_ONCE

WINDOW_MS = 60_000


@pytest.fixture
def machines() -> Machines:
    made = Machines(partitions=1)
    made.pass_time(2_000)
    assert made.documents[0][1].leader
    return made


def batch_of(made_ms: int, payload: bytes, unique: str = "n") -> m.TaskBatch:
    body = Body(Header("q", window_ms=WINDOW_MS), payload=payload, made_ms=made_ms, unique=unique)
    task_id = named_id("q", unique, made_ms // WINDOW_MS * WINDOW_MS, "")
    return m.TaskBatch(body.header.encode(), task_id, columns.pack([body.rest]))


def enqueue(machines: Machines, *batches: m.TaskBatch, w: int = 0, node: int = 0) -> m.Message:
    before = len(machines.answers_to(b"me"))
    machines.ask(machines.names[node], m.Enqueue(1, w, batches), b"me")
    machines.pass_time(300)
    answer, = machines.answers_to(b"me")[before:]
    return answer


def duplicates(answer: m.Message) -> list[int]:
    assert isinstance(answer, m.Acked)
    return list(columns.unpack_u64(answer.duplicates))


def bodies(machines: Machines, task_id: bytes) -> list[bytes]:
    found = [node.view.vnodes[0].replica.bodies([task_id])[0] for node in machines.nodes.values()]
    return [Body.decode(record).payload for record in found if record is not None]


def test_the_second_of_a_name_is_told_so_whatever_node_it_asks(machines: Machines) -> None:
    first = batch_of(machines.now_ms, b"one")
    assert duplicates(enqueue(machines, first)) == []

    second = batch_of(machines.now_ms, b"two")
    assert second.ids == first.ids
    assert duplicates(enqueue(machines, second, node=1)) == [0]
    assert bodies(machines, first.ids) == [b"one"] * 3
    assert duplicates(enqueue(machines, first, node=2)) == [], "the first again is the first"


def test_of_a_request_those_that_were_there_are_told_by_number(machines: Machines) -> None:
    enqueue(machines, batch_of(machines.now_ms, b"one"))
    others = [batch_of(machines.now_ms, b"two", name) for name in ("a", "n", "b")]

    assert duplicates(enqueue(machines, machines.batch("q", 3), *others)) == [4]


def test_of_two_in_one_request_the_earlier_is_the_task_and_the_later_is_told(machines: Machines) -> None:
    now_ms = machines.now_ms
    first, second = batch_of(now_ms, b"first"), batch_of(now_ms + 1, b"second")
    assert first.ids == second.ids

    assert duplicates(enqueue(machines, second, first, first)) == [0]
    assert bodies(machines, first.ids) == [b"first"] * 3
    assert duplicates(enqueue(machines, second, first)) == [0]
    assert duplicates(enqueue(machines, second, batch_of(now_ms + 2, b"third"))) == [0, 1]


def test_another_content_without_a_name_is_still_refused(machines: Machines) -> None:
    plain = machines.batch("q", 1)
    enqueue(machines, plain)
    other = m.TaskBatch(plain.header, plain.ids, columns.pack([b"other"]))

    answer = enqueue(machines, batch_of(machines.now_ms, b"one"), other)
    assert isinstance(answer, m.Failed) and answer.code == "conflict"


def test_the_next_window_is_another_task(machines: Machines) -> None:
    first = batch_of(machines.now_ms, b"one")
    enqueue(machines, first)
    machines.pass_time(WINDOW_MS)

    assert duplicates(enqueue(machines, batch_of(machines.now_ms, b"two"))) == []


def test_copies_that_were_parted_agree_on_the_one_asked_for_first(machines: Machines) -> None:
    late, early = batch_of(machines.now_ms, b"late"), batch_of(machines.now_ms - 5, b"early")
    here, there, _ = machines.names
    machines.is_deaf = there
    enqueue(machines, late, w=1)
    machines.is_deaf = ""
    machines.nodes[there].view.vnodes[0].replica.store_tasks(
        machines.now_ms, early.header, [early.ids], early.payloads.unpack())

    machines.pass_time(3 * machines.nodes[here].view.timing.exchange_ms)
    assert bodies(machines, late.ids) == [b"early"] * 3


@pytest.mark.parametrize("ago_ms", [-60_000, 120_000])
def test_a_clock_that_is_far_off_names_nothing(machines: Machines, ago_ms: int) -> None:
    answer = enqueue(machines, batch_of(machines.now_ms - ago_ms, b"one"))

    assert isinstance(answer, m.Failed) and answer.is_definite
    assert answer.code in ("bad_unique", "future_id")


def with_retention(keep_ms: int) -> Machines:
    machines = Machines(partitions=1, retention=Retention(keep_ms))
    machines.pass_time(2_000)
    return machines


def test_a_window_longer_than_ended_tasks_are_kept_is_refused_by_name_and_remedy() -> None:
    machines = with_retention(WINDOW_MS - 1)
    named = batch_of(machines.now_ms, b"one")

    answer = enqueue(machines, machines.batch("q", 1), named)

    assert isinstance(answer, m.Failed) and (answer.code, answer.is_definite) == ("bad_unique", True)
    assert all(word in answer.text for word in ("window", "60 s", "59.999 s", "--retention", "shorter window"))
    assert bodies(machines, named.ids) == []
    assert isinstance(enqueue(machines, machines.batch("q", 1)), m.Acked), "without a name there is no window"


@pytest.mark.parametrize("keep_ms", [0, WINDOW_MS])
def test_a_window_no_longer_than_ended_tasks_are_kept_is_taken(keep_ms: int) -> None:
    machines = with_retention(keep_ms)

    assert duplicates(enqueue(machines, batch_of(machines.now_ms, b"one"))) == []


# -- content is settled by the first majority ---------------------------------------------------------


def claimed(machines: Machines) -> list[m.ClaimBatch]:
    machines.ask(machines.names[0], m.Claim(9, "q", 1, 60_000, 0, "w"), b"worker")
    machines.pass_time(100)
    answer = machines.answers_to(b"worker")[-1]
    assert isinstance(answer, m.Claimed)
    return list(answer.batches)


@pytest.mark.parametrize("is_claimed", [False, True])
def test_a_later_call_by_a_clock_that_is_behind_changes_nothing_and_is_told(machines: Machines,
                                                                            is_claimed: bool) -> None:
    machines.pass_time(40_000 - machines.now_ms % WINDOW_MS)
    first = batch_of(machines.now_ms, b"first")
    enqueue(machines, first)
    if is_claimed:
        assert claimed(machines)
    machines.pass_time(10_000)
    late = batch_of(machines.now_ms - 30_000, b"late")
    assert late.ids == first.ids

    assert duplicates(enqueue(machines, late, node=1)) == [0]
    assert duplicates(enqueue(machines, late, w=3, node=2)) == [0]
    machines.pass_time(3 * machines.nodes[machines.names[0]].view.timing.exchange_ms)
    assert bodies(machines, first.ids) == [b"first"] * 3


def test_a_copy_that_missed_the_first_call_takes_no_later_one(machines: Machines) -> None:
    machines.pass_time(40_000 - machines.now_ms % WINDOW_MS)
    first = batch_of(machines.now_ms, b"first")
    machines.is_deaf = machines.names[2]
    assert isinstance(enqueue(machines, first), m.Acked)
    machines.is_deaf = ""
    late = batch_of(machines.now_ms - 20_000, b"late")

    assert duplicates(enqueue(machines, machines.batch("q", 2), late, node=2)) == [2]
    machines.pass_time(3 * machines.nodes[machines.names[0]].view.timing.exchange_ms)
    assert bodies(machines, first.ids) == [b"first"] * 3


def test_more_copies_of_what_is_there_are_made_for_who_asks_for_them(machines: Machines) -> None:
    first = batch_of(machines.now_ms, b"first")
    machines.is_deaf = machines.names[2]
    enqueue(machines, first, w=1)
    machines.is_deaf = ""

    answer = enqueue(machines, batch_of(machines.now_ms, b"late"), w=3)
    assert isinstance(answer, m.Acked) and answer.copies == 3 and duplicates(answer) == [0]
    assert bodies(machines, first.ids) == [b"first"] * 3


def test_names_without_a_majority_are_refused_and_nothing_is_written(machines: Machines) -> None:
    first = batch_of(machines.now_ms, b"first")
    machines.is_lost = lambda message: isinstance(message, m.Get)
    others = [batch_of(machines.now_ms, b"x", f"n{number}") for number in range(NAMES_AT_ONCE)]

    machines.ask(machines.names[0], m.Enqueue(1, 1, (first, *others)), b"me")
    machines.pass_time(20_000)
    answer, = machines.answers_to(b"me")
    assert isinstance(answer, m.Failed) and (answer.code, answer.is_definite) == ("unavailable", True)
    assert bodies(machines, first.ids) == []


def test_a_request_of_many_names_is_asked_for_in_parts_and_answered_once(machines: Machines) -> None:
    names = [f"n{number}" for number in range(3 * NAMES_AT_ONCE)]
    some = [batch_of(machines.now_ms, b"one", name) for name in names[::2]]
    assert duplicates(enqueue(machines, *some)) == []

    every = [batch_of(machines.now_ms, b"two", name) for name in names]
    assert duplicates(enqueue(machines, *every)) == [*range(0, len(names), 2)]
    assert duplicates(enqueue(machines, *every)) == [*range(0, len(names), 2)], "its own are its own"


def test_of_two_at_the_same_time_the_one_that_no_majority_took_is_told(machines: Machines) -> None:
    first, second = batch_of(machines.now_ms, b"first"), batch_of(machines.now_ms + 1, b"second")
    for node, batch in enumerate((first, second)):
        machines.ask(machines.names[node], m.Enqueue(node, 0, (batch,)), b"me")
    machines.pass_time(300)

    assert sorted(duplicates(answer) for answer in machines.answers_to(b"me")) == [[], [0]]
    assert bodies(machines, first.ids) == [b"first"] * 3


# -- the age of a name is that of the asking -----------------------------------------------------------


def ready(machines: Machines) -> set[tuple[bytes, ...]]:
    """What each node takes for claimable, and how many that are by its counts."""
    replicas = [node.view.vnodes[0].replica for node in machines.nodes.values()]
    return {(str(replica.filing.tally.row(b"q")[0]).encode(), *(
        head[-20:] for head in replica.filing.heads("q", None, 9))) for replica in replicas}


def test_a_name_is_claimed_behind_what_was_asked_for_before_it(machines: Machines) -> None:
    machines.pass_time(40_000 - machines.now_ms % WINDOW_MS)
    first = machines.batch("q", 1)
    enqueue(machines, first)
    named = batch_of(machines.now_ms, b"named")
    assert named.ids < first.ids, "its window began before"
    enqueue(machines, named)
    second = machines.batch("q", 1)
    enqueue(machines, second)

    assert ready(machines) == {(b"3", first.ids, named.ids, second.ids)}
    grants: list[m.Message] = []
    machines.is_lost = lambda message: isinstance(message, m.Grant) and grants.append(message) is not None
    claims = [batch for _ in range(2) for batch in claimed(machines)]
    assert [batch.ids for batch in claims] == [first.ids, named.ids]
    assert ready(machines) == {(b"1", second.ids)}, "on no node it is left, by the grant alone"
    told = {grant.priorities for grant in grants if isinstance(grant, m.Grant)}
    assert told == {PRIORITY_MAX.to_bytes(4, "big")}
    token = columns.pack_u64([claims[1].first_token])
    machines.ask(machines.names[0], m.Conclude(8, RELEASED, 0, claims[1].ids, token, columns.pack([])), b"worker")
    machines.pass_time(100)
    assert ready(machines) == {(b"2", named.ids, second.ids)}, "given back, it waits where it waited"


def test_names_and_others_of_one_claim_come_in_the_order_of_asking(machines: Machines) -> None:
    machines.pass_time(40_000 - machines.now_ms % WINDOW_MS)
    asked: list[bytes] = []
    for number in range(6):
        batch = batch_of(machines.now_ms, b"x", f"n{number}") if number % 2 else machines.batch("q", 1)
        enqueue(machines, batch, node=number % 3)
        asked.append(batch.ids)

    machines.ask(machines.names[1], m.Claim(9, "q", 5, 60_000, 0, "w"), b"worker")
    machines.pass_time(100)
    answer = machines.answers_to(b"worker")[-1]
    assert isinstance(answer, m.Claimed)
    assert [batch.ids for batch in answer.batches] == [b"".join(asked[:5])]
    assert ready(machines) == {(b"1", asked[5])}


def test_gossip_tells_that_a_name_is_as_old_as_its_asking(machines: Machines) -> None:
    machines.pass_time(40_000 - machines.now_ms % WINDOW_MS)
    named = batch_of(machines.now_ms, b"named")
    enqueue(machines, named)
    gossiped: list[m.Message] = []
    machines.is_lost = lambda message: bool(gossiped.append(message))

    machines.pass_time(3_000)
    heads = {message.heads for message in gossiped if isinstance(message, m.Gossip) and message.queues}
    assert heads == {head_of(0, named.ids, machines.now_ms - 3_300)}
