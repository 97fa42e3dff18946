"""Mutants of workflows in the coordination log: what guards a workflow's life, and what older releases see."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

CONFORMS = "tests/cluster/test_conformance.py::test_it_comes_out_exactly_as_the_scenario_says"
DOOR = "tests/node/test_workflows.py::"
LOG = "tests/cluster/test_workflows.py::"
OF_ORIGINS = LOG + "test_what_an_origin_or_a_peer_says_of_a_workflow_is_in_its_bounds"
FOOTPRINTS = "tests/cluster/test_versions.py::test_commands_read_and_write_what_they_declare_and_nothing_else"


def _seen(name: str, rule: str, place: str, old: str, new: str, test: str = CONFORMS) -> Mutant:
    return mutant(name, rule, place, old, new, "L1", test, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
    _seen("ended-and-changed", "a late entry changes what has ended", "OfWorkflow.apply",
          "known.is_live and self.is_of(known)", "self.is_of(known)"),
    _seen("sealed-with-open-inputs", "an output is sealed while an input is open", "SealOutput.change",
          "        if not known.is_sealing:\n", "        if False:\n"),
    _seen("sealed-twice", "a seal said again counts again", "SealOutput.change",
          "        if self.step in known.sealed:\n            return known\n", ""),
    _seen("sealed-first-completes", "the first seal completes the workflow", "SealOutput.change",
          "made if made.open_outputs else", "made if not made.sealed else"),
    _seen("sealed-what-is-no-output", "a step that is no output is sealed", "SealOutput.change",
          "self.step not in known.outputs", "False"),
    _seen("said-again-is-another", "what is said again makes another replica", "OfWorkflow.apply",
          "        if made is known:\n            return replica\n", ""),
    _seen("any-name-exhausted", "an origin says anything of what is exhausted", "workflows._are_names",
          " or not all(map(STEP_NAME.fullmatch, value))", "", OF_ORIGINS),
    _seen("exhausted-twice", "an origin names an input twice", "workflows._are_names",
          " or len({*value}) < len(value)", "", OF_ORIGINS),
    _seen("killed-unknown", "an id that nobody knows is killed in silence", "OfWorkflow.apply",
          'raise Inapplicable(f"there is no workflow {self.workflow}")', "return replica"),
    _seen("killed-without-reason", "the reason is not kept", "KillWorkflow.change",
          "position, self.reason)", "position)"),
    _seen("exhausted-again", "an input exhausted again counts again", "ExhaustInput.change",
          "        if self.step in known.exhausted:\n            return known\n", ""),
    _seen("exhausted-what-is-no-input", "a step that is no input is exhausted", "ExhaustInput.change",
          "self.step not in known.inputs", "False"),
    _seen("another-definition-taken", "another definition under a known id passes for the same",
          "SubmitWorkflow.apply", "known is not None and known.digest != self.digest", "False"),
    _seen("submitted-again-lives-again", "what has ended lives again when it is submitted again",
          "SubmitWorkflow.apply", "        if known is not None:\n            return replica\n",
          "        if known is not None and known.is_live:\n            return replica\n"),
    _seen("live-without-bound", "any number of workflows lives", "SubmitWorkflow.apply",
          "len(living) >= LIVE_MAX", "False", LOG + "test_only_so_many_live_and_one_that_has_ended_makes_room"),
    _seen("weight-without-bound", "the origin grows with the steps of all workflows", "SubmitWorkflow.apply",
          "> WEIGHT_MAX", "> 1 << 40",
          LOG + "test_the_steps_of_all_together_are_bounded_so_that_the_origin_is"),
    _seen("live-collected", "a collection drops what lives", "Gc.apply", "if each.is_live or each.since > since",
          "if each.since > since"),
    _seen("tombstones-of-workflows-for-ever", "what has ended is never dropped", "Gc.apply",
          "if each.is_live or each.since > since", "if each.is_live or each.since > -1"),
    _seen("collection-reads-no-workflows", "a collection is played without what it drops", "footprints.FOOTPRINTS",
          '"collected left ring slots workflows writers"', '"collected left ring slots writers"', FOOTPRINTS),
    _seen("older-rules-take-workflows", "workflows live under rules of releases that know none", "play.admit",
          "    if entry.command.since > here.rules:\n", "    if False:\n",
          LOG + "test_releases_that_know_no_workflows_have_the_same_replica_under_their_rules"),
    _seen("empty-field-in-the-text", "a replica without workflows has another digest than older releases give it",
          "log.replica.Replica", "factory=dict, metadata=SPARSE)", "factory=dict)",
          LOG + "test_where_there_are_none_the_text_is_as_before_and_where_there_are_it_has_them"),
    _seen("written-again-though-it-holds", "each retry of what holds is an entry", "WorkflowRequests._known",
          "if is_same else None", "if False else None",
          DOOR + "test_asked_again_nothing_is_written_and_the_answer_says_since_when_it_holds"),
    _seen("refused-by-a-replica-that-lags", "what this node does not know yet is refused without asking the log",
          "WorkflowRequests._known", "            if isinstance(message, m.Submit):\n", "            if True:\n",
          DOOR + "test_another_definition_is_refused_at_once_and_what_may_be_behind_this_node_goes_to_the_log"),
    _seen("wished-once", "what a former life wished is never written", "WorkflowRequests.look",
          "self.wanted |= dict.fromkeys(writing.command for writing in self._writes.values())", "pass",
          DOOR + "test_a_request_that_the_log_does_not_take_is_wished_again_and_then_in_doubt"),
    _seen("repeated-is-an-answer", "an entry that did not count says what holds", "workflows.requests.ANSWERS",
          "(Outcome.APPLIED, Outcome.UNCHANGED, Outcome.REFUSED)", "(Outcome.REFUSED,)",
          DOOR + "test_a_workflow_goes_from_its_submission_to_its_end"),
    _seen("workflows-under-old-rules", "a node writes of workflows where older releases play the log",
          "WorkflowRequests._check_rules", "        if rules < WORKFLOWS_SINCE:\n", "        if False:\n",
          DOOR + "test_a_cluster_of_older_rules_has_no_workflows_and_the_answer_says_what_to_do"),
    _seen("read-before-the-position", "who knows of a later position is shown an earlier one",
          "WorkflowRequests._surveyed", "self.playback.next < message.position and not is_over", "False",
          DOOR + "test_a_reader_that_knows_of_a_later_position_waits_for_it"),
    _seen("followers-not-woken", "whoever follows hears of an entry when its wait is over",
          "WorkflowRequests.look", "            waiting.look()\n", "            pass\n",
          DOOR + "test_whoever_follows_gets_what_is_there_and_then_waits"),
    _seen("playback-without-bound", "what is kept for followers grows for ever", "Playback.note",
          "len(self._kept) > ENTRIES_MAX or self._weight > BYTES_MAX", "False",
          DOOR + "test_what_is_kept_is_bounded_by_number_and_by_bytes"),
    _seen("playback-jumps-unseen", "entries behind a jump look as if they joined on", "Playback._jump",
          "            self._kept.clear()\n", "", DOOR + "test_over_a_jump_nothing_seems_to_join_on"),
    _seen("workflows-of-any-queue", "a key of some queues submits any workflow", "clearance._queues_of",
          "        yield queues_of(message.workflow)\n", "        return\n",
          "tests/runtime/test_clearance.py::test_a_key_of_some_workflows_queues_is_one_of_those_workflows"),
)
