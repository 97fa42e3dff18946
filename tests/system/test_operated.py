"""What operators do to a real cluster under load: how long each partition grants nothing, and that nothing fails.

Clients claim, complete and enqueue without a pause; each grant is noted with its partition. A partition's gap is
the longest time between two of its grants from the moment a verb is given until the cluster is again as it should
be. The gaps are printed, beside the longest that comes without any verb: they are of this machine, and no test.
Tested is that no call fails: whatever is under way at a leader that goes is answered, by it or by the next.
"""

from __future__ import annotations

import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise

import attrs
import pytest
from click.testing import CliRunner, Result

from skuld_py import Client, SkuldError
from skuld_py.cli.main import main
from skuld_py.embedded.local import LocalCluster
from skuld_py.model import messages as m
from skuld_py.model.ids import route_of
from system.conftest import SKEW_MS, await_leaders
from system.test_moves import await_status

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(900)]
NODES, PARTITIONS, SESSION_MS, STOCK, WORKERS = 4, 4, 4_000, 1_200, 3
STILL = 60
"""Claims of each partition, for a look at traffic that nothing disturbs: a second or two of it."""
QUICKLY = ("--timing-seat", "1s", "--timing-steady", "1s")
"""A node that comes back has its votes and leaderships soon: this is about transfers, not about patience."""
AIM_MS = 200
PATIENCE_S = 240.0
"""For leaderships to come to rest beside other tests."""


@attrs.define
class Traffic:
    """Clients at work: when claims came to them, of which partition; and what failed."""

    addresses: list[str]
    grants: list[tuple[float, int]] = attrs.field(factory=list)
    errors: list[str] = attrs.field(factory=list)
    is_over: bool = False
    _change: threading.Condition = attrs.field(factory=threading.Condition)

    def work(self) -> None:
        """Claim, complete, and enqueue as many again."""
        with Client(self.addresses, timeout_s=20) as client:
            while not self.is_over:
                for step in (self._claim, lambda client: client.enqueue_many("traffic", [b"x"])):
                    try:
                        step(client)
                    except SkuldError as error:
                        self.errors.append(f"{step}: {error}")

    def _claim(self, client: Client) -> None:
        claims = client.claim("traffic", n=1, lease_s=60, wait_s=1)
        with self._change:
            now_s = time.monotonic()
            self.grants += [(now_s, route_of(claim.id) % PARTITIONS) for claim in claims]
            self._change.notify_all()
        client.complete_many(claims)

    def await_each(self, count: int = 10, timeout_s: float = 60) -> None:
        """Return when so many more claims of each partition were granted."""
        with self._change:
            mark = len(self.grants)

            def is_enough() -> bool:
                fresh = [partition for _, partition in self.grants[mark:]]
                return all(fresh.count(partition) >= count for partition in range(PARTITIONS))
            assert self._change.wait_for(is_enough, timeout_s), (self.grants[mark:][-5:], self.errors[-3:])

    def await_more(self, count: int, timeout_s: float = 60) -> None:
        """Return when so many more claims were granted, of whatever partition."""
        with self._change:
            mark = len(self.grants)
            assert self._change.wait_for(lambda: len(self.grants) >= mark + count, timeout_s), self.errors[-3:]

    def gaps_ms(self, since_s: float) -> list[float]:
        """The longest of each partition since then."""
        found = []
        for partition in range(PARTITIONS):
            times = [at for at, of in self.grants if of == partition]
            before = max((at for at in times if at < since_s), default=since_s)
            found.append(1_000 * max(b - a for a, b in pairwise([before, *(at for at in times if at >= since_s)])))
        return found


@contextmanager
def traffic(cluster: LocalCluster) -> Iterator[Traffic]:
    """Clients at work, meanwhile."""
    made = Traffic(cluster.addresses)
    with Client(cluster.addresses, timeout_s=20) as client:
        for _ in range(0, STOCK - client.count("traffic", states=["waiting"]), 10):
            client.enqueue_many("traffic", [b"x"] * 10)
    threads = [threading.Thread(target=made.work, daemon=True) for _ in range(WORKERS)]
    for thread in threads:
        thread.start()
    try:
        made.await_each()
        yield made
    finally:
        made.is_over = True
        for thread in threads:
            thread.join()


