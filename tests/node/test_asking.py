"""What a node refuses a client, by code and field, before anything is sent or stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from node.machines import Machines
from skuld_py.config import AHEAD_MS_MAX, PROTOCOL_VERSION, RULES
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.body import Body, Header
from skuld_py.model.events import Received, RulesChanged, Ticked
from skuld_py.model.state import State

MIB = 1 << 20


@pytest.fixture(scope="module")
def machines() -> Machines:
    made = Machines()
    made.pass_time(2_000)
    return made


def enqueue(made: Machines, sizes: list[int], w: int = 0, batches: int = 1) -> m.Message:
    task_ids = made.mint.mint(made.now_ms, len(sizes) * batches, 1)
    parts = [task_ids[at : at + len(sizes)] for at in range(0, len(task_ids), len(sizes))]
    payloads = columns.pack([bytes(size) for size in sizes])
    return m.Enqueue(1, w, tuple(m.TaskBatch(Header("q").encode(), b"".join(part), payloads) for part in parts))


def late(made: Machines) -> m.Message:
    task_ids = made.mint.__class__(1).mint(made.now_ms + 60_000, 1, 0)
    return m.Enqueue(1, 0, (m.TaskBatch(Header("q").encode(), task_ids[0], columns.pack([b""])),))


def timed(made: Machines, not_before_ms: int, expires_ms: int, payload: bytes = b"x") -> m.Enqueue:
    """A task with times, given as the milliseconds from now; the first of two has none to complain of."""
    times = [each and made.now_ms + each for each in (not_before_ms, expires_ms)]
    body = Body(Header("q"), *times, payload)
    fine = Body(Header("q"), *(each and made.now_ms + 2 + at for at, each in enumerate(times)), b"fine")
    task_ids = b"".join(made.mint.mint(made.now_ms, 2, 1))
    return m.Enqueue(1, 0, (m.TaskBatch(body.header.encode(), task_ids, columns.pack([fine.rest, body.rest])),))


def optional(made: Machines, is_laned: bool, **options: Any) -> m.Enqueue:
    """A task with options, under an id of some lane or of none."""
    body = Body(Header("q", policy=1 if "deps" in options else 0), **options)
    task_id, = made.mint.mint(made.now_ms, 1, 1, is_laned)
    return m.Enqueue(1, 0, (m.TaskBatch(body.header.encode(), task_id, columns.pack([body.rest])),))


def named(made: Machines, w: int) -> m.Enqueue:
    """A task with a unique name: what its name stands for is asked for before it is stored."""
    made_ms = made.now_ms
    body = Body(Header("q", window_ms=1_000), payload=b"x", made_ms=made_ms, unique="n")
    task_id = ids.named_id("q", "n", made_ms // 1_000 * 1_000, "")
    return m.Enqueue(1, w, (m.TaskBatch(body.header.encode(), task_id, columns.pack([body.rest])),))


REFUSED: dict[str, tuple[Callable[[Machines], m.Message], str, str]] = {
    "no tasks": (lambda made: m.Enqueue(1, 0, ()), "empty", "tasks"),
    "a payload too large": (lambda made: enqueue(made, [MIB + 1]), "payload_too_large", "payload"),
    "too many tasks": (lambda made: enqueue(made, [0] * 501, batches=2), "too_large", "tasks"),
    "too many bytes": (lambda made: enqueue(made, [MIB] * 25), "too_large", "tasks"),
    "more copies than replicas": (lambda made: enqueue(made, [1], w=4), "bad_w", "w"),
    "more copies of a name than replicas": (lambda made: named(made, 4), "bad_w", "w"),
    "an id of tomorrow": (late, "future_id", "id"),
    "expired before it may be claimed": (lambda made: timed(made, 2_000, 1_999), "bad_time", "expires"),
    "expired when it may be claimed": (lambda made: timed(made, 2_000, 2_000), "bad_time", "expires"),
    "not in this life": (lambda made: timed(made, AHEAD_MS_MAX + 1, 0), "bad_time", "not_before"),
    "long beyond this life": (lambda made: timed(made, 1_000, AHEAD_MS_MAX + 1), "bad_time", "expires"),
    "a payload too large behind its times": (lambda made: timed(made, 1, 2, bytes(MIB + 1)), "payload_too_large",
                                             f"payload: {MIB + 1} bytes"),
    "an id of a lane and no key": (lambda made: optional(made, True), "bad_id", "id"),
    "a key and an id of another lane": (lambda made: optional(made, True, key="k"), "bad_id", "lane"),
    "a key and an id of no lane": (lambda made: optional(made, False, key="k"), "bad_id", "key"),
    "no entries": (lambda made: m.Append(1, 0, bytes(20), 1 << 32, 0, columns.pack([])),
                   "entry_too_large", "entries"),
    "an entry too large": (lambda made: m.Append(1, 0, bytes(20), 1 << 32, 0, columns.pack([bytes(1 << 17)])),
                           "entry_too_large", "entries"),
    "nothing to complete": (lambda made: m.Complete(1, 0, 0, b"", b""), "empty", "ids"),
    "a result too large": (lambda made: m.Complete(1, 0, 0, bytes(20), bytes(8), b"",
                                                   columns.pack([bytes(1 << 17)])), "entry_too_large", "results"),
    "an error too large": (lambda made: m.Conclude(1, 3, -1, bytes(20), bytes(8), columns.pack([bytes(1 << 17)])),
                           "entry_too_large", "errors"),
    "nothing to conclude": (lambda made: m.Conclude(1, 3, -1, b"", b""), "empty", "ids"),
    "nothing to cancel": (lambda made: m.Cancel(1, 0, 0, b""), "empty", "ids"),
    "nothing to revive": (lambda made: m.Revive(1, b""), "empty", "ids"),
    "cancelled on more than there are": (lambda made: m.Cancel(1, 4, 0, bytes(20)), "bad_w", "w"),
    "nothing to renew": (lambda made: m.Renew(1, 5, b"", b""), "empty", "ids"),
    "nothing to get": (lambda made: m.Get(1, b""), "empty", "ids"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_by_name_and_nothing_is_sent_or_stored(machines: Machines, name: str) -> None:
    make, code, field = REFUSED[name]
    machines.flying.clear()
    machines.ask(machines.names[0], make(machines), name.encode())

    answers = machines.answers_to(name.encode())
    assert len(answers) == 1 and isinstance(answers[0], m.Failed)
    assert (answers[0].code, answers[0].is_definite) == (code, True)
    assert field in answers[0].text
    assert not machines.flying
    assert not any(store.scan("body", b"", b"\xff" * 30, 1) for store in machines.stores.values())


@pytest.mark.parametrize("payload", [b"x", bytes(MIB)])
@pytest.mark.parametrize("times", [(AHEAD_MS_MAX - 1, AHEAD_MS_MAX), (0, 1), (2_000, 2_001), (1, 0)])
def test_times_that_make_sense_are_taken_and_are_not_measured(payload: bytes, times: tuple[int, int]) -> None:
    made = Machines()
    made.pass_time(2_000)
    made.ask(made.names[0], timed(made, *times, payload))
    made.pass_time(100)

    assert isinstance(made.answers_to(b"client")[0], m.Acked)


def test_a_renewal_answers_row_by_row_even_when_one_is_named_twice(machines: Machines) -> None:
    machines.ask(machines.names[0], machines_enqueue := enqueue(machines, [1, 1]))
    machines.pass_time(100)
    machines.ask(machines.names[0], m.Claim(2, "q", 2, 60_000, 0, "me"), b"claimer")
    machines.pass_time(100)
    claimed = machines.answers_to(b"claimer")[0]
    assert isinstance(claimed, m.Claimed) and isinstance(machines_enqueue, m.Enqueue)
    batch = claimed.batches[0]
    rows = [(batch.ids[:20], batch.first_token), (batch.ids[:20], batch.first_token),
            (batch.ids[20:], batch.first_token), (batch.ids[20:], batch.first_token + 1)]

    machines.ask(machines.names[1], m.Renew(3, 90_000, b"".join(row[0] for row in rows),
                                            columns.pack_u64([row[1] for row in rows])), b"renewer")
    machines.pass_time(500)

    renewed = machines.answers_to(b"renewer")[0]
    assert isinstance(renewed, m.Renewed)
    ends = columns.unpack_u64(renewed.ends)
    assert ends[0] == ends[1] > batch.end_ms and ends[2] == 0 and ends[3] == ends[0]


def test_a_claim_takes_no_more_than_an_answer_can_carry(machines: Machines) -> None:
    for _ in range(3):
        machines.ask(machines.names[0], enqueue(machines, [MIB] * 12), b"big")
        machines.pass_time(100)
    taken = 0
    for turn in range(8):
        machines.ask(machines.names[0], m.Claim(2, "q", 100, 60_000, 0, "me"), b"taker-%d" % turn)
        machines.pass_time(200)
        answer = machines.answers_to(b"taker-%d" % turn)[0]
        assert isinstance(answer, m.Claimed)
        assert sum(len(batch.bodies.data) for batch in answer.batches) <= 24 * MIB
        taken += sum(len(batch.bodies) for batch in answer.batches)

    assert taken == 36


def test_what_has_ended_wakes_its_node_no_more() -> None:
    made = Machines()
    made.pass_time(2_000)
    node = made.nodes[made.names[0]]
    made.ask(node.view.me.name, enqueue(made, [1]))
    assert node.operations.timers

    made.pass_time(10)
    assert not (node.operations.timers or node.operations.open), "all have answered"

    made.is_lost = lambda message: isinstance(message, m.Kept)
    made.ask(node.view.me.name, enqueue(made, [1]))
    made.pass_time(10)
    made.is_lost = lambda message: False
    assert len(node.operations.timers) == 1
    made.pass_time(node.view.timing.resend_ms + 10)
    assert not (node.operations.timers or node.operations.open), "all have answered when they were asked again"


def test_timers_of_what_has_ended_are_not_kept_behind_one_that_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skuld_py.node.operations.timers.KEPT", 20)
    made = Machines()
    made.pass_time(2_000)
    node = made.nodes[made.names[0]]
    made.ask(node.view.me.name, m.Claim(1, "idle", 1, 1_000, 60_000, "w"))
    for _ in range(80):
        made.ask(node.view.me.name, m.Claim(1, "q", 1, 1_000, 600_000, "w"))
        made.pass_time(10)
        made.ask(node.view.me.name, enqueue(made, [1]))
        made.pass_time(10)

    assert sum(isinstance(answer, m.Claimed) for answer in made.answers_to(b"client")) == 80
    assert len(node.operations.open) == 1
    assert len(node.operations.timers) <= 20 + 4 * 2


def test_what_the_end_of_a_turn_leaves_is_looked_at_at_once() -> None:
    made = Machines(1, partitions=1, replicas=1)
    made.pass_time(2_000)
    node = made.nodes[made.names[0]]
    assert node.deadline() > made.now_ms
    node.view.vnodes[0].replica.filing.tally.add(b"q", State.WAITING, 1)
    assert node.deadline() <= made.now_ms

    made.give(node.view.me.name, Ticked())
    assert not node.view.bulletin.touched
    made.give(node.view.me.name, Ticked())
    assert node.deadline() > made.now_ms, "the first told others of the queue's work in the second"


def test_a_read_whose_answers_are_too_large_is_refused_at_once() -> None:
    made = Machines(partitions=1)
    made.pass_time(2_000)
    tasks = made.batch("q", 1)
    made.ask(made.names[0], m.Enqueue(1, 3, (tasks,)))
    made.pass_time(100)

    made.ask(made.names[0], m.Get(2, tasks.ids), b"reader")
    made.deliver(len(made.flying))
    question = next(event.message for _, event in made.flying
                    if isinstance(event, Received) and isinstance(event.message, m.Got))
    made.flying.clear()
    made.give(made.names[0], Received(made.names[1], m.Failed(question.request, "too_large", "64 MiB", True)))

    assert made.answers_to(b"reader") == [m.Failed(2, "too_large", "64 MiB", True)]


def test_who_greets_is_told_what_all_nodes_understand() -> None:
    machines = Machines()
    machines.pass_time(2_000)
    for rules in (2, RULES):
        machines.give(machines.names[0], RulesChanged(rules))
        machines.ask(machines.names[0], m.Greet(1))
    told = [message.protocol for _, message in machines.answers if isinstance(message, m.Greeted)]
    assert told == [1, PROTOCOL_VERSION]


def test_a_floor_of_the_future_is_told_as_one_that_ids_may_be_above() -> None:
    """A node whose clock was ahead has kept it; its next start reads it again."""
    machines = Machines()
    machines.pass_time(2_000)
    wrong, right = machines.names[:2]
    machines.nodes[wrong]._floor.ms = machines.now_ms + 3_600_000
    machines.pass_time(100)
    machines.restart(wrong)
    machines.ask(wrong, m.Greet(1))
    told = next(message for _, message in machines.answers if isinstance(message, m.Greeted))
    assert machines.now_ms < told.floor_ms < machines.now_ms + 10_000
    mint = ids.IdMint(1, told.floor_ms)
    task_ids = mint.mint(machines.now_ms, 1, 0)
    machines.ask(right, m.Enqueue(2, 0, (m.TaskBatch(Header("q").encode(), task_ids[0], columns.pack([b"x"])),)))
    machines.pass_time(100)
    assert isinstance(machines.answers[-1][1], m.Acked)
