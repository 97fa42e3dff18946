"""Mutants of what keeps workflows apart that had one id, one after the other."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

LIVES = "tests/worker/test_lives.py::test_"


def _lived(name: str, rule: str, place: str, old: str, new: str, test: str) -> Mutant:
    return mutant(name, rule, f"worker.workflows.{place}", old, new, "X2", LIVES + test, seeds=0)


SEGMENTS = "its_segments_do_not_run_and_those_of_the_new_one_do"
GATHERED = "its_values_are_neither_gathered_nor_drawn"
MUTANTS: tuple[Mutant, ...] = (
    _lived("lives-segments", "segments of a former workflow run in the next one", "flow.Flow._check_root",
           "if not run.claim.payload.endswith(life_bytes(step.life)):", "if False:", SEGMENTS),
    _lived("lives-segments-end", "a former workflow's segment that still ran is completed in the next one",
           "flow.Flow._end_one", "            self._check_root(step, run)\n", "",
           "its_segments_that_still_run_complete_nothing_and_emit_nothing"),
    _lived("lives-step-kept", "a worker takes the next workflow for the former", "flow.Flow._step",
           " or known.life != life:", ":", SEGMENTS),
    _lived("lives-checked-by-nobody", "a former workflow's feeder exhausts the next one's input",
           "flow.Flow.check_life", "if alive != life:", "if False:", "its_feeder_exhausts_no_input"),
    _lived("lives-seal", "a former workflow's seal seals the next one's output", "sealing.seal",
           "flow.check_life(workflow, life)", "flow.plan(workflow)", "its_seal_seals_nothing"),
    _lived("lives-gathered", "a former workflow's values are gathered", "gathering._read",
           " or not found.payload.endswith(mark)", "", GATHERED),
    _lived("lives-drawn", "a former workflow's values are drawn", "returned.Returned._read",
           " if task.payload.endswith(mark)", "", GATHERED),
    _lived("lives-seal-again", "a seal is there twice, six days apart", "sealing.Sealer._seal",
           ", *(each.id for place in queues for each in self._client.list(place))]", "]",
           "a_seal_by_name_is_not_enqueued_again_after_its_window"),
    _lived("lives-seal-name", "the next workflow takes a former one's seal for its own",
           "sealing.Sealer._seal", 'f"seal-{leaf}-{self._life}"', 'f"seal-{leaf}"',
           "a_seal_by_name_of_the_former_is_none_of_the_next"),
)
