"""One run with operators: the usual run, with these beside it, and with their own rules behind.

When all faults are over, what is frozen must be led again as it is: no freeze is a dead end. Only then do
operators let go of everything, and the cluster must be as if nothing had been. Where a majority's disks were lost,
what only these had is left out of what must be kept, task by task; rules of who holds what, and when, see all of
it.
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import attrs

from skuld_py.model import messages as m
from skuld_py.model.document import NORMAL, Document
from skuld_py.model.ids import split
from skuld_py.partition.leadership.wishes import NOTED, UNFREEZE, UNQUARANTINE
from skuld_py.simulation import checkers
from skuld_py.simulation.campaign import DRAINER, TRACE_LINES, Campaign, Verdict, make_node
from skuld_py.simulation.checkers import Evidence, Finding
from skuld_py.simulation.cluster import Cluster
from skuld_py.simulation.history import History, Operation, Status
from skuld_py.simulation.operators import rules
from skuld_py.simulation.operators.disasters import Disasters
from skuld_py.simulation.operators.eclipses import Eclipses
from skuld_py.simulation.operators.habits import draw
from skuld_py.simulation.operators.hands import Hands
from skuld_py.simulation.operators.obedience import Attended
from skuld_py.simulation.operators.operator import Operator
from skuld_py.simulation.operators.resizes import Resizes
from skuld_py.simulation.options import Options
from skuld_py.simulation.reduction import WHOLE, Reduction
from skuld_py.simulation.trace import Trace
from skuld_py.simulation.world.scheduler import stream

ASKERS = 2
"""Operators who know nothing of each other."""
STRICT = frozenset({"C1", "C2", "C3", "C4", "C5", "C7", "C9", "C11", "C14", "C22", "X2", "D2", "D3", "D11"})
"""Rules that a lost majority is no excuse from."""
PATIENCE_MS = 1_500


class Operated(Campaign):
    """A run under way."""

    def __init__(self, seed: int, seconds: int, trace: Trace, reduction: Reduction = WHOLE) -> None:
        drawn, self.plan = draw(seed, seconds)
        self._drawn = drawn
        super().__init__(seed, seconds, trace, reduction)
        registry = self.cluster.registry
        self.askers = [Operator(self._make_client(f"ops{number}", PATIENCE_MS), self.options, registry)
                       for number in range(ASKERS)]
        self.last = Operator(self._make_client("ops", PATIENCE_MS), self.options, registry)
        self.hands = Hands(self.cluster.scheduler, stream(seed, "hands"), self.options, self.cluster.registry,
                           self._leads)
        assert isinstance(self.cluster, Attended)
        self.eclipses = Eclipses(self.cluster, stream(seed, "eclipses"))
        self.resizes = Resizes(self.cluster, stream(seed, "resizes"))
        self.disasters = Disasters(self.cluster, stream(seed, "disasters"), self.last, self.nemesis.struck.append)
        self.excused: dict[bytes, None] = {}
        """Tasks of which something was only on disks that are lost for good."""
        self._is_let_go = False
        self.cluster.registry.on_written.append(self._on_written)

    def draw_options(self, seed: int) -> Options:
        """Those of a run with operators."""
        return self._drawn

    def make_cluster(self, seed: int, trace: Trace) -> Cluster:
        """One that is looked at more closely."""
        return Attended(seed, self.options, make_node, trace, self.horizon_ms)

    def play(self) -> None:
        """All phases."""
        scheduler, plan = self.cluster.scheduler, self.plan
        for asker in self.askers:
            asker.begin(plan.every_ms * ASKERS)
        self.hands.begin(plan.every_ms * 2)
        self.disasters.watch()
        if plan.eclipses_every_ms:
            self.eclipses.begin(plan.eclipses_every_ms)
        if plan.resizes_every_ms:
            self.resizes.begin(plan.resizes_every_ms)
        if plan.deletes_every_ms:
            self.disasters.begin_deleting(plan.deletes_every_ms)
        if plan.loses_ms:
            scheduler.at(plan.loses_ms, self.disasters.lose_majority)
        if plan.restores_ms:
            scheduler.at(plan.restores_ms, self.disasters.restore)
        super().play()

    def _leads(self, name: str, partition: int) -> bool:
        """Whether a node takes itself for the leader."""
        process = self.cluster.processes.get(name)
        return process is not None and process.node is not None and process.node.view.vnodes[partition].is_leading

    def _heal_all(self) -> None:
        self.hands.is_over = self.disasters.is_over = self.eclipses.is_over = True
        if self.plan.resizes_every_ms:
            self.resizes.end()
        super()._heal_all()

    def lacks(self) -> list[str]:
        """What liveness still misses: first that what is frozen is led, then that everything is as it was."""
        if not self._is_let_go:
            leaderless = self._leaderless()
            if leaderless:
                return leaderless
            self._let_go()
        if self.disasters.is_doomed:
            return ["ZooKeeper's data are about to be lost"]
        self.awaiter.forget(self.excused)
        held = [f"partition {partition} is held: {document}" for partition, (_, document)
                in self.cluster.registry.documents.items() if _is_held(document)]
        return held or super().lacks()

    def _leaderless(self) -> list[str]:
        if self.options.has_churn or self.disasters.lost:
            return []
        return self.healer.leaders_lacking() if self.healer.described else ["nobody says who leads"]

    def _let_go(self) -> None:
        self._is_let_go = True
        counts = self.last.counts
        counts["frozen to the end"] += sum(
            document.freeze is not None for _, document in self.cluster.registry.documents.values())
        for kind in (UNFREEZE, NORMAL, NOTED, UNQUARANTINE):
            self.last.insist(kind)

    # -- what is lost --------------------------------------------------------------------------

    def _on_written(self, now_ms: int, partition: int, before: Document | None, document: Document) -> None:
        loss = document.loss
        if before is not None and loss is not None and loss.epoch == document.epoch > before.epoch:
            self.disasters.counts["epoch forced"] += 1
            if self.plan.restores_after_ms:
                self.disasters.restore_soon(self.plan.restores_after_ms)
            self._excuse(partition, before, loss.remaining)

    def _excuse(self, partition: int, before: Document, remaining: Sequence[str]) -> None:
        """Leave out tasks of which somebody that was given up has, or had, what none of those who remain has."""
        stores = {name: process.store for name, process in self.cluster.processes.items()}
        prefix, rows = partition.to_bytes(2, "big"), {place: dict(values) for place, values
                                                      in self.disasters.rows.items()}
        for name in before.cohort:
            for table in ("body", "history", "log") if name not in remaining else ():
                for key, value in stores[name].rows(table, prefix).items():
                    rows.setdefault((table, key), {})[value] = None
        for (table, key), values in rows.items():
            kept = {stores[name].committed(table, key) for name in remaining}
            if key.startswith(prefix) and not values.keys() <= kept:
                self.excused[key[2:22]] = None

    # -- judgement -----------------------------------------------------------------------------

    def evidence(self, owners: Mapping[int, Sequence[str]]) -> Evidence:
        """Also of how many copies were wanted, and of restores."""
        sizes = range(1, len(self.options.nodes) + 1) if self.plan.resizes_every_ms else ()
        return attrs.evolve(super().evidence(owners), resized=tuple(sizes),
                            restored=tuple(self.disasters.restored))

    def check(self, evidence: Evidence) -> list[Finding]:
        """The usual rules, and those of operators."""
        findings = checkers.check(evidence)
        if self.excused:
            less = attrs.evolve(evidence, history=without(evidence.history, self.excused))
            findings = [finding if finding.id in STRICT else other
                        for finding, other in zip(findings, checkers.check(less), strict=True)]
        return findings + rules.check(evidence)

    def counts(self) -> Counter[str]:
        """What operators did, and what became of it."""
        found = self.hands.counts + self.disasters.counts + self.last.counts
        found += self.eclipses.counts + self.resizes.counts
        for asker in self.askers:
            found += asker.counts
        found["tasks left out"] += len(self.excused)
        return found


def _is_held(document: Document) -> bool:
    return bool(document.freeze or document.promote or document.force or document.malformed or document.loss
                or document.barred or document.mode != NORMAL)


def without(history: History, tasks: Mapping[bytes, None]) -> History:
    """The history with what was answered about any of these in doubt, and nobody holding them."""
    less = History()
    less.calls, less.archived = history.calls, history.archived
    less.holds = [hold for hold in history.holds if hold.task not in tasks]
    less.operations = [attrs.evolve(operation, status=Status.INFO, answer=None) if _names(operation, tasks)
                       else operation for operation in history.operations]
    return less


def _names(operation: Operation, tasks: Mapping[bytes, None]) -> bool:
    message = operation.message
    ids = [message.id] if isinstance(message, m.Append | m.ReadLog) else []
    if isinstance(message, m.Enqueue):
        ids = [task for batch in message.batches for task in split(batch.ids)]
    elif isinstance(message, m.Claim) and isinstance(operation.answer, m.Claimed):
        ids = [task for batch in operation.answer.batches for task in split(batch.ids)]
    elif not ids and isinstance(getattr(message, "ids", None), bytes):
        ids = split(message.ids)  # type: ignore[attr-defined]
    return any(task in tasks for task in ids)


def run(seed: int, *, seconds: int = 10, plant: Callable[[Cluster], None] | None = None,
        listener: Callable[[str], None] | None = None) -> Verdict:
    """Play a seed, as ``simulation.campaign.run`` does."""
    trace = Trace(listener)
    campaign = Operated(seed, seconds, trace)
    if plant is not None:
        plant(campaign.cluster)
    error = ""
    try:
        campaign.play()
    except Exception:
        error = traceback.format_exc()
    findings = campaign.judge(error)
    stats = campaign.stats() + Counter({f"operators {what}": count for what, count in campaign.counts().items()})
    for process in campaign.cluster.processes.values():
        trace.absorb(process.store.digest())
    return Verdict(
        seed, campaign.options, {each.invariant: each.evidence for each in findings if each.verdict is False},
        tuple(each.invariant for each in findings if each.verdict is None), stats, trace.hash,
        tuple(trace.last(TRACE_LINES)), tuple(campaign.nemesis.struck),
        tuple((operation.client, operation.request) for operation in campaign.cluster.history.operations
              if operation.client != DRAINER))
