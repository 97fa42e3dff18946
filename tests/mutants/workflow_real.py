"""Mutants of what lets workflows run on real workers: roots, feeders beside slots, batches, and schedulers."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

SEATS = "tests/worker/test_seats.py::test_"
WORKER = "tests/worker/test_flow_worker.py::test_a_feeder_takes_no_slot_and_gives_none_back"
SIZES = "tests/worker/test_flow.py::test_a_slot_takes_what_its_entry_says_or_its_function_and_else_one"
TELLS = "tests/worker/test_feeding.py::test_a_feeder_tells_how_far_it_is"
SCHEDULING = "tests/runtime/test_scheduling.py::test_"
STRANGER = ("tests/runtime/test_loop.py::test_a_scheduler_which_is_no_member_is_heard_about_decisions_and_keeps_as"
            "_many_as_it_may")


def _seen_by(test: str, name: str, rule: str, place: str, old: str, new: str) -> Mutant:
    return mutant(name, rule, place, old, new, "X3", test, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
    _seen_by(SEATS + "a_seat_is_a_queue_with_a_cap_and_a_fence", "roots-are-nobodys",
             "a seat in an input works on none of its roots", "worker.seats.queues_of",
             "        step = queue_of(seat.workflow, seat.step)\n",
             "        step = queue_of(seat.workflow, FEED if seat.kind == INPUT else seat.step)\n"),
    _seen_by("tests/node/test_seats.py::test_a_claim_without_a_seat_is_told_who_may_claim_there",
             "acks-need-a-seat", "a feeder is refused the queue of its acks", "definition.names.is_own",
             ' or step.startswith("_")', ""),
    _seen_by(WORKER, "feeder-in-a-slot", "a worker of one slot feeds, and works on nothing", "run.Run.__init__",
             "self.is_beside = is_feeder(assignment.claim.queue)", "self.is_beside = False"),
    _seen_by(WORKER, "feeder-brings-no-permit", "a worker that feeds claims for one slot less",
             "Worker._on_claims", "self._give_room(sum(run.is_beside for run in runs))", "pass"),
    _seen_by(WORKER, "feeder-leaves-a-permit", "a worker that has fed claims for one slot more", "Worker._on_end",
             "self._give_room(not run.is_beside)", "self._give_room(1)"),
    _seen_by(SIZES, "batch-of-an-entry-is-ignored", "a slot takes one segment of a step that has batches",
             "Flow.size_of", "return entry.batch or 1", "return 1"),
    _seen_by(SIZES, "batch-of-a-function-is-ignored", "a slot takes one segment of a batched function",
             "Flow.size_of", "return traits_of_function(self._resolve(entry.function)).batch or 1", "return 1"),
    _seen_by(SIZES, "no-answer-is-one", "a node that does not answer makes batches of one", "Flow.size_of",
             "            if is_passing(error):\n                raise\n", ""),
    _seen_by(SEATS + "how_many_a_slot_takes_is_asked_again_where_that_cannot_be_known_yet",
             "seats-lost-by-silence", "seats are lost whose batches are not known", "SeatKeeper._report",
             "            queues = queues_of(told.seats, self._size_of)\n            self._seats = told\n",
             "            self._seats = told\n            queues = queues_of(told.seats, self._size_of)\n"),
    _seen_by(SEATS + "a_worker_that_is_killed_keeps_its_seats_no_longer_than_its_tasks", "seats-of-the-killed",
             "the seats of a killed worker wait for half a minute", "SeatKeeper.__init__",
             "self._lease_s = min(LEASE_S, lease_s)", "self._lease_s = LEASE_S"),
    _seen_by(TELLS, "silent-feeder", "nobody hears how far a feeder is", "driving.Driver._listen",
             "        self._hands.tell(self._feeder.book)\n", ""),
    _seen_by(TELLS, "feeder-ends-untold", "what a feeder says last is not its end", "driving.Driver.run",
             "                self._hands.tell(self._feeder.book)\n", ""),
    _seen_by("tests/cli/test_workflow_status.py::test_how_far_inputs_are_say_the_checkpoints_of_their_feeders",
             "complete-are-pending", "roots that ended are counted as under way",
             "checkpoint.Book.pending", " - self.completed", ""),
    _seen_by("tests/cluster/test_deciding.py::test_those_that_were_silent_delay_one_decision_and_are_asked_again_"
             "after_a_rest", "the-dead-are-asked", "a dead scheduler delays each decision", "Decider._order",
             " and now_ms >= self._resting.get(name, now_ms)", ""),
    _seen_by(STRANGER, "schedulers-unheard", "a scheduler is heard only if it is a member", "runtime.loop",
             "_OF_ANYBODY = _TO_ANYBODY - {Decide}", "_OF_ANYBODY = frozenset(COORDINATION_MESSAGES)"),
    mutant("decides-for-strangers", "a node works out what a stranger asks", "loop.Loop._received",
           "type(message) in self._of_anybody", "type(message) in _TO_ANYBODY", "X3",
           "tests/wire/test_siege.py::test_a_siege_changes_nothing_that_it_must_not[0]", seeds=0),
    _seen_by(STRANGER, "a-scheduler-knows-few", "a scheduler answers no more nodes than a node meets joiners",
             "Loop._meet", "self._acquaintances_max:", "ACQUAINTANCES_MAX:"),
    _seen_by(SCHEDULING + "clients_are_told_to_ask_a_node", "scheduler-keeps-clients-waiting",
             "a client that asks a scheduler is not answered", "scheduling.Office.step",
             'return [Answer(client, Failed(getattr(message, "request", 0), "not_a_node", words, True))]',
             "return []"),
)
