"""Sees to the schedules whose home partition is led here: enqueues each tick when it is due.

A tick is written as a client's enqueue is, to a majority of its task's owners. What is in memory is only which
ticks are already stored, so that they are not written again. A node that comes to lead knows nothing, begins with
the newest tick that is due, and writes a task that may be there. That is harmless (``model.schedule``), and so are
two leaders in doubt. Of the ticks missed while no node led, only the newest is made up for, and ``catch_up`` more
if the definition says so.

A tick that is not acknowledged in time is written again until a majority has it, or until a newer one has taken
its place.

Ticks go by this node's clock. When that falls back it was wrong before, so what was seen by it is forgotten and
this node begins as one that comes to lead; what it made early is there when its time comes. A definition from the
future, made by a node whose clock was wrong, holds from when it is first taken up.

Work is bounded in each turn, whatever the definitions say: a partition may be the home of thousands of schedules,
all due at midnight, or all with ticks that are dear to tell. No look goes further than ``SIGHT_MS`` into a
calendar, so all looks cost about the same, and one turn makes ``WORK_AT_ONCE`` of them. Ticks that are known go
first; searches, which may take many looks, share what is left, one look each in turn.

Rejected: counting schedules, of which one may cost as much as ten thousand; and another thread for the calendar,
which would hold up this one as long, a little at a time.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from functools import partial

import attrs

from skuld_py.errors import Refused
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.body import encode_body
from skuld_py.model.schedule import Almanac, Schedule, Search, home_of, tick_after
from skuld_py.node.operations.duty import NEVER_MS, Duty
from skuld_py.node.operations.operation import Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.node.operations.quorum import eras_of
from skuld_py.node.writes.write import Named, WriteOperation

SIGHT_MS = 31 * 24 * 3_600_000
"""How far back ticks are made up for, and how far ahead they are known."""
FRESH_AT_ONCE = 500
"""Definitions taken up in one turn."""
WORK_AT_ONCE = 200
"""Looks into a calendar in one turn, a long line counting for several, and writes; the others wait."""
KEPT_BACK = 50
"""The part of ``WORK_AT_ONCE`` that is left to searches however many ticks are due."""
LINE_CHARS = 32
TICKS_AT_ONCE = 100
"""Ticks on their way to be stored."""
BACKLOG_MS = 20
"""How long a tick that finds no room waits, and work that is left over."""
NEVER = -1
EVER_MS = 28 * 366 * 24 * 3_600_000
"""In 28 years each day of the year falls on each day of the week."""
EVER_WORK = 100
"""What it costs to look through ``EVER_MS``."""
LOOK_MS = 100
"""How often the led partitions are looked at. A tick of one that is not led any more does no harm."""


class TickOperation(WriteOperation):
    """The write of one tick; ``then`` is told how it ended."""

    def __init__(self, operations: Operations, now_ms: int, task_id: bytes, batch: m.TaskBatch,
                 then: Callable[[m.Message], None]) -> None:
        self._then = then
        record = encode_body(batch.header, *batch.payloads.unpack())
        partition = ids.partition_of(task_id, operations.view.parameters.partitions)

        def make(request: int, partitions: list[int]) -> m.Replicate:
            return m.Replicate(request, (batch,), eras_of(operations.view, [partition]))
        super().__init__(operations, Origin(0), now_ms, 0, {partition: 1}, make, {task_id: Named({0: record})})

    def answer(self, message: m.Message) -> None:
        """Tell the schedule; no client waits."""
        if not self.has_answered:
            self._then(message)
        super().answer(message)


@attrs.define
class Plan:
    """A schedule that is seen to. ``owed``: ticks due and not known to be stored, and whether each is on its
    way. ``seen_ms``: ticks up to then have been owed, or are not wanted. ``next_ms``: the next tick, if it is
    known; if not, there is none up to ``sight_ms``. ``due_ms``: when to see to it again. ``search``: for what
    was missed."""

    schedule: Schedule
    seen_ms: int
    sight_ms: int
    search: Search | None = None
    next_ms: int | None = None
    due_ms: int = 0
    owed: dict[int, bool] = attrs.field(factory=dict)

    @property
    def wanted(self) -> int:
        """How many ticks are made up for."""
        return 1 + self.schedule.catch_up

    def owe(self, tick_ms: int) -> None:
        """Have a tick written, unless newer ones have taken its place."""
        self.owed.setdefault(tick_ms, False)
        for late_ms in sorted(self.owed)[:-self.wanted]:
            del self.owed[late_ms]

    def search_upto(self, now_ms: int) -> None:
        """Look for what has not been seen."""
        self.search = Search(max(self.seen_ms, now_ms - SIGHT_MS), now_ms, self.wanted)


@attrs.define
class Allowance:
    """A bound on the work that clients may ask for in a time."""

    since_ms: int = 0
    spent: int = 0

    def take(self, now_ms: int, work: int) -> None:
        """Raises ``Refused`` when it is spent."""
        if not 0 <= now_ms - self.since_ms < LOOK_MS:
            self.since_ms, self.spent = now_ms, 0
        if self.spent >= WORK_AT_ONCE:
            raise Refused("busy", "cron: too many lines are being read at this node; wait and try again")
        self.spent += work


def _cost(schedule: Schedule) -> int:
    """The cost of one look into a schedule's calendar."""
    return 1 + len(schedule.cron) // LINE_CHARS


