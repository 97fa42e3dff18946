"""Mutants of what is done to many tasks at once: moved, purged, taken from a holder, found by their errors."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant, script

MOVING, ERRORS = "tests/client/test_moving.py::", "tests/node/test_errors.py::"
AT_ONCE = "tests/client/test_moving_at_once.py::"
DEPS = "tests/node/test_dependencies.py::"
STORIES = "tests/client/test_verbs.py::"
TAKEN = STORIES + "test_a_story[memory-the_claims_of_a_holder_are_taken_from_it]"
LEFT_OUT = STORIES + "test_what_is_too_old_or_collected_keeps_no_page_from_being_purged"
PURGED = STORIES + "test_a_story[memory-what_is_dead_is_purged_too_and_by_its_error]"

MOVED = STORIES + "test_a_story[memory-what_waits_goes_on_in_another_queue_as_it_was]"
STOPPED = STORIES + "test_a_mover_that_stops_halfway_leaves_each_task_to_be_done_once"
DONE_MEANWHILE = STORIES + "test_a_task_completed_while_it_is_moved_is_done_no_second_time"
INSTEAD = script("what is there instead is cancelled when the other one is completed")

MUTANTS: tuple[Mutant, ...] = (
    mutant("let-go-by-completion", "what is there instead of a task runs when that is completed", "verdict_of",
           "        return SUPERSEDED if end is End.DONE else 0\n", "        return 0\n", "C1", INSTEAD,
           DONE_MEANWHILE, seeds=0),
    mutant("let-go-by-any-end", "a copy is let go by its notes whatever they say", "lets_go",
           "        return end is End.FAILED\n", "        return end is End.DONE\n", "C1",
           script("what is there instead goes when the other one is cancelled"), seeds=0),
    mutant("never-superseded", "what is there instead of a completed task waits for ever", "verdict_of",
           "        return SUPERSEDED if end is End.DONE else 0\n",
           "        return None if end is End.DONE else 0\n", "C17", INSTEAD, seeds=0),
    mutant("superseded-is-dead", "what is there instead of a completed task dies, and can be retried",
           "MeetOperation._marks", "if reason == SUPERSEDED else", "if False else", "C1", INSTEAD, seeds=0),
    mutant("instead-by-old-rules", "nodes are given tasks that they take for malformed", "tasks._check_policy",
           "view.rules < INSTEAD_RULES", "False", "A2",
           DEPS + "test_a_task_instead_of_another_one_is_taken_only_by_the_rules_that_all_nodes_know", seeds=0),
    mutant("moved-at-once", "a copy does not wait for the task that it is of", "moving.copy_of",
           "policy=ON_FAILURE_INSTEAD,", "policy=3,", "C1", MOVING +
           "test_a_copy_is_as_the_task_but_for_its_queue_and_is_there_instead_of_the_first_one", DONE_MEANWHILE,
           seeds=0),
    mutant("moved-twice", "who moves again makes another copy", "moving.id_of_copy",
           "hashlib.blake2b(first,", "hashlib.blake2b(__import__('os').urandom(9),", "C1",
           MOVING + "test_its_id_follows_from_the_task_alone_and_fits", STOPPED, seeds=0),
    mutant("moved-to-two-queues", "a task has a copy in each queue to which it is moved", "moving.copy_of",
           "id_of_copy(first), made", "id_of_copy(first + queue.encode()), made", "C1",
           MOVING + "test_its_id_follows_from_the_task_alone_and_fits",
           AT_ONCE + "test_a_task_that_two_move_to_two_queues_at_once_is_done_once", seeds=0),
    mutant("keyed-and-moved", "a task with an ordering key is moved, though its copy's id cannot be made",
           "Moving._moved", "\"keyed\" if ids.is_laned(task.id) else", "\"keyed\" if False else", "A2", MOVED,
           seeds=0),
    mutant("moved-to-a-dead-end", "a task is cancelled whose copy was cancelled before", "Moving._suiting",
           "(ended if found.state in _NEVER_DONE else suiting)", "suiting", "D1",
           AT_ONCE + "test_what_was_purged_where_it_was_moved_to_is_not_cancelled_where_it_is", seeds=0),
    mutant("copy-not-read-again", "a copy that is cancelled while it is made counts", "Moving._moved",
           "if not living:\n", "living = stored\n        if not living:\n", "D1",
           AT_ONCE + "test_what_was_purged_where_it_was_moved_to_is_not_cancelled_where_it_is", seeds=0),
    mutant("moved-elsewhere-is-ended", "a task is told to be left by the end of its first one", "Moving._suiting",
           "task.state not in (\"completed\", \"cancelled\")", "True", "A2",
           AT_ONCE + "test_what_is_done_while_it_is_moved_is_not_left", seeds=0),
    mutant("one-elsewhere-stops-a-move", "one task moved elsewhere at once keeps its page from being moved",
           "Moving._kept", "if error.code not in _ALONE:", "if error.code != \"too_old\":", "C17",
           AT_ONCE + "test_one_that_is_moved_elsewhere_at_once_keeps_no_page_from_being_moved", seeds=0),
    mutant("moved-out-of-order", "copies stand in another order than the tasks", "moving.id_of_copy",
           "first[:_ID_HEAD_BYTES] + digest",
           "first[:8] + bytes([first[8] & 128]) + digest[1:4] + digest", "C4",
           MOVING + "test_copies_stand_in_the_order_of_the_tasks", seeds=0),
    mutant("moved-and-kept", "the first task is not cancelled when it was moved", "Moving._moved",
           "self._cancelled([copy.first for copy in living])", "self._cancelled([copy.id for copy in living])",
           "C1", MOVED, seeds=0),
    mutant("moved-from-under-others", "what others wait for is moved, and they wait for ever", "Moving._copies",
           "if SUB in columns.unpack_u64(row.tokens)", "if False", "C17", MOVED, seeds=0),
    mutant("half-moved-is-tied", "what waits for the copy that is there already is never moved to the end",
           "Moving._suiting", "found = there.get(copy.id)\n",
           "found = None if copy.id in absent else there.get(copy.id)\n", "C17", STOPPED, seeds=0),
    mutant("moved-before-its-needs", "what waits for others is moved, and waits no more for them", "Moving._moved",
           "if {*task.deps} & {*task.blocked_by}", "if False", "C13", MOVED, seeds=0),
    mutant("too-old-stops-a-move", "one task that is too old keeps its page from being moved", "Moving._kept",
           "            if error.code not in _ALONE:\n", "            if True:\n", "C17", STORIES +
           "test_what_is_too_old_to_be_copied_keeps_no_page_from_being_moved", seeds=0),
    mutant("taken-from-all", "claims of other holders are taken, too", "_Choice.suits",
           "task.claims[-1].holder == self.holder", "True", "C1", TAKEN, seeds=0),
    mutant("evicted-by-nothing", "what an operator takes goes on being held", "ClaimRequests._evict",
           "message.request, RELEASED, 0,", "message.request, 2, 60_000,", "C9",
           script("an operator takes a claim from its holder and the task waits again at once"), seeds=0),
    mutant("dead-outlive-a-purge", "what is dead is not purged", "Selecting.purge_all",
           "TO_COME | _DEAD", "TO_COME", "C1", PURGED, seeds=0),
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
