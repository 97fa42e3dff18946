"""One run: a cluster, work, faults, then healing, then judgement.

Phases: a clean stretch; the scenario's faults under load; everything healed; every task drained; wait, within
a bound, until all nodes agree on leaders and owners and all replicas are equal; then all processes end and
what is left in their files is judged by the simulator's checkers.

Whatever happens on the way, a run leaves no process, no mount and no cut behind.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs

from faults import disk, judgement
from faults.cluster import NAME, SESSION_MS, Cluster, NodeProcess
from faults.judgement import Judgement
from faults.load import PATIENCE_S, Load
from faults.network import Network, Pair
from faults.recorder import Fault, Recorder
from faults.stores import read_store
from faults.transactions import writes_of
from skuld_py.errors import SkuldError
from skuld_py.model import messages as m
from skuld_py.simulation.checkers import Evidence
from skuld_py.simulation.checkers.convergence import replicas_are_equal
from skuld_py.simulation.checkers.evidence import Finding

CLEAN_S = 4.0
SETTLE_S = 60.0
"""Leases, sessions, elections and a few rounds of exchanges are seconds each; 16 s was the longest seen."""
LOOK_S = 0.5


@attrs.frozen
class Scenario:
    """A story of faults. It is vacuous unless leaders changed during them, where it ``elects``, and unless the
    rules it ``tests`` were tested: those of the simulator's checkers and its own, by id."""

    name: str
    summary: str
    play: Callable[[World], None]
    nodes: int = 3
    replicas: int = 3
    partitions: int = 8
    is_quick: bool = False
    has_disks: bool = False
    elects: bool = True
    tests: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()


