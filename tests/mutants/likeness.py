"""Mutants of the cluster in memory, where it would answer as no cluster does; and of what comparing both found."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

MEMORY = "testing.memory"
LIKENESS = "tests/testing/test_likeness.py::"


def _unlike(name: str, rule: str, old: str, new: str, test: str) -> Mutant:
    return mutant(f"memory-{name}", rule, MEMORY, old, new, "O3", LIKENESS + test, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
    mutant("memory-settles-later", "what a call leaves due happens in memory at the next one",
           "MemoryCluster._once",
           "        self._node.settle()\n", "", "A3",
           "tests/testing/test_views.py::"
           "test_a_task_that_is_released_after_its_end_is_dead_at_once_in_every_view", seeds=0),
    mutant("ids-without-number", "a call makes ids until the memory is full", "Enqueueing.new_ids",
           "if type(count) is not int or not 0 <= count <= IDS_MAX:", "if type(count) is not int or count < 0:",
           "A2", "tests/testing/test_likeness.py::test_so_many_ids_are_made_by_one_call_and_no_more", seeds=0),
    mutant("owners-counted-behind-names", "a node ends of more owners than there are, asked for under a name",
           "WriteRequests._enqueue", "        w = self._admission.owners(message.w)\n",
           "        w = message.w\n", "A2",
           "tests/node/test_asking.py::test_it_is_refused_by_name_and_nothing_is_sent_or_stored", seeds=0),
    _unlike("never-closed", "a client in memory goes on when it is closed",
            "            raise Refused(\"closed\", CLOSED)\n        return self.cluster",
            "            assert CLOSED\n        return self.cluster",
            "test_every_verb_of_every_closed_client_says_so"),
    _unlike("never-closed-to-who-awaits", "a client in memory that is awaited goes on when it is closed",
            "            raise Refused(\"closed\", CLOSED)\n        if self._loop",
            "            assert CLOSED\n        if self._loop", "test_every_verb_of_every_closed_client_says_so"),
    _unlike("closed-too-late", "a client in memory that was closed meanwhile does what it was asked before",
            "        await asyncio.sleep(0)\n        self._check()\n", "        await asyncio.sleep(0)\n",
            "test_who_closes_while_calls_are_under_way_ends_them"),
    _unlike("of-any-loop", "a client in memory serves every event loop", "        elif self._loop is not loop:\n",
            "        elif self._loop is None:\n", "test_an_awaited_client_belongs_to_one_loop"),
    _unlike("never-yields", "who awaits a client in memory lets nobody else run",
            "        await asyncio.sleep(0)\n", "", "test_who_asks_again_and_again_lets_others_run"),
    _unlike("torn-by-threads", "threads step the node in memory at the same time",
            "        with self._lock:\n            sent,", "        with threading.Lock():\n            sent,",
            "test_threads_share_a_client"),
    _unlike("has-one-owner", "two owners are too many in memory",
            "if 0 < getattr(message, \"w\", 0) <= REPLICAS else", "if False else",
            "test_as_many_owners_may_be_asked_for_as_a_cluster_has"),
    _unlike("tells-of-one-owner", "a cluster in memory says that it has one replica",
            "        return too_many_owners(message.w, REPLICAS)  # type: ignore[attr-defined]\n",
            "        return too_many_owners(message.w, 1)  # type: ignore[attr-defined]\n",
            "test_more_owners_than_a_cluster_has_are_refused_as_there"),
    _unlike("orders-by-key", "tasks with keys stand behind all others while time stands still in memory",
            "        if has_plain and self._has_laned:\n", "        if has_plain and False:\n",
            "test_tasks_come_as_they_were_made_though_time_stands_still_with_keys_and_without_by_any_client"),
    _unlike("orders-by-client", "tasks of several clients do not stand in the order of their making in memory",
            "        self._minter = self.cluster.minter\n", "        assert self.cluster.minter\n",
            "test_tasks_come_as_they_were_made_though_time_stands_still_with_keys_and_without_by_any_client"),
    _unlike("raises-the-codec", "what is malformed is another error in memory",
            "        raise Refused(problem.code, problem.message) from None\n", "        raise\n",
            "test_what_is_refused_as_malformed_is_refused_alike"),
    mutant("memory-is-busy", "in memory a call is refused that a cluster has time for a moment later",
           "MemoryCluster.ask", 'answer.code == "busy" and', "False and", "O3",
           "tests/testing/test_likeness.py::"
           "test_what_is_too_much_at_once_is_asked_again_until_there_is_time_for_it", seeds=0),
)
