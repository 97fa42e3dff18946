"""Mutants of what is kept of partition documents, and of who reads it."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

KEPT = ("tests/runtime/zookeeper/test_registry.py::"
        "test_each_revision_is_kept_with_its_writer_and_its_time_and_the_oldest_go")
BOUND = "tests/runtime/zookeeper/test_documents.py::test_a_read_syncs_first_and_a_swap_names_its_version"
RECALLING = "tests/node/test_recalling.py::"


def _seen_by(test: str, name: str, rule: str, place: str, old: str, new: str) -> Mutant:
    return mutant(name, rule, place, old, new, "O5", test, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
    _seen_by(RECALLING + "test_who_asks_for_less_does_not_shorten_what_another_is_told",
             "shortened-by-another", "a history that was asked for less answers for one that was asked for all",
             "Recalling.on_read", " or event.most < self._most", ""),
    _seen_by(KEPT, "history-without-end", "of a history the oldest go", "Histories.settle",
             "            with suppress(KazooException, KazooTimeoutError):  # the next one prunes\n"
             "                self._prune(partition)\n", "            pass\n"),
    _seen_by(KEPT, "history-of-horizons", "revisions that come by the clock push no others out", "Histories.enter",
             '"u" if revision.is_routine else "r"', '"r"'),
    _seen_by(KEPT, "history-by-its-writers-clock", "the time of a revision is ZooKeeper's", "Histories._revision",
             "stat.ctime", "0"),
    _seen_by(KEPT, "history-lost-for-good", "folders that somebody took away are made again", "Histories.settle",
             "self._made.clear()", "pass"),
    _seen_by("tests/runtime/zookeeper/test_documents.py::test_a_read_syncs_first_and_a_swap_names_its_version",
             "revision-without-a-history", "a revision is written with its history", "Documents._request",
             "        self._histories.enter(transaction, effect)\n", ""),
    _seen_by(BOUND, "swap-of-any-document", "a swap is bound to the document that it was made of",
             "Histories.bind", "transaction.check(path, put_back)", "pass"),
    _seen_by(BOUND, "put-back-twice-alike", "who puts a document back says so to whoever made a swap before",
             "Histories.bind", 'transaction.set_data(path, b"", version=put_back - 1)', "pass"),
    _seen_by(BOUND, "bound-to-what-was-taken-away", "what swaps are bound to is made anew as the document says",
             "Histories.make", "min(effect.document.put_back - (effect.version < 0), RAISED_MAX)", "0"),
    _seen_by("tests/node/test_putting_back.py::"
             "test_a_swap_that_was_decided_before_the_deletion_finds_no_document_of_its_version",
             "put-back-as-it-was", "a document says how often it was put back", "Candidacy._put_back",
             "put_back=gone.document.put_back + 1", "put_back=gone.document.put_back"),
    _seen_by("tests/node/test_putting_back.py::"
             "test_another_document_of_the_version_that_its_leader_knows_is_noted",
             "known-by-its-version", "a document is known by who wrote it, too", "Candidacy._heed",
             "(event.version, event.document.write_id) != (election.version, election.document.write_id)",
             "event.version != election.version"),
    _seen_by("tests/verbs/test_operators.py::"
             "test_revisions_of_one_moment_stay_in_the_order_in_which_they_are_told",
             "history-by-versions", "of one moment revisions stand as they were written",
             "Operating.partition_history", "(-each.at_ms, each.partition)",
             "(-each.at_ms, each.partition, -each.version)"),
    _seen_by(RECALLING + "test_of_many_partitions_it_says_where_to_go_on", "histories-beyond-a-message",
             "an answer has as many histories as it has room for", "Recaller._recall",
             "pages = max(1, REVISIONS_MAX // most)", "pages = STEERED_MAX"),
    _seen_by(RECALLING + "test_what_cannot_be_told_is_refused", "silence-is-no-history",
             "a ZooKeeper that does not answer is no empty history", "Recalling.on_read",
             "if event.revisions is None:", "if False:"),
    _seen_by(RECALLING + "test_who_froze_it_and_who_leads_it_is_told_the_newest_first", "more-than-asked-for",
             "no more is told than was asked for", "Recaller._recall", "min(message.most or REVISIONS_MAX",
             "min(REVISIONS_MAX"),
)
