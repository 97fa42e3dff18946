"""A vnode alone: what it promises, hands over, keeps, records, and remembers over a restart."""

from __future__ import annotations

import attrs
import pytest

from skuld_py.config import DEFAULT_LIMITS, DEFAULT_TIMING, Parameters
from skuld_py.model import messages as m
from skuld_py.model.body import Header
from skuld_py.model.columns import Column, unpack_u64
from skuld_py.model.document import Document, Member
from skuld_py.model.history import token_of
from skuld_py.model.ids import IdMint
from skuld_py.partition.change import Change
from skuld_py.partition.election import Phase
from skuld_py.partition.promise import Promise
from skuld_py.partition.tables import place_of
from skuld_py.partition.vnode import Role, Vnode
from skuld_py.simulation.store import MemoryStore

NOW = 1_000_000
OLD, NEW = ("n1", "n2", "n3"), ("n1", "n2", "n4")
TASK, OTHER = IdMint(1).mint(1_000, 2, 0)
PLACE = place_of(Header("q"))


def vnode(store: MemoryStore | None = None) -> Vnode:
    """That of n1, over a store."""
    made = Vnode(0, Member("n1", "h", 1, "boot"), Parameters("c", "i", 1, 3, 200), store or MemoryStore(),
                 DEFAULT_TIMING, DEFAULT_LIMITS, lambda most: 0)
    if store is None:
        made.replica.store_tasks(NOW, Header("q").encode(), [TASK, OTHER], [b"", b""])
    return made


def restarted(one: Vnode) -> Vnode:
    """After a commit and a crash."""
    assert isinstance(one.store, MemoryStore)
    one.store.commit()
    one.store.crash()
    return vnode(one.store)


def ballot(epoch: int, *, is_trial: bool = False, cohort: tuple[str, ...] = OLD) -> m.RequestVote:
    return m.RequestVote(0, epoch, cohort, is_trial)


def grant(epoch: int, task_id: bytes = TASK) -> m.Grant:
    return m.Grant(7, 0, epoch, token_of(epoch, 1), NOW, NOW + 1_000, "w", "q", task_id, PLACE[-4:])


def voted(one: Vnode, epoch: int, candidate: str) -> bool:
    vote = one.on_request_vote(NOW, candidate, ballot(epoch), False)
    return vote is not None and vote.is_granted


def claimed(one: Vnode) -> dict[bytes, bytes]:
    return one.replica.histories([TASK, OTHER])


# -- votes -----------------------------------------------------------------------------------------


def test_a_vote_is_for_a_newer_epoch_or_the_same_candidate_again() -> None:
    one = vnode()

    assert voted(one, 3, "n2")
    assert voted(one, 3, "n2")
    assert not voted(one, 3, "n3")
    assert not voted(one, 2, "n2")
    assert voted(one, 4, "n3")


def test_a_promise_outlives_a_restart() -> None:
    one = vnode()
    voted(one, 3, "n2")

    again = restarted(one)

    assert again.promise == Promise(3, "n2")
    assert not voted(again, 3, "n3")


def test_a_trial_changes_nothing() -> None:
    one = vnode()
    assert isinstance(one.store, MemoryStore)
    voted(one, 3, "n2")
    one.store.commit()

    for epoch in (2, 3, 9):
        vote = one.on_request_vote(NOW, "n3", ballot(epoch, is_trial=True, cohort=NEW), False)
        assert vote is not None and vote.is_granted and vote.is_trial

    assert one.promise == Promise(3, "n2")
    assert not one.store.is_staged


def test_who_hears_the_leader_says_no_on_trial_except_to_the_leader_itself() -> None:
    one = vnode()
    one.note_leader("n2", 3)

    answers = [one.on_request_vote(NOW, name, ballot(4, is_trial=True), True) for name in ("n2", "n3")]

    assert [answer is not None and answer.is_granted for answer in answers] == [True, False]


def test_who_voted_leaves_the_candidate_time_and_who_was_asked_on_trial_does_not() -> None:
    one = vnode()

    one.on_request_vote(NOW, "n2", ballot(4, is_trial=True), False)
    assert one.election.next_attempt_ms == 0

    one.on_request_vote(NOW, "n2", ballot(4), False)
    assert one.election.next_attempt_ms > NOW


