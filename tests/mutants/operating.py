"""Mutants of what operators hold and wish: the document's watch, freezes, promotions, who leads after them."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

WATCHING = "tests/node/test_watching.py::"


def _seen_by(test: str, name: str, rule: str, place: str, old: str, new: str) -> Mutant:
    return mutant(name, rule, place, old, new, "L2", test, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
    _seen_by(WATCHING + "test_a_leader_acts_by_what_an_operator_wrote", "operators-unheard",
             "a leader sees an operator's wish before its own next write", "Candidacy.on_read",
             "            self._heed(event)\n", "            pass\n"),
    _seen_by(WATCHING + "test_its_own_write_and_another_s_at_once_are_both_seen", "operators-overwritten",
             "what was read while a write was under way is read again", "Candidacy._heed",
             "            self._is_in_doubt = True\n", "            pass\n"),
    _seen_by(WATCHING + "test_who_is_connected_again_reads_all_that_it_keeps", "watches-trusted-over-a-break",
             "who is connected again reads what it keeps", "Watching._note_session",
             "if self._was_connected is False:", "if False:"),
    _seen_by(WATCHING + "test_a_watch_that_was_lost_costs_one_round", "no-round-of-documents",
             "each document is read in turn, watch or not", "Watching.look",
             "if now_ms >= self._poll_ms:", "if False:"),
    _seen_by(WATCHING + "test_nobody_reads_what_it_does_not_keep", "strangers-read-on",
             "a node reads no document of a partition that it does not keep", "Watching.note",
             "if self._is_kept(self._view.vnodes[partition]):", "if True:"),
    _seen_by("tests/runtime/zookeeper/test_documents.py::test_a_read_leaves_one_watch_behind_which_tells_of_a_change"
             "_and_not_of_the_connection", "watches-tell-of-the-weather",
             "a watch that ends with its connection tells of no change", "Documents._on_watch",
             "if event.type != EventType.NONE:", "if True:"),
)
