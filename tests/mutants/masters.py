"""Mutants of a worker's Spark on a cluster: its settings, what executors are sent, when it is given up."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

MASTERS = "tests/worker/test_masters.py::"
CONF = "tests/worker/test_spark_conf.py::"
SHIPPING = "tests/worker/test_shipping.py::"
EXECUTORS = "tests/worker/test_executors.py::"
OPTIONS = "tests/cli/test_spark_options.py::"
ELSEWHERE = CONF + "test_with_a_master_elsewhere_nothing_is_taken_for_this_machine_s"

MUTANTS: tuple[Mutant, ...] = (
    mutant("sockets-elsewhere", "executors elsewhere look for sockets in the driver's file system", "_elsewhere",
           '.socket.enabled": "false"}', '.socket.enabled": "true"}', "X1", ELSEWHERE, seeds=0),
    mutant("loopback-elsewhere", "a cluster is told this machine's settings, too", "spark_conf.whole",
           "_local(files, master) if is_local(master) else _elsewhere(master, asked)",
           "_local(files, master)", "X1", ELSEWHERE, seeds=0),
    mutant("own-python-elsewhere", "executors elsewhere run the driver's Python by its path", "python_of",
           "sys.executable if is_local(conf[MASTER]) else ", "sys.executable or ", "X1",
           CONF + "test_executors_elsewhere_are_given_no_python_of_this_machine", seeds=0),
    mutant("bound-beside-host", "a driver whose address is told binds to another one", "_elsewhere",
           "None if HOST in asked else driver_address(master)", "driver_address(master)", "X1",
           CONF + "test_what_the_user_says_goes_on_top", seeds=0),
    mutant("setting-twice", "of an option and a setting that differ one is dropped in silence",
           "spark_conf.folded", "made.setdefault(name, value) != value", "not made.setdefault(name, value)", "X1",
           CONF + "test_what_cannot_be_meant_is_refused_by_name", seeds=0),
    mutant("any-master", "whatever is called a master is given to Spark", "check_master",
           'if master != "yarn" and not any(', 'if not master and not any(', "X1",
           MASTERS + "test_any_other_one_is_refused_by_name_with_those_there_are", seeds=0),
    mutant("app-alone-shipped", "what an application imports from beside it stays here", "shipping.tops",
           "return [*own, *sorted(beside)]", "return own", "X1",
           SHIPPING + "test_a_module_and_those_beside_it_are_imported_where_nothing_is_installed", seeds=0),
    mutant("needs-not-found", "executors are sent libraries that nothing looks for", "shipping._add_file",
           "        content += _FINDS_NEEDS.encode()\n", "        pass\n", "X1",
           SHIPPING + "test_a_module_and_those_beside_it_are_imported_where_nothing_is_installed", seeds=0),
    mutant("waiting-is-lost", "an application whose turn has not come is given up", "Executors.look",
           "Standing.LOST if self._had_some else Standing.NONE_YET", "Standing.LOST", "X1",
           EXECUTORS + "test_an_application_that_never_had_any_waits_and_says_so_once", seeds=0),
    mutant("never-lost", "an application without its cluster waits for ever", "Executors.look",
           "            self._had_some = True\n", "", "X1",
           EXECUTORS + "test_executors_that_were_there_and_do_not_come_back_are_lost", seeds=0),
    mutant("table-replaced", "one setting on the command line drops all of the file",
           "SettingsOption.consume_value",
           "every = [*(filed if isinstance(filed, list) else []), *told, *typed]", "every = typed", "X1",
           OPTIONS + "test_settings_of_all_places_are_taken_together_and_the_command_line_goes_first", seeds=0),
)
