"""Sees to the schedules whose home partition is led here: enqueues each tick when it is due.

A tick is written as a client's enqueue is, to a majority of its task's owners. What is in memory is only which
ticks are already stored, so that they are not written again: who comes to lead knows nothing, begins with the
newest tick that is due, and writes a task that may be there. That is harmless (``model.schedule``), and so are
two leaders in doubt. Of the ticks missed while nobody led, only the newest is made up for, and ``catch_up`` more
if the definition says so.

A tick that is not acknowledged in time is written again until a majority has it, or until a newer one has taken
its place. Ticks go by this node's clock. Work is bounded at each look: a partition may be the home of thousands
of schedules, all due at midnight.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable

import attrs

from skuld_py.errors import Refused
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.schedule import Almanac, Schedule, home_of, newest_ticks, tick_after
from skuld_py.node.household import Household
from skuld_py.node.operation import Origin
from skuld_py.node.storing import Named, WriteOperation
from skuld_py.partition.quorum import majority

PLANS_AT_ONCE = 50
"""Schedules looked at in one turn; the others wait for the next one."""
TICKS_AT_ONCE = 100
"""Ticks on their way to be stored."""
BACKLOG_MS = 20
"""How long one that finds no room waits."""
LOOK_MS = 100
"""How often it is looked at which partitions are led; a tick of one that is not any more does no harm."""


class TickOperation(WriteOperation):
    """The write of one tick; ``then`` is told how it ended."""

    def __init__(self, host: Household, now_ms: int, task_id: bytes, batch: m.TaskBatch,
                 then: Callable[[m.Message], None]) -> None:
        self._then = then
        partition = ids.partition_of(task_id, host.parameters.partitions)

        def make(request: int, partitions: list[int]) -> m.Replicate:
            era = host.vnode(partition).standing.era
            return m.Replicate(request, (batch,), columns.pack_u64([partition, era]))
        super().__init__(host, Origin(0), now_ms, majority(host.parameters.replicas), {partition: 1}, make,
                         {task_id: Named([0])})

    def answer(self, message: m.Message) -> None:
        """Nobody waits for it but the schedule."""
        if not self.has_answered:
            self._then(message)
        super().answer(message)


@attrs.define
class Plan:
    """A schedule that is seen to. ``owed``: ticks due and not known to be stored, and whether each is on its
    way. ``seen_ms``: ticks up to then have been owed, or are not wanted. ``next_ms``: the next tick; ``due_ms``:
    when to look again."""

    schedule: Schedule
    seen_ms: int
    next_ms: int | None = 0
    due_ms: int = 0
    owed: dict[int, bool] = attrs.field(factory=dict)


class Scheduling:
    """The schedules of one node."""

    def __init__(self, node: Household, almanac: Almanac) -> None:
        self._node = node
        self._almanac = almanac
        self._plans: dict[str, Plan] = {}
        self._dues: list[tuple[int, str]] = []
        self._fresh: deque[str] = deque()
        self._led: dict[int, int] = {}
        """Epoch of each partition led."""
        self._under_way = 0
        self._next_look_ms = 0

    def check(self, schedule: Schedule, now_ms: int) -> None:
        """Raises ``Refused`` unless its ticks can be told, and one is yet to come."""
        if tick_after(schedule, self._almanac, now_ms) is None:
            raise Refused("bad_cron", f"cron: {schedule.cron!r} is never due; see whether there is such a day")

    def deadline(self) -> int | None:
        """When the next tick is due, or is to be tried again."""
        return 0 if self._fresh else self._dues[0][0] if self._dues else None

    def look(self, now_ms: int) -> None:
        """Enqueue what is due."""
        settings = self._node.settings
        self._fresh += settings.take_rescheduled()
        if not (settings.schedules or self._fresh or self._dues):
            return
        if now_ms >= self._next_look_ms:
            self._next_look_ms = now_ms + LOOK_MS
            self._note_led()
        for _ in range(min(PLANS_AT_ONCE, len(self._fresh))):
            self._plan(now_ms, self._fresh.popleft())
        for _ in range(PLANS_AT_ONCE):
            if not self._dues or self._dues[0][0] > now_ms:
                return
            due_ms, name = heapq.heappop(self._dues)
            plan = self._plans.get(name)
            if plan is not None and plan.due_ms == due_ms:
                self._see_to(now_ms, name, plan)

    # -- which ones ----------------------------------------------------------------------------

    def _note_led(self) -> None:
        """Forget the plans of what is not led any more; take over those of what is newly led."""
        led = {vnode.partition: vnode.epoch for vnode in self._node.led()}
        if led == self._led:
            return
        kept = {partition for partition, epoch in led.items() if self._led.get(partition) == epoch}
        self._led = led
        partitions = self._node.parameters.partitions
        self._plans = {name: plan for name, plan in self._plans.items() if home_of(name, partitions) in kept}
        self._fresh += [name for name in self._node.settings.schedules
                        if home_of(name, partitions) in led and name not in self._plans]

    def _plan(self, now_ms: int, name: str) -> None:
        schedule, known = self._node.settings.schedules.get(name), self._plans.get(name)
        if schedule is None or home_of(name, self._node.parameters.partitions) not in self._led:
            self._plans.pop(name, None)
        elif known is None or known.schedule != schedule:
            self._plans[name] = Plan(schedule, schedule.since_ms)
            self._arm(now_ms, name, self._plans[name])

    # -- ticks ---------------------------------------------------------------------------------

    def _arm(self, due_ms: int, name: str, plan: Plan) -> None:
        plan.due_ms = due_ms
        heapq.heappush(self._dues, (due_ms, name))

    def _see_to(self, now_ms: int, name: str, plan: Plan) -> None:
        try:
            self._note_due(now_ms, plan)
        except Refused:
            del self._plans[name]  # who took it has another calendar; its line means nothing here
            return
        for tick_ms in [tick_ms for tick_ms, is_under_way in plan.owed.items() if not is_under_way]:
            self._enqueue(now_ms, name, plan, tick_ms)
        again_ms = now_ms + (self._node.timing.request_ms if self._under_way < TICKS_AT_ONCE else BACKLOG_MS)
        dues = [due_ms for due_ms in (again_ms if plan.owed else None, plan.next_ms) if due_ms is not None]
        if dues:
            self._arm(min(dues), name, plan)

    def _note_due(self, now_ms: int, plan: Plan) -> None:
        if plan.next_ms is None or now_ms < plan.next_ms:
            return
        wanted = 1 + plan.schedule.catch_up
        for tick_ms in newest_ticks(plan.schedule, self._almanac, plan.seen_ms, now_ms, wanted):
            plan.owed[tick_ms] = False
        for tick_ms in sorted(plan.owed)[:-wanted]:
            del plan.owed[tick_ms]
        plan.seen_ms = max(plan.seen_ms, now_ms)
        plan.next_ms = tick_after(plan.schedule, self._almanac, plan.seen_ms)

    def _enqueue(self, now_ms: int, name: str, plan: Plan, tick_ms: int) -> None:
        task_id, body = plan.schedule.task(name, tick_ms)
        partition = ids.partition_of(task_id, self._node.parameters.partitions)
        if self._under_way >= TICKS_AT_ONCE or not self._node.vnode(partition).standing.era:
            return

        def then(answer: m.Message) -> None:
            self._under_way -= 1
            if not isinstance(answer, m.Failed) or answer.is_definite or answer.code == "conflict":
                plan.owed.pop(tick_ms, None)  # of a conflict, somebody has a task of this tick, or had one
            elif tick_ms in plan.owed:
                plan.owed[tick_ms] = False
        plan.owed[tick_ms] = True
        self._under_way += 1
        batch = m.TaskBatch(body.header.encode(), task_id, columns.pack([body.rest]))
        self._node.start(TickOperation(self._node, now_ms, task_id, batch, then), now_ms)
