"""How far a workflow is, as ``skuld workflow status`` says it: its inputs by their feeders' checkpoints, its steps
by what is in their queues."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from skuld_py.cli.showing import print_table
from skuld_py.cli.workflow_status import books_of, depths_of, failing_of, progress_of, seals_of, steps_table
from skuld_py.client.flows import WorkflowStatus
from skuld_py.client.reading import TaskPage
from skuld_py.errors import Refused
from skuld_py.model.ids import TaskId
from skuld_py.testing import MemoryClient
from skuld_py.workflow.acking.checkpoint import Book, roots_said
from skuld_py.workflow.definition.names import FEED, queue_of
from skuld_py.workflow.segments import seal_queue


def test_how_far_inputs_are_say_the_checkpoints_of_their_feeders() -> None:
    client = MemoryClient()
    found = client.submit_workflow({"id": "w", "edges": [["a", "out"], ["b", "out"]], "catalog": {
        "a": {"kind": "input", "files": "/data/*"}, "b": {"kind": "input", "files": "/data/*"},
        "out": {"kind": "output", "path": "/out"}}})
    claims = client.claim(queue_of("w", FEED), n=2)
    book = Book()
    batch = book.add(12, 0)
    for number in range(5):
        book.finish(batch, number)
    claim, = [each for each in claims if each.id == found.feeders["a"]]
    client.update(claim, checkpoint=book.encode())

    books = books_of(found, client.get_many([*found.feeders.values()]))
    assert {step: roots_said(each) for step, each in books.items()} == {
        "a": "12 roots drawn, 5 complete, 7 under way",
        "b": "0 roots drawn, 0 complete, 0 under way"}


def written(rows: Any, capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    """The words of a table, without its rule."""
    print_table(rows)
    return [line.split() for line in capsys.readouterr().out.splitlines() if line.strip(" ─")]


def test_of_each_step_its_segments_are_shown_by_their_states_and_what_it_wants(
        capsys: pytest.CaptureFixture[str]) -> None:
    client = MemoryClient()
    found = client.submit_workflow({"id": "w", "edges": [["a", "b", "c"]], "catalog": {
        "a": {"kind": "input", "files": "/data/*"}, "b": {"kind": "function", "function": "f:b", "most": 1},
        "c": {"kind": "output", "path": "/out", "least": 2, "tags": ["gpu"]}}})
    assert written(steps_table(found, depths_of(client, found)), capsys)[0] == [
        "step", "kind", "state", "waiting", "claimed", "completed", "wants", "tags"]

    client.enqueue_many(queue_of("w", "b"), [b"1", b"2", b"3"])
    claims = client.claim(queue_of("w", "b"), n=2)
    client.complete(claims[0])
    client.fail(claims[1], "ValueError: no number\n  File x", retry_in_s=60)
    client.enqueue("wf.other.c", b"4")
    depths = depths_of(client, found)
    assert written(steps_table(found, depths), capsys)[1:] == [
        ["a", "input", "open", "0", "0", "0", "0", "one", "feeder"],
        ["b", "function", "open", "1", "0", "1", "1", "1", "slot"],
        ["c", "output", "open", "0", "0", "0", "0", "2", "or", "more", "slots", "gpu"]]
    assert depths is not None and failing_of(client, found, depths) == [
        f"step b, segments: 1 to be tried again; see 'skuld get {claims[1].id}': ValueError: no number"]

    killed = client.kill_workflow("w")
    assert written(steps_table(killed, {"b": depths["b"]}), capsys) == [
        ["step", "waiting", "claimed", "completed", "scheduled"], ["b", "1", "0", "1", "1"]]
    assert failing_of(client, killed, depths) == []


class Asked(MemoryClient):
    """Notes which states are looked for, and has looked at other segments up to the end of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.states: list[Any] = []
        self.is_long = True

    def list_page(self, queue: str | None = None, *, states: Any = (), **options: Any) -> TaskPage:
        self.states.append(states)
        found = super().list_page(queue, states=states, **options)
        return TaskPage((), TaskId(bytes(20))) if self.is_long else found