class World:
    """What a scenario may touch."""

    def __init__(self, scenario: Scenario, directory: Path, seed: int, *, is_enclosed: bool,
                 say: Callable[[str], None]) -> None:
        self.random = random.Random(f"{seed} {scenario.name}")
        self.recorder = Recorder()
        self.cluster = Cluster(directory, scenario.nodes, scenario.replicas, scenario.partitions,
                               is_enclosed=is_enclosed, has_disks=scenario.has_disks and is_enclosed)
        self.network = Network() if is_enclosed else None
        self.skew_excess_ms = 0
        """By how much the scenario drives clocks beyond the skew bound."""
        self.late: list[str] = []
        """What the scenario waited for in vain."""
        self.findings: list[Finding] = []
        """What the scenario has judged itself, by rules that are its own."""
        self._scenario = scenario
        self._seed = seed
        self._say = say
        self._load: Load | None = None

    # -- for scenarios -------------------------------------------------------------------------

    @property
    def nodes(self) -> list[NodeProcess]:
        """All of them, in the order of their numbers."""
        return self.cluster.nodes

    def say(self, words: str) -> None:
        """Progress."""
        self._say(f"{self.recorder.now_ms() / 1000:7.1f} s  {words}")

    def run(self, seconds: float) -> None:
        """Let things go on for a while."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            threading.Event().wait(min(left, LOOK_S))
            if self._load is not None and self._load.errors:
                raise RuntimeError("a client failed with what no client may raise") from self._load.errors[0]

    @contextmanager
    def fault(self, kind: str, nodes: Sequence[NodeProcess] = (), words: str = "") -> Iterator[Fault]:
        """Announce and record a fault of these nodes for as long as the block lasts."""
        words = words or ", ".join(map(str, nodes))
        self.say(f"{kind} {words}")
        with self.recorder.fault(kind, [node.address for node in nodes], words) as fault:
            yield fault
        self.say(f"{kind} {words} is over")

    @contextmanager
    def cut(self, kind: str, words: str, pairs: list[Pair]) -> Iterator[None]:
        """Cut these for as long as the block lasts; at its end the whole network is healed."""
        assert self.network is not None
        with self.fault(kind, words=words):
            before = self.network.dropped()
            self.network.cut(pairs)
            yield
            self.network.heal()
            if self.network.dropped() == before:
                raise RuntimeError(f"the cut dropped no packet: {kind} {words}")

    def leaders(self) -> list[NodeProcess]:
        """Running nodes, those that lead most first; ties by chance."""
        described = self.describe()
        leads = dict.fromkeys(self.cluster.addresses, 0)
        for row in next(iter(described.values())).partitions:
            if row.leader in leads:
                leads[row.leader] += 1
        nodes = [node for node in self.nodes if node.is_running()]
        self.random.shuffle(nodes)
        return sorted(nodes, key=lambda node: -leads[node.address])

    def describe(self, wanted: int = 1) -> dict[str, m.Described]:
        """How the nodes see the cluster: of so many as answered, at least of one."""
        described: dict[str, m.Described] = {}
        deadline = time.monotonic() + 30
        with self.recorder.client(self.cluster.addresses, "look", PATIENCE_S) as client:
            for _ in range(4 * wanted):
                try:
                    answer = client.status()
                except SkuldError:
                    if time.monotonic() > deadline:
                        raise
                    continue
                described[answer.node] = answer
                if len(described) >= wanted:
                    break
        if not described:
            raise RuntimeError("no node says how it sees the cluster")
        return described

    def await_served(self, timeout_s: float = 40.0) -> None:
        """Until every partition is led by a live node, as any node sees it."""
        self.until(lambda: judgement.lacks_leaders(self.describe()), timeout_s, "leaders")

    def until(self, lacks: Callable[[], list[str]], timeout_s: float, what: str) -> None:
        """Until nothing is lacking any more; ``TimeoutError`` when that takes too long."""
        deadline = time.monotonic() + timeout_s
        while missing := lacks():
            if time.monotonic() > deadline:
                raise TimeoutError(f"no {what} within {timeout_s:.0f} s: {missing[0]}")
            self.run(LOOK_S)

    def kill(self, nodes: Iterable[NodeProcess]) -> None:
        """``kill -9``, one right after the other."""
        for node in nodes:
            node.kill()

    def start(self, nodes: Iterable[NodeProcess]) -> None:
        """All at once, until each is a member."""
        nodes = list(nodes)
        for node in nodes:
            node.launch()
        for node in nodes:
            node.await_ready()

    def cut_power(self, nodes: Iterable[NodeProcess]) -> None:
        """These lose power together: nothing more reaches their disks, and their processes are gone."""
        nodes = list(nodes)
        disk.cut_power([node.disk for node in nodes if node.disk is not None])
        self.kill(nodes)

    def restore_power(self, nodes: Iterable[NodeProcess]) -> None:
        """Their disks are mounted again and they start on what those kept."""
        nodes = list(nodes)
        for node in nodes:
            if node.disk is not None:
                node.disk.remount()
        self.start(nodes)

    # -- the run -------------------------------------------------------------------------------

    def play(self) -> Judgement:
        """All phases; raises when the harness fails or a node will not start."""
        try:
            self.cluster.start()
            self.cluster.launch()
            self.await_served()
            self._load = Load(self.recorder, self.cluster.addresses, self._seed)
            self._load.start()
            self.say("work has begun")
            self.run(CLEAN_S)
            try:
                self._scenario.play(self)
            except TimeoutError as late:  # the cluster's failure, not ours: go on, and judge what it did
                self.late.append(str(late))
                self.say(f"GIVEN UP: {late}")
            return self._settle(self._load)
        finally:
            if self.network is not None:
                self.network.heal()
            for node in self.nodes:
                node.resume()
            if self._load is not None:
                self._load.end()
            self.cluster.destroy()

    def _settle(self, load: Load) -> Judgement:
        if self.network is not None:
            self.network.heal()
        self.cluster.restore()
        self.say("all is healed; draining")
        healed_ms = self.recorder.now_ms()
        load.wind_down()
        lacks = self._lacks_in_time()
        settled_ms = self.recorder.now_ms()
        self.say("settled" if not lacks else f"NOT settled: {lacks[0]}")
        load.end()
        owners = judgement.agreed_owners(self.describe(len(self.nodes)), len(self.nodes))
        unasked = self.cluster.unasked_ends()
        self.cluster.stop()
        stores, damaged = self._stores()
        writes = writes_of(self.cluster.directory / "zookeeper" / "data", NAME, self.recorder.origin_ms)
        parameters, recorder = self.cluster.parameters, self.recorder
        evidence = Evidence(
            recorder.history, writes, stores, {} if lacks else owners, parameters.replicas, parameters.partitions,
            faults=recorder.faults, skew_ms=parameters.skew_ms, skew_excess_ms=self.skew_excess_ms,
            wall_start_ms=recorder.origin_ms, calm_ms=healed_ms, equal_ms=None if lacks else settled_ms,
            bound_ms=int(SETTLE_S * 1000), end_ms=recorder.now_ms(), patience_ms=int(PATIENCE_S * 1000))
        self.say("judging")
        return judgement.judge(evidence, lacks, unasked, damaged, SESSION_MS, elects=self._scenario.elects,
                               tests=self._scenario.tests, findings=self.findings)

    def _lacks_in_time(self) -> list[str]:
        try:
            self.until(self._lacks, SETTLE_S, "a settled cluster")
        except TimeoutError as late:
            return [*self.late, str(late)]
        return self.late

    def _lacks(self) -> list[str]:
        """What is missing to a healed, drained and converged cluster."""
        described = self.describe(len(self.nodes))
        owners = judgement.agreed_owners(described, len(self.nodes))
        if not owners:
            return ["not all nodes agree on the owners"]
        missing = judgement.lacks_leaders(described)
        if not missing:
            missing = self._undrained()
        if not missing:
            stores, _ = self._stores()
            evidence = Evidence(stores=stores, owners=owners, replicas=self.cluster.parameters.replicas,
                                partitions=self.cluster.parameters.partitions)
            missing = list(replicas_are_equal(evidence).evidence)
        return missing

    def _undrained(self) -> list[str]:
        with self.recorder.client(self.cluster.addresses, "count", PATIENCE_S) as client:
            try:
                depths = client.depths()
            except SkuldError as problem:
                return [f"nobody counts: {problem}"]
        return [f"queue {name} has {depth.waiting} waiting and {depth.claimed} claimed"
                for name, depth in depths.items() if depth.waiting or depth.claimed]

    def _stores(self) -> tuple[judgement.Stores, list[str]]:
        stores, damaged = {}, []
        for node in self.nodes:
            stores[node.address], found = read_store(node.data)
            damaged += found
        return stores, damaged
