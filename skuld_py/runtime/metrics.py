"""A node's metrics. The loop publishes what only it may look at; the scrape reads what was published.

``look`` runs in the loop's thread after a batch, at most once a second, and never for more than one part in
``SHARE`` of the time: the longer a look took, the longer the next one waits. Plain counters are read as
they stand. They begin anew with each life of a node, as after a restart.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from skuld_py import __version__
from skuld_py.config import Parameters
from skuld_py.model import messages as m
from skuld_py.model.overview import untold_by
from skuld_py.model.remarks import Counts
from skuld_py.model.service import Service, services_of, tally
from skuld_py.model.state import State
from skuld_py.node.node import Node
from skuld_py.node.reads.depths import OTHERS, Depth, Depths
from skuld_py.runtime.histogram import Histogram
from skuld_py.runtime.loop import Counters
from skuld_py.runtime.transport import Transport

PAUSE_S = 1.0
SHARE = 50
"""A look takes at most one part in this many of the processor. Its time alone counts: a look for which the machine
stood still must not put off the next one."""
ROWS = 2_000
"""Rows of counts that one look reads, about."""
Judge = Callable[[Parameters, m.Described], Sequence[str]]
"""Gives the kind of each concern about the cluster as a node sees it."""


@attrs.frozen
class Snapshot:
    """What the loop has published."""

    led: int = 0
    concerns: Mapping[str, int] = attrs.field(factory=dict)
    services: Mapping[Service, int] = attrs.field(factory=dict)
    depths: Mapping[str, Depth] = attrs.field(factory=dict)
    collected: int = 0
    unarchived: int = 0
    since_ms: int = 0


class NodeMetrics:
    """Collects for one node. ``kinds``: every concern that ``judge`` may find."""

    def __init__(self, judge: Judge, kinds: Sequence[str], clock: Callable[[], float] = time.monotonic,
                 wall: Callable[[], float] = time.time, spent: Callable[[], float] = time.thread_time) -> None:
        self._judge = judge
        self._kinds = kinds
        self._clock = clock
        self._wall = wall
        self._spent = spent
        self._next_s = 0.0
        self._node: Node | None = None
        self._depths: Depths | None = None
        self._counters = Counters()
        self._counts = Counts()
        self._transport: Transport | None = None
        self._snapshot = Snapshot()

    def follow(self, node: Node, counters: Counters, transport: Transport) -> None:
        """Tell of this life of the node from now on."""
        self._node, self._depths = node, Depths(node.view)
        self._counters, self._counts, self._transport = counters, node.view.bulletin.counts, transport

    def look(self) -> None:
        """Publish, if it is time; by the loop's thread."""
        now_s = self._clock()
        if now_s < self._next_s or self._node is None or self._depths is None:
            return
        begun_s = self._spent()
        depths = self._depths.look(ROWS)
        described = self._node.description()
        led = sum(1 for vnode in self._node.view.vnodes if vnode.is_leading)
        self._snapshot = Snapshot(led, Counter(self._judge(self._node.view.parameters, described)),
                                  tally(services_of(described, untold_by(described))),
                                  self._snapshot.depths if depths is None else depths,
                                  *next(((row.collected, row.unarchived, row.unarchived_since_ms)
                                         for row in described.collections if row.node == described.node), ()))
        self._next_s = now_s + max(PAUSE_S, SHARE * (self._spent() - begun_s))

    def collect(self) -> Iterable[Metric]:
        """All series; by the scrape's thread."""
        snapshot, counts, counters = self._snapshot, self._counts, self._counters
        yield _gauge("skuld_build_info", "The release that runs.", {(__version__,): 1.0}, "version")
        yield _gauge("skuld_partitions_led", "Partitions that this node leads.", {(): float(snapshot.led)})
        yield _gauge("skuld_attention", "Concerns about the cluster as this node sees it, by kind.",
                     {(kind,): float(snapshot.concerns.get(kind, 0)) for kind in self._kinds}, "kind")
        yield _gauge("skuld_partitions", "Partitions as this node sees them, by what they do: all, storing alone,"
                     " or nothing; without those that seem well and that others keep, which know what bars them.",
                     {(service.value,): float(snapshot.services.get(service, 0))
                      for service in Service if service is not Service.UNKNOWN}, "service")
        for name, words, count in (
                ("collected", "Ended tasks that were deleted, of partitions that this node leads.",
                 snapshot.collected), ("unarchived", "Ended tasks that go once an archive has them, of partitions"
                                       " that this node leads, young ones included.", snapshot.unarchived)):
            yield _gauge(f"skuld_{name}_tasks", words, {(): float(count)})
        yield _gauge("skuld_unarchived_seconds", "For how long tasks on offer to an archive could have gone.",
                     {(): max(0.0, self._wall() - snapshot.since_ms / 1000) if snapshot.since_ms else 0.0})
        yield from self._queues(snapshot.depths)
        for name, words, value in (
                ("claims_granted", "Claims granted.", counts.granted),
                ("grants_vetoed", "Claims that a follower objected to.", counts.vetoed),
                ("elections_won", "Leaderships won by this node.", counts.elected),
                ("leaderships_ended", "Leaderships that this node gave up or lost.", counts.deposed),
                ("exchange_differences", "Rows that exchanges fetched or gave.", counts.differences),
                ("events", "Events that the loop took.", counters.events)):
            yield CounterMetricFamily(f"skuld_{name}", words, float(value))
        yield from self._refused(counters)
        yield _histogram("skuld_turn_seconds", "How long batches took.", counters.turns)
        yield _histogram("skuld_commit_seconds", "How long the store took to commit a batch.", counters.commits)

    def _queues(self, depths: Mapping[str, Depth]) -> Iterable[Metric]:
        yield _gauge("skuld_queue_tasks", "Tasks on partitions led here; the queue is empty for those not named.",
                     {(queue, state.name.lower()): float(depth.counts[state])
                      for queue, depth in depths.items() for state in State}, "queue", "state")
        now_ms = self._wall() * 1000
        yield _gauge("skuld_queue_oldest_waiting_seconds", "Age of the oldest waiting task, of those led here.",
                     {(queue,): max(0.0, (now_ms - depth.oldest_ms) / 1000) for queue, depth in depths.items()
                      if depth.oldest_ms is not None and queue != OTHERS}, "queue")

    def _refused(self, counters: Counters) -> Iterable[Metric]:
        transport = self._transport
        cut = transport.connections.cut if transport is not None else None
        family = CounterMetricFamily("skuld_connections_cut", "Connections cut, by reason.", labels=["reason"])
        if cut is not None:
            for reason, count in attrs.asdict(cut).items():
                family.add_metric([reason], float(count))
        yield family
        refused = CounterMetricFamily("skuld_messages_refused", "Messages refused, by reason.", labels=["reason"])
        for reason in ("malformed", "wrong_cluster", "wrong_role", "strangers", "own_name"):
            refused.add_metric([reason], float(getattr(counters, reason)))
        yield refused


def _gauge(name: str, words: str, rows: Mapping[tuple[str, ...], float], *labels: str) -> Metric:
    family = GaugeMetricFamily(name, words, labels=labels)
    for values, number in rows.items():
        family.add_metric(list(values), number)
    return family


def _histogram(name: str, words: str, histogram: Histogram) -> Metric:
    return HistogramMetricFamily(name, words, buckets=histogram.buckets(), sum_value=histogram.sum_s)
