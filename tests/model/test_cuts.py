"""What of a log one read shows, and what it says that it leaves out, of one copy and of several that differ."""

from __future__ import annotations

import random

import pytest

from skuld_py.config import DEFAULT_LIMITS
from skuld_py.model.cuts import WHOLE, Cuts, cut, join_cuts
from skuld_py.model.memory_store import MemoryStore
from skuld_py.model.messages.tasks import ENTRIES_MAX
from skuld_py.model.notes import MET
from skuld_py.model.outcomes import ERROR_SEQ, RESULT_SEQ
from skuld_py.partition.data.replica import Replica

TASK = bytes(20)
FIRST, SECOND, THIRD = (1 << 32 | number for number in range(3))
LARGE = bytes(DEFAULT_LIMITS.entry_bytes)
FITTING = DEFAULT_LIMITS.log_bytes // len(LARGE)

Key = tuple[int, int]


def replica(*logs: tuple[int, int, int], entry: bytes = LARGE) -> Replica:
    """Token, first and end of the numbers of entries."""
    made = Replica(0, MemoryStore(), 200)
    for token, first, end in logs:
        made.append(TASK, token, first, [entry] * (end - first))
    return made


def read(of: Replica) -> tuple[dict[Key, bytes], Cuts]:
    rows, cuts = of.entries(TASK)
    return {(token, seq): data for token, seq, data in rows}, cuts


def test_the_newest_entries_of_the_newest_claim_are_shown() -> None:
    entries, cuts = read(replica((FIRST, 0, 30), (SECOND, 0, 3)))
    start = 30 - FITTING + 3
    assert [*entries] == [(FIRST, seq) for seq in range(start, 30)] + [(SECOND, seq) for seq in range(3)]
    assert cuts == {FIRST: start}


def test_older_claims_go_first_and_are_counted() -> None:
    entries, cuts = read(replica((FIRST, 0, 30), (SECOND, 0, 2), (THIRD, 0, 40)))
    assert [*entries] == [(THIRD, seq) for seq in range(40 - FITTING, 40)]
    assert cuts == {FIRST: 30, SECOND: 2, THIRD: 40 - FITTING}


def test_what_fits_is_not_cut_and_notes_never_are() -> None:
    whole = replica((FIRST, 0, FITTING - 1))
    assert read(whole)[1] == WHOLE
    whole.note(0, MET, 1, [TASK])
    whole.append(TASK, FIRST, FITTING - 1, [LARGE] * 9)
    entries, cuts = read(whole)
    assert (MET, 1) in entries and cuts == {FIRST: 8}


def test_many_small_entries_are_cut_by_their_number() -> None:
    most = DEFAULT_LIMITS.log_entries
    entries, cuts = read(replica((FIRST, 0, most + 5), entry=b"x"))
    assert len(entries) == most and cuts == {FIRST: 5}


def test_an_error_that_is_left_out_is_counted_too() -> None:
    made = replica((FIRST, 0, 3), (SECOND, 0, FITTING))
    made.append(TASK, FIRST, ERROR_SEQ, [b"why"])
    assert read(made)[1] == {FIRST: 4}


def test_what_a_copy_that_is_behind_shows_of_the_beginning_is_left_out() -> None:
    ahead, behind = replica((FIRST, 0, 40)), replica((FIRST, 0, 10))
    entries = {**read(behind)[0], **read(ahead)[0]}
    cuts = join_cuts([read(ahead)[1]], entries)
    shown, left = cut(entries, cuts)
    assert ([*sorted(shown)], left) == ([*read(ahead)[0]], read(ahead)[1])


def test_a_result_that_copies_show_stays_whatever_the_log() -> None:
    """Of a claim that completed its task after a later one had noted more than is shown."""
    entries, cuts = read(replica((FIRST, 0, 3), (SECOND, 0, 40)))
    entries[FIRST, RESULT_SEQ] = b"done"
    shown, left = cut(entries, join_cuts([cuts], entries))
    assert (shown, left) == (entries, cuts)


def test_joined_copies_show_no_more_than_an_answer_holds() -> None:
    """Each is full, of entries and errors, and one has missed the last entries."""
    most = DEFAULT_LIMITS.log_entries
    copies = [replica((FIRST, 0, end), entry=b"x") for end in (most + 5, most)]
    for copy in copies:
        copy.append(TASK, FIRST, ERROR_SEQ, [b"why"])
    said = [read(copy) for copy in copies]
    entries = {**said[0][0], **said[1][0]}
    shown, left = cut(entries, join_cuts([cuts for _, cuts in said], entries))
    assert len(entries) > ENTRIES_MAX == len(shown) and left == {FIRST: 4}


@pytest.mark.parametrize("seed", range(20))
def test_joined_copies_show_what_one_copy_with_all_of_it_would(seed: int) -> None:
    """Copies that lack some of the last entries and no others."""
    rolls = random.Random(seed)
    ends = [rolls.randrange(1, 30) for _ in range(3)]
    tokens = (FIRST, SECOND, THIRD)
    full = replica(*((token, 0, end) for token, end in zip(tokens, ends, strict=True)))
    copies = [full] + [replica(*((token, 0, end) for token, end in zip(tokens, [*ends[:2], rolls.randrange(
        ends[2])], strict=True))) for _ in range(2)]
    said = [read(copy) for copy in copies]
    entries = {key: data for shown, _ in said for key, data in shown.items()}
    shown, left = cut(entries, join_cuts([cuts for _, cuts in said if cuts], entries))
    assert (dict(sorted(shown.items())), left) == read(full)


def test_facts_never_fall_while_a_log_grows() -> None:
    made, before = replica(), 0
    for token in (FIRST, SECOND, THIRD):
        for seq in range(14):
            made.append(TASK, token, seq, [LARGE])
            entries, cuts = read(made)
            facts = len(entries) + sum(cuts.values())
            assert facts == before + 1
            before = facts
        made.append(TASK, token, ERROR_SEQ, [b"why"])
        before += 1