def test_who_asks_for_votes_says_no_on_trial() -> None:
    one = vnode()
    one.election.phase = Phase.TRYING
    assert one.on_request_vote(NOW, "n2", ballot(4, is_trial=True), False) == m.Vote(0, 4, True, True, 0, 0)

    one.election.phase = Phase.VOTING
    assert one.on_request_vote(NOW, "n2", ballot(4, is_trial=True), False) == m.Vote(0, 4, False, True, 0, 0)

    one.election.phase = Phase.SYNCING
    assert one.on_request_vote(NOW, "n2", ballot(4, is_trial=True), False) == m.Vote(0, 4, True, True, 0, 0)


def test_a_newer_promise_ends_ones_own_leadership() -> None:
    one = leading(3)

    voted(one, 4, "n2")

    assert not one.is_leading
    assert one.election.is_idle


# -- claims handed over ------------------------------------------------------------------------------


def test_claims_are_handed_to_the_candidate_promised_and_nobody_else() -> None:
    one = vnode()
    one.on_grant(NOW, "n2", grant(1))
    voted(one, 3, "n2")

    page = one.on_pull("n2", m.PullClaims(0, 3, b""))

    assert page is not None and page.ids == TASK
    assert one.on_pull("n3", m.PullClaims(0, 3, b"")) is None
    assert one.on_pull("n2", m.PullClaims(0, 2, b"")) is None
    assert one.on_pull("n2", m.PullClaims(0, 4, b"")) is None


def test_claims_are_kept_for_the_candidate_promised_and_nobody_else() -> None:
    giver = vnode()
    giver.on_grant(NOW, "n2", grant(1))
    page = giver.claim_page(b"")

    def kept(epoch: int, candidate: str) -> bool:
        one = vnode()
        voted(one, 3, "n2")
        push = m.PushClaims(0, epoch, b"", b"", page.ids, page.histories, page.places)
        answer = one.on_push(NOW, candidate, push)
        assert bool(claimed(one)) is (answer is not None)
        return answer is not None

    assert [kept(3, "n2"), kept(3, "n3"), kept(2, "n2"), kept(4, "n2")] == [True, False, False, False]


# -- grants ------------------------------------------------------------------------------------------


def test_claims_and_renewals_of_an_older_epoch_are_refused_and_not_recorded() -> None:
    one = vnode()
    one.on_grant(NOW, "n3", grant(1))
    before = claimed(one)
    amend = leading(1, ("n3", "n1", "n2")).amend(NOW, 8, Change())
    voted(one, 3, "n2")

    granted, amended = one.on_grant(NOW, "n3", grant(2, OTHER)), one.on_amend(NOW, "n3", amend)

    assert (granted.is_accepted, granted.promised) == (False, 3)
    assert (amended.is_accepted, amended.promised) == (False, 3)
    assert claimed(one) == before


def test_a_newer_leaders_claims_bind_like_a_vote() -> None:
    one = vnode()

    assert one.on_grant(NOW, "n2", grant(3)).is_accepted
    assert not voted(one, 3, "n3")
    assert restarted(one).promise == Promise(3, "n2")


def test_what_is_vetoed_is_not_recorded() -> None:
    one = vnode()
    one.replica.finish(NOW, [TASK], [5], NOW)
    before = claimed(one)

    answer = one.on_grant(NOW, "n2", m.Grant(7, 0, 1, token_of(1, 1), NOW, NOW + 1_000, "w", "q", TASK + OTHER,
                                             PLACE[-4:] * 2))

    assert answer.is_accepted and unpack_u64(answer.vetoed) == (0,)
    assert claimed(one)[one.replica.prefix + TASK] == before[one.replica.prefix + TASK]
    assert one.replica.prefix + OTHER in claimed(one)


def test_nothing_is_granted_before_the_time_set_nor_beyond_the_horizon() -> None:
    one = leading(3)
    one.election.document = Document(3, "n1", no_grant_before_ms=NOW, horizon_ms=NOW + 500)

    assert not one.may_grant_until(NOW - 1, NOW + 100)
    assert one.may_grant_until(NOW, NOW + 500)
    assert one.wanted_horizon_ms == 0
    assert not one.may_grant_until(NOW, NOW + 501)
    assert one.wanted_horizon_ms == NOW + 501


