"""Mutants of what a worker does about task functions whose own code does harm: around their calls, and beside."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

WORDS = "tests/worker/test_failure_words.py::"
OWN_CODE = WORDS + "test_an_error_whose_own_code_raises_is_kept_all_the_same"
DEEP = WORDS + "test_of_a_deep_stack_the_beginning_and_the_end_are_kept"
AROUND = "tests/worker/test_plain.py::test_what_is_raised_around_a_function_fails_its_task_and_frees_its_slot"
LOOP = "tests/worker/test_event_loop.py::test_the_loop_turns_on_whatever_a_coroutine_does_to_it"
SNOOZE = WORDS + "test_a_snooze_of_a_class_of_its_own_that_says_no_time_is_an_error"
CLOSED = "tests/worker/test_flow.py::test_the_end_of_a_worker_does_not_hang_on_what_a_lifecycle_calls"
APART = ("tests/worker/test_spark_session.py::"
         "test_a_pyspark_that_a_task_took_apart_is_no_more_alive_than_its_jvm_would_be")

CLOCKS = "tests/worker/test_own_clocks.py::"
STILL = CLOCKS + "test_clocks_are_the_system_s_whatever_becomes_of_the_module"
DELETED = ("tests/embedded/test_java.py::"
           "test_a_directory_that_was_deleted_is_said_to_be_the_reason_and_not_the_java")
STARTED = ("tests/worker/test_drivers.py::"
           "test_a_driver_is_started_where_its_worker_was_and_makes_clients_whatever_tasks_have_set")

MUTANTS: tuple[Mutant, ...] = (
    mutant("clocks-by-the-module", "a task that freezes time stops its worker's clocks", "steady.monotonic_s",
           "return read(_AWAKE)", "return time.clock_gettime(_AWAKE)", "W4", STILL, seeds=0),
    mutant("clocks-by-name", "what freezes time finds the clocks of a worker by their names", "client.steady",
           "Reader = Callable[[int], float]\n", "Reader = Callable[[int], float]\n_READ = time.clock_gettime\n",
           "W4", STILL, seeds=0),
    mutant("lines-by-the-module", "a task that freezes time makes its worker's log lie", "logs._Handler.emit",
           "        record.created = wall_s()\n", "", "W4", "tests/cli/test_logs.py::"
           "test_a_line_has_the_time_that_it_is_though_a_task_has_stopped_that_of_the_module", seeds=0),
    mutant("loops-by-the-module", "a task that freezes time stops all async tasks of its worker",
           "EventLoop.start", '            vars(self._loop)["time"] = monotonic_s\n', "", "W4",
           CLOCKS + "test_the_event_loop_of_a_worker_tells_the_time_by_the_worker_s_clock", seeds=0),
    mutant("deleted-is-no-java", "where the directory was deleted every Java seems to be broken",
           "java.find_java", "process.standing(directory)", "directory or Path()", "W4", DELETED, seeds=0),
    mutant("elsewhere-is-no-java", "a Java is tried where a task left the process", "java._probe",
           "            cwd=place,\n", "", "W4", DELETED, seeds=0),
    mutant("spark-anywhere", "Spark is started where a task left the worker", "spark_jvm.launch",
           "        working_directory=working_directory,\n", "", "W4", "tests/worker/test_places.py::"
           "test_spark_starts_where_the_worker_was_started_or_it_is_said_that_this_is_gone", seeds=0),
    mutant("drivers-anywhere", "a driver is started where a task left the worker", "driver.guarded",
           "cwd=working_directory)", "cwd=None)", "W4", STARTED, seeds=0),
    mutant("drivers-nowhere", "scripts fail for good where their worker's directory was deleted",
           "kinds.script._stands", "        raise Snooze(ELSEWHERE_S) from None\n", "        raise\n", "W4",
           STARTED, seeds=0),
    mutant("drivers-without-java", "a plain script is said to fail for Java", "kinds.script._stands",
           'standing(directory, "a script")', "standing(directory)", "W4", STARTED, seeds=0),
    mutant("drivers-leave-directories", "each claim where no driver can start leaves a directory behind",
           "kinds.script._readied", "    started_in = _stands(context, now.started_in)\n    directory = place()\n",
           "    directory = place()\n    started_in = _stands(context, now.started_in)\n", "W4", STARTED, seeds=0),
    mutant("workers-without-java", "a worker is said not to start for Java", "worker.start.run_worker",
           'standing(None, "a worker")', "standing(None)", "W4", "tests/worker/test_places.py::"
           "test_a_worker_that_is_started_in_a_directory_that_was_deleted_says_so", seeds=0),
    mutant("words-that-leave", "an error whose text ends the thread keeps its slot for ever", "outcome.said",
           "    except BaseException as problem:\n", "    except Exception as problem:\n", "W4", OWN_CODE,
           seeds=0),
    mutant("names-that-leave", "an error whose name ends the thread keeps its slot for ever", "outcome._name_of",
           "    except BaseException:", "    except Exception:", "W4", OWN_CODE, seeds=0),
    mutant("liars-believed", "an error is asked for its class", "endings.ended_by",
           "issubclass(type(error), Dead)", "isinstance(error, Dead)", "W4", OWN_CODE, seeds=0),
    mutant("snoozes-unseen", "a snooze that says no time ends the worker, or is asked for without end",
           "endings.snoozed", "if type(delay_ms) is int and 0 <= delay_ms <= DELAY_MS_MAX:", "if True:", "W4",
           SNOOZE, seeds=0),
    mutant("snoozes-too-long", "a snooze that no node takes is asked for without end", "endings.snoozed",
           "0 <= delay_ms <= DELAY_MS_MAX", "0 <= delay_ms", "W4", SNOOZE, seeds=0),
    mutant("snoozes-without-time", "a snooze that says nothing keeps its slot", "endings.snoozed",
           "    except BaseException as problem:", "    except ArithmeticError as problem:", "W4",
           WORDS + "test_a_snooze_of_a_class_of_its_own_counts_and_one_without_a_time_is_an_error", seeds=0),
    mutant("lifecycle-leaves", "a lifecycle that leaves the process ends the end of its worker", "flow.Flow.close",
           "            thread = threading.Thread(target=_stop, args=(step,), name=f\"stop {step.name}\","
           " daemon=True)\n            thread.start()\n",
           "            step.lifecycles.stop()\n            thread = threading.current_thread()\n", "W4", CLOSED,
           seeds=0),
    mutant("lifecycle-stays", "a lifecycle that does not come back holds up its worker's end", "flow.Flow.close",
           "thread.join(max(0.0, until - steady_s()) / (len(steps) - number))", "thread.join()", "W4", CLOSED,
           seeds=0),
    mutant("left-by-status", "a worker that fails is kept by what its tasks left", "start.run_worker",
           "        status = 1  # if it fails\n", "", "W4", "tests/worker/test_leaving.py::"
           "test_the_process_of_a_worker_that_ends_is_left_however_that_ends", seeds=0),
    mutant("liars-forgiven", "a policy asks an error for its class", "Traits.forgives",
           "not issubclass(kind, self.never)", "not isinstance(error, (self.never, Refused))", "W4", OWN_CODE,
           seeds=0),
    mutant("results-that-leave", "a result whose code leaves the process is nobody's error", "endings.ended_with",
           "    except BaseException as error:\n", "    except Exception as error:\n", "W4",
           WORDS + "test_a_result_whose_own_code_leaves_the_process_is_no_result", seeds=0),
    mutant("modules-have-names", "an error of a module with another name than a text has no place",
           "outcome._traced", 'str(frame.f_globals.get("__name__", ""))', 'frame.f_globals.get("__name__", "")',
           "W4", WORDS + "test_the_place_of_an_error_is_looked_for_in_any_module", seeds=0),
    mutant("whole-stacks", "a stack of a million frames is read whole", "outcome._traced",
           "    if len(theirs) > FRAMES_MAX:\n", "    if False:\n", "W4", DEEP, seeds=0),
    mutant("places-that-raise", "an error whose sources cannot be read keeps its slot for ever",
           "outcome._traced", "    except BaseException as problem:", "    except OSError as problem:", "W4", DEEP,
           seeds=0),
    mutant("runs-without-end", "what is raised around a function leaves its run without an end", "Run._main",
           "            except BaseException as error:\n", "            except Refused as error:\n", "W4", AROUND,
           seeds=0),
    mutant("courses-without-end", "what is raised around an async function leaves its run without an end",
           "Run._await", "        except BaseException as error:\n", "        except Refused as error:\n", "W4",
           AROUND, seeds=0),
    mutant("arguments-that-leave", "an argument that leaves the process takes its batch along", "part._ending",
           "    except BaseException as error:  # a class", "    except Exception as error:  # a class", "W4",
           "tests/worker/test_batching.py::"
           "test_an_item_whose_argument_leaves_the_process_as_it_is_made_ends_for_itself", seeds=0),
    mutant("loop-stopped", "a task that stops the event loop stops all others", "EventLoop._serve",
           "        while not self._is_closing:\n", "        for _ in range(1):\n", "W4", LOOP, seeds=0),
    mutant("loop-left", "a task that leaves the event loop by sys.exit stops all others", "EventLoop._serve",
           "            except BaseException as error:", "            except Exception as error:", "W4", LOOP,
           seeds=0),
    mutant("deaf-worker", "a worker goes on without the thread that writes for it", "Helped._guarded",
           "            self.on_failure(f", "            print(f", "W4",
           "tests/worker/test_plain.py::test_a_worker_does_not_go_on_without_the_thread_that_writes", seeds=0),
    mutant("spark-never-comes", "tasks wait for ever for a Spark that cannot be loaded", "Ignition._begin",
           "            except BaseException as error:", "            except ArithmeticError as error:", "W4",
           "tests/worker/test_plain.py::test_an_engine_that_cannot_be_loaded_ends_the_worker_and_that_is_said",
           seeds=0),
    mutant("left-for-ever", "a worker whose tasks left a thread behind never ends", "leaving.leave",
           "    timer.start()\n", "", "W4",
           "tests/worker/test_leaving.py::test_what_a_task_left_running_does_not_keep_the_process", seeds=0),
    mutant("left-by-a-daemon", "a worker waits for its own end", "leaving.leave", "    timer.daemon = True\n", "",
           "W4", "tests/worker/test_leaving.py::test_a_process_in_which_nothing_is_left_ends_by_itself", seeds=0),
    mutant("closed-stderr", "a worker ends when a task has closed standard error", "_Handler.handleError",
           "        if not self.stream.closed:\n", "        if True:\n", "W4",
           "tests/cli/test_logs.py::test_nobody_fails_for_a_line_that_cannot_be_written", seeds=0),
    mutant("clock-before-word", "a claim is given up though its lease was renewed while a task held the lock",
           "TaskContext.is_past", "            self.extend(self._renewed())\n", "            pass\n", "W7",
           "tests/worker/test_context.py::"
           "test_before_a_deadline_is_believed_it_is_asked_whether_the_lease_was_renewed", seeds=0),
    mutant("renewer-interrupted", "a renewer is not heard out before a claim is given up", "Renewer.newest",
           "            heard.acquire(timeout=ECHO_S)\n", "", "W7",
           "tests/worker/test_desk.py::test_what_a_renewer_has_said_is_heard_before_a_claim_is_given_up", seeds=0),
    mutant("renewer-locked", "a task that is told to stop while it asks leaves a lock behind", "Renewer.newest",
           "            self._asking.put(heard)\n",
           '            with self.__dict__.setdefault("shared", threading.Condition()):\n'
           "                self._asking.put(heard)\n", "W7",
           "tests/worker/test_desk.py::test_an_order_to_stop_that_arrives_anywhere_while_a_task_asks"
           "_keeps_nobody_else_from_asking", seeds=0),
    mutant("renewer-without-echo", "a renewer gives no echo", "_Process._hear",
           '            _tell(echo=words["echo"])\n', "            pass\n", "W7",
           "tests/worker/test_desk.py::test_a_renewer_gives_an_echo_at_once", seeds=0),
    mutant("black-hole", "every task fails in a PySpark that one took apart, and the worker goes on",
           "SparkRuntime.is_alive", " or not self.is_whole", "", "W1", APART, seeds=0),
    mutant("slow-black-hole", "a PySpark that was taken apart is given up when it has been silent for long",
           "SparkEngine.is_gone", "        if not self._runtime.is_whole:\n", "        if False:\n", "W1", APART,
           seeds=0),
    mutant("taken-apart-and-raised", "who asks a PySpark that was taken apart ends by what it raises",
           "_Supervisor.ask", "        except Exception:", "        except (TimeoutError, OSError):", "W1",
           APART, seeds=0),
    mutant("progress-of-anything", "progress is a list that changes before it is written", "Journal.progress",
           "        if not all(isinstance(number, int | float) for number in (done, total)):\n",
           "        if False:\n", "W4", "tests/worker/test_context.py::test_progress_takes_numbers", seeds=0),
)
