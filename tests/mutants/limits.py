"""Mutants of limits: who may lend, what counts as lent, when a loan may be used, and who is told of room."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

LEDGER, LENDING, BORROWING = "node/ledger.py", "node/lending.py", "node/borrowing.py"
ACCOUNT = "tests/node/test_ledger.py::"
CLUSTER = "tests/node/test_limits.py::"

MUTANTS: tuple[Mutant, ...] = (
    mutant("limit-ignored", "leaders grant of a limited queue without a loan", "node/settings.py",
           "        return self._lent.get(queue)\n", "        return None\n", "C19",
           CLUSTER + "test_no_more_than_the_limit_are_held_wherever_they_are_asked_for"),
    mutant("loan-without-limit", "the home lends whatever is wanted", LEDGER,
           "            count = min(count, self.free)\n", "            pass\n", "C19",
           ACCOUNT + "test_loans_and_claims_together_stay_at_the_limit"),
    mutant("loan-not-counted", "what was lent and not reported yet does not count", LEDGER,
           " + sum(loan.count for loan in self._loans.values())\n", "\n", "C19",
           ACCOUNT + "test_a_loan_counts_until_its_borrower_reports_without_it"),
    mutant("loan-struck-off-while-open", "a report strikes off the loan that may still be used", LEDGER,
           "borrower == peer and number != open_loan)", "borrower == peer)", "C19",
           ACCOUNT + "test_a_loan_counts_until_its_borrower_reports_without_it", seeds=0),
    mutant("loan-struck-off-at-once", "a report of one partition strikes off the whole loan", LEDGER,
           "                    del loan.left[partition]\n", "                    loan.left.clear()\n", "C19",
           ACCOUNT + "test_a_loan_counts_until_a_later_leader_reports_its_partition", seeds=0),
    mutant("unknown-is-nothing", "a partition that nobody reported counts as empty", LEDGER,
           "        if len(self._used) < self._partitions:\n", "        if False:\n", "C19",
           ACCOUNT + "test_nothing_is_lent_before_every_partition_is_known"),
    mutant("deposed-reports-count", "the last report counts, whoever leads", LEDGER,
           "            if epoch >= self._used.get(partition, (0, 0))[0]:\n", "            if True:\n", "C19",
           ACCOUNT + "test_what_a_deposed_leader_says_later_does_not_count", seeds=0),
    mutant("reports-outlive-limits", "reports by older limits count", LEDGER,
           "        self._used = {}\n        self._bucket", "        self._bucket", "C19",
           ACCOUNT + "test_other_limits_forget_reports_but_no_loans", seeds=0),
    mutant("new-home-lends-at-once", "a new home does not wait for the loans of the one before", LENDING,
           "        opens_ms = since_ms + self._host.timing.loan_ms + self._host.parameters.skew_ms\n",
           "        opens_ms = since_ms\n", "C19",
           CLUSTER + "test_a_new_home_lends_only_when_no_loan_of_the_old_one_can_be_used"),
    mutant("home-asks-nobody", "a home lends without asking whether it leads still", LENDING,
           "        is_home = self.ballots[self._home.partition].has_majority() and ", "        is_home = ", "C19",
           CLUSTER + "test_a_home_that_its_voters_do_not_confirm_lends_nothing", seeds=0),
    mutant("bucket-full-after-change", "a new bucket is full", LEDGER,
           "        self._parts = 0\n", "        self._parts = limits.burst * limits.window_ms\n", "C19",
           ACCOUNT + "test_a_bucket_begins_empty_and_fills_evenly_up_to_its_burst"),
    mutant("lent-tokens-take-no-room", "a bucket fills beside what is lent of it", LEDGER,
           "        room = (self._burst - sum(count for count, _ in self._lent.values())) * self._window_ms\n",
           "        room = self._burst * self._window_ms\n", "C19",
           ACCOUNT + "test_tokens_that_nobody_tells_of_take_their_room_until_they_cannot_be_spent_any_more",
           seeds=0),
    mutant("tokens-lost-unused", "tokens that were lent and not used are gone", LEDGER,
           "        self._parts += max(0, count - used) * self._window_ms\n", "", "C19",
           ACCOUNT + "test_tokens_that_were_not_used_come_back_once", seeds=0),
    mutant("late-loan-used", "a loan is used however late it comes", BORROWING,
           " if is_current and now_ms <= message.until_ms else 0)", " if is_current else 0)", "C19",
           CLUSTER + "test_a_loan_that_comes_late_is_not_used", seeds=0),
    mutant("loan-of-other-limits-used", "a loan by limits that hold no more is used", BORROWING,
           " if is_current and now_ms <= message.until_ms else 0)",
           " if now_ms <= message.until_ms else 0)", "C19",
           CLUSTER + "test_a_loan_by_limits_that_hold_no_more_is_not_used", seeds=0),
    mutant("room-not-told", "nobody says that claims have ended", BORROWING,
           "            self._host.send(home, m.Freed(queue))\n", "            pass\n", "O3",
           CLUSTER + "test_what_ends_makes_room_at_once_for_a_claim_that_waits", seeds=0),
)
