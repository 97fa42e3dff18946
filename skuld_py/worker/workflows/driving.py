"""The shell of a feeder: it does what the machine (``workflow.acking``) wants, one thing after the other.

Invariants:

* An answer that does not come is asked for again, until the claim is lost: every effect may be repeated. But where
  nodes say that tasks are too old, or are other tasks, and others of a batch may be stored (``Uncertain``), asking
  does not cure it: after ``DOUBTS_MAX`` such answers in ``DOUBT_S`` it is what they say, and the workflow ends,
  for that reason. Both: a node that starts again lags for minutes, and one that is slow says little in them.
* Values are held from when they are drawn until their roots are stored: two batches at most.
* Acks are heard between effects, ``LISTEN_S`` apart, and waited for when nothing else is to be done.
* What dead workers left out is made up for many at a time: it comes by the hundred when one dies.

Rejected: threads for each kind of effect. The machine has one read, one draw and one checkpoint under way, and
what a feeder asks is little beside what workers ask.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from skuld_py.client.steady import sleep, steady_s
from skuld_py.errors import Refused, SkuldError
from skuld_py.worker.scribe import is_passing
from skuld_py.worker.workflows.haul import Source, gave_others
from skuld_py.workflow.acking import events as e
from skuld_py.workflow.acking.acks import Acks
from skuld_py.workflow.acking.checkpoint import Book
from skuld_py.workflow.acking.feeder import Feeder

AGAIN_S, WAIT_S, LISTEN_S = 0.5, 1.0, 0.1
REPAIRS_MAX = 100
"""Completions whose children are enqueued together."""
TOO_OLD, CONFLICT = "too_old", "conflict"
DOUBTS_MAX, DOUBT_S = 20, 600.0
"""How many answers in a row, and for how long, say that one of these holds, though in doubt, until it does."""
T = TypeVar("T")


class Hands(Protocol):
    """What a feeder asks of the cluster. All of it may be repeated, and raises errors of the project."""

    def keep(self, checkpoint: bytes) -> None:
        """A majority has it, and no later claim began."""

    def acks(self, wait_s: float) -> list[Acks]:
        """What workers told, once it is there."""

    def store(self, values: Mapping[int, bytes], time_ms: int) -> None:
        """Enqueue roots, by their numbers."""

    def look(self, ids: Sequence[bytes]) -> list[e.Sight]:
        """Where segments stand, in this order."""

    def repair(self, wanted: Sequence[e.Repair]) -> list[bool]:
        """Enqueue what completions emit; False for one of which nobody can say what that is."""

    def revive(self, segment: bytes) -> None:
        """Let a dead segment be tried again."""

    def kill(self, reason: str) -> None:
        """End the workflow."""

    def exhaust(self) -> None:
        """Say that the input is exhausted."""

    def tell(self, book: Book) -> None:
        """How far it is, for people; often, and never waited for."""


class Doubts:
    """Answers in a row that are in doubt about the same."""

    def __init__(self, clock: Callable[[], float], part: float = 1.0) -> None:
        self._clock, self._part = clock, part
        self.forget()

    def suffice(self) -> bool:
        """There is one more: whether it is to be taken for the truth, after this part of the time."""
        now_s = self._clock()
        if not self._count:
            self._since_s = now_s
        self._count += 1
        return self._count >= DOUBTS_MAX and now_s - self._since_s >= DOUBT_S * self._part

    def forget(self) -> None:
        """Another answer came."""
        self._count, self._since_s = 0, 0.0


class Driver:
    """One life of a feeder."""

    def __init__(self, feeder: Feeder, hands: Hands, source: Source, check: Callable[[], None],
                 wall_ms: Callable[[], int], sleep: Callable[[float], None] = sleep,
                 clock: Callable[[], float] = steady_s) -> None:
        self._feeder, self._hands, self._source = feeder, hands, source
        self._check, self._wall_ms, self._sleep, self._clock = check, wall_ms, sleep, clock
        self._listened_s = 0.0
        self._held: dict[int, Sequence[bytes]] = {}
        self._wanted: deque[e.Effect] = deque()

    def run(self, checkpoint: object) -> e.Done | e.Fail:
        """Feed until the input is exhausted, or the workflow is to be killed, which it is then."""
        self._hear(e.Resumed(checkpoint))
        while True:
            self._check()
            effect = self._wanted.popleft() if self._wanted else None
            if isinstance(effect, e.Done):
                self._hands.tell(self._feeder.book)
                return effect
            if isinstance(effect, e.Fail):
                self._kill(effect)
                return effect
            for event in [] if effect is None else self._done(effect):
                self._hear(event)
            if effect is None or self._clock() >= self._listened_s + LISTEN_S:
                self._listen(effect is None)

    def _kill(self, failure: e.Fail) -> None:
        self._asked(lambda: self._hands.kill(said(failure)))

    def _hear(self, event: e.Event) -> None:
        self._wanted += self._feeder.step(self._wall_ms(), event)

    def _listen(self, is_idle: bool) -> None:
        wait_s = min(WAIT_S, max(0.0, (self._feeder.deadline_ms() - self._wall_ms()) / 1000)) if is_idle else 0.0
        try:
            told = self._hands.acks(wait_s)
        except SkuldError as error:
            if not is_passing(error):
                raise
            told = []
            self._sleep(AGAIN_S if is_idle else 0.0)
        self._listened_s = self._clock()
        self._asked(self._source.tend)
        for acks in told:
            self._hear(e.Acked(acks))
        if self._feeder.deadline_ms() <= self._wall_ms():
            self._hear(e.Ticked())
        self._hands.tell(self._feeder.book)

    def _done(self, effect: e.Effect) -> list[e.Event]:
        """The effect is done, and others like it; what the machine is told of it."""
        if isinstance(effect, e.Repair):
            return self._repair(effect)
        event = self._answer(effect)
        return [] if event is None else [event]

    def _answer(self, effect: e.Effect) -> e.Event | None:
        match effect:
            case e.Draw():
                return self._draw(effect)
            case e.Keep():
                self._asked(lambda: self._hands.keep(effect.checkpoint))
                self._settle(Book.decode(effect.checkpoint))
                return e.Kept()
            case e.Store():
                return self._store(effect)
            case e.Audit():
                return e.Audited(tuple(self._asked(lambda: self._hands.look(effect.segments))))
            case e.Revive():
                return self._revive(effect)
            case e.Exhaust():
                self._asked(self._hands.exhaust)
                return e.Exhausted()
        return None

    def _draw(self, effect: e.Draw) -> e.Event:
        if effect.is_again:
            self._held[effect.first] = values = self._asked(
                lambda: self._source.again(effect.part, effect.offset, effect.count))
            return e.Drawn(effect.first, len(values), is_last=False)
        haul = self._asked(lambda: self._source.draw(effect.cursor, effect.count))
        if haul.values:
            self._held[effect.first] = haul.values
        return e.Drawn(effect.first, len(haul.values), haul.is_last, haul.part, haul.offset, haul.cursor)

    def _store(self, effect: e.Store) -> e.Event:
        values = self._held.pop(effect.first)
        rows = {number: values[number - effect.first] for number in effect.numbers}
        try:
            self._asked(lambda: self._hands.store(rows, effect.time_ms))
        except Refused as refusal:
            if refusal.code == TOO_OLD:
                return e.Stored(effect.first, effect.numbers)
            if refusal.code == CONFLICT:
                raise gave_others("it gives other values than before for the same offsets, so roots"
                                  f" {min(rows)} to {max(rows)} are not what they were; a source must give the"
                                  " same values again") from None
            raise
        return e.Stored(effect.first)

    def _settle(self, book: Book) -> None:
        open_from: dict[int, int] = {}
        for batch in book.batches.values():
            open_from[batch.part] = min(batch.offset, open_from.get(batch.part, batch.offset))
        self._asked(lambda: self._source.settle(book.cursor, open_from))

    def _repair(self, effect: e.Repair) -> list[e.Event]:
        """This one, and those that are wanted as well."""
        others = [each for each in self._wanted if isinstance(each, e.Repair)][: REPAIRS_MAX - 1]
        for each in others:
            self._wanted.remove(each)
        try:
            return self._repaired([effect, *others])
        except Refused as refusal:
            if refusal.code != TOO_OLD:
                raise
        events: list[e.Event] = []
        for each in (effect, *others):
            events += self._alone(each)
            if any(isinstance(event, e.Repaired) and event.is_late for event in events):
                break  # it ends the workflow
        return events

    def _alone(self, effect: e.Repair) -> list[e.Event]:
        try:
            return self._repaired([effect])
        except Refused as refusal:
            if refusal.code != TOO_OLD:
                raise
            return [e.Repaired(effect.root, effect.parent, effect.token, is_done=False, is_late=True)]

    def _repaired(self, wanted: list[e.Repair]) -> list[e.Event]:
        outcomes = self._asked(lambda: self._hands.repair(wanted))
        return [e.Repaired(each.root, each.parent, each.token, is_done)
                for each, is_done in zip(wanted, outcomes, strict=True)]

    def _revive(self, effect: e.Revive) -> e.Event | None:
        try:
            self._asked(lambda: self._hands.revive(effect.segment))
        except Refused as refusal:
            if refusal.code == "not_dead":
                return None
            return e.Unrevived(effect.root, effect.segment, effect.step)
        return None

    def _asked(self, ask: Callable[[], T]) -> T:
        """The answer, however long it takes, while the claim is held."""
        doubts = Doubts(self._clock)
        while True:
            try:
                return ask()
            except SkuldError as error:
                if not is_passing(error):
                    raise
                if error.code not in (TOO_OLD, CONFLICT):
                    doubts.forget()
                elif doubts.suffice():
                    raise Refused(error.code, error.message, **error.facts) from error
            self._check()
            self._sleep(AGAIN_S)


CAUSES = {
    "dead": "segment {segment} of step {step} is dead, see 'skuld get {segment}'",
    "result": "segment {segment} of step {step} was completed by something else than its workflow, which does not"
              " say what it emits",
    "too_large": "root {root} has more segments than a tree may have; emit lists of values, or fewer of them",
    "too_old": "segment {segment} is older than what the cluster keeps: raise its retention above the time that a"
               " root takes",
    "source": "the source of input {step} gives fewer values than before for the same offsets",
}


def said(failure: e.Fail) -> str:
    """A failure for people, in at most 250 characters."""
    from skuld_py.model.ids import to_text

    names = {"root": to_text(failure.root) if failure.root else "", "step": failure.step,
             "segment": to_text(failure.segment) if failure.segment else ""}
    return CAUSES[failure.cause].format(**names)[:250]
