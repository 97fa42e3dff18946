"""Hands in ZooKeeper: what people and tools write into documents without asking a node.

Each is bound to the revision that it changes, as any tool's must be. Slips are what no program would write; wishes
by hand are well formed, and what they ask for mostly makes no sense; another tool's field is nobody's business
here. A wish that comes with an election comes with the same look at the document for the leader before; always
where that one still leads, as far as it knows, and then it is not about itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

import attrs

from skuld_py.model.document import LEAD, REBALANCE, REORDER, Document, Force, Freeze, Promotion
from skuld_py.simulation.options import Options
from skuld_py.simulation.world.clock import WALL_START_MS
from skuld_py.simulation.world.scheduler import Scheduler
from skuld_py.simulation.world.zookeeper.registry import Registry

HAND = "hand-"
"""How the write ids of these begin."""
FIELD = "other-tool"
SLIPS: tuple[dict[str, object], ...] = (
    {"freeze": 7}, {"freeze": {"whom": 1}}, {"freeze": []}, {"promote": {"id": 1}}, {"promote": "n2"},
    {"mode": "both"}, {"mode": None}, {"force": []}, {"force": {"epoch": "old"}}, {"promote": 1.5, "mode": {}})
AT_ELECTION = 0.4
"""Share of elections that come with a wish."""
HOUR_MS = 3_600_000


class Hands:
    """``counts``: what was done."""

    def __init__(self, scheduler: Scheduler, random: Random, options: Options, registry: Registry,
                 leads: Callable[[str, int], bool]) -> None:
        self.counts: Counter[str] = Counter()
        self.is_over = False
        self._scheduler = scheduler
        self._random = random
        self._options = options
        self._registry = registry
        self._leads = leads
        """Whether a node takes itself for the leader of a partition."""
        self._writes = 0

    def begin(self, every_ms: int) -> None:
        """Write something, again and again."""
        self._registry.on_written.append(self._on_written)
        self._later(every_ms)

    def _later(self, every_ms: int) -> None:
        self._scheduler.after(1 + int(self._random.expovariate(1.0) * every_ms), self._once, every_ms)

    def _once(self, every_ms: int) -> None:
        if not self.is_over:
            kind = self._random.choice(("slip", "wish", "wish", "field"))
            self._write(kind, self._random.randrange(self._options.parameters.partitions))
            self._later(every_ms)

    def _on_written(self, now_ms: int, partition: int, before: Document | None, document: Document) -> None:
        is_new = before is not None and document.epoch > before.epoch and document.leader != before.leader
        if not is_new or before is None or self.is_over:
            return
        if self._leads(before.leader, partition):
            self._scheduler.after(0, self._write, "wish behind a leader's back", partition)
        elif self._random.random() < AT_ELECTION:
            self._scheduler.after(1, self._write, "wish at an election", partition)

    def _write(self, kind: str, partition: int) -> None:
        change = {"slip": self._slip, "wish": self._wish, "field": self._field,
                  "wish at an election": self._sound, "wish behind a leader's back": self._behind}[kind]
        if not self.is_over and self._registry.edit(partition, change):
            self.counts[f"by hand: {kind}"] += 1

    def _written(self, document: Document, **changes: object) -> Document:
        self._writes += 1
        return attrs.evolve(document, write_id=f"{HAND}{self._writes}", cause="by hand",
                            **changes)  # type: ignore[arg-type]

    def _slip(self, document: Document) -> Document:
        slip = self._random.choice(SLIPS)
        return self._written(document, malformed={**document.malformed, **slip})

    def _field(self, document: Document) -> Document:
        return self._written(document, unknown={**document.unknown, FIELD: self._random.randrange(1_000)})

    @property
    def _wall_ms(self) -> int:
        return WALL_START_MS + self._scheduler.now_ms

    def _sound(self, document: Document) -> Document:
        """A wish that its leader may well obey."""
        return self._wished(document, (LEAD, REORDER, REORDER, REBALANCE), ())

    def _behind(self, document: Document) -> Document:
        """One that the leader before might obey as well."""
        return self._wished(document, (LEAD, REORDER), (document.previous.leader,))

    def _wished(self, document: Document, kinds: Sequence[str], spared: Sequence[str]) -> Document:
        kind = self._random.choice(kinds)
        others = [name for name in document.cohort if name not in (document.leader, *spared)]
        others = others or [*document.cohort]
        target = "" if kind == REBALANCE else self._random.choice(others)
        wish = self._promotion(kind, target, document.epoch, self._wall_ms + 2_000)
        return self._written(document, promote=wish)

    def _promotion(self, kind: str, target: str, epoch: int, expires_ms: int) -> Promotion:
        return Promotion(f"{HAND}wish-{self._writes}", kind, target, epoch, expires_ms, "hands")

    def _wish(self, document: Document) -> Document:
        """Of another epoch, too late, of nobody, of no kind; a freeze that is over; or a force that nobody
        needs."""
        random, now_ms = self._random, self._wall_ms
        target = random.choice((*self._options.nodes, "nobody", ""))
        wish = random.randrange(6)
        if wish == 0:
            return self._written(document, freeze=Freeze("", "hands", "", now_ms - HOUR_MS, now_ms - HOUR_MS // 2))
        if wish == 1:
            remaining = tuple(random.sample(self._options.nodes, 1))
            epoch = document.epoch - random.randint(1, 2) if document.epoch > 2 else 0
            return self._written(document, force=Force("", epoch, remaining, "hands", "", now_ms))
        kind = random.choice((LEAD, REORDER, REBALANCE)) if wish != 2 else random.choice(("primary", ""))
        epoch = document.epoch if wish != 3 else max(0, document.epoch + random.choice((-1, 1, 100)))
        expires_ms = now_ms + 2_000 if wish != 4 else now_ms - HOUR_MS
        return self._written(document, promote=self._promotion(kind, target, epoch, expires_ms))
