"""The dependent's side of dependencies: the leader of a blocked task asks until all it waits for is met.

Enqueueing writes nothing but the task itself, so it works without the dependency's partition. The task's leader
asks the dependency's leader: about new dependencies at the end of the turn, and about every row of ``dep`` in a
walk that never ends and that begins when it comes to lead. Whatever is lost on the way (a question, a
subscription, an answer, either leader) leaves the row where it is, so the walk meets it: no wake-up is lost for
good, and nothing needs to be remembered but the rows.

Invariants. A dependency is noted as met only by the word of its leader, which has it from a majority: done stays
done, whichever node leads next. Notes go to all keepers of the dependent; a death goes to a majority in the
leader's own epoch, like any other. A dependency counts as unknown only by the walk's last question, after the time
that its dependent allows (``dep_wait_ms``). A dependency that was collected is gone, by the word of its leader; no
task waits for it.

An unknown dependency is asked about once more when the time of a task that waits for it is over, if that is before
the walk comes by. A walk reads ``watch_rows`` rows in ``watch_ms``. A pass begins ``rewatch_ms`` after the last;
or ``PASS_SHARE`` times as long as that took, if that is longer, but at most ``PAUSE_MAX`` times ``rewatch_ms``: a
million blocked tasks must not keep a node busy, nor wait for ever for word that was lost. Many new dependencies,
of a bulk enqueue, are gathered for ``gather_ms``: each question is written down on three disks, and few large ones
cost less than many.

Rejected: subscriptions written by the coordinator at enqueue, which double the way to the acknowledgement, and do
not suffice where it dies between the two; polling alone, whose answers come a pass late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

import attrs

from skuld_py.model import ids
from skuld_py.model import messages as m
from skuld_py.model.body import ON_FAILURE_FAIL, ON_FAILURE_IGNORE, ON_FAILURE_INSTEAD, Header, header_of
from skuld_py.model.history import (
    CANCELLED,
    DEATH_TIME_RULES,
    DEP_FAILED,
    DEP_UNKNOWN,
    DIED,
    cause_of,
    decode_history,
)
from skuld_py.model.notes import MET, End, met_seq
from skuld_py.node.operations.agenda import Agenda
from skuld_py.node.operations.amendment import AmendOperation
from skuld_py.node.operations.operation import Operation, Operations, not_leading
from skuld_py.node.operations.outbox import Origin
from skuld_py.node.operations.silent import SilentOperation
from skuld_py.node.writes.notes import Noted, write_notes
from skuld_py.partition.data.change import Change
from skuld_py.partition.data.facts import Mark
from skuld_py.partition.data.waiting import FRESH_MAX
from skuld_py.partition.vnode import Vnode

PAGE = 1_000
"""Ids of one question; dependents met together."""
PASS_SHARE = 20
"""A pass may take one part in this many of the time..."""
PAUSE_MAX = 10
"""...but the pause between two is at most this many times ``rewatch_ms``: lost word waits for the next pass."""
FOREVER_MS = 1 << 62
SUPERSEDED = -1
"""The verdict on a task that was to be done instead of one that is completed: it is cancelled."""


@attrs.define
class Walk:
    """How far the walk over a partition's dependencies has come."""

    began_ms: int
    after: bytes = b""


