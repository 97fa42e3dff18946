"""A client that has workflows run: it submits them, enqueues their segments, exhausts their inputs, kills some.

What it knows of a workflow is what it asked for; it asks again for what it did not learn. Now and then it submits
one again, or another definition under the same id. An operator meanwhile changes how workflows share slots. What
seals an output is enqueued, under an id that does not change, by whoever is told that no input is open.

At the end (``finish``) it has all of them end, and each in the way it must: one that has seats is completed, which
takes a worker for each output; one that has none, and of which the nodes say why, is killed.
"""

from __future__ import annotations

from collections.abc import Mapping

from skuld_py.cluster.log.commands import SetSharing
from skuld_py.cluster.log.workflows import Workflow, live
from skuld_py.model import messages as m
from skuld_py.model.body import Header
from skuld_py.model.columns import pack
from skuld_py.model.ids import IdMint
from skuld_py.model.messages.workflows import SLOTS_OF_STEP_MAX, StepSpec
from skuld_py.simulation.clients.client import REPEATS_MAX, Client
from skuld_py.simulation.history import Operation
from skuld_py.simulation.options import Options
from skuld_py.simulation.world.zookeeper.registry import Registry
from skuld_py.workflow.definition.names import PLAN, SEAL, queue_of
from skuld_py.workflow.scheduling.demand import Sharing, Spreading
from skuld_py.workflow.segments import seal_id

ABLE = "able"
"""The tag that some steps need, and some workers have."""
LIVE_MAX = 4
AGAIN_MS = 300
GREEDY_LEAST = 9
"""Slots that one workflow in some needs at least: more than all workers often bring."""


def spec(name: str, kind: str, least: int = 1, most: int = SLOTS_OF_STEP_MAX, tags: tuple[str, ...] = (),
         percentage: int = 0) -> StepSpec:
    """A step as a client submits it."""
    return StepSpec(name, kind, least, most, tags, percentage, "continue")


SHAPES = (
    (spec("left", "input", most=1), spec("work", "function"), spec("table", "output")),
    (spec("left", "input", most=1), spec("right", "input", most=1), spec("work", "function", most=2),
     spec("table", "output"), spec("report", "output", most=1)),
    (spec("left", "input", most=1), spec("work", "function", tags=(ABLE,)), spec("table", "output")),
    (spec("left", "input", most=1), spec("work", "function", least=GREEDY_LEAST), spec("table", "output")),
)


