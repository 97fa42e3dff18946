"""What waits for workflows that have ended is cancelled, in pages, and nothing else is."""

from __future__ import annotations

from collections import Counter
from typing import Any

import attrs
import pytest

from skuld_py.client.flows import WorkflowStatus
from skuld_py.cluster.log.workflows import StepRow, Workflow
from skuld_py.node.workflows import reaping
from skuld_py.node.workflows.reaping import GRACE_MS, PAGE_MS, REST_MS
from skuld_py.testing import MemoryClient
from skuld_py.workflow.segments import ack_queue, feeder_id, feeder_queue, haul_queue, seal_queue

FLOW: dict[str, Any] = {"id": "w", "edges": [["a", "b"]], "catalog": {
    "a": {"kind": "input", "function": "reaps.a"}, "b": {"kind": "function", "function": "reaps.b"}}}


@attrs.define
class Farm:
    client: MemoryClient = attrs.field(factory=MemoryClient)

    def submit(self, id: str = "w") -> WorkflowStatus:
        return self.client.submit_workflow({**FLOW, "id": id})

    def states(self, queue: str) -> Counter[str]:
        return Counter(task.state for task in self.client.list(queue))


@pytest.fixture
def farm() -> Farm:
    return Farm()


def test_what_waits_for_a_workflow_that_was_killed_is_cancelled_and_for_no_other(farm: Farm) -> None:
    for id in ("w", "w.b", "v"):
        farm.submit(id)
    for queue in ("wf.w.b", "wf.w._acks-a", "wf.w.b.b", "wf.v.b", "w", "wf.", "wf"):
        farm.client.enqueue_many(queue, [b"x"] * 20)
    farm.client.kill_workflow("w")
    farm.client.advance(1)
    assert farm.states("wf.w.b") == farm.states("wf.w._acks-a") == {"cancelled": 20}
    assert farm.states("wf.w.feed") == {"cancelled": 1}
    for queue in ("wf.w.b.b", "wf.v.b", "w", "wf.", "wf"):
        assert farm.states(queue) == {"waiting": 20}, queue
    assert farm.states("wf.v.plan") == {"waiting": 1}


def test_what_comes_later_is_cancelled_too_and_a_claim_stays_its_holders(farm: Farm) -> None:
    farm.submit()
    farm.client.enqueue("wf.w.feed2", b"")
    held, = farm.client.claim("wf.w.feed2")
    farm.client.kill_workflow("w")
    farm.client.enqueue("wf.w.b", b"late")
    farm.client.advance(1)
    assert farm.client.get(held.id).state == "claimed"
    farm.client.enqueue("wf.w.b", b"later")
    farm.client.release(held)
    farm.client.advance(REST_MS / 1000 + 1)
    assert farm.states("wf.w.b") == {"cancelled": 2}
    assert farm.client.get(held.id).state == "cancelled"


def test_it_is_done_in_pages(farm: Farm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaping, "REAPED_AT_ONCE", 30)
    monkeypatch.setattr(reaping, "QUEUES_AT_ONCE", 3)
    farm.submit()
    for number in range(10):
        farm.client.enqueue_many(f"wf.w.s{number}", [b"x"] * (200 if number == 5 else 12))
    farm.client.kill_workflow("w")

    def left() -> int:
        return sum(farm.states(f"wf.w.s{number}")["waiting"] for number in range(10))
    seen = [left()]
    while seen[-1]:
        farm.client.advance(PAGE_MS / 1000)
        seen.append(left())
        assert seen[-2] - seen[-1] <= 60
        assert farm.client.workflow("w").left == seen[-1]
        assert len(seen) < 40
    assert len(seen) > 4


def test_of_a_complete_workflow_its_own_tasks_stay_for_a_while(farm: Farm) -> None:
    farm.submit()
    farm.client.enqueue("wf.w.seal", b"")
    farm.client.enqueue(ack_queue("w", "a"), b"late")
    farm.client.exhaust_input("w", "a")
    farm.client.seal_output("w", "b")
    farm.client.advance(1)
    assert farm.states("wf.w._acks-a") == {"cancelled": 1}
    assert farm.states("wf.w.seal") == farm.states("wf.w.plan") == {"waiting": 1}
    farm.client.advance(GRACE_MS / 1000 + REST_MS / 1000 + 1)
    assert farm.states("wf.w.seal") == farm.states("wf.w.plan") == {"cancelled": 1}


