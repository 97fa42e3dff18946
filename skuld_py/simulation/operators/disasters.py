"""What cannot be mended without people: disks of a majority gone, one document gone, all of ZooKeeper gone.

* **A majority's disks.** A majority of a cohort dies at one moment with its disks; some of them come back empty,
  before or after the operator gives them up, the others when all is healed. The operator asks for ``force`` until
  every partition has its voters or has given them up.
* **A document.** It is deleted; its leader, if there is one, puts it back. Where there is none for a while, the
  cluster is restored, which is the only way.
* **ZooKeeper's data.** All nodes die, and ZooKeeper has what ``rebuilding`` makes of their directories; where
  these are too few, it is refused and nothing is lost. Keys stay what they were, so that holders go on. It may
  come soon after voters were given up, while nothing may be granted in their place yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import attrs

from skuld_py.errors import Refused
from skuld_py.node.life.identity import load_identity
from skuld_py.node.life.keepsake import load_keepsake
from skuld_py.node.life.rebuilding import Remains, memories_of, rebuilt
from skuld_py.partition.leadership.standing import load_standing
from skuld_py.partition.leadership.wishes import FORCE
from skuld_py.simulation.faults import Fault
from skuld_py.simulation.operators.obedience import Attended
from skuld_py.simulation.operators.operator import Operator
from skuld_py.simulation.world.clock import WALL_START_MS

BACK_MS = (50, 3_000)
"""When one that lost its disk is there again, if it is before all is healed."""
FORCE_MS = (200, 2_500)
STUCK_MS = 3_000
"""A document is away for so long before the cluster is restored."""
LOOK_MS = 500
REPEATED_MS = 700
LOST = Fault(9_999, "wipe", 0, 0)


class Disasters:
    """``counts``: what happened. ``lost``: the nodes whose disks went for good, ``rows``: what these had."""

    def __init__(self, cluster: Attended, random: Random, operator: Operator,
                 struck: Callable[[Fault], None]) -> None:
        self.counts: Counter[str] = Counter()
        self.lost: tuple[str, ...] = ()
        self.rows: dict[tuple[str, bytes], dict[bytes, None]] = {}
        """What the lost had: the values, by table and key."""
        self.restored: list[int] = []
        """When the cluster was restored."""
        self._cluster = cluster
        self._random = random
        self._operator = operator
        self._struck = struck
        self._away: dict[int, int] = {}
        """Since when a document is away."""

    # -- disks ---------------------------------------------------------------------------------

    def lose_majority(self) -> None:
        """Strike."""
        cluster, random = self._cluster, self._random
        documents = [document for _, document in cluster.registry.documents.values() if document.leader]
        if not documents or self.lost:
            return
        cohort = random.choice(documents).cohort
        count = len(cohort) // 2 + 1 if len(cohort) % 2 or random.random() < 0.5 else len(cohort) // 2
        victims = random.sample(cohort, min(count, len(cohort) - 1) or 1)
        whole = [name for name in cohort if name not in victims and cluster.atlas.is_whole(name)]
        if not whole:
            return
        self.lost = tuple(victims)
        for name in victims:
            self._destroy(name)
        self.counts["majority lost for good"] += 1
        cluster.scheduler.after(random.randint(*FORCE_MS), self._force)

    def _destroy(self, name: str) -> None:
        process, scheduler = self._cluster.processes[name], self._cluster.scheduler
        process.crash()
        for table in ("body", "history", "log"):
            for key, value in process.store.rows(table).items():
                self.rows.setdefault((table, key), {})[value] = None
        process.store.wipe()
        self._cluster.atlas.note_hurt(name)
        self._struck(attrs.evolve(LOST, start_ms=scheduler.now_ms, stop_ms=scheduler.now_ms, targets=(name,)))
        if self._random.random() < 0.6:
            scheduler.after(self._random.randint(*BACK_MS), self._cluster.restart, name)

    def _force(self) -> None:
        """Ask until it is done, or nobody has to be given up: refusals tell, and so does that there is a
        leader."""
        if self.is_stuck():
            self._operator.ask(FORCE)
        self._cluster.scheduler.after(REPEATED_MS, self._force)

    def is_stuck(self) -> bool:
        """Whether some cohort has lost its majority for good and has no leader elected since."""
        gone = [name for name in self.lost if not self._cluster.atlas.is_whole(name)]
        return any(2 * sum(name in gone for name in document.cohort) >= len(document.cohort)
                   for _, document in self._cluster.registry.documents.values())

    # -- documents -----------------------------------------------------------------------------

    def begin_deleting(self, every_ms: int) -> None:
        """Delete documents, again and again."""
        self._cluster.scheduler.after(1 + int(self._random.expovariate(1.0) * every_ms), self._delete, every_ms)

    def _delete(self, every_ms: int) -> None:
        if not self.is_over:
            partition, processes = self._random.randrange(self._cluster.partitions), self._cluster.processes
            cohort = self._cluster.registry.newest(partition).cohort
            is_known = all(load_standing(processes[name].store, partition).epoch for name in cohort)
            if self._cluster.registry.remove(partition):
                self.counts["document deleted"] += 1
                self.counts["document deleted before all its voters knew of it"] += not is_known
                self._cluster.guards.on_removed(partition)
            self.begin_deleting(every_ms)

    is_over = False
    """Whether nothing is deleted any more."""

    def watch(self) -> None:
        """Restore the cluster where a document has been away for long."""
        now_ms, registry = self._cluster.scheduler.now_ms, self._cluster.registry
        had = dict.fromkeys(write.partition for write in registry.writes)
        self._away = {partition: self._away.get(partition, now_ms) for partition in had
                      if partition not in registry.documents}
        if any(now_ms - since_ms > STUCK_MS for since_ms in self._away.values()):
            self.counts["restored for a document"] += self.restore()
            self._away = dict.fromkeys(self._away, now_ms)  # a refusal: nodes run on meanwhile
        self._cluster.scheduler.after(LOOK_MS, self.watch)

    # -- ZooKeeper -----------------------------------------------------------------------------

    def restore_soon(self, after_ms: int) -> None:
        """Have ZooKeeper's data be lost in a while, once."""
        if not self._was_doomed:
            self.is_doomed = self._was_doomed = True
            self._cluster.scheduler.after(after_ms, self._restore_early)

    is_doomed = _was_doomed = False
    """Whether ZooKeeper's data are about to be lost."""

    def _restore_early(self) -> None:
        self.is_doomed = False
        wall_ms = WALL_START_MS + self._cluster.scheduler.now_ms
        is_barred = any(wall_ms < document.no_grant_before_ms
                        for _, document in self._cluster.registry.documents.values())
        self.counts["restored before a barrier"] += self.restore() and is_barred

    def restore(self) -> bool:
        """Lose ZooKeeper's data and put the cluster back from its directories; says whether these were enough."""
        cluster = self._cluster
        up = [name for name, process in cluster.processes.items() if process.is_up]
        for process in cluster.processes.values():
            process.crash()
        try:
            made = rebuilt("sim", [remains for name in cluster.processes if (
                remains := self._remains(name)) is not None], cluster.options.parameters.claim_key)
        except Refused as problem:
            self.counts[f"restore refused: {problem.code}"] += 1
            made = None
        if made is not None:
            cluster.registry.restore(made)
            for partition, document in made.documents.items():
                cluster.guards.on_removed(partition)
                cluster.guards.on_written(cluster.scheduler.now_ms, partition, None, document)
            for name in [name for name in cluster.processes if name not in made.registrations]:
                cluster.begin_anew(name)
            self.restored.append(cluster.scheduler.now_ms)
            self.counts["cluster restored"] += 1
            self._away.clear()
        for name in up:
            cluster.scheduler.after(self._random.randint(10, 600), cluster.restart, name)
        return made is not None

    def _remains(self, name: str) -> Remains | None:
        store, parameters = self._cluster.processes[name].store, self._cluster.options.parameters
        identity = load_identity(store)
        if identity is None:
            return None
        fixed: dict[str, object] = {field: getattr(parameters, field)
                                    for field in ("partitions", "replicas", "skew_ms", "rules")}
        return Remains(name, parameters.cluster_id, name, fixed, identity,
                       memories_of(store, parameters.partitions), load_keepsake(store))
