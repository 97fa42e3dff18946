"""Mutants of inputs with several feeders, of the lives that entries name, and of what feeders ask in vain."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

WORLD = ("tests/workflow/test_routed_world.py::test_values_are_fed_once_and_go_where_conditions_say"
         "_whatever_dies_or_is_lost")
STRANDS, LIVES = "tests/worker/test_strands.py::test_", "tests/worker/test_lives.py::test_"
DOUBTS, LOG = "tests/worker/test_doubts.py::test_", "tests/cluster/test_workflows.py::test_"
NODE, CLIENT = "tests/node/test_workflows.py::test_", "tests/client/test_workflows.py::test_"
TURNS = ("tests/workflow/test_turns.py::"
         "test_each_has_its_turn_though_the_first_that_waits_is_always_the_one_of_the_smallest_id")
EACH = STRANDS + "each_draws_its_own_strand_and_the_last_one_has_the_leaves_sealed"
OTHER_LIFE = LOG + "what_is_said_of_another_life_changes_nothing"
ACKS = "tests/node/test_reaping.py::test_acks_of_a_strand_that_is_exhausted_are_cancelled_and_of_no_other"


def _seen(test: str, name: str, rule: str, place: str, old: str, new: str) -> Mutant:
    return mutant(name, rule, place, old, new, "X2", test, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
    # who draws what
    _seen(WORLD, "strands-share-partitions", "two feeders draw one partition", "strands.Strand.has",
          "% self.of == self.number", "% self.of <= self.number"),
    _seen(WORLD, "strands-share-files", "two feeders draw one file", "strands.Strand.paths",
          "self._of_path(path) == self.number", "self._of_path(path) <= self.number"),
    _seen(STRANDS + "each_file_and_each_range_of_a_table_is_of_one_strand", "strands-of-files-by-their-order",
          "a file that appears moves others to another feeder", "strands.Strand.paths",
          "return sorted(path for path in {*paths} if self.of == 1 or self._of_path(path) == self.number)",
          "return sorted({*paths})[self.number :: self.of]"),
    _seen(STRANDS + "each_file_and_each_range_of_a_table_is_of_one_strand", "strands-of-tables-overlap",
          "each feeder draws all ranges of a table", "drawing.source_of",
          "islice(parts_of(jdbc), strand.number, None, strand.of)", "parts_of(jdbc)"),
    _seen(STRANDS + "a_partition_is_of_one_strand_whoever_saw_others_before_it", "strands-by-place",
          "a partition that appears moves others to another feeder", "partitions.Adapted._first",
          "if not self._strand.has(name):",
          "if self._parts.index(name) % self._strand.of != self._strand.number:"),
    _seen(STRANDS + "a_partition_is_of_one_strand_whoever_saw_others_before_it", "strands-by-chance",
          "a strand has none of as many partitions, though these are numbered", "strands.Strand.has",
          "(_digest(kind.encode()) + int(number[0] if number else 0))", "_digest(partition.encode())"),
    _seen(STRANDS + "partitions_in_another_order_than_before_are_refused", "strands-of-another-order",
          "a feeder goes on in a partition with the offset of another one", "partitions.Adapted._read",
          "if not self._may_grow and any(row", "if False and any(row"),
    _seen(WORLD, "strands-commit-for-others", "a feeder calls processed what is another one's",
          "partitions.Adapted.settle", " and self._strand.has(name)})", "})"),
    _seen(EACH, "strands-draw-all", "each feeder draws the whole input", "feeding._fed",
          "Strand(strand, entry.most)", "Strand()"),
    # whose roots are whose
    _seen(EACH, "strands-ids-of-roots", "roots of two strands have one id", "feeding.ClientHands.store",
          "root_id(self._definition.id, self._source, number", "root_id(self._definition.id, self._step, number"),
    _seen("tests/workflow/test_segments.py::test_strands_have_roots_feeders_and_acks_of_their_own",
          "strands-acks", "the acks of all strands are in one queue", "workflow.segments.ack_queue",
          "_acks{strand or ''}-{step}", "_acks-{step}"),
    # when an input is exhausted
    _seen(WORLD, "strands-first-exhausts", "an input ends with the first of its strands", "ExhaustInput.change",
          "if known.open_strands(self.step) > 1:", "if False:"),
    _seen(LOG + "an_input_is_exhausted_with_the_last_of_its_strands_whatever_their_order",
          "strands-again-counts", "a strand that is exhausted twice counts twice", "ExhaustInput.change",
          "        if said in known.drained:\n            return known\n", ""),
    _seen(LOG + "a_strand_that_an_input_has_not_is_refused", "strands-unknown",
          "a strand that there is not is exhausted", "ExhaustInput.change", "if self.strand >= strands:",
          "if False:"),
    _seen(EACH, "strands-exhausted-as-the-first", "a feeder exhausts another one's strand",
          "feeding.ClientHands.exhaust", "strand=self._strand,", "strand=0,"),
    _seen(ACKS, "strands-acks-wait-for-ever", "acks of a strand that is exhausted stay", "workflows.reaping._deaf",
          "or strand_name(step, strand) in known.drained", "or False"),
    _seen("tests/node/test_reaping.py::test_what_names_no_strand_of_a_workflow_is_passed_over",
          "strands-that-are-none", "a node fails over a strand that there is not", "workflows.reaping._deaf",
          "for step in known.inputs:", "for step in (*known.exhausted, *known.inputs):"),
    _seen(LOG + "what_is_no_strand_is_drained_in_no_origin", "strands-of-an-origin",
          "an origin may say anything of strands", "cluster.log.workflows.Workflow",
          "validator=_are_strands, metadata=SPARSE", "metadata=SPARSE"),
    _seen(ACKS, "strands-feeders-reaped", "feeders that are about to end are cancelled",
          "workflows.reaping.Reaper._is_over", " or is_feeder(queue)\n        return", "\n        return"),
    # slots
    _seen("tests/cluster/test_seats.py::test_an_input_is_given_no_more_slots_than_it_has_open_strands",
          "strands-slots-for-nothing", "strands that are exhausted keep their slots", "scale.seats._demand",
          "tuple(left.get(step.name, step.most) for step in steps)", "tuple(step.most for step in steps)"),
    _seen(STRANDS + "of_a_seat_in_an_input_its_own_feeders_are_claimed_and_of_others_none", "strands-unclaimed",
          "nobody claims the feeders of an input that has several", "worker.seats._beside",
          ", feeder_queue(seat.workflow, seat.step)", ","),
    _seen(TURNS, "turns-back-at-once", "two feeders take turns, and the third waits for ever", "turns.rest_ms",
          "turn_ms * waiting if", "turn_ms // 2 if"),
    _seen(WORLD, "turns-never", "a feeder keeps its slot for ever", "turns.rest_ms", "held_ms >= turn_ms",
          "held_ms < 0"),
    _seen(STRANDS + "a_feeder_gives_way_when_its_turn_is_over_and_others_wait", "turns-not-asked",
          "a feeder whose turn is over asks once only", "feeding.Turn.check", "self._due_s = now_s + LOOK_S",
          "self._due_s = now_s + 1e9"),
    # lives
    _seen(OTHER_LIFE, "lives-of-entries", "what is said of a former life changes the next one", "OfWorkflow.is_of",
          "return self.life in (0, known.life)", "return True"),
    _seen(OTHER_LIFE, "lives-unsaid", "what names no life, as older entries, counts for none", "OfWorkflow.is_of",
          "in (0, known.life)", "== known.life"),
    _seen(NODE + "what_is_about_a_life_that_this_node_may_not_know_yet_is_for_the_log",
          "lives-of-a-node-that-lags",
          "a node that knows only the former life answers for the next", "WorkflowRequests._known",
          "not (command.is_of(known) and (known.is_live or command.life))", "False"),
    _seen(CLIENT + "who_speaks_of_an_earlier_life_changes_nothing_and_is_told", "lives-untold",
          "who speaks of a former life takes the next one's standing for its own", "flows.Flowing._decree",
          "message.life not in (0, status.life)", "False"),
    _seen(LIVES + "the_log_is_told_which_life_is_meant", "lives-unnamed-by-feeders",
          "a feeder exhausts whichever workflow lives", "feeding.ClientHands.exhaust", "life=self._life)",
          "life=0)"),
    _seen(LIVES + "the_log_is_told_which_life_is_meant", "lives-unnamed-by-seals",
          "a seal seals whichever workflow lives", "sealing.seal", "seal_output(workflow, step, life=life)",
          "seal_output(workflow, step)"),
    _seen(LIVES + "what_it_emits_is_its_own_though_the_next_one_was_submitted_before_that_was_written",
          "emitted-by-the-next", "what a former life's segment emits runs in the next one", "flow.Flow._written",
          "run.nursery, named[0]", "self._steps[named].nursery, named[0]"),
    # what is asked in vain
    _seen(DOUBTS + "roots_that_stay_too_old_in_doubt_end_the_workflow_and_the_reason_says_what_to_do",
          "doubts-in-another-word", "of roots that stay too old in doubt nobody says it", "driving.Driver._store",
          "if refusal.code == TOO_OLD:", "if False:"),
    _seen(DOUBTS + "what_was_in_doubt_for_a_while_is_asked_for_again", "doubts-at-once",
          "the first doubt ends the workflow", "driving.Driver._asked", "elif doubts.suffice():", "else:"),
    _seen(DOUBTS + "what_was_in_doubt_for_a_while_is_asked_for_again", "doubts-of-any-kind",
          "a cluster that does not answer for a while ends the workflow", "driving.Driver._asked",
          "if error.code not in (TOO_OLD, CONFLICT):", "if False:"),
    _seen(DOUBTS + "what_is_in_doubt_often_and_not_for_long_is_asked_for_again", "doubts-by-count",
          "a node that starts again ends the workflow", "driving.Doubts.suffice",
          " and now_s - self._since_s >= DOUBT_S * self._part", ""),
    _seen(DOUBTS + "what_is_in_doubt_for_long_and_not_often_is_asked_for_again", "doubts-by-time",
          "a node that is slow ends the workflow", "driving.Doubts.suffice",
          "self._count >= DOUBTS_MAX and ", ""),
    _seen(DOUBTS + "children_that_stay_too_old_in_doubt_end_the_workflow_with_the_first_of_them",
          "doubts-one-by-one", "each of a hundred is asked for in vain", "driving.Driver._repair",
          "if any(isinstance(event, e.Repaired) and event.is_late for event in events):", "if False:"),
    _seen(DOUBTS + "leaves_whose_seals_stay_too_old_in_doubt_are_sealed_by_name_once", "doubts-of-seals",
          "leaves whose seals stay too old in doubt are never sealed", "sealing.Sealer._seal",
          "and not self._doubts.suffice():", "and True:"),
    # roots that are tried again
    _seen("tests/workflow/test_acking.py::"
          "test_a_root_with_a_segment_that_is_tried_again_is_looked_after_no_less_often", "revived-and-forgotten",
          "a segment that dies again and again is looked at ever less often", "acking.feeder.Feeder.dead",
          "            root.audits = 0\n", ""),
    _seen("tests/worker/test_flow.py::test_a_segment_that_comes_back_for_ever_comes_less_and_less_often",
          "retried-as-often", "what a condition has tried again for ever is dead of its claims in minutes",
          "flow._again_ms", " * AGAIN_MORE ** min(run.claims, 1_000)", ""),
    _seen("tests/worker/test_flow.py::test_a_segment_whose_step_may_not_start_for_long_comes_less_and_less_often",
          "held-back-as-often", "what waits for its step's start is dead of its claims in minutes",
          "flow.Flow.begin", "                self._pasts(runs)\n", ""),
    _seen("tests/worker/test_flow.py::test_what_a_condition_wants_tried_again_on_its_last_attempt"
          "_does_not_die_where_that_would_not_count", "retried-to-death",
          "what a condition has tried again is dead though its step restarts", "flow.Flow._routed",
          " and restarts(step.definition, step.name)", " and False"),
    _seen("tests/worker/test_flow.py::test_what_a_condition_wants_tried_again_on_its_last_attempt"
          "_does_not_die_where_that_would_not_count", "retried-for-nothing",
          "attempts that a condition has tried again never count", "flow.Flow._routed", "outcome.is_last and ",
          ""),
    _seen(LOG + "releases_that_know_no_strands_and_lives_have_the_same_replica_under_their_rules",
          "newer-fields-under-older-rules", "a field counts before all releases know it", "Command.newer_than",
          'field.metadata.get("since", 1) > rules', "False"),
    _seen(LOG + "under_their_rules_an_input_has_one_strand_whatever_is_submitted", "strands-under-older-rules",
          "an input is split where older releases split none", "SubmitWorkflow.apply",
          "replica.rules >= STRANDS_SINCE and has_strands", "has_strands"),
    _seen(NODE + "under_rules_without_strands_no_life_is_named_and_several_feeders_are_refused",
          "lives-under-older-rules", "an entry names a life where older releases know none", "rows.command_of",
          "life = 0 if rules < STRANDS_SINCE or isinstance(message, m.Submit) else message.life",
          "life = 0 if isinstance(message, m.Submit) else message.life"),
    _seen(NODE + "under_rules_without_strands_no_life_is_named_and_several_feeders_are_refused",
          "feeders-under-older-rules", "several feeders are taken where older releases know one",
          "rows.command_of",
          "        _check_old(message, rules)\n", "        pass\n"),
    _seen(CLIENT + "a_plan_that_a_node_tells_late_of_begins_no_other_life", "plan-of-a-former-life",
          "who submits by a node that lags begins a life with the plan of the former one",
          "Flowing.submit_workflow",
          "known[0].plan if is_same else", "known[0].plan if known else"),
)
