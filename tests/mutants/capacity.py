"""Mutants of the model of what more nodes bring: what it costs, when things leave, and what counts as linear."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

TESTS = "tests/simulation/test_capacity.py::"

MUTANTS: tuple[Mutant, ...] = (
    mutant("capacity-never-costs", "nothing ever costs a simulated node anything", "capacity.world.World.settle",
           "                self.is_free = False\n", "", "V1",
           TESTS + "test_the_start_of_a_cluster_is_free_and_what_comes_then_is_not", seeds=0),
    mutant("capacity-answers-before-commits", "a simulated node answers before its commit is through",
           "capacity.world.World._turn", "self.agenda.after(busy_ms + disk_ms, self._end, seat, late)",
           "self.agenda.after(busy_ms, self._end, seat, late)", "V1",
           TESTS + "test_an_answer_takes_the_wire_there_and_back_to_nodes_and_client_and_two_commits", seeds=0),
    mutant("capacity-is-always-linear", "nodes that bring ever less count as linear", "capacity.runs.linear",
           "part = (phase.rate / phase.nodes) / (first.rate / first.nodes)", "part = phase.rate / first.rate",
           "V1",
           TESTS + "test_nodes_that_bring_ever_less_are_not_linear", seeds=0),
    mutant("gossip-at-every-write", "each write makes its leaders tell all nodes of it, so a task costs more where"
           " there are more of them", "Gossiper.note_filled",
           "if not self._view.router.is_listed(self._view.me.name, queue):", "if True:", "V1",
           TESTS + "test_what_nodes_tell_each_other_unasked_is_bound_to_time_and_not_to_tasks", seeds=0),
)
