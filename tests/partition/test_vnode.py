"""A vnode alone: what it promises, hands over, keeps, records, and remembers over a restart."""

from __future__ import annotations

import attrs
import pytest

from skuld_py.config import DEFAULT_LIMITS, Parameters
from skuld_py.config.timing import DEFAULT_TIMING
from skuld_py.model import ids
from skuld_py.model import messages as m
from skuld_py.model.body import Header
from skuld_py.model.columns import Column, unpack_u64
from skuld_py.model.document import Document, Member
from skuld_py.model.history import FAILED, HISTORY_HEAD, SNOOZED, History, encode_claim, epoch_of, token_of
from skuld_py.model.ids import IdMint
from skuld_py.model.memory_store import MemoryStore
from skuld_py.partition.data.change import Change
from skuld_py.partition.data.facts import Amendment
from skuld_py.partition.data.replica import Replica
from skuld_py.partition.data.tables import PRIORITY_BYTES, place_of
from skuld_py.partition.leadership.election import Phase
from skuld_py.partition.leadership.promise import Promise
from skuld_py.partition.vnode import Role, Vnode, _grant_of, _places_of

NOW = 1_000_000
OLD, NEW = ("n1", "n2", "n3"), ("n1", "n2", "n4")
TASK, OTHER = IdMint(1).mint(1_000, 2, 0)
PLACE = place_of(Header("q"))


def vnode(store: MemoryStore | None = None) -> Vnode:
    """That of n1, over a store."""
    made = Vnode(0, Member("n1", "h", 1, "boot"), Parameters("c", "i", 1, 3, 200), store or MemoryStore(),
                 DEFAULT_TIMING, DEFAULT_LIMITS, lambda most: 0)
    made.has_read = True
    made.nodes = ("n1", "n2", "n3", "n4")
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


def test_who_serves_a_candidate_s_pages_welcomes_no_other_until_it_gets_on_no_more() -> None:
    one = vnode()
    voted(one, 3, "n2")

    for now_ms in range(NOW, NOW + 10_000, 900):
        one.on_pull(now_ms, "n2", m.PullClaims(0, 3, b""))
        answers = [one.on_request_vote(now_ms + 800, name, ballot(4, is_trial=True), False)
                   for name in ("n2", "n3")]
        assert [answer is not None and answer.is_granted for answer in answers] == [True, False]
        assert one.election.next_attempt_ms > now_ms + 800
    one.on_push(now_ms + 900, "n2", m.PushClaims(0, 3, b"", b"", b"", Column(), Column()))
    pushed = one.on_request_vote(now_ms + 1_800, "n3", ballot(4, is_trial=True), False)
    late = one.on_request_vote(now_ms + 2_000, "n3", ballot(4, is_trial=True), False)

    assert pushed is not None and not pushed.is_granted
    assert late is not None and late.is_granted


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

    page = one.on_pull(NOW, "n2", m.PullClaims(0, 3, b""))

    assert page is not None and page.ids == TASK
    assert one.on_pull(NOW, "n3", m.PullClaims(0, 3, b"")) is None
    assert one.on_pull(NOW, "n2", m.PullClaims(0, 2, b"")) is None
    assert one.on_pull(NOW, "n2", m.PullClaims(0, 4, b"")) is None


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
    amend = m.Amend(8, 0, 1, b"", Column(), Column())
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


def test_a_leadership_grants_no_more_claims_than_it_has_tokens() -> None:
    one = leading(3)
    one.election.document = Document(3, "n1", horizon_ms=NOW + 500)
    one.granted = DEFAULT_LIMITS.tokens - 1
    assert one.may_grant_until(NOW, NOW + 100) and not one.is_spent

    one.granted += 1

    assert not one.may_grant_until(NOW, NOW + 100) and one.is_spent
    assert DEFAULT_LIMITS.tokens + DEFAULT_LIMITS.batch_tasks < 1 << 32


def test_no_token_is_that_of_another_epoch() -> None:
    assert epoch_of(token_of(3, (1 << 32) - 1)) == 3
    with pytest.raises(AssertionError, match="claim 4294967296 of epoch 3 has no token"):
        token_of(3, 1 << 32)


