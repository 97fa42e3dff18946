"""Mutants of batches: how large they are, how a crash is found, what becomes of each item."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

PURE = "tests/worker/test_batching.py::"
BOUNDS = PURE + "test_whatever_jobs_took_the_next_is_within_its_bounds"
FOUND = PURE + "test_those_that_crash_are_found_and_all_others_run_well_once"
OWN = PURE + "test_each_item_of_a_part_has_an_ending_of_its_own"
BUDGET = PURE + "test_behind_its_budget_a_part_begins_nothing_and_its_first_item_always"
LATE = PURE + "test_an_item_that_runs_for_too_long_is_interrupted_and_the_next_goes_on"
NEEDED = PURE + "test_what_executors_cannot_give_is_refused_where_it_is_written"
DESK = "tests/worker/test_desk.py::"
LOTS = DESK + "test_runs_of_one_function_and_queue_are_one_lot_and_take_one_slot"
FULL = DESK + "test_a_lot_has_no_more_runs_and_bytes_than_one_job_may_have"
WANTED = DESK + "test_a_batch_is_wanted_as_long_as_nothing_is_decided_of_one_of_its_runs"
ONE = DESK + "test_one_batch_of_a_kind_runs_at_a_time_and_the_next_when_it_is_over"
TOLD = DESK + "test_a_batch_is_told_of_when_it_takes_long_at_a_pace_and_when_it_is_over"
LEFT = DESK + "test_what_a_job_did_not_come_to_waits_again_unless_its_fate_is_decided"
FIRST = "tests/node/test_granting.py::test_claims_say_of_which_tasks_they_are_the_first"

MUTANTS: tuple[Mutant, ...] = (
    mutant("batch-without-end", "a job has more items than may be", "Sizes.limit",
           "return min(self._most, fitting,", "return min(fitting,", "W5", BOUNDS, seeds=0),
    mutant("batch-of-the-unknown", "one quick item makes a job of a thousand", "Sizes.limit",
           "FIRST if self._seen < FIRST else fitting", "fitting", "W5",
           PURE + "test_a_job_of_tiny_items_has_as_many_as_may_be", seeds=0),
    mutant("batch-learns-slowly", "jobs stay large when items get slow", "Sizes.note",
           "max(each_s, self._each_s + NEWS * (each_s - self._each_s))",
           "self._each_s + NEWS * (each_s - self._each_s)", "W5",
           PURE + "test_a_slow_item_makes_jobs_small_at_once_and_quick_ones_make_them_large_slowly", seeds=0),
    mutant("batch-all-its-price", "the price of a job is taken for that of its items", "Sizes.note",
           "each_s, price_s = busy_s / count,", "each_s, price_s = wall_s / count,", "W5",
           PURE + "test_a_second_of_predicted_work_is_one_job", seeds=0),
    mutant("batch-parts-for-nothing", "tiny items are spread over as many parts as there are cores", "Sizes.parts",
           "min(count, ceil(count * self._each_s / PART_S))", "count", "W5",
           PURE + "test_a_part_has_work_for_what_it_costs", seeds=0),
    mutant("crash-of-two", "an item fails for another one's crash", "Halving.crashed",
           "if len(group) == 1:", "if len(group) <= 2:", "W5", FOUND, seeds=0),
    mutant("crash-takes-half", "half of the items of a crash are never run again", "Halving.crashed",
           "self._groups += [group[middle:], group[:middle]]", "self._groups += [group[middle:]]", "W5", FOUND,
           seeds=0),
    mutant("budget-unheard", "a job goes on when items are slower than was thought", "part.run_part",
           "monotonic_s() - began >= order.budget_s", "False", "W5", BUDGET, seeds=0),
    mutant("budget-before-the-first", "a job without time does nothing, again and again", "part.run_part",
           "if endings and (size", "if (size", "W5", BUDGET, seeds=0),
    mutant("results-without-end", "a job gives back more than its driver can hold", "part.run_part",
           "size >= order.bytes_max", "False", "W5",
           PURE + "test_behind_so_many_bytes_of_results_a_part_begins_nothing", seeds=0),
    mutant("item-ends-the-part", "what an item says of its task fails its neighbours", "part._ending",
           "except BaseException as error:  # also", "except Exception as error:  # also", "W5", OWN, seeds=0),
    mutant("item-never-late", "an item runs for longer than its limit", "part._limited",
           "        if is_armed:\n", "        if False:\n", "W5", LATE, seeds=0),
    mutant("timer-left-on", "an item's limit interrupts what runs after it", "part._limited",
           "            signal.setitimer(signal.ITIMER_REAL, 0)\n", "", "W5",
           PURE + "test_the_signals_of_others_are_as_they_were", seeds=0),
    mutant("timer-of-no-block", "a limit that is over at once interrupts other items, and ends the process",
           "part._limited",
           "        try:\n            faulthandler.dump_traceback_later(timeout_s +",
           "        signal.setitimer(signal.ITIMER_REAL, timeout_s, AGAIN_S)\n"
           "        try:\n            faulthandler.dump_traceback_later(timeout_s +",
           "W5", PURE + "test_an_items_limit_that_is_over_at_once_is_its_own_alone", seeds=0),
    mutant("run-without-ending", "a result that cannot be read leaves a run without an ending",
           "endings.ended_with", "    except BaseException as error:\n",
           "    except ZeroDivisionError as error:\n", "W5",
           PURE + "test_what_a_result_raises_when_it_is_read_is_the_ending_of_its_function", seeds=0),
    mutant("batch-with-context", "a batched function asks for what executors lack", "traits._check_batch",
           "    if has:\n", "    if False:\n", "W5", NEEDED, seeds=0),
    mutant("ahead-of-others", "batches claim what others could do", "Ahead.count",
           "int(min(BATCHES * self._batch, (self._slots + single) / max(self._others, 1e-6)))",
           "BATCHES * self._batch", "W5",
           PURE + "test_among_other_tasks_no_more_is_claimed_ahead_than_brings_few_of_them", seeds=0),
    mutant("batch-served-a-thousandfold", "a queue of batches waits for a thousand tasks of another one",
           "Shares.joined", "self._queues[name].served -= count / self._queues[name].weight", "pass", "W5",
           PURE + "test_a_batch_is_served_as_one_task_of_its_queue", seeds=0),
    mutant("two-batches-at-once", "a batch starts beside one of its kind", "Desk.lots",
           "(kind is None or kind not in self._batches)", "True", "W5", ONE, seeds=0),
    mutant("batch-out-of-turn", "tasks without a slot come along with a batch", "Desk.lots",
           "elif len(made) < slots and", "elif", "W5", LOTS, seeds=0),
    mutant("job-too-large", "a job's payloads are more than its driver can hold", "_Lot.add",
           " and size <= BYTES_MAX", "", "W5", FULL, seeds=0),
    mutant("one-ends-all", "a lost or cancelled task ends its whole batch", "Batch.is_wanted",
           "return any(", "return all(", "W5", WANTED, seeds=0),
    mutant("stopped-is-halved", "a job that was cancelled begins anew", "Batch._main",
           "                if self._stopped.is_set() or not self._engine.is_alive():\n",
           "                if not self._engine.is_alive():\n", "W5", WANTED, seeds=0),
    mutant("lost-runs-again", "a task whose claim is lost waits for the next batch", "Desk.take",
           " and run.fate is not None]", " and False]", "W5", LEFT, seeds=0),
    mutant("past-unread", "a task that may have killed its engine runs among others", "Assignment.has_past",
           "(self.kind is None or not self.claim.is_first)", "self.kind is None", "W5",
           DESK + "test_only_what_was_claimed_before_is_read_of_a_batch", seeds=0),
    mutant("every-claim-the-first", "a task that was claimed before is said to be new", "grant._runs",
           "lambda index: index not in past", "lambda index: True", "W5", FIRST, seeds=0),
    mutant("ends-one-by-one", "the ends of a batch are written in many requests", "Scribe.together",
           "        self._say = told.append\n", "", "W5",
           DESK + "test_what_ends_together_is_written_in_one_request_of_each_kind_and_no_log_for_it", seeds=0),
    mutant("pipe-loses-claims", "claims that the renewer's pipe does not take at once are not renewed",
           "Renewer._say", "            return  # a child",
           "            self._unsaid.clear()  # a child", "W5",
           DESK + "test_what_a_full_pipe_does_not_take_is_said_later_in_order", seeds=0),
    mutant("batch-told-each-second", "how far a batch is goes to the cluster each second", "Desk.look",
           "(names and now >= self._tell_at)", "names", "W5", TOLD, seeds=0),
    mutant("batch-told-for-ever", "a batch that is over is shown until the next report", "Desk.look",
           "names != self._told or (names and", "(names and", "W5", TOLD, seeds=0),
    mutant("batch-told-at-once", "each short batch is told of", "Desk.look",
           " if batch.age_s >= TOLD_S]", "]", "W5", TOLD, seeds=0),
    mutant("batch-beside-its-tasks", "tasks of a batch are shown beside it, one by one", "running.with_batches",
           " if (row.holder, row.queue, row.function) not in own]", "]", "W5",
           "tests/worker/test_batches.py::test_how_far_a_batch_is_is_told_once_for_all_of_its_tasks_and_seen_where"
           "_one_of_them_is_looked_at", seeds=0),
    mutant("batch-of-the-last-hour", "a batch of tasks that are older than an hour is not shown", "top._look",
           "    if has_claims and not as_json:\n", "    if found and not as_json:\n", "W5",
           "tests/cli/test_top.py::test_a_batch_is_shown_though_its_tasks_are_older_than_what_is_looked_for",
           seeds=0),
    mutant("batch-of-one-job", "how far a batch is leaves out its jobs behind a crash", "SparkEngine._look",
           "for job_id in jobs:", "for job_id in jobs[:1]:", "W5",
           "tests/worker/test_counts.py::test_parts_are_those_of_all_jobs_of_a_batch_so_far", seeds=0),
)