class DependentSide:
    """The questions of one node about the tasks that its own tasks wait for."""

    def __init__(self, operations: Operations, hasten: Callable[[int], None]) -> None:
        self._operations = operations
        self._view = operations.view
        self._hasten = hasten
        self._walks: dict[int, Walk] = {}
        self._agenda = Agenda()
        """When the walk over each partition goes on."""
        self._next_ms = FOREVER_MS
        """When the first walk is due and the pace allows it, or earlier."""
        self._pace_ms = 0
        self._again: list[tuple[int, int, Sequence[bytes]]] = []
        """Questions to ask again: when, for which partition, and about which tasks."""
        self._asked_ms = 0
        """When it last asked about many new dependencies."""
        self.due_ms = FOREVER_MS
        """When it next has something to do."""

    def begin(self, now_ms: int, partition: int) -> None:
        """Walk over all that tasks of a partition wait for, which this node leads."""
        self._walks[partition] = Walk(now_ms)
        self._agenda.note(partition, now_ms)
        self._next_ms = min(self._next_ms, max(self._pace_ms, now_ms))
        self.due_ms = min(self.due_ms, self._next_ms)

    def leave(self, partition: int) -> None:
        """This node does not lead it any more."""
        self._walks.pop(partition, None)

    def look(self, now_ms: int) -> bool:
        """Ask what is due; says whether anything was asked."""
        has_asked_again = bool(self._again) and self._ask_again(now_ms)
        has_walked = now_ms >= self._next_ms and self._walk(now_ms)
        self.due_ms = min(self._next_ms, *(due_ms for due_ms, _, _ in self._again), FOREVER_MS)
        return has_walked or has_asked_again

    def hear(self, now_ms: int, vnode: Vnode, deps: Sequence[bytes]) -> bool:
        """Tasks of a partition that this node leads began to wait for these: ask at once; or, if they are many,
        with all that come within ``gather_ms``. Says whether any was asked."""
        timing = self._view.timing
        due_ms = self._asked_ms + timing.gather_ms
        if len(deps) >= timing.gather_rows and now_ms < due_ms and self.put_off(due_ms, vnode, deps):
            return False
        return self.ask(now_ms, vnode, deps)

    def _ask_again(self, now_ms: int) -> bool:
        due: dict[int, dict[bytes, None]] = {}
        for due_ms, partition, deps in self._again:
            if due_ms <= now_ms:
                due.setdefault(partition, {}).update(dict.fromkeys(deps))
        self._again = [entry for entry in self._again if entry[0] > now_ms]
        asked = [self.ask(now_ms, self._view.vnodes[partition], list(deps)) for partition, deps in due.items()]
        return any(asked)

    def _walk(self, now_ms: int) -> bool:
        """One page of one partition, if one is due."""
        partition = next((each for each in self._agenda.take(now_ms, 1) if each in self._walks), None)
        if partition is None:
            self._next_ms = self._agenda.due_ms
            return False
        walk, timing = self._walks[partition], self._view.timing
        self._pace_ms = now_ms + timing.watch_ms
        if not walk.after:
            walk.began_ms = now_ms
        vnode = self._view.vnodes[partition]
        deps, walk.after = vnode.replica.filing.waiting.dependencies(walk.after, timing.watch_rows)
        took_ms = now_ms - walk.began_ms
        pause_ms = max(timing.rewatch_ms, min(PASS_SHARE * took_ms, PAUSE_MAX * timing.rewatch_ms))
        self._agenda.note(partition, self._pace_ms if walk.after else now_ms + pause_ms)
        self._next_ms = max(self._pace_ms, self._agenda.due_ms)
        return self.ask(now_ms, vnode, deps)

    def ask(self, now_ms: int, vnode: Vnode, deps: Sequence[bytes], is_last: bool = False) -> bool:
        """Ask the leaders of these tasks, for a partition that this node leads; those that have none are asked
        later. Says whether any was asked."""
        if not vnode.is_leading:
            return False
        if len(deps) >= self._view.timing.gather_rows:
            self._asked_ms = now_ms
        by_leader: dict[str, list[bytes]] = {}
        for partition, asked in ids.by_partition(deps, self._view.parameters.partitions).items():
            by_leader.setdefault(self._view.leader_of(partition), []).extend(asked)
        self.try_again(now_ms, vnode, by_leader.pop("", []))
        for leader, asked in by_leader.items():
            for page in _pages(asked):
                WatchOperation(self._operations, self, now_ms, vnode, leader, page, is_last).start(now_ms)
        return bool(by_leader)

    def try_again(self, now_ms: int, vnode: Vnode, deps: Sequence[bytes]) -> None:
        """Ask somewhat later; the walk finds what is too much to remember."""
        if deps:
            self.put_off(now_ms + self._view.timing.resend_ms, vnode, deps)

    def put_off(self, due_ms: int, vnode: Vnode, deps: Sequence[bytes]) -> bool:
        """Ask about these then; says whether there is room for them."""
        has_room = sum(len(asked) for _, _, asked in self._again) + len(deps) <= FRESH_MAX
        if has_room:
            self._again.append((due_ms, vnode.partition, deps))
            self.due_ms = min(self.due_ms, due_ms)
            self._hasten(due_ms)
        return has_room


