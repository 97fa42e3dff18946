"""Workflows in the log: what a submission may say, how many live, and that older rules have none of it."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import attrs
import pytest

from cluster.random_log import Writer, random_flow
from cluster.scenario import PLAN, row_of
from skuld_py.cluster.log.canonical import from_plain, to_plain
from skuld_py.cluster.log.commands import COMMANDS, Command, ExhaustInput, KillWorkflow, SealOutput, SubmitWorkflow
from skuld_py.cluster.log.entries import Entry, decode
from skuld_py.cluster.log.play import Outcome, Played, failed, play
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.log.workflows import (
    LIVE_MAX,
    STEPS_MAX,
    STRANDS_MAX,
    WEIGHT_MAX,
    StepRow,
    Workflow,
    live,
)
from skuld_py.errors import Malformed
from skuld_py.model.ids import to_text
from skuld_py.workflow.definition import names

ROWS = (row_of("in1"), row_of("out1"))
DIGEST = 16 * "a"


def written(replica: Replica, command: Command) -> Played:
    at = replica.version + 1
    return play(replica, at, Entry("op", at, command).encode())


def submission(name: str, steps: tuple[StepRow, ...] = ROWS) -> SubmitWorkflow:
    return SubmitWorkflow(name, DIGEST, PLAN, steps)


# -- what a submission may say -------------------------------------------------------------------


@pytest.mark.parametrize(("changes", "problem"), [
    ({"workflow": ""}, "SubmitWorkflow.workflow: is no name of a workflow"),
    ({"workflow": "a" * 101}, "SubmitWorkflow.workflow: is no name of a workflow"),
    ({"workflow": "a/b"}, "SubmitWorkflow.workflow: is no name of a workflow"),
    ({"digest": "A" * 16}, "SubmitWorkflow.digest: is no digest"),
    ({"plan": "0" * 31}, "SubmitWorkflow.plan: is no task id"),
    ({"spreading": "greedy"}, "SubmitWorkflow.spreading: is none of balanced, percentage, colocated"),
    ({"percentage": 101}, "SubmitWorkflow.percentage: is 101, not in 0..100"),
    ({"steps": ()}, "SubmitWorkflow.steps: are 0, not 1..256"),
    ({"steps": (*ROWS, *(row_of(f"f{number}") for number in range(STEPS_MAX)))},
     "SubmitWorkflow.steps: are 258, not 1..256"),
    ({"steps": (*ROWS, row_of("in1"))}, "SubmitWorkflow.steps: name a step twice"),
    ({"steps": ROWS[:1]}, "SubmitWorkflow.steps: have no input or no output"),
    ({"steps": ROWS[1:]}, "SubmitWorkflow.steps: have no input or no output"),
])
def test_what_a_submission_may_not_say(changes: dict[str, object], problem: str) -> None:
    with pytest.raises(Malformed) as raised:
        attrs.evolve(submission("w"), **changes)

    assert raised.value.message == problem


@pytest.mark.parametrize(("changes", "problem"), [
    ({"name": "a.b"}, "StepRow.name: is no name of a step"),
    ({"name": "a" * 65}, "StepRow.name: is no name of a step"),
    ({"kind": "leaf"}, "StepRow.kind: is none of input, function, output"),
    ({"least": 0}, "StepRow.least: is 0, not in 1..1073741824"),
    ({"least": 3, "most": 2}, "StepRow.least: is 3, more than the most, 2"),
    ({"tags": ("",)}, "StepRow.tags: are no tags, or more than 32"),
    ({"tags": ("x",) * 33}, "StepRow.tags: are no tags, or more than 32"),
    ({"percentage": -1}, "StepRow.percentage: is -1, not in 0..100"),
    ({"flux": "stay"}, "StepRow.flux: is none of continue, kill, recover"),
])
def test_what_a_step_may_not_be(changes: dict[str, object], problem: str) -> None:
    with pytest.raises(Malformed) as raised:
        attrs.evolve(row_of("in1"), **changes)

    assert raised.value.message == problem


@pytest.mark.parametrize("reason", ["x" * 251, "a\nb", "\x1b[2J", "\u202ea", "\x9b", "\u2028"])
def test_a_reason_is_short_and_harmless_to_a_terminal(reason: str) -> None:
    with pytest.raises(Malformed, match="is no reason of at most 250 printable characters"):
        KillWorkflow("w", reason)


def test_a_reason_may_be_in_any_language() -> None:
    assert KillWorkflow("w", "größer als 😀 日本").reason


# -- how many live -------------------------------------------------------------------------------


def test_only_so_many_live_and_one_that_has_ended_makes_room() -> None:
    known = {f"w{number}": Workflow(DIGEST, PLAN, steps=ROWS, since=0, submitted=0) for number in range(LIVE_MAX)}
    replica = Replica(version=0, workflows=known)
    refused = written(replica, submission("more"))
    assert (refused.outcome, refused.reason) == (
        Outcome.REFUSED, "1000 workflows live already; kill one, or wait until one is complete")

    replica = written(refused.replica, KillWorkflow("w7")).replica
    replica = written(replica, submission("more")).replica

    assert len(live(replica.workflows)) == LIVE_MAX and [*replica.workflows][-1] == "more"


def test_the_steps_of_all_together_are_bounded_so_that_the_origin_is() -> None:
    tags = tuple(f"{number}".rjust(100, "t") for number in range(16))
    large = (*ROWS, *(StepRow(f"{number}".rjust(64, "f"), "function", tags=tags) for number in range(254)))
    with pytest.raises(Malformed):
        decode(Entry("op", 0, submission("too-long-for-an-entry", large)).encode())
    replica, count = Replica(), 0
    while (played := written(replica, submission(f"w{count}", large[:100]))).outcome is Outcome.APPLIED:
        replica, count = played.replica, count + 1

    assert "have too many steps and tags together" in played.reason
    assert 20 < count < LIVE_MAX
    assert WEIGHT_MAX // 2 < len(replica.text()) < WEIGHT_MAX * 1.1


def test_one_whose_place_in_the_order_is_the_first_keeps_it() -> None:
    replica = Replica()
    for name in ("b", "a", "c"):
        replica = written(replica, submission(name)).replica
    replica = written(replica, COMMANDS["exhaust-input"]("b", "in1")).replica  # type: ignore[call-arg]

    assert [*live(replica.workflows)] == ["b", "a", "c"]


# -- strands -------------------------------------------------------------------------------------

OF_THREE = (StepRow("in1", "input", most=3), StepRow("in2", "input"), row_of("out1"))


def exhausted(replica: Replica, *strands: int, step: str = "in1") -> Played:
    for strand in strands[:-1]:
        replica = written(replica, ExhaustInput("w", step, strand)).replica
    return written(replica, ExhaustInput("w", step, strands[-1]))


@pytest.mark.parametrize("said", ["in1", "in1:", "in1:x", "in1:64", "in1:99", "in1:01", "in1:-1", "in1:1:1", ":1",
                                  "in1:\u0661"])
def test_what_is_no_strand_is_drained_in_no_origin(said: str) -> None:
    with pytest.raises(Malformed, match=r"Workflow\.drained: are no steps with numbers below 64"):
        Workflow(DIGEST, PLAN, steps=OF_THREE, drained=("in1:0", said))
    assert Workflow(DIGEST, PLAN, steps=OF_THREE, drained=("in1:0", "in1:63")).drained


@pytest.mark.parametrize(("field", "said", "why"), [
    ("exhausted", ("in1", "in 2"), "no names of steps"), ("exhausted", ("in1", "in1"), "or one twice"),
    ("exhausted", ("",), "no names"), ("exhausted", tuple(f"s{number}" for number in range(257)), "more than 256"),
    ("sealed", ("out1:0",), "no names of steps"), ("sealed", ("out1", "out1"), "or one twice"),
    ("state", "dead", "none of live"), ("percentage", 101, "not in 0"),
    ("spreading", "random", "none of balanced"),
    ("reason", "\x1b[2J", "no reason"), ("reason", "x" * 251, "no reason")])
def test_what_an_origin_or_a_peer_says_of_a_workflow_is_in_its_bounds(field: str, said: Any, why: str) -> None:
    good = Workflow(DIGEST, PLAN, steps=OF_THREE, exhausted=("in1", "in2"), sealed=("out1",))
    with pytest.raises(Malformed, match=rf"Workflow\.{field}: .*{why}"):
        attrs.evolve(good, **{field: said})
    plain = to_plain(good)
    assert from_plain(Workflow, plain) == good
    with pytest.raises(Malformed, match=rf"Workflow\.{field}"):
        from_plain(Workflow, {**plain, field: [*said] if type(said) is tuple else said})


def test_an_input_is_exhausted_with_the_last_of_its_strands_whatever_their_order() -> None:
    replica = written(Replica(), submission("w", OF_THREE)).replica
    some = exhausted(replica, 2, 0)
    known = some.replica.workflows["w"]
    assert (known.exhausted, known.drained, known.open_strands("in1")) == ((), ("in1:2", "in1:0"), 1)
    assert some.diff == {"workflow": "w", "drained": "in1:0", "open strands": "1"}
    assert exhausted(some.replica, 2).outcome is Outcome.UNCHANGED

    last = exhausted(some.replica, 1)
    known = last.replica.workflows["w"]
    assert (known.exhausted, known.drained, known.open_strands("in1")) == (("in1",), (), 0)
    assert last.diff == {"workflow": "w", "exhausted": "in1", "open inputs": "1"}
    assert exhausted(last.replica, 1).outcome is Outcome.UNCHANGED
    assert exhausted(last.replica, 0, step="in2").replica.workflows["w"].is_sealing


def test_a_strand_that_an_input_has_not_is_refused() -> None:
    replica = written(Replica(), submission("w", OF_THREE)).replica
    assert exhausted(replica, 3).reason == "input in1 of workflow w has 3 strands, and this is number 3"
    assert exhausted(replica, 1, step="in2").outcome is Outcome.REFUSED
    with pytest.raises(Malformed, match="is 64, not in"):
        ExhaustInput("w", "in1", STRANDS_MAX)


def test_strands_are_as_many_here_as_definitions_may_have_and_of_any_number_of_slots_there_is_one() -> None:
    assert names.STRANDS_MAX == STRANDS_MAX
    assert [StepRow("in1", "input", most=most).strands for most in (1, 64, 65)] == [1, 64, 1]
    assert row_of("in1").strands == 1


def test_an_entry_of_one_strand_is_as_it_was_before_there_were_several() -> None:
    text = Entry("op", 0, ExhaustInput("w", "in1")).encode()
    assert text == b'{"do":"exhaust-input","seq":0,"with":{"step":"in1","workflow":"w"},"writer":"op"}'
    replica = written(Replica(), submission("w")).replica
    assert b"drained" not in replica.text().encode()


# -- lives ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [
    ExhaustInput("w", "in1", life=1_000), SealOutput("w", "out1", life=1_000), KillWorkflow("w", life=1_000)])
def test_what_is_said_of_another_life_changes_nothing(command: Command) -> None:
    plan = to_text((2_000).to_bytes(8, "big") + bytes(12))
    replica = written(Replica(), attrs.evolve(submission("w"), plan=plan)).replica
    if isinstance(command, SealOutput):
        replica = written(replica, ExhaustInput("w", "in1")).replica
    said = written(replica, command)
    assert said.outcome is Outcome.UNCHANGED and said.replica.workflows == replica.workflows
    for life in (0, 2_000):
        assert written(replica, attrs.evolve(command, life=life)).outcome is Outcome.APPLIED
    with pytest.raises(Malformed, match="life: is -1"):
        attrs.evolve(command, life=-1)


# -- older rules ---------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", [1, 2])
def test_releases_that_know_no_workflows_have_the_same_replica_under_their_rules(rules: int) -> None:
    """They play the entries as unreadable, and know no such field."""
    former = {kind: each for kind, each in COMMANDS.items() if each.since <= rules}
    assert len(former) == len(COMMANDS) - 6
    random = Random(rules)
    writer = Writer(random, Replica(replicas=2, rules=rules), COMMANDS)
    theirs, met = writer.replica, 0
    for at in range(300):
        raw = writer.next([lambda random: random_flow(random, writer.replica)])
        theirs = play(theirs, at, raw, former).replica

        assert theirs.digest() == writer.replica.digest()
        met += b"workflow" in raw
    assert met > 30
    assert "workflows" not in writer.replica.text()


def without_strands(replica: Replica, at: int, raw: bytes) -> Replica:
    """What a release makes of an entry that knows workflows, and neither strands nor lives."""
    try:
        command = decode(raw).command
    except Malformed:
        return play(replica, at, raw).replica
    unknown = sorted({"life", "strand"} & json.loads(raw)["with"].keys())
    if not unknown:
        return play(replica, at, raw, {kind: each for kind, each in COMMANDS.items() if each.since <= 3}).replica
    problem = f"{type(command).__name__}.{unknown[0]}: is not known to this version"
    return failed(attrs.evolve(replica, version=at), at, None, Outcome.FAILED, problem).replica


def test_releases_that_know_no_strands_and_lives_have_the_same_replica_under_their_rules() -> None:
    random = Random(4)
    writer = Writer(random, Replica(replicas=2, rules=3), COMMANDS)
    theirs, met = writer.replica, 0
    for at in range(600):
        raw = writer.next([lambda random: random_flow(random, writer.replica)])
        theirs = without_strands(theirs, at, raw)

        assert theirs.digest() == writer.replica.digest(), raw
        met += b'"life"' in raw or b'"strand"' in raw
    assert met > 30


def test_under_their_rules_an_input_has_one_strand_whatever_is_submitted() -> None:
    steps = (attrs.evolve(row_of("in1"), most=4), row_of("out1"))
    replica = written(Replica(rules=3), submission("w", steps)).replica
    assert replica.workflows["w"].strands("in1") == 1 and "is_split" not in replica.text()

    assert written(replica, ExhaustInput("w", "in1")).replica.workflows["w"].exhausted == ("in1",)
    assert written(Replica(), submission("w", steps)).replica.workflows["w"].strands("in1") == 4


def test_where_there_are_none_the_text_is_as_before_and_where_there_are_it_has_them() -> None:
    assert "workflows" not in Replica().text()
    assert '"workflows":[["w",{' in written(Replica(), submission("w")).replica.text()