class Ticks(Duty):
    """The schedules of one node."""

    def __init__(self, operations: Operations, almanac: Almanac) -> None:
        self._operations = operations
        self._view = operations.view
        self._almanac = almanac
        self._plans: dict[str, Plan] = {}
        self._dues: list[tuple[int, str]] = []
        self._searches: deque[tuple[str, Plan]] = deque()
        """Plans whose next tick is unknown, or which search for missed ones; each once."""
        self._fresh: deque[str] = deque()
        self._led: dict[int, int] = {}
        """Epoch of each partition led."""
        bulletin = operations.view.bulletin
        self._rescheduled = bulletin.rescheduled
        self._changed = bulletin.subscribe()
        self._rights = bulletin.subscribe_to_rights()
        self._is_led_anew = True
        """Whether led partitions may have changed since they were looked at."""
        self.news = self._rescheduled, self._changed, self._rights
        self._under_way = 0
        self._next_look_ms = 0
        self._left = 0
        """The work that may still be done in this turn."""
        self._checks = Allowance()

    def check(self, schedule: Schedule, now_ms: int) -> None:
        """Raises ``Refused`` unless its ticks can be told, and one is yet to come."""
        if schedule.every_ms:
            return
        self._checks.take(now_ms, _cost(schedule))
        if self._almanac(schedule.cron, schedule.zone, now_ms, now_ms + SIGHT_MS) is not None:
            return
        self._checks.take(now_ms, EVER_WORK)
        if self._almanac(schedule.cron, "", now_ms, now_ms + EVER_MS) is None:
            raise Refused("bad_cron", f"cron: {schedule.cron!r} is never due; see whether there is such a day")

    def _plan_look(self) -> None:
        """Be due with the next tick, or when one is to be tried again; and soon, when leaderships changed."""
        has_work = bool(self._fresh or self._searches)
        self.due_ms = 0 if has_work else self._dues[0][0] if self._dues else NEVER_MS
        if self._is_led_anew and self._view.settings.schedules:
            self.hasten(self._next_look_ms)

    def forget(self) -> None:
        """The clock has fallen back: begin as one that comes to lead."""
        self._plans, self._dues, self._led, self._next_look_ms = {}, [], {}, 0
        self._is_led_anew = True
        self._searches.clear()
        self.rests_until_ms = self.due_ms = 0

    def look(self, now_ms: int) -> None:
        """Enqueue what is due."""
        self._fresh += self._rescheduled
        self._rescheduled.clear()
        if self._changed or self._rights:
            self._is_led_anew = True
            self._changed.clear()
            self._rights.clear()
        if self._is_led_anew and self._view.settings.schedules and now_ms >= self._next_look_ms:
            self._next_look_ms = now_ms + LOOK_MS
            self._note_led()
        for _ in range(min(FRESH_AT_ONCE, len(self._fresh))):
            self._plan(now_ms, self._fresh.popleft())
        self._left = WORK_AT_ONCE - KEPT_BACK
        while self._left > 0 and self._dues and self._dues[0][0] <= now_ms:
            self._serve_due(now_ms)
        is_cut = self._left <= 0 or bool(self._fresh)
        self._left += KEPT_BACK
        while self._left > 0 and self._searches:
            self._serve_search(now_ms)
        self.rests_until_ms = now_ms + BACKLOG_MS if is_cut or self._left <= 0 else 0
        self._plan_look()

    # -- which ones ----------------------------------------------------------------------------

    def _note_led(self) -> None:
        """Forget the plans of what is not led any more; take over those of what is newly led."""
        self._is_led_anew = False
        led = {vnode.partition: vnode.epoch for vnode in self._view.led()}
        kept = {partition for partition, epoch in led.items() if self._led.get(partition) == epoch}
        self._led = led
        partitions = self._view.parameters.partitions
        self._plans = {name: plan for name, plan in self._plans.items() if home_of(name, partitions) in kept}
        self._fresh += [name for name in self._view.settings.schedules
                        if home_of(name, partitions) in led and name not in self._plans]

    def _plan(self, now_ms: int, name: str) -> None:
        schedule, known = self._view.settings.schedules.get(name), self._plans.get(name)
        if schedule is None or home_of(name, self._view.parameters.partitions) not in self._led:
            self._plans.pop(name, None)
        elif known is None or known.schedule != schedule:
            self._plans[name] = plan = Plan(schedule, schedule.since_ms, now_ms)
            plan.search_upto(now_ms)
            self._searches.append((name, plan))

    # -- ticks ---------------------------------------------------------------------------------

    def _serve_due(self, now_ms: int) -> None:
        due_ms, name = heapq.heappop(self._dues)
        self._left -= 1
        plan = self._plans.get(name)
        if plan is not None and plan.due_ms == due_ms:
            plan.due_ms = NEVER
            self._see_to(now_ms, name, plan, self._note_due)

    def _serve_search(self, now_ms: int) -> None:
        name, plan = self._searches.popleft()
        self._left -= 1
        if self._plans.get(name) is plan:
            self._see_to(now_ms, name, plan, self._go_on)
            if plan.search is not None:
                self._searches.append((name, plan))

    def _see_to(self, now_ms: int, name: str, plan: Plan, work: Callable[[int, str, Plan], None]) -> None:
        try:
            work(now_ms, name, plan)
        except Refused:
            del self._plans[name]  # the node that took it has another calendar; the line means nothing here
            return
        for tick_ms in [tick_ms for tick_ms, is_under_way in plan.owed.items() if not is_under_way]:
            if self._under_way < TICKS_AT_ONCE:
                self._left -= 1
                self._enqueue(now_ms, name, plan, tick_ms)
        self._arm(now_ms, name, plan)

    def _arm(self, now_ms: int, name: str, plan: Plan) -> None:
        due_ms = plan.sight_ms if plan.next_ms is None else plan.next_ms
        if plan.owed:
            pause_ms = self._view.timing.request_ms if self._under_way < TICKS_AT_ONCE else BACKLOG_MS
            due_ms = min(due_ms, now_ms + pause_ms)
        if due_ms != plan.due_ms:
            plan.due_ms = due_ms
            heapq.heappush(self._dues, (due_ms, name))

    def _note_due(self, now_ms: int, name: str, plan: Plan) -> None:
        """Owe the tick that is due; where more have passed, let them be searched for."""
        if plan.next_ms is None:
            self._look_ahead(now_ms, plan)
        elif plan.next_ms <= now_ms:
            if self._first(plan, plan.next_ms, now_ms) is not None:
                if plan.search is None:
                    self._searches.append((name, plan))
                plan.search_upto(now_ms)
            else:
                plan.owe(plan.next_ms)
                plan.seen_ms = plan.seen_ms if plan.search is not None else now_ms
            plan.sight_ms = now_ms
            self._look_ahead(now_ms, plan)

    def _go_on(self, now_ms: int, name: str, plan: Plan) -> None:
        """Look once: ahead, or for what was missed."""
        assert plan.search is not None
        if plan.next_ms is None and plan.sight_ms <= now_ms:
            self._look_ahead(now_ms, plan)
        elif not plan.search.is_over:
            tick_ms = plan.search.step(partial(self._first, plan))
            if tick_ms is not None:
                plan.owe(tick_ms)
        if plan.search.is_over:
            plan.seen_ms, plan.search = plan.search.upto_ms, None

    def _look_ahead(self, now_ms: int, plan: Plan) -> None:
        if plan.sight_ms <= now_ms:
            from_ms, plan.sight_ms = plan.sight_ms, plan.sight_ms + SIGHT_MS
            plan.next_ms = self._first(plan, from_ms, plan.sight_ms)

    def _first(self, plan: Plan, after_ms: int, upto_ms: int) -> int | None:
        self._left -= _cost(plan.schedule)
        return tick_after(plan.schedule, self._almanac, after_ms, upto_ms)

    def _enqueue(self, now_ms: int, name: str, plan: Plan, tick_ms: int) -> None:
        task_id, body = plan.schedule.task(name, tick_ms)
        partition = ids.partition_of(task_id, self._view.parameters.partitions)
        if self._under_way >= TICKS_AT_ONCE or not self._view.vnodes[partition].standing.era:
            return

        def then(answer: m.Message) -> None:
            self._under_way -= 1
            if not isinstance(answer, m.Failed) or answer.is_definite or answer.code == "conflict":
                plan.owed.pop(tick_ms, None)  # on a conflict some node has a task of this tick, or had one
            elif tick_ms in plan.owed:
                plan.owed[tick_ms] = False
        plan.owed[tick_ms] = True
        self._under_way += 1
        batch = m.TaskBatch(body.header.encode(), task_id, columns.pack([body.rest]))
        TickOperation(self._operations, now_ms, task_id, batch, then).start(now_ms)
