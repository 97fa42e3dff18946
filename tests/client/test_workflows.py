"""The client's verbs about workflows, on a node in memory: submitting, ending, waiting, and following the log."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings

from skuld_py import Workflow
from skuld_py.calls.payloads import decode_call
from skuld_py.client import flows
from skuld_py.cluster.log import workflows as log
from skuld_py.cluster.log.commands import SubmitWorkflow
from skuld_py.cluster.log.replica import Replica
from skuld_py.config import RULES
from skuld_py.errors import Refused, Uncertain
from skuld_py.model.ids import from_text, time_of
from skuld_py.model.seats import INPUT, Seat
from skuld_py.node.workflows.rows import command_of
from skuld_py.testing import AsyncMemoryClient, MemoryClient, MemoryCluster
from skuld_py.worker.seats import queues_of
from skuld_py.workflow.definition.reading import parse, read
from skuld_py.workflow.definition.writing import digest_of, text_of
from skuld_py.workflow.segments import feeder_id
from workflow.definitions import plain_definitions

NOW = 1_900_000_000.0
CENSUS: dict[str, Any] = {
    "id": "census", "edges": [["pages", "words"], ["more", "words"], ["words", "report"], ["words", "sums"]],
    "catalog": {"pages": {"kind": "input", "files": "/data/*.gz"}, "more": {"kind": "input", "queue": "others"},
                "words": {"kind": "function", "function": "acme:words", "most": 4, "tags": ["gpu"]},
                "sums": {"kind": "function", "function": "acme:sums", "percentage": 40, "flux": "kill"},
                "report": {"kind": "output", "path": "/data/report", "format": "json"}},
    "spreading": "percentage", "percentage": 30}


@pytest.fixture
def cluster() -> MemoryCluster:
    return MemoryCluster(now=NOW)


@pytest.fixture
def client(cluster: MemoryCluster) -> MemoryClient:
    return cluster.client()


def collect(cluster: MemoryCluster, version: int) -> None:
    """The log goes on behind a version at which nothing is known any more."""
    cluster._node._log.settle(Replica(version=version), True)


def feeders(client: MemoryClient) -> list[Any]:
    return [*client.list("wf.census.feed")]


def test_who_submits_at_the_same_time_leaves_no_plan_task_of_its_own(
        cluster: MemoryCluster, client: MemoryClient, monkeypatch: pytest.MonkeyPatch) -> None:
    store = client._decree

    def slowly(message: Any, code: str) -> Any:
        monkeypatch.setattr(client, "_decree", store)
        other = cluster.client()
        cluster.advance(3_600)
        other.submit_workflow(CENSUS)
        return (yield from store(message, code))
    monkeypatch.setattr(client, "_decree", slowly)
    status = client.submit_workflow(CENSUS)

    states = {str(task.id): task.state for task in client.list("wf.census.plan")}
    assert states.pop(status.plan) == "waiting" and [*states.values()] == ["cancelled"]
    assert len(feeders(client)) == 2


def lose(client: MemoryClient, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """From now on the process ends where this is called."""
    def gone(*args: object, **named: object) -> Any:
        raise KeyboardInterrupt
    monkeypatch.setattr(flows.Flowing, name, gone)


# -- submitting ----------------------------------------------------------------------------------


def test_submitting_stores_the_definition_tells_the_log_and_gives_each_input_its_feeder(
        client: MemoryClient) -> None:
    status = client.submit_workflow(CENSUS)
    definition = read(CENSUS)

    assert (status.id, status.state, status.digest) == ("census", "live", digest_of(definition))
    assert (status.spreading, status.percentage, status.submitted) == ("percentage", 30, 0)
    assert [(step.name, step.kind) for step in status.steps] == [
        ("more", "input"), ("pages", "input"), ("words", "function"), ("report", "output"), ("sums", "output")]
    words, sums = status.steps[2], status.steps[4]
    assert (words.most, words.tags, sums.percentage, sums.flux) == (4, ("gpu",), 40, "kill")

    plan = client.get(status.plan)
    assert plan.queue == "wf.census.plan" and parse(plan.payload) == definition
    at_ms = time_of(from_text(status.plan))
    assert [(task.id, decode_call(task.payload).kwargs) for task in feeders(client)] == sorted(
        (feeder_id("census", step, at_ms), {"workflow": "census", "step": step}) for step in ("pages", "more"))
    assert {decode_call(task.payload).name for task in feeders(client)} == {"skuld:feed"}


@pytest.mark.parametrize("form", [
    lambda: text_of(read(CENSUS)), lambda: read(CENSUS), lambda: text_of(read(CENSUS)).encode()])
def test_a_definition_may_be_given_in_any_form(client: MemoryClient, form: Any) -> None:
    assert client.submit_workflow(form()).digest == digest_of(read(CENSUS))


def test_a_workflow_written_in_python_is_submitted_as_it_is(client: MemoryClient) -> None:
    flow = Workflow("small")
    flow.input("pages", files="/data/*.gz") >> flow.step("words", "acme:words")
    assert [step.kind for step in client.submit_workflow(flow).steps] == ["input", "output"]


def test_what_is_no_whole_definition_is_refused_and_leaves_nothing(client: MemoryClient) -> None:
    with pytest.raises(Refused) as raised:
        client.submit_workflow({**CENSUS, "edges": [["pages", "no"]]})
    assert raised.value.code == "bad_workflow"
    assert client.count() == 0 and client.workflows() == []


@pytest.mark.parametrize("step", ["_decree", "_feed"])
def test_broken_off_behind_any_step_it_is_made_whole_by_submitting_again(
        client: MemoryClient, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        lose(client, patch, step)
        client.submit_workflow(CENSUS)
    for _ in range(3):
        assert client.submit_workflow(CENSUS).submitted == 0
    assert (client.count("wf.census.plan"), len(feeders(client))) == (1, 2)
    assert [line.outcome for line in client.follow_log(follow_s=0)] == ["applied"]


def test_another_definition_under_a_known_id_is_refused_and_feeds_nothing(client: MemoryClient) -> None:
    client.submit_workflow(CENSUS)
    with pytest.raises(Refused, match="another definition") as raised:
        client.submit_workflow({**CENSUS, "percentage": 31})
    assert raised.value.code == "other_workflow"
    assert (client.count("wf.census.plan", states=("cancelled",)), len(feeders(client))) == (1, 2)


def test_a_plan_that_a_node_tells_late_of_begins_no_other_life(
        client: MemoryClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that lags tells of a workflow that the log has forgotten."""
    first = client.submit_workflow(CENSUS)
    ended = client.kill_workflow("census")
    wanted = []

    def surveyed(self: object, ids: object) -> Any:
        return [ended]
        yield

    def decree(self: object, message: Any, code: str) -> Any:
        wanted.append(message.plan)
        raise Refused("other_workflow", "another definition")
        yield
    monkeypatch.setattr(flows.Flowing, "_surveyed", surveyed)
    monkeypatch.setattr(flows.Flowing, "_decree", decree)

    assert client.submit_workflow(CENSUS) == ended and wanted == []
    with pytest.raises(Refused):
        client.submit_workflow({**CENSUS, "percentage": 31})
    assert len(wanted) == 1 and wanted[0] != first.plan


