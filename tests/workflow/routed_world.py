"""A whole workflow under faults, played from a seed: inputs with feeders, conditions, outputs, the log.

Each input is a play as ``acking_world`` has them: with its feeder's lives, its acks and its workers. They have one
clock. What differs: values are drawn from a real source, anew by each life of the feeder; steps return values or
raise, conditions say where these go, and children are made as a worker makes them; when all inputs are exhausted
the outputs are gathered and sealed, by workers that die and come again. An input may have several strands: each is
such a play, of its own parts of the source, and where they have fewer slots their feeders take turns. Now and then
the log is told of ends, and of a killing, by workers that were asleep since an earlier life of the workflow.

Checkers, besides those of ``acking_world``: each value of a source is one root, none is lost and none fed twice,
by whichever strand; no strand touches the parts of another; whatever was committed is never asked for again before
it is done; each segment is where ``routed_plans.wanted`` says; the log takes each input's end once, when all of
that is done, and each output's once, when all that comes to it is there and gathered.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from heapq import heappop, heappush

import attrs

from skuld_py.calls.payloads import decode_call
from skuld_py.cluster.log.commands import (
    Command,
    ExhaustInput,
    Inapplicable,
    KillWorkflow,
    SealOutput,
    SubmitWorkflow,
)
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.log.workflows import StepRow, Workflow
from skuld_py.model.ids import ID_BYTES, to_text
from skuld_py.worker.workflows.children import Completed, Nursery, packed, unpacked
from skuld_py.worker.workflows.strands import Strand
from skuld_py.workflow import segments
from skuld_py.workflow.acking import events as e
from skuld_py.workflow.acking.checkpoint import Book
from skuld_py.workflow.acking.turns import rest_ms
from skuld_py.workflow.definition.definition import Policy
from skuld_py.workflow.definition.names import step_of
from skuld_py.workflow.routing.hooks import judged, restarts
from skuld_py.workflow.routing.passage import Failure, Outcome, Verdict
from skuld_py.workflow.routing.routes import Router
from skuld_py.workflow.segments import Emission
from workflow.acking_queue import Held, Queue, Rows, Segment, Violation
from workflow.acking_world import BEGUN_MS, EVENTS_MAX, HEALED_MS, OVER_MS, Life, World
from workflow.routed_plans import FUNCTIONS, LEAVES, draw_definition, wanted
from workflow.routed_sources import Away, Gone, Shelf, Store

RAISED = ("ValueError", "KeyError")
SEAL_LEASE_MS = 400
PLAN = to_text(BEGUN_MS.to_bytes(8, "big") + bytes(12))
FORMER = BEGUN_MS - 1
"""An earlier life of the workflow."""
Act = Callable[[], object]


class Workflows:
    """A workflow of a seed, from its submission to its end."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.met: Counter[str] = Counter()
        policy = self.chance.choice(["restart", "restart", "defer"])
        strands = [self.chance.choice([1, 1, 2, 3]) for _ in range(self.chance.choice([1, 1, 2]))]
        self.definition = draw_definition(self.chance, "w", strands, policy)
        self.replica = Replica()
        self.applied: Counter[tuple[str, str]] = Counter()
        self.now_ms = BEGUN_MS
        self.events = 0
        self._agenda: list[tuple[int, int, Act]] = []
        rows = tuple(StepRow(step, "input" if step in self.definition.inputs else
                             "output" if step in LEAVES else "function", most=self.definition.entries[step].most)
                     for step in self.definition.order)
        self.append(SubmitWorkflow("w", "0" * 32, PLAN, rows))
        of_dead = e.Policy.RESTART if policy == "restart" else e.Policy.KILL
        self.streams = [stream for name in self.definition.inputs for stream in self._streams(name, of_dead)]
        self.play = self.streams[0].play
        self.seals: dict[bytes, Seal] = {}
        self.gathered: dict[str, Counter[bytes]] = {}

    def _streams(self, step: str, policy: e.Policy) -> list[Stream]:
        sources = self.definition.entries[step].sources
        shelf = Shelf(self.chance, step, len(sources))
        shelf.streams = [
            Stream(self, shelf, source, Strand(number, len(sources)), self.chance.getrandbits(60), policy)
            for number, source in enumerate(sources)]
        return shelf.streams

    @property
    def known(self) -> Workflow:
        """As the log has it."""
        return self.replica.workflows["w"]

    def at(self, delay_ms: int, act: Act) -> None:
        """Do something later."""
        self.events += 1
        heappush(self._agenda, (self.now_ms + delay_ms, self.events, act))

    def run(self) -> None:
        """Play it to its end; raises ``Violation``."""
        for stream in self.streams:
            stream.begin()
        self.at(0, self._seal)
        for _ in range(3):
            self.at(self.chance.randrange(4_000), self._stray)
        while self._agenda and self.known.is_live:
            self.now_ms, _, act = heappop(self._agenda)
            for stream in self.streams:
                stream.now_ms = self.now_ms
            act()
            if self.now_ms > BEGUN_MS + 2 * OVER_MS or self.events > 4 * EVENTS_MAX:
                raise Violation(f"it comes to no end: {self.known}")
        if self.known.state == "completed":
            self._check_end()
        self.met[f"a workflow is {self.known.state}"] += 1

    def append(self, command: Command) -> bool:
        """An entry of the log; whether it changed something."""
        try:
            made = command.apply(self.replica, self.replica.version + 1)
        except Inapplicable as problem:
            raise Violation(f"the log refuses {command}: {problem}") from None
        is_new = made is not self.replica
        self.replica = attrs.evolve(made, version=self.replica.version + 1)
        if is_new:
            said = command.step if isinstance(command, SealOutput) else ""
            if isinstance(command, ExhaustInput):
                said = segments.sources_of(command.step, self.known.strands(command.step))[command.strand]
            self.applied[command.kind, said] += 1
        return is_new

    def _stray(self) -> None:
        """A worker wakes up that speaks of an earlier life."""
        stream = self.chance.choice(self.streams)
        command = self.chance.choice([
            ExhaustInput("w", stream.step, stream.strand.number, life=FORMER),
            SealOutput("w", self.chance.choice(LEAVES), life=FORMER), KillWorkflow("w", "former", life=FORMER)])
        if self.append(command):
            raise Violation(f"what is about an earlier life changes this one: {command}")
        self.met["the log is told of an earlier life"] += 1

    # -- seals -----------------------------------------------------------------------------------------

    def exhaust(self, stream: Stream) -> None:
        """An input has no more, says its feeder."""
        if self.append(ExhaustInput("w", stream.step, stream.strand.number, life=BEGUN_MS)):
            self.met["an input is exhausted while another one is open"] += bool(self.known.open_inputs)
            self.met["a strand is exhausted while another one is open"] += stream.step in self.known.open_inputs
        else:
            self.met["the log is told of an end again"] += 1
        if stream.step in self.known.exhausted and not all(
                each.queue.is_exhausted for each in self.streams if each.step == stream.step):
            raise Violation(f"{stream.step} is exhausted, and a strand of it is not")

    def enqueue_seals(self) -> None:
        """Whoever exhausts the last input has the outputs sealed; perhaps once more."""
        if not self.known.is_sealing:
            return
        for leaf in LEAVES:
            if leaf not in self.known.sealed:
                seal = segments.seal_id("w", leaf, BEGUN_MS)
                self.met["a seal is enqueued again"] += seal in self.seals
                self.seals.setdefault(seal, Seal(leaf))

    def _seal(self) -> None:
        """A worker takes one that nobody works on."""
        stream = self.streams[0]
        free = [each for each in self.seals.values() if not each.is_done and each.until_ms <= self.now_ms]
        if free:
            seal = self.chance.choice(free)
            seal.until_ms = self.now_ms + SEAL_LEASE_MS
            self.met["a seal is claimed again"] += seal.claims > 0
            seal.claims += 1
            self._steps(stream, [lambda: self._gather(seal), lambda: self._append_seal(seal),
                                 lambda: setattr(seal, "is_done", True)])
        self.at(self.chance.choice([5, 50, 200]), self._seal)

    def _steps(self, stream: Stream, steps: Sequence[Act]) -> None:
        """One after the other, by a worker that dies between any two, or sleeps through its lease."""
        if steps:
            slow = SEAL_LEASE_MS * 3 if stream.happens(25) else 30
            self.at(self.chance.randint(0, slow), lambda: self._step(stream, steps))

    def _step(self, stream: Stream, steps: Sequence[Act]) -> None:
        if stream.happens(25):
            self.met["a worker dies while it seals"] += 1
            return
        steps[0]()
        self._steps(stream, steps[1:])

    def _gather(self, seal: Seal) -> None:
        found = self.values_of(seal.leaf)
        if self.gathered.setdefault(seal.leaf, found) != found:
            raise Violation(f"{seal.leaf} was gathered before all of it was there")

    def _append_seal(self, seal: Seal) -> None:
        if seal.leaf not in self.gathered:
            raise Violation(f"{seal.leaf} is sealed and was not gathered")
        self.met["the log is told of a seal again"] += not self.append(
            SealOutput("w", seal.leaf, life=BEGUN_MS))
        if self.streams[0].happens(40):  # the answer is lost, and it is asked again
            self.append(SealOutput("w", seal.leaf, life=BEGUN_MS))

    def values_of(self, leaf: str) -> Counter[bytes]:
        """What has come to an output and is done."""
        return Counter(segment.body for stream in self.streams for segment in stream.queue.segments.values()
                       if segment.step == leaf and segment.known)

    def kill(self, reason: str) -> None:
        """A worker's policy says so."""
        self.met["a worker kills the workflow"] += self.append(
            KillWorkflow("w", reason[:200], life=BEGUN_MS))

    def _check_end(self) -> None:
        for stream in self.streams:
            stream._check_end()
            stream.check_fed()
            stream.shelf.check_fed()
        ends = [*(("exhaust-input", source) for source in self.definition.sources),
                *(("seal-output", leaf) for leaf in LEAVES)]
        if any(self.applied[each] != 1 for each in ends):
            raise Violation(f"not each end once: {self.applied}")
        for leaf in LEAVES:
            if self.gathered[leaf] != self.values_of(leaf):
                raise Violation(f"{leaf} has other values than were gathered")


