"""ZooKeeper as the members see it: a queue of writes, a queue of reads, pulses, and watches on them.

A write is played when the leader commits it, and answered a packet later. Watches on a pulse stay until they fire,
as ZooKeeper's do: a process that does not care any more hears of it once. Every operation is counted where it is
served.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from skuld_py.simulation.coordination.scale.agenda import Action, Agenda, Queue
from skuld_py.simulation.coordination.scale.costs import Costs, Counts

Told = Callable[[str], None]


class Ensemble:
    """``pulses`` are those that stand."""

    def __init__(self, agenda: Agenda, costs: Costs, counts: Counts) -> None:
        self.pulses: dict[str, None] = {}
        self.writes, self.reads = Queue(agenda), Queue(agenda)
        self._agenda, self._costs, self._counts = agenda, costs, counts
        self._watches: dict[str, dict[str, Told]] = {}

    def write(self, committed: Action, *arguments: object, count: int = 1) -> None:
        """Writes in a row; ``committed`` as soon as the last one stands."""
        self.writes.submit(self._costs.one_way_ms, partial(self._cost_of_writes, count), committed, *arguments)

    def _cost_of_writes(self, count: int) -> float:
        self._counts.writes += count
        return count * self._costs.write_ms

    def read(self, count: int, size: int, done: Action, *arguments: object) -> None:
        """Reads, of some bytes altogether; ``done`` when the answer has come."""
        cost = partial(self.cost_of_reads, count, size)
        self.reads.submit(self._costs.one_way_ms, cost, self._answer, done, arguments)

    def _answer(self, done: Action, arguments: tuple[object, ...]) -> None:
        self._agenda.after(self._costs.one_way_ms, done, *arguments)

    def cost_of_reads(self, count: int, size: int) -> float:
        """The ensemble's time for reads, which are counted."""
        size += count * self._costs.reply_bytes
        self._counts.reads += count
        self._counts.zookeeper_bytes += size
        return count * self._costs.read_ms + size * self._costs.zookeeper_byte_ms

    def notify(self, groups: Sequence[tuple[int, Action, object]]) -> None:
        """Watches fire at one change: for each group their number, and what to do once the last has come."""
        count = sum(each for each, _, _ in groups)
        self._counts.notifications += count
        self._counts.fan_out = max(self._counts.fan_out, count)
        for each, done, argument in groups:
            size = each * self._costs.reply_bytes
            self._counts.zookeeper_bytes += size
            cost = each * self._costs.notify_ms + size * self._costs.zookeeper_byte_ms
            self.reads.submit(0.0, partial(float, cost), self._answer, done, (argument,))

    def set_pulse(self, member: str, done: Action) -> None:
        """A pulse stands; ``done`` when its owner knows."""
        self.write(self._stand, member, done)

    def stand(self, member: str) -> None:
        """There is a pulse, at no cost."""
        self.pulses[member] = None

    def _stand(self, member: str, done: Action) -> None:
        self.stand(member)
        self._agenda.after(self._costs.one_way_ms, done)

    def end_pulse(self, member: str, delay: float = 0.0) -> None:
        """A pulse goes, after a delay: its session has ended, or it was removed."""
        self._agenda.after(delay, self.write, self._gone, member)

    def _gone(self, member: str) -> None:
        self.pulses.pop(member, None)
        watchers = self._watches.pop(member, None)
        if watchers:
            self.notify([(1, tell, member) for tell in watchers.values()])

    def watch(self, watcher: str, member: str, tell: Told) -> None:
        """``tell`` once when a pulse goes, or at once when there is none."""
        self.reads.submit(self._costs.one_way_ms, self._cost_of_watch, self._armed, watcher, member, tell)

    def _cost_of_watch(self) -> float:
        self._counts.watches += 1
        return self.cost_of_reads(1, 0)

    def leave_watch(self, watcher: str, member: str, tell: Told) -> None:
        """There is a watch on a pulse, at no cost."""
        self._watches.setdefault(member, {})[watcher] = tell

    def _armed(self, watcher: str, member: str, tell: Told) -> None:
        if member in self.pulses:
            self.leave_watch(watcher, member, tell)
        else:
            self._answer(tell, (member,))

    def watchers(self, member: str) -> tuple[str, ...]:
        """The processes with a watch on a pulse."""
        return tuple(self._watches.get(member, ()))

    def drop_watches(self, member: str) -> None:
        """The watches on a pulse are lost without a sign: what a test plants."""
        self._watches.pop(member, None)
