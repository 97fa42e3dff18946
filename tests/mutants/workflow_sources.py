"""Mutants of what inputs draw from, and of what happens to what workflows leave behind."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

SOURCES = "tests/worker/test_sources.py::test_"
REAPS = "tests/node/test_reaping.py::test_"
DEFINED = "tests/workflow/test_definitions.py"
PARTS = SOURCES + "each_row_of_a_table_is_in_one_part"
CREDENTIALS = SOURCES + "credentials_are_given_out_for_their_addresses_alone"
QUEUE = SOURCES + "tasks_of_a_queue_are_completed_when_their_roots_are_done"
NEXT = SOURCES + "the_next_life_of_a_feeder_knows_the_tasks_that_the_former_drew"
RENEWED = SOURCES + "claims_are_renewed_while_their_roots_are_under_way"
BEHIND = SOURCES + "what_is_behind_the_cursor_is_not_settled"
DRAWN = SOURCES + "what_a_step_returned_is_drawn"
WAITED = SOURCES + "a_step_that_is_not_finished_is_waited_for"
NEVER = SOURCES + "what_never_will_be_there_ends_the_workflow"
TAKEN = SOURCES + "such_a_step_is_taken_over_from_an_old_workflow"
KILLED = REAPS + "what_waits_for_a_workflow_that_was_killed_is_cancelled_and_for_no_other"
LATE = REAPS + "what_comes_later_is_cancelled_too_and_a_claim_stays_its_holders"
PAGES = REAPS + "it_is_done_in_pages"
COMPLETE = REAPS + "of_a_complete_workflow_its_own_tasks_stay_for_a_while"
ACKS = REAPS + "acks_of_an_input_that_is_exhausted_are_cancelled_while_its_workflow_lives"
FORMER = "tests/workflow/test_former.py::test_"
UNSTORED = FORMER + "a_step_is_not_taken_over_whose_feeder_was_killed_before_it_had_stored_what_it_drew"


def _seen_by(test: str, name: str, rule: str, place: str, old: str, new: str) -> Mutant:
    return mutant(name, rule, place, old, new, "X6", test, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
    _seen_by(PARTS, "rows-without-a-number-left-out", "rows whose column is null are in no part",
             "workflows.parts.wheres", " or {column} is null", ""),
    _seen_by(CREDENTIALS, "passwords-for-any-address", "credentials are given out for any address",
             "worker.credentials.credentials_for", "if url not in (", "if not ("),
    _seen_by(CREDENTIALS, "passwords-for-all-to-read", "a file of passwords that others can read is used",
             "worker.credentials.credentials_for", 'check_private(Path(place), "the passwords")', "pass"),
    _seen_by(QUEUE, "tasks-left-uncompleted", "a queue's tasks are not completed when their roots are done",
             "queued.Queued.settle", "self._complete([*drawn.held.values()])", "pass"),
    _seen_by(NEXT, "hauls-forgotten", "a next life does not know which tasks were drawn",
             "queued.Queued.again", "self._note(offset, _Drawn(ids))", "pass"),
    _seen_by(RENEWED, "claims-not-renewed", "claims of a queue's tasks are not renewed",
             "queued.Queued.tend", "self._clock() < self._renewed_s + RENEW_S", "True"),
    _seen_by(RENEWED, "done-tasks-drawn-again", "a task whose root is done makes another one when it is met",
             "queued.Queued.settle", "self._done.update(", "dict("),
    _seen_by(BEHIND, "settled-behind-the-cursor", "tasks are completed that no checkpoint knows",
             "queued.Queued.settle", 'int.from_bytes(cursor, "big") + 1', "1 << 64"),
    _seen_by(SOURCES + "tasks_of_a_workflow_that_is_killed_wait_again_at_once", "held-by-the-dead",
             "a feeder that ends keeps the queue's tasks", "queued.Queued.close", "if held:", "if False:"),
    _seen_by(DRAWN, "sent-twice-drawn-twice", "what a step sent two ways is drawn twice", "returned.Returned._of",
             "if left[value] > 0:", "if True:"),
    _seen_by(WAITED, "drawn-too-early", "a step that is not finished is drawn from", "returned.returned",
             "not above <= {*standing.exhausted}", "False"),
    _seen_by(NEVER, "drawn-from-the-killed", "a killed workflow's steps count as finished", "returned.returned",
             "standing.state == KILLED and not source.content", "False"),
    _seen_by(SOURCES + "values_of_a_killed_workflow_go_the_ways_that_they_went_there", "routed-anywhere",
             "what was taken over goes to all steps", "workflows.flow.Flow._end_one",
             "if step.is_routed and failure is None:", "if False:"),
    _seen_by(SOURCES + "a_source_whose_cluster_does_not_answer_is_asked_again_from_where_it_was",
             "cut-short-by-an-error", "a source that raised once is taken for exhausted",
             "sequences.Sequential._taken", "            self._at = NOWHERE\n            raise",
             "            raise"),
    _seen_by(DEFINED, "draws-from-its-own-end", "an input waits for its own end", "reading._Reading._check_draws",
             "if of in reached_from(step, after):", "if False:"),
    _seen_by(DEFINED, "waits-for-a-queues-end", "an input waits for the end of a queue",
             "reading._Reading._check_draws", "if isinstance(sources.get(each), Queue):", "if False:"),
    _seen_by(TAKEN, "own-steps-not-rewritten", "an input draws from a step that is not there any more",
             "resuming.resumed", "if step in left and source in taken:", "if False:"),
    _seen_by(FORMER + "what_an_input_draws_from_is_there_when_its_workflow_is_submitted", "submitted-unlooked",
             "a workflow that draws from none is taken", "client.flows.Flowing.submit_workflow", "if not known:",
             "if False:"),
    _seen_by(FORMER + "a_step_whose_input_had_more_to_draw_is_not_taken_over", "taken-over-undrawn",
             "a step is taken over that had more to draw", "client.former.undrawn",
             "if not task.is_completed and not", "if False and not"),
    _seen_by(FORMER + "a_step_with_a_segment_that_is_not_completed_is_not_taken_over", "taken-over-open",
             "a step is taken over whose segments wait", "client.former.undone",
             "if is_open or (", "if ("),
    _seen_by(FORMER + "a_step_with_a_segment_that_is_not_completed_is_not_taken_over", "taken-over-lost",
             "a step is taken over whose segments are dead, or were cancelled", "client.former._has_lost",
             "if split(page.ids):", "if False:"),
    _seen_by(UNSTORED, "taken-over-unstored", "a step is taken over of whose roots the last were never stored",
             "client.former._lacks_roots", "if not {*part} <=", "if False and not {*part} <="),
    _seen_by(UNSTORED, "taken-over-last-batch", "of two batches that were not stored yet one is looked for",
             "client.former._in_hand", "[-IN_HAND_MAX:]", "[-1:]"),
    _seen_by(FORMER + "of_a_feeder_that_was_completed_nothing_is_missing", "taken-over-completed",
             "a step is not taken over though its input was exhausted", "client.former._in_hand",
             "[] if task.is_completed else ", ""),
    _seen_by(FORMER + "a_step_behind_one_that_is_not_finished_is_not_taken_over", "taken-over-behind",
             "a step is taken over for which an earlier one had more", "client.former.behind",
             "step in held or not found.isdisjoint(definition.parents[step])", "step in held"),
    _seen_by(FORMER + "of_a_workflow_that_lives_steps_are_finished_whose_inputs_are_exhausted", "taken-over-alive",
             "a step is taken over of a workflow that goes on", "Flowing._unfinished",
             "return behind(definition, {*definition.inputs} - {*known.exhausted})", "return ()"),
    _seen_by(KILLED, "reaps-nobody", "what waits for a killed workflow waits for ever",
             "reaping.Reaper._is_over", "return is_killed or", "return"),
    _seen_by(KILLED, "reaps-neighbours", "what waits for a live workflow is cancelled",
             "reaping.Reaper._is_over", "if named is None or since_ms is None:", "if named is None:"),
    _seen_by(LATE, "reaps-once", "what comes later is not cancelled", "reaping.Reaper.look",
             "now_ms + (PAGE_MS if is_cut else self._pause_ms)", "now_ms + PAGE_MS if is_cut else NEVER_MS"),
    _seen_by(PAGES, "reaps-all-at-once", "all is cancelled in one page", "reaping.Reaper._reap",
             "room - len(found)", "1 << 20"),
    _seen_by(COMPLETE, "reaps-too-early", "what is about to end is cancelled", "reaping.Reaper._is_over",
             "now_ms >= since_ms + GRACE_MS", "True"),
    _seen_by(ACKS, "acks-for-ever", "acks that nobody hears wait for ever", "reaping.Reaper._is_over",
             "if queue in self._deaf:", "if False:"),
)