def test_acks_of_an_input_that_is_exhausted_are_cancelled_while_its_workflow_lives(farm: Farm) -> None:
    farm.submit()
    farm.client.enqueue(ack_queue("w", "a"), b"heard")
    farm.client.advance(60)
    assert farm.states(ack_queue("w", "a")) == {"waiting": 1}
    farm.client.exhaust_input("w", "a")
    farm.client.advance(1)
    farm.client.enqueue(ack_queue("w", "a"), b"late")
    farm.client.enqueue("wf.w.b", b"")
    farm.client.advance(REST_MS / 1000 + 1)
    assert farm.states(ack_queue("w", "a")) == {"cancelled": 2}
    assert farm.states("wf.w.b") == {"waiting": 1}


def test_what_names_no_strand_of_a_workflow_is_passed_over() -> None:
    """Bytes of an origin are as whoever wrote them wished."""
    steps = (StepRow("a", "input", most=3), StepRow("in", "input"), StepRow("b", "output"))
    known = Workflow("0" * 16, "", steps=steps, is_split=True, exhausted=("in", "zz"),
                     drained=("a:1", "a:3", "a:63", "in:9", "zz:0", "b:0"))
    assert [*reaping._deaf("w", known)] == [ack_queue("w", "a:1"), haul_queue("w", "in"), ack_queue("w", "in")]


def test_acks_of_a_strand_that_is_exhausted_are_cancelled_and_of_no_other(farm: Farm) -> None:
    catalog = FLOW["catalog"] | {"a": {"kind": "input", "files": "/data/*", "most": 3}}
    farm.client.submit_workflow({**FLOW, "catalog": catalog})
    queues = [ack_queue("w", source) for source in ("a", "a:1", "a:2")]
    for queue in queues:
        farm.client.enqueue(queue, b"heard")
    farm.client.exhaust_input("w", "a", strand=1)
    farm.client.advance(1)
    assert [farm.states(queue)["cancelled"] for queue in queues] == [0, 1, 0]
    for strand in (2, 0):
        farm.client.exhaust_input("w", "a", strand=strand)
    farm.client.advance(REST_MS / 1000 + 1)
    assert [farm.states(queue)["cancelled"] for queue in queues] == [1, 1, 1]

    assert farm.states(feeder_queue("w", "a")) == {"waiting": 3}
    farm.client.seal_output("w", "b")
    farm.client.advance(GRACE_MS / 2000)
    assert farm.states(feeder_queue("w", "a")) == {"waiting": 3}, "they may be about to end"


def test_feeders_of_a_life_that_a_node_which_lags_does_not_know_of_are_left(farm: Farm) -> None:
    """Without them it would wait for ever; what else is cancelled its feeder sees."""
    life = farm.submit().life
    farm.client.enqueue_many("wf.w.feed", [b"older"], ids=[feeder_id("w", "a", life - 9)])
    farm.client.kill_workflow("w")
    later = [feeder_id("w", source, life + 9) for source in ("a", "a:1")]
    farm.client.enqueue_many("wf.w.feed", [b"later"], ids=later[:1])
    farm.client.enqueue_many(feeder_queue("w", "a"), [b"later"], ids=later[1:])
    farm.client.enqueue("wf.w.b", b"segment")
    farm.client.advance(2 * REST_MS / 1000)
    assert [farm.client.get(id).state for id in later] == ["waiting"] * 2
    assert farm.states("wf.w.feed") == {"waiting": 1, "cancelled": 2}
    assert farm.states("wf.w.b") == {"cancelled": 1}


def test_the_plan_of_a_life_that_a_node_which_lags_does_not_know_of_is_left(farm: Farm) -> None:
    """Without it nobody could read the workflow."""
    life = farm.submit().life
    ids = [feeder_id("w", "plan", life + ms) for ms in (-9, 9)]
    older, later = farm.client.enqueue_many("wf.w.plan", [b"older", b"later"], ids=ids)
    farm.client.kill_workflow("w")
    farm.client.advance(2 * REST_MS / 1000)
    assert [farm.client.get(id).state for id in (older, later)] == ["cancelled", "waiting"]
    assert farm.states("wf.w.plan") == {"waiting": 1, "cancelled": 2}


def test_what_seals_a_leaf_alone_stays_for_a_while_too(farm: Farm) -> None:
    farm.submit()
    farm.client.enqueue(seal_queue("w", "b"), b"")
    farm.client.exhaust_input("w", "a")
    farm.client.seal_output("w", "b")
    farm.client.advance(1)
    assert farm.states(seal_queue("w", "b")) == {"waiting": 1}
    farm.client.advance(GRACE_MS / 1000 + REST_MS / 1000 + 1)
    assert farm.states(seal_queue("w", "b")) == {"cancelled": 1}
