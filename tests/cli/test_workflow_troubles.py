"""What ``skuld workflow status`` says of a workflow's own tasks that keep failing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import attrs

from skuld_py.calls.payloads import call
from skuld_py.cli.workflow_await import awaited
from skuld_py.cli.workflow_status import seals_of, starved_in, troubles_of
from skuld_py.client.flows import WorkflowStatus
from skuld_py.errors import Refused
from skuld_py.model.messages.descriptions import StarvedRow
from skuld_py.testing import MemoryClient
from skuld_py.workflow.definition.names import FEED, SEAL, queue_of


def submitted(client: Any) -> WorkflowStatus:
    found: WorkflowStatus = client.submit_workflow({"id": "w", "edges": [["a", "out"]], "catalog": {
        "a": {"kind": "input", "files": "/data/*"}, "out": {"kind": "output", "path": "/out"}}})
    return found


def test_of_an_input_whose_source_breaks_the_newest_error_is_said_in_a_line() -> None:
    client: Any = MemoryClient()
    found = submitted(client)
    feeders = client.get_many([*found.feeders.values()])
    assert troubles_of(found, feeders, seals_of(client, found)) == []

    claim, = client.claim(queue_of("w", FEED))
    client.fail(claim, "RuntimeError: no such table\nTraceback ...", retry_in_s=60)
    feeders = client.get_many([*found.feeders.values()])
    assert troubles_of(found, feeders, []) == [
        f"input a failed, see 'skuld get {claim.id}'; it is tried again: RuntimeError: no such table"]


def test_what_cannot_be_sealed_is_said_once_outputs_are_sealed() -> None:
    client: Any = MemoryClient()
    found = submitted(client)
    task, = client.enqueue_many(queue_of("w", SEAL), [call("skuld:gather", "w", "out", "/out", "json")])
    claim, = client.claim(queue_of("w", SEAL))
    client.fail_many([claim], ["OSError: disk full"], final=True)
    assert seals_of(client, found) == []

    found = client.exhaust_input("w", "a")
    assert troubles_of(found, [], seals_of(client, found)) == [
        f'sealing, skuld:gather("w", "out", "/out", "json") failed, see \'skuld get {task}\'; it is dead,'
        " 'skuld retry' it once that is mended: OSError: disk full"]


def test_of_a_workflow_that_no_slot_works_on_the_cluster_says_why() -> None:
    rows = [StarvedRow("v", "needs 9 slots"), StarvedRow("w", "needs 3 slots")]
    client: Any = SimpleNamespace(status=lambda: SimpleNamespace(starved=rows))
    found = submitted(MemoryClient())
    assert starved_in(client, found) == "needs 3 slots"
    rows.pop()
    assert starved_in(client, found) == ""

    def refused() -> Any:
        raise Refused("forbidden", "this key may not ask")
    client.status = refused
    assert starved_in(client, found) == ""


def test_who_waits_is_told_why_nothing_happens_and_told_again_of_another_reason() -> None:
    reasons = ["", "needs 3 slots", "needs 3 slots", "", "needs 4 slots"]
    found, waits, said = submitted(MemoryClient()), list[float](), list[str]()

    def wait(id: str, timeout_s: float) -> WorkflowStatus:
        waits.append(timeout_s)
        return found
    client: Any = SimpleNamespace(await_workflow=wait, status=lambda: SimpleNamespace(
        starved=[StarvedRow("w", reason) for reason in [reasons.pop(0)] if reason]))
    assert awaited(client, "w", 55.0, said.append) is found
    assert waits == [10.0] * 5 + [5.0]
    assert [words.partition(";")[0] for words in said] == [
        "it waits, no slot works on it: needs 3 slots", "it waits, no slot works on it: needs 4 slots"]

    ended = attrs.evolve(found, state="completed")
    client.await_workflow = lambda id, timeout_s: ended
    assert awaited(client, "w", None, said.append) is ended
