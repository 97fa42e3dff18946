"""Mutants of what operators hold and wish: the document's watch, freezes, promotions, who leads after them."""

from __future__ import annotations

from mutants.mutant import Edit, Mutant, mutant

EVALUATOR = "tests/partition/test_evaluator.py::"
ONE = EVALUATOR + "test_one_thing_at_a_time"
OVERSEEING = "tests/node/test_overseeing.py::"
WATCHING = "tests/node/test_watching.py::"


def _seen_by(test: str, name: str, rule: str, place: str, old: str, new: str) -> Mutant:
    return mutant(name, rule, place, old, new, "L2", test, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
    _seen_by("tests/verbs/test_operators.py::test_where_a_node_is_too_old_for_a_verb_what_helps_is_named",
             "too-old-and-no-help", "who asks a node that is too old is told what helps", "operating._steered",
             'if refusal.code != "malformed" or', "if True or"),
    _seen_by("tests/cli/test_refused_everywhere.py::"
             "test_the_exit_status_is_that_of_a_refusal_only_where_nothing_was_changed", "refused-and-well",
             "a wish that is refused everywhere is a failure to scripts", "acting.leave_if_refused",
             'if done["refused"] and not done["changed"]:', "if False:"),
    _seen_by(WATCHING + "test_a_leader_acts_by_what_an_operator_wrote", "operators-unheard",
             "a leader sees an operator's wish before its own next write", "Candidacy.on_read",
             "            return self._heed(now_ms, event)\n", "            pass\n"),
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
    _seen_by(OVERSEEING + "test_a_swap_that_is_lost_or_in_doubt_begins_anew_and_overwrites_nothing",
             "steered-once-and-lost", "an operator's write that was lost is made again", "Overseeing.on_swapped",
             "            self.outbox.carry_out([ReadDocument(event.partition)])\n",
             "            self._refuse(event.partition, UNANSWERED)\n"),
    _seen_by(OVERSEEING + "test_what_its_leader_would_take_out_again_is_refused", "promoted-while-frozen",
             "nobody is promoted while a partition is frozen", "wishes._check_thawed",
             "if freeze is not None and (not", "if freeze is None and (not"),
    _seen_by(OVERSEEING + "test_what_its_leader_would_take_out_again_is_refused", "any-epoch-will-do",
             "a promotion is bound to its epoch", "wishes.steered",
             "if request.epoch and request.epoch != document.epoch:", "if False:"),
    _seen_by(OVERSEEING + "test_any_node_freezes_all_and_lets_go_of_one", "causes-untold",
             "a document says who changed it, and why", "Overseeing.on_read",
             "cause=self._asked.cause[:1_000]", "cause=''"),
    _seen_by(OVERSEEING + "test_who_is_asked_how_the_cluster_is_names_what_is_held", "frozen-unsaid",
             "status names what is frozen", "held._of", "if freeze is not None and is_frozen(document, now_ms):",
             "if False:"),
    _seen_by(OVERSEEING + "test_what_is_held_is_told_to_people_once_for_all_partitions_of_a_kind", "held-unsaid",
             "people are told what operators hold", "attention._rest",
             '        yield "held", words\n', "        pass\n"),
    _seen_by(OVERSEEING + "test_a_wish_that_is_taken_back_in_time_is_not_obeyed", "wishes-for-good",
             "a wish that was taken back is not obeyed", "wishes.steered",
             "document, promote=None, malformed=", "document, malformed="),
    _seen_by("tests/model/test_roles.py::test_who_does_not_steer_changes_no_task_and_no_queue_of_others",
             "anybody-freezes", "only admins hold partitions", "roles._PRODUCING",
             '"submit_workflow",', '"submit_workflow", "freeze",'),
    _seen_by("tests/node/test_manatee_faults.py::test_b1_a_deposed_leader_that_hears_of_its_end_and_of_a_wish_at_once"
             "_obeys_nothing", "b1-wishes-before-roles", "no wish is looked at by a deposed leader",
             "evaluator._lead", "    if document.epoch > facts.epoch:\n",
             "    wish = document.promote\n"
             "    if wish is not None and not why_invalid(facts, document, wish, now_ms):\n"
             "        return _obey(facts, document, wish)\n    if document.epoch > facts.epoch:\n"),
    Mutant("b1-in-the-simulated-world",
           "a leader that reads of its successor obeys nothing: it resigns before any wish is looked at",
           (Edit("Vnode.settle", "if self.election.is_leading and epoch > self.election.epoch:", "if False:"),
            Edit("evaluator._lead", "    if document.epoch > facts.epoch:\n",
                 "    wish = document.promote\n"
                 "    if wish is not None and not why_invalid(facts, document, wish, now_ms):\n"
                 "        return _obey(facts, document, wish)\n    if document.epoch > facts.epoch:\n")),
           "L2", ("tests/simulation/test_operators.py::test_a_leader_in_the_dark_obeys_nothing",), 0),
    _seen_by("tests/node/test_manatee_faults.py::test_b2_a_write_is_bound_to_what_it_was_made_of_so_no_freeze_is"
             "_overwritten", "b2-token-of-another-revision", "a write is bound to the revision it was made of",
             "Candidacy._heed", "= False\n            election.note_written(event.document, event.version)\n",
             "= False\n            election.version = event.version\n"),
    _seen_by("tests/node/test_manatee_faults.py::test_b3_a_wish_for_a_node_that_is_gone_promotes_no_other_one",
             "b3-wishes-for-the-dead", "a wish for a node that is gone is dropped", "evaluator.why_invalid",
             "if wish.target not in able(facts):", "if wish.target in facts.suspects:"),
    _seen_by(EVALUATOR + "test_whatever_operators_write_there_is_an_answer_and_it_comes_to_rest",
             "a-slip-stops-a-partition", "what an operator wrote wrongly stops nothing", "Document.decode",
             "                    if name not in INTENTS:\n                        raise\n",
             "                    raise\n"),
    _seen_by("tests/model/test_document.py::test_what_operators_wish_stops_nothing_and_is_kept_as_it_was",
             "slips-forgotten", "what an operator wrote wrongly is kept until its leader takes it out",
             "Document.encode", "**malformed, ", ""),
    _seen_by("tests/model/test_document.py::test_what_an_operator_may_have_written_by_hand_is_malformed",
             "nothing-is-a-document", "a document without an epoch is none", "Document.decode",
             'if "epoch" not in known:', "if False:"),
    _seen_by(ONE + "[what is malformed is taken out]", "slips-for-ever",
             "a leader takes out of its document what is no wish", "evaluator._upkeep", " malformed={},", ""),
    _seen_by(ONE + "[what is no wish is dropped]", "any-wish-is-a-wish", "an unknown kind of wish is dropped",
             "evaluator.why_invalid", "    if wish.kind not in (LEAD, REORDER, REAP):\n", "    if False:\n"),
    _seen_by(ONE + "[a wish for a node that is about to stop is dropped]", "promote-the-leaving",
             "nobody is promoted who is not able", "evaluator.why_invalid",
             "if wish.target not in able(facts):", "if wish.target not in facts.live:"),
    _seen_by(ONE + "[a wish for a successor is obeyed]", "reorder-does-nothing",
             "a wish for a successor moves it behind the leader", "evaluator._obey",
             "return Stand((me, wish.target, *(name for name in others if name != me)))",
             "return Stand(document.cohort)"),
    _seen_by(EVALUATOR + "test_time_alone_ends_what_operators_hold_and_wish", "wishes-without-a-timer",
             "a wish is taken out when its time is over, without another event", "evaluator.next_change_ms",
             "wish.expires_ms if wish else 0, document", "0, document"),
    _seen_by(EVALUATOR + "test_whom_an_operator_wished_for_comes_first_unless_there_was_a_leader_since",
             "wishes-outlive-leaders", "a wish of an epoch that is over favours nobody", "evaluator.by_wish",
             " and wish.epoch == document.epoch", ""),
    mutant("balanced-anew", "what is led as it is placed is balanced once more", "wishes._wished",
           "elif document.promote is None and", "elif False and", "A3",
           "tests/node/test_overseeing.py::test_what_is_led_as_it_is_placed_is_not_to_be_balanced", seeds=0),
)
