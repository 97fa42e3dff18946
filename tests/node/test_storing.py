"""In which cohorts copies and answers are counted while voters change."""

from __future__ import annotations

from skuld_py.model.messages import CohortRow
from skuld_py.node.operations.quorum import Need
from skuld_py.partition.leadership.standing import Standing

OLD, NEW = ("n1", "n2", "n3"), ("n3", "n4", "n5")


def need(*have: str) -> Need:
    """Counted by OLD, seated in epoch 2."""
    return Need(2, OLD, {}, dict.fromkeys(have))


def pending(*have: str) -> Need:
    """The same, told that NEW may follow."""
    told = need(*have)
    told.learn(CohortRow(0, 0, NEW))
    return told


def test_a_later_era_counts_besides_ours_until_the_document_confirms_it() -> None:
    known = need("n1", "n2", "n4")
    known.learn(CohortRow(0, 1, NEW))
    assert known.groups == [OLD]

    known.learn(CohortRow(0, 3, NEW))
    assert known.groups == [OLD, NEW]

    known.follow(Standing(3, 3, NEW))
    assert dict.fromkeys(known.groups) == {NEW: None}
    assert known.copies(3) == 1


def test_copies_are_counted_in_every_cohort_that_counts() -> None:
    assert need("n1", "n2", "n4").copies(3) == 2
    assert pending("n1", "n2", "n4").copies(3) == 1
    assert pending("n1", "n3", "n4").copies(3) == 2


def test_in_a_cohort_with_fewer_voters_than_copies_are_wanted_others_count_behind_its_majority() -> None:
    assert need("n1", "n2", "n4").copies(4) == 3
    assert need("n1", "n4", "n5").copies(4) == 1
    assert pending("n1", "n2", "n4").copies(4) == 1


def test_answers_are_counted_in_every_cohort_that_counts() -> None:
    assert need("n1", "n2").is_met()
    assert not pending("n1", "n2", "n4").is_met()
    assert not pending("n3", "n4", "n5").is_met()
    assert pending("n1", "n3", "n4").is_met()
