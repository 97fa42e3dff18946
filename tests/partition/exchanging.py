"""Two replicas and the line between them, for tests of exchanges."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import count

import attrs

from skuld_py.config import DEFAULT_LIMITS, Limits
from skuld_py.config.timing import DEFAULT_TIMING, Timing
from skuld_py.model import messages as m
from skuld_py.model.body import Header
from skuld_py.model.events import Effect, Send
from skuld_py.model.ids import IdMint
from skuld_py.model.memory_store import MemoryStore
from skuld_py.model.outcomes import FIRST_TOKEN
from skuld_py.partition.copies.exchange import Exchange, answer_compare, answer_fetch, answer_probe
from skuld_py.partition.data import tables
from skuld_py.partition.data.facts import Grant
from skuld_py.partition.data.replica import Replica
from skuld_py.partition.data.rows import merge_rows

HEADER = Header("q").encode()
PLACE = tables.place_of(Header("q"))
_turns = count()

Fate = Callable[[m.Message], int]
"""How often a message arrives: 0 when it is lost."""


def replica() -> Replica:
    """An empty one."""
    return Replica(0, MemoryStore(), 10)


def limits_of(page_rows: int) -> Limits:
    """Small pages."""
    return attrs.evolve(DEFAULT_LIMITS, page_rows=page_rows)


SHARED = ("body", "history", "log")


def content(made: Replica, shared: tuple[str, ...] = SHARED) -> list[list[tuple[bytes, bytes]]]:
    """What replicas must agree in."""
    return [made.store.scan(table, made.prefix, tables.end_of(made.prefix), 100_000) for table in shared]


def indexes(made: Replica) -> list[list[tuple[bytes, bytes]]]:
    """What follows from it once all leases have lapsed."""
    made.filing.sweep(1 << 40, 100_000)
    return content(made, ("ready", "lease", "time", "expiry", "dead"))


def draft(made: Replica, rows: int = 1_000) -> None:
    """Draft the tree from the records, to its end."""
    while made.tree.is_drafting:
        made.tree.advance(rows)


@attrs.define
class Line:
    """An exchange on its way; what went over the line is in ``sent``."""

    here: Replica
    there: Replica
    limits: Limits = DEFAULT_LIMITS
    timing: Timing = DEFAULT_TIMING
    fate: Fate = lambda message: 1
    dice: random.Random | None = None
    """Messages overtake each other, if given."""
    now_ms: int = 20_000
    sent: list[m.Message] = attrs.field(factory=list)
    laps: int = 0
    pauses: int = 0
    is_leaving: bool = False
    on_pause: Callable[[], None] = lambda: None

    def run(self) -> Exchange:
        """From begin to end, or until the peer has been silent for too long."""
        exchange = Exchange(self.here, "there", self.limits, self.timing, 1, lambda: next(_turns))
        exchange.is_leaving = self.is_leaving
        flying = self._out(exchange.begin(self.now_ms))
        while not exchange.is_done:
            while flying:
                message = flying.pop(self.dice.randrange(len(flying)) if self.dice else 0)
                flying += self._out(self._arrive(exchange, message))
            if exchange.is_done:
                break
            if exchange.is_resting:
                self.laps += 1
                flying += self._out(exchange.resume(self.now_ms))
                continue
            self.now_ms = max(self.now_ms, exchange.deadline_ms)
            if exchange.has_expired(self.now_ms):
                return exchange
            if exchange.phase.value == "pausing":
                self.pauses += 1
                self.on_pause()
            flying += self._out(exchange.on_deadline(self.now_ms))
        for message in flying:
            self._arrive(exchange, message)
        return exchange

    def _out(self, effects: list[Effect]) -> list[m.Message]:
        messages = []
        for effect in effects:
            assert isinstance(effect, Send)
            self.sent.append(effect.message)
            messages += [effect.message] * self.fate(effect.message)
        return messages

    def _arrive(self, exchange: Exchange, message: m.Message) -> list[Effect]:
        match message:
            case m.Probe():
                return [Send("here", answer_probe(self.there, message))]
            case m.Compare():
                return [Send("here", answer_compare(self.there, self.limits, message))]
            case m.Fetch():
                return [Send("here", answer_fetch(self.there, self.limits, message))]
            case m.Repair():
                merge_rows(self.there, self.now_ms, 1, message.tasks)
                return []
            case m.Probed() | m.Compared() | m.Fetched():
                return exchange.on_answer(self.now_ms, message)
        raise AssertionError(message)


def fill(dice: random.Random, made: list[Replica], tasks: int, now_ms: int = 1) -> list[bytes]:
    """Give each replica a part of what happens to some tasks; gives the ids."""
    mint = IdMint(dice.getrandbits(32))
    task_ids: list[bytes] = []
    while len(task_ids) < tasks:
        now_ms += dice.choice((0, 1, 300, 900, 4_000_000))
        task_ids += mint.mint(now_ms, dice.choice((1, 1, 2, 5)), 0)
    for number, task_id in enumerate(task_ids):
        for each in dice.sample(made, dice.randrange(len(made) + 1)):
            each.store_tasks(1, HEADER, [task_id], [task_id])
        end_ms = dice.choice((5, 50, 500))
        grant = Grant([task_id], [PLACE], FIRST_TOKEN + number, 1, end_ms, "me")
        for each in dice.sample(made, dice.randrange(len(made) + 1)):
            if not each.objections(grant):
                each.apply_grant(1, grant)
        for each in dice.sample(made, dice.randrange(len(made))):
            each.finish(1, [task_id], [FIRST_TOKEN + number], dice.choice((50, 60)))
        for each in dice.sample(made, dice.randrange(len(made) + 1)):
            first = dice.choice((0, 3, 255))
            each.append(task_id, FIRST_TOKEN + number, first,
                        [b"%d" % (first + i) for i in range(dice.choice((1, 2, 300)))])
    return task_ids
