"""Members that want decisions, schedulers that make them, and a network between them that loses and delays."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Mapping
from random import Random

import attrs

from skuld_py.cluster.scale.decider import Decider, DeciderSettings
from skuld_py.cluster.scale.decisions import KINDS, Decision, Kind, Question, Wanted, computed
from skuld_py.cluster.scale.scheduler import Scheduler, SchedulerLimits
from skuld_py.model.events import Compute, Computed, Received, SchedulersChanged, Send, Ticked
from skuld_py.model.messages import Message

Fault = Callable[[Random, str, Message], Message | None]
"""What a scheduler sends instead; None: nothing."""
QUIET_MS = 1 << 61


@attrs.define(slots=False)
class World:
    """``work_ms``: how long a computation takes; ``loss``: in percent; ``faults`` and ``errors``, by scheduler."""

    members: list[str]
    schedulers: list[str]
    seed: int = 0
    work_ms: int = 100
    loss: int = 0
    kinds: Mapping[str, Kind] = attrs.field(factory=lambda: KINDS)
    settings: DeciderSettings = attrs.field(factory=DeciderSettings)
    limits: SchedulerLimits = attrs.field(factory=SchedulerLimits)
    faults: dict[str, Fault] = attrs.field(factory=dict)
    errors: dict[str, Callable[[str], str]] = attrs.field(factory=dict)
    """What a scheduler makes of the text of a result, before it hashes it."""
    now_ms: int = 0
    decisions: dict[str, list[Decision]] = attrs.field(factory=dict)
    sent: Counter[type[Message]] = attrs.field(factory=Counter)
    dead: list[str] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.random = Random(self.seed)
        self.deciding = {name: Decider(name, self.settings, self.kinds) for name in self.members}
        self.scheduling = {name: Scheduler(self.limits, self.kinds) for name in self.schedulers}
        self.decisions = {name: [] for name in self.members}
        self.asked: Counter[tuple[str, str]] = Counter()
        self._queue: list[tuple[int, int, str, object]] = []
        self._count = 0
        for name in self.members:
            self.give(name, SchedulersChanged(tuple(self.schedulers)))

    def want(self, question: Question, position: int = 1) -> None:
        for name in self.members:
            self.give(name, Wanted(position, question))

    def give(self, name: str, event: object) -> None:
        if name in self.dead:
            return
        machine = self.deciding.get(name) or self.scheduling[name]
        for effect in machine.step(self.now_ms, event):  # type: ignore[arg-type]
            match effect:
                case Send(peer, message):
                    self._send(name, peer, message)
                case Compute():
                    done = computed(effect, self.kinds)
                    if name in self.errors:
                        done = Computed(done.hash, self.errors[name](done.text))
                    self._later(self.work_ms, name, done)
                case Decision():
                    self.decisions[name].append(effect)

    def _send(self, name: str, peer: str, message: Message) -> None:
        faulty = self.faults[name](self.random, peer, message) if name in self.faults else message
        if faulty is None:
            return
        self.sent[type(faulty)] += 1
        self.asked[name, peer] += 1
        for _ in range(1 + (self.loss > 0 and self.random.random() < 0.1)):
            if self.random.randrange(100) >= self.loss:
                self._later(self.random.randint(1, 20), peer, Received(name, faulty))

    def _later(self, after_ms: int, name: str, event: object) -> None:
        self._count += 1
        heapq.heappush(self._queue, (self.now_ms + after_ms, self._count, name, event))

    def run(self, until_ms: int = QUIET_MS) -> None:
        """Until nothing is left to happen, or the time has come."""
        machines = {**self.deciding, **self.scheduling}
        while True:
            due_ms, name = min((machine.deadline(), name) for name, machine in machines.items()
                               if name not in self.dead)
            next_ms = min(due_ms, self._queue[0][0] if self._queue else QUIET_MS)
            if next_ms >= until_ms:
                self.now_ms = self.now_ms if until_ms == QUIET_MS else until_ms
                return
            assert next_ms >= self.now_ms and self._count < 1_000_000
            self._count += 1
            is_late = next_ms == self.now_ms and due_ms <= self.now_ms
            self.now_ms = next_ms
            if self._queue and self._queue[0][0] <= self.now_ms:
                _, _, to, event = heapq.heappop(self._queue)
                self.give(to, event)
            else:
                self.give(name, Ticked())
                assert not is_late or machines[name].deadline() > self.now_ms, f"{name} does not rest"

    def total(self) -> int:
        """Computations of all schedulers."""
        return sum(each.computations for each in self.scheduling.values())
