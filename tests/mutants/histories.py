"""Mutants of what is kept of partition documents, and of who reads it."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

KEPT = ("tests/runtime/zookeeper/test_registry.py::"
        "test_each_revision_is_kept_with_its_writer_and_its_time_and_the_oldest_go")
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
