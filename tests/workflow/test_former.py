"""What inputs draw from other workflows is looked for when a workflow is submitted."""

from __future__ import annotations

import time
from typing import Any

import attrs
import pytest

import skuld_py
from skuld_py.errors import Refused
from skuld_py.testing import MemoryClient
from skuld_py.workflow.acking.checkpoint import Book
from skuld_py.workflow.definition.faults import BadWorkflow
from skuld_py.workflow.definition.names import FEED, queue_of
from skuld_py.workflow.definition.reading import read
from skuld_py.workflow.segments import root_ids


def flow(id: str, source: dict[str, Any]) -> dict[str, Any]:
    return {"id": id, "edges": [["a", "b"]], "catalog": {
        "a": {"kind": "input", **source}, "b": {"kind": "function", "function": "former:b"}}}


@pytest.mark.parametrize(("source", "faults"), [
    ("old", []),
    ({"id": "old", "step": "b"}, []),
    ({"id": "old", "step": "c"}, ["a.workflow.step: old has no step c; there is a, b"]),
    ("odl", ["a.workflow.id: the cluster knows no workflow odl; submit that one first"]),
    ("dead", ["a.workflow.id: dead was killed, and nobody knows which of its steps were finished; resume from it,"
              " naming those"]),
    ({"id": "dead", "step": "b", "content": "0f" * 32},
     ["a.workflow.content: step b of dead is not what was taken over; resume from that workflow's own"
      " definition"]),
])
def test_what_an_input_draws_from_is_there_when_its_workflow_is_submitted(source: Any, faults: list[str]) -> None:
    client = MemoryClient()
    for id in ("old", "dead"):
        client.submit_workflow(flow(id, {"files": "/x"}))
    client.kill_workflow("dead")
    new = flow("new", {"workflow": source})
    if not faults:
        assert client.submit_workflow(new).is_live
        return
    with pytest.raises(BadWorkflow) as refusal:
        client.submit_workflow(new)
    assert [str(fault) for fault in refusal.value.faults] == faults


def test_what_is_drawn_from_may_have_more_feeders_than_roots_since_an_older_release_took_that() -> None:
    client, source = MemoryClient(), {"files": "/x", "most": 8, "max_pending": 4}
    with pytest.raises(BadWorkflow, match="8 feeders share max_pending, 4"):
        client.submit_workflow(flow("old", source))
    client.submit_workflow(read(flow("old", source), is_stored=True))
    assert client.submit_workflow(flow("new", {"workflow": {"id": "old", "step": "b"}})).is_live


UNFINISHED = ["a.workflow.step: step a of old is not finished: of it, or before it, something is still to be drawn"
              " or done, or was cancelled, or is dead; leave it out of what is finished, and it runs again"]


def written(id: str) -> skuld_py.Workflow:
    made = skuld_py.Workflow(id)
    made.input("a", files="/x") >> made.step("b", f"former:{id}")
    return made


def resumed() -> skuld_py.Workflow:
    """Of a workflow whose input is said to be finished, and whose step has changed."""
    made = written("new")
    made.resume_from(written("old"), finished={"a"})
    return made


class Old:
    """A workflow whose first step is to be taken over. ``drained``: its feeder has drawn all. ``book``: what that
    wrote down besides."""

    def __init__(self, *, drained: bool = True, book: Book | None = None) -> None:
        self.client = MemoryClient()
        self.client.submit_workflow(written("old"))
        self.feeder, = self.client.claim(queue_of("old", FEED))
        kept = attrs.evolve(book or Book(), is_drained=drained)
        self.client.update(self.feeder, checkpoint=kept.encode())

    def refused(self) -> list[str]:
        """What is wrong with the one that is resumed from it."""
        try:
            self.client.submit_workflow(resumed())
        except BadWorkflow as refusal:
            return [str(fault) for fault in refusal.faults]
        return []


def test_a_step_is_taken_over_of_a_killed_workflow_that_had_drawn_and_done_all() -> None:
    old = Old()
    old.client.enqueue_many(queue_of("old", "a"), [b"1", b"2"])
    old.client.complete_many(old.client.claim(queue_of("old", "a"), n=2))
    old.client.enqueue(queue_of("old", "b"), b"3")
    old.client.kill_workflow("old")
    assert old.refused() == []


def test_a_step_whose_input_had_more_to_draw_is_not_taken_over() -> None:
    old = Old(drained=False)
    old.client.kill_workflow("old")
    assert old.refused() == UNFINISHED


@pytest.mark.parametrize("becomes", ["waiting", "claimed", "dead", "cancelled"])
def test_a_step_with_a_segment_that_is_not_completed_is_not_taken_over(becomes: str) -> None:
    old = Old()
    task_id = old.client.enqueue(queue_of("old", "a"), b"1")
    if becomes == "cancelled":
        old.client.cancel(task_id)
    elif becomes != "waiting":
        claims = old.client.claim(queue_of("old", "a"))
        if becomes == "dead":
            old.client.fail_many(claims, ["ValueError"], final=True)
    old.client.kill_workflow("old")
    assert old.refused() == UNFINISHED


@pytest.mark.parametrize(("lost", "is_finished"), [((), True), ((5,), False), ((2,), False), ((4,), True)])
def test_a_step_is_not_taken_over_whose_feeder_was_killed_before_it_had_stored_what_it_drew(
        lost: tuple[int, ...], is_finished: bool) -> None:
    book, now_ms = Book(), time.time_ns() // 1_000_000
    for _ in range(3):
        batch = book.add(2, now_ms)
    book.finish(batch, 4)
    old = Old(book=book)
    stored = [id for number, id in enumerate(root_ids("old", "a", 0, 6, now_ms)) if number not in lost]
    old.client.enqueue_many(queue_of("old", "a"), [b"1"] * len(stored), ids=stored)
    old.client.complete_many(old.client.claim(queue_of("old", "a"), n=6))
    old.client.kill_workflow("old")
    assert old.refused() == ([] if is_finished else UNFINISHED)


def test_of_a_feeder_that_was_completed_nothing_is_missing() -> None:
    book = Book()
    book.add(2, 0)
    old = Old(book=book)
    old.client.complete(old.feeder)
    old.client.kill_workflow("old")
    assert old.refused() == []


def test_a_step_behind_one_that_is_not_finished_is_not_taken_over() -> None:
    client, chain = MemoryClient(), {id: skuld_py.Workflow(id) for id in ("old", "new")}
    for id, made in chain.items():
        made.input("a", files="/x") >> made.step("b", "former:b") >> made.step("c", f"former:{id}")
    chain["new"].resume_from(chain["old"], finished={"a", "b"})
    client.submit_workflow(chain["old"])
    claim, = client.claim(queue_of("old", FEED))
    client.update(claim, checkpoint=Book(is_drained=True).encode())
    client.enqueue(queue_of("old", "a"), b"1")
    client.kill_workflow("old")
    with pytest.raises(BadWorkflow, match=r"b\.workflow\.step: step b of old is not finished"):
        client.submit_workflow(chain["new"])


def test_of_a_workflow_that_lives_steps_are_finished_whose_inputs_are_exhausted() -> None:
    old = Old()
    assert old.refused() == UNFINISHED
    old.client.exhaust_input("old", "a")
    assert old.refused() == []


def test_where_nobody_may_look_what_is_said_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    old = Old(drained=False)
    old.client.kill_workflow("old")

    def denied(*_: object) -> Any:
        raise Refused("forbidden", "this key may not")
    monkeypatch.setattr("skuld_py.client.former.undrawn", denied)
    assert old.refused() == []
