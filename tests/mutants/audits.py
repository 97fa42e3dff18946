"""Mutants of what a new leader is held against."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

AUDITING = "tests/node/test_auditing.py::"
SAME = AUDITING + "test_the_floor_is_the_root_of_what_the_leader_has_and_a_leader_with_the_same_is_compared_too"
MISSED = AUDITING + ("test_what_a_leader_missed_of_all_that_was_written_before_it_is_named_though_it_began_with"
                     "_the_same")
NAMED = AUDITING + "test_what_a_new_leader_lacked_is_named_once_a_majority_before_it_was_compared"
UNASKED = AUDITING + "test_what_others_give_a_new_leader_unasked_is_named_too"
WAITS = AUDITING + "test_a_leader_that_was_not_compared_names_whom_it_waits_for"


def _seen_by(test: str, name: str, rule: str, place: str, old: str, new: str) -> Mutant:
    return mutant(name, rule, place, old, new, "C2", test, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
    _seen_by(SAME, "floor-without-a-digest", "a leader writes down with which records it began",
             "Candidacy._floor", "tree.root if tree.is_built else 0", "0"),
    _seen_by(MISSED, "spared-the-comparison", "a leader that began as the one before it did is compared too",
             "Audits._note", "        if vnode.election.is_forced or",
             "        if 0 < before.floor.digest == vnode.election.document.floor.digest or"),
    _seen_by(WAITS, "the-same-records", "people are told whether a leader began with other records",
             "Audits.lacking", "len(roots) > 1 and 0 not in roots", "False"),
    _seen_by(NAMED, "lacked-in-silence", "what a leader lacked is told", "Audits._end_if_through",
             "if gains.gained:", "if False:"),
    _seen_by(NAMED, "lacked-without-a-name", "tasks of which a leader lacked something are named",
             "Audits._end_if_through", "[*gains.named][:NAMED]", "[*gains.named][:0]"),
    _seen_by(UNASKED, "lacked-and-given", "what others give a new leader unasked is counted",
             "Keeper._repair", "if gains := self._view.audited.get(message.partition):", "if gains := None:"),
    _seen_by("tests/partition/test_exchange.py::test_what_was_lacking_is_counted_and_named", "gains-uncounted",
             "an exchange counts what was lacking here", "Exchange._on_fetched",
             "if unit.digest not in (was[unit.key], 0)])", "if False])"),
    _seen_by("tests/partition/test_exchange.py::test_what_was_lacking_is_counted_and_named", "all-that-differs",
             "what only the other side lacked is no gain", "Exchange._on_fetched",
             "if unit.digest not in (was[unit.key], 0)])", "])"),
    _seen_by(NAMED, "enough-by-itself", "a leader is compared with a majority of the voters before it",
             "Audits._end_if_through", "if not has_majority(audit.before.cohort, [self",
             "if False and not has_majority((), [self"),
    _seen_by(WAITS, "waits-in-silence", "a leader that was not compared names whom it waits for",
             "Audits.lacking", "if audit is None or now_ms - audit.since_ms < PATIENCE_MS:", "if True:"),
    _seen_by(AUDITING + "test_a_leader_that_stands_again_owes_what_it_owed_before", "debts-forgiven",
             "a leader that stands again owes what it owed before", "Audits._note",
             "            known.epoch = vnode.epoch\n            return\n", "            pass\n"),
)
