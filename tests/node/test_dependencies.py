"""Many tasks that wait for others at once: how it is asked about them. Else see ``scripts/dependencies.txt``."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from node.machines import Machines
from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.body import ON_FAILURE_FAIL, ON_FAILURE_INSTEAD, ON_FAILURE_WAIT, Body, Header, split_body
from skuld_py.model.events import RulesChanged
from skuld_py.model.history import DEATH_TIME_RULES, DEP_FAILED, History
from skuld_py.node.dependencies import dependent_side

HERE, THERE = 0, 1
"""Routes, so partitions: the dependent is here, its dependencies are there."""
BULK = Header("then", policy=ON_FAILURE_WAIT, dep_wait_ms=3_600_000)


@pytest.fixture
def machines() -> Machines:
    made = Machines(partitions=4)
    made.pass_time(4_000)
    return made


def enqueue(machines: Machines, firsts: Sequence[bytes]) -> None:
    """A task for each of these, which waits for it."""
    made = machines.mint.mint(machines.now_ms, len(firsts), HERE)
    headers, rests = zip(*[split_body(Body(BULK, deps=(first,)).encode()) for first in firsts], strict=True)
    batch = m.TaskBatch(headers[0], b"".join(made), columns.pack(rests))
    machines.ask(machines.names[-1], m.Enqueue(1, 0, (batch,)))
    machines.pass_time(5)


def asked(machines: Machines, firsts: Sequence[bytes]) -> int:
    """About how many of these it has been asked."""
    known = {key[3:23] for store in machines.stores.values() for key in store.rows("tell")}
    return len(known & {*firsts})


def test_a_task_instead_of_another_one_is_taken_only_by_the_rules_that_all_nodes_know(machines: Machines) -> None:
    first, copy = machines.mint.mint(machines.now_ms, 2, HERE)
    header, rest = split_body(Body(Header("q", policy=ON_FAILURE_INSTEAD), payload=b"x", deps=(first,)).encode())
    question = m.Enqueue(1, 0, (m.TaskBatch(header, copy, columns.pack([rest])),))
    node = machines.names[0]
    machines.give(node, RulesChanged(3))
    machines.ask(node, question)
    refused, = machines.answers_to(b"client")
    machines.give(node, RulesChanged(4))
    machines.ask(node, question)
    machines.pass_time(5)

    assert isinstance(refused, m.Failed) and refused.is_definite and refused.code == "old_rules"
    assert "goes by rules 3" in refused.text and "needs rules 4" in refused.text
    assert isinstance(machines.answers_to(b"client")[-1], m.Acked)


@pytest.mark.parametrize("rules", [DEATH_TIME_RULES - 1, DEATH_TIME_RULES])
def test_when_a_task_died_of_another_is_noted_by_the_rules_that_all_nodes_know(machines: Machines, rules: int
                                                                               ) -> None:
    for name in machines.names:
        machines.give(name, RulesChanged(rules))
    first, then = machines.mint.mint(machines.now_ms, 2, HERE)
    for task_id, deps in ((first, ()), (then, (first,))):
        policy = ON_FAILURE_FAIL if deps else 0
        header, rest = split_body(Body(Header("q", policy=policy), payload=b"x", deps=deps).encode())
        machines.ask(machines.names[0], m.Enqueue(1, 0, (m.TaskBatch(header, task_id, columns.pack([rest])),)))
    machines.pass_time(1_000)
    since_ms = machines.now_ms
    machines.ask(machines.names[0], m.Cancel(1, 0, since_ms, first))
    machines.pass_time(1_000)

    found = {store.rows("history")[bytes([0, HERE]) + then] for store in machines.stores.values()}
    history, = map(History.decode, found)
    assert history.death(9, 0) == DEP_FAILED
    assert since_ms <= history.death_ms <= machines.now_ms if rules == DEATH_TIME_RULES else not history.death_ms


def test_questions_about_many_are_gathered_and_those_about_few_are_not(machines: Machines) -> None:
    firsts = machines.mint.mint(machines.now_ms, 301, THERE)
    enqueue(machines, firsts[:100])
    assert asked(machines, firsts) == 100
    enqueue(machines, firsts[100:200])
    enqueue(machines, firsts[200:300])
    assert asked(machines, firsts) == 100
    enqueue(machines, firsts[300:])
    assert asked(machines, firsts) == 101 and asked(machines, firsts[300:]) == 1

    machines.pass_time(100)

    assert asked(machines, firsts) == 301


def test_what_is_gathered_and_too_much_to_remember_is_asked_at_once(machines: Machines,
                                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependent_side, "FRESH_MAX", 150)
    firsts = machines.mint.mint(machines.now_ms, 300, THERE)
    for at in range(0, 300, 100):
        enqueue(machines, firsts[at : at + 100])

    machines.pass_time(200)

    assert asked(machines, firsts) == 300