def leading(epoch: int, cohort: tuple[str, ...] = OLD) -> Vnode:
    one = vnode()
    one.promise_to(NOW, epoch, "n1")
    one.election.phase, one.election.epoch, one.election.cohort = Phase.LEADING, epoch, cohort
    assert one.is_leading
    return one


def long_lived(count: int, claims: int, kind: int = SNOOZED) -> Vnode:
    """A leader of tasks that were claimed, and ended so, many times, and are held now."""
    made = Vnode(0, Member("n1", "h", 1, "boot"), Parameters("c", "i", 1, 3, 200), MemoryStore(), DEFAULT_TIMING,
                 attrs.evolve(DEFAULT_LIMITS, page_bytes=10_000), lambda most: 0)
    made.promise_to(NOW, 2, "n1")
    made.has_read, made.election.epoch, made.election.phase = True, 2, Phase.LEADING
    task_ids = IdMint(2).mint(1_000, count, 0)
    made.replica.store_tasks(NOW, Header("q").encode(), task_ids, [b""] * count)
    ended = [encode_claim(token_of(1, number), NOW - 20, NOW - 10, b"w", kind, NOW - 5)
             for number in range(1, claims)]
    held = encode_claim(token_of(2, 1), NOW, NOW + 1_000, b"w")
    for task_id in task_ids:
        made.replica.merge_history(NOW, task_id, HISTORY_HEAD.pack(0, 0, 0) + b"".join([*ended, held]), None)
    return made


def held_by(one: Vnode) -> list[bytes]:
    return [task_id for _, task_id, _ in one.replica.filing.leases(b"", 99)]


def size_of(page: m.PushClaims | m.Amend) -> int:
    return len(page.ids) + len(page.histories.data) + len(page.places.data)


def test_pages_of_claims_are_cut_by_bytes_and_hold_each_claim_once() -> None:
    one = long_lived(40, 40)
    pages = [one.claim_page(b"")]
    while pages[-1].next:
        pages.append(one.claim_page(pages[-1].next))

    assert len(pages) > 5
    assert max(map(size_of, pages)) <= 10_000 + 500
    assert ids.split(b"".join(page.ids for page in pages)) == held_by(one)
    assert {page.after for page in pages[1:]} == {page.next for page in pages[:-1]}

    heir = vnode(MemoryStore())
    for page in pages:
        heir.join_claims(NOW, page)
    assert heir.replica.histories(ids.split(pages[0].ids)) == one.replica.histories(ids.split(pages[0].ids))


def test_a_page_holds_one_claim_however_long_its_history() -> None:
    one = long_lived(2, 400)

    pages = [one.claim_page(b"")]
    pages.append(one.claim_page(pages[-1].next))

    assert [len(page.ids) for page in pages] == [20, 20]
    assert size_of(pages[0]) > 10_000


def test_a_renewal_does_not_grow_with_what_its_task_has_been_through() -> None:
    one = long_lived(10, 400)
    task_ids = held_by(one)
    renewed = [Amendment(task_id, token_of(2, 1), NOW + 5_000) for task_id in task_ids]

    [page] = one.amend(NOW, Change(renewed))

    assert size_of(page) < 2_000
    other = vnode(MemoryStore())
    other.on_amend(NOW, "n1", attrs.evolve(page, request=7))
    for record in other.replica.histories(task_ids).values():
        claim = History.decode(record).claims.entries[token_of(2, 1)]
        assert (claim.start_ms, claim.end.value, claim.holder) == (NOW, NOW + 5_000, "w")


def test_a_failure_is_recorded_with_the_attempts_before_it() -> None:
    one = long_lived(1, 30, FAILED)
    [task_id] = held_by(one)

    [page] = one.amend(NOW, Change([Amendment(task_id, token_of(2, 1), NOW + 1_000, FAILED, NOW + 2_000)]))

    assert History.decode(page.histories.unpack()[0]).attempts(NOW) == 30


def test_what_a_majority_shall_know_of_a_task_is_told_whole() -> None:
    one = long_lived(1, 30)
    [task_id] = held_by(one)

    [page] = one.amend(NOW, Change(known=[task_id]))

    assert page.histories.unpack() == [*one.replica.histories([task_id]).values()]


