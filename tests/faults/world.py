"""One run: a town, work, faults, then healing, then judgement.

The town's machines are there already, and this process stands on the one of the clients, see ``inside``.

Phases: a clean stretch; the scenario's faults under load; everything healed; every task drained; wait, within
a bound, until all nodes agree on leaders and owners and all replicas are equal; then all processes end and
what is left in their files is judged by the simulator's checkers.

Whatever happens on the way, a run leaves no process, no mount and no cut behind.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from faults import judgement
from faults.judgement import Judgement
from faults.load import PATIENCE_S, Load
from faults.recorder import Fault, Recorder
from faults.stores import read_store
from faults.transactions import writes_of
from machines import disk
from machines.machine import Machine
from machines.network import Network, Pair, between
from machines.node import Node
from machines.program import start_all
from machines.town import NAME, SESSION_MS, SKEW_MS, Shape, Town
from skuld_py.errors import SkuldError
from skuld_py.model import messages as m
from skuld_py.simulation.checkers import Evidence
from skuld_py.simulation.checkers.convergence import replicas_are_equal
from skuld_py.simulation.checkers.evidence import Finding

CLEAN_S = 4.0
SETTLE_S = 60.0
"""Leases, sessions, elections and a few rounds of exchanges are seconds each; 26 s was the longest seen. A run
that goes on for a while has half of that besides, for it leaves more to fill, read and compare."""
FAILOVER_S, BACK_S = 90.0, 300.0
"""For others to lead; and for a node to lead again, which takes copying all that it misses."""
LOOK_S, WATCH_S = 0.5, 0.1


@attrs.frozen
class Scenario:
    """A story of faults. It is vacuous unless leaders changed during them, where it ``elects``, and unless the
    rules it ``tests`` were tested: those of the simulator's checkers and its own, by id."""

    name: str
    summary: str
    play: Callable[[World], None]
    shape: Shape = attrs.field(factory=Shape)
    is_quick: bool = False
    elects: bool = True
    tests: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()


