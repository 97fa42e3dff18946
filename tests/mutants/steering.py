"""Mutants of what operators meet beside faults: doubts, deletions, restores; and of old bugs put back."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

FORCING = "tests/node/test_forcing.py::"
MOVING = "tests/node/test_moving.py::"
OVERSEEING = "tests/node/test_overseeing.py::"
PUTTING_BACK = "tests/node/test_putting_back.py::"
REBUILDING = "tests/node/test_rebuilding.py::"
SIMULATED = "tests/simulation/test_operators.py::"


def _seen_by(test: str, name: str, rule: str, place: str, old: str, new: str) -> Mutant:
    return mutant(name, rule, place, old, new, "C3", test, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
    _seen_by(OVERSEEING + "test_a_wish_that_may_have_been_obeyed_is_not_written_into_a_later_epoch",
             "wished-twice", "a wish in doubt is not written into a later epoch", "Overseeing.on_swapped",
             "if event.outcome is Outcome.UNCERTAIN and self._asked.kind in OF_AN_EPOCH:", "if False:"),
    _seen_by(OVERSEEING + "test_a_request_makes_of_a_document_what_it_says_and_leaves_all_else",
             "let-go-by-who-freezes", "who freezes for a while lets go of nothing that another one holds",
             "wishes._frozen", "not known.until_ms or 0 <", "0 <"),
    _seen_by(OVERSEEING + "test_what_an_operator_holds_is_written_over_what_makes_no_sense", "frozen-in-vain",
             "a freeze takes the place of what makes no sense", "wishes._frozen",
             'malformed=_without(document, "freeze"),', ""),
    _seen_by(OVERSEEING + "test_what_an_operator_holds_is_written_over_what_makes_no_sense", "barred-in-vain",
             "a bar of who is reaped takes the place of what makes no sense", "wishes._reaped",
             '"promote", "barred"', '"promote"'),
    _seen_by(OVERSEEING + "test_who_may_have_been_given_up_is_not_said_to_be_there", "given-up-in-silence",
             "voters that may have been given up are not said to be there", "overseeing.OF_AN_EPOCH",
             "REBALANCE, FORCE)", "REBALANCE)"),
    _seen_by(OVERSEEING + "test_what_may_be_written_yet_is_no_refusal", "refused-and-done",
             "a swap that is under way at the deadline is no refusal", "Overseeing.on_deadline",
             "is_uncertain=bool(write_id)", "is_uncertain=False"),
    _seen_by("tests/client/test_operating.py::test_what_may_have_been_done_is_no_refusal",
             "refused-and-done-by-clients", "what a node does not know of a partition is no refusal",
             "Operating._steer", "        if uncertain:\n", "        if False:\n"),
    _seen_by("tests/client/test_operating.py::test_what_was_asked_before_and_is_refused_now_may_have_been_done",
             "refused-for-having-been-done", "what an earlier request may have done is no refusal",
             "Operating._steer", 'if kind == "force" or epoch else', 'if kind == "force" and epoch else'),
    _seen_by("tests/node/test_held.py::test_what_makes_no_sense_leaves_a_partition_that_nobody_leads_room_for_its_next"
             "_leader", "no-room-for-a-leader", "what makes no sense is taken out by who is elected, too",
             "Election.swap", " malformed={},", ""),
    _seen_by(PUTTING_BACK + "test_what_its_leader_asks_passes_the_wire", "put-back-by-no-wire",
             "what a leader asks before it puts its document back passes the wire", "Candidacy._put_back",
             "                                 gone.document.previous.epoch)",
             "                                 gone.document.epoch)"),
    _seen_by(MOVING + "test_a_wiped_node_trusts_itself_for_no_document_that_somebody_has_deleted",
             "trusted-for-a-deletion", "a wiped node does not trust itself because a document is gone",
             "Moves.on_read", "if len(vnode.owners) < 2:", "if True:"),
    _seen_by(MOVING + "test_nodes_wiped_before_there_was_a_leader_are_trusted_by_what_others_say",
             "never-trusted-again", "nodes wiped before the first leader do not wait for each other",
             "Moves._go_on", "if job.is_unfounded and self._is_known_to_nobody(vnode, job):", "if False:"),
    _seen_by(REBUILDING + "test_the_horizon_is_no_nearer_than_the_end_of_any_claim", "restored-without-a-horizon",
             "a restored horizon is no nearer than the end of any claim", "rebuilding._document",
             "horizon_ms=max(lapse_ms, barrier_ms - skew_ms)",
             "horizon_ms=max(lapse_ms if is_open else 0, barrier_ms - skew_ms)"),
    _seen_by(REBUILDING + "test_a_voter_whose_directory_is_not_given_has_lost_its_memory_whatever_it_starts_with",
             "restored-with-fresh-voters", "a voter that lost its disk before a restore has lost its memory",
             "rebuilding.rebuilt", "{**registrations, **absent_voters}", "registrations"),
    _seen_by(FORCING + "test_those_who_remain_obey_all_together_while_no_majority_could_vote",
             "forced-while-frozen", "what was frozen after an operator's word is not forced", "evaluator._succeed",
             "    elif remaining :=", "    if remaining :="),
    _seen_by(SIMULATED + "test_a_few_seeds_keep_every_promise", "b2-in-the-simulated-world",
             "a write is bound to the revision it was made of", "Candidacy._heed",
             "= False\n            election.note_written(event.document, event.version)\n",
             "= False\n            election.version = event.version\n"),
)
