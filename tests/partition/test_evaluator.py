"""What a node should do about a partition, case by case."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skuld_py.model.document import Document, Freeze, Member, Promotion, Quarantine, seats_of
from skuld_py.partition.leadership.evaluator import (
    Action,
    Facts,
    Resign,
    Rest,
    Stand,
    Write,
    Yield,
    by_wish,
    evaluate,
    next_change_ms,
    next_cohort,
)

NOW = 1_000
OLD, NEW = ("n1", "n2", "n3"), ("n1", "n2", "n4")
EVERYBODY = {name: Member(name, "h", 1, f"boot of {name}") for name in ("n1", "n2", "n3", "n4", "n5")}
DOCUMENT = Document(4, "n1", "boot of n1", seats_of(OLD), era=1, horizon_ms=5_000)


def facts(**changes: Any) -> Facts:
    """n1, which leads epoch 4, with everybody alive and placed as it is seated."""
    return attrs.evolve(Facts(EVERYBODY["n1"], EVERYBODY, OLD, 4, 4), **changes)


def heir(**changes: Any) -> Facts:
    """n2, which leads nothing; the leader is gone."""
    gone = {name: member for name, member in EVERYBODY.items() if name != "n1"}
    return attrs.evolve(Facts(EVERYBODY["n2"], gone, OLD, 0, 4), **changes)


def document(**changes: Any) -> Document:
    return attrs.evolve(DOCUMENT, **changes)


LEADS_FOR_N1: dict[str, Any] = {"me": EVERYBODY["n2"]}
FROZEN = Freeze("f", "op", "why", 1)
WISH = Promotion("p", "lead", "n3", 4, NOW + 1, "op")


def wished(kind: str, target: str) -> Any:
    return facts(), document(promote=attrs.evolve(WISH, kind=kind, target=target))


CASES: dict[str, tuple[Facts, Document, Action]] = {
    "the leader is gone": (heir(), DOCUMENT, Stand(OLD)),
    "the leader is another process": (heir(live=EVERYBODY), document(boot="before"), Stand(OLD)),
    "the leader lives": (heir(live=EVERYBODY), DOCUMENT, Rest("n1 leads")),
    "the leader lives and is not heard": (heir(live=EVERYBODY, is_overdue=True), DOCUMENT, Stand(OLD)),
    "one's own former life led": (heir(me=EVERYBODY["n1"], live=EVERYBODY), document(boot="before"), Stand(OLD)),
    "a successor keeps the cohort whatever is placed": (heir(owners=("n2", "n4", "n5"), filled=["n4", "n5"]),
                                                        DOCUMENT, Stand(OLD)),
    "without a vote nobody stands": (heir(me=EVERYBODY["n4"], owners=NEW), DOCUMENT, Rest("it has no vote")),
    "frozen": (heir(), document(freeze=FROZEN), Rest("frozen: nobody but the recorded leader may stand")),
    "frozen until a moment ago": (heir(), document(freeze=attrs.evolve(FROZEN, until_ms=NOW)), Stand(OLD)),
    "too few live": (heir(live={"n2": EVERYBODY["n2"]}), DOCUMENT, Rest("a majority of the voters is not alive")),
    "its memory is in doubt": (heir(is_suspect=True), DOCUMENT, Rest(
        "its memory of this partition is not to be trusted until it has filled again")),
    "the first leader": (heir(remembered=0), Document(), Stand(OLD)),
    "a document that was there": (heir(remembered=0, was_there=True), Document(), Rest(
        "its document is gone from ZooKeeper, and its history shows that there was one, so nothing may begin anew;"
        " stop all nodes, then 'skuld cluster destroy' and 'skuld cluster restore'")),
    "the first leader is an owner": (
        heir(remembered=0, me=EVERYBODY["n4"]), Document(), Rest("it is not placed here")),
    "all is well": (facts(), DOCUMENT, Rest()),
    "a newer epoch": (facts(), document(epoch=5), Resign("epoch 5 has begun")),
    "another leader": (facts(), document(leader="n2"), Resign("the document names another leader")),
    "its tokens are spent": (facts(is_spent=True), DOCUMENT, Stand(OLD)),
    "its tokens are spent and it is frozen": (facts(is_spent=True), document(freeze=FROZEN), Stand(OLD)),
    "its tokens are spent and it is deposed": (facts(is_spent=True), document(epoch=5),
                                               Resign("epoch 5 has begun")),
    "another life": (facts(), document(boot="before"), Resign("the document names another leader")),
    "the horizon is near": (facts(horizon_ms=9_000), DOCUMENT, Write(document(horizon_ms=9_000))),
    "the horizon is far": (facts(horizon_ms=4_000), DOCUMENT, Rest()),
    "a learner is placed": (facts(owners=NEW), DOCUMENT, Write(document(learners=("n4",)))),
    "a learner has not filled": (facts(owners=NEW), document(learners=("n4",)), Rest()),
    "a learner has filled": (facts(owners=NEW, filled=["n4"]), document(learners=("n4",)), Stand(NEW)),
    "a learner has filled and is gone": (
        facts(owners=NEW, filled=["n4"], live={name: EVERYBODY[name] for name in OLD}),
        document(learners=("n4",)), Rest()),
    "the leader is not in the next cohort": (
        facts(owners=("n2", "n3", "n4"), filled=["n4"]), document(learners=("n4",)),
        Yield(("n2", "n3", "n4"), ("n2", "n3", "n4"))),
    "the first of the cohort is back": (
        facts(**LEADS_FOR_N1, steady=["n1"]), document(leader="n2", boot="boot of n2"), Yield(("n1",), OLD)),
    "the first of the cohort is not steady": (
        facts(**LEADS_FOR_N1), document(leader="n2", boot="boot of n2"), Rest()),
    "the first of the cohort is gone": (
        facts(me=EVERYBODY["n2"], live=heir().live, steady=["n1"]), document(leader="n2", boot="boot of n2"),
        Rest()),
    "the first of the cohort fills again": (
        facts(**LEADS_FOR_N1, steady=["n1"], suspects={"n1": "wiped"}),
        document(leader="n2", boot="boot of n2", quarantine=(Quarantine("n1", "", "wiped", NOW),)), Rest()),
    "the first of the cohort is back while frozen": (
        facts(**LEADS_FOR_N1, steady=["n1"]), document(leader="n2", boot="boot of n2", freeze=FROZEN),
        Rest("held by an operator")),
    "somebody counts on a cohort of which nothing came": (facts(strays=["n4"]), DOCUMENT, Stand(OLD)),
    "a move ends that too": (
        facts(owners=NEW, filled=["n4"], strays=["n5"]), document(learners=("n4",)), Stand(NEW)),
    "a learner that is fresh waits while all voters are able": (
        facts(owners=NEW, filled=["n4"], fresh=["n4"]), document(learners=("n4",)), Rest()),
    "a learner that is fresh takes a dead voter's seat": (
        facts(owners=NEW, filled=["n4"], fresh=["n4"], live={name: EVERYBODY[name] for name in NEW}),
        document(learners=("n4",)), Stand(NEW)),
    "a learner that is about to stop gets no seat": (
        facts(owners=NEW, filled=["n4"], leavers=["n4"]), document(learners=("n4",)), Rest()),
    "a node that is about to stop yields to the others": (
        facts(is_leaving=True), DOCUMENT, Yield(("n2", "n3"), OLD)),
    "it yields last to a node that has just started, which may not grant yet": (
        facts(is_leaving=True, fresh=["n2"]), DOCUMENT, Yield(("n3", "n2"), OLD)),
    "two that are about to stop do not yield to each other": (
        facts(is_leaving=True, leavers=["n2"]), DOCUMENT, Yield(("n3",), OLD)),
    "nobody is left to yield to": (
        facts(is_leaving=True, leavers=["n2", "n3"]), DOCUMENT, Rest("no other node can lead")),
    "a node that is about to stop does not yield while frozen": (
        facts(is_leaving=True), document(freeze=FROZEN), Rest("held by an operator")),
    "the first of the cohort is about to stop": (
        facts(**LEADS_FOR_N1, steady=["n1"], leavers=["n1"]), document(leader="n2", boot="boot of n2"), Rest()),
    "nothing moves while frozen": (
        facts(owners=NEW, filled=["n4"]), document(learners=("n4",), freeze=FROZEN), Rest("held by an operator")),
    "nothing moves in solo mode": (
        facts(owners=NEW, filled=["n4"]), document(learners=("n4",), mode="solo"), Rest("held by an operator")),
    "a node that is about to stop yields in solo mode, which holds the cohort": (
        facts(is_leaving=True), document(mode="solo"), Yield(("n2", "n3"), OLD)),
    "nobody is left to yield to in solo mode": (
        facts(is_leaving=True, leavers=["n2", "n3"]), document(mode="solo"), Rest("no other node can lead")),
    "the first of the cohort is back in solo mode": (
        facts(**LEADS_FOR_N1, steady=["n1"]), document(leader="n2", boot="boot of n2", mode="solo"),
        Rest("held by an operator")),
    "upkeep comes before a move": (
        facts(owners=NEW, filled=["n4"], horizon_ms=9_000), document(learners=("n4",)),
        Write(document(learners=("n4",), horizon_ms=9_000))),
    "a wish is obeyed": (facts(), document(promote=Promotion("p", "lead", "n3", 4, NOW + 1, "op")),
                         Yield(("n3",), ("n3", "n1", "n2"))),
    "a wish for a successor is obeyed": (*wished("reorder", "n3"), Stand(("n1", "n3", "n2"))),
    "a successor is the first already": (*wished("reorder", "n2"), Write(DOCUMENT)),
    "a wish for balance is obeyed by the first of the owners": (
        facts(owners=("n1", "n3", "n2")), document(promote=attrs.evolve(WISH, kind="rebalance", target="")),
        Stand(("n1", "n3", "n2"))),
    "a wish for balance is obeyed by another one": (
        facts(owners=("n3", "n2", "n1")), document(promote=attrs.evolve(WISH, kind="rebalance", target="")),
        Yield(("n3",), ("n3", "n2", "n1"))),
    "what is in balance stays": (*wished("rebalance", ""), Write(DOCUMENT)),
    "what moves is not balanced meanwhile": (
        facts(owners=NEW), document(learners=("n4",), promote=attrs.evolve(WISH, kind="rebalance", target="")),
        Write(document(learners=("n4",)))),
    "what is no wish is dropped": (*wished("demote", "n3"), Write(DOCUMENT)),
    "a wish for a stranger is dropped": (*wished("lead", "n5"), Write(DOCUMENT)),
    "a wish for the leader is dropped": (*wished("lead", "n1"), Write(DOCUMENT)),
    "a wish for a node that is about to stop is dropped": (
        facts(leavers=["n3"]), document(promote=WISH), Write(DOCUMENT)),
    "a wish waits while frozen": (facts(), document(promote=WISH, freeze=FROZEN), Rest("held by an operator")),
    "a deposed leader looks at no wish": (facts(), document(promote=attrs.evolve(WISH, epoch=5), epoch=5),
                                          Resign("epoch 5 has begun")),
    "what is malformed is taken out": (facts(), document(malformed={"promote": 7}), Write(DOCUMENT)),
    "what is malformed holds nobody": (heir(), document(malformed={"freeze": "yes"}), Stand(OLD)),
    "a wish of another epoch is dropped": (
        facts(), document(promote=Promotion("p", "lead", "n3", 3, NOW + 1, "op")), Write(DOCUMENT)),
    "a wish that expired is dropped": (
        facts(), document(promote=Promotion("p", "lead", "n3", 4, NOW, "op")), Write(DOCUMENT)),
    "a wish for a suspect is dropped": (
        facts(suspects={"n3": "wiped"}), document(promote=Promotion("p", "lead", "n3", 4, NOW + 1, "op")),
        Write(document(quarantine=(Quarantine("n3", "", "wiped", NOW),)))),
    "a suspect is written down once": (
        facts(suspects={"n3": "wiped"}), document(quarantine=(Quarantine("n3", "", "wiped", 5),)), Rest()),
    "and struck out when it has filled": (
        facts(), document(quarantine=(Quarantine("n3", "", "wiped", 5),)), Write(DOCUMENT)),
}


@pytest.mark.parametrize(("known", "read", "action"), list(CASES.values()), ids=list(CASES))
def test_one_thing_at_a_time(known: Facts, read: Document, action: Action) -> None:
    assert evaluate(known, read, NOW) == action


def test_history_is_never_begun_anew() -> None:
    action = evaluate(heir(remembered=4), Document(), NOW)

    assert isinstance(action, Rest) and "epoch 4" in action.reason


@pytest.mark.parametrize(("owners", "filled", "live", "cohort"), [
    ((), (), EVERYBODY, OLD), (NEW, (), EVERYBODY, OLD), (NEW, ("n4",), EVERYBODY, NEW),
    (NEW, ("n4",), OLD, OLD), (("n3", "n2", "n1"), (), EVERYBODY, ("n3", "n2", "n1")),
    (("n4", "n5", "n1"), ("n5",), EVERYBODY, ("n5", "n1", "n2")),
    (("n4", "n5", "n1"), ("n5",), ("n1", "n3", "n5"), ("n5", "n1", "n3"))])
def test_the_next_voters_are_owners_that_have_the_data_and_present_voters_for_the_rest(
        owners: tuple[str, ...], filled: tuple[str, ...], live: tuple[str, ...], cohort: tuple[str, ...]) -> None:
    assert next_cohort(OLD, owners, filled, live) == cohort


VOTERS = st.lists(st.sampled_from(sorted(EVERYBODY)), min_size=3, max_size=3, unique=True).map(tuple)
SOME = st.sets(st.sampled_from(sorted(EVERYBODY)))


@given(VOTERS, VOTERS, SOME, SOME, SOME)
def test_no_cohort_has_fewer_able_voters_than_the_one_before_it(
        cohort: tuple[str, ...], owners: tuple[str, ...], filled: set[str], able: set[str],
        fresh: set[str]) -> None:
    following = next_cohort(cohort, owners, filled, able, fresh)

    assert len(following) == len({*following}) == len(cohort)
    assert len(able.intersection(following)) >= len(able.intersection(cohort))
    added = [name for name in following if name not in cohort]
    assert able.issuperset(added) and filled.issuperset(added) and {*owners}.issuperset(added)
    displaced = able.intersection(cohort) - {*following}
    assert not displaced or not fresh.intersection(added), "a fresh node took the seat of an able voter"


def test_a_dead_owner_keeps_no_seat_for_which_an_able_voter_would_have_to_leave() -> None:
    """n3 was seated and is dead; n5 comes. Were n2 to leave now, one more death would be the end."""
    assert next_cohort(("n1", "n2", "n3"), ("n1", "n3", "n5"), ["n5"], ["n1", "n2", "n5"]) == ("n1", "n5", "n2")


RAW = st.recursive(st.none() | st.booleans() | st.integers(0, 9) | st.text(max_size=3), lambda inner: (
    st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "kind", "target", "epoch", "until_ms"]),
                                                  inner, max_size=5)), max_leaves=6)


@given(st.fixed_dictionaries({}, optional={"freeze": RAW, "promote": RAW, "mode": RAW}), VOTERS, SOME)
def test_whatever_operators_write_there_is_an_answer_and_it_comes_to_rest(
        written: dict[str, Any], owners: tuple[str, ...], suspects: set[str]) -> None:
    read = Document.decode(json.dumps({**json.loads(DOCUMENT.encode()), **written, "new": 1}).encode())
    known = facts(owners=owners, suspects=dict.fromkeys(suspects, "why"))
    action = evaluate(known, read, NOW)
    if isinstance(action, Write):
        assert action.document.unknown == {"new": 1}
        assert not isinstance(evaluate(known, action.document, NOW), Write)
    assert read.malformed.keys() <= {"freeze", "promote", "mode"}
    assert not isinstance(evaluate(heir(), read, NOW), Write)


def test_time_alone_ends_what_operators_hold_and_wish() -> None:
    assert next_change_ms(document(freeze=attrs.evolve(FROZEN, until_ms=7_000), promote=WISH), NOW) == NOW + 1
    assert next_change_ms(document(freeze=attrs.evolve(FROZEN, until_ms=7_000)), NOW) == 7_000
    assert next_change_ms(document(freeze=FROZEN), NOW) == next_change_ms(DOCUMENT, NOW) > 1 << 60


def test_whom_an_operator_wished_for_comes_first_unless_there_was_a_leader_since() -> None:
    assert by_wish(document(promote=WISH), OLD) == ["n3", "n1", "n2"]
    assert by_wish(document(promote=attrs.evolve(WISH, epoch=3)), OLD) == by_wish(DOCUMENT, OLD) == [*OLD]