def test_a_change_is_cut_into_pages_by_bytes() -> None:
    one = long_lived(40, 2)
    rows = [Amendment(task_id, token_of(2, 1), NOW + 1_000, FAILED, NOW) for task_id in held_by(one)]
    errors = {(row.id, row.token): b"e" * 1_000 for row in rows}

    pages = one.amend(NOW, Change(rows, errors=errors))

    assert len(pages) > 4
    assert b"".join(page.ids for page in pages) == b"".join(row.id for row in rows)
    for page in pages:
        assert size_of(page) + len(page.errors.data) <= 10_000 + 500
        assert len(page.errors) == len(page.tokens) // 8 == len(page.ids) // 20


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
    assert one.on_grant(NOW, "n2", grant(3)) == m.Granted(7, 0, 0, False, b"")
    assert one.on_amend(NOW, "n2", m.Amend(7, 0, 3, b"", Column(), Column())) == m.Amended(7, 0, 0, False)
    assert claimed(one) == {}


def test_a_suspect_neither_hands_claims_over_nor_keeps_any() -> None:
    """It voted before it became one: it met a record that cannot be read, and has started over."""
    one = vnode()
    one.on_grant(NOW, "n2", grant(1))
    page = one.claim_page(b"")
    voted(one, 3, "n2")
    one.suspicion = "damaged"

    assert one.on_pull(NOW, "n2", m.PullClaims(0, 3, b"")) is None
    assert one.on_push(NOW, "n2", attrs.evolve(page, epoch=3)) is None


def test_before_it_has_read_the_document_it_says_nothing_for_its_partition() -> None:
    one = vnode()
    one.on_grant(NOW, "n2", grant(1))
    page = one.claim_page(b"")
    voted(one, 3, "n2")

    again = restarted(one)
    again.has_read = False

    assert again.on_request_vote(NOW, "n2", ballot(4), False) is None
    assert again.on_request_vote(NOW, "n2", ballot(4, is_trial=True), False) is None
    assert again.on_pull(NOW, "n2", m.PullClaims(0, 3, b"")) is None
    assert again.on_push(NOW, "n2", attrs.evolve(page, epoch=3)) is None
    assert again.on_grant(NOW, "n2", grant(3, OTHER)) is None
    assert again.on_amend(NOW, "n2", m.Amend(7, 0, 3, b"", Column(), Column())) is None
    assert not again.is_counted
    assert again.promise == Promise(3, "n2")
    assert [*claimed(again)] == [again.replica.prefix + TASK]


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

    one.place(owners)

    assert one.role is role
    assert one.takes_writes is (role in (Role.MEMBER, Role.LEARNER))


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


def test_each_task_of_a_grant_has_a_place_of_its_own() -> None:
    places = [place_of(Header("q", priority)) for priority in (7, 7, 0)]
    heads = [place + bytes([number]) * 20 for number, place in enumerate(places)]

    assert _places_of("q", heads) == places
    assert _places_of("q", heads[:2]) == places[:2]
    assert _places_of("q", []) == []


def test_a_follower_files_each_task_of_a_grant_where_it_waited() -> None:
    headers = [Header("q", priority) for priority in (7, 7, 0)]
    places, task_ids = list(map(place_of, headers)), IdMint(1).mint(1_000, 3, 0)
    replica = Replica(0, MemoryStore(), 0)
    for header, task_id in zip(headers, task_ids, strict=True):
        replica.store_tasks(NOW, header.encode(), [task_id], [b""])

    for count in (2, 3):
        request = m.Grant(1, 0, 1, token_of(1, 1), NOW, NOW + 50, "me", "q", b"".join(task_ids[:count]),
                          b"".join([place[-PRIORITY_BYTES:] for place in places[:count]]))
        assert _grant_of(request, task_ids[:count]).places == places[:count]
    replica.apply_grant(NOW, _grant_of(request, task_ids))

    assert [(task_id, place) for _, task_id, place in replica.filing.leases(b"", 9)] == [*zip(task_ids, places,
                                                                                               strict=True)]
    assert replica.filing.heads("q", None, 9) == []


def test_who_is_trusted_again_has_promised_the_newest_leader_it_knows() -> None:
    one = vnode()
    one.settle(NOW, 9, 9, OLD)
    one.suspicion = "its disk is new"
    one.trust(NOW, 5)
    assert one.promise == Promise(9, "")
