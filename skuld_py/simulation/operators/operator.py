"""An operator who asks nodes: each verb of ``Steer``, at random, of any node, and again until it is answered.

What an answer says is noted; an answer that is lost leaves the operator not knowing, as it does people.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from skuld_py.model import messages as m
from skuld_py.model.document import LEAD, NORMAL, REAP, REBALANCE, REORDER, SOLO
from skuld_py.partition.leadership.wishes import (
    FORCE,
    FREEZE,
    NOTED,
    OF_NODES,
    QUARANTINE,
    UNFREEZE,
    UNQUARANTINE,
)
from skuld_py.simulation.clients.client import Client
from skuld_py.simulation.history import Operation
from skuld_py.simulation.options import Options
from skuld_py.simulation.world.zookeeper.registry import Registry

VERBS = {FREEZE: 4, UNFREEZE: 4, SOLO: 2, NORMAL: 2, LEAD: 6, REORDER: 4, REBALANCE: 3, FORCE: 1, NOTED: 1,
         QUARANTINE: 2, UNQUARANTINE: 3, REAP: 3}
"""How often each is asked for, beside the others. Who builds a verb adds it here, and what it needs to
``Operator.ask``."""
AGAIN_MS = 500
FIRST_MS = 1_000
_REASONS = {"has a majority": "force without need", "has no vote": "target without a vote",
            "it is frozen": "wish while frozen", "it is solo": "wish while solo",
            "its epoch is": "wish of another epoch", "is in quarantine": "target in quarantine",
            "could lead it": "nobody else could lead", "is known here": "target that nobody knows",
            "is alive;": "reap of who lives", "needs the vote of": "reap of a vote that is needed",
            "is not alive": "target not alive", "leads it": "target leads",
            "may have been obeyed": "wish in doubt whose epoch is over",
            "has not answered": "no answer of ZooKeeper", "none of its voters": "nobody remains",
            "no leader yet": "before the first leader"}


class Operator:
    """``counts``: what was asked, and what became of it."""

    def __init__(self, client: Client, options: Options, registry: Registry) -> None:
        self.counts: Counter[str] = Counter()
        self._client = client
        self._partitions = options.parameters.partitions
        self._nodes = options.nodes
        self._registry = registry

    def begin(self, every_ms: int) -> None:
        """Ask for something, again and again, once there are leaders."""
        self._client.later(FIRST_MS, self._client.repeat, every_ms, self._act)

    @property
    def _random(self) -> Random:
        return self._client.random

    def _act(self) -> None:
        random = self._random
        kind = random.choices([*VERBS], [*VERBS.values()])[0]
        first = random.randrange(self._partitions)
        count = 0 if random.random() < 0.3 else 1
        target, epoch, for_ms = "", 0, 0
        if kind in OF_NODES:
            target = random.choice(self._nodes)
            _, document = self._registry.documents.get(first, (0, None))
            if document is not None and random.random() < 0.5:
                epoch = max(0, document.epoch - random.choice((0, 0, 0, 1)))
        if kind in (FREEZE, LEAD, REORDER, REBALANCE):
            for_ms = random.choice((0, 200, 1_500, 4_000))
        self.ask(kind, 0 if count == 0 else first, count, target, epoch, for_ms)

    def ask(self, kind: str, first: int = 0, count: int = 0, target: str = "", epoch: int = 0,
            for_ms: int = 0) -> None:
        """Ask some node."""
        self.counts[f"asked {kind}"] += 1
        by = self._client.name
        self._client.ask(lambda request: m.Steer(request, kind, first, count, target, by, "practice", for_ms,
                                                 epoch), self._note)

    def _note(self, operation: Operation) -> None:
        answer, message = operation.answer, operation.message
        assert isinstance(message, m.Steer)
        if not isinstance(answer, m.Steered):
            self.counts["answer lost" if answer is None else f"refused whole: {getattr(answer, 'code', '')}"] += 1
            return
        self.counts[f"done {message.kind}"] += answer.changed
        for row in answer.refused:
            reason = next((name for words, name in _REASONS.items() if words in row.reason), row.reason)
            self.counts[f"refused: {reason}"] += 1

    def insist(self, kind: str) -> None:
        """From now on ask for it of all partitions whenever a document is not so."""
        documents = [document for _, document in self._registry.documents.values()]
        if kind == UNQUARANTINE:
            for name in dict.fromkeys(name for document in documents for name in document.outlaws):
                self.ask(kind, target=name)
        elif any({UNFREEZE: document.freeze is not None, NORMAL: document.mode != NORMAL,
                  NOTED: document.loss is not None}[kind] for document in documents):
            self.ask(kind)
        self._client.later(AGAIN_MS, self.insist, kind)