@attrs.define
class Seal:
    """The task that seals an output."""

    leaf: str
    claims: int = 0
    until_ms: int = 0
    is_done: bool = False


class Stream(World):
    """One input of the workflow, or one strand of it, and all that comes of it."""

    workflow = "w"

    def __init__(self, whole: Workflows, shelf: Shelf, source: str, strand: Strand, seed: int, policy: e.Policy
                 ) -> None:
        super().__init__(seed)
        self.whole, self.shelf, self.strand, self.met = whole, shelf, strand, whole.met
        self.source, self.step = source, shelf.step
        self.has_seat = self.is_waiting = False
        definition = whole.definition
        options = attrs.evolve(self.play.options, segments_of_root=500,
                               policies=dict.fromkeys(definition.order, policy))
        attempts = self.play.attempts if policy is e.Policy.RESTART else max(3, self.play.attempts)
        self.play = attrs.evolve(self.play, options=options, policy=policy, attempts=attempts)
        self.nursery = Nursery(definition, BEGUN_MS)
        self.queue = Nursed(self)
        self.store = Store(self, shelf)
        self.play = attrs.evolve(self.play, values=len([*self.store.all()]))
        self.raising = self.chance.choice([0, 5, 20])
        self._routers = {step: Router(definition, step, FUNCTIONS.__getitem__) for step in definition.order}

    def begin(self) -> None:
        """Its feeder's task is there, and workers are."""
        self.at(0, self._claim_feeder)
        self.at(HEALED_MS, self._heal)
        for _ in range(3):
            self.at(self.chance.randrange(50), self._work)

    def at(self, delay_ms: int, act: Act) -> None:
        self.whole.at(delay_ms, act)

    def _life(self) -> Life:
        return Drawing(self)

    def _claim_feeder(self) -> None:
        """When its input has a free slot."""
        if self.is_finished or self.is_killed:
            return
        self.is_waiting = not (self.has_seat or self.shelf.has_room)
        if self.is_waiting:
            self.met["a feeder waits for a slot"] += 1
            self.at(self.chance.randint(10, 60), self._claim_feeder)
            return
        self.has_seat = True
        super()._claim_feeder()

    def feeder_died(self) -> None:
        self.has_seat = False
        super().feeder_died()

    def give_way(self, rest_ms: int) -> None:
        """Others have their turn."""
        self.met["a feeder gives way to another one"] += 1
        self.has_seat = False
        self.at(rest_ms, self._claim_feeder)

    def exhaust(self) -> None:
        super().exhaust()
        self.check_fed()
        self.whole.exhaust(self)

    def check_fed(self) -> None:
        """Each value of its parts of the source is a root, once."""
        if (fed := Counter(root.body for root in self.queue.roots.values())) != Counter(self.store.all()):
            raise Violation(f"fed twice, or not at all: {(fed - Counter(self.store.all()))} and"
                            f" {Counter(self.store.all()) - fed}")

    # -- a step's function, and where its values go ----------------------------------------------------

    def _emitted(self, segment: Segment, held: Held) -> Rows | str:
        definition, step = self.whole.definition, segment.step
        outcome = self._outcome(segment, held)
        if not definition.children[step] and outcome.failure is None:
            return ()
        routed = self._routers[step].route(outcome)
        verdict, rows = wanted(definition, step, outcome)
        if (routed.verdict.value, [*routed.emitted]) != (verdict, rows):
            raise Violation(f"{step} sends {routed}, not {verdict} {rows}, of {outcome}")
        self.met[f"conditions say {verdict}"] += 1
        self.met["an exception goes on as data"] += outcome.failure is not None and bool(rows)
        self.met["conditions send some to nobody"] += outcome.failure is None and len(rows) < len(outcome.values)
        if routed.verdict is Verdict.RETRY:
            return "released" if outcome.is_last and restarts(definition, step) else "failed"
        if routed.verdict is Verdict.FAILED:
            return self._judged(step, attrs.evolve(outcome, failure=routed.failure))
        return Emission.decode(Emission(tuple((to, packed(value)) for to, value in routed.emitted)).encode()).rows

    def _judged(self, step: str, outcome: Outcome) -> str:
        judgement = judged(self.whole.definition, step, outcome, FUNCTIONS.__getitem__)
        if judgement.policy is Policy.KILL:
            if not outcome.is_last:
                raise Violation(f"killed for no reason: {judgement}")
            self.whole.kill(judgement.reason)
        return "released" if judgement.policy is Policy.RESTART else "failed"

    def _outcome(self, segment: Segment, held: Held) -> Outcome:
        """Another one each time, but for an input, whose function returns what it is given."""
        given = unpacked(segment.body)
        former = segment.claims[segment.base : segment.claims.index(held)]
        attempt = 1 + sum(claim.kind in ("", "failed") for claim in former)
        is_last = attempt >= self.play.attempts
        if segment.step == self.step:
            return Outcome(given, (given,), None, attempt, is_last)
        if self.chance.randrange(100) < self.raising:
            return Outcome(given, (), Failure(self.chance.choice(RAISED), "it cannot be read"), attempt, is_last)
        values = tuple({"n": self.chance.randrange(1 << 40), "r": self.chance.randrange(9)}
                       for _ in range(self.chance.randint(0, self.play.fan_out)))
        return Outcome(given, values, None, attempt, is_last)


