"""Mutants of what a feeder that goes on compares, of what adapters say, and of whose tasks are left alone."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

AGAIN, PARTS = "tests/worker/test_drawn_again.py::test_", "tests/worker/test_partitions.py::test_"
CLIENT, NODE = "tests/client/test_workflows.py::test_", "tests/node/test_workflows.py::test_"
LIVES, SEATS = "tests/worker/test_lives.py::test_", "tests/worker/test_seats.py::test_"
REAPS = "tests/node/test_reaping.py::test_"
SAME = AGAIN + "values_before_a_cursor_must_be_what_they_were"
FILES = AGAIN + "files_that_came_or_went_before_a_cursor_change_nothing_of_what_comes_behind_it"
PAGES = PARTS + "a_page_that_no_adapter_may_give_is_refused_and_asked_for_again"
COMES = PARTS + "a_partition_that_comes_is_drawn_by_its_strand_in_the_same_life_and_in_the_next"
ENDS = PARTS + "while_it_may_grow_it_does_not_end_and_then_it_does"
IN_TURN = SEATS + "between_two_reports_it_looks_no_longer_than_seats_last_and_at_each_workflow_in_turn"


def _drawn(test: str, name: str, rule: str, place: str, old: str, new: str) -> Mutant:
    return mutant(name, rule, place, old, new, "X2", test, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
    # what was drawn before
    _drawn(SAME, "sequences-unmarked", "a function that gives other values than were done goes on",
           "sequences.Sequential._go", "if mark and (", "if False and ("),
    _drawn(SAME, "sequences-former-unread", "what is under way is drawn again from other values",
           "sequences.Sequential._taken", "if former := self._former:", "if former := b'':"),
    _drawn(FILES, "files-by-number", "files are left out, since others before them are gone",
           "sequences.Listed._place", "bisect_right(self._listed(), path) if path else number", "number"),
    _drawn(FILES, "files-moved-unseen", "a root is another file than before", "sequences.Listed.again",
           "if self._has_moved:", "if False:"),
    _drawn(FILES, "files-moved-before-the-last", "files came among those under way, and a root is another one",
           "sequences.Listed._listed", "(number > len(self._paths) or self._mark_of(number) != mark)",
           "number > len(self._paths)"),
    _drawn("tests/client/test_options.py::test_a_workflow_s_own_tasks_are_tried_for_more_than_half_a_day",
           "fed-for-an-hour", "a feeder is dead long before an adapter is mended", "client.flows",
           "Retry(max_attempts=1_000,", "Retry(max_attempts=60,"),
    # what an adapter says
    _drawn(PAGES, "pages-for-ever", "a page whose offset does not rise is drawn for ever",
           "partitions.Adapted._page", "offset + bool(values)", "0"),
    _drawn(PAGES, "pages-too-long", "a page has more values than a checkpoint holds", "partitions.Adapted._page",
           "if len(values) > most:", "if False:"),
    _drawn(PARTS + "names_that_are_none_are_refused", "partitions-twice", "a partition is drawn twice",
           "partitions.Adapted._listed", "if names.count(name) > 1]", "if names.count(name) > 99]"),
    _drawn(PARTS + "values_that_are_too_large_together_are_read_in_several_pages", "pages-too-large",
           "a page of large values takes all memory", "partitions.Adapted._page",
           "sum(map(len, values)) <= HAUL_BYTES", "True"),
    # partitions that come
    _drawn(COMES, "grown-unlisted", "a partition that comes is drawn by nobody",
           "partitions.Adapted._list_again", "self._parts += found", "pass"),
    _drawn(PARTS + "what_is_under_way_is_drawn_again_whatever_came_before_it", "grown-by-place",
           "a partition that comes takes the place of another one", "partitions.Adapted._placed",
           "_named(row, left) if len(row) > 2 else names[place]", "names[place]"),
    _drawn(PARTS + "a_cursor_of_what_grows_is_read_by_no_older_release_which_would_find_other_partitions",
           "grown-cursors-read-by-old", "a feeder of an older release kills what draws partitions that come",
           "partitions.Adapted._written", '(GROWN if self._may_grow else b"") +', 'b"" +'),
    _drawn(PARTS + "a_cursor_of_what_grows_is_read_by_no_older_release_which_would_find_other_partitions",
           "grown-cursors-unread", "what was drawn from partitions that come is forgotten",
           "partitions._parted", ".removeprefix(GROWN)", ""),
    _drawn(ENDS, "grown-and-over", "an input ends before its partitions come", "partitions.Adapted._is_over",
           "self._is_whole and all(", "all("),
    _drawn(ENDS, "grown-at-last-unlisted", "partitions that came just before no more come are left out",
           "partitions.Adapted._list_again", "(grows and self._clock() <", "(self._clock() <"),
    # who feeds, and who seals
    _drawn(CLIENT + "inputs_that_need_several_kinds_of_workers_have_their_feeders_where_those_claim",
           "fed-by-any", "a worker without an input's tags feeds from it", "flows._feed_queue",
           " or not is_shared", ""),
    _drawn(CLIENT + "feeders_that_may_be_in_another_queue_are_taken_for_those_and_others_in_doubt_are_not",
           "fed-in-doubt-no-more", "what an older release submitted is submitted in vain while a node is down",
           "flows.Flowing._feed", 'not is_too_old and error.code != "conflict"',
           'not isinstance(error, Refused) or not is_too_old and error.code != "conflict"'),
    _drawn(CLIENT + "feeders_in_other_queues_are_stored_though_an_older_release_has_some_in_another_one",
           "fed-in-part", "inputs have no feeders since an older release stored another one's elsewhere",
           "flows.Flowing._feed", "                    raise\n",
           "                    raise\n                return\n"),
    _drawn(CLIENT + "feeders_that_may_be_in_another_queue_are_taken_for_those_and_others_in_doubt_are_not",
           "fed-though-in-doubt", "a feeder that may not be stored is taken for stored", "flows.Flowing._feed",
           'not is_too_old and error.code != "conflict"', "False"),
    _drawn("tests/worker/test_strands.py::"
           "test_leaves_that_need_several_kinds_of_workers_are_sealed_by_those_alone", "sealed-by-any",
           "a worker without a leaf's tags writes its values", "sealing.Sealer.have_sealed",
           "if are_alike(entries", "if True or are_alike(entries"),
    _drawn("tests/worker/test_sealing.py::"
           "test_leaves_are_sealed_though_an_older_release_stored_what_seals_others_in_another_queue",
           "unsealed-behind-another", "a seal that stands in another queue keeps other leaves from theirs",
           "sealing.Sealer._seal", "if error.code == CONFLICT and len(leaves) == 1:", "if False:"),
    _drawn("tests/worker/test_sealing.py::"
           "test_a_leaf_is_not_sealed_twice_where_an_older_release_stored_its_seal_by_name_in_another_queue",
           "sealed-in-two-queues", "a leaf has two seals, in the queues of two releases", "sealing.Sealer._seal",
           "dict.fromkeys((queue, queue_of(workflow, SEALING)))", "[queue]"),
    _drawn("tests/worker/test_sealing.py::"
           "test_whoever_has_a_seat_sees_to_what_a_feeder_that_died_left_unsealed", "unsealed-for-ever",
           "leaves whose feeder died before it had them sealed are never sealed", "flow.Flow.see_sealed",
           "standing.state == LIVE and", "False and"),
    _drawn("tests/worker/test_sealing.py::"
           "test_whoever_has_a_seat_sees_to_what_a_feeder_that_died_left_unsealed", "sealed-too-early",
           "leaves are sealed before all inputs are exhausted", "flow.Flow.see_sealed",
           " and {*definition.inputs} <= {*standing.exhausted}", ""),
    _drawn("tests/worker/test_seats.py::test_when_the_seats_of_a_workflow_with_a_leaf_here_change"
           "_it_looks_for_a_while_whether_that_is_to_be_sealed", "unsealed-unseen",
           "a worker does not look after leaves when its seats change", "worker.seats.SeatKeeper._report",
           "        self._see_leaves()\n", ""),
    _drawn("tests/worker/test_seats.py::test_when_the_seats_of_a_workflow_with_a_leaf_here_change"
           "_it_looks_for_a_while_whether_that_is_to_be_sealed", "unsealed-looked-at-once",
           "a worker that asks a node which lags looks after leaves no more",
           "worker.seats.SeatKeeper._see_leaves", "has_failed or self._clock() < until_s:", "has_failed:"),
    _drawn(SEATS + "a_look_that_has_no_answer_is_made_again_however_long_that_takes", "unsealed-unanswered",
           "leaves whose partition has no leader for a while are never sealed",
           "worker.seats.SeatKeeper._see_leaves", "if has_failed or self", "if self"),
    _drawn(SEATS + "a_look_that_has_no_answer_is_made_again_however_long_that_takes", "unsealed-refused-for-ever",
           "a worker asks for ever of what it is refused", "worker.seats.SeatKeeper._see_leaves",
           "has_failed = is_passing(error)", "has_failed = True"),
    _drawn(IN_TURN, "unsealed-one-by-one", "a worker that asks in vain of many workflows loses its seats",
           "worker.seats.SeatKeeper._see_leaves", "            if has_failed:\n                return\n", ""),
    _drawn(IN_TURN, "unsealed-all-at-once", "a worker that sees to many workflows loses its seats",
           "worker.seats.SeatKeeper._see_leaves", "if self._clock() >= leave_s:", "if False:"),
    _drawn(IN_TURN, "unsealed-behind-others", "a workflow that gives no answer keeps others from being sealed",
           "worker.seats.SeatKeeper._see_leaves", "until_s = False, self._until_s.pop(workflow)",
           "until_s = False, self._until_s[workflow]"),
    _drawn("tests/worker/test_doubts.py::"
           "test_seals_that_stay_too_old_in_doubt_are_enqueued_by_name_by_whoever_has_a_seat", "unsealed-in-doubt",
           "each look after leaves doubts anew", "flow.Flow.see_sealed",
           "if sealer is None or life != standing.life:", "if True:"),
    _drawn("tests/cli/test_workflow_status.py::test_of_a_feeder_that_was_collected_nothing_is_said",
           "drawn-nothing-it-says", "of an input that was drawn long ago it is said that nothing was",
           "cli.workflow_status.books_of", "if feeder not in known:", "if False:"),
    _drawn(LIVES + "a_segment_of_the_next_does_not_die_of_what_is_known_of_the_former", "dead-of-the-former",
           "a segment is dead since its worker has not heard of its life yet", "plans.Plans.alive",
           "                raise Snooze(BEHIND_S)\n", "                pass\n"),
    _drawn(LIVES + "a_segment_of_the_next_does_not_die_of_what_is_known_of_the_former", "snoozed-for-what-is-kept",
           "a segment waits for what its worker could ask", "plans.Plans.alive", "fresh_s=0.0", "fresh_s=FRESH_S"),
    _drawn(LIVES + "its_feeder_does_not_end_by_what_is_known_of_the_former", "unfed-for-ever",
           "a feeder is dead since its worker has not heard of its life yet", "flow.Flow.check_life",
           "alive(workflow, life)", "alive(workflow)"),
    _drawn(LIVES + "its_seals_do_not_end_by_what_is_known_of_the_former", "unsealed-since-former",
           "a seal ends since its worker has not heard of its life yet", "sealing.seal",
           "if standing.life < life:", "if False:"),
    _drawn(LIVES + "what_names_a_life_that_cannot_be_is_of_another_one", "snoozed-for-any-number",
           "what a task says makes its worker wait for ever", "flow._life_of",
           "return life if life < run.claim.end_ms else 0", "return life"),
    _drawn(REAPS + "what_seals_a_leaf_alone_stays_for_a_while_too", "seals-reaped-at-once",
           "a seal that is about to end is cancelled", "workflows.reaping.Reaper._is_over",
           " or is_sealer(queue)", ""),
    _drawn("tests/workflow/test_definitions.py", "feeders-beyond-pending",
           "feeders have more roots under way than their input may", "catalog.entry_of", "if most > pending and",
           "if False and"),
    # whose tasks are left alone
    _drawn(NODE + "what_names_no_life_reaches_the_one_that_a_node_which_lags_does_not_know_of",
           "killed-the-former", "who kills through a node that lags kills nothing", "WorkflowRequests._known",
           "(known.is_live or command.life)", "True"),
    _drawn(REAPS + "the_plan_of_a_life_that_a_node_which_lags_does_not_know_of_is_left",
           "reaped-a-later-plan", "a node that lags cancels the plan of the next life",
           "workflows.reaping.Reaper._has_ended", "(named[1] == PLAN or is_feeder(queue))", "is_feeder(queue)"),
    _drawn(REAPS + "feeders_of_a_life_that_a_node_which_lags_does_not_know_of_are_left", "reaped-a-later-life",
           "a node that lags cancels the feeders of the next life", "workflows.reaping.Reaper._has_ended",
           "return time_of(task_id) <= ", "return True or "),
    _drawn(CLIENT + "a_task_that_is_no_plan_is_not_cancelled_with_the_workflow_that_names_it", "ends-any-task",
           "who kills a workflow cancels any task that its submitter named", "flows.Flowing._end_plan",
           "if any(task.queue == queue_of(id, PLAN) for task in found):", "if found:"),
    _drawn(CLIENT + "who_is_refused_does_not_end_the_plan_of_who_submitted_the_same_meanwhile",
           "refused-and-ends-anothers", "the plan of a live workflow is cancelled by who was refused",
           "flows.Flowing.submit_workflow",
           " and all(each.plan != plan for each in (yield from self._surveyed((found.id,))))", ""),
)
