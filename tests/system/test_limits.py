"""Limited queues on real nodes: never more than the limit held, though the home is killed; and a rate, kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import attrs
import pytest

from skuld_py import Client, SkuldError
from skuld_py.embedded.local import LocalCluster
from skuld_py.model.setting import home_of
from system.conftest import await_leaders

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
CLAIMERS = 4
LIMIT = 3
TASKS = 120
RATE, BURST = 20, 5
WORK_S = 0.02


@attrs.define
class Bench:
    """What the claimers hold and held."""

    lock: threading.Lock = attrs.field(factory=threading.Lock)
    over: threading.Event = attrs.field(factory=threading.Event)
    held: int = 0
    most: int = 0
    done: int = 0
    told: list[tuple[float, float]] = attrs.field(factory=list)
    """When each claim was asked for, and when it was told."""

    def note(self, change: int) -> None:
        with self.lock:
            self.held += change
            self.most = max(self.most, self.held)


def work(cluster: LocalCluster, bench: Bench, queue: str, count: int) -> None:
    """Claim, hold for a while, complete, until all is over. What a dead node leaves in doubt lapses."""
    with Client(cluster.addresses, timeout_s=5) as client:
        while not bench.over.is_set():
            asked = time.monotonic()
            try:
                claims = client.claim(queue, n=count, lease_s=2, wait_s=0.5)
            except SkuldError:
                continue
            told = time.monotonic()
            bench.note(len(claims))
            bench.told += [(asked, told)] * len(claims)
            bench.over.wait(WORK_S)
            bench.note(-len(claims))
            try:
                if claims:
                    client.complete_many(claims)
            except SkuldError:
                continue
            with bench.lock:
                bench.done += len(claims)


def at_work(cluster: LocalCluster, bench: Bench, queue: str, count: int) -> list[threading.Thread]:
    workers = [threading.Thread(target=work, args=(cluster, bench, queue, count)) for _ in range(CLAIMERS)]
    for worker in workers:
        worker.start()
    return workers


def finish(bench: Bench, workers: list[threading.Thread]) -> None:
    bench.over.set()
    for worker in workers:
        worker.join()


def test_four_claimers_never_hold_more_than_three_though_the_home_is_killed(cluster: LocalCluster) -> None:
    bench = Bench()
    with Client(cluster.addresses, timeout_s=10) as client:
        client.enqueue_many("few", [b"x"] * TASKS)
        assert client.set_limits("few", concurrency=LIMIT) == []
        workers = at_work(cluster, bench, "few", 2)
        try:
            _await(lambda: bench.done >= TASKS // 4)
            home = await_leaders(client).partitions[home_of("few", 8)].leader
            cluster.kill_node(cluster.addresses.index(home))
            _await(lambda: client.depths()["few"].completed >= TASKS)
        finally:
            finish(bench, workers)
    assert bench.most == LIMIT


def test_a_rate_is_kept_and_used(cluster: LocalCluster) -> None:
    bench = Bench()
    with Client(cluster.addresses, timeout_s=10) as client:
        client.enqueue_many("slow", [b"x"] * 500)
        assert client.set_limits("slow", rate=RATE, burst=BURST) == []
        workers = at_work(cluster, bench, "slow", 2)
        try:
            _await(lambda: bench.done >= 4 * RATE)
        finally:
            finish(bench, workers)
    begins, ends = sorted(asked for asked, _ in bench.told), sorted(told for _, told in bench.told)
    for begin in begins:
        for end in ends:
            inside = sum(1 for asked, told in bench.told if begin <= asked and told <= end)
            assert end < begin or inside <= RATE * (end - begin) * 1.01 + BURST, (begin, end)
    half = 2 * RATE - 1  # of them without a break: a machine may stand still once
    took_s = min(later - earlier for earlier, later in zip(ends, ends[half:], strict=False))
    assert took_s <= 2 * (half - BURST) / RATE


def _await(is_so: Callable[[], bool], timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline, "it takes too long"
        threading.Event().wait(0.1)