class Nursed(Queue):
    """Children are those that a worker makes."""

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream.chance, stream.play.attempts, stream.met)
        self._stream = stream

    def emit(self, parent: Segment, token: int, numbers: Sequence[int] | None) -> None:
        stream = self._stream
        rows = next(end.rows for end in parent.ends if end.token == token)
        start_ms = next(claim.start_ms for claim in parent.claims if claim.token == token)
        ids = segments.child_ids(parent.id, token, start_ms, len(rows))
        made: dict[bytes, tuple[str, bytes]] = {}
        for lot in stream.nursery.lots([Completed(parent.id, parent.root, stream.source, token, start_ms,
                                                  Emission(rows))]):
            for child, payload in zip(lot.ids, lot.payloads, strict=True):
                called, named = decode_call(payload), step_of(lot.queue)
                if called.root[:ID_BYTES] != parent.root or named is None:
                    raise Violation("a child is of another root, or of no step")
                made[child] = named[1], packed(called.args[0])
        if [made.get(each) for each in ids] != [*rows] or len(made) != len(rows):
            raise Violation(f"children are {made}, and {rows} were emitted")
        super().emit(parent, token, numbers)


# -- a life of a feeder ------------------------------------------------------------------------------------


class Drawing(Life):
    """A life of a feeder with a source of its own."""

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream)
        self._stream = stream
        self._source = stream.store.source()
        self._values: dict[int, Sequence[bytes]] = {}
        self._begun_ms = stream.now_ms

    def _live(self) -> None:
        stream = self._stream
        held_ms = stream.now_ms - self._begun_ms
        if self is stream.newest and stream.has_seat and not self._is_dead and (
                rest := rest_ms(held_ms, stream.shelf.waiting, stream.shelf.turn_ms)):
            self._is_dead = True
            stream.give_way(rest)
            return
        super()._live()

    def _done(self, effect: e.Effect) -> e.Event | None:
        stream = self._stream
        answer = super()._done(effect)
        if isinstance(effect, e.Keep) and answer is not None:
            stream.at(stream.chance.choice([0, 5, 300]), lambda: self._settle(Book.decode(effect.checkpoint)))
        if stream.is_killed:
            stream.whole.kill("its feeder says so")
        if isinstance(effect, e.Exhaust):
            if stream.happens(30):
                stream.met["a feeder dies before its outputs are to be sealed"] += 1
                self._is_dead = True
                if self is stream.newest:
                    stream.feeder_died()
                return None
            stream.whole.enqueue_seals()
        return answer

    def _settle(self, book: Book) -> None:
        """As its shell does; perhaps after it was replaced."""
        open_from: dict[int, int] = {}
        for batch in book.batches.values():
            open_from[batch.part] = min(batch.offset, open_from.get(batch.part, batch.offset))
        if self._is_dead and self._stream.chance.random() < 0.5:
            return
        try:
            self._source.settle(book.cursor, open_from)
        except Away:
            self._stream.at(30, lambda: self._settle(book))

    def _draw(self, effect: e.Draw) -> e.Event | None:
        stream = self._stream
        try:
            if effect.is_again:
                stream.met["values are drawn again"] += 1
                values = self._source.again(effect.part, effect.offset, effect.count)
                answer = e.Drawn(effect.first, len(values), is_last=False)
            else:
                haul = self._source.draw(effect.cursor, effect.count)
                is_resumed = bool(effect.cursor) and self._is_new
                stream.met["a next life draws on from where the last one was"] += is_resumed
                values = haul.values
                answer = e.Drawn(effect.first, len(values), haul.is_last, haul.part, haul.offset, haul.cursor)
                self._is_new = False
        except Away:
            stream.at(30, lambda: self._act(effect))
            return None
        except Gone:
            if self is stream.newest:
                raise
            stream.met["a former life asks for what its successor has done with, and finds its claim lost"] += 1
            self._is_dead = True
            return None
        if values:
            self._values[effect.first] = values
            self._held[effect.first] = len(values)
        return answer

    _is_new = True

    def _root(self, first: int, number: int) -> tuple[bytes, str]:
        return self._values[first][number - first], self._stream.step
