"""Mutants of the worker's part of workflows: what is refused, what is emitted, when, and what a seal does."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

FLOW = "tests/worker/test_flow.py::test_"
SEALING = "tests/worker/test_sealing.py::test_"
STEPS = ("tests/cli/test_workflow_status.py::test_of_each_step_its_segments_are_shown_by_their_states_and_what_it"
         "_wants")
PAGE = ("tests/cli/test_workflow_status.py::test_of_a_step_with_many_segments_one_page_is_looked_at_for_one_that"
        "_failed")
TROUBLES = "tests/cli/test_workflow_troubles.py::test_"
OVERLAP = "tests/worker/test_flow_worker.py::test_while_one_batch_emits_the_next_ones_run_and_are_written"


def _run(name: str, rule: str, place: str, old: str, new: str, test: str) -> Mutant:
    return mutant(name, rule, f"worker.workflows.{place}", old, new, "X3", test, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
    # whether it lives
    _run("killed-runs-on", "segments of a killed workflow run", "plans.Plans.alive",
         "if kept.standing.state != LIVE:", "if False:", FLOW + "a_segment_of_a_killed_workflow_does_not_run"),
    _run("killed-completes", "a segment is completed whose workflow was killed while it ran", "flow.Flow.end",
         "step = self._asked(runs, lambda: self._step(runs))",
         "step = self._steps[step_of(runs[0].claim.queue)]",
         FLOW + "a_segment_whose_workflow_is_killed_while_it_runs_is_not_completed"),
    _run("asked-for-each", "each segment asks whether its workflow lives", "plans.Plans._look",
         "kept.asked_s + (FRESH_S if fresh_s is None else fresh_s)", "kept.asked_s",
         FLOW + "whether_a_workflow_lives_is_asked_once_for_all_segments_of_a_while"),
    _run("any-plan", "a definition is used that is not what was submitted", "plans.Plans._read",
         "if digest(text) != standing.digest:", "if False:",
         FLOW + "a_definition_that_is_not_what_was_submitted_is_used_by_nobody"),
    _run("any-segment", "a task that anybody put into a step's queue is run", "flow.root_of", "if not tag:",
         "if False:", FLOW + "a_task_that_nobody_made_for_a_workflow_is_refused"),
    _run("any-name-is-called", "a definition has any function called that Python finds", "finding.found",
         'if not function or module.partition(".")[0] not in packages:', "if not function:",
         FLOW + "names_are_those_of_task_functions_and_of_the_applications_modules_alone"),
    _run("imported-function", "a definition has called what the application's modules import", "finding.found",
         "if not inspect.isfunction(value) or value.__module__ != module:", "if not callable(value):",
         FLOW + "names_are_those_of_task_functions_and_of_the_applications_modules_alone"),
    # what is emitted
    _run("emitted-unwritten", "children are enqueued of a completion that is not written", "flow.Flow.written",
         'if what == "completed":', "if True:", FLOW + "nothing_is_emitted_before_the_completion_is_written"),
    _run("emitted-in-doubt", "children are enqueued of a completion that another one may replace",
         "emitting.Emitter._emit", "for each in some if each.is_sure", "for each in some",
         FLOW + "what_an_earlier_claim_may_have_completed_is_left_to_the_feeder_which_is_told"),
    _run("lapsed-is-over", "a claim that lapsed counts as one that completes nothing", "flow._is_alone",
         "return all(claim.outcome in ENDED", "return all(True",
         FLOW + "what_an_earlier_claim_may_have_completed_is_left_to_the_feeder_which_is_told"),
    _run("given-back-is-doubt", "what was given back once waits for the feeder's look", "flow.Flow._pasts",
         "run.is_alone = _is_alone(pasts[run.claim.id], run.claim.token)", "pass",
         FLOW + "what_earlier_claims_were_given_back_of_is_emitted"),
    _run("children-without-limits", "children have no attempts and time of their step",
         "children.Calls.options", "Retry(max_attempts=self.entry.attempts)", "Retry()",
         FLOW + "children_are_called_as_their_steps_say"),
    _run("children-without-parameters", "children are called without their step's parameters",
         "children.Calls._back", "{} if self._is_kept else dict(self.entry.parameters)", "{}",
         FLOW + "children_are_called_as_their_steps_say"),
    _run("leaf-is-emission", "what a leaf returned is not its result", "flow.Flow._end_one",
         "if step.is_leaf and failure is None:", "if False:",
         FLOW + "what_a_leaf_returns_is_its_result_as_that_of_any_task"),
    _run("emission-in-the-way", "the next batch waits until the one before has emitted", "emitting.Emitter.emit",
         "self._inbox.put(written)", "self._emit(written)", OVERLAP),
    # what goes wrong
    _run("errors-are-no-data", "conditions about exceptions see none", "flow.Flow._end_one",
         "failure = _failure_of(ending) if isinstance(ending, Failed) else None", "failure = None",
         FLOW + "what_a_function_raises_is_data_for_a_condition_about_exceptions"),
    _run("killed-quietly", "a policy kills the segment and not the workflow", "flow.Flow._judged",
         "self._asked([run], lambda: self._cluster.kill_workflow(name, reason, life=step.life))", "pass",
         FLOW + "policies_say_what_becomes_of_it"),
    _run("first-is-last", "the workflow is killed before the step's attempts are used up", "flow._outcome",
         "attempt >= step.entry.attempts", "True",
         FLOW + "without_such_a_condition_it_has_failed_and_is_tried_again"),
    _run("attempts-not-counted", "the last attempt is never known", "flow.Flow._end_one",
         "1 if past is None else past.attempts + 1", "1", FLOW + "after_its_last_attempt_its_workflow_is_killed"),
    # lifecycles
    _run("starts-too-soon", "a step runs that may not start yet", "flow.Flow.begin",
         "if not step.lifecycles.start():", "if step.lifecycles.start() is None:",
         FLOW + "a_step_that_may_not_start_yet_gives_its_segments_back"),
    _run("starts-again", "a step is started for each batch", "lifecycles.Lifecycles.start",
         "self._is_started = True", "self._is_started = False", FLOW + "a_step_is_started_once"),
    # seals
    _run("sealed-unpublished", "an output is sealed before its values can be seen", "sealing._gathered",
         "if not Performer(store_of(base), base, asking(client)).perform(settle(to_text(gatherer))):", "if False:",
         SEALING + "the_log_is_told_when_the_values_stand_where_readers_look"),
    _run("gathered-again", "a seal that is done again gathers again", "sealing._gathered",
         "gatherer = child_id(context.id, 0, time_of(context.id), 0)",
         "gatherer = child_id(context.id, context.token, time_of(context.id), 0)",
         SEALING + "an_outputs_values_are_written_once_as_one_dataset"),
    _run("plan-for-ever", "the plan task of an ended workflow stays", "sealing.seal",
         "end_plan(flow.cluster, workflow)", "pass", SEALING + "the_last_seal_ends_the_plan_task"),
    _run("plan-ends-early", "the plan task ends with the first seal", "sealing.end_plan",
         "if standing.state == LIVE:", "if False:", SEALING + "the_last_seal_ends_the_plan_task"),
    _run("lists-in-pieces", "an input's list is gathered as many values", "gathering._read",
         "if function_of(found.payload) == KEEP:", "if False:",
         SEALING + "an_outputs_values_are_written_once_as_one_dataset"),
    _run("empty-unsealed", "an output of no values cannot be sealed", "gathering.gather_frame", "if any(rows):",
         "if True:", SEALING + "of_no_values_there_is_a_dataset_without_files"),
    _run("words-corrupt", "a frame of words is one of corrupt records", "gathering.gather_frame",
         'value if isinstance(value, dict) else {"value": value}', "value",
         SEALING + "what_is_no_table_has_the_column_value"),
    _run("unknown-here-dead-everywhere", "a worker without a step's function kills the workflow",
         "flow.Flow._end_one", "ending.is_final and not self._has(step.entry.function)", "False",
         FLOW + "a_function_that_this_worker_has_not_costs_an_attempt_and_the_last_one_kills"),
    _run("seals-look-often", "a seal whose values are gathered for an hour has thousands of claims on record",
         "sealing.look_s", "LOOK_MORE ** min(looks, 100)", "1",
         SEALING + "a_seal_that_waits_for_long_looks_seldom"),
    mutant("troubles-unsaid", "status is silent where a source breaks again and again",
           "cli.workflow_status.troubles_of", "if task.error is not None and not task.is_completed:", "if False:",
           "X3", TROUBLES + "of_an_input_whose_source_breaks_the_newest_error_is_said_in_a_line", seeds=0),
    mutant("troubles-sealing-unsaid", "status is silent where an output cannot be sealed",
           "cli.workflow_status.seals_of", "if not found.is_sealing:", "if True:", "X3",
           TROUBLES + "what_cannot_be_sealed_is_said_once_outputs_are_sealed", seeds=0),
    mutant("failing-unsaid", "status is silent where the segments of a step fail",
           "cli.workflow_status.failing_of", "if not counts:", "if True:", "X3", STEPS, seeds=0),
    mutant("failed-among-all", "status looks through all segments for one that failed",
           "cli.workflow_status.failing_of", "for task in listed.tasks]",
           "for task in islice(client.list(queue_of(found.id, step), states=[*FAILING], page=1), 1)]", "X3", PAGE,
           seeds=0),
    mutant("dead-among-scheduled", "status finds no dead segment among many others",
           "cli.workflow_status.failing_of", '"dead" if depth.dead else "scheduled"', "*FAILING", "X3", PAGE,
           seeds=0),
    mutant("segments-of-others", "status counts the segments of other workflows", "cli.workflow_status.depths_of",
           "if workflow == found.id and not", "if not", "X3", STEPS, seeds=0),
    _run("dead-and-untold", "a dead segment's workflow goes on until its root is looked after", "flow.Flow._hint",
         "        if told:\n", "        if False:\n", FLOW + "the_feeder_is_told_at_once_of_what_may_be_dead"),
    _run("told-of-each-failure", "each first failure is looked after by the feeder", "flow.Flow._hint",
         "what == FAILED and run.claim.is_first and step.entry.attempts > 1", "False",
         FLOW + "the_feeder_is_told_at_once_of_what_may_be_dead"),
    mutant("starving-of-others", "status says of a workflow why another one waits",
           "cli.workflow_status.starved_in",
           "if row.workflow == found.id), \"\")", "), \"\")", "X4",
           TROUBLES + "of_a_workflow_that_no_slot_works_on_the_cluster_says_why", seeds=0),
    _run("gathered-undone", "what a dead segment did not return is gathered, too", "gathering._read",
         "if not found.is_completed or not", "if not",
         SEALING + "what_a_segment_did_not_come_to_is_not_gathered"),
)
