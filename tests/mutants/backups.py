"""Mutants of backups, of how old directories are recognised, and of tasks that are refused where nobody leads."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

COPIES = "tests/node/test_backups.py::"
FILES = "tests/runtime/test_backup.py::"
UNLED = "tests/node/test_unled.py::"
NEWEST = COPIES + "test_a_copy_of_the_newest_start_is_suspect_when_its_node_starts_on_it_and_no_copy_any_more_then"
CONSENT = COPIES + "test_one_goes_back_to_backups_by_consent_and_behind_all_that_may_have_been_granted_since"
APART = COPIES + "test_one_goes_back_where_nothing_newer_is_there_and_in_no_other_partition"
BESIDE = COPIES + "test_a_backup_beside_a_majority_is_not_relied_on_and_its_node_fills"
ROSTERS = FILES + "test_the_newest_roster_counts_without_the_keys_that_any_knows_to_be_revoked"
CHANGED = FILES + "test_a_backup_with_a_changed_or_missing_byte_is_refused_by_name"
REFUSED = UNLED + ("test_tasks_are_refused_once_their_partition_has_had_no_leader_for_long_and_taken_again"
                   "_afterwards")
MEANWHILE = UNLED + "test_who_was_led_meanwhile_has_had_no_leader_since_then_alone"


def _seen_by(test: str, name: str, rule: str, place: str, old: str, new: str) -> Mutant:
    return mutant(name, rule, place, old, new, "C4", test, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
    _seen_by(NEWEST, "copies-with-the-identity-of-the-disk", "a copy has its own identity", "backup.mark_copy",
             "record_of(Identity(fresh, 1))", "record_of(known)"),
    _seen_by(NEWEST, "copies-for-ever", "a disk on which a node has run is no copy any more",
             "identity.begin_start", "    store.pop_many(\"meta\", [COPY_KEY])\n", ""),
    _seen_by(NEWEST, "copies-as-young-as-their-copies", "a copy of a copy is as old as the first",
             "backup.mark_copy", "load_copied(store) or Copied(", "Copied("),
    _seen_by(COPIES + "test_where_there_is_one_copy_of_each_task_a_node_does_not_start_on_a_backup",
             "started-on-the-only-backup", "without others to fill from no node starts on a backup",
             "start.prepare", "if is_copy and start.verdict is not Verdict.SAME and count() == 1:",
             "if False:"),
    _seen_by(BESIDE, "backups-with-a-say", "a node that starts on a backup beside a majority is rolled back",
             "rebuilding._registration", "remains.identity.starts + is_old", "remains.identity.starts"),
    _seen_by(CONSENT, "gone-back-unasked", "one goes back to old copies by consent alone", "rebuilding.rebuilt",
             "if is_back and back is None:", "if False:"),
    _seen_by(CONSENT, "gone-back-without-a-barrier", "nothing is granted before all is over that may be granted",
             "rebuilding._document", "lapse_ms = max(lapse_ms, lost.now_ms + lost.horizon_ms)", "pass"),
    _seen_by("tests/node/test_backups.py::test_one_goes_back_behind_claims_as_long_as_a_backup_shows",
             "gone-back-beside-long-claims", "it is waited for as long as claims are seen to last",
             "rebuilding._check_far_enough", "if longest_ms > back.horizon_ms:", "if False:"),
    _seen_by("tests/node/test_rebuilding.py::test_a_barrier_that_is_further_away_than_a_horizon_is_named",
             "barriers-far-away-unsaid", "nobody is told that a barrier is further away than any horizon",
             "rebuilding._far", "if not far:", "if True:"),
    _seen_by(CONSENT, "gone-back-into-spent-epochs", "epochs go on far above those that may have been",
             "rebuilding._document", "spent = epoch + EPOCHS_LOST", "spent = epoch + (1 << 10)"),
    _seen_by(APART, "gone-back-everywhere", "one goes back to old copies where nothing newer is there alone",
             "rebuilding.rebuilt", "is_lost = not _has_kept(memories, old)", "is_lost = is_back"),
    _seen_by(APART, "backups-that-vote-beside-the-newest", "an old copy fills where the newest is there",
             "rebuilding._document", "{voter: spent for voter in newest.cohort if voter in forgetful}", "{}"),
    _seen_by(COPIES + "test_an_older_copy_is_known_by_the_log_of_the_others", "older-copies-with-a-say",
             "a directory from before its node's last life is old", "rebuilding.outdated",
             "place.since > each.position", "False"),
    _seen_by(COPIES + "test_an_older_copy_is_known_by_the_log_of_the_others", "who-went-is-old",
             "a node that went last knows no more than when", "rebuilding.outdated", "place.member and ", ""),
    _seen_by(COPIES + "test_an_older_copy_is_known_by_the_votes_that_its_node_asked_for", "forgotten-candidacies",
             "a directory that does not know of its node's candidacy is old", "rebuilding._stood",
             "memory.promised > mine.promised", "False"),
    _seen_by(COPIES + "test_a_partition_in_doubt_makes_no_older_copy_of_its_directory", "in-doubt-and-so-old",
             "what a partition in doubt forgot does not make its directory old", "rebuilding._stood",
             " and not mine.is_suspect", ""),
    _seen_by("tests/node/test_rebuilding.py::test_a_voter_whose_directory_is_not_given_has_lost_its_memory_whatever"
             "_it_starts_with", "restored-without-a-directory", "who was not given is not told of as restored",
             "Rebuilt.nodes", " if entry.incarnation != NOT_GIVEN", ""),
    _seen_by(CHANGED, "unread-backups", "a backup's bytes are those that were written",
             "backup.check_backup", "if found != wanted:", "if False:"),
    _seen_by(CHANGED, "restored-unread", "a restore checks the backups that it is given", "remains.remains_in",
             "        check_backup(directory)\n", "        pass\n"),
    _seen_by(FILES + "test_a_damaged_record_is_not_carried_into_a_backup", "unread-copies",
             "a copy is read through before it is a backup", "backup._checked_rows",
             "raise Corrupt(table, key)", "pass"),
    _seen_by(FILES + "test_what_a_killed_run_has_left_is_taken_away_and_what_a_live_one_makes_is_not",
             "swept-from-under", "what another run makes is left alone", "backup._held",
             "fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)", "pass"),
    _seen_by(FILES + "test_a_node_gives_up_the_snapshot_of_a_process_that_was_killed", "snapshots-of-the-dead",
             "a killed reader does not keep pages", "LmdbStore.commit",
             "self._environment.reader_check()", "pass"),
    _seen_by(ROSTERS, "revoked-keys-restored", "a key that any directory knows to be revoked stays so",
             "kept_roster.roster_of", "newest = newest.revoking(gone)", "pass"),
    _seen_by(ROSTERS, "restored-open", "a cluster with keys is restored with its key alone",
             "kept_roster.roster_of", "        if keyed:\n", "        if False:\n"),
    _seen_by(FILES + "test_who_restores_from_backups_is_told_that_revoked_keys_may_count_again",
             "revoked-keys-back-in-silence", "backups may bring revoked keys back, and that is told",
             "cluster_restore.restore", "forgotten or aged(roster, remains)", "forgotten"),
    _seen_by(FILES + "test_who_restores_from_backups_is_told_that_revoked_keys_may_count_again",
             "keys-of-backups-alone", "the list of keys is as new as the disks that nodes run on",
             "kept_roster.aged", " or all(each.copied is None for each in remains)", ""),
    _seen_by(REFUSED, "unled-and-taken", "by option tasks are refused where nobody leads",
             "Unled.check", "if unled_ms >= limit_ms:", "if False:"),
    _seen_by(REFUSED, "refused-at-once", "an election does not refuse tasks", "Unled.check",
             "if unled_ms >= limit_ms:", "if unled_ms:"),
    _seen_by(MEANWHILE, "unled-since-ever", "who is led when any task comes has had no leader since then alone",
             "Unled.check", "            del self._since[partition]\n", "            pass\n"),
    _seen_by(MEANWHILE, "unled-over-a-leader", "a newer leader begins the time anew", "Unled._unled_ms",
             "max(vnode.standing.epoch, vnode.leader_epoch)", "vnode.standing.epoch"),
    _seen_by(MEANWHILE, "unled-by-hearsay", "a voter goes by since when it has no leader", "Unled._unled_ms",
             "now_ms - (vnode.leaderless_since_ms or met_ms)",
             "now_ms - min(met_ms, vnode.leaderless_since_ms or met_ms)"),
    _seen_by(UNLED + "test_without_the_option_tasks_are_stored_as_ever", "refused-unasked",
             "without the option tasks are stored", "WriteRequests._enqueue",
             "if self._view.timing.refuse_unled:", "if True:"),
)
