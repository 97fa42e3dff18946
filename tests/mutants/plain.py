"""Mutants of what a worker does without Spark: what functions get and say, queues by weight, claims ahead."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

INJECTED = "tests/worker/test_injection.py::"
GIVEN = INJECTED + "test_a_function_gets_what_it_names_and_its_callers_give_the_rest"
REFUSED = INJECTED + "test_what_no_worker_could_run_is_refused_where_it_is_written"
SHARES = "tests/worker/test_shares.py::"
AHEAD = "tests/worker/test_ahead.py::"
MEMORY = "tests/testing/test_memory.py::"
SAID = MEMORY + "test_what_a_function_raises_says_what_becomes_of_its_task"
SNOOZED = MEMORY + "test_a_task_that_snoozes_waits_until_the_test_moves_the_time"
AROUND = "tests/worker/test_middleware.py::"
UNSWALLOWED = AROUND + "test_a_context_manager_is_around_the_hooks_and_swallows_nothing"
SENT = AROUND + "test_an_enqueue_is_surrounded_and_what_is_added_to_its_headers_travels"
SENDING = "tests/worker/test_sending.py::"
DELAY = SENDING + "test_a_delay_is_a_time_from_now"
LIMIT = SENDING + "test_a_limit_that_is_none_is_refused_where_the_task_would_run"
PLAIN = "tests/worker/test_plain.py::"

MUTANTS: tuple[Mutant, ...] = (
    mutant("spark-for-everybody", "a function that names no session has one", "injection._whose",
           "or _BY_NAME.get(parameter.name)", "or _BY_NAME.get(parameter.name, SPARK)", "W5", GIVEN, seeds=0),
    mutant("annotation-unread", "a session that goes by another name is not given", "injection._whose",
           '_BY_CLASS.get(name.strip("\'\\" ").rpartition(".")[2]) or ', "", "W5", GIVEN, seeds=0),
    mutant("given-in-place", "what a worker gives goes by name where an argument follows", "Injection.applied",
           "if at is None or at > len(filled):", "if True:", "W5", GIVEN, seeds=0),
    mutant("given-by-callers", "callers give what only the worker has", "injection.injection_of",
           "if parameter.name not in taken]", "]", "W5",
           INJECTED + "test_what_the_worker_fills_in_is_nobody_elses_to_give", seeds=0),
    mutant("spark-in-the-loop", "an async function is given Spark, and stops the loop", "traits.traits_of",
           "    if needs_spark and is_async:\n", "    if False:\n", "W5", REFUSED, seeds=0),
    mutant("generators-taken", "a generator is taken for a function with a result", "traits.traits_of",
           "    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):\n",
           "    if False:\n", "W5", REFUSED, seeds=0),
    mutant("weights-forgotten", "queues are served alike whatever their weights", "Shares._charge",
           "queue.served += count / queue.weight", "queue.served += count", "W5",
           SHARES + "test_full_queues_are_served_by_their_weights", seeds=0),
    mutant("room-unshared", "the first queue that is asked takes all the room", "Shares._wish_for",
           "share = self._permits * queue.weight // sum(each.weight for each in full)", "share = self._permits",
           "W5", SHARES + "test_room_for_many_is_shared_by_weight_too", seeds=0),
    mutant("credit-of-the-empty", "a queue that was empty is served for all that it missed", "Shares.answered",
           "            queue.served = max(queue.served, self._now)\n", "            pass\n", "W5",
           SHARES + "test_a_queue_that_was_empty_is_not_served_for_what_it_missed", seeds=0),
    mutant("empty-queues-take-room", "an empty queue costs the others a slot", "Shares._wish_for",
           "return Wish(1, waits=True, is_beyond=True) if may_ask else None",
           "return Wish(1, waits=True) if may_ask else None", "W5",
           SHARES + "test_an_empty_queue_waits_at_the_cluster_for_one_task_without_a_permit", seeds=0),
    mutant("beyond-all-bounds", "an empty queue is asked for more while all slots are taken", "Shares._wish_for",
           "may_ask = self._permits > 0 or self._turns > queue.looked_at", "may_ask = True", "W5",
           SHARES + "test_without_room_nothing_is_asked_until_a_task_ends", seeds=0),
    mutant("ahead-of-the-long", "tasks wait at a worker behind one that takes an hour", "Ahead.count",
           "int(self._slots * AHEAD_S / max(self._mean_s, 1e-6))", "AHEAD_MAX", "W5",
           AHEAD + "test_of_long_tasks_none", seeds=0),
    mutant("starved-by-a-start", "what waits for Spark to start takes the slots of plain tasks",
           "Ahead.note_starting", "min(self._slots, count)", "0", "W5",
           PLAIN + "test_while_spark_starts_what_waits_for_it_keeps_no_slot_from_plain_tasks", seeds=0),
    mutant("starting-without-end", "while Spark starts a worker claims without end", "Ahead.note_starting",
           "min(self._slots, count)", "count", "W5",
           AHEAD + "test_what_waits_for_spark_to_start_makes_room_for_as_many_others_as_there_are_slots", seeds=0),
    mutant("ahead-without-end", "a worker holds any number of claims that it has not begun", "Ahead.count",
           "min(AHEAD_MAX, ", "max(0, ", "W5", AHEAD + "test_as_many_as_the_slots_will_have_done_in_a_moment",
           seeds=0),
    mutant("late-and-held", "what was claimed ahead waits as long as the task before it",
           "Worker._give_back_what_waits_too_long", "if late := self._waiting.take_late(",
           "if late := [] and self._waiting.take_late(", "W5",
           PLAIN + "test_what_was_claimed_ahead_of_a_task_that_takes_long_is_given_back", seeds=0),
    mutant("plain-dies-along", "an engine that dies takes along what did not run in it", "Worker._on_engine_death",
           "if run.needs_spark and run.fate is None:", "if run.fate is None:", "W5",
           PLAIN + "test_an_engine_that_dies_takes_no_plain_function_along", seeds=0),
    mutant("engine-for-nobody", "the engine starts though no task needs it", "Worker._ready",
           "        if of_spark and not self._ignition.was_asked:\n",
           "        if not self._ignition.was_asked:\n", "W5",
           PLAIN + "test_a_plain_function_needs_no_engine_and_one_of_spark_starts_it", seeds=0),
    mutant("snooze-is-a-failure", "a task that snoozes loses an attempt", "endings.ended_by",
           "        return snoozed(cast(Snooze, error))\n",
           "        return Failed(said(error), error_of(error))\n",
           "W5", SNOOZED, seeds=0),
    mutant("dead-is-tried-again", "a task that is given up by its function is tried again", "endings.ended_by",
           "issubclass(type(error), Dead) or ", "", "W5", SAID, seeds=0),
    mutant("never-is-tried-again", "an error that is never to be tried again is", "Traits.forgives",
           "not issubclass(kind, self.never) and ", "", "W5", SAID, seeds=0),
    mutant("on-is-not-asked", "errors are tried again that the policy does not name", "Traits.forgives",
           "(not self.on or issubclass(kind, self.on))", "True", "W5",
           PLAIN + "test_a_policy_says_which_errors_are_tried_again", seeds=0),
    mutant("swallowed-in-a-run", "middleware makes a task that failed succeed", "middleware._bracket",
           "    if error is not None:\n        raise error\n", "", "W5", UNSWALLOWED, seeds=0),
    mutant("swallowed-in-an-enqueue", "middleware makes a task that was not stored look stored",
           "outgoing.going_out", "    if error is not None:\n        raise error\n", "", "W5", SENT, seeds=0),
    mutant("send-stops-the-loop", "a call that blocks stops the event loop", "sending._check_no_loop",
           "        asyncio.get_running_loop()\n", "        raise RuntimeError\n", "W5",
           SENDING + "test_in_an_event_loop_a_call_is_awaited_and_send_is_refused_with_that_remedy", seeds=0),
    mutant("a-client-each-call", "each awaited call has a client of its own", "sending._async_client",
           "    if loop not in _of_loops:\n", "    if True:\n", "W5",
           SENDING + "test_each_event_loop_has_a_client_of_its_own", seeds=0),
    mutant("a-client-for-ever", "each event loop leaves its sockets behind", "sending._kept",
           "        await client.close()\n", "", "W5",
           SENDING + "test_each_event_loop_has_a_client_of_its_own", seeds=0),
    mutant("delay-of-a-named-task", "a task with an id is another one each time it is enqueued",
           "preludes.start_of", "    if has_ids:\n", "    if False:\n", "A2", DELAY, seeds=0),
    mutant("a-minute-after-1970", "a span is taken for a time of 1970", "preludes._meant",
           "    if 0 < time_ms < YEAR_2000_MS <= now_ms:\n", "    if False:\n", "A2",
           SENDING + "test_a_time_of_the_last_century_is_answered_with_what_was_meant", seeds=0),
    mutant("limit-of-anybody", "a header that is no number is a limit", "time_limit.limit_of",
           '    check_timeout(f"header {TIMEOUT_HEADER}", limit_s)\n', "", "W5", LIMIT, seeds=0),
    mutant("classes-travel", "a policy's classes are lost on the way in silence", "options._policy",
           "    if retry.on or retry.never:\n", "    if False:\n", "A2",
           SENDING + "test_classes_of_errors_do_not_travel_and_that_is_said", seeds=0),
)
