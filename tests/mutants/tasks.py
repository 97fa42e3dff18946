"""Mutants of how claims and tasks end: failing, snoozing, releasing; cancelling; dying and coming back."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

JUDGING, HISTORY, REFERRING = "node/judging.py", "model/history.py", "node/referring.py"
OUTCOMES = "tests/node/test_outcomes.py::"
OPEN = "    if history.completion.value is not None or history.newest_token != token or claim is None:\n"

MUTANTS: tuple[Mutant, ...] = (
    mutant("late-fail-accepted", "a claim is ended after its lease, or renewed", JUDGING,
           "    return None if claim.kind or claim.end.value < now_ms else claim\n",
           "    return None if claim.kind else claim\n", "C9",
           OUTCOMES + "test_a_word_that_comes_after_the_lease_or_from_an_older_claim_changes_nothing", seeds=0),
    mutant("old-token-fails", "an older claim is ended, or renewed", JUDGING, OPEN,
           "    if history.completion.value is not None or claim is None:\n", "C9",
           OUTCOMES + "test_only_the_newest_claim_of_an_open_task_is_open_whatever_leases_are_known", seeds=0),
    mutant("completed-is-failed", "a claim of a completed task is ended", JUDGING, OPEN,
           "    if history.newest_token != token or claim is None:\n", "C9",
           OUTCOMES + "test_nothing_ends_the_claim_of_a_completed_task", seeds=0),
    mutant("second-word-stands", "a claim that has ended is ended otherwise", JUDGING,
           "    return None if claim.kind or claim.end.value < now_ms else claim\n",
           "    return None if claim.end.value < now_ms else claim\n", "C9",
           OUTCOMES + "test_to_say_it_again_is_the_same_word_and_another_word_comes_too_late", seeds=0),
    mutant("same-word-is-lost", "who says it again is told that the claim is lost", JUDGING,
           "        if said is not None and said.kind == kind:\n", "        if False:\n", "A1",
           OUTCOMES + "test_a_question_whose_answer_was_lost_is_not_told_that_the_claim_is", seeds=0),
    mutant("cancelled-is-granted", "a cancelled task is granted", HISTORY,
           " or self.cancelled.value is not None or", " or", "C8",
           OUTCOMES + "test_a_leader_that_missed_the_cancelling_is_told_by_its_followers"),
    mutant("cancel-not-told", "a holder is not told that its task is cancelled", JUDGING,
           "        if history.cancelled.value is not None:\n", "        if False:\n", "A3",
           OUTCOMES + "test_the_holder_of_a_cancelled_task_learns_it_by_renewing", seeds=0),
    mutant("lapse-not-counted", "a lapsed claim is no attempt", HISTORY,
           "claim.kind == FAILED or (not claim.kind and (", "claim.kind == FAILED or (False and (", "C16",
           OUTCOMES + "test_lapsed_leases_use_up_attempts_and_released_and_snoozed_claims_do_not"),
    mutant("release-counts", "a released or snoozed claim is an attempt", HISTORY,
           "claim.kind == FAILED or (not claim.kind", "claim.kind or (not claim.kind", "C16",
           OUTCOMES + "test_lapsed_leases_use_up_attempts_and_released_and_snoozed_claims_do_not", seeds=0),
    mutant("revive-keeps-attempts", "a revived task has the attempts of its life before", JUDGING,
           "Mark(row[0], REVIVED, history.round + 1, history.newest_token)",
           "Mark(row[0], REVIVED, history.round + 1, 0)", "C16",
           OUTCOMES + "test_the_last_failure_leaves_a_task_dead_until_it_is_revived_with_new_attempts", seeds=0),
    mutant("alive-is-revived", "a task that is not dead begins anew", JUDGING,
           "            told[row] = m.Revival.NOT_DEAD\n",
           "            told[row] = m.Revival.REVIVED\n"
           "            marks.append(Mark(row[0], REVIVED, history.round + 1, history.newest_token))\n", "C16",
           OUTCOMES + "test_only_a_dead_task_is_revived"),
    mutant("no-backoff", "a failed task waits at once", "model/retrying.py",
           "    return pause - spread + drawn % (2 * spread + 1)\n", "    return 0\n", "C12",
           OUTCOMES + "test_the_pause_grows_by_its_factor_up_to_its_longest_and_jitters_by_data", seeds=0),
    mutant("larger-result-stands", "of two results of a claim each copy keeps the one it had first",
           "partition/replica.py", "for key, old in known.items() if smallest[key] < old]",
           "for key, old in known.items() if False]", "V2",
           OUTCOMES + "test_of_two_results_of_one_claim_copies_that_heard_different_ones_agree", seeds=0),
    mutant("error-on-the-leader-alone", "followers do not record why a claim failed", "partition/vnode.py",
           "            if len(request.errors):\n", "            if False:\n", "D1",
           OUTCOMES + "test_a_failed_task_waits_as_its_policy_says_and_is_claimed_again", seeds=0),
    mutant("unknown-is-lost", "who asked a silent leader is told that the claim is lost", REFERRING,
           "[index for index, verdict in enumerate(known) if verdict is None]", "[]", "A2",
           "tests/node/test_claiming.py", seeds=0),
)
