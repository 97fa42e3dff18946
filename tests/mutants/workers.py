"""Mutants of a worker's own rules: what runs beside what, what is kept of a log, when an engine is given up."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant, script

POOLS = "tests/worker/test_pools.py::"
SILENCES = "tests/worker/test_silence.py::"
LOGS = "tests/worker/test_context.py::"
BLAME = "tests/worker/test_blame.py::"
ALONE = BLAME + "test_an_accused_task_runs_alone"
FAULT = BLAME + "test_the_first_death_is_nobodys_fault_and_that_of_an_accused_one_its_own"
ACCUSED = BLAME + "test_a_task_is_accused_until_it_ends_by_itself"
ESCAPED = "tests/worker/test_escapees.py::"
VITALS = "tests/worker/test_vitals.py::"
OVERRUN = VITALS + "test_a_worker_that_does_not_end_what_runs_for_too_long_is_to_be_ended_for_it_once"
FINAL = script("a failure that is final leaves a task dead with attempts left until it is revived")
NEWEST = LOGS + "test_what_a_task_says_is_kept_in_order_and_bounded_and_the_newest_is_there"
FULL = LOGS + "test_a_log_that_is_full_goes_on_to_grow_with_the_logarithm_of_the_time"
SLEPT = SILENCES + "test_a_worker_that_slept_asks_before_the_engine_is_condemned"

ORPHANS = ("tests/worker/test_orphans.py::"
           "test_the_engine_of_a_killed_worker_is_killed_when_its_first_lease_is_over")
HALTING = "tests/worker/test_halting.py::"
GIVEN_UP = HALTING + "test_an_engine_that_does_not_confirm_is_given_up_whatever_the_function_does"
TASKS = "tests/worker/test_spark_tasks.py::"
PYTHON_ENDS = ("tests/worker/test_spark_session.py::"
               "test_the_python_of_a_cancelled_task_ends_at_once_and_that_of_a_neighbour_goes_on")
DEAF = ESCAPED + "test_tasks_are_not_over_with_their_jobs_and_those_that_do_not_obey_are_interrupted_again"
STOPPED = "tests/worker/test_spark_worker.py::test_nothing_of_a_lost_claim_runs_on_while_its_worker_is_stopped"

MUTANTS: tuple[Mutant, ...] = (
    mutant("lost-confirms-slowly", "the job of a lost claim in a JVM that hangs acts for five seconds",
           "halting.halt", "LOST_CONFIRM_S if run.is_lost else CONFIRM_S", "CONFIRM_S", "W3",
           HALTING + "test_of_a_lost_claim_an_engine_has_a_second_to_confirm", seeds=0),
    mutant("uncertain-at-last", "an engine that hangs goes on while the function of a lost claim does",
           "halting.halt", "        if not is_cancelled:\n            on_uncertain()\n        run.interrupt()\n",
           "        run.interrupt()\n        if not is_cancelled:\n            run.join(STOP_S)\n"
           "            on_uncertain()\n", "W3", GIVEN_UP, seeds=0),
    mutant("unswept-is-certain", "jobs that do not end are left to an engine that goes on", "halting.halt",
           "run.needs_spark and not engine.is_swept()", "False", "W3", GIVEN_UP, seeds=0),
    mutant("python-outlives-its-task", "the Python process of a cancelled Spark task goes on until Spark looks",
           "spark_tasks.end_python", "task.isInterrupted() and not task.isCompleted()", "False", "W3", PYTHON_ENDS,
           seeds=0),
    mutant("tasks-end-with-jobs", "what Spark calls ended still runs, and is not asked for",
           "SparkEngine.is_swept", "self._runtime.escaped_tasks(self._groups) or ()", "()", "W3",
           TASKS + "test_a_sweep_waits_for_tasks_of_jobs_that_have_ended", seeds=0),
    mutant("neighbours-tasks-escape", "the Spark tasks of running tasks are taken for those of cancelled ones",
           "spark_tasks.escaped", " if group not in running]", "]", "W3",
           TASKS + "test_tasks_of_groups_that_are_nobodys_have_escaped", seeds=0),
    mutant("groups-before-tasks", "a Spark task that begins meanwhile is interrupted as nobody's",
           "spark_tasks.escaped", "    found: dict[int, str | None] = {}\n",
           "    found: dict[int, str | None] = {}\n    groups = [*groups()].copy\n", "W3",
           TASKS + "test_a_task_that_begins_meanwhile_is_no_escapee", seeds=0),
    mutant("quiet-with-tasks", "a cancellation is proven while a Spark task goes on", "Sweep.look",
           "if escaped or self._seen:", "if escaped:", "W3", DEAF, seeds=0),
    mutant("swallowed-for-ever", "a Spark task that swallows its interrupt runs to its end", "Sweep.look",
           "if looks > OBEYED_LOOKS", "if False", "W3", DEAF, seeds=0),
    mutant("interrupted-as-it-cleans-up", "a Spark task that obeys is interrupted again", "Sweep.look",
           "if looks > OBEYED_LOOKS", "if looks > 1", "W3", DEAF, seeds=0),
    mutant("orphaned-engine", "the engine of a killed worker may take as long as it likes to end",
           "renewer._Process.run", "        self._bury_engine()\n", "", "W4", ORPHANS, seeds=0),
    mutant("buried-alive", "the engine of a killed worker is killed though its leases run, and leaves its files",
           "renewer._Process._bury_engine", "and steady_s() < until:", "and False:", "W4", ORPHANS, seeds=0),
    mutant("stopped-with-its-engine", "the job of a stopped worker acts beside the next claim's",
           "renewer._Process._kill_engine", "os.kill(engine[0], signal.SIGKILL)", "pass", "W3", STOPPED, seeds=0),
    mutant("one-pool-for-all", "a short task waits in the pool of a long one", "Pools.lent",
           "            self._lent.add(number)\n", "", "W1",
           POOLS + "test_tasks_that_run_at_once_have_pools_of_their_own", seeds=0),
    mutant("pools-without-end", "Spark gets a pool more with every task, for good", "Pools.lent",
           "                self._lent.discard(number)\n", "                pass\n", "W1",
           POOLS + "test_a_pool_is_used_again_when_its_task_is_over", seeds=0),
    mutant("accused-in-company", "tasks start beside one that may have killed its engine", "blame.admitted",
           "    if any(running):\n", "    if False:\n", "W1", ALONE, seeds=0),
    mutant("accused-among-others", "a task that may have killed its engine starts beside others", "blame.admitted",
           "    if plain or running:\n", "    if plain:\n", "W1", ALONE, seeds=0),
    mutant("killer-before-neighbours", "what killed an engine alone runs before those that did not",
           "blame.admitted", "[min(accused)[1]]", "[max(accused)[1]]", "W1",
           BLAME + "test_a_task_that_killed_an_engine_alone_comes_after_its_neighbours", seeds=0),
    mutant("claims-for-the-accused", "tasks are claimed that must wait for an accused one", "blame.may_claim",
           "not any(running) and not any(waiting)", "not any(running)", "W1",
           BLAME + "test_nothing_is_claimed_while_an_accused_task_runs_or_waits", seeds=0),
    mutant("neighbours-fail", "the first death of an engine costs all its tasks an attempt", "blame.verdict",
           "return Verdict(words + MEMORY if is_accused else words, is_accused)",
           "return Verdict(words + MEMORY if is_accused else words, True)", "W1", FAULT, seeds=0),
    mutant("killers-go-free", "a task kills its engine again and again, at no cost", "blame.verdict",
           "return Verdict(words + MEMORY if is_accused else words, is_accused)",
           "return Verdict(words + MEMORY if is_accused else words, False)", "W1", FAULT, seeds=0),
    mutant("accused-for-ever", "a task runs alone although it ended by itself since", "blame.deaths_under",
           '        elif claim.outcome == "failed":\n', "        elif False:\n", "W1", ACCUSED, seeds=0),
    mutant("acquitted-by-a-stop", "a task that was given back half-way is accused no more", "blame.deaths_under",
           'elif claim.outcome == "failed":', 'elif claim.outcome in ("failed", "released"):', "W1", ACCUSED,
           seeds=0),
    mutant("escapees-go-on", "jobs of nobody are left running beside a cancelled task", "Sweep.look",
           "{*active} - {*owned}", "set()", "W1",
           ESCAPED + "test_all_others_are_cancelled_each_time_they_are_seen", seeds=0),
    mutant("neighbours-cancelled", "the jobs of running tasks end with a cancelled one", "Sweep.look",
           "{*active} - {*owned}", "{*active}", "W1",
           ESCAPED + "test_jobs_of_running_tasks_are_no_escapees", seeds=0),
    mutant("quiet-once", "a thread between two jobs is taken for quiet", "Sweep.look",
           "            self._quiet_looks = 0\n", "", "W1",
           ESCAPED + "test_a_thread_between_two_jobs_is_not_taken_for_quiet", seeds=0),
    mutant("swept-for-ever", "an engine whose jobs do not end is not replaced", "Sweep.look",
           "False if now >= self._until else None", "None", "W1",
           ESCAPED + "test_what_does_not_end_in_ten_seconds_is_not_proven", seeds=0),
    mutant("stopped-is-alive", "leases are renewed for a worker that is stopped", "Vitals.may_hold",
           "not self._is_stopped and ", "", "W1",
           VITALS + "test_a_worker_that_is_stopped_holds_nothing_until_it_goes_on[T]", seeds=0),
    mutant("silent-is-stuck", "a task that holds the interpreter's lock loses its worker's claims", "Vitals.seen",
           "        if self._cpu is not None and look.cpu > self._cpu:\n", "        if False:\n", "W1",
           VITALS + "test_a_worker_that_works_lives_though_it_says_nothing", seeds=0),
    mutant("stuck-is-alive", "a worker that does nothing any more keeps its claims", "Vitals.seen",
           "look.cpu > self._cpu:", "look.cpu >= self._cpu:", "W1",
           VITALS + "test_a_worker_that_neither_speaks_nor_works_is_stuck_after_60_s", seeds=0),
    mutant("loss-unheard", "an engine runs on for a worker that hears of no loss", "Losses.take_overdue",
           "        if at is None or now < at:\n", "        if True:\n", "W1",
           VITALS + "test_a_loss_that_nobody_heard_is_overdue_once", seeds=0),
    mutant("loss-heard-in-vain", "the engine of a worker that heard of a loss is killed", "Losses.acknowledged",
           "        self._told.pop(key, None)\n", "        pass\n", "W1",
           VITALS + "test_a_loss_is_to_be_acknowledged_within_a_second", seeds=0),
    mutant("loss-told-anew", "a loss that is told again has a second more", "Losses.told",
           "self._told.setdefault(key, now)", "self._told[key] = now", "W1",
           VITALS + "test_a_loss_that_nobody_heard_is_overdue_once", seeds=0),
    mutant("overrun-for-ever", "a task that its worker cannot stop runs for ever", "Overruns.take",
           "now >= at + OVERRUN_S", "False", "W1", OVERRUN, seeds=0),
    mutant("overrun-after-the-end", "a worker is ended for a claim that is over", "Overruns.drop",
           "        self._limits.pop(key, None)\n", "        pass\n", "W1", OVERRUN, seeds=0),
    mutant("final-is-forgotten", "a task that no attempt can cure is tried again and again", "judge_conclusions",
           "            if is_final and kind == FAILED:\n", "            if False:\n", "C16", FINAL,
           seeds=0),
    mutant("final-lost-on-the-way", "what is final is a failure like any other to another node's leader",
           "ConcludeOperation.question", "is_final=self._request.is_final", "is_final=False", "C16", FINAL,
           seeds=0),
    mutant("final-for-ever", "a final failure kills the task again after it was revived", "judge_conclusions",
           "Mark(task_id, DIED, history.round + 1, PERMANENT)",
           "Mark(task_id, DIED, history.round + 2, PERMANENT)", "C16", FINAL, seeds=0),
    mutant("final-said-late", "a failure that is said to be final afterwards kills the task", "judge_conclusions",
           "            claim, until_ms = said, said.until_ms\n",
           "            claim, until_ms = said, said.until_ms\n"
           "            marks += [Mark(task_id, DIED, history.round + 1, PERMANENT)] * is_final\n",
           "C16", FINAL, seeds=0),
    mutant("sleep-is-silence", "a worker that was stopped throws a healthy engine away", "Silence.is_too_long",
           "min(gap_s, GAP_S)", "gap_s", "W1", SLEPT, seeds=0),
    mutant("condemned-unasked", "the first look after a sleep condemns the engine", "Silence.is_too_long",
           "        if has_slept:\n", "        if False:\n", "W1",
           SILENCES + "test_an_engine_that_answers_after_the_sleep_is_well", seeds=0),
    mutant("newest-mark-dropped", "of a log that is full the newest mark is dropped", "Journal.say",
           " else self._newest).append(entry)", " else []).append(entry)", "W1", NEWEST, seeds=0),
    mutant("full-log-unpaced", "a log that is full is written as fast as before", "Journal.take",
           "                    self._next_progress_s = now_s + pause_s(now_s - self._started_s)\n",
           "                    self._next_progress_s = now_s\n", "W1", FULL, seeds=0),
)
