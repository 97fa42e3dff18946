"""Scheduling pools: each running task has its own, and there are no more than tasks that ran at once."""

from __future__ import annotations

from skuld_py.worker.pools import Pools


def test_tasks_that_run_at_once_have_pools_of_their_own() -> None:
    pools = Pools()
    with pools.lent() as first, pools.lent() as second, pools.lent() as third:
        assert len({first, second, third}) == 3


def test_a_pool_is_used_again_when_its_task_is_over() -> None:
    pools = Pools()
    with pools.lent() as first:
        with pools.lent() as second:
            pass
        with pools.lent() as third:
            assert (third, first) == (second, "task-1")
    with pools.lent() as fourth:
        assert fourth == first
