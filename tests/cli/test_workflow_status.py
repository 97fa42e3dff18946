"""How far the inputs of a workflow are, as ``skuld workflow status`` reads it from their feeders' checkpoints."""

from __future__ import annotations

from skuld_py.cli.workflow_status import books_of, seals_of
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
        book.finish(batch, number, is_deferred=number == 0)
    claim, = [each for each in claims if each.id == found.feeders["a"]]
    client.update(claim, checkpoint=book.encode())

    books = books_of(found, client.get_many([*found.feeders.values()]))
    assert {step: roots_said(each) for step, each in books.items()} == {
        "a": "12 roots drawn, 4 complete, 1 without what is dead, 7 under way",
        "b": "0 roots drawn, 0 complete, 0 under way"}


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