def _pages(rows: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    for start in range(0, len(rows), PAGE):
        yield rows[start : start + PAGE]


class WatchOperation(Operation):
    """One question to one leader."""

    def __init__(self, operations: Operations, side: DependentSide, now_ms: int, vnode: Vnode, leader: str,
                 deps: Sequence[bytes], is_last: bool) -> None:
        super().__init__(operations, Origin(0), now_ms)
        self._side = side
        self._vnode = vnode
        self._leader = leader
        self._deps = deps
        self._is_last = is_last

    def begin(self, now_ms: int) -> None:
        """Ask until answered."""
        question = m.Watch(self.request, self._vnode.partition, self._is_last, b"".join(self._deps))
        self.ask(now_ms, {self._leader: question})

    def on_reply(self, now_ms: int, peer: str, message: m.Message) -> None:
        """The leader told what it knows of each task; or it does not lead any more."""
        if peer != self._leader or not isinstance(message, m.Watched | m.Failed):
            return
        self.end()
        if isinstance(message, m.Failed) or len(message.ends) != len(self._deps):
            self._side.try_again(now_ms, self._vnode, self._deps)
            return
        if not any(message.ends):
            return
        ends = {dep: End(end) for dep, end in zip(self._deps, message.ends, strict=True) if 1 <= end <= End.GONE}
        if not self._is_last:
            self._ask_again(now_ms, [dep for dep, end in ends.items() if end is End.UNKNOWN])
            ends = {dep: end for dep, end in ends.items() if end is not End.UNKNOWN}
        if ends and self._vnode.is_leading:
            MeetOperation(self.operations, Origin(0), now_ms, self._vnode, ends).start(now_ms)

    def _ask_again(self, now_ms: int, unknown: Sequence[bytes]) -> None:
        """Ask for the last time about unknown tasks for which a dependent has waited long enough; about others
        when one will have, if that is before the walk asks again."""
        timing, overdue, later = self.view.timing, list[bytes](), dict[int, list[bytes]]()
        for dep in unknown:
            ends_ms = [deadline_of(task_id, header)
                       for task_id, _, header in dependents(self._vnode, dep, b"", PAGE)]
            if min(ends_ms, default=now_ms) < now_ms:
                overdue.append(dep)
            next_ms = min((end_ms for end_ms in ends_ms if end_ms >= now_ms), default=FOREVER_MS)
            if next_ms < now_ms + timing.rewatch_ms:
                later.setdefault(next_ms // timing.gather_ms + 1, []).append(dep)
        for moment, deps in later.items():
            self._side.put_off(moment * timing.gather_ms, self._vnode, deps)
        self._side.ask(now_ms, self._vnode, overdue, is_last=True)

    def on_deadline(self, now_ms: int) -> None:
        """The leader is silent: ask again, for perhaps another one leads by now."""
        self.end()
        self._side.try_again(now_ms, self._vnode, self._deps)


# -- what has ended ----------------------------------------------------------------------------------


Dependent = tuple[bytes, int, Header]
"""A task that waits for another one, the index of that one among its dependencies, and its header."""


def dependents(vnode: Vnode, dep: bytes, after: bytes, limit: int) -> list[Dependent]:
    """Tasks that wait for this one, behind ``after``."""
    rows = vnode.replica.filing.waiting.dependents(dep, after, limit)
    bodies = vnode.replica.bodies([task_id for task_id, _ in rows])
    return [(*row, header_of(body)) for row, body in zip(rows, bodies, strict=True) if body is not None]


def deadline_of(task_id: bytes, header: Header) -> int:
    """Until when a task waits for unknown dependencies."""
    return ids.time_of(task_id) + header.dep_wait_ms


class MeetOperation(SilentOperation):
    """Dependencies have ended: notes, deaths, or cancellings, for all that wait for them, page by page.

    The origin is answered ``Told`` when all of it is recorded by majorities.
    """

    def __init__(self, operations: Operations, origin: Origin, now_ms: int, vnode: Vnode,
                 ends: Mapping[bytes, End]) -> None:
        super().__init__(operations, origin, now_ms)
        self._vnode = vnode
        self._rows = self._waiting(ends)
        self._open = 0

    def _waiting(self, ends: Mapping[bytes, End]) -> Iterator[tuple[Dependent, End]]:
        """The tasks that wait for these. A page is read when it is asked for, so what was recorded by then is not
        in it."""
        for dep, end in ends.items():
            after = b""
            while True:
                page = dependents(self._vnode, dep, after, PAGE)
                yield from ((row, end) for row in page)
                if len(page) < PAGE:
                    break
                after = page[-1][0]

    def begin(self, now_ms: int) -> None:
        """Take the first page."""
        self._go_on(now_ms)

    def _go_on(self, now_ms: int) -> None:
        while not self._open:
            page = list(islice(self._rows, PAGE)) if self._vnode.is_leading else []
            if not page:
                self._conclude()
                return
            self._record(now_ms, page)

    def _conclude(self) -> None:
        if self._vnode.is_leading:
            self.answer(m.Told(self.origin.request))
        else:
            self.answer(not_leading(self.origin))
        self.end()

    def _record(self, now_ms: int, page: Sequence[tuple[Dependent, End]]) -> None:
        notes: list[Noted] = []
        over: dict[bytes, int] = {}
        for (task_id, index, header), end in page:
            reason = verdict_of(header.policy, end, now_ms > deadline_of(task_id, header))
            if reason:
                over[task_id] = reason
            elif reason is not None:
                notes.append((task_id, MET, met_seq(index, end)))
        self._open = bool(notes) + bool(over)
        self.extend(now_ms)
        if notes:
            write_notes(self.operations, now_ms, self.origin_of_parts, notes)
        if over:
            change = Change((), self._marks(now_ms, over))
            AmendOperation(self.operations, self.origin_of_parts, now_ms, {self._vnode: change},
                           m.Told(self.request)).start(now_ms)

    def _marks(self, now_ms: int, over: Mapping[bytes, int]) -> list[Mark]:
        replica, when_ms = self._vnode.replica, now_ms if self.view.rules >= DEATH_TIME_RULES else 0
        known = replica.histories(list(over))
        return [Mark(task_id, CANCELLED, now_ms) if reason == SUPERSEDED else
                Mark(task_id, DIED, decode_history(known.get(replica.prefix + task_id)).round + 1,
                     cause_of(reason, when_ms))
                for task_id, reason in over.items()]

    def on_reply(self, now_ms: int, peer: str, message: m.Message) -> None:
        """A part is recorded, or may be."""
        if isinstance(message, m.Failed):
            self.on_deadline(now_ms)
        elif isinstance(message, m.Acked | m.Told):
            self._open -= 1
            self._go_on(now_ms)

    def on_deadline(self, now_ms: int) -> None:
        """Leave it: the walk, or the leader that told, begins anew."""
        self.give_up("a majority did not record it in time")
        self.end()


def verdict_of(policy: int, end: End, is_overdue: bool) -> int | None:
    """Why a task dies of a dependency that ended so, or ``SUPERSEDED``; 0 when it lives and waits for it no more,
    None when it still waits.

    Whatever its policy, a task waits only for a time for an unknown dependency, and never for a collected one. One
    that is there instead of an unknown one dies: nobody can tell whether that was done.
    """
    if policy == ON_FAILURE_INSTEAD and end in (End.DONE, End.FAILED):
        return SUPERSEDED if end is End.DONE else 0
    if end is End.DONE:
        return 0
    if end is End.FAILED:
        return {ON_FAILURE_IGNORE: 0, ON_FAILURE_FAIL: DEP_FAILED}.get(policy)
    if end is End.OPEN or (end is End.UNKNOWN and not is_overdue):
        return None
    return 0 if policy == ON_FAILURE_IGNORE else DEP_UNKNOWN
