"""Mutants of what is done when most voters, ZooKeeper's data, or a document are lost."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

FORCING = "tests/node/test_forcing.py::"
REBUILDING = "tests/node/test_rebuilding.py::"
PUTTING_BACK = "tests/node/test_putting_back.py::"
OBEY = FORCING + "test_those_who_remain_obey_all_together_while_no_majority_could_vote"
WRITTEN = FORCING + "test_who_remains_is_written_down_and_all_epochs_that_may_be_promised_are_spent"
FITS = REBUILDING + "test_directories_that_do_not_fit_are_refused_by_name"


def _seen_by(test: str, name: str, rule: str, place: str, old: str, new: str) -> Mutant:
    return mutant(name, rule, place, old, new, "C3", test, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
    _seen_by(FORCING + "test_a_majority_that_is_only_cut_off_and_goes_on_renewing_shares_no_task_with_whoever_was"
             "_forced", "forced-without-a-barrier", "a forced leader grants nothing before the old horizon",
             "Election._with_loss", "max(old.no_grant_before_ms, old.horizon_ms + skew_ms)",
             "old.no_grant_before_ms"),
    _seen_by(FORCING + "test_two_of_three_are_lost_and_nothing_is_granted_before_all_that_they_may_have_granted_is"
             "_over", "forced-without-the-skew", "the barrier has the skew in it", "Candidacy._advance",
             "self._floor(), vnode.parameters.skew_ms)", "self._floor())"),
    _seen_by(FORCING + "test_two_of_three_are_lost_and_nothing_is_granted_before_all_that_they_may_have_granted_is"
             "_over", "asleep-behind-the-barrier", "claims that wait are tried when the barrier is over",
             "Candidacy.tend", "if was_barred and not self._is_barred:", "if False:"),
    _seen_by(FORCING + "test_who_remains_renews_no_claim_whose_task_the_lost_may_have_granted_to_another",
             "renewed-before-the-barrier", "who remains renews nothing before the barrier",
             "verdicts.judge_renewals", "if now_ms < vnode.election.document.no_grant_before_ms:", "if False:"),
    _seen_by(FORCING + "test_who_remains_keeps_the_barrier_with_the_data_and_so_does_who_reads_of_it",
             "barrier-kept-by-its-leader-alone", "who reads a document keeps its barrier", "Candidacy.on_read",
             "            self._keep_barrier(document)\n", ""),
    _seen_by(FORCING + "test_who_remains_keeps_the_barrier_with_the_data_and_so_does_who_reads_of_it",
             "barrier-not-kept-by-its-leader", "who leads by a document keeps its barrier", "Candidacy._rise",
             "            self._keep_barrier(election.document)\n", ""),
    _seen_by(FORCING + "test_who_remains_renews_no_claim_whose_task_the_lost_may_have_granted_to_another",
             "called-lost-before-the-barrier", "a claim that may be renewed after a barrier is not called lost",
             "verdicts.judge_renewals", "Verdicts({}, Change(), unknown=rows)", "Verdicts({}, Change())"),
    _seen_by(FORCING + "test_who_remains_renews_no_claim_whose_task_the_lost_may_have_granted_to_another",
             "lost-where-its-leader-cannot-say", "what a leader cannot say is unknown to the client as well",
             "ClaimReferral.verdicts_of", "None if index in unknown else (end_ms, index in cancelled)",
             "(end_ms, index in cancelled)"),
    _seen_by(PUTTING_BACK + "test_one_that_was_written_by_hand_and_deleted_at_once_is_back_though_it_did_not_say"
             "_how_often", "put-back-as-often-as-it-knew", "a leader puts back as often as who reads knows",
             "Candidacy._heed", "            self._gone.note(event.document.put_back)\n", ""),
    _seen_by(PUTTING_BACK + "test_how_often_it_was_put_back_is_heard_whenever_it_is_said",
             "put-back-as-often-as-was-said-last", "who does not know how often takes nothing back",
             "PuttingBack.note", "max(self.document.put_back, put_back)", "put_back"),
    _seen_by("tests/runtime/zookeeper/test_registry.py::"
             "test_a_swap_made_of_a_document_that_was_deleted_is_lost_though_its_version_came_again",
             "gone-and-not-mended", "who reads that there is none says how often it was put back",
             "Documents._gone", "self._mended(partition, NOBODY)", "NOBODY"),
    _seen_by("tests/runtime/zookeeper/test_documents.py::test_a_read_syncs_first_and_a_swap_names_its_version",
             "put-back-into-no-folder", "a document is put back though its folder is gone", "Documents._request",
             'client.create_async(f"{self._root}/partitions", b"")', "pass"),
    _seen_by("tests/runtime/zookeeper/test_restoring.py::"
             "test_a_document_that_is_restored_has_a_revision_that_says_so", "restored-in-silence",
             "the history of a restored document says that it was restored", "restoring._fill",
             "(f\"{root}/history/{partition}/{FIRST}\", revision_of(document, 0, WRITER).encode())]", "]"),
    _seen_by(REBUILDING + "test_a_barrier_stays_whichever_directory_remembers_it", "restored-before-the-barrier",
             "a restore forgets no barrier", "rebuilding._document", "max(barrier_ms, lapse_ms + skew_ms",
             "max(0, lapse_ms + skew_ms"),
    _seen_by(REBUILDING + "test_a_barrier_stays_whichever_directory_remembers_it", "restored-to-a-nearer-horizon",
             "a restore brings no horizon nearer than a barrier", "rebuilding._document",
             "max(lapse_ms, barrier_ms - skew_ms)", "lapse_ms"),
    _seen_by(WRITTEN, "forced-into-a-promised-epoch", "a forced epoch is above all that may be promised",
             "wishes._forced", "spent=document.told_epoch + EPOCHS_AHEAD,", "spent=document.spent,"),
    _seen_by(WRITTEN, "forced-by-the-forgetful", "who has lost its memory does not remain", "wishes._forced",
             "if name in live and name not in suspects)", "if name in live)"),
    _seen_by(FORCING + "test_nobody_is_given_up_without_need", "forced-without-need",
             "nobody is given up where a majority is there", "wishes._forced",
             "if quorum.has_majority(document.cohort, there):", "if False:"),
    _seen_by(OBEY, "forced-against-a-majority", "who remains obeys only while no majority could vote",
             "evaluator.those_who_remain",
             "    if quorum.has_majority(document.cohort, trusted):\n        return ()\n", ""),
    _seen_by(OBEY, "forced-by-some-who-remain", "those who remain stand all together",
             "evaluator.those_who_remain", "all(name in trusted and", "any(name in trusted and"),
    _seen_by(OBEY, "forced-for-ever", "a force is bound to its epoch", "evaluator.those_who_remain",
             "force.epoch != document.epoch or ", ""),
    _seen_by(FORCING + "test_a_leader_takes_out_what_has_no_place_any_more", "force-left-lying",
             "a leader takes out a force that has no place any more", "evaluator._upkeep", " force=None,", ""),
    _seen_by(FORCING + "test_tasks_of_which_those_who_remain_have_only_heard_are_named", "losses-uncounted",
             "what is known to be lost is counted and named", "evaluator._counted",
             "if loss is None or loss.counted_ms or facts.missing is None:", "if True:"),
    _seen_by(FITS, "restored-from-too-few", "a restore wants a majority of every cohort",
             "rebuilding._lacking", "if not has_majority(cohort, trusted):", "if False:"),
    _seen_by(FITS, "restored-by-the-forgetful", "a directory whose memory is in doubt does not count",
             "rebuilding._lacking", "if not memory.is_suspect and node", "if node"),
    _seen_by(FITS, "restored-from-two-clusters", "directories of different clusters are refused",
             "rebuilding._check_alike", "if each.cluster_id != first.cluster_id:", "if False:"),
    _seen_by(REBUILDING + "test_documents_are_above_all_that_was_promised_and_keep_the_voters",
             "restored-into-a-promised-epoch", "restored epochs are above all that may be promised",
             "rebuilding._document", "spent = epoch + EPOCHS_LOST", "spent = epoch"),
    _seen_by(FORCING + "test_who_was_given_up_brings_no_epoch_of_those_who_remained_back",
             "restored-into-a-forced-epoch", "restored epochs are above those of who remained",
             "rebuilding._document", "spent = epoch + EPOCHS_LOST", "spent = epoch + (1 << 10)"),
    _seen_by(REBUILDING + "test_where_a_candidacy_is_open_its_voters_count_and_grants_wait_for_the_last_claim",
             "open-candidacies-forgotten", "a cohort that may have been elected counts", "rebuilding._cohorts",
             "for cohort in (newest.cohort, *open_) if cohort]", "for cohort in (newest.cohort,) if cohort]"),
    _seen_by(REBUILDING + "test_the_log_goes_on_with_the_nodes_that_were_placed_and_without_the_lives_that_were_in"
             "_it", "restored-with-the-dead", "no life of before is a member of a restored cluster",
             "rebuilding._origin", "members={}, roster=(), ", ""),
    _seen_by(PUTTING_BACK + "test_a_leader_that_does_not_know_of_a_newer_one_puts_nothing_back",
             "put-back-over-a-newer-one", "a document is put back only by the newest leader",
             "PuttingBack.is_allowed", " if epoch <= self.document.epoch)])", ")])"),
    _seen_by(PUTTING_BACK + "test_a_document_that_is_deleted_before_its_voters_knew_of_a_leader_is_not_begun_anew",
             "begun-by-the-unknowing", "who finds a history begins nothing anew", "evaluator._found",
             "if facts.remembered or facts.was_there:", "if facts.remembered:"),
    _seen_by("tests/runtime/zookeeper/test_documents.py::test_a_read_syncs_first_and_a_swap_names_its_version",
             "begun-twice-at-once", "ZooKeeper lets a partition be begun once", "Histories.bind",
             "        if effect.is_founding:\n", "        if False:\n"),
    _seen_by(PUTTING_BACK + "test_who_lost_its_disk_trusts_itself_only_where_there_never_was_a_document",
             "forgetful-where-there-was-one", "a node without memory trusts nothing where a document is gone",
             "Moves.on_read", " and not event.was_there:", ":"),
    _seen_by(PUTTING_BACK + "test_silent_voters_are_asked_again", "asked-once-whether-to-put-back",
             "voters that were silent are asked again", "Candidacy.tend",
             "        if self._gone is not None:\n            return self._put_back(now_ms)\n", ""),
)