class Submitter:
    """``seals``: of each task that seals an output, its workflow and step."""

    def __init__(self, client: Client, options: Options, registry: Registry) -> None:
        self._client = client
        self._random = client.random
        self._options = options
        self._registry = registry
        self._mint = IdMint(client.random.getrandbits(32))
        self._known: dict[str, tuple[StepSpec, ...]] = {}
        self._times: dict[tuple[str, int], int] = {}
        """When it was first to be sealed; of each life, for an id whose tombstone was collected may live again."""
        self._made = 0
        self._is_finishing = False
        self._starved: Mapping[str, str] = {}
        self.seals: dict[bytes, tuple[str, str]] = {}

    def begin(self, every_ms: int) -> None:
        """Have workflows run; do something about them this often."""
        self._client.ask(m.Greet, self._on_greeted)
        self._client.repeat(every_ms, self._act)

    def _on_greeted(self, operation: Operation) -> None:
        if isinstance(operation.answer, m.Greeted):
            self._mint.raise_floor(operation.answer.floor_ms)

    @property
    def queues(self) -> tuple[str, ...]:
        """All queues that its tasks may be in."""
        return tuple(queue_of(name, step) for name, steps in self._known.items()
                     for step in (SEAL, PLAN, *(each.name for each in steps)))

    def _act(self) -> None:
        drawn, living = self._random.random(), [*self._living]
        if drawn < 0.05:
            self._registry.operate(SetSharing(self._random.choice([*Sharing]).value))
        elif drawn < 0.1 and self._known:
            self._submit(self._random.choice([*self._known]), digest=self._random.choice(("a", "b")))
        elif not living or (drawn < 0.3 and len(living) < LIVE_MAX):
            self._known[f"w{len(self._known)}"] = self._random.choice(SHAPES)
            self._submit([*self._known][-1])
        elif drawn < 0.35:
            self._kill(self._random.choice(living), "as it was drawn")
        elif drawn < 0.45:
            name = self._random.choice(living)
            self._exhaust(name, self._random.choice(self._known[name]).name)
        else:
            self._feed(self._random.choice(living))

    @property
    def _living(self) -> Mapping[str, Workflow]:
        return {name: each for name, each in live(self._registry.replica.workflows).items() if name in self._known}

    # -- what it asks for ------------------------------------------------------------------------

    def _submit(self, name: str, repeats: int = REPEATS_MAX, digest: str = "a") -> None:
        """Submit it; again, as long as it is not known whether that was done."""
        percentage = 20 * (len(name) + ord(name[-1])) % 100
        spreading = [*Spreading][ord(name[-1]) % len(Spreading)].value

        def then(operation: Operation) -> None:
            if not isinstance(operation.answer, m.Decreed) and repeats and not self._client.is_stopped:
                self._client.later(self._random.randint(1, AGAIN_MS), self._submit, name, repeats - 1, digest)
        self._client.ask(lambda request: m.Submit(request, name, 16 * digest, 32 * "0", spreading, percentage,
                                                  self._known[name]), then)

    def _kill(self, name: str, reason: str) -> None:
        self._client.ask(lambda request: m.Kill(request, name, reason), lambda operation: None)

    def _exhaust(self, name: str, step: str) -> None:
        """Mostly an input; of other steps it is refused."""
        def then(operation: Operation) -> None:
            row = operation.answer.workflows[0] if (
                isinstance(operation.answer, m.Decreed) and operation.answer.workflows) else None
            if row is not None and row.state == "live":
                inputs = {each.name for each in row.steps if each.kind == "input"}
                if inputs <= {*row.exhausted}:
                    self._have_sealed(name, row.submitted)
        self._client.ask(lambda request: m.Advance(request, name, step, False), then)

    def _have_sealed(self, name: str, submitted: int) -> None:
        """Enqueue what seals its outputs, each time under the same ids."""
        time_ms = self._times.setdefault((name, submitted), self._client.wall_ms())
        for step in (each.name for each in self._known[name] if each.kind == "output"):
            task = bytes(seal_id(name, step, time_ms))
            self.seals[task] = name, step
            self._store(queue_of(name, SEAL), (task,), step)

    def _feed(self, name: str) -> None:
        """Segments of one of its steps."""
        step = self._random.choice([each.name for each in self._known[name] if each.kind != "input"])
        ids = self._mint.mint(self._client.wall_ms(), self._random.randint(1, self._options.workload.batch_max),
                              self._random.getrandbits(32))
        self._made += 1
        self._store(queue_of(name, step), tuple(ids), f"segment {self._made}")

    def _store(self, queue: str, ids: tuple[bytes, ...], payload: str, repeats: int = REPEATS_MAX) -> None:
        batch = m.TaskBatch(Header(queue).encode(), b"".join(ids), pack([payload.encode()] * len(ids)))

        def then(operation: Operation) -> None:
            if not operation.is_ok and repeats:
                wait_ms = self._random.randint(1, AGAIN_MS)
                self._client.later(wait_ms, self._store, queue, ids, payload, repeats - 1)
        self._client.ask(lambda request: m.Enqueue(request, 0, (batch,)), then)

    # -- the end ---------------------------------------------------------------------------------

    def finish(self, starved: Mapping[str, str]) -> None:
        """Have all of them end, from now on; those that have no seats by being killed. Said again with what the
        nodes say by then."""
        self._starved = starved
        if not self._is_finishing:
            self._is_finishing = True
            self._finish()

    def _finish(self) -> None:
        for name, workflow in self._living.items():
            if name in self._starved:
                self._kill(name, self._starved[name][:100])
            elif workflow.open_inputs:
                for step in workflow.open_inputs:
                    self._exhaust(name, step)
            else:
                self._have_sealed(name, workflow.submitted)
        if self._living:
            self._client.later(2 * AGAIN_MS, self._finish)
