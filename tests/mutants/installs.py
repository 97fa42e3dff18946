"""Mutants of what an install lacks and how it is told, of which Spark is launched, and of what an import makes."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

EXTRAS = "tests/installs/test_extras.py::"
IN_ONE_LINE = EXTRAS + "test_a_verb_names_the_extra_that_it_needs_in_one_line"
JVM = "tests/worker/test_spark_jvm.py::"
IMPORT = "tests/client/test_import.py::"

MUTANTS: tuple[Mutant, ...] = (
    mutant("extra-untold", "a verb that lacks an extra ends with a traceback", "failures.told",
           "        if missing is None:\n", "        if True:\n", "X1", IN_ONE_LINE, seeds=0),
    mutant("extra-for-everything", "an extra is offered for what no extra brings", "as_missing",
           " if package in _EXTRA_OF else None", "", "X1",
           EXTRAS + "test_what_no_extra_brings_is_no_missing_extra", seeds=0),
    mutant("first-extra-only", "of the extras that are missing only one is named", "extras.require",
           "*dict.fromkeys(extra for extra, _ in missing)", "missing[0][0]", "X1", IN_ONE_LINE, seeds=0),
    mutant("gateway-for-nobody", "the gateway's extra is wanted though none is started", "dev.dev",
           "*([\"gateway\"] if http_port != 0 else [])", "\"gateway\"", "X1", IN_ONE_LINE, seeds=0),
    mutant("thin-pyspark-taken", "a PySpark without a JVM is taken for Spark", "extras.PACKAGES",
           "(\"pyspark\", \"py4j\")", "(\"pyspark\",)", "X1", EXTRAS + "test_a_thin_pyspark_is_no_spark", seeds=0),
    mutant("any-spark", "a PySpark that nobody has tried is launched", "check_release",
           "if found is None or not OLDEST <= (int(found[1]), int(found[2])) <= NEWEST:", "if found is None:",
           "X1", JVM + "test_another_one_is_refused_by_name_with_what_would_do", seeds=0),
    mutant("handshake-guessed", "whatever stands in the JVM's file is taken for port and secret", "read_handshake",
           "    if len(data) != 8 + length or not length or not 0 < port < 1 << 16:\n", "    if False:\n", "X1",
           JVM + "test_what_is_no_handshake_is_refused_and_not_guessed_at", seeds=0),
    mutant("one-netty", "ZooKeeper runs from the jars of one netty only", "zookeeper._SERVER_JARS",
           "netty-codec-base-*|netty-codec-[0-9]*", "netty-codec-base-*", "X1",
           "tests/embedded/test_jars.py::test_the_codec_of_either_netty_does", seeds=0),
    mutant("node-messages-imported", "a client makes the messages between nodes", "wire.rules",
           "if TYPE_CHECKING:\n", "if True:\n", "A3",
           IMPORT + "test_an_open_connection_loads_nothing_of_a_node_either", seeds=0),
    mutant("connection-imported", "what only a connection needs is imported with a client", "client.client",
           "if TYPE_CHECKING:\n", "if True:\n", "A3",
           IMPORT + "test_a_client_loads_nothing_of_a_node_and_no_message_before_it_sends_one", seeds=0),
    mutant("all-pages-loaded", "the first message loads the pages of all", "messages.__getattr__",
           "        page = import_module(", "        [import_module(f\"{__name__}.{each}\") for each in _PAGES]\n"
           "        page = import_module(", "A3", IMPORT + "test_a_message_brings_its_page_and_no_other", seeds=0),
    mutant("asyncio-for-all", "every client loads what only diagnosis needs, and asyncio with it", "diagnosis",
           "import zmq\n", "import zmq\nfrom zmq.utils import monitor\n", "A3",
           IMPORT + "test_an_open_connection_loads_nothing_of_a_node_either", seeds=0),
    mutant("all-records-compiled", "with the first message that travels, all are compiled", "_Records.__missing__",
           "record = self[code] = record_of(message_of(code), self._partitions)\n",
           "record = self[code] = [record_of(message_of(each), self._partitions) for each in (0, 2, code)][-1]\n",
           "A3", IMPORT + "test_how_a_message_travels_is_compiled_when_the_first_one_does", seeds=0),
)
