"""Mutants of what is done to many tasks at once: moved, purged, taken from a holder, found by their errors."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant, script

MOVING, ERRORS = "tests/client/test_moving.py::", "tests/node/test_errors.py::"
STORIES = "tests/client/test_verbs.py::"
MOVED = STORIES + "test_a_story[memory-what_waits_goes_on_in_another_queue_as_it_was]"
TAKEN = STORIES + "test_a_story[memory-the_claims_of_a_holder_are_taken_from_it]"
PURGED = STORIES + "test_a_story[memory-what_is_dead_is_purged_too_and_by_its_error]"

MUTANTS: tuple[Mutant, ...] = (
    mutant("moved-at-once", "a copy does not wait for the task that it is of", "moving.copy_of",
           "deps=body.deps or (task_id,))", "deps=body.deps)", "C1", MOVING +
           "test_a_copy_is_as_the_task_but_for_its_queue_and_waits_for_the_first_one", seeds=0),
    mutant("moved-twice", "who moves again makes another copy", "moving.id_of_copy",
           "hashlib.blake2b(task_id + queue.encode(),", "hashlib.blake2b(__import__('os').urandom(9),", "C1",
           MOVING + "test_its_id_follows_from_the_task_and_the_queue_and_fits", seeds=0),
    mutant("moved-out-of-order", "copies stand in another order than the tasks", "moving.id_of_copy",
           "task_id[:12] + digest[:4]", "task_id[:8] + bytes([task_id[8] & 128]) + digest[1:4] + digest[:4]", "C4",
           MOVING + "test_copies_stand_in_the_order_of_the_tasks", seeds=0),
    mutant("moved-and-kept", "the first task is not cancelled when it was moved", "Selecting._moved",
           "ask(m.Acked, m.Cancel(0, 0, 0, b\"\".join([task.id for task in tasks])))",
           "ask(m.Acked, m.Enqueue(0, 0, batches))", "C1", MOVED, seeds=0),
    mutant("completed-and-moved", "the copy of a task that was completed meanwhile runs", "Selecting._moved",
           "        if ended:\n", "        if False:\n", "C1", STORIES +
           "test_a_task_that_is_completed_while_it_is_moved_runs_no_second_time", seeds=0),
    mutant("taken-from-all", "claims of other holders are taken, too", "_Choice.suits",
           "task.claims[-1].holder == self.holder", "True", "C1", TAKEN, seeds=0),
    mutant("evicted-by-nothing", "what an operator takes goes on being held", "ClaimRequests._evict",
           "message.request, RELEASED, 0,", "message.request, 2, 60_000,", "C9",
           script("an operator takes a claim from its holder and the task waits again at once"), seeds=0),
    mutant("dead-outlive-a-purge", "what is dead is not purged", "Selecting.purge_all",
           "_TO_COME | _DEAD", "_TO_COME", "C1", PURGED, seeds=0),
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
