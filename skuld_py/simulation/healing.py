"""Two steps of healing: a core that must do without the rest, then all nodes.

A core has a majority of every cohort, drawn at random from those whose memory is whole, and the registry.
Links and nodes of the core are healed while each other node stays broken in one way or another; then the
core alone must, in bounded time, lead every partition and claim and complete every task that any of its
owners stores. After that all is healed: all nodes agree on owners and leaders, every task is completed, all
replicas are equal. Where nodes came for a visit only, the core are all others: nothing may need a visitor.

Queues are resumed, limits and schedules removed first; where there were any, the core also has a majority of all
nodes, which settings need.

A node outside the core may still speak, listen or hold its session, so a core must also bear nodes that half work.

Source: the two phases of TigerBeetle's VOPR.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random

from skuld_py.cluster.placement import place
from skuld_py.model import messages as m
from skuld_py.model.body import header_of
from skuld_py.model.history import TIME_MS_MAX, History, decode_history
from skuld_py.model.setting import LIMITS, PAUSED
from skuld_py.simulation.clients.client import Client
from skuld_py.simulation.clients.hopeless import LOOK_MS, cancel_hopeless
from skuld_py.simulation.clients.pauser import set_for_good
from skuld_py.simulation.clients.ticker import NAMES, remove_for_good
from skuld_py.simulation.clients.worker import Worker
from skuld_py.simulation.cluster import Cluster
from skuld_py.simulation.history import Operation
from skuld_py.simulation.world.network import between, one_way

DRAIN_LEASE_MS = 1_000
DESCRIBE_MS = 100
DRAIN_TASKS = 100
WAYS = ("down", "paused", "cut off", "no registry", "deaf", "mute")
"""How a node outside the core is broken."""


def draw_core(random: Random, nodes: Sequence[str], cohorts: Iterable[tuple[int, Sequence[str]]]) -> tuple[
        str, ...]:
    """A set of nodes with a majority of every cohort, of which no node can be spared; often a few more.

    Cohorts are given as (size, members that count).
    """
    core, groups, spared = list(nodes), list(cohorts), list[str]()
    for name in random.sample(list(nodes), len(nodes)):
        left = [other for other in core if other != name]
        if all(2 * len({*left} & {*members}) > size for size, members in groups):
            core = left
            spared.append(name)
    more = spared[: random.choice((0, 0, 1, 2))]
    return tuple(name for name in nodes if name in core or name in more)


class Healer:
    """Brings a cluster back, in two steps, and knows what is lacking."""

    def __init__(self, cluster: Cluster, random: Random, drainer: Client, worker: Worker) -> None:
        self.core: tuple[str, ...] = ()
        self.ways: dict[str, str] = {}
        self.described: dict[str, m.Described] = {}
        self._cluster = cluster
        self._random = random
        self._drainer = drainer
        self._worker = worker

    # -- steps ---------------------------------------------------------------------------------

    def choose_core(self) -> tuple[str, ...]:
        """The nodes that shall work again first."""
        cluster = self._cluster
        if cluster.options.visitors:
            visitors = cluster.options.visitors
            self.core = tuple(name for name in cluster.options.nodes if name not in visitors)
            return self.core
        cohorts = [document.cohort for _, document in cluster.registry.documents.values()]
        cohorts += self._placement().values()
        workload = cluster.options.workload
        if workload.pause_ms or workload.schedule_ms or workload.limit_ms:
            cohorts += [cluster.options.nodes, tuple(cluster.registry.nodes)]  # left ones may come back
        self.core = draw_core(self._random, cluster.options.nodes, [
            (len(cohort), tuple(filter(cluster.atlas.is_whole, cohort))) for cohort in cohorts])
        return self.core

    def _placement(self) -> dict[int, tuple[str, ...]]:
        parameters = self._cluster.options.parameters
        nodes = self._cluster.registry.nodes
        return dict(enumerate(place(nodes, parameters.partitions, parameters.replicas)))

    def break_others(self) -> None:
        """Leave each node outside the core broken in some way."""
        others = [name for name in self._cluster.options.nodes if name not in self.core]
        self.ways = {name: self._random.choice(WAYS) for name in others}
        self.ways |= dict.fromkeys(self._cluster.options.visitors, "down")
        for name, way in self.ways.items():
            self._cluster.note("nemesis", way, name)
            self._break(name, way)

    def _break(self, name: str, way: str) -> None:
        cluster = self._cluster
        others = [other for other in cluster.options.nodes if other != name]
        if way == "down":
            cluster.processes[name].crash()
            return
        cluster.restart(name)
        cluster.resume(name)
        if way == "paused":
            cluster.pause(name)
        elif way == "deaf":
            cluster.network.cut(one_way(others, [name]))
        elif way == "mute":
            cluster.network.cut(one_way([name], others))
        elif way == "cut off":
            cluster.network.cut(between([name], others))
        if way in ("cut off", "no registry"):
            cluster.cut_registry(name)

    def drain(self, nodes: Sequence[str]) -> None:
        """From now on ask these nodes; claim and complete all there is."""
        self._drainer.nodes = nodes

    def begin(self) -> None:
        """Start to claim and to ask how the nodes see the cluster."""
        if self._cluster.options.workload.pause_ms:
            for queue in self._cluster.options.workload.queues:
                set_for_good(self._drainer, PAUSED, queue)
        if self._cluster.options.workload.limit_ms:
            for queue in self._cluster.options.workload.queues:
                set_for_good(self._drainer, LIMITS, queue)
        if self._cluster.options.workload.schedule_ms:
            for name in NAMES:
                remove_for_good(self._drainer, name)
        self.drain_queues(self._cluster.options.workload.queues)
        if self._cluster.options.workload.needs:
            self._cancel_hopeless()
        self._describe()

    def drain_queues(self, queues: Iterable[str]) -> None:
        """Claim and complete what is in these, too."""
        for queue in queues:
            self._drain(queue)

    def _drain(self, queue: str) -> None:
        count = min(DRAIN_TASKS, self._cluster.options.limits.batch_tasks)
        self._worker.claim(queue, count, DRAIN_LEASE_MS, 100, lambda: self._cluster.scheduler.after(
            20, self._drain, queue))

    def _cancel_hopeless(self) -> None:
        cancel_hopeless(self._drainer, [self._cluster.processes[name].store for name in self._drainer.nodes])
        self._drainer.later(LOOK_MS, self._cancel_hopeless)

    def _describe(self) -> None:
        def then(operation: Operation) -> None:
            if isinstance(operation.answer, m.Described):
                self.described[operation.node] = operation.answer
            self._drainer.later(DESCRIBE_MS, self._describe)
        self._drainer.ask(m.Describe, then)

    # -- what is lacking -----------------------------------------------------------------------

    def core_lacks(self) -> list[str]:
        """What the core still has to do."""
        lacking: list[str] = []
        for partition, owners in self._placement().items():
            lacking += self._lacks_leader(partition)
            for name in owners:
                if name in self.core:
                    lacking += self._waiting(name, partition)
        return lacking

    def _lacks_leader(self, partition: int) -> list[str]:
        found = self._cluster.registry.documents.get(partition)
        if found is None:
            return [f"partition {partition} has no leader"]
        document = found[1]
        connection = self._cluster.processes[document.leader].connection
        is_up = connection is not None and connection.member.boot == document.boot
        if document.leader in self.core and is_up:
            return []
        return [f"partition {partition} is led by {document.leader} ({document.boot})"]

    def _waiting(self, name: str, partition: int) -> list[str]:
        store = self._cluster.processes[name].store
        return [f"{name} still has {key.hex()} uncompleted"
                for key, body in store.rows("body", partition.to_bytes(2, "big")).items()
                if not is_over(decode_history(store.committed("history", key)), body)]

    def leaders_lacking(self) -> list[str]:
        """Partitions on whose leader the nodes and the registry do not agree."""
        lacking = []
        for partition in range(self._cluster.options.parameters.partitions):
            document = self._cluster.registry.documents.get(partition)
            seen = [described.partitions[partition].leader for described in self.described.values()]
            if document is None or any(leader != document[1].leader for leader in seen):
                lacking.append(f"partition {partition}: nodes see leaders {seen}, the registry {document}")
        return lacking

    def owners(self) -> dict[int, tuple[str, ...]]:
        """The owners that all nodes agree on; none if they do not."""
        views = [described.partitions for described in self.described.values()]
        if len(views) < len(self._cluster.options.nodes):
            return {}
        owners = {row.partition: row.owners for row in views[0]}
        is_agreed = all(owners == {row.partition: row.owners for row in view} for view in views)
        return owners if is_agreed and all(owners.values()) else {}

    def strays(self, owners: Mapping[int, Sequence[str]]) -> list[str]:
        """What nodes still store of partitions that are no longer theirs."""
        return [f"{name} still has {len(rows)} records of table {table} of partition {partition}, of {cohort}"
                for partition, cohort in owners.items() for name, process in self._cluster.processes.items()
                if name not in cohort for table in ("body", "history", "log")
                if (rows := process.store.rows(table, partition.to_bytes(2, "big")))]

    def uncollected(self) -> list[str]:
        """What is still stored of tasks that have all ended, with what the next commit removes: that has not been
        told yet."""
        return [f"{name} still has {len(rows)} records of table {table} to be collected"
                for name, process in self._cluster.processes.items() for table in ("body", "history", "log")
                if (rows := process.store.rows(table) or process.store.undo[table])]

    def wait(self, until_ms: int, is_done: Callable[[], bool], step_ms: int) -> int | None:
        """Let time pass until it is done; gives how long that took, None if it is not done by then."""
        scheduler, begun_ms = self._cluster.scheduler, self._cluster.scheduler.now_ms
        while scheduler.now_ms < until_ms:
            scheduler.run(scheduler.now_ms + step_ms)
            if is_done():
                return scheduler.now_ms - begun_ms
        return None


def is_over(history: History, body: bytes) -> bool:
    """Whether the task is not to be claimed any more: completed, cancelled, or dead once its claims are over."""
    is_ended = history.completion.value is not None or history.cancelled.value is not None
    return is_ended or history.death(header_of(body).retry.max_attempts, TIME_MS_MAX) != 0
