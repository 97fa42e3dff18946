"""Mutants of groups: who waits for whom, and what of it dependents read."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

TESTS = "tests/client/test_groups.py::"

MUTANTS: tuple[Mutant, ...] = (
    mutant("chain-side-by-side", "the steps of a chain do not wait for each other", "Grouping.chain",
           "*([one] for one in named[:-1])]", "*([] for one in named[:-1])]", "C13",
           TESTS + "test_each_step_of_a_chain_waits_for_the_one_before", seeds=0),
    mutant("chain-forgets-before", "the first step of a chain waits for nothing", "Grouping.chain",
           "waits: list[Ids] = [list(deps or ()), ", "waits: list[Ids] = [[], ", "C13",
           TESTS + "test_each_step_of_a_chain_waits_for_the_one_before", seeds=0),
    mutant("join-without-the-last", "a join does not wait for the last part of its group",
           "Grouping._enqueue_join",
           "        yield from self._enqueue_steps(behind, left, [level], w, given, done)\n",
           "        yield from self._enqueue_steps(behind, left, [level[:-1]], w, given)\n", "C13",
           TESTS + "test_a_chord_ends_with_a_task_that_reads_what_the_others_gave", seeds=0),
    mutant("join-between-without-the-last", "a join between does not wait for the last of its parts", "_even",
           "    return [list(parts[start:end]) for start, end in pairwise(ends)]\n",
           "    return [list(parts[start : end - 1]) for start, end in pairwise(ends)]\n", "C13",
           TESTS + "test_more_than_a_thousand_are_joined_by_a_tree_whose_inner_tasks_do_nothing", seeds=0),
    mutant("results-of-joins", "who reads results finds those of the joins between", "Grouping._gathered",
           "task.payload == JOIN and task.deps]", "task.payload == b'' and task.deps]", "C13",
           TESTS + "test_more_than_a_thousand_are_joined_by_a_tree_whose_inner_tasks_do_nothing", seeds=0),
    mutant("results-out-of-order", "results are in the order in which they were read", "Grouping._gathered",
           "        return [found[dep] for dep in sorted(found)]\n",
           "        return [found[dep] for dep in sorted(found, reverse=True)]\n", "C13",
           TESTS + "test_a_chord_ends_with_a_task_that_reads_what_the_others_gave", seeds=0),
    mutant("ids-in-any-order", "a group takes ids that do not rise with its steps", "Grouping._ids",
           "or named != sorted(set(named)):", "or len(named) != len(set(named)):", "C13",
           TESTS + "test_bad_input_is_refused_by_name_and_changes_nothing", seeds=0),
    mutant("policy-dropped", "the steps of a group wait for ever, whatever is said of failures", "_Steps.tasks",
           "on_dep_failure=given.on_dep_failure, dep_wait_s=given.dep_wait_s)", "dep_wait_s=given.dep_wait_s)",
           "C13", TESTS + "test_what_stands_behind_a_dead_step_follows_the_policy", seeds=0),
    mutant("missing-is-none", "a result that is collected is read as one that was never given",
           "Grouping._gathered",
           "            if len(read) < len(wanted) and not missing_ok:\n", "            if False:\n", "D12",
           TESTS + "test_a_missing_result_is_told_and_never_none_in_silence", seeds=0),
)
