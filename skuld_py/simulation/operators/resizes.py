"""An operator changes how many copies of each task the cluster keeps, again and again; at last as it was drawn.

Whatever stands in between, no number is too many for the nodes that are placed: the log refuses that.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from skuld_py.cluster.log.commands import SetReplicas
from skuld_py.simulation.cluster import Cluster

AGAIN_MS = 300


class Resizes:
    """``counts``: what was asked for."""

    is_over = False

    def __init__(self, cluster: Cluster, random: Random) -> None:
        self.counts: Counter[str] = Counter()
        self._cluster = cluster
        self._random = random
        self._usual = cluster.options.parameters.replicas

    def begin(self, every_ms: int) -> None:
        """Change it, again and again."""
        self._cluster.is_resized = True
        self._later(every_ms)

    def _later(self, every_ms: int) -> None:
        self._cluster.scheduler.after(1 + int(self._random.expovariate(1.0) * every_ms), self._once, every_ms)

    def _once(self, every_ms: int) -> None:
        if self.is_over:
            return
        registry = self._cluster.registry
        before, wanted = registry.replica.replicas, self._random.randint(1, len(self._cluster.options.nodes))
        if registry.operate(SetReplicas(wanted)):
            now = registry.replica.replicas
            self.counts["more copies wanted"] += now > before
            self.counts["fewer copies wanted"] += now < before
            self.counts["more copies than nodes refused"] += now != wanted
        self._later(every_ms)

    def end(self) -> None:
        """Have it be as it was drawn, and stay so: a cluster that is restored goes back to what was before."""
        self.is_over = True
        registry = self._cluster.registry
        if registry.replica.replicas != self._usual:
            registry.operate(SetReplicas(self._usual))
        self._cluster.scheduler.after(AGAIN_MS, self.end)