def leading(epoch: int, cohort: tuple[str, ...] = OLD) -> Vnode:
    one = vnode()
    one.promise_to(NOW, epoch, "n1")
    one.election.phase, one.election.epoch, one.election.cohort = Phase.LEADING, epoch, cohort
    assert one.is_leading
    return one


# -- suspicion -----------------------------------------------------------------------------------------


def test_a_leader_that_learns_of_a_newer_leadership_resigns() -> None:
    one = leading(4)
    one.settle(NOW, 4, 4, OLD)
    assert one.is_leading

    one.settle(NOW, 5, 5, ("n2", "n3", "n4"))

    assert not one.is_leading
    assert one.election.is_idle


def suspect() -> Vnode:
    """It has forgotten what it promised."""
    one = vnode()
    one.suspicion = "wiped"
    return one


def test_a_suspect_neither_votes_nor_records_claims() -> None:
    one = suspect()

    assert one.on_request_vote(NOW, "n2", ballot(3), False) is None
    assert one.on_request_vote(NOW, "n2", ballot(3, is_trial=True), False) is None
    assert not one.on_grant(NOW, "n2", grant(3)).is_accepted
    assert not one.on_amend(NOW, "n2", m.Amend(7, 0, 3, b"", Column(), Column())).is_accepted
    assert claimed(one) == {}


def test_a_suspect_is_trusted_with_the_others_newest_promise_as_one_to_nobody() -> None:
    one = suspect()

    one.trust(NOW, 5)

    assert one.suspicion == ""
    assert restarted(one).promise == Promise(5, "")
    assert not voted(one, 5, "n2")
    assert voted(one, 6, "n2")


def test_what_it_keeps_counts_neither_then_nor_until_a_leader_as_new_is_known() -> None:
    one = suspect()
    one.settle(0, 3, 1, OLD)
    assert not one.is_counted

    one.trust(NOW, 5)
    assert not one.is_counted

    one.settle(0, 5, 1, OLD)
    assert one.is_counted


# -- place ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("owners", "cohort", "is_empty", "role"), [
    (OLD, OLD, False, Role.MEMBER), (("n2", "n3", "n4"), OLD, False, Role.MEMBER),
    (OLD, ("n2", "n3", "n4"), False, Role.LEARNER), (OLD, (), True, Role.MEMBER),
    (("n2", "n3", "n4"), ("n2", "n3", "n4"), False, Role.ZOMBIE),
    (("n2", "n3", "n4"), ("n2", "n3", "n4"), True, Role.STRANGER)])
def test_its_role_follows_from_placement_and_cohort(owners: tuple[str, ...], cohort: tuple[str, ...],
                                                    is_empty: bool, role: Role) -> None:
    one = vnode(MemoryStore() if is_empty else None)
    if cohort:
        one.settle(0, 1, 1, cohort)

    assert one.role(owners) is role
    assert one.takes_writes(owners) is (role in (Role.MEMBER, Role.LEARNER))


def test_a_candidacy_that_read_an_older_document_than_stands_there_is_not_pending() -> None:
    """Its swap is bound to what it read; its own epoch may be higher than any that will come for long."""
    one = vnode()
    one.settle(0, 4, 4, OLD)
    one.on_request_vote(NOW, "n2", attrs.evolve(ballot(15, cohort=NEW), base=4), False)
    assert one.standing.groups == (OLD, NEW)

    one.settle(0, 14, 4, OLD)

    assert one.standing.groups == (OLD,)


def test_a_pending_cohort_is_told_of_and_outlives_a_restart() -> None:
    one = vnode()
    one.settle(0, 1, 1, OLD)
    one.on_request_vote(NOW, "n2", ballot(3, cohort=NEW), False)

    again = restarted(one)

    assert [(row.era, row.cohort) for row in again.cohorts_for(1)] == [(0, NEW)]
    assert [(row.era, row.cohort) for row in again.cohorts_for(0)] == [(0, NEW), (1, OLD)]
    again.settle(0, 3, 3, NEW)
    assert [(row.era, row.cohort) for row in again.cohorts_for(1)] == [(3, NEW)]
    assert again.cohorts_for(3) == []
