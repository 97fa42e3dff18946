"""A candidacy, answer by answer: what counts as a vote, what must be read and kept before it may lead."""

from __future__ import annotations

import pytest

from skuld_py.config.timing import DEFAULT_TIMING
from skuld_py.model import messages as m
from skuld_py.model.columns import Column
from skuld_py.model.document import NOBODY, Document, Floor, Member, seats_of
from skuld_py.model.events import DocumentSwapped, Effect, Outcome, ReadDocument, Send, SwapDocument
from skuld_py.partition.leadership.election import Election, Phase

OLD, NEW = ("n1", "n2", "n3"), ("n1", "n4", "n5")
NOW = 1_000
CURSORS = (b"", b"1", b"2", b"3", b"4")


def election(cohort: tuple[str, ...] = OLD, *, is_trial: bool = False,
             document: Document | None = None) -> Election:
    """n1 stands for epoch 5 after a leadership over OLD."""
    made = Election(0, Member("n1", "h", 1, "boot"), DEFAULT_TIMING, lambda most: 0)
    made.stand(NOW)
    known = Document(4, "n2", "b", seats_of(OLD), era=1) if document is None else document
    made.choose_epoch(known, 0 if known.epoch else 4)
    made.open(NOW, known, 7, cohort, is_trial=is_trial, cause="test")
    return made


def vote(one: Election, voter: str, *, granted: bool = True, trial: bool = False, epoch: int = 5,
         settled: int = 4) -> Phase:
    one.on_vote(NOW, voter, m.Vote(0, epoch, granted, trial, epoch, settled))
    return one.phase


def test_majorities_of_both_cohorts_elect_and_nothing_less() -> None:
    one = election(NEW)
    for voter in ("n2", "n3"):
        vote(one, voter)
    assert not one.has_votes()
    vote(one, "n4")
    assert one.has_votes()


def test_a_refusal_ends_a_candidacy() -> None:
    assert vote(election(), "n2", granted=False) is Phase.IDLE


def test_on_trial_a_refusal_ends_it_only_when_no_majority_is_left() -> None:
    one = election(is_trial=True)

    assert vote(one, "n2", granted=False, trial=True) is Phase.TRYING
    assert not one.has_votes()
    assert vote(one, "n3", granted=False, trial=True) is Phase.IDLE


@pytest.mark.parametrize(("cohort", "live", "loses"), [
    (NEW, {"n1", "n2", "n3", "n4"}, True), (NEW, {"n1", "n2", "n4", "n5"}, False), (NEW, {"n1", "n2", "n3"}, True),
    (NEW, {"n1", "n2", "n5"}, False), (NEW, {"n1", "n9"}, True), (OLD, {"n1"}, False)])
def test_a_cohort_with_fewer_live_voters_is_not_settled(
        cohort: tuple[str, ...], live: set[str], loses: bool) -> None:
    assert election(cohort).would_lose_votes(live) is loses


def test_the_first_cohort_of_a_partition_has_nothing_to_lose() -> None:
    assert not election(document=NOBODY).would_lose_votes({"n1"})


def test_what_was_said_on_trial_is_no_vote() -> None:
    one = election(is_trial=True)
    vote(one, "n2", trial=True)
    assert one.has_votes()

    one.ask_for_votes(NOW)

    assert not one.has_votes()
    vote(one, "n3", trial=True)
    assert not one.has_votes()
    vote(one, "n3")
    assert one.has_votes()


def test_a_vote_for_another_epoch_does_not_count() -> None:
    for epoch in (4, 6):
        one = election()
        vote(one, "n2", epoch=epoch)

        assert not one.has_votes()


def test_memory_of_a_leader_forbids_to_begin_anew() -> None:
    assert vote(election(document=NOBODY), "n2", settled=3) is Phase.IDLE
    assert vote(election(document=NOBODY), "n2", settled=0) is Phase.VOTING


def test_the_next_epoch_is_above_all_that_voters_have_promised() -> None:
    one = election()
    one.on_vote(NOW, "n2", m.Vote(0, 5, False, False, 9, 4))

    assert one.choose_epoch(Document(4), 6) == 10


# -- claims ----------------------------------------------------------------------------------------


def pulling() -> Election:
    """Elected by n1 and n2."""
    one = election()
    vote(one, "n2")
    assert [effect.peer for effect in one.start_pull(NOW) if isinstance(effect, Send)] == ["n2"]
    return one


def page(one: Election, voter: str, after: bytes, following: bytes, epoch: int = 5,
         now_ms: int = NOW) -> list[Effect]:
    return one.on_page(now_ms, voter, m.ClaimPage(0, epoch, after, following, b"", Column(), Column()))


def test_every_page_of_a_voter_is_read() -> None:
    one = pulling()

    assert page(one, "n2", b"", b"x") == [Send("n2", m.PullClaims(0, 5, b"x"))]
    assert not one.has_pulled()
    assert page(one, "n2", b"", b"") == [], "a page that comes twice"
    assert not one.has_pulled()
    page(one, "n2", b"x", b"", epoch=4)
    page(one, "n3", b"x", b"")
    assert not one.has_pulled()
    page(one, "n2", b"x", b"")
    assert one.has_pulled()


