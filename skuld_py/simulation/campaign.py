"""One run from a seed: faults and work, then healing, then judgement.

The safety phase may do anything to any node. Then faults end: mostly at first for a core alone, which must lead
and drain without the rest, and then for all. That phase demands, in bounded virtual time, what only a healthy
cluster can do: every partition has a leader that all nodes agree on, every task is claimed and completed, all
replicas are equal. At last the checkers judge the whole history and the stores that are left.
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from random import Random

import attrs

from skuld_py.model import messages as m
from skuld_py.model.document import Member
from skuld_py.model.memory_store import MemoryStore
from skuld_py.node.node import Node
from skuld_py.node.workers.capacity import Capacity
from skuld_py.simulation import checkers
from skuld_py.simulation.checkers import Evidence, Finding
from skuld_py.simulation.checkers.convergence import replicas_are_equal
from skuld_py.simulation.checkers.evidence import EVIDENCE_MAX, claims_of
from skuld_py.simulation.checkers.order import nobody_starves
from skuld_py.simulation.clients.archiver import Archiver
from skuld_py.simulation.clients.attendee import Attendee
from skuld_py.simulation.clients.awaiter import Awaiter
from skuld_py.simulation.clients.bell import Bell
from skuld_py.simulation.clients.caller import Caller
from skuld_py.simulation.clients.client import Client
from skuld_py.simulation.clients.forger import Forger
from skuld_py.simulation.clients.limiter import Limiter
from skuld_py.simulation.clients.meddler import Meddler, Reader
from skuld_py.simulation.clients.pauser import Pauser
from skuld_py.simulation.clients.producer import Producer
from skuld_py.simulation.clients.ticker import Calm, Ticker
from skuld_py.simulation.clients.worker import Worker
from skuld_py.simulation.cluster import Cluster
from skuld_py.simulation.faults import Fault, draw_schedule
from skuld_py.simulation.flows import Flows
from skuld_py.simulation.healing import Healer
from skuld_py.simulation.hindsight import Hindsight
from skuld_py.simulation.history import Status
from skuld_py.simulation.membership import unsettled
from skuld_py.simulation.monitor import NO_NEED_TO_RAISE
from skuld_py.simulation.nemesis import Nemesis
from skuld_py.simulation.options import Options, draw_options, hoarding
from skuld_py.simulation.profiles import apply_profile
from skuld_py.simulation.reduction import WHOLE, Reduction
from skuld_py.simulation.trace import Trace
from skuld_py.simulation.trees import trees_follow_records
from skuld_py.simulation.world.clock import WALL_START_MS, draw_clock
from skuld_py.simulation.world.scheduler import stream

SETTLE_MS = 250
QUIET_ROUNDS, QUIET_MS_MAX = 4, 8_500
TRACE_LINES = 60
REST_MS = 10_000
TOLD = "CR"
"""Families of rules that bind even nodes that have lost everything: claims, and that no machine raises."""
DRAINER = "drainer"
DRAINER_PATIENCE_MS = 5_000
"""A client that gives up before its coordinator does can be handed claims for ever without getting one."""
TESTED = (m.Enqueue, m.Claim, m.Renew, m.Append, m.Complete)
LIVENESS = "L healed, the cluster elects, drains and converges in bounded time"
LOG_IS_SOUND = "L1 entries leave the ring, the joins and the places sound, and make the same of them for everybody"
CORE_LIVENESS = "L a healed majority elects and drains in bounded time, whatever the others do"


@attrs.frozen
class Verdict:
    """What became of a run. ``violated``: the invariants broken, each with its evidence."""

    seed: int
    options: Options
    violated: dict[str, tuple[str, ...]]
    vacuous: tuple[str, ...]
    stats: Counter[str]
    trace_hash: str
    last_lines: tuple[str, ...]
    faults: tuple[Fault, ...] = ()
    """Those that struck."""
    requests: tuple[tuple[str, int], ...] = ()
    reduction: Reduction = WHOLE

    @property
    def passed(self) -> bool:
        """Whether nothing is broken."""
        return not self.violated

    @property
    def is_vacuous(self) -> bool:
        """Whether the run put nothing to the test: no claim, or no fault while anything went on."""
        return not (self.stats["claims"] and self.stats["acks"] and self.stats["faults overlapped"])


def make_node(options: Options, member: Member, store: MemoryStore, random: Random) -> Node:
    """The real node."""
    retention = options.retention
    if member.name == options.careful:
        retention = attrs.evolve(retention, keep_ms=2 * retention.keep_ms)
    flows = options.workload.flows
    capacity = Capacity(flows.quiet_ms, flows.patience_ms, flows.pause_ms) if flows else None
    return Node(member, options.parameters, store, lambda most_ms: random.randint(0, most_ms),
                random.getrandbits(32), timing=options.timing, limits=options.limits,
                retention=retention, capacity=capacity)


class Campaign:
    """A run under way."""

    def __init__(self, seed: int, seconds: int, trace: Trace, reduction: Reduction = WHOLE) -> None:
        drawn = self.draw_options(seed)
        self.options = reduction.simplify(drawn)
        self.horizon_ms = seconds * 1_000 + 2 * self.options.liveness_ms
        self.safety_ms = min(seconds * 1_000, reduction.until_ms or seconds * 1_000)
        self.cluster = self.make_cluster(seed, trace)
        self.clients: list[Client] = []
        self.core_healed_ms: int | None = None
        self.calm_ms: int | None = None
        """When the last fault was over."""
        self.healed_ms: int | None = None
        self.led_ms: int | None = None
        """Since when, after that, all partitions were led."""
        self._seed = seed
        self._reduction = reduction
        drainer = self._make_client(DRAINER, DRAINER_PATIENCE_MS)
        self.healer = Healer(self.cluster, stream(seed, "healer"), drainer,
                             Worker(drainer, self.options, ("finish",)))
        self.calm = Calm(drainer, self.options)
        self.awaiter = Awaiter(drainer, self.options)
        self.archiver = Archiver(drainer, self.options)
        self.bell = Bell(self._make_client("b0", DRAINER_PATIENCE_MS), self.options, self.cluster.registry)
        self.flows: Flows | None = None
        faults = self.draw_faults(seed, drawn, seconds * 1_000)
        self.nemesis = Nemesis(self.cluster, reduction.keep(faults, self.options.nodes), self.options.weather)

    def draw_options(self, seed: int) -> Options:
        """The options of the run."""
        return apply_profile(seed, draw_options(seed))

    def draw_faults(self, seed: int, drawn: Options, end_ms: int) -> list[Fault]:
        """The faults that are to strike."""
        nodes = tuple(name for name in drawn.nodes if name not in drawn.visitors)
        return draw_schedule(seed, drawn.faults, drawn.fault_every_ms, drawn.apart, nodes, end_ms, drawn.visitors)

    def make_cluster(self, seed: int, trace: Trace) -> Cluster:
        """The cluster that they strike."""
        return Cluster(seed, self.options, make_node, trace, self.horizon_ms)

    def play(self) -> None:
        """All phases."""
        self.cluster.start()
        self.nemesis.begin()
        for number in range(self.options.workload.clients):
            client = self._make_client(f"c{number}", self.options.workload.patience_ms)
            Producer(client, self.options).begin()
            Worker(client, self.options, self.options.workload.fates).begin()
            Reader(client, self.options).begin()
            Meddler(client, self.options).begin()
        if self.options.workload.schedule_ms:
            Ticker(self._make_client("t0", self.options.workload.patience_ms), self.options).begin()
        for number in range(2) if self.options.workload.verb_ms else ():
            Caller(self._make_client(f"v{number}", self.options.workload.patience_ms), self.options).begin()
        if self.options.workload.forge_ms:
            Forger(self._make_client("f0", self.options.workload.patience_ms), self.options).begin()
        if self.options.workload.is_hoarding:
            hoarder = self._make_client("h0", self.options.workload.patience_ms)
            Producer(hoarder, hoarding(self.options)).begin()
            Worker(hoarder, hoarding(self.options), ("abandon", "renew", "renew")).begin()
        if self.options.workload.await_ms:
            Awaiter(self._make_client("a0", self.options.workload.patience_ms), self.options).begin()
        if self.options.retention.archives:
            Archiver(self._make_client("x0", self.options.workload.patience_ms), self.options).begin()
        if self.options.workload.pause_ms:
            Pauser(self._make_client("p0", self.options.workload.patience_ms), self.options).begin()
        if self.options.workload.limit_ms:
            Limiter(self._make_client("l0", self.options.workload.patience_ms), self.options).begin()
        if self.options.workload.report_ms:
            Attendee(self._make_client("w0", self.options.workload.patience_ms), self.options).begin()
        if self.options.workload.flows:
            self.flows = Flows(self.cluster, self.healer, self._make_client, self.options.workload.flows)
            self.flows.begin()
        self.cluster.scheduler.run(self.safety_ms)
        for client in self.clients[1:]:
            client.is_stopped = True
        if self.options.is_total_loss:
            self._look_at_the_rest()
        elif not self.options.has_core_phase or self._heal_core():
            self._heal_all()

    def _make_client(self, name: str, patience_ms: int) -> Client:
        seed, cluster, options = self._seed, self.cluster, self.options
        clock = draw_clock(stream(seed, f"clock {name}"), options.parameters.skew_ms, self.horizon_ms)
        client = Client(name, cluster.scheduler, cluster.network, cluster.history, clock,
                        stream(seed, f"client {name}"), options.nodes, patience_ms,
                        self._reduction.is_muted)
        self.clients.append(client)
        return client

    # -- liveness ------------------------------------------------------------------------------

    def _heal_core(self) -> bool:
        """The core is healed and must do alone; says whether it did."""
        healer = self.healer
        core = healer.choose_core()
        if self.options.fast in core:
            self.cluster.repair_clock()
        self.cluster.repair_clocks()
        self.nemesis.end(core)
        healer.break_others()
        healer.drain(core)
        if self.flows is not None:
            self.flows.use(core)
        healer.begin()
        until_ms = self.cluster.scheduler.now_ms + self.options.liveness_ms
        self.core_healed_ms = healer.wait(until_ms, lambda: not self.core_lacks(), SETTLE_MS)
        return self.core_healed_ms is not None

    def core_lacks(self) -> list[str]:
        """What the core still has to do."""
        return (self.flows.lacks(self.healer.core) if self.flows is not None else []) or self.healer.core_lacks()

    def _look_at_the_rest(self) -> None:
        """After a total loss: give the rest every chance to grant what it must not."""
        self.nemesis.end()
        self.healer.drain(self.options.nodes)
        self.healer.begin()
        self.cluster.scheduler.run(self.cluster.scheduler.now_ms + REST_MS)

    def _heal_all(self) -> None:
        healer = self.healer
        self.cluster.repair_clock()
        self.cluster.repair_clocks()
        self.nemesis.end()
        healer.drain(self.options.nodes)
        if self.flows is not None:
            self.flows.use(self.options.nodes)
        if not self.options.has_core_phase:
            healer.begin()
        self.calm_ms = self.cluster.scheduler.now_ms
        self.awaiter.await_all()
        if self.options.retention.archives:
            self.archiver.archive_all()
        self.healed_ms = healer.wait(self.calm_ms + self.options.liveness_ms, lambda: not self.lacks(),
                                     SETTLE_MS)
        self._be_quiet()

    def _be_quiet(self) -> None:
        """Wait for some exchanges between equals, where they come soon enough."""
        pairs = self.options.parameters.replicas - 1
        quiet_ms = QUIET_ROUNDS * pairs * self.options.timing.exchange_ms
        if self.healed_ms is not None and quiet_ms <= QUIET_MS_MAX:
            self.cluster.scheduler.run(self.cluster.scheduler.now_ms + quiet_ms)

    def owners(self) -> dict[int, tuple[str, ...]]:
        """The owners that all nodes agree on; none if they do not."""
        return self.healer.owners()

    def lacks(self) -> list[str]:
        """What liveness still misses."""
        evidence = self.evidence(self.owners())
        if not evidence.owners:
            return ["not all nodes agree on the owners"]
        leaders = self.healer.leaders_lacking()
        if leaders:
            return leaders
        flowing = self.flows.lacks(self.options.nodes) if self.flows is not None else []
        if not self.calm.is_over:
            self.led_ms = self.cluster.scheduler.now_ms if self.led_ms is None else self.led_ms
            self.calm.begin()
            return [*flowing, "a schedule still ticks"]
        if flowing:
            return flowing
        strays = self.healer.strays(evidence.owners)
        if strays:
            return strays
        uncollected = self.healer.uncollected() if self.options.retention.keep_ms else []
        if uncollected:
            return uncollected
        findings = [nobody_starves(evidence), replicas_are_equal(evidence)]
        lacking = [f"{finding.invariant}: {line}" for finding in findings for line in finding.evidence]
        lacking += unsettled(self.cluster.processes, self.cluster.registry)
        return lacking or self.awaiter.lacks(evidence.going) or self.bell.lacks()

    # -- judgement -----------------------------------------------------------------------------

    def evidence(self, owners: Mapping[int, Sequence[str]]) -> Evidence:
        """The evidence for the checkers. Without owners nothing is demanded that only a healed cluster can
        keep."""
        parameters, cluster = self.options.parameters, self.cluster
        equal_ms = None if self.healed_ms is None or self.calm_ms is None else self.calm_ms + self.healed_ms
        return Evidence(
            cluster.history, cluster.registry.writes,
            {name: process.store for name, process in cluster.processes.items()}, owners,
            parameters.replicas, parameters.partitions, faults=self.nemesis.struck, notes=cluster.notetaker.notes,
            repeats=bool(self.options.weather.repeat),
            skew_ms=parameters.skew_ms, skew_excess_ms=self.options.skew_excess_ms,
            wall_start_ms=WALL_START_MS, calm_ms=self.calm_ms, equal_ms=equal_ms, led_ms=self.led_ms,
            bound_ms=self.options.liveness_ms, end_ms=cluster.scheduler.now_ms,
            is_fixed=not self.options.has_churn,
            patience_ms=max(self.options.workload.patience_ms, DRAINER_PATIENCE_MS),
            collected=cluster.notetaker.gone(cluster.monitor.going), going=cluster.monitor.going,
            keep_ms=self.options.retention.keep_ms)

    def judge(self, error: str) -> list[Finding]:
        """All verdicts: of the checkers, the monitor, the liveness phase."""
        is_healed = self.healed_ms is not None
        if not is_healed:
            for process in self.cluster.processes.values():
                process.store.crash()  # what counts is what is committed
        findings = [Finding(NO_NEED_TO_RAISE, False, (error,))] if error else []
        findings += self.check(self.evidence(self.owners() if is_healed else {}))
        if self.options.is_total_loss:
            findings = [finding for finding in findings if finding.invariant[0] in TOLD]
        elif is_healed:
            findings += [Finding(LIVENESS, True), trees_follow_records(self._nodes())]
        elif not error and self.options.has_core_phase and self.core_healed_ms is None:
            core = f"core {'+'.join(self.healer.core)}, others {self.healer.ways}"
            findings.append(Finding(CORE_LIVENESS, False, (core, *self.core_lacks()[:EVIDENCE_MAX])))
        elif not error:
            findings.append(Finding(LIVENESS, False, tuple(self.lacks()[:EVIDENCE_MAX])))
        blamed = self.cluster.monitor.violations | ({LOG_IS_SOUND: faults} if (
            faults := self.cluster.registry.violations) else {})
        findings += [Finding(rule, False, tuple(lines[:EVIDENCE_MAX])) for rule, lines in blamed.items()]
        return findings

    def check(self, evidence: Evidence) -> list[Finding]:
        """The verdicts of the checkers."""
        return checkers.check(evidence)

    def _nodes(self) -> dict[str, Node]:
        """The living machines."""
        return {name: process.node for name, process in self.cluster.processes.items() if process.node is not None}

    def stats(self) -> Counter[str]:
        """Numbers of a run."""
        cluster, history = self.cluster, self.cluster.history
        stats = Counter({f"fault {kind}": count for kind, count in self.nemesis.counts.items()})
        stats += Counter({f"network {what}": count for what, count in cluster.network.counts.items()})
        stats += Counter({f"registry {what}": count for what, count in cluster.registry.counts.items()})
        stats += Counter(f"{type(operation.message).__name__} {operation.status.value}"
                         for operation in history.operations)
        stats += Counter(f"call {call.verb} {call.status.value}" for call in history.calls)
        stats["calls asked again"] += sum(1 for call in history.calls if call.is_asked_again)
        stats += Counter({f"probe {name}": count for name, count in self.probes().items()})
        stats += Counter({f"pair {name}": count for name, count in cluster.pairs.named.items()})
        acks = sum(1 for _ in history.of(m.Enqueue, Status.OK))
        stats.update({
            "actions": cluster.scheduler.actions, "elections": len(cluster.registry.writes),
            "turns": sum(process.turns for process in cluster.processes.values()),
            "boots": sum(process.boots for process in cluster.processes.values()),
            "acks": acks, "claims": sum(1 for _ in claims_of(history)),
            "faults overlapped": self._overlapped(), "virtual ms": cluster.scheduler.now_ms,
            "healing ms": self.healed_ms or 0, "core healing ms": self.core_healed_ms or 0,
            "on wire": self.options.is_on_wire,
        })
        return stats

    def probes(self) -> Counter[str]:
        """Rare situations that this run has met."""
        cluster = self.cluster
        stores = [process.store for process in cluster.processes.values()]
        registry = cluster.registry
        hindsight = Hindsight(cluster.history, registry.writes, stores, self.options.parameters.partitions)
        counts = registry.counts + registry.log.reference.counts + cluster.network.counts + Counter({
            "member comes in while a fault strikes": sum(
                fault.start_ms <= joined_ms <= fault.stop_ms for fault in self.nemesis.struck
                for joined_ms in registry.joined_ms),
            "node taken out": self.nemesis.counts["leave"],
            "old copy put back": self.nemesis.counts["old copy"],
            "one clock beyond the bound": bool(self.options.skew_excess_ms)})
        return cluster.probes.counts + hindsight.look(counts)

    def _overlapped(self) -> int:
        """Faults during which a write or a claim succeeded."""
        done = [operation for operation in self.cluster.history.operations
                if operation.is_ok and isinstance(operation.message, TESTED)]

        def is_overlapped(fault: Fault) -> bool:
            return any(operation.invoked_ms <= fault.stop_ms and operation.done_ms >= fault.start_ms
                       for operation in done)
        return sum(1 for fault in self.nemesis.faults if is_overlapped(fault))


def run(seed: int, *, seconds: int = 20, reduction: Reduction = WHOLE,
        plant: Callable[[Cluster], None] | None = None,
        listener: Callable[[str], None] | None = None) -> Verdict:
    """Play a seed. ``plant`` may break something before the start; ``listener`` gets each trace line."""
    trace = Trace(listener)
    campaign = Campaign(seed, seconds, trace, reduction)
    if plant is not None:
        plant(campaign.cluster)
    error = ""
    try:
        campaign.play()
    except Exception:
        error = traceback.format_exc()
    findings = campaign.judge(error)
    for process in campaign.cluster.processes.values():
        trace.absorb(process.store.digest())
    return Verdict(
        seed, campaign.options, {each.invariant: each.evidence for each in findings if each.verdict is False},
        tuple(each.invariant for each in findings if each.verdict is None), campaign.stats(), trace.hash,
        tuple(trace.last(TRACE_LINES)), tuple(campaign.nemesis.struck),
        tuple((operation.client, operation.request) for operation in campaign.cluster.history.operations
              if operation.client != DRAINER), reduction)
