"""Mutants of a worker's own rules: what runs beside what."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

POOLS = "tests/worker/test_pools.py::"

MUTANTS: tuple[Mutant, ...] = (
    mutant("one-pool-for-all", "a short task waits in the pool of a long one", "Pools.lent",
           "            self._lent.add(number)\n", "", "W1",
           POOLS + "test_tasks_that_run_at_once_have_pools_of_their_own", seeds=0),
    mutant("pools-without-end", "Spark gets a pool more with every task, for good", "Pools.lent",
           "                self._lent.discard(number)\n", "                pass\n", "W1",
           POOLS + "test_a_pool_is_used_again_when_its_task_is_over", seeds=0),
)