def test_a_new_member_must_have_taken_the_data_over() -> None:
    one = election(NEW)
    for voter in ("n2", "n4"):
        vote(one, voter)
    one.start_pull(NOW)
    page(one, "n2", b"", b"")

    asked = one.start_sync(NOW)

    assert asked == [Send(name, m.Sync(0, 5, NEW, ("n1", "n2"), 4)) for name in ("n4", "n5")]
    one.on_synced("n4", 5)
    one.on_synced("n5", 4)
    assert not one.has_synced()
    one.on_synced("n5", 5)
    assert one.has_synced()


def pushing() -> Election:
    """All that is left is to hand claims on to n2."""
    one = pulling()
    page(one, "n2", b"", b"")
    one.start_sync(NOW)
    assert one.has_synced()
    first = m.PushClaims(0, 5, b"", b"x", bytes(20), Column(), Column())
    assert one.start_push(NOW, first) == [Send("n2", first)]
    return one


def test_every_page_must_be_kept() -> None:
    one = pushing()
    second = m.PushClaims(0, 5, b"x", b"", bytes(20), Column(), Column())

    assert one.on_kept(NOW, "n2", m.ClaimsKept(0, 4, b"", b"x"), second) == []
    assert one.on_kept(NOW, "n2", m.ClaimsKept(0, 5, b"", b"x"), second) == [Send("n2", second)]
    assert not one.has_pushed()
    assert one.on_kept(NOW, "n3", m.ClaimsKept(0, 5, b"x", b""), None) == []
    assert not one.has_pushed()
    one.on_kept(NOW, "n2", m.ClaimsKept(0, 5, b"x", b""), None)
    assert one.has_pushed()


def test_claims_may_take_any_time_as_long_as_the_next_page_comes() -> None:
    """Three pages of the longest wait each are more than any single wait; silence for one is the end."""
    page_ms = DEFAULT_TIMING.page_ms
    one, now_ms = pulling(), NOW
    for number in range(3):
        now_ms += page_ms - 1
        assert one.on_deadline(now_ms) == [] and one.phase is Phase.PULLING
        page(one, "n2", CURSORS[number], CURSORS[number + 1] if number < 2 else b"", now_ms=now_ms)
    one.start_sync(now_ms)
    now_ms += page_ms - 1
    one.start_push(now_ms, m.PushClaims(0, 5, b"", CURSORS[1], bytes(20), Column(), Column()))
    for number in range(3):
        now_ms += page_ms - 1
        assert one.on_deadline(now_ms) == [] and one.phase is Phase.PUSHING
        after, upto, following = CURSORS[number : number + 3]
        one.on_kept(now_ms, "n2", m.ClaimsKept(0, 5, after, upto),
                    m.PushClaims(0, 5, upto, following, b"", Column(), Column()))
    assert one.on_deadline(now_ms + page_ms - 1) == [] and one.phase is Phase.PUSHING

    one.on_deadline(now_ms + page_ms)

    assert one.phase is Phase.IDLE


def test_pages_of_another_voter_or_that_come_again_are_no_progress() -> None:
    one = pulling()
    page(one, "n2", b"", b"x")
    for voter, after in (("n3", b""), ("n2", b"")):
        page(one, voter, after, b"y", now_ms=NOW + DEFAULT_TIMING.page_ms - 1)

    one.on_deadline(NOW + DEFAULT_TIMING.page_ms)

    assert one.phase is Phase.IDLE


# -- the document ------------------------------------------------------------------------------------


def swapping(cohort: tuple[str, ...] = OLD) -> tuple[Election, Document]:
    one = pushing()
    one.cohort = cohort
    (effect,) = one.swap(NOW, {}, Floor())
    assert isinstance(effect, SwapDocument) and effect.version == 7
    return one, effect.document


@pytest.mark.parametrize(("cohort", "era"), [(OLD, 1), (("n3", "n1", "n2"), 1), (NEW, 5)])
def test_the_document_names_the_leader_and_since_when_its_cohort_sits(cohort: tuple[str, ...], era: int) -> None:
    _, document = swapping(cohort)

    assert (document.epoch, document.leader, document.boot, document.cohort) == (5, "n1", "boot", cohort)
    assert document.era == era
    assert document.previous.epoch == 4 and document.previous.cohort == OLD


def test_a_won_swap_leads_a_lost_one_does_not_and_one_of_another_candidacy_is_nothing() -> None:
    for outcome, phase in ((Outcome.WON, Phase.LEADING), (Outcome.LOST, Phase.IDLE)):
        one, document = swapping()
        one.on_swapped(NOW, DocumentSwapped(0, "another", outcome, 8))
        assert one.phase is Phase.SWAPPING
        one.on_swapped(NOW, DocumentSwapped(0, document.write_id, outcome, 8))
        assert one.phase is phase


@pytest.mark.parametrize("is_own", [True, False])
def test_a_swap_in_doubt_is_settled_by_the_write_id_alone(is_own: bool) -> None:
    one, document = swapping()
    asked = one.on_swapped(NOW, DocumentSwapped(0, document.write_id, Outcome.UNCERTAIN))
    assert asked == [ReadDocument(0)] and one.phase is Phase.CONFIRMING

    found = document if is_own else Document(5, "n1", "boot", seats_of(OLD), "another")
    one.confirm(NOW, found, 8)

    assert one.is_leading is is_own