@pytest.fixture(scope="module")
def operated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Four nodes, three copies: one may leave, and all is still kept three times."""
    with LocalCluster(tmp_path_factory.mktemp("operated"), nodes=NODES, partitions=PARTITIONS, replicas=3,
                      skew_ms=SKEW_MS, session_ms=SESSION_MS, node_options=QUICKLY) as made:
        with Client(made.addresses, timeout_s=60) as client:
            await_leaders(client)
            await_status(client, is_kept, PATIENCE_S)
            client.rebalance()  # before the last node came, another owner may have been the first
            await_status(client, is_whole, PATIENCE_S)
        yield made


def skuld(*words: str) -> Result:
    done = CliRunner().invoke(main, [*words], prog_name="skuld")
    assert done.exit_code == 0, done.output
    return done


def of_log(cluster: LocalCluster) -> tuple[str, ...]:
    """What verbs of the coordination log are told besides."""
    return "--zookeeper", cluster.zookeeper_hosts


def is_kept(status: m.Described) -> bool:
    """Whether all four nodes are there, and the voters of each partition are its owners."""
    return (len(status.nodes) == NODES and all(node.is_live for node in status.nodes) and not status.moves
            and all(sorted(row.cohort) == sorted(row.owners) for row in status.partitions))


def is_whole(status: m.Described) -> bool:
    """Whether the first of its owners leads each partition, besides."""
    return is_kept(status) and all(row.leader == row.owners[0] for row in status.partitions)


def measured(name: str, made: Traffic, act: Callable[[], None]) -> list[float]:
    """Do something under load; print the gaps, and give them."""
    made.await_each()
    began_s = time.monotonic()
    act()
    made.await_each()
    gaps = made.gaps_ms(began_s)
    over = sum(gap > AIM_MS for gap in gaps)
    sys.stdout.write(f"\n{name}: no claim for at most {', '.join(f'{gap:.0f}' for gap in gaps)} ms, by partition"
                     f"{f'; {over} above {AIM_MS}' if over else ''}\n")
    return gaps


def say_worst(gaps: list[float]) -> None:
    """Sum up."""
    above = sum(gap > AIM_MS for gap in gaps)
    sys.stdout.write(f"\n{len(gaps)} gaps: the middle {statistics.median(gaps):.0f} ms, the longest"
                     f" {max(gaps):.0f} ms, {above} above {AIM_MS} ms\n")


def still(made: Traffic) -> None:
    """Let traffic be, for a look at what it is like: until many more claims of each partition were granted."""
    made.await_each(STILL)


def test_nodes_are_drained_and_restarted_in_turn_and_no_call_fails(operated: LocalCluster) -> None:
    cluster, worst = operated, list[float]()
    with Client(cluster.addresses, timeout_s=20) as client, traffic(cluster) as made:
        await_status(client, is_whole, PATIENCE_S)
        measured("nothing is done", made, partial(still, made))
        for index, node in enumerate(cluster.addresses):
            def drain(node: str = node) -> None:
                skuld("drain", node, "--out", "--cluster", cluster.name, "--limit", "120s", *of_log(cluster))
            worst += measured(f"drain of {node}", made, drain)
            worst += measured(f"stop of {node}, drained", made, lambda index=index: cluster.stop_node(index))
            cluster.start_node(index)

            def back(node: str = node) -> None:
                skuld("cluster", "remove", cluster.name, node, "--back", *of_log(cluster))
                await_status(client, is_whole, PATIENCE_S)
            worst += measured(f"return of {node}", made, back)
        for index, node in enumerate(cluster.addresses):
            def restart(index: int = index) -> None:
                cluster.stop_node(index)
                cluster.start_node(index)
                await_status(client, is_whole, PATIENCE_S)
            worst += measured(f"restart of {node}, not drained", made, restart)
    say_worst(worst)
    assert made.errors == []


def test_every_member_is_promoted_and_no_call_fails(operated: LocalCluster) -> None:
    cluster, worst = operated, list[float]()
    with Client(cluster.addresses, timeout_s=20) as client, traffic(cluster) as made:
        await_status(client, is_whole, PATIENCE_S)
        measured("nothing is done", made, partial(still, made))
        for node in cluster.addresses:
            def promote(node: str = node) -> None:
                skuld("promote", node, "--nodes", cluster.addresses[0])
                await_status(client, lambda status: all(
                    row.leader == node for row in status.partitions if node in row.cohort))
            worst += measured(f"promotion of {node}", made, promote)

        def rebalance() -> None:
            skuld("rebalance", "--nodes", cluster.addresses[0])
            await_status(client, is_whole, PATIENCE_S)
        worst += measured("rebalance", made, rebalance)
    say_worst(worst)
    assert made.errors == []


def test_a_frozen_partition_waits_for_its_leader_and_goes_on_with_it(operated: LocalCluster) -> None:
    cluster = operated
    with Client(cluster.addresses, timeout_s=20) as client:
        status = await_status(client, is_whole, PATIENCE_S)
        leader = status.partitions[0].leader
        index = cluster.addresses.index(leader)
        led = [row.partition for row in status.partitions if row.leader == leader]
        others = [address for address in cluster.addresses if address != leader]
        skuld("freeze", "--reason", "a new switch", "--nodes", others[0])
        with traffic(cluster) as made:
            cluster.kill_node(index)
            await_status(client, lambda status: not any(status.partitions[each].leader for each in led))
            seen = len(made.grants)
            made.await_more(200)  # the others go on
            assert not {partition for _, partition in made.grants[seen:]} & {*led}, "somebody else leads meanwhile"
            began_s = time.monotonic()
            cluster.start_node(index)
            await_status(client, lambda status: all(status.partitions[each].leader == leader for each in led))
            made.await_each()
            took_s = time.monotonic() - began_s
            sys.stdout.write(f"\nfrozen partitions {led} are granted again {took_s:.1f} s after the start of"
                             f" {leader}\n")
        skuld("unfreeze", "--nodes", others[0])
        status = await_status(client, is_whole, PATIENCE_S)
        assert len({*(row.leader for row in status.partitions)}) > 1
