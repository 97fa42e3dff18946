"""One feeder's lives, workers and a queue in virtual time, under faults, played from a seed.

Workers die between any two steps, sleep through their leases and complete late, emit another list each time they
are asked, and their acks are lost, repeated, held up and reordered. Feeders die anywhere, and are claimed by
another while the former goes on. What was sent by the dead may arrive all the same. Audits answer late. After
``HEALED_MS`` nothing fails any more, and all must come to its end.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from heapq import heappop, heappush

import attrs

from skuld_py.workflow import segments
from skuld_py.workflow.acking import events as e
from skuld_py.workflow.acking.acks import Acks
from skuld_py.workflow.acking.checkpoint import DECISIONS_SPARE, Book
from skuld_py.workflow.acking.feeder import Feeder, Options
from workflow.acking_queue import LEASE_MS, STEPS, Held, Queue, Rows, Segment, Violation

HEALED_MS = 8_000
OVER_MS = 400_000
REAPED_MS = 30
EVENTS_MAX = 60_000
BEGUN_MS = 1_790_000_000_000


@attrs.frozen
class Play:
    """What is drawn for a seed. Chances are of a hundred."""

    values: int
    options: Options
    attempts: int
    policy: e.Policy
    deaths: int
    hidden: int
    late: int
    lost: int
    feeders_die: int
    fan_out: int


def draw_play(chance: random.Random) -> Play:
    """A play of a seed; small limits, so that they are met."""
    policy = chance.choice([e.Policy.RESTART] * 3 + [e.Policy.KILL])
    options = Options(
        max_pending=chance.choice([1, 3, 8, 20]), timeout_ms=chance.choice([160, 800, 2_000]),
        keep_ms=chance.choice([0, 100, 500]), dry_ms=50, segments_of_root=20,
        segments_max=chance.choice([10, 30, 10_000]), decisions_max=chance.choice([1, 2, 512]),
        policies=dict.fromkeys(STEPS, policy))
    level = chance.choice([0, 10, 25])
    attempts = chance.choice([3, 50, 50] if policy is e.Policy.KILL else [1, 3, 50])
    return Play(chance.randint(0, 30), options, attempts, policy, level, hidden=chance.choice([0, level, 60]),
                late=chance.choice([0, level]), lost=chance.choice([0, 10, 40]),
                feeders_die=chance.choice([0, 1, 3]), fan_out=chance.choice([2, 3]))


class World:
    """One play."""

    workflow, source = "w", "source"

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.met: Counter[str] = Counter()
        self.play = draw_play(self.chance)
        self.queue = Queue(self.chance, self.play.attempts, self.met)
        self.now_ms = BEGUN_MS
        self.checkpoint: object = None
        self.inbox: list[Acks] = []
        self.said: list[Acks] = []
        self.newest: Life | None = None
        self.is_finished = self.is_killed = False
        self.done: dict[int, None] = {}
        self.events = 0
        self._agenda: list[tuple[int, int, Callable[[], object]]] = []

    def at(self, delay_ms: int, act: Callable[[], object]) -> None:
        """Do something later."""
        self.events += 1
        heappush(self._agenda, (self.now_ms + delay_ms, self.events, act))

    def happens(self, percent: int) -> bool:
        """Whether a fault happens; none does in the end."""
        return not self.queue.is_healed and self.chance.randrange(100) < percent

    def run(self) -> None:
        """Play it to its end; raises ``Violation``."""
        self.at(0, self._claim_feeder)
        self.at(HEALED_MS, self._heal)
        for _ in range(3):
            self.at(self.chance.randrange(50), self._work)
        while self._agenda and not (self.is_finished or self.is_killed):
            when_ms, _, act = heappop(self._agenda)
            self.now_ms = when_ms
            act()
            if when_ms > BEGUN_MS + OVER_MS or self.events > EVENTS_MAX:
                raise Violation(f"it comes to no end: {len(self.done)} of {self.play.values} roots are done")
        if self.is_finished:
            self._check_end()

    def _heal(self) -> None:
        self.queue.is_healed = True
        for segment in self.queue.segments.values():
            self.queue.surface(segment)

    # -- workers ---------------------------------------------------------------------------------------

    def _work(self) -> None:
        batch = self.queue.claim(self.now_ms, self.chance.choice([1, 4, 8]))
        told: list[tuple[Segment, Held, bool]] = []
        spans = [self._attempt(segment, held, told) for segment, held in batch]
        last_ms = max(spans, default=0)
        if batch:
            self.at(last_ms + 1, lambda: self._tell(told))
        self.at(self.chance.choice([5, 20, 60]) + (last_ms if self.chance.random() < 0.5 else 0), self._work)

    def _attempt(self, segment: Segment, held: Held, told: list[tuple[Segment, Held, bool]]) -> int:
        """What becomes of a claim, and when its last step is."""
        span_ms = self.chance.randint(1, 60)
        if self.happens(self.play.deaths):
            self.met["a worker dies while it runs"] += 1
            return span_ms
        if self.happens(self.play.late):
            span_ms += LEASE_MS + self.chance.randint(0, 1_500)
        elif self.happens(self.play.deaths):
            self._fail(segment, held, self.chance.choice(["failed", "released"]), span_ms)
            return span_ms
        rows = self._emitted(segment, held)
        if isinstance(rows, str):
            self._fail(segment, held, rows, span_ms)
            return span_ms
        self.at(span_ms, lambda: self._complete(segment, held, rows, told))
        return span_ms + 60

    def _fail(self, segment: Segment, held: Held, kind: str, span_ms: int) -> None:
        """Its holder says so; and tells the feeder of what may be dead now."""
        self.at(span_ms, lambda: setattr(held, "kind", kind))
        if kind == "failed":
            self.at(span_ms + 1, lambda: self._tell([(segment, held, False)]))

    def _emitted(self, segment: Segment, held: Held) -> Rows | str:
        """Another list each time; or how the claim ends otherwise."""
        most = self.play.fan_out if segment.depth < len(STEPS) - 1 else 0
        step = STEPS[min(segment.depth + 1, len(STEPS) - 1)]
        return tuple((step, b"%d" % self.chance.getrandbits(60)) for _ in range(self.chance.randint(0, most)))

    def _complete(self, segment: Segment, held: Held, rows: Rows, told: list[tuple[Segment, Held, bool]]) -> None:
        is_known = not self.happens(self.play.hidden)
        self.met["a completion comes after its lease"] += self.now_ms > held.end_ms
        self.queue.complete(self.now_ms, segment, held, rows, is_known)
        if not is_known:
            self.met["a completion is hidden"] += 1
            self.at(self.chance.randint(1, 4_000), lambda: self.queue.surface(segment))
            if self.chance.random() < 0.5:  # its holder asks again until a majority has it, perhaps late
                self.at(self.chance.randint(1, 1_500), lambda: self._complete(segment, held, rows, told))
            return
        self.at(self.chance.randint(0, 40), lambda: self._on_acknowledged(segment, held, told))

    def _on_acknowledged(self, segment: Segment, held: Held, told: list[tuple[Segment, Held, bool]]) -> None:
        if self.happens(self.play.deaths):
            self.met["a worker dies between completion and emission"] += 1
            return
        before = segment.claims[: segment.claims.index(held)]
        self.met["a holder emits though there were others"] += bool(before) and all(claim.kind for claim in before)
        if not segments.is_sole(all(claim.kind for claim in before), self.now_ms, held.end_ms):
            self.met["a holder leaves a segment to the feeder"] += 1
            told.append((segment, held, False))
            return
        told.append((segment, held, True))
        if self.happens(20):
            self.at(self.chance.randint(1, 1_500), lambda: self._emit(segment, held.token, None))
        else:
            self._emit(segment, held.token, None)

    def _emit(self, parent: Segment, token: int, numbers: tuple[int, ...] | None) -> bool:
        """Enqueue children: all, some, none, or later than anybody knows; whether it can say that it did."""
        if self.happens(self.play.lost):
            count = len(next(end.rows for end in parent.ends if end.token == token))
            wanted = range(count) if numbers is None else numbers
            part = tuple(wanted)[: self.chance.randint(0, len(wanted))]
            self.queue.emit(parent, token, part)
            self.met["children are enqueued in part"] += 1
            if self.chance.random() < 0.3:
                self.at(self.chance.randint(1, 3_000), lambda: self._emit_late(parent, token, numbers))
            return False
        self.queue.emit(parent, token, numbers)
        return True

    def _emit_late(self, parent: Segment, token: int, numbers: tuple[int, ...] | None) -> None:
        if not self.queue.is_exhausted:  # what comes then would be known, and is in no one's way
            self.met["children are enqueued by the dead"] += 1
        self.queue.emit(parent, token, numbers)

    def _tell(self, told: list[tuple[Segment, Held, bool]]) -> None:
        """Acks of a batch, as a task in the feeder's queue."""
        if self.happens(self.play.deaths):
            self.met["a worker dies between emission and ack"] += bool(told)
            return
        sure, unsure = [], []
        for segment, held, is_sole in told:
            if is_sole:
                rows = next(end.rows for end in segment.ends if end.token == held.token)
                sure.append((segment.root, segment.id, segments.ack_of(segment.id, held.token, len(rows))))
            else:
                unsure.append((segment.root, segment.id))
        self.chance.shuffle(sure)
        acks = Acks.decode(Acks(tuple(sure), tuple(unsure)).encode())
        self.said.append(acks)
        self._send(acks)
        if self.happens(self.play.lost):
            self.met["acks are repeated"] += 1
            self._send(self.chance.choice(self.said))

    def _send(self, acks: Acks) -> None:
        if self.happens(self.play.lost):
            self.met["acks are lost"] += 1
            return
        self.at(self.chance.choice([1, 10, 1_000 if not self.queue.is_healed else 10]),
                lambda: self.inbox.append(acks))

    # -- feeders ---------------------------------------------------------------------------------------

    def _claim_feeder(self) -> None:
        if not self.is_finished and not self.is_killed:
            self.newest = self._life()
            self.newest.begin()

    def _life(self) -> Life:
        return Life(self)

    def feeder_died(self) -> None:
        """Its lease lapses, and another one claims."""
        self.at(self.chance.randint(100, 1_500), self._claim_feeder)

    def keep(self, life: Life, data: bytes) -> bool:
        """Store a checkpoint, unless a later life has claimed."""
        if life is not self.newest:
            self.met["a former feeder's checkpoint is fenced"] += 1
            return False
        self.checkpoint = data
        book = Book.decode(data)
        under_way = {number for batch in book.batches.values() for number in batch.undone()}
        for number in range(book.next):
            if number not in under_way and number not in self.done:
                self.done[number] = None
                root = self.queue.roots.get(number)
                if root is None:
                    raise Violation(f"root {number} is called done, and was never enqueued")
                self.queue.tree_of(root)
        return True

    def exhaust(self) -> None:
        """The entry in the coordination log; repeated by a later life it changes nothing."""
        if len(self.done) != self.play.values:
            raise Violation(f"exhausted when {len(self.done)} of {self.play.values} roots are done")
        self.met["exhausted again by a later life"] += self.queue.is_exhausted
        self.queue.is_exhausted = True
        self.inbox += self.said[-1:]  # told again, and late
        self.at(self.chance.randint(0, 40), self._reap)

    def _reap(self) -> None:
        """Nodes cancel the acks of an input that is exhausted, whoever may still be about to hear them."""
        self.met["acks of an exhausted input are cancelled"] += bool(self.inbox)
        self.inbox.clear()
        self.at(REAPED_MS, self._reap)

    def _check_end(self) -> None:
        if not self.queue.is_exhausted or sorted(self.queue.roots) != [*range(self.play.values)]:
            raise Violation("it is over, and not all of its source is done")
        found = [segment for root in self.queue.roots.values() for segment in self.queue.tree_of(root)]
        if len(found) != len(self.queue.segments):
            raise Violation("a segment is in no tree")
        self.met["all roots are done"] += 1


