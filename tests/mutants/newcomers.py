"""Mutants of what somebody meets who is new: words of errors, and what verbs take and show."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

WORDS = "tests/cli/test_progress.py::test_an_entry_in_words"
FATES = "tests/cli/test_showing.py::test_a_claim_shows_one_line_of_its_error_and_a_dead_task_does_not_rest"
DELAYS = "tests/gateway/test_enqueueing.py::test_a_delay_is_a_time_from_now_for_each"
VALUES = "tests/cli/test_json.py::test_a_result_is_bytes_and_a_value_is_what_it_says"
NEW = "tests/cli/test_newcomers.py::"
RESUMED = ("tests/cli/test_keys_verbs.py::"
           "test_a_cluster_is_created_with_the_keys_that_a_run_before_has_written")
MISSPELT = ("tests/worker/test_registry.py::"
            "test_a_misspelt_name_is_answered_with_the_one_that_is_meant_and_with_the_application_s_own")
FAILURES = "tests/worker/test_failure_words.py::"

MUTANTS: tuple[Mutant, ...] = (
    mutant("created-once-only", "a cluster of one machine is not there when one answer was lost",
           "LocalCluster._create", "            if status != UNCERTAIN:\n                break\n",
           "            break\n", "A1",
           "tests/embedded/test_creating.py::test_it_is_tried_again_when_the_answer_was_lost", seeds=0),
    mutant("created-by-nobody", "a directory whose first run died makes no cluster any more",
           "LocalCluster._create", 'if status == 0 or "[cluster_exists]" in said:', "if status == 0:", "A1",
           "tests/embedded/test_creating.py::test_one_that_is_there_is_this_directorys", seeds=0),
    mutant("misspelt-alone", "who misspells a function's name is not told which is meant", "registry.lookup",
           "get_close_matches(name, registered(), n=1)", "()", "W8", MISSPELT, seeds=0),
    mutant("own-functions-offered", "who misspells a name is offered those that Skuld keeps for itself",
           "registry.lookup", "sorted(registered())", "sorted(_functions)", "W8", MISSPELT, seeds=0),
    mutant("parameters-of-anything", "a parameter that cannot travel is not named", "sql._written",
           "    except (TypeError, ValueError, RecursionError):\n", "    except MemoryError:\n", "W8",
           "tests/calls/test_kinds.py::"
           "test_a_parameter_that_cannot_travel_is_refused_by_its_name_and_with_what_can", seeds=0),
    mutant("quotes-left-out", "a text in the place of a number looks like one", "preludes.start_of",
           "{delay_s!r:.64}", "{delay_s}", "W8",
           "tests/worker/test_sending.py::"
           "test_a_time_of_the_last_century_is_answered_with_what_was_meant", seeds=0),
    mutant("cured-errors", "a task that is completed is shown with an error as if it had failed",
           "get._outcomes_said", '"error" if task.state == "dead" else "last error"', '"error"', "W8", NEW +
           "test_an_error_that_another_attempt_may_cure_or_has_cured_is_the_last_one", seeds=0),
    mutant("drained-at-bare-addresses", "a node at an IPv6 address is asked at what is no address",
           "dial.address_of", 'if ":" in host else', "if not host else", "W8",
           "tests/cli/test_drain.py::test_nodes_are_asked_at_addresses_that_a_client_takes", seeds=0),
    mutant("bracketed-names", "an IPv6 address is looked up with its brackets, as a name",
           "options.naming_unknown_hosts", '.strip("[]")', "", "W8",
           "tests/cli/test_cli.py::test_an_ipv6_address_is_not_said_to_be_an_unknown_name", seeds=0),
    mutant("ports-of-ipv4-alone", "ZooKeeper does not listen at an IPv6 address", "held_port",
           'socket.AF_INET6 if ":" in host else socket.AF_INET', "socket.AF_INET", "W8",
           "tests/embedded/test_ports.py::test_a_port_of_an_ipv6_address_is_held", seeds=0),
    mutant("address-with-a-port", "a node takes a name that nobody can look up", "addresses.advertised",
           '    if ":" in host and not _is_plain(host):\n', '    if not host:\n', "W8",
           "tests/runtime/test_addresses.py::test_what_has_a_port_of_its_own_is_no_host", seeds=0),
    mutant("raw-script-words", "what a script writes moves the cursor", "progress._script_said",
           'harmless(f"{name}{left}: {text}")', 'f"{name}{left}: {text}"', "W8", WORDS, seeds=0),
    mutant("dead-tasks-rest", "a dead task's last claim is said to rest", "showing.fate_of",
           'task.state == "dead"', 'task.state == "resting"', "W8", FATES, seeds=0),
    mutant("our-own-stack", "a call of nothing is told with a line of the worker's", "outcome._traced",
           "if not theirs and issubclass(type(error), (Refused, Dead)):", "if False:", "W8",
           FAILURES + "test_what_is_refused_before_a_function_runs_has_no_stack_of_ours", seeds=0),
    mutant("nobodys-stack", "an error is told without where it was raised", "outcome._traced",
           "if not theirs and issubclass(type(error), (Refused, Dead)):", "if True:", "W8",
           FAILURES + "test_what_a_function_raises_has_the_stack_of_its_own_code", seeds=0),
    mutant("spark-for-strangers", "a task of SQL starts Spark in a worker that runs none", "assignment._work_of",
           "        check_allowed(call.name)\n", "", "W8",
           FAILURES + "test_a_kind_that_is_not_allowed_is_refused_before_anything_starts", seeds=0),
    mutant("delays-of-nothing", "a delay that is asked for over HTTP delays nothing", "enqueueing._store",
           '            own = {name: tasks[0][name] for name in _OWN} | {"not_before": start_of(tasks[0])}\n',
           "            own = {name: tasks[0][name] for name in _OWN}\n", "W8", DELAYS, seeds=0),
    mutant("times-for-delays", "a task's own time is overwritten by no delay", "enqueueing.start_of",
           'given["not_before"] if given["delay_s"] is None else time.time() + given["delay_s"]',
           'time.time() + (given["delay_s"] or 0)', "W8", DELAYS, seeds=0),
    mutant("values-as-nothing", "a value that a task is completed with is dropped", "holding._came_of",
           "return result or None if value is None else value", "return result or None", "W8", VALUES, seeds=0),
    mutant("two-results", "of a value and a result one is dropped in silence", "holding._came_of",
           "    if result and value is not None:\n", "    if False:\n", "W8", VALUES, seeds=0),
    mutant("wrong-for-ever", "a worker with a wrong option is started again and again", "LASTING_CODES",
           '"unknown_app", "bad_kinds", "no_such_directory", ', '"unknown_app", ', "W8", NEW +
           "test_a_service_does_not_start_again_by_itself_with_a_wrong_option", seeds=0),
    mutant("dead-in-silence", "who asks for the result of a dead task is told nothing", "results.results",
           "if not as_json and end.state in BAD:", "if False:", "W8",
           NEW + "test_of_a_task_without_a_result_it_is_said_why", seeds=0),
    mutant("keys-to-a-slip", "a key is written to a directory that was made of a slip", "files.write_where_told",
           "    if not path.parent.is_dir():\n", "    if False:\n", "W8",
           "tests/cli/test_keys_verbs.py::test_a_key_goes_to_a_directory_that_is_there", seeds=0),
    mutant("two-keys-for-a-cluster", "a cluster is created with another key than the file's", "create_secure",
           "check_key_of(name, read_cluster_key(path)) if path.exists() else fresh_key(name)", "fresh_key(name)",
           "W8", RESUMED, seeds=0),
    mutant("anybodys-first-client", "another cluster's key is its first client's", "cluster_keys._first_client",
           "    if (found.name, found.cluster) != (FIRST_CLIENT, key.pair.public):\n", "    if False:\n", "W8",
           RESUMED, seeds=0),
    mutant("slots-of-nobody", "dev takes slots for a worker that it does not start", "kinds_options.typed_kinds",
           '("--slots", "slots")', '("--lots", "slots")', "W8",
           NEW + "test_a_wrong_word_is_answered_with_what_was_meant[dev --slots 3---slots is for the worker]",
           seeds=0),
    mutant("whole-errors-in-a-cell", "each claim of a task shows the whole stack of its error", "showing.fate_of",
           "claim.error.partition(NEW_LINE)[0]", "claim.error", "W8", FATES, seeds=0),
)
