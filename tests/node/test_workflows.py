"""Workflows through a node: what is written is answered with what became of it, read, and followed."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from cluster.scenario import PLAN, row_of
from skuld_py.cluster.log.commands import Command, ExhaustInput, KillWorkflow, Leave, SubmitWorkflow
from skuld_py.cluster.log.entries import Entry
from skuld_py.cluster.log.play import play
from skuld_py.cluster.log.replica import Place, Replica
from skuld_py.cluster.member import playback
from skuld_py.cluster.member.playback import Playback
from skuld_py.config import RULES
from skuld_py.model import messages as m
from skuld_py.model.ids import to_text
from skuld_py.node.workflows.requests import WRITES_EACH
from skuld_py.node.workflows.rows import command_of
from skuld_py.testing.single_node import SingleNode

NOW_MS = 1_700_000_000_000
DIGEST = 16 * "a"
LIFE = 7
LATER = to_text(LIFE.to_bytes(8, "big") + bytes(12))
"""A plan of another life."""
STEPS = (m.StepSpec("in1", "input", 1, 1, (), 0, "continue"),
         m.StepSpec("out1", "output", 1, 5, ("gpu",), 0, "kill"))
SUBMIT = m.Submit(1, "census", DIGEST, PLAN, "percentage", 30, STEPS)
EXHAUST, SEAL = m.Advance(2, "census", "in1", False), m.Advance(3, "census", "out1", True)
ALL = m.Survey(4, (), 0, 0, 0)


class Asking:
    """A client of a node in memory."""

    def __init__(self) -> None:
        self.node = SingleNode(NOW_MS)

    def ask(self, message: m.Message, client: bytes = b"c") -> Any:
        """The answer, or None while there is none."""
        self.node.ask(client, message)
        return next((answer for of, answer in self.later() if of == client), None)

    def later(self) -> list[tuple[bytes, Any]]:
        self.node.settle()
        return self.node.answers()

    @property
    def log(self) -> Playback:
        return self.node._node.playback

    def hold(self) -> None:
        """From now on nothing that is wished comes to stand in the log."""
        self.node._write_log = lambda: None  # type: ignore[method-assign]


@pytest.fixture
def client() -> Asking:
    return Asking()


def test_a_workflow_goes_from_its_submission_to_its_end(client: Asking) -> None:
    told = [client.ask(each) for each in (SUBMIT, EXHAUST, SEAL)]

    assert [(each.outcome, each.position) for each in told] == [("applied", 0), ("applied", 1), ("applied", 2)]
    assert [each.workflows[0].state for each in told] == ["live", "live", "completed"]
    assert told[0].workflows[0] == m.WorkflowRow(
        "census", "live", DIGEST, PLAN, 0, 0, "percentage", 30, "", STEPS, (), ())
    assert told[1].workflows[0].exhausted == ("in1",)
    assert told[2].workflows[0].steps == ()


def test_asked_again_nothing_is_written_and_the_answer_says_since_when_it_holds(client: Asking) -> None:
    submit = attrs.evolve(SUBMIT, plan=LATER)
    client.ask(submit)
    client.ask(EXHAUST)
    for message, position in ((submit, 1), (EXHAUST, 1)):
        told = client.ask(message)
        assert (told.outcome, told.position) == ("unchanged", position)
    assert client.log.next == 2

    assert client.ask(m.Kill(1, "census", "enough")).outcome == "applied"
    assert client.ask(m.Kill(1, "census", "again", LIFE)).outcome == "unchanged"
    assert client.ask(attrs.evolve(SEAL, life=LIFE)).outcome == "unchanged"
    assert client.log.next == 3


def test_what_names_no_life_reaches_the_one_that_a_node_which_lags_does_not_know_of(client: Asking) -> None:
    """It knows one that is over; the log has forgotten that, and its id lives again."""
    client.ask(SUBMIT)
    client.ask(m.Kill(1, "census", "the former"))
    known = client.log.replica
    forgotten = attrs.evolve(known, workflows={}, version=known.version + 9)
    newest = command_of(attrs.evolve(SUBMIT, plan=LATER), known.rules).apply(forgotten, forgotten.version)
    log = client.node._write_log

    def catch_up() -> None:
        """With the next entry it hears of all before."""
        client.log.settle(newest, True)
        log()
    client.node._write_log = catch_up  # type: ignore[method-assign]
    told = client.ask(m.Kill(1, "census", "this one"))
    assert (told.outcome, told.workflows[0].plan, told.workflows[0].reason) == ("applied", LATER, "this one")


def test_another_definition_is_refused_at_once_and_what_may_be_behind_this_node_goes_to_the_log(
        client: Asking) -> None:
    client.ask(SUBMIT)
    told = client.ask(attrs.evolve(SUBMIT, digest=16 * "b"))
    assert told.outcome == "refused" and "another definition" in told.reason and client.log.next == 1

    told = client.ask(m.Kill(1, "unknown", ""))
    assert (told.outcome, told.reason, told.position) == ("refused", "there is no workflow unknown", 1)
    told = client.ask(SEAL)
    assert told.outcome == "refused" and told.position == 2


def test_what_is_about_a_life_that_this_node_may_not_know_yet_is_for_the_log(client: Asking) -> None:
    client.ask(SUBMIT)
    client.ask(m.Kill(1, "census", ""))
    for of_another in (attrs.evolve(EXHAUST, life=7), attrs.evolve(SEAL, life=7), m.Kill(1, "census", "", 7)):
        position = client.log.next
        told = client.ask(of_another)
        assert (told.outcome, told.position, client.log.next) == ("unchanged", position, position + 1)


def test_strands_are_exhausted_one_by_one(client: Asking) -> None:
    client.ask(attrs.evolve(SUBMIT, steps=(attrs.evolve(STEPS[0], most=2), STEPS[1])))
    told = [client.ask(attrs.evolve(EXHAUST, strand=strand)) for strand in (1, 1, 0)]
    assert [(each.outcome, each.workflows[0].exhausted) for each in told] == [
        ("applied", ()), ("unchanged", ()), ("applied", ("in1",))]


@pytest.mark.parametrize(("changes", "code", "words"), [
    ({"digest": "x"}, "bad_workflow", "SubmitWorkflow.digest: is no digest"),
    ({"steps": STEPS[:1]}, "bad_workflow", "SubmitWorkflow.steps: have no input or no output"),
    ({"steps": (*STEPS, *(m.StepSpec(f"{n}".rjust(64, "f"), "function", 1, 1, tuple(
        f"{tag}".rjust(100, "t") for tag in range(16)), 0, "continue") for n in range(200)))}, "too_large",
     "give it fewer steps or fewer tags"),
])
def test_what_cannot_be_an_entry_is_refused_by_name(client: Asking, changes: dict[str, Any], code: str, words: str
                                                    ) -> None:
    told = client.ask(attrs.evolve(SUBMIT, **changes))

    assert (told.code, told.is_definite) == (code, True) and words in told.text
    assert client.log.next == 0


def test_a_cluster_of_older_rules_has_no_workflows_and_the_answer_says_what_to_do(client: Asking) -> None:
    client.log.settle(attrs.evolve(Replica(), rules=2), True)
    told = client.ask(SUBMIT)

    assert told.code == "old_rules" and "skuld cluster rules NAME --raise" in told.text


def test_under_rules_without_strands_no_life_is_named_and_several_feeders_are_refused(client: Asking) -> None:
    client.log.settle(attrs.evolve(Replica(), rules=3), True)
    several = attrs.evolve(SUBMIT, steps=(attrs.evolve(STEPS[0], least=1, most=2), *STEPS[1:]))
    for asked in (several, attrs.evolve(EXHAUST, strand=1)):
        told = client.ask(asked)
        assert told.code == "old_rules" and "skuld cluster rules NAME --raise" in told.text
    assert client.log.next == 0

    assert client.ask(SUBMIT).outcome == "applied"
    assert client.ask(attrs.evolve(EXHAUST, life=7)).outcome == "applied"


def test_a_node_that_has_not_read_the_log_answers_nothing_of_it(client: Asking) -> None:
    client.log.settle(Replica(), False)
    assert {client.ask(each).code for each in (SUBMIT, ALL, m.Follow(1, 0, 1, 0))} == {"not_ready"}


def test_a_request_that_the_log_does_not_take_is_wished_again_and_then_in_doubt(client: Asking) -> None:
    client.hold()
    assert client.ask(SUBMIT) is None
    wanted = client.node._node.commands
    assert len(wanted) == 1
    wanted.clear()  # a member that began a new life has forgotten it
    client.node.pass_until(NOW_MS + 1_500)
    assert len(wanted) == 1

    client.node.pass_until(NOW_MS + 10_000)
    (_, told), = client.node.answers()
    assert (told.code, told.is_definite) == ("uncertain", False)


@pytest.mark.parametrize("rules", [1, RULES])
def test_a_node_is_taken_out_and_placed_again_and_what_cannot_be_is_refused(client: Asking, rules: int) -> None:
    client.log.settle(attrs.evolve(client.log.replica, rules=rules, replicas=1,
                                   nodes={name: Place() for name in ("a:1", "b:1")}), True)

    told = [client.ask(m.Retire(1, "a:1", is_back)) for is_back in (False, False, True, True)]
    assert [(each.outcome, each.position) for each in told] == [
        ("applied", 0), ("unchanged", 1), ("applied", 2), ("unchanged", 3)]
    assert not any(each.workflows for each in told)
    client.ask(m.Retire(1, "a:1", False))
    assert [name for name, place in client.log.replica.nodes.items() if place.is_leaving] == ["a:1"]

    for node, code in (("b:1", "too_few_nodes"), ("c:1", "unknown_node")):
        refused = client.ask(m.Retire(1, node, False))
        assert (refused.code, refused.is_definite) == (code, True) and node in refused.text


def test_a_node_that_has_not_read_the_log_takes_nobody_out(client: Asking) -> None:
    client.log.settle(client.log.replica, False)

    assert client.ask(m.Retire(1, "a:1", False)).code == "not_ready"


def test_many_that_want_the_same_are_answered_by_one_entry_whoever_wrote_it(client: Asking) -> None:
    client.hold()
    for number in range(5):
        assert client.ask(SUBMIT, b"%d" % number) is None
    assert len(client.node._node.commands) == 1
    command = SubmitWorkflow("census", DIGEST, PLAN, tuple(map(row_of, ("in1", "out1"))))
    other = entry("somebody", 0, command)
    note(client.log, other)  # with other steps: another command
    assert client.later() == []
    wished, = client.node._node.commands
    note(client.log, entry("somebody", 1, wished))

    assert [told.outcome for _, told in client.later()] == 5 * ["unchanged"]


def test_one_connection_writes_only_so_much_at_once(client: Asking) -> None:
    client.hold()
    for number in range(WRITES_EACH):
        assert client.ask(m.Kill(number, f"w{number}", "")) is None
    assert client.ask(m.Kill(1, "more", "")).code == "busy"
    assert client.ask(m.Kill(1, "more", ""), b"other") is None


# -- reading -------------------------------------------------------------------------------------


def test_workflows_are_listed_in_the_order_of_submission_page_by_page(
        client: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(m, "WORKFLOWS_IN_PAGE", 2)
    for name in "cab":
        client.ask(attrs.evolve(SUBMIT, workflow=name))
    client.ask(m.Kill(1, "a", "of two"))
    page = client.ask(ALL)
    assert [(row.workflow, row.state, row.reason) for row in page.workflows] == [
        ("c", "live", ""), ("a", "killed", "of two")]
    assert page.workflows[0].steps == () and page.version == 4

    rest = client.ask(attrs.evolve(ALL, behind=page.last))
    assert [row.workflow for row in rest.workflows] == ["b"] and rest.last == 0


def test_by_id_steps_are_shown_and_what_is_not_known_is_left_out(client: Asking) -> None:
    client.ask(SUBMIT)
    rows = client.ask(m.Survey(1, ("no", "census", "census"), 0, 0, 0)).workflows

    assert [(row.workflow, row.steps) for row in rows] == [("census", STEPS)]


def test_a_reader_that_knows_of_a_later_position_waits_for_it(client: Asking) -> None:
    assert client.ask(m.Survey(7, ("census",), 0, 1, 2_000)) is None
    client.node.ask(b"other", SUBMIT)
    told = dict(client.later())
    assert told[b"c"].version == 1 and told[b"c"].workflows[0].workflow == "census"

    assert client.ask(m.Survey(7, ("census",), 0, 9, 2_000)) is None
    client.node.ask(b"other", attrs.evolve(SUBMIT, workflow="daily"))
    assert b"c" not in dict(client.later()), "what is there is not that late"
    client.node.pass_until(NOW_MS + 2_500)
    (_, late), = client.node.answers()
    assert late.version == 2


# -- following -----------------------------------------------------------------------------------


def test_whoever_follows_gets_what_is_there_and_then_waits(client: Asking) -> None:
    client.ask(SUBMIT)
    page = client.ask(m.Follow(1, 0, 10, 5_000))
    row, = page.entries
    assert (row.position, row.time_ms, row.kind, row.writer, row.outcome) == (
        0, NOW_MS, "submit-workflow", "memory", "applied")
    assert [(each.name, each.value) for each in row.changes] == [
        ("workflow", "census"), ("state", "live"), ("steps", "2")]
    assert (page.first, page.next) == (0, 1)

    for number in range(3):
        assert client.ask(m.Follow(1, page.next, 10, 5_000), b"f%d" % number) is None
    client.node.ask(b"other", EXHAUST)
    told = dict(client.later())
    assert [told[b"f%d" % number].entries[0].kind for number in range(3)] == 3 * ["exhaust-input"]


def test_nothing_new_in_time_is_an_empty_page(client: Asking) -> None:
    assert client.ask(m.Follow(1, 0, 10, 5_000)) is None
    client.node.pass_until(NOW_MS + 5_000)
    (_, page), = client.node.answers()

    assert (page.entries, page.first, page.next) == ((), 0, 0)


def test_whoever_is_behind_what_was_collected_is_told_where_it_begins(client: Asking) -> None:
    client.log.settle(attrs.evolve(Replica(), version=99), True)
    page = client.ask(m.Follow(1, 3, 10, 0))
    assert (page.entries, page.first, page.next) == ((), 100, 100)

    client.ask(SUBMIT)
    page = client.ask(m.Follow(1, 3, 10, 0))
    assert (page.entries[0].position, page.first, page.next) == (100, 100, 101)


def test_pages_are_of_so_many(client: Asking) -> None:
    for name in "abc":
        client.ask(attrs.evolve(SUBMIT, workflow=name))
    page = client.ask(m.Follow(1, 0, 2, 0))
    assert [row.position for row in page.entries] == [0, 1] and page.next == 2
    assert [row.position for row in client.ask(m.Follow(1, page.next, 2, 0)).entries] == [2]


# -- what a member keeps of what it plays --------------------------------------------------------


def entry(writer: str, seq: int, command: Command) -> bytes:
    return Entry(writer, seq, command).encode()


def note(log: Playback, raw: bytes, now_ms: int = NOW_MS) -> None:
    played = play(log.replica, log.next, raw)
    log.note(now_ms, played)
    log.settle(played.replica, True)


def test_what_is_played_at_the_start_has_no_time_and_what_cannot_be_read_no_name() -> None:
    log = Playback()
    log.note(NOW_MS, play(Replica(), 0, b"{"))
    log.settle(Replica(version=0), True)
    note(log, entry("a", 0, Leave("b")))

    first, second = log.since(0, 10)
    assert (first.played_ms, first.kind, first.writer, first.outcome, first.reason) == (
        0, "", "", "failed", "entry: is no JSON")
    assert (second.played_ms, second.kind, second.changes) == (NOW_MS, "leave", (("left", "b"),))


def test_what_is_kept_is_bounded_by_number_and_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playback, "ENTRIES_MAX", 5)
    log = Playback()
    for number in range(9):
        note(log, entry("a", number, ExhaustInput("w", "s")))
    assert (log.first, log.next, len(log.since(0, 100))) == (4, 9, 5)

    monkeypatch.setattr(playback, "BYTES_MAX", 3 * log.since(0, 1)[0].weight)
    note(log, entry("a", 9, ExhaustInput("w", "s")))
    assert (log.first, log.next) == (7, 10)
    assert [each.position for each in log.since(8, 100)] == [8, 9]


def test_over_a_jump_nothing_seems_to_join_on() -> None:
    log = Playback()
    note(log, entry("a", 0, KillWorkflow("w")))
    log.settle(Replica(version=49), True)
    assert (log.first, log.next, log.since(0, 9)) == (50, 50, [])

    note(log, entry("a", 1, KillWorkflow("w")))
    assert [each.position for each in log.since(0, 9)] == [50]