class Life:
    """One claim of the feeder's task, with its machine and its shell."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._feeder = Feeder(world.workflow, world.source, world.play.options)
        self._is_dead = False
        self._exhausts = 0
        self._held: dict[int, int] = {}
        self._inherited: dict[bytes, int] = {}

    def begin(self) -> None:
        """Claim, and begin where the checkpoint says."""
        self._world.met["a feeder goes on from a checkpoint"] += self._world.checkpoint is not None
        self._inherited = Book.decode(self._world.checkpoint).decisions
        self.hear(e.Resumed(self._world.checkpoint))
        self._live()

    def _live(self) -> None:
        """Messages and time, until it dies; once in a while its lease lapses while it goes on."""
        world = self._world
        if self._is_dead or world.is_finished or world.is_killed:
            return
        if world.happens(world.play.feeders_die):
            if self is world.newest:
                world.feeder_died()
            if world.chance.random() < 0.5:
                world.met["a feeder dies"] += 1
                self._is_dead = True
                return
            world.met["a feeder goes on behind another's back"] += 1
        if world.inbox and (self is world.newest or world.chance.random() < 0.3):
            acks = world.inbox.pop(world.chance.randrange(len(world.inbox)))
            if world.happens(world.play.lost):
                world.inbox.append(acks)  # its lease lapses too, and it is claimed again
            self.hear(e.Acked(acks))
        if self._feeder.deadline_ms() <= world.now_ms:
            self.hear(e.Ticked())
        world.at(world.chance.choice([2, 10, 30]), self._live)

    def hear(self, event: e.Event) -> None:
        """Step, and let the effects happen after a while, unless it is dead by then."""
        if self._is_dead:
            return
        world, options = self._world, self._world.play.options
        for effect in self._feeder.step(world.now_ms, event):
            slow = 20
            if isinstance(effect, e.Audit | e.Repair) and world.happens(20):
                slow = 300 if isinstance(effect, e.Audit) else 3_000
            world.at(world.chance.randint(0, slow), lambda effect=effect: self._act(effect))  # type: ignore[misc]
        feeder = self._feeder
        world.met["registers are forgotten"] += any(root.is_forgotten for root in feeder.roots.values())
        world.met["a segment is decided on"] += bool(feeder.book.decisions)
        if feeder.pending > options.max_pending:
            raise Violation(f"{feeder.pending} roots are under way, more than {options.max_pending}")
        registers = sum(len(root.heard) for root in feeder.roots.values())
        if registers != feeder.registers or registers > options.segments_max + options.segments_of_root:
            raise Violation("registers are lost count of, or too many")
        decisions = len(feeder.book.decisions)
        if decisions > options.decisions_max + DECISIONS_SPARE or len(feeder.book.encode()) > 1 << 16:
            raise Violation("a feeder's checkpoint is too large")
        held = sum(self._held.values())
        if max(len(feeder.roots), held // 2) > options.max_pending or len(feeder.walk) > 500:
            raise Violation("a feeder remembers too much")

    def _act(self, effect: e.Effect) -> None:
        world = self._world
        if self._is_dead and world.chance.random() < 0.5:
            return
        if world.happens(world.play.feeders_die) and not self._is_dead:
            world.met["a feeder dies between two effects"] += 1
            self._is_dead = True
            if self is world.newest:
                world.feeder_died()
            return
        answer = self._done(effect)
        if answer is not None:
            world.at(world.chance.randint(0, 20), lambda: self.hear(answer))

    def _done(self, effect: e.Effect) -> e.Event | None:
        """The effect happens; what the machine is told of it."""
        world, queue = self._world, self._world.queue
        match effect:
            case e.Draw():
                return self._draw(effect)
            case e.Keep():
                if world.keep(self, effect.checkpoint):
                    return e.Kept()
                self._is_dead = True
            case e.Store():
                return self._store(effect)
            case e.Audit():
                return e.Audited(tuple(map(queue.look, effect.segments)))
            case e.Repair():
                world.met["children are emitted by the feeder"] += 1
                world.met["a decision is gone on with by a later life"] += effect.parent in self._inherited
                is_done = world._emit(queue.segments[effect.parent], effect.token, effect.numbers)
                return e.Repaired(effect.root, effect.parent, effect.token, is_done)
            case e.Revive():
                queue.revive(queue.segments[effect.segment])
            case e.Fail():
                world.met["a root fails"] += 1
                world.is_killed = True
                if (effect.cause, world.play.policy) != ("dead", e.Policy.KILL):
                    raise Violation(f"killed for no reason: {effect}")
            case e.Exhaust():
                self._exhausts += 1
                if self._exhausts > 1:
                    raise Violation("a feeder calls its input exhausted twice")
                world.exhaust()
                return e.Exhausted()
            case e.Done():
                world.is_finished = True
                if effect.completed != world.play.values:
                    raise Violation("a feeder has lost count")
        return None

    def _root(self, first: int, number: int) -> tuple[bytes, str]:
        """The value of a root, and its step."""
        return b"%d" % number, STEPS[0]

    def _draw(self, effect: e.Draw) -> e.Event | None:
        world = self._world
        left = world.play.values - effect.first
        count = effect.count if effect.is_again else world.chance.randint(0, min(effect.count, left))
        if count:
            self._held[effect.first] = count
        return e.Drawn(effect.first, count, count == left and (count == 0 or world.chance.random() < 0.5))

    def _store(self, effect: e.Store) -> e.Event | None:
        world = self._world
        count = max(effect.numbers) - effect.first + 1
        ids = segments.root_ids(world.workflow, world.source, effect.first, count, effect.time_ms)
        for number in effect.numbers:
            if world.happens(world.play.lost // 4):
                world.at(world.chance.randint(1, 200), lambda: self._act(effect))
                world.met["roots are stored in part"] += 1
                return None
            world.queue.enqueue_root(number, ids[number - effect.first], *self._root(effect.first, number))
        self._held.pop(effect.first, None)
        return e.Stored(effect.first)
