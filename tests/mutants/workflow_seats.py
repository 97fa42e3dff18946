"""Mutants of the seats of workflows: who has the same ones, who is told, and what is claimed for them."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

PURE = "tests/workflow/test_seating.py::"
DECIDED = "tests/cluster/test_seats.py::"
NODE = "tests/node/test_seats.py::"
SHARES = "tests/worker/test_shares.py::"
WORKER = "tests/worker/test_seats.py::"
STALE = PURE + "test_a_fence_is_stale_only_to_who_is_ahead_and_has_other_seats"
ALIKE = DECIDED + "test_who_plays_each_entry_and_who_jumps_has_the_same_seats"
COUNTS = DECIDED + "test_three_workflows_share_twelve_slots_under_each_way_of_sharing"
FLAWS = DECIDED + "test_flaws"
CHANGES = NODE + "test_seats_are_dealt_anew_when_workers_come_go_or_change"
REFUSED = NODE + "test_a_claim_for_stale_seats_is_refused_and_one_for_newer_seats_is_not"
CAPPED = SHARES + "test_a_queue_with_a_cap_is_never_held_above_it"

MUTANTS: tuple[Mutant, ...] = (
    mutant("seats-by-rank", "all seats behind a change move up", "settling.settled",
           "at = ring[bisect_left(points, dice) % len(ring)][1]", "at = room.index(max(room))", "X1",
           PURE + "test_little_moves_when_a_node_or_a_workflow_comes_or_goes", seeds=0),
    mutant("seats-by-order", "who is named first has the first choice", "settling.settled",
           "thrown = sorted((xxh3_64_intdigest(seat, turn), seat, index) for seat, index in left)",
           "thrown = [(xxh3_64_intdigest(seat, turn), seat, index) for seat, index in left]", "X1",
           PURE + "test_each_seat_has_a_place_and_no_order_matters", seeds=0),
    mutant("stale-for-who-jumped", "the same seats are stale where they became known later", "fences.is_stale",
           " and (shown ^ known) & _DIGEST != 0", "", "X1", STALE, seeds=0),
    mutant("stale-for-who-is-behind", "a node that is behind refuses newer seats", "fences.is_stale",
           "shown >> DIGEST_BITS < known >> DIGEST_BITS and ", "", "X1", STALE, seeds=0),
    mutant("fences-always-new", "a change elsewhere makes all seats others", "fences.renewed",
           "before if (before := known.get(name, NO_FENCE)) and not (before ^ fence) & _DIGEST else fence",
           "fence", "X1", PURE + "test_seats_that_stay_keep_their_fence", seeds=0),
    mutant("all-slots-are-shared", "workers that take no seats are counted for workflows", "scale.seats._places",
           "member is not None and SEATED in slot.tags", "member is not None", "X1",
           DECIDED + "test_only_workers_that_take_seats_count", seeds=0),
    mutant("old-numbers-count", "while a node's slots change they count as they were", "scale.seats._places",
           "            found[member.name, abilities(slot)] = slot\n",
           "            found.setdefault((member.name, abilities(slot)), slot)\n", "X1",
           DECIDED + "test_while_a_number_changes_the_newest_counts", seeds=0),
    mutant("exhausted-inputs-keep-slots", "slots wait for an input that brings nothing", "scale.seats._demand",
           "if step.kind != INPUT or step.name not in workflow.exhausted", "if True", "X1",
           DECIDED + "test_an_exhausted_input_gives_its_slots_to_the_others", seeds=0),
    mutant("sharing-is-ignored", "slots are shared in one way whatever was set", "scale.seats.input_of",
           "replica.sharing or _BALANCED", "_BALANCED", "X1", COUNTS, seeds=0),
    mutant("sharing-is-not-looked-at", "a change of the sharing waits for other news",
           "scale.seating.Seating.look", "replica.workflows, replica.sharing", "replica.workflows",
           "X1", COUNTS, seeds=0),
    mutant("overtaken-seats-count", "the answer to an old question is taken for that to the newest",
           "scale.seating.Seating.decide",
           "if self._wanted is None or self._wanted.question.hash != question.hash:", "if self._wanted is None:",
           "X1", DECIDED + "test_an_answer_to_an_older_question_is_none_to_the_newest", seeds=0),
    mutant("seated-twice", "a node's slots may be given out more than once", "scale.seats.flaw",
           "sum(count for *_, count in rows) > most or ", "", "X1", FLAWS, seeds=0),
    mutant("seated-without-tags", "slots may be given where they lack tags", "scale.seats.flaw",
           "if any(not tags[asked.demands[workflow].tags[step]] <= tags[place.tags] for", "if any(False for", "X1",
           FLAWS, seeds=0),
    mutant("seats-told-late", "who waits for seats is told when its time is over", "Usher.look",
           "                waiting.on_deadline(now_ms)\n", "                pass\n", "X1",
           NODE + "test_a_report_waits_until_there_are_seats", seeds=0),
    mutant("seats-of-the-gone", "a worker that goes leaves its seats to nobody", "Attendance._count",
           "        self.news[tags] = None\n", "", "X1", CHANGES, seeds=0),
    mutant("seats-all-over", "seats change hands whenever a worker comes", "dealing.deal",
           "former.get(name, {}).items()", "{}.items()", "X1",
           NODE + "test_who_has_seats_keeps_them_as_far_as_they_and_its_slots_go", seeds=0),
    mutant("some-steps-have-none", "where workers lack the first step has all", "dealing.deal",
           "[step for step in open_ if _is_taken(step, dealt, room) and _less(left, step)]",
           "[step for step in open_[:1] if _is_taken(step, dealt, room) and _less(left, step)] + open_[1:]", "X1",
           NODE + "test_where_workers_lack_every_step_has_some", seeds=0),
    mutant("stale-claims-are-granted", "a worker claims by former seats", "knowledge.seating.Seating.flaw",
           "        if is_stale(fence, gone if known is None else known):\n", "        if False:\n", "X1", REFUSED,
           seeds=0),
    mutant("seats-of-the-ended", "a worker claims for a workflow that is over", "knowledge.seating.Seating.flaw",
           "is_stale(fence, gone if known is None else known)", "known and is_stale(fence, known)", "X1",
           NODE + "test_a_claim_for_seats_of_a_workflow_that_has_ended_is_refused", seeds=0),
    mutant("anybody-claims", "who has no seat claims a workflow's segments", "knowledge.seating.Seating.flaw",
           "return None if known is None or is_own(step) else (", "return None if True else (", "X1",
           NODE + "test_a_claim_without_a_seat_is_told_who_may_claim_there", seeds=0),
    mutant("waiting-claims-are-granted", "a claim waits on although its seats are gone",
           "ClaimOperation.try_again", "if is_of_workflow and ", "if is_of_workflow and not self._tried and ",
           "X1", NODE + "test_a_claim_that_waits_is_refused_when_its_seats_change_before_there_is_work", seeds=0),
    mutant("cap-is-passed", "a worker holds more of a step than its seats", "_Queue.room",
           "min(COUNT_MAX, self.cap - self.held)", "COUNT_MAX", "X1", CAPPED, seeds=0),
    mutant("cap-is-never-free", "what has ended counts as held for ever", "Shares.ended",
           "            self._queues[name].held -= 1\n", "", "X1", CAPPED, seeds=0),
    mutant("full-seats-block", "a queue that is at its cap keeps the others waiting", "Shares._wish_for",
           "if not each.is_empty and each.room > 0]", "if not each.is_empty]", "X1",
           SHARES + "test_one_that_is_at_its_cap_keeps_no_other_waiting", seeds=0),
    mutant("gone-seats-claim-on", "a worker claims for a seat that it has no more", "Claimer._take",
           "while self._shares.has(queue) and not self._is_closing:", "while not self._is_closing:", "X1",
           WORKER + "test_a_seat_that_is_gone_is_claimed_for_no_more_and_one_that_comes_back_is", seeds=0),
    mutant("stale-for-long", "a worker that was told new seats still waits for a while", "Claimer._pause",
           " or self._fences.get(queue, 0) != fence", "", "X1",
           WORKER + "test_a_stale_seat_is_no_error_and_claims_again_as_soon_as_it_is_told", seeds=0),
    mutant("keys-of-some-queues-take-seats", "a key of some queues takes seats of all workflows",
           "clearance._queues_of", "            if row.takes_seats:\n", "            if False:\n", "X1",
           "tests/runtime/test_clearance.py::test_seats_are_for_keys_that_may_claim_in_all_queues_of_workflows",
           seeds=0),
)
