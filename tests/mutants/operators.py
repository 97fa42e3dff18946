"""Mutants of what operators are told, and of what is asked before something is changed."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

DRAIN = "tests/cli/test_drain.py::"
KEYS = "tests/cli/test_keys_verbs.py::"


def _seen_by(test: str, name: str, rule: str, place: str, old: str, new: str) -> Mutant:
    return mutant(name, rule, place, old, new, "L2", test, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
    _seen_by("tests/runtime/zookeeper/test_tls.py::test_a_server_whose_name_nobody_knows_is_named",
             "one-unknown-name-is-enough", "an ensemble is not asked when one of its names is unknown",
             "unreached.check_names", "if len(unknown) == len(collect_hosts(servers)[0]):", "if unknown:"),
    _seen_by("tests/cli/test_timings.py::test_what_is_wrong_in_the_file_is_named", "seats-for-passers-by",
             "a node may be given a seat as soon as it looks in", "timings.timing_options",
             "_LEAST.get(field, _LEAST_S)", "_LEAST_S"),
    _seen_by(DRAIN + "test_what_does_not_pass_is_raised_at_once", "drain-in-the-dark",
             "a drain whose key opens nothing goes on to its limit", "drain._asked",
             "            raise\n        return error", "            pass\n        return error"),
    _seen_by(DRAIN + "test_who_may_not_know_how_far_it_is_takes_nothing_out", "drained-before-asked",
             "a node is taken out by who cannot see how far it is", "drain.drain",
             "        _asked(client.status)\n", ""),
    _seen_by(DRAIN + "test_it_shows_the_client_s_key", "drain-without-a-key",
             "a drain shows the nodes no key", "options.key_option",
             "        with _key_shown():\n", "        if True:\n"),
    _seen_by(DRAIN + "test_the_limit_says_why_nothing_is_known", "drain-without-a-reason",
             "why no node answers is not said", "drain.watch",
             "says how far it is: {words}", "has answered"),
    _seen_by("tests/worker/test_refusals.py::test_what_is_refused_to_a_key_is_an_error_and_all_else_a_warning",
             "worker-refused-in-passing", "a worker that nobody lets claim says so as if it would pass",
             "refusals.note_refusal", "if error.code in KEY_CODES else", "if False else"),
    _seen_by("tests/worker/test_quiet.py::test_a_jvm_that_is_gone_makes_an_error_and_no_line",
             "py4j-says-it-again", "a worker that stops writes tracebacks of connections that it broke itself",
             "spark_session.keep_terminal_quiet",
             '    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)\n', ""),
    _seen_by("tests/embedded/test_certificates.py::test_a_place_that_cannot_be_written_is_named",
             "certificates-end-in-a-traceback", "a directory that cannot be written ends in a traceback",
             "certificates._place", "    except OSError as problem:\n", "    except KeyError as problem:\n"),
    _seen_by("tests/cli/test_failures.py::test_a_node_that_needs_a_person_says_so_by_its_status",
             "services-started-for-ever", "a service with a wrong key is started again every other second",
             "failures._kind", "Lasting if is_service and error.code in LASTING_CODES else Failure", "Failure"),
    _seen_by("tests/cli/test_failures.py::test_what_passes_is_worth_another_start",
             "services-given-up", "a node that finds no ZooKeeper is not started again",
             "failures._kind", "if is_service and error.code in LASTING_CODES else", "if is_service else"),
    _seen_by(KEYS + "test_a_node_s_key_is_revoked_only_if_a_node_is_meant", "nodes-revoked-in-passing",
             "a slip in a name ends a node", "keys.revoke", " and not is_for_node:\n", " and False:\n"),
    _seen_by(KEYS + "test_a_new_key_goes_beside_those_that_lie_here", "rotated-onto-the-key-before",
             "a key is replaced only where the one before does not lie", "keys._next_file",
             "itertools.count(2) if not (path := Path(f\"{name}-{number}.key\")).exists())",
             "itertools.count(2) if (path := Path(f\"{name}.key\")))"),
    _seen_by("tests/cli/test_zookeeper_access.py::test_a_command_that_is_proposed_has_them_as_well",
             "proposed-in-part", "a command that is proposed does not reach ZooKeeper",
             "zookeeper_access.words_of",
             " for key in _ORDER\n", " for key in ()\n"),
    _seen_by("tests/runtime/zookeeper/test_securing.py::test_who_has_no_key_or_another_one_is_told_so",
             "wrong-key-is-none", "who gave a key of another cluster is told to give one", "clusters.denied",
             "    if Servers.of(hosts).logins():\n", "    if False:\n"),
    _seen_by("tests/model/test_roster.py::test_a_revoked_key_does_not_come_back_and_a_key_has_one_owner",
             "revoked-node-without-a-way-back", "who runs a node whose key is revoked is not told what to do",
             "Roster.check_revoked", "if row.is_node else", "if False else"),
    _seen_by("tests/worker/test_apps.py::test_modules_without_a_task_function_are_refused",
             "worker-without-functions", "a worker that has no functions starts, and fails what it claims",
             "apps.load_apps", "    if not registered() and not may_lack:\n", "    if False:\n"),
    _seen_by("tests/runtime/zookeeper/test_tls.py::test_a_server_whose_name_nobody_knows_is_named",
             "names-of-nobody", "a name that is spelt wrong is told as a ZooKeeper that does not run",
             "unreached.unreached", "    if unknown := _unknown(servers):\n", "    if unknown := '':\n"),
    _seen_by("tests/runtime/test_server.py::"
             "test_the_line_of_a_start_names_timings_that_are_not_those_of_others", "timings-untold",
             "nothing tells that a node goes by timings of its own", "server.log_ready",
             "if value != getattr(DEFAULT_TIMING, field)", "if False"),
    _seen_by("tests/gateway/test_journal.py::test_who_may_not_is_named_all_the_same", "refused-namelessly",
             "the line of a request that its sender may not make names nobody", "Gateway.identify",
             "        request.state.bearer = bearer.name\n", ""),
    _seen_by("tests/cli/test_logs.py::test_a_line_tells_its_zone", "lines-of-no-zone",
             "logs of two machines cannot be put in one order", "_Lines.formatTime",
             " + time.strftime(\"%z\", time.localtime(record.created))", ""),
    _seen_by("tests/cli/test_settings.py::test_what_all_verbs_share_is_shown_once", "shared-for-each",
             "what all verbs share is shown for each of them", "config._line",
             "ALL if is_of_all and row[\"from\"].endswith(shared) else row[\"verb\"]", "row[\"verb\"]"),
)