def test_submitted_again_only_inputs_that_are_open_get_a_feeder_and_one_that_has_ended_gets_none(
        client: MemoryClient, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        lose(client, patch, "_feed")
        client.submit_workflow(CENSUS)
    client.exhaust_input("census", "more")
    client.submit_workflow(CENSUS)
    assert [decode_call(task.payload).kwargs["step"] for task in feeders(client)] == ["pages"]

    client.kill_workflow("census")
    assert client.submit_workflow(CENSUS).state == "killed"
    assert len(feeders(client)) == 1


@pytest.mark.parametrize("is_ended", [True, False])
def test_the_plan_task_of_an_earlier_life_serves_no_second_one(
        cluster: MemoryCluster, client: MemoryClient, monkeypatch: pytest.MonkeyPatch, is_ended: bool) -> None:
    first = client.submit_workflow(CENSUS)
    if is_ended:
        client.kill_workflow("census")
        assert client.get(first.plan).state == "cancelled"
    collect(cluster, 9)
    second = client.submit_workflow(CENSUS)

    assert second.plan != first.plan and second.is_live and len(feeders(client)) == 4


# -- its life ------------------------------------------------------------------------------------


def test_inputs_are_exhausted_outputs_sealed_and_the_last_seal_completes(client: MemoryClient) -> None:
    client.submit_workflow(CENSUS)
    with pytest.raises(Refused, match="input more of workflow census is not exhausted") as raised:
        client.seal_output("census", "sums")
    assert raised.value.code == "not_sealing"
    assert not client.exhaust_input("census", "pages").is_sealing
    assert client.exhaust_input("census", "more").is_sealing
    assert client.exhaust_input("census", "more").is_sealing
    assert client.seal_output("census", "report").sealed == ("report",)
    assert client.seal_output("census", "sums").state == "completed"
    assert client.seal_output("census", "sums").state == "completed"

    assert client.workflow("census").state == "completed"
    assert client.await_workflow("census").state == "completed"
    assert client.kill_workflow("census", "too late").reason == ""


def test_an_input_of_several_slots_has_as_many_feeders_and_ends_with_the_last(client: MemoryClient) -> None:
    catalog = CENSUS["catalog"]
    made = client.submit_workflow(
        {**CENSUS, "catalog": {**catalog, "pages": {**catalog["pages"], "least": 2, "most": 3}}})
    assert [*made.feeders] == ["more", "pages", "pages:1", "pages:2"]
    tasks = [*client.list("wf.census._feeds-pages")]
    assert {task.id: decode_call(task.payload).kwargs["step"] for task in tasks} == {
        made.feeders[source]: source for source in ("pages", "pages:1", "pages:2")}
    assert [task.id for task in feeders(client)] == [made.feeders["more"]]
    client.submit_workflow({**CENSUS, "catalog": {
        **catalog, "pages": {**catalog["pages"], "least": 2, "most": 3}}})
    assert len([*client.list("wf.census._feeds-pages")]) == 3

    client.exhaust_input("census", "more")
    ends = [client.exhaust_input("census", "pages", strand=strand).exhausted for strand in (2, 0, 2, 1)]
    assert ends == [("more",), ("more",), ("more",), ("more", "pages")]
    for strand in (64, -1, True):
        with pytest.raises(Refused, match="strand: "):
            client.exhaust_input("census", "pages", strand=strand)


def test_who_speaks_of_an_earlier_life_changes_nothing_and_is_told(
        cluster: MemoryCluster, client: MemoryClient) -> None:
    first = client.submit_workflow(CENSUS)
    collect(cluster, 9)
    cluster.advance(1)
    second = client.submit_workflow(CENSUS)
    assert first.life < second.life
    for act in (lambda life: client.exhaust_input("census", "pages", life=life),
                lambda life: client.seal_output("census", "sums", life=life),
                lambda life: client.kill_workflow("census", life=life)):
        with pytest.raises(Refused) as raised:
            act(first.life)
        assert raised.value.code == "other_life"
    assert client.workflow("census") == second
    with pytest.raises(Refused, match="life: "):
        client.kill_workflow("census", life=-1)
    assert client.exhaust_input("census", "pages", life=second.life).exhausted == ("pages",)
    assert client.kill_workflow("census", life=second.life).state == "killed"


def test_a_killed_one_says_why(client: MemoryClient) -> None:
    client.submit_workflow(CENSUS)
    assert client.kill_workflow("census", "wrong input").reason == "wrong input"
    assert [(each.id, each.state, each.reason) for each in client.workflows()] == [
        ("census", "killed", "wrong input")]


@pytest.mark.parametrize("act", [
    lambda client: client.workflow("no"), lambda client: client.await_workflow("no"),
    lambda client: client.kill_workflow("no"), lambda client: client.exhaust_input("no", "step"),
    lambda client: client.seal_output("no", "step")])
def test_what_nobody_submitted_is_refused_by_code(client: MemoryClient, act: Any) -> None:
    with pytest.raises(Refused) as raised:
        act(client)
    assert raised.value.code == "no_such_workflow"
    assert raised.value.message.startswith("id: no workflow no: it was never submitted, or ended long ago; 'skuld"
                                           " workflow list'"), "of all in the same words"


@pytest.mark.parametrize(("act", "words"), [
    (lambda client: client.workflow("a/b"), "id: 'a/b' is no id of a workflow"),
    (lambda client: client.kill_workflow("w", 7), "reason: '7' is no text"),
    (lambda client: client.kill_workflow("w", "x" * 251), "is no text of at most 250 characters"),
    (lambda client: client.kill_workflow("w", "\x1b"), "KillWorkflow.reason: is no reason"),
    (lambda client: client.seal_output("w", "a.b"), "SealOutput.step: is no name of a step"),
    (lambda client: client.await_workflow("w", timeout_s=-1), "timeout_s: -1 is no number of seconds"),
    (lambda client: [*client.follow_log(-1)], "position: -1 is no position of the log"),
    (lambda client: [*client.follow_log(follow_s="x")], "follow_s: 'x' is no number of seconds"),
])
def test_bad_arguments_are_refused_by_name(client: MemoryClient, act: Any, words: str) -> None:
    with pytest.raises(Refused) as raised:
        act(client)
    assert words in raised.value.message


def test_waiting_ends_with_its_time_and_says_how_it_is(cluster: MemoryCluster, client: MemoryClient) -> None:
    client.submit_workflow(CENSUS)
    began = cluster.steady_s()
    assert client.await_workflow("census", timeout_s=50).is_live
    assert 50 <= cluster.steady_s() - began < 52


def test_all_are_listed_in_their_order(client: MemoryClient) -> None:
    for name in ("b", "a", "c"):
        client.submit_workflow({**CENSUS, "id": name})
    assert [each.id for each in client.workflows()] == ["b", "a", "c"]


# -- following -----------------------------------------------------------------------------------


def test_the_log_is_followed_from_a_position(client: MemoryClient) -> None:
    client.submit_workflow(CENSUS)
    client.kill_workflow("census", "enough")
    lines = [*client.follow_log(follow_s=0)]
    assert [(line.position, line.kind, line.outcome) for line in lines] == [
        (0, "submit-workflow", "applied"), (1, "kill-workflow", "applied")]
    assert dict(lines[1].changed) == {"workflow": "census", "state": "killed", "reason": "enough"}

    assert [line.position for line in client.follow_log(1, follow_s=3)] == [1]


def test_what_was_collected_is_one_line(cluster: MemoryCluster, client: MemoryClient) -> None:
    collect(cluster, 41)
    client.submit_workflow(CENSUS)
    gap, line = client.follow_log(3, follow_s=0)

    assert (gap.position, gap.outcome, dict(gap.changed)) == (41, "collected", {"first": "42"})
    assert (line.position, line.kind) == (42, "submit-workflow")


def test_awaited_all_is_as_with_a_client_that_blocks() -> None:
    async def life() -> list[Any]:
        async with AsyncMemoryClient(now=NOW) as client:
            await client.submit_workflow(CENSUS)
            await client.kill_workflow("census", "enough")
            lines = [line.kind async for line in client.follow_log(follow_s=0)]
            return [(await client.await_workflow("census")).state, len(await client.workflows()), lines]

    assert asyncio.run(life()) == ["killed", 1, ["submit-workflow", "kill-workflow"]]


# -- definitions and the log ---------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(plain_definitions())
def test_whatever_a_definition_may_say_the_log_takes(plain: dict[str, Any]) -> None:
    found = read(plain)
    command = command_of(flows._submission(found, digest_of(found), 32 * "0"), RULES)

    assert isinstance(command, SubmitWorkflow)
    assert {step.name for step in command.steps if step.kind == "output"} == {*found.leaves}
    assert tuple(step.name for step in command.steps) == found.order


def test_names_in_definitions_are_names_in_the_log() -> None:
    from skuld_py.workflow.definition import names

    assert (names.ID.pattern, names.STEP.pattern) == (log.WORKFLOW_NAME.pattern, log.STEP_NAME.pattern)
    assert (names.STEPS_MAX, names.TAGS_MAX) == (log.STEPS_MAX, log.TAGS_MAX)


# -- what others may name, and where feeders are ---------------------------------------------------


def test_inputs_that_need_several_kinds_of_workers_have_their_feeders_where_those_claim(
        client: MemoryClient) -> None:
    catalog = {"a": {"kind": "input", "files": "/data/*", "tags": ["nfs"]},
               "b": {"kind": "input", "files": "/data/*"},
               "c": {"kind": "input", "files": "/x/*", "tags": ["nfs"]},
               "out": {"kind": "output", "path": "/out"}}
    edges = [["a", "out"], ["b", "out"], ["c", "out"]]
    made = client.submit_workflow({"id": "w", "edges": edges, "catalog": catalog})
    for step in ("a", "b", "c"):
        places = queues_of([Seat("w", step, INPUT, 3, 0)])
        found = {bytes(task.id) for queue in places for task in client.list(queue)}
        assert found == {made.feeders[step]}
    alike = {step: entry for step, entry in catalog.items() if step != "b"}
    made = client.submit_workflow({"id": "v", "edges": [["a", "out"], ["c", "out"]], "catalog": alike})
    assert {task.id for task in client.list("wf.v.feed")} == {*made.feeders.values()}


def test_feeders_that_an_older_release_stored_in_another_queue_are_left_there(
        client: MemoryClient, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = {"id": "w", "edges": [["a", "out"], ["b", "out"]], "catalog": {
        "a": {"kind": "input", "files": "/data/*", "tags": ["nfs"]}, "b": {"kind": "input", "files": "/data/*"},
        "out": {"kind": "output", "path": "/out"}}}
    with monkeypatch.context() as patch:
        patch.setattr(flows, "are_alike", lambda tags: True)
        client.submit_workflow(flow)
    assert client.submit_workflow(flow).is_live
    assert len([*client.list("wf.w.feed")]) == 2 and not [*client.list("wf.w._feeds-a")]


def test_feeders_in_other_queues_are_stored_though_an_older_release_has_some_in_another_one(
        client: MemoryClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was broken off before it had stored all."""
    flow = {"id": "w", "edges": [["a", "out"], ["b", "out"]], "catalog": {
        "a": {"kind": "input", "files": "/x", "tags": ["nfs"]},
        "b": {"kind": "input", "files": "/data/*", "most": 4},
        "out": {"kind": "output", "path": "/out"}}}
    with monkeypatch.context() as patch:
        patch.setattr(flows.Flowing, "_feed", lambda *_: iter(()))
        feeders = client.submit_workflow(flow).feeders
    client.enqueue_many("wf.w.feed", [b"feeder"], ids=[feeders["a"]])
    assert client.submit_workflow(flow).is_live
    assert [len([*client.list(queue)]) for queue in ("wf.w.feed", "wf.w._feeds-a", "wf.w._feeds-b")] == [1, 0, 4]


@pytest.mark.parametrize("code", ["conflict", "deadline"])
def test_feeders_that_may_be_in_another_queue_are_taken_for_those_and_others_in_doubt_are_not(
        client: MemoryClient, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    client.submit_workflow(CENSUS)

    def store(self: object, *_: object) -> Any:
        raise Uncertain(code, "a node did not answer")
        yield
    monkeypatch.setattr(flows.Flowing, "_ask_to_store", store, raising=False)
    monkeypatch.setattr(type(client), "_ask_to_store", store, raising=False)
    if code == "conflict":
        assert client.submit_workflow(CENSUS).is_live
        return
    with pytest.raises(Uncertain):
        client.submit_workflow(CENSUS)


def test_a_task_that_is_no_plan_is_not_cancelled_with_the_workflow_that_names_it(
        client: MemoryClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever submits says which task is the plan; who kills may cancel more than he."""
    victim = client.enqueue("payments", b"precious")

    def plan(self: object, *_: object) -> Any:
        return str(victim)
        yield
    with monkeypatch.context() as patch:
        patch.setattr(flows.Flowing, "_plan", plan)
        client.submit_workflow(CENSUS)
    assert client.kill_workflow("census").state == "killed"
    assert client.get(victim).state == "waiting"


def test_who_is_refused_does_not_end_the_plan_of_who_submitted_the_same_meanwhile(
        cluster: MemoryCluster, client: MemoryClient, monkeypatch: pytest.MonkeyPatch) -> None:
    store = client._decree

    def busy(message: Any, code: str) -> Any:
        monkeypatch.setattr(client, "_decree", store)
        cluster.client().submit_workflow(CENSUS)
        raise Refused("busy", "this node has too many entries to write")
        yield
    monkeypatch.setattr(client, "_decree", busy)
    with pytest.raises(Refused, match="too many entries"):
        client.submit_workflow(CENSUS)
    known = client.workflow("census")
    assert known.is_live and client.get(known.plan).state == "waiting"


def test_who_is_refused_leaves_no_plan_that_waits(client: MemoryClient, monkeypatch: pytest.MonkeyPatch) -> None:
    store = client._decree

    def busy(message: Any, code: str) -> Any:
        raise Refused("busy", "this node has too many entries to write")
        yield
    monkeypatch.setattr(client, "_decree", busy)
    with pytest.raises(Refused, match="too many entries"):
        client.submit_workflow(CENSUS)
    assert [task.state for task in client.list("wf.census.plan")] == ["cancelled"]
    monkeypatch.setattr(client, "_decree", store)
    status = client.submit_workflow(CENSUS)
    assert status.is_live and client.get(status.plan).state == "waiting" and len(feeders(client)) == 2
