"""Mutants of what is done to many tasks at once: purged, taken from a holder, found by their errors."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant, script

ERRORS = "tests/node/test_errors.py::"
STORIES = "tests/client/test_verbs.py::"
TAKEN = STORIES + "test_a_story[memory-the_claims_of_a_holder_are_taken_from_it]"
LEFT_OUT = STORIES + "test_what_is_too_old_or_collected_keeps_no_page_from_being_purged"
PURGED = STORIES + "test_a_story[memory-what_is_dead_is_purged_too_and_by_its_error]"

MUTANTS: tuple[Mutant, ...] = (
    mutant("taken-from-all", "claims of other holders are taken, too", "_Choice.suits",
           "task.claims[-1].holder == self.holder", "True", "C1", TAKEN, seeds=0),
    mutant("evicted-by-nothing", "what an operator takes goes on being held", "ClaimRequests._evict",
           "message.request, RELEASED, 0,", "message.request, 2, 60_000,", "C9",
           script("an operator takes a claim from its holder and the task waits again at once"), seeds=0),
    mutant("dead-outlive-a-purge", "what is dead is not purged", "Selecting.purge_all",
           "_TO_COME | _DEAD", "_TO_COME", "C1", PURGED, seeds=0),
    mutant("old-ones-keep-a-page", "what is too old keeps the others of its page from being purged",
           "Selecting._cancelled", "error.code not in _GONE_CODES", "error.code not in _GONE_CODES[1:]", "C1",
           LEFT_OUT, seeds=0),
    mutant("collected-ones-keep-a-page", "what was collected keeps the others of its page from being purged",
           "Selecting._cancelled", "error.code not in _GONE_CODES", "error.code not in _GONE_CODES[:1]", "C1",
           LEFT_OUT, seeds=0),
    mutant("old-ones-asked-till-the-end", "a client asks until its deadline about what is too old",
           "pursuit.FINAL_CODES", 'FINAL_CODES = ("conflict", "too_old")', 'FINAL_CODES = ("conflict",)', "A2",
           "tests/client/test_pursuit.py::"
           "test_what_no_question_changes_is_asked_once_however_much_it_leaves_in_doubt[too_old]", seeds=0),
    mutant("older-error-shown", "of two errors the older one is shown", "merge.join_errors",
           "else max(a, b)", "else min(a, b)", "C1",
           ERRORS + "test_of_all_copies_the_newest_stands_in_whatever_order_they_answer", seeds=0),
    mutant("errors-of-some", "errors are shown though some copy has no place for them", "ListOperation._page",
           "question.with_errors and all(", "question.with_errors and any(", "C1",
           ERRORS + "test_where_one_copy_has_no_place_for_errors_none_are_shown", seeds=0),
    mutant("last-entry-is-error", "whatever stands last in a task's log is taken for its error", "rows.last_error",
           "    if seq == ERROR_SEQ:\n", "    if True:\n", "C1",
           ERRORS + "test_it_is_that_of_the_newest_claim_that_failed_with_one", seeds=0),
)
