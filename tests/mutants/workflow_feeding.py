"""Mutants of the shell that feeds a workflow: what it waits for, says again, and says to people."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

FEEDING = "tests/worker/test_feeding.py::test_"
DIES = FEEDING + "a_feeder_that_dies_is_gone_on_with_by_the_next_claim"
TWO = FEEDING + "of_two_completions_the_one_whose_children_are_there_counts_though_the_other_stands"
OTHER = FEEDING + "a_source_that_gives_other_values_than_before_is_found_out"
ONCE = FEEDING + "leaves_are_sealed_once_though_their_feeder_says_so_again_when_its_ids_are_too_old"
PARTS = FEEDING + "partitions_are_drawn_in_turn_gone_on_with_and_committed"


def _seen_by(test: str, name: str, rule: str, place: str, old: str, new: str) -> Mutant:
    return mutant(name, rule, f"workflows.{place}", old, new, "X3", test, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
    _seen_by(DIES, "feeds-from-the-beginning", "a next claim of a feeder begins anew", "feeding._fed",
             "run(context.resumed)", "run(None)"),
    _seen_by(DIES, "no-checkpoint-of-a-feeder", "a feeder's checkpoint is not written", "feeding.ClientHands.keep",
             "self._client.update(self._claim, checkpoint=checkpoint, number=self._number)", "pass"),
    _seen_by(OTHER, "other-values-for-ever", "a source that gives other values keeps its workflow waiting",
             "feeding.feed", "if refusal.code in HOPELESS:", "if False:"),
    _seen_by(FEEDING + "the_feeder_of_a_workflow_that_has_ended_ends", "feeds-the-dead",
             "a workflow that has ended is fed", "feeding.feed", "if refusal.code in HOPELESS | ENDED_OR_NONE:",
             "if refusal.code in HOPELESS:"),
    _seen_by(TWO, "only-the-standing-result", "what another completion than the standing one emits is unknown",
             "feeding.ClientHands._emission", "decode_result(claim.result)", "None"),
    _seen_by(FEEDING + "all_that_is_drawn_goes_through_and_then_the_input_is_exhausted_and_the_leaves_sealed",
             "leaves-are-left-open", "nobody seals the leaves", "feeding.ClientHands.exhaust",
             "if status.is_sealing:",
             "if False:"),
    _seen_by(ONCE, "sealed-leaves-again", "a leaf that is sealed is gathered again", "feeding.ClientHands.exhaust",
             " if leaf not in status.sealed", ""),
    _seen_by(ONCE, "two-seals-of-a-leaf", "a leaf that is being sealed is gathered beside that by another task",
             "sealing.Sealer._seal", " if payloads[leaf] not in known", ""),
    _seen_by(FEEDING + "children_that_a_worker_left_out_are_emitted", "repairs-nothing",
             "what a worker left out is not enqueued", "feeding.ClientHands.repair",
             "self._client.enqueue_many(lot.queue, lot.payloads, ids=lot.ids, **lot.options)", "pass"),
    _seen_by(FEEDING + "values_are_drawn_in_order_and_again", "drawn-from-anywhere",
             "what is drawn again begins elsewhere", "sequences.Sequential._go",
             "self._begin(), [], 0, NO_MARK", "self._begin(), [], offset, NO_MARK"),
    _seen_by(PARTS, "committed-too-early", "an adapter is told that values are processed which are not",
             "partitions.Adapted.settle", "min(rows[part][0], open_from.get(part, rows[part][0]))",
             "rows[part][0]"),
    _seen_by(PARTS, "one-part-alone", "one partition is drawn from as long as it has something",
             "partitions.Adapted.draw", "_written((part + 1) % len(rows), rows)", "_written(part, rows)"),
)