class World:
    """What a scenario may touch. ``seconds``: how long one that goes on for as long as it is told to does so."""

    def __init__(self, scenario: Scenario, directory: Path, machines: Mapping[str, Machine], seed: int,
                 say: Callable[[str], None], seconds: float = 0.0) -> None:
        self.random = random.Random(f"{seed} {scenario.name}")
        self.town = Town(directory, machines, scenario.shape)
        self.recorder = Recorder(self.town.key("load"))
        self.network = Network(machines["client"].site)
        self.seconds = seconds
        self._settle_s = SETTLE_S + seconds / 2
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
    def nodes(self) -> list[Node]:
        """All of them, in the order of their numbers."""
        return self.town.nodes

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

    @contextlib.contextmanager
    def fault(self, kind: str, nodes: Sequence[Node] = (), words: str = "") -> Iterator[Fault]:
        """Announce and record a fault of these nodes for as long as the block lasts."""
        words = words or ", ".join(map(str, nodes))
        self.say(f"{kind} {words}")
        with self.recorder.fault(kind, [node.name for node in nodes], words) as fault:
            yield fault
        self.say(f"{kind} {words} is over")

    @contextlib.contextmanager
    def cut(self, kind: str, words: str, pairs: list[Pair]) -> Iterator[None]:
        """Cut these for as long as the block lasts; at its end the whole network is healed."""
        with self.fault(kind, words=words):
            before = self.network.dropped()
            self.network.cut(pairs)
            yield
            self.network.heal()
            if self.network.dropped() == before:
                raise RuntimeError(f"the cut dropped no packet: {kind} {words}")

    def from_registry(self, nodes: Iterable[Node]) -> list[Pair]:
        """What cuts these off from all of ZooKeeper."""
        return between([node.host for node in nodes], [server.machine.host for server in self.town.zookeepers])

    def apart(self, nodes: Sequence[Node], others: Sequence[Node] = ()) -> list[Pair]:
        """What cuts these off from those others, from all when none are named."""
        return between([node.host for node in nodes],
                       [node.host for node in others or self.nodes if node not in nodes])

    def leaders(self) -> list[Node]:
        """Running nodes, those that lead most first; ties by chance."""
        described = self.describe()
        leads = dict.fromkeys((node.name for node in self.nodes), 0)
        for row in next(iter(described.values())).partitions:
            if row.leader in leads:
                leads[row.leader] += 1
        nodes = [node for node in self.nodes if node.is_running()]
        self.random.shuffle(nodes)
        return sorted(nodes, key=lambda node: -leads[node.name])

    def describe(self, wanted: int = 1) -> dict[str, m.Described]:
        """How the nodes see the cluster: of so many as answered, at least of one."""
        described: dict[str, m.Described] = {}
        deadline = time.monotonic() + 60
        with self.recorder.client(self.town.addresses, "look", PATIENCE_S) as client:
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

    def await_gone(self, node: Node, fault: Fault) -> None:
        """Until others lead all partitions, and tell how long after the fault began that is."""
        self._await_led(lambda rows: all(row.leader != node.name for row in rows), f"others than {node} lead",
                        fault.start_ms, FAILOVER_S)

    def await_back(self, node: Node) -> None:
        """Until a node leads again what is its by placement, if anything is, and tell how long that took."""
        def is_back(rows: Sequence[m.PartitionRow]) -> bool:
            mine = [row for row in rows if row.owners[:1] == (node.name,)]
            return not mine or any(row.leader == node.name for row in mine)
        self._await_led(is_back, f"{node} leads again", self.recorder.now_ms(), BACK_S)

    def _await_led(self, is_so: Callable[[Sequence[m.PartitionRow]], bool], words: str, since_ms: int,
                   timeout_s: float) -> None:
        def lacks() -> list[str]:
            rows = self._partitions()
            leaders = [row.leader for row in rows]
            return [] if leaders and all(leaders) and is_so(rows) else [f"leaders are {leaders}"]
        self.until(lacks, timeout_s, words, WATCH_S)
        self.say(f"{words} after {(self.recorder.now_ms() - since_ms) / 1000:.1f} s")

    def _partitions(self) -> Sequence[m.PartitionRow]:
        """All, as any node sees them; none, when none answers at once."""
        with contextlib.suppress(SkuldError), self.recorder.client(self.town.addresses, "watch", 1.0) as client:
            return client.status().partitions
        return ()

    def until(self, lacks: Callable[[], list[str]], timeout_s: float, what: str, look_s: float = LOOK_S) -> None:
        """Until nothing is lacking any more; ``TimeoutError`` when that takes too long."""
        deadline = time.monotonic() + timeout_s
        while missing := lacks():
            if time.monotonic() > deadline:
                raise TimeoutError(f"no {what} within {timeout_s:.0f} s: {missing[0]}")
            self.run(look_s)

    def kill(self, nodes: Iterable[Node]) -> None:
        """``kill -9``, one right after the other."""
        for node in nodes:
            node.kill()

    def start(self, nodes: Iterable[Node]) -> None:
        """All at once, until each is a member."""
        start_all(nodes)

    def cut_power(self, nodes: Iterable[Node]) -> None:
        """These lose power together: nothing more reaches their disks, and their processes are gone."""
        nodes = list(nodes)
        disk.cut_power([node.disk for node in nodes if node.disk is not None])
        self.kill(nodes)

    def restore_power(self, nodes: Iterable[Node]) -> None:
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
            self.town.build()
            self.await_served()
            self._load = Load(self.recorder, self.town.addresses, self._seed)
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
            self.network.heal()
            for node in self.nodes:
                node.resume()
            if self._load is not None:
                self._load.end()
            self.town.destroy()

    def _settle(self, load: Load) -> Judgement:
        self.network.heal()
        self.town.restore()
        self.say("all is healed; draining")
        healed_ms = self.recorder.now_ms()
        load.wind_down()
        lacks = self._lacks_in_time()
        settled_ms = self.recorder.now_ms()
        self.say("settled" if not lacks else f"NOT settled: {lacks[0]}")
        load.end()
        owners = judgement.agreed_owners(self.describe(len(self.nodes)), len(self.nodes))
        unasked = self.town.unasked_ends()
        self.town.stop()
        stores, damaged = self._stores()
        writes = writes_of(self.town.registry_logs, NAME, self.recorder.origin_ms)
        shape, recorder = self.town.shape, self.recorder
        evidence = Evidence(
            recorder.history, writes, stores, {} if lacks else owners, shape.replicas, shape.partitions,
            faults=recorder.faults, skew_ms=SKEW_MS, skew_excess_ms=self.skew_excess_ms,
            wall_start_ms=recorder.origin_ms, calm_ms=healed_ms, equal_ms=None if lacks else settled_ms,
            bound_ms=int(self._settle_s * 1000), end_ms=recorder.now_ms(), patience_ms=int(PATIENCE_S * 1000))
        self.say("judging")
        return judgement.judge(evidence, lacks, unasked, damaged, SESSION_MS, elects=self._scenario.elects,
                               tests=self._scenario.tests, findings=self.findings)

    def _lacks_in_time(self) -> list[str]:
        try:
            self.until(self._lacks, self._settle_s, "a settled cluster")
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
            evidence = Evidence(stores=stores, owners=owners, replicas=self.town.shape.replicas,
                                partitions=self.town.shape.partitions)
            missing = list(replicas_are_equal(evidence).evidence)
        return missing

    def _undrained(self) -> list[str]:
        with self.recorder.client(self.town.addresses, "count", PATIENCE_S) as client:
            try:
                depths = client.depths()
            except SkuldError as problem:
                return [f"nobody counts: {problem}"]
        return [f"queue {name} has {depth.waiting} waiting and {depth.claimed} claimed"
                for name, depth in depths.items() if depth.waiting or depth.claimed]

    def _stores(self) -> tuple[judgement.Stores, list[str]]:
        stores, damaged = {}, []
        for node in self.nodes:
            stores[node.name], found = read_store(node.data)
            damaged += found
        return stores, damaged
