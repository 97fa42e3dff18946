"""Each checker sees what breaks its rule and shows it, passes what keeps it, and calls an empty run unknown."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

import pytest

from simulation.planted_stories import (
    checkpoints,
    claims,
    durability,
    interface,
    keys,
    limits,
    names,
    needs,
    order,
    outcomes,
    ticks,
    times,
)
from simulation.planted_stories.cases import Build, Cases
from simulation.story import (
    BODY,
    KEY,
    OTHER,
    REFUSED,
    TASK,
    TOKEN,
    UNSURE,
    Story,
    completed,
    lived,
    record,
    stored,
)
from skuld_py.crdt import LatticeMap, Min
from skuld_py.model import messages as m
from skuld_py.model.body import Header, encode_body
from skuld_py.model.history import HISTORY_HEAD, encode_claim, token_of
from skuld_py.model.history import History as TaskHistory
from skuld_py.model.ids import IdMint
from skuld_py.model.setting import UNSET
from skuld_py.partition.data import tables
from skuld_py.simulation.checkers import ALL, Checker, check
from skuld_py.simulation.checkers.epochs import epochs_rise
from skuld_py.simulation.checkers.evidence import EVIDENCE_MAX
from skuld_py.simulation.checkers.interface import refusals_have_no_effect
from skuld_py.simulation.checkers.keys import lanes_are_in_order
from skuld_py.simulation.checkers.needs import dependencies_are_done, nobody_waits_in_vain
from skuld_py.simulation.notes import What

CASES: Cases = {**durability.CASES, **claims.CASES, **outcomes.CASES, **needs.CASES, **keys.CASES,
                **names.CASES, **limits.CASES, **ticks.CASES, **times.CASES, **order.CASES, **interface.CASES,
                **checkpoints.CASES}
IDS = ([f"D{number}" for number in range(1, 14)] + [f"C{number}" for number in range(1, 15)]
       + ["C15", "C16", "C17", "C18", "C19", "C20", "C21", "C22", "C23"]
       + ["O1", "O2", "O3", "V1", "V2", "V3", "V4", "A1", "A2", "A3", "A6", "X1", "X2"])
BROKEN = [pytest.param(checker, build, wanted, id=f"{checker.__name__}: {name}")
          for checker, (broken, _) in CASES.items() for name, (build, wanted) in broken.items()]
KEPT = [pytest.param(checker, build, id=checker.__name__) for checker, (_, build) in CASES.items()]
HEALED_ONLY = ("D1", "D4", "D5", "O3", "V1", "V2", "V4")


@pytest.mark.parametrize(("checker", "build", "wanted"), BROKEN)
def test_a_planted_violation_is_found_and_shown(checker: Checker, build: Build, wanted: str) -> None:
    finding = checker(build().evidence())

    assert finding.verdict is False
    assert any(wanted in line for line in finding.evidence)


@pytest.mark.parametrize(("checker", "build"), KEPT)
def test_a_clean_history_passes(checker: Checker, build: Build) -> None:
    finding = checker(build().evidence())

    assert finding.evidence == ()
    assert finding.verdict is True


@pytest.mark.parametrize("repeats", [False, True])
def test_a_renewal_that_was_refused_may_be_there_where_links_repeat_messages(repeats: bool) -> None:
    story = Story().claim(end_ms=60).renew(TOKEN, 0, 20).store("history", KEY, record(TOKEN)).know(repeats=repeats)

    assert bool(refusals_have_no_effect(story.evidence()).evidence) is not repeats


@pytest.mark.parametrize("build", claims.OPERATED)
def test_operators_may_change_cohorts(build: Build) -> None:
    assert epochs_rise(build().evidence()).evidence == ()


@pytest.mark.parametrize("build", needs.IGNORED)
def test_who_takes_a_failure_for_done_may_be_claimed_after_one(build: Build) -> None:
    assert dependencies_are_done(build().evidence()).verdict is True


@pytest.mark.parametrize("build", needs.UNDECIDED)
def test_who_waits_before_the_bound_does_not_wait_in_vain_yet(build: Build) -> None:
    assert nobody_waits_in_vain(build().evidence()).verdict is None


@pytest.mark.parametrize("name", keys.EXCUSED)
def test_what_may_happen_to_a_key_is_no_violation(name: str) -> None:
    assert lanes_are_in_order(keys.EXCUSED[name]().evidence()).evidence == ()


@pytest.mark.parametrize("checker", ALL, ids=lambda checker: str(checker.__name__))
def test_an_empty_run_is_unknown_and_no_pass(checker: Checker) -> None:
    assert checker(Story().evidence()).verdict is None


def test_a_flawless_life_breaks_no_rule() -> None:
    story = lived().write(1, 1).strike("kill", 20)
    broken = [finding for finding in check(story.evidence()) if finding.verdict is False]

    assert {finding.id for finding in broken} <= {"A6", "X1"}, "its counts and indexes are not told of"


def test_what_is_asked_after_healing_is_unknown_before() -> None:
    story = completed().enqueue().complete().append().know(owners={})

    assert {finding.id for finding in check(story.evidence()) if finding.id in HEALED_ONLY
            and finding.verdict is not None} == set()


def test_every_rule_has_a_checker_three_violations_and_a_clean_history() -> None:
    assert [finding.id for finding in check(Story().evidence())] == IDS
    assert CASES.keys() == {*ALL}
    assert [checker for checker, (broken, _) in CASES.items() if len(broken) < 3] == []


@pytest.mark.parametrize(("checker", "id"), list(zip(ALL, IDS, strict=True)), ids=IDS)
def test_a_checker_is_named_by_its_rule(checker: Checker, id: str) -> None:
    found = re.match(r"\[(\w+)\] ", checker.__doc__ or "")

    assert found is not None and found[1] == id


def test_evidence_is_cut_to_what_a_person_reads() -> None:
    story = Story()
    for _ in range(2 * EVIDENCE_MAX):
        story.enqueue(payload=b"x" * 5_000)
    (finding,) = [finding for finding in check(story.evidence()) if finding.id == "D1"]

    assert len(finding.evidence) == EVIDENCE_MAX
    assert max(map(len, finding.evidence)) < 1_000


def test_the_cost_of_checking_grows_little_faster_than_a_history() -> None:
    def calls(tasks: int) -> int:
        evidence, counted = long_story(tasks).evidence(), 0

        def count(*_: object) -> None:
            nonlocal counted
            counted += 1
        sys.setprofile(count)
        try:
            check(evidence)
        finally:
            sys.setprofile(None)
        return counted

    assert calls(800) < 5 * calls(200)


def long_story(tasks: int) -> Story:
    """Every task of one queue is enqueued, claimed twice, logged, read and completed; leaders come and go."""
    story = Story()
    for index, task_id in enumerate(IdMint(1).mint(1_000, tasks, 0)):
        at_ms, token, key = 100 * index, token_of(index + 1, 1), tables.prefix_of(0) + task_id
        history = record(token, token + 1, done=token + 1)
        story.enqueue(task=task_id, at_ms=at_ms).write(index + 1, at_ms)
        story.claim(token, at_ms + 2, task=task_id, end_ms=at_ms + 9).hold(token, at_ms + 3, at_ms + 9, task_id)
        story.claim(token + 1, at_ms + 10, task=task_id, end_ms=at_ms + 60)
        story.note(at_ms + 20, "n1", What.SEATING, index + 1, tokens=frozenset([token, token + 1]))
        story.complete(at_ms + 30, task=task_id, token=token + 1).read(at_ms + 40, task=task_id, body=BODY,
                                                                       history=history)
        story.store("body", key, BODY).store("history", key, history)
    return story.know(calm_ms=0, equal_ms=1, bound_ms=1_000_000)


# -- what a rule does not ask ------------------------------------------------------------------------


def verdicts(story: Story) -> dict[str, bool | None]:
    return {finding.id: finding.verdict for finding in check(story.evidence())}


def test_a_weak_completion_binds_nobody() -> None:
    assert verdicts(Story().complete(10, 1).claim(at_ms=20))["C8"] is None


def test_amnesia_excuses_what_fewer_than_a_majority_keep_and_nothing_else() -> None:
    weak = Story().strike("wipe", 20).enqueue(m.Acked(0, 1), w=1).complete(10, 1)

    assert verdicts(weak)["D1"] is None
    assert verdicts(weak)["D4"] is None
    assert verdicts(weak.enqueue(at_ms=12))["D1"] is False


def test_an_unknown_claim_or_a_fault_leaves_the_global_order_unknown() -> None:
    assert verdicts(order.queued(12, claimed=11))["O2"] is False
    assert verdicts(order.queued(12, claimed=11).claim_nothing())["O2"] is None
    assert verdicts(order.queued(12, claimed=11).strike("pause", 5))["O2"] is None


@pytest.mark.parametrize(("story", "verdict"), [
    (lambda story: story.put(5, at_ms=8), None),
    (lambda story: story.put(5, at_ms=8, copies=0), None),
    (lambda story: story.put(5, at_ms=8, answer=REFUSED), False),
    (lambda story: story.put(5, at_ms=8, queue="r"), False),
    (lambda story: story.put(5, at_ms=8, kind="other"), False),
    (lambda story: story.put(5, at_ms=2).put(6, UNSET, at_ms=5).put(5, at_ms=8, kind="other"), False),
    (lambda story: story.put(5, at_ms=2).put(7, at_ms=5), None),
    (lambda story: story.put(5, at_ms=11), None),
    (lambda story: story.put(5, at_ms=12), False),
    (lambda story: story.put(5, at_ms=2).put(6, UNSET, at_ms=8), False),
    (lambda story: story.put(5, at_ms=2).put(6, UNSET, at_ms=9), None),
    (lambda story: story.put(5, at_ms=2).put(6, UNSET, at_ms=5, copies=2), None),
    (lambda story: story.put(5, at_ms=2).put(4, UNSET, at_ms=5), None),
    (lambda story: story.put(5, at_ms=2).put(6, UNSET, at_ms=5).put(7, at_ms=20), False),
])
def test_no_order_is_asked_of_grants_while_the_queue_may_be_paused_on_some_nodes_only(
        story: Callable[[Story], Story], verdict: bool | None) -> None:
    """The claim is asked for at 10 and granted at 11."""
    assert verdicts(story(order.queued(12, claimed=11)))["O2"] is verdict


def test_settings_may_differ_as_long_as_the_cluster_is_not_healed() -> None:
    story = stored().store("meta", b"setting paused/q", b"v", ("n1",))

    assert verdicts(story)["V2"] is False
    assert verdicts(story.know(owners={}))["V2"] is None


def test_a_pause_above_another_ends_neither_the_pause_nor_the_doubt() -> None:
    """Only a resume does."""
    story = Story().put(5, at_ms=2).put(7, at_ms=5, until_ms=30)
    assert verdicts(story.claim(at_ms=10))["C12"] is False
    assert verdicts(order.queued(12, claimed=11).put(5, at_ms=2, copies=2).put(7, at_ms=5))["O2"] is None


def test_lost_disks_excuse_a_grant_of_a_paused_queue_but_not_by_a_node_that_knew() -> None:
    story = Story().put(5).claim(at_ms=20).strike("wipe", 10)
    assert verdicts(story)["C12"] is True

    story.note(21, "n1", What.PICKED, worst=b"x", is_paused=True)
    assert verdicts(story)["C12"] is False


@pytest.mark.parametrize(("facts", "verdict"), [({"is_fixed": True}, False), ({"is_fixed": False}, None)])
def test_a_setting_of_a_majority_binds_readers_where_the_same_nodes_were_there_all_the_time(
        facts: dict[str, bool], verdict: bool | None) -> None:
    assert verdicts(Story().put(5, copies=2).read_setting(20, 4).know(**facts))["A3"] is verdict
    assert verdicts(Story().put(5).read_setting(20, 4).know(**facts).strike("wipe", 3))["A3"] is None
    assert verdicts(Story().put(5, answer=UNSURE).read_setting(20, 4).know(**facts))["A3"] is None


def test_no_limit_is_asked_for_where_it_is_not_known_to_all_or_where_disks_were_lost() -> None:
    assert verdicts(limits.overtaken())["C19"] is True
    assert verdicts(limits.unlimited())["C19"] is None
    assert verdicts(limits.both(limits.limited()))["C19"] is False
    assert verdicts(limits.both(limits.limited()).strike("wipe", 3))["C19"] is None


def test_clocks_beyond_their_bound_excuse_that_much_and_no_more() -> None:
    def story(excess_ms: int) -> Story:
        return (Story().know(skew_excess_ms=excess_ms).claim(5, 10).hold(5, 11, 30).claim(6, 12, 25)
                .hold(6, 25, 40))

    for rule in ("C3", "C14"):
        assert verdicts(story(5))[rule] is True
        assert verdicts(story(4))[rule] is False


@pytest.mark.parametrize("story", [
    lambda: ticks.calm(copies=2), lambda: ticks.calm(1_100, removed_ms=3_200), lambda: ticks.calm().know(led_ms=6),
    lambda: ticks.calm().know(led_ms=None)])
def test_a_tick_is_not_missed_where_something_may_have_kept_it(story: Build) -> None:
    assert verdicts(story())["C20"] is not False


def test_a_task_that_was_revived_need_not_rest() -> None:
    assert verdicts(times.revived(times.rested(), 25))["C21"] is None
    assert verdicts(times.rested())["C21"] is False


UNTRIED = {
    "C3": lambda: Story().hold(1, 10, 20).hold(2, 30, 30),
    "C8": lambda: Story().claim(at_ms=5).complete(10).claim(at_ms=11, task=OTHER),
    "C10": lambda: Story().claim(5, 10).append(token=5, at_ms=30).renew(5, 0, 30),
    "D3": lambda: Story().enqueue(),
    "D6": lambda: Story().enqueue(at_ms=19).strike("kill", 20).store("body", tables.prefix_of(0) + TASK, BODY),
    "D8": lambda: stored().enqueue(None).read(10, body=BODY).enqueue(at_ms=40).strike("wipe", 30),
    "D9": lambda: lived().know(owners={}).strike("corrupt", 30),
    "A1": lambda: Story().enqueue().enqueue(task=OTHER),
    "A2": lambda: Story().enqueue(),
    "O2": lambda: order.queued(12, claimed=11).know(calm_ms=10),
    "V1": lambda: order.healed().know(bound_ms=0),
    "V2": lambda: completed().know(owners={0: ("n1",)}),
    "V4": lambda: order.exchanged(0, 0, 0).know(equal_ms=None),
    "O1": lambda: order.picked(b"a", b""),
    "C6": lambda: claims.seated().know(wall_start_ms=69),
}


@pytest.mark.parametrize(("rule", "build"), list(UNTRIED.items()), ids=list(UNTRIED))
def test_a_run_in_which_a_rule_could_not_be_broken_is_unknown(rule: str, build: Build) -> None:
    assert verdicts(build())[rule] is None


def test_time_to_converge_counts_from_a_calm() -> None:
    assert verdicts(order.healed().know(calm_ms=None))["V1"] is None


def test_without_a_known_patience_no_answer_is_late() -> None:
    assert verdicts(Story().tell(m.Describe, None, 10, 90_000).enqueue(REFUSED))["A2"] is True


@pytest.mark.parametrize("at_ms", [20, 51])
def test_a_task_claimed_before_its_enqueue_was_acknowledged_does_not_wait_on(at_ms: int) -> None:
    story = Story()
    for number, task_id in enumerate(order.MANY[:4]):
        story.claim(number + 1, at_ms, task=task_id).enqueue(task=task_id, at_ms=50)
    story.enqueue(task=order.MANY[5], at_ms=55).claim(9, 60, task=order.MANY[5])

    assert verdicts(story)["O2"] is True


def test_a_task_acknowledged_as_a_claim_is_asked_for_does_not_wait_yet() -> None:
    story = Story().enqueue(task=order.MANY[5], at_ms=50).claim(9, 60, task=order.MANY[5])
    for task_id in order.MANY[:4]:
        story.enqueue(task=task_id, at_ms=59)

    assert verdicts(story)["O2"] is True


def test_one_grant_of_a_hundred_may_be_four_times_as_far_off_and_no_farther() -> None:
    def story(better: int) -> Story:
        made = order.queued(better + 1, claimed=better)
        other = encode_body(Header("r").encode(), b"payload")
        for number, task_id in enumerate(IdMint(9).mint(1_000, 100, 0)):
            at_ms = 100 + 10 * number
            made.enqueue(task=task_id, at_ms=at_ms, header=Header("r").encode())
            made.claim(100 + number, at_ms + 5, task=task_id, body=other, queue="r")
        return made

    assert verdicts(story(8))["O2"] is True
    assert verdicts(story(9))["O2"] is False


@pytest.mark.parametrize(("first_ms", "second_ms"), [(99, 700), (50, 599)])
def test_a_turn_at_the_very_edge_of_its_time_is_in_time(first_ms: int, second_ms: int) -> None:
    story = order.healed().claim(at_ms=first_ms).claim(TOKEN + 1, at_ms=second_ms)

    assert verdicts(story)["O3"] is True


def test_of_four_replicas_two_copies_meet_every_majority_unless_some_were_destroyed() -> None:
    story = Story().know(replicas=4).complete(10, 2).claim(at_ms=20)

    assert verdicts(story)["C8"] is False
    assert verdicts(story.strike("wipe", 5))["C8"] is None


def parted() -> Story:
    """Three replicas, none of which knows all that another knows; two completions, and two holders of a token."""
    heads = [HISTORY_HEAD.pack(done_ms, done_ms and 5, 99) for done_ms in (0, 50, 40)]
    claimed = [encode_claim(5, 10, 99, b"w") + encode_claim(6, 10, 99, b"w"), encode_claim(7, 10, 99, b"w"),
               encode_claim(5, 10, 99, b"x") + encode_claim(8, 10, 99, b"w")]
    story = Story()
    for name, head, claims_record in zip(("n1", "n2", "n3"), heads, claimed, strict=True):
        story.store("history", tables.prefix_of(0) + TASK, head + claims_record, (name,))
    return story


MERGE = TaskHistory.merge
Merge = Callable[[TaskHistory, TaskHistory], TaskHistory]


def first_holder_wins(a: TaskHistory, b: TaskHistory) -> TaskHistory:
    if a.claims.entries.keys() >= b.claims.entries.keys():
        return a
    if a.claims.entries.keys() <= b.claims.entries.keys():
        return b
    claims_of_both = sorted({**b.claims.entries, **a.claims.entries}.items())
    return TaskHistory(MERGE(a, b).completion, LatticeMap(dict(claims_of_both)))


def not_idempotent(a: TaskHistory, b: TaskHistory) -> TaskHistory:
    joined = MERGE(a, b)
    return TaskHistory(Min((1, 1)), joined.claims) if a.claims.entries and joined == b else joined


def latest_completion(a: TaskHistory, b: TaskHistory) -> TaskHistory:
    done = max((each.completion.value for each in (a, b) if each.completion.value), default=None)
    return TaskHistory(Min(done), MERGE(a, b).claims)


def test_merge_as_it_is_keeps_the_laws() -> None:
    assert verdicts(parted())["V3"] is True


@pytest.mark.parametrize("merge", [
    lambda a, b: a, lambda a, b: TaskHistory(), lambda a, b: TaskHistory(MERGE(a, b).completion),
    lambda a, b: TaskHistory(claims=MERGE(a, b).claims), first_holder_wins, not_idempotent, latest_completion])
def test_a_merge_that_breaks_a_law_is_found(merge: Merge) -> None:
    TaskHistory.merge = merge  # type: ignore[assignment, method-assign]
    try:
        verdict = verdicts(parted())["V3"]
    finally:
        TaskHistory.merge = MERGE  # type: ignore[method-assign]

    assert verdict is False


def test_a_refused_write_that_nobody_sees_is_no_violation() -> None:
    assert verdicts(Story().enqueue(REFUSED))["A2"] is True


def test_notes_are_needed_for_rules_about_a_nodes_own_knowledge() -> None:
    story = claims.led().claim().write(2, 32, "n2")

    assert [verdicts(story)[rule] for rule in ("C6", "C7", "O1")] == [None, None, None]
    assert verdicts(story)["C4"] is True
