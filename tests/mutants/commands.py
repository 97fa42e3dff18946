"""Mutants of the command line: which variables of the environment are taken, and what a wrong one does."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

SETTINGS = "tests/cli/test_settings.py::"
VARIABLES = "tests/client/test_variables.py"


def _seen_by(test: str, name: str, rule: str, place: str, old: str, new: str) -> Mutant:
    return mutant(name, rule, place, old, new, "A2", SETTINGS + test, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
    _seen_by("test_a_variable_that_no_verb_has_is_refused_by_name", "variable-passed-over",
             "a misspelt variable is a default that was not meant", "_check_variables",
             "    if not failures.is_about_help(ctx):\n", "    if False:\n"),
    _seen_by("test_a_variable_that_no_verb_has_is_refused_by_name", "variable-keeps-help-away",
             "help is not given where a variable is wrong", "_check_variables",
             "    if not failures.is_about_help(ctx):\n", "    if True:\n"),
    _seen_by("test_a_variable_that_no_verb_has_is_refused_by_name", "variable-is-no-misuse",
             "a wrong variable looks like a refusal by the cluster", "failures._kind",
             "isinstance(error, BadConfig | BadVariable)", "isinstance(error, BadConfig)"),
    _seen_by("test_a_variable_of_any_verb_may_be_there", "variable-of-inner-verbs-unknown",
             "variables of verbs of two words are refused", "variables._names_of",
             "    for inner in inner_of(command).values():\n", "    for inner in ():\n"),
    _seen_by("test_a_variable_of_any_verb_may_be_there", "variable-of-time-refused",
             "a node with a wrong clock does not start", "variables.doubtful",
             " and not name.startswith(_FREE)", ""),
    _seen_by("test_a_variable_of_any_verb_may_be_there", "variable-told-to-programs-refused",
             "no verb runs in a program that a worker started", "variables.doubtful",
             "difference(SHARED, TOLD)", "difference(SHARED)"),
    mutant("variable-unheeded-by-clients", "a client takes a misspelt variable for a default",
           "client.client.Client.__init__",
           "        check_process()\n", "", "A2", VARIABLES, seeds=0),
    mutant("variable-unheeded-by-awaited-clients", "a client that is awaited takes a misspelt variable",
           "async_client.AsyncClient.__init__", "        check_process()\n", "", "A2", VARIABLES, seeds=0),
    mutant("variable-heeded-for-ever", "no client is made in a worker any more once a task has set a variable",
           "client.client.Client.__init__", "check_process()", "check_process.__wrapped__()", "A2", VARIABLES,
           seeds=0),
    mutant("variable-of-quotas-refused", "clients refuse what a verb is told", "variables.VERBS", '"quota", ', "",
           "A2", VARIABLES, seeds=0),
    mutant("variable-told-to-renewers", "a renewer is told what its client refuses, and started for ever",
           "Renewer.__init__", "handed_on(python.environment())", "python.environment()", "W7",
           "tests/worker/test_desk.py::"
           "test_a_renewer_is_told_no_variable_that_would_keep_it_from_making_a_client", seeds=0),
    mutant("variable-told-to-later-renewers", "a renewer that replaces one is told what a task has set",
           "Renewer._launch", "env=self._environment", "env=python.environment()", "W7",
           "tests/worker/test_desk.py::"
           "test_a_renewer_is_told_no_variable_that_would_keep_it_from_making_a_client", seeds=0),
    mutant("variable-handed-to-drivers", "no driver makes a client once a task has set a variable",
           "driver.guarded", "handed_on(python.environment())", "python.environment()", "A2",
           "tests/worker/test_drivers.py::"
           "test_a_driver_is_started_where_its_worker_was_and_makes_clients_whatever_tasks_have_set", seeds=0),
    mutant("variable-handed-to-spark", "no client is made in Spark's processes once a task has set a variable",
           "spark_jvm.submit_environment", "**handed_on(os.environ)", "**os.environ", "A2",
           "tests/worker/test_kinds.py::"
           "test_settings_of_a_driver_are_for_this_user_alone_and_it_is_here", seeds=0),
    mutant("variable-of-kubernetes-refused", "no client runs beside a Service of our name", "variables._is_link",
           "return found.end() == len(name)", "return False", "A2", VARIABLES, seeds=0),
    _seen_by("test_no_verb_is_loaded_but_the_one_that_was_asked_for", "variable-loads-all-verbs",
             "all verbs are loaded for any variable", "variables.check",
             "        if not left:\n", "        if False:\n"),
)