def test_of_a_step_with_many_segments_one_page_is_looked_at_for_one_that_failed() -> None:
    client = Asked()
    found = client.submit_workflow({"id": "w", "edges": [["a", "b"]], "catalog": {
        "a": {"kind": "input", "files": "/data/*"}, "b": {"kind": "function", "function": "f:b"}}})
    client.enqueue_many(queue_of("w", "b"), [b"1", b"2", b"3"])
    first, *others = client.claim(queue_of("w", "b"), n=3)
    client.fail_many(others, [b"ValueError"] * 2, retry_in_s=60)
    assert failing_of(client, found, depths_of(client, found) or {}) == ["step b, segments: 2 to be tried again"]

    client.fail(first, "KeyError", final=True)
    client.is_long = False
    assert failing_of(client, found, depths_of(client, found) or {}) == [
        f"step b, segments: 2 to be tried again, 1 dead; see 'skuld get {first.id}': KeyError"]
    assert client.states == [["scheduled"], ["dead"]]


def test_who_may_not_count_all_queues_sees_steps_without_segments() -> None:
    def refused() -> Any:
        raise Refused("forbidden", "this key may not ask")
    client: Any = SimpleNamespace(depths=refused)
    found = MemoryClient().submit_workflow({"id": "w", "edges": [["a", "b"]], "catalog": {
        "a": {"kind": "input", "files": "/data/*"}, "b": {"kind": "function", "function": "f:b"}}})
    assert depths_of(client, found) is None
    assert [column.header for column in steps_table(found, None).columns] == ["step", "kind", "state", "wants"]


def test_once_all_inputs_are_exhausted_steps_are_finished_and_outputs_are_being_sealed() -> None:
    client = MemoryClient()
    found = client.submit_workflow({"id": "w", "edges": [["a", "b", "c"], ["d", "e"]], "catalog": {
        "a": {"kind": "input", "files": "/data/*"}, "b": {"kind": "function", "function": "f:b"},
        "c": {"kind": "output", "path": "/out"}, "d": {"kind": "input", "files": "/data/*"},
        "e": {"kind": "function", "function": "f:e"}}})

    def states(found: WorkflowStatus) -> dict[str, str]:
        return {step.name: progress_of(found, step) for step in found.steps}
    assert {*states(found).values()} == {"open"}
    assert states(client.exhaust_input("w", "a")) == dict.fromkeys("bcde", "open") | {"a": "exhausted"}
    sealing = client.exhaust_input("w", "d")
    assert states(sealing) == {"a": "exhausted", "b": "finished", "c": "sealing", "d": "exhausted", "e": "sealing"}
    assert states(client.seal_output("w", "e"))["e"] == "sealed"


@pytest.mark.parametrize(("book", "words"), [
    (Book(), "0 roots drawn, 0 complete, 0 under way"), (Book(is_drained=True), "no roots: the source is empty"),
    (Book(1, True, 1), "1 root drawn, 1 complete, 0 under way, and the source has no more")])
def test_how_far_a_feeder_is_is_said_in_words(book: Book, words: str) -> None:
    assert roots_said(book) == words


def test_of_a_feeder_that_was_collected_nothing_is_said() -> None:
    client = MemoryClient()
    found = client.submit_workflow({"id": "w", "edges": [["a", "out"]], "catalog": {
        "a": {"kind": "input", "files": "/data/*"}, "out": {"kind": "output", "path": "/out"}}})
    assert [*books_of(found, client.get_many([*found.feeders.values()]))] == ["a"]
    assert books_of(found, []) == {}


def test_what_seals_leaves_is_shown_wherever_it_waits() -> None:
    client = MemoryClient()
    outputs = {step: {"kind": "output", "path": f"/{step}", "tags": [step]} for step in ("x", "y", "z")}
    client.submit_workflow({"id": "w", "edges": [["a", step] for step in outputs], "catalog": {
        "a": {"kind": "input", "files": "/data/*"}, **outputs}})
    found = client.exhaust_input("w", "a")
    made = [client.enqueue(seal_queue("w", step), b"") for step in ("x", "y", "z")]
    client.seal_output("w", "z")
    assert [task.id for task in seals_of(client, client.workflow("w"))] == made[:2] and found.is_sealing
