"""Mutants of elections: promises, votes, what a candidate must know and hand on, the swap of the document."""

from __future__ import annotations

from mutants.mutant import Edit, Mutant, mutant
from skuld_py.simulation.guards import TRUSTED_SPEAK

SUCCESSION = "tests/node/test_succession.py::"
GRANTINGS = "tests/node/test_granting.py::"
ELECTIONS = "tests/partition/test_election.py::"
VNODES = "tests/partition/test_vnode.py::"

CRAMPED = ("--profile", "cramped")

MUTANTS: tuple[Mutant, ...] = (
    mutant("vote-not-persisted", "a promise is kept in memory only", "Vnode.promise_to",
           "            self.promise = Promise(epoch, candidate)\n"
           "            save_promise(self.store, self.partition, self.promise)\n",
           "            self.promise = Promise(epoch, candidate)\n", "C7"),
    mutant("vote-persisted-after-the-answer", "a vote leaves before its commit", "Vote",
           "    partition: int = fields.partition()\n    epoch: int = fields.epoch()\n"
           "    is_granted: bool = fields.truth()\n",
           "    is_promise = False\n    partition: int = fields.partition()\n"
           "    epoch: int = fields.epoch()\n    is_granted: bool = fields.truth()\n", "C7"),
    mutant("vote-for-an-equal-epoch", "an epoch promised to one is promised to another too (>= for >)",
           "Promise.allows_vote",
           "return epoch > self.epoch or (epoch == self.epoch and candidate == self.candidate)",
           "return epoch >= self.epoch", "C7"),
    mutant("vote-for-an-older-epoch", "any vote is granted", "Promise.allows_vote",
           "return epoch > self.epoch or (epoch == self.epoch and candidate == self.candidate)",
           "return True", "C7"),
    mutant("vote-while-suspect", "a node that forgot its promises votes", "Vnode.on_request_vote",
           "        if not self.is_trusted:\n            return None\n        if request.is_trial:",
           "        if not self.has_read:\n            return None\n        if request.is_trial:", "D8",
           VNODES + "test_a_suspect_neither_votes_nor_records_claims"),
    mutant("vote-before-the-document", "a node votes before it has read whether its data is an old copy",
           "Vnode.on_request_vote",
           "        if not self.is_trusted:\n            return None\n        if request.is_trial:",
           "        if self.suspicion:\n            return None\n        if request.is_trial:", "C7",
           SUCCESSION + "test_an_old_copy_of_a_leader_s_data_votes_for_nobody_before_it_is_found_out",
           VNODES + "test_before_it_has_read_the_document_it_says_nothing_for_its_partition"),
    mutant("old-copy-not-found-out", "what the document says of a node's vote is not held against its memory",
           "Candidacy._check_memory",
           "        if promised > vnode.promise.epoch and is_same_store and not vnode.suspicion:\n",
           "        if False and promised > vnode.promise.epoch and is_same_store:\n", "C7",
           SUCCESSION + "test_an_old_copy_of_a_leader_s_data_votes_for_nobody_before_it_is_found_out"),
    mutant("claims-handed-over-before-the-document", "claims are handed over before the document was read",
           "Vnode.on_pull",
           "        if not self.is_trusted or self.promise != Promise(request.epoch, candidate):\n"
           "            return None\n        self._serve(now_ms)\n        page = self.claim_page(request.after)\n",
           "        if self.suspicion or self.promise != Promise(request.epoch, candidate):\n"
           "            return None\n        self._serve(now_ms)\n        page = self.claim_page(request.after)\n", "C6",
           VNODES + "test_before_it_has_read_the_document_it_says_nothing_for_its_partition"),
    mutant("claims-kept-before-the-document", "claims are confirmed before the document was read", "Vnode.on_push",
           "        if not self.is_trusted or self.promise != Promise(request.epoch, candidate):\n"
           "            return None\n        self._serve(now_ms)\n        self.join_claims(now_ms, request)\n",
           "        if self.suspicion or self.promise != Promise(request.epoch, candidate):\n"
           "            return None\n        self._serve(now_ms)\n        self.join_claims(now_ms, request)\n",
           "C6",
           VNODES + "test_before_it_has_read_the_document_it_says_nothing_for_its_partition"),
    mutant("grant-before-the-document", "a follower acknowledges claims before it has read the document",
           "Vnode.on_grant",
           "the epoch is beyond belief.\"\"\"\n        if not self.has_read or not self",
           "the epoch is beyond belief.\"\"\"\n        if not self", "C7",
           VNODES + "test_before_it_has_read_the_document_it_says_nothing_for_its_partition"),
    mutant("amend-before-the-document", "a follower acknowledges renewals before it has read the document",
           "Vnode.on_amend",
           "silent when ``on_grant`` is.\"\"\"\n        if not self.has_read or not self",
           "silent when ``on_grant`` is.\"\"\"\n        if not self", "C7",
           VNODES + "test_before_it_has_read_the_document_it_says_nothing_for_its_partition"),
    mutant("suspect-hands-claims-over", "a suspect answers the pull of a candidate it voted for", "Vnode.on_pull",
           "        if not self.is_trusted or self.promise != Promise(request.epoch, candidate):\n"
           "            return None\n        self._serve(now_ms)\n        page = self.claim_page(request.after)\n",
           "        if not self.has_read or self.promise != Promise(request.epoch, candidate):\n"
           "            return None\n        self._serve(now_ms)\n        page = self.claim_page(request.after)\n", "C6",
           VNODES + "test_a_suspect_neither_hands_claims_over_nor_keeps_any", options=CRAMPED,
           guard=TRUSTED_SPEAK),
    mutant("suspect-keeps-claims", "a suspect confirms the push of a candidate it voted for", "Vnode.on_push",
           "        if not self.is_trusted or self.promise != Promise(request.epoch, candidate):\n"
           "            return None\n        self._serve(now_ms)\n        self.join_claims(now_ms, request)\n",
           "        if not self.has_read or self.promise != Promise(request.epoch, candidate):\n"
           "            return None\n        self._serve(now_ms)\n        self.join_claims(now_ms, request)\n",
           "C6",
           VNODES + "test_a_suspect_neither_hands_claims_over_nor_keeps_any", options=CRAMPED,
           guard=TRUSTED_SPEAK),
    mutant("majority-of-the-new-cohort-only", "the old cohort is not asked", "has_joint_majority",
           "return has_majority(old, voters) and has_majority(new, voters)",
           "return has_majority(new, voters)", "C6",
           "tests/partition/test_quorum.py::test_a_joint_majority_needs_both"),
    mutant("majority-of-the-old-cohort-only", "the new cohort is not asked", "has_joint_majority",
           "return has_majority(old, voters) and has_majority(new, voters)",
           "return has_majority(old, voters)", "C6",
           "tests/partition/test_quorum.py::test_a_joint_majority_needs_both"),
    mutant("half-is-a-majority", "n // 2 wins", "quorum.majority",
           "return size // 2 + 1 if size else 0", "return max(1, size // 2) if size else 0", "C4"),
    mutant("strangers-have-votes", "whoever answers counts, in the cohort or not", "quorum.has_majority",
           "return len([name for name in cohort if name in voters]) >= majority(len(cohort))",
           "return len(voters) >= majority(len(cohort))", "C4",
           "tests/partition/test_quorum.py::test_nothing_wins_an_empty_cohort_and_strangers_do_not_count"),
    mutant("refusals-are-votes", "a no counts as a yes", "Election.on_vote",
           "        if is_refounding or (not vote.is_granted and not vote.is_trial):\n"
           "            self.give_up(now_ms)\n            return\n"
           "        self._votes[voter] = vote.is_granted\n",
           "        self._votes[voter] = True\n", "C7", ELECTIONS + "test_a_refusal_ends_a_candidacy"),
    mutant("trial-votes-count", "what was said on trial counts as a vote", "Election.ask_for_votes",
           "        self._enter(Phase.VOTING)\n        self.expires_ms = now_ms + self.timing.vote_ms\n"
           "        self._votes = {self.me.name: True}\n",
           "        self._enter(Phase.VOTING)\n        self.expires_ms = now_ms + self.timing.vote_ms\n", "C6",
           ELECTIONS + "test_what_was_said_on_trial_is_no_vote"),
    mutant("trials-change-promises", "a trial vote is a real one", "Vnode.on_request_vote",
           "            is_granted = self.leader == candidate or not is_taken\n",
           "            is_granted = self.promise_to(now_ms, request.epoch, candidate, request.cohort, request.base)\n", "A4",
           VNODES + "test_a_trial_changes_nothing"),
    mutant("trial-won-against-a-leader", "a voter that hears the leader says yes on trial",
           "Vnode.on_request_vote",
           "            is_granted = self.leader == candidate or not is_taken\n",
           "            is_granted = True\n", "A4",
           VNODES + "test_who_hears_the_leader_says_no_on_trial_except_to_the_leader_itself"),
    mutant("votes-of-another-epoch-count", "a late vote counts for the next candidacy", "Election.on_vote",
           "if self.phase is not (Phase.TRYING if vote.is_trial else Phase.VOTING) or vote.epoch != self.epoch:",
           "if self.phase is not (Phase.TRYING if vote.is_trial else Phase.VOTING):", "C6",
           ELECTIONS + "test_a_vote_for_another_epoch_does_not_count"),
    mutant("no-pull", "a candidate does not read its voters' claims", "Election.has_pulled",
           "self.phase is Phase.PULLING and self._is_allowed_by([*self._done(), self.me.name])",
           "self.phase is Phase.PULLING", "C6",
           SUCCESSION + "test_it_has_read_the_claims_of_its_voters",
           SUCCESSION + "test_it_does_not_lead_without_the_old_cohort_s_claims"),
    mutant("first-page-only", "a candidate reads one page of claims", "Election.on_page",
           "        self._cursors[voter] = page.next or None\n",
           "        self._cursors[voter] = None\n", "C6", ELECTIONS + "test_every_page_of_a_voter_is_read"),
    mutant("no-push", "a candidate does not hand its claims on", "Election.has_pushed",
           "return self.phase is Phase.PUSHING and quorum.has_majority(self.cohort, [*self._done(), self.me.name])",
           "return self.phase is Phase.PUSHING", "C6",
           SUCCESSION + "test_it_does_not_lead_until_a_majority_has_confirmed_them"),
    mutant("claims-to-anybody", "claims pushed by a candidate of an older epoch are confirmed", "Vnode.on_push",
           "        if not self.is_trusted or self.promise != Promise(request.epoch, candidate):\n"
           "            return None\n        self._serve(now_ms)\n        self.join_claims(now_ms, request)\n",
           "        self._serve(now_ms)\n        self.join_claims(now_ms, request)\n", "C6",
           VNODES + "test_claims_are_kept_for_the_candidate_promised_and_nobody_else"),
    mutant("claims-from-anybody", "claims are read from a replica that has promised another epoch",
           "Vnode.on_pull",
           "        if not self.is_trusted or self.promise != Promise(request.epoch, candidate):\n"
           "            return None\n        self._serve(now_ms)\n        page = self.claim_page(request.after)\n",
           "        self._serve(now_ms)\n        page = self.claim_page(request.after)\n", "C6",
           VNODES + "test_claims_are_handed_to_the_candidate_promised_and_nobody_else"),
    mutant("one-wait-for-all-pages-pulled", "a page that was read gives no time for the next one",
           "Election.on_page",
           "        self.expires_ms = now_ms + self.timing.page_ms\n        self._cursors[voter] = page.next or None\n",
           "        self._cursors[voter] = page.next or None\n", "A4",
           ELECTIONS + "test_claims_may_take_any_time_as_long_as_the_next_page_comes"),
    mutant("one-wait-for-all-pages-pushed", "a page that was kept gives no time for the next one",
           "Election.on_kept",
           "        self.expires_ms = now_ms + self.timing.page_ms\n        self._cursors[voter] = next_page",
           "        self._cursors[voter] = next_page", "A4",
           ELECTIONS + "test_claims_may_take_any_time_as_long_as_the_next_page_comes"),
    mutant("pull-and-push-share-one-wait", "handing claims on gets what time is left of reading them",
           "Election.start_push",
           "        self._enter(Phase.PUSHING)\n        self.expires_ms = now_ms + self.timing.page_ms\n",
           "        self._enter(Phase.PUSHING)\n", "A4",
           ELECTIONS + "test_claims_may_take_any_time_as_long_as_the_next_page_comes", seeds=0),
    mutant("served-candidate-disturbed", "who serves a candidate's pages welcomes others, and stands itself",
           "Vnode._serve",
           "        self._serves_until_ms = now_ms + self.timing.vote_ms\n"
           "        self.election.make_way(self._serves_until_ms)\n", "        del now_ms\n", "A4",
           VNODES + "test_who_serves_a_candidate_s_pages_welcomes_no_other_until_it_gets_on_no_more"),
    mutant("swap-in-doubt-is-won", "a swap without an answer counts as success", "Election.on_swapped",
           "        if event.outcome is Outcome.WON:\n            self.version = event.version\n",
           "        if event.outcome is not Outcome.LOST:\n            self.version = event.version\n", "C5"),
    mutant("swap-lost-is-won", "a lost swap counts as success", "Election.on_swapped",
           "        elif event.outcome is Outcome.LOST:\n            self.give_up(now_ms)\n",
           "        elif event.outcome is Outcome.LOST:\n            self._lead()\n", "C5",
           ELECTIONS + "test_a_won_swap_leads_a_lost_one_does_not_and_one_of_another_candidacy_is_nothing"),
    mutant("swap-confirmed-unread", "after a swap in doubt any document confirms it", "Election.confirm",
           "        if document.write_id == self._write_id:\n", "        if document.epoch:\n", "C5"),
    mutant("swap-without-version", "the document is set whatever its revision is", "Documents._request",
           "transaction.set_data(path, raw, version=effect.version)",
           "transaction.set_data(path, raw)", "C5",
           "tests/runtime/zookeeper/test_registry.py::test_of_two_that_swap_the_same_revision_one_wins", seeds=0),
    mutant("restarted-leader-resumes", "a leader goes on in its epoch after a restart", "Candidacy._decide",
           "        document, transfer = event.document, self._election.transfer\n",
           "        document, transfer = event.document, self._election.transfer\n"
           "        if document.leader == self._vnode.me.name:\n"
           "            self._election.epoch, self._election.cohort = document.epoch, document.cohort\n"
           "            self._election.note_written(document, event.version)\n"
           "            self._election.phase = Phase.LEADING\n"
           "            self._rise()\n"
           "            return []\n", "C1"),
    Mutant("leader-beside-its-newer-promise", "who has promised a newer epoch goes on leading", (
        Edit("Vnode.is_leading", "return (election.phase is Phase.LEADING and promise.epoch == election.epoch\n"
             "                and promise.candidate == self.me.name)", "return election.is_leading"),
        Edit("Vnode.promise_to", 'self.resign(now_ms, f"it voted for {candidate}")', "pass")), "C4",
           (VNODES + "test_a_newer_promise_ends_ones_own_leadership",)),
    mutant("leader-beside-a-newer-leader", "a leader that learns of a newer leadership goes on", "Vnode.settle",
           "        if self.election.is_leading and epoch > self.election.epoch:\n            self.resign(now_ms, \"a newer epoch has a leader\")\n",
           "", "C4", VNODES + "test_a_leader_that_learns_of_a_newer_leadership_resigns"),
    mutant("resign-dropped", "a leader that hears of a newer promise goes on", "CohortOperation.record",
           "        elif reply.promised > ballot.epoch and ballot.is_led:\n            ballot.vnode.resign(now_ms, \"a voter has promised a newer epoch\")\n",
           "", "A4", GRANTINGS + "test_a_leader_refused_for_a_newer_promise_resigns"),
    mutant("history-begun-anew", "without a document a new epoch 1 begins, whatever voters remember",
           "Election.on_vote",
           "        is_refounding = vote.settled > 0 and not self.document.epoch\n",
           "        is_refounding = False\n", "C5",
           ELECTIONS + "test_memory_of_a_leader_forbids_to_begin_anew", seeds=0),
    mutant("leader-deaf-to-its-cohort", "a leader without a majority in hearing goes on",
           "Steward._see_to_leadership",
           "        if not has_majority(vnode.election.cohort, heard):\n            vnode.resign(now_ms, \"no majority of its voters is heard\")\n",
           "        if False:\n            vnode.resign(now_ms, \"no majority of its voters is heard\")\n", "A4",
           GRANTINGS + "test_a_leader_that_hears_no_majority_resigns"),
)
