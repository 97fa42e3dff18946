"""Mutants of workflows in the coordination log: what guards a workflow's life, and what older releases see."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

CONFORMS = "tests/cluster/test_conformance.py::test_it_comes_out_exactly_as_the_scenario_says"
LOG = "tests/cluster/test_workflows.py::"
FOOTPRINTS = "tests/cluster/test_versions.py::test_commands_read_and_write_what_they_declare_and_nothing_else"


def _seen(name: str, rule: str, place: str, old: str, new: str, test: str = CONFORMS) -> Mutant:
    return mutant(name, rule, place, old, new, "L1", test, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
    _seen("ended-sealed", "a late seal changes what has ended", "SealOutput.apply",
          "        if not known.is_live:\n            return replica\n", ""),
    _seen("sealed-while-open", "an output is sealed while an input is open", "SealOutput.apply",
          "        if not known.is_sealing:\n", "        if False:\n"),
    _seen("sealed-twice", "a seal said again counts again", "SealOutput.apply",
          "        if self.step in known.sealed:\n            return replica\n", ""),
    _seen("sealed-first-completes", "the first seal completes the workflow", "SealOutput.apply",
          "        if not made.open_outputs:\n", "        if made.sealed:\n"),
    _seen("sealed-what-is-no-output", "a step that is no output is sealed", "SealOutput.apply",
          "self.step not in known.outputs", "False"),
    _seen("completed-killed", "what is complete is killed as well", "KillWorkflow.apply",
          "        if not known.is_live:\n            return replica\n", ""),
    _seen("killed-unknown", "an id that nobody knows is killed in silence", "KillWorkflow.apply",
          '            raise Inapplicable(f"there is no workflow {self.workflow}")\n', "            return replica\n"),
    _seen("killed-without-reason", "the reason is not kept", "KillWorkflow.apply",
          "position, self.reason)", "position)"),
    _seen("exhausted-again", "an input exhausted again counts again", "ExhaustInput.apply",
          "        if self.step in known.exhausted:\n            return replica\n", ""),
    _seen("exhausted-what-is-no-input", "a step that is no input is exhausted", "ExhaustInput.apply",
          "self.step not in known.inputs", "False"),
    _seen("exhausted-after-the-end", "a late exhaust is refused, and fills the list of failures", "ExhaustInput.apply",
          "        if not known.is_live:\n            return replica\n", ""),
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
          "replica.Replica", "factory=dict, metadata=SPARSE)", "factory=dict)",
          LOG + "test_where_there_are_none_the_text_is_as_before_and_where_there_are_it_has_them"),
)
