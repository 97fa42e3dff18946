"""Reading the log from ZooKeeper, thousands at once: cohorts of processes that ask, are served and play as one.

All processes of a cohort are at one position. What ZooKeeper does for them is counted and costs for each of them;
only that they are served back to back is made up. A cohort that has read all there is leaves a watch for the next
entry; with ten thousand readers each entry fires ten thousand of these, and each then costs reads.

Of a batch only those act that an entry concerns; the others advance with their cohort. A cohort that finds its
next entries collected reads the origin; its members then owe what the entries would have led them to, which is the
same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from skuld_py.simulation.coordination.scale.agenda import Agenda
from skuld_py.simulation.coordination.scale.concerned import Standby
from skuld_py.simulation.coordination.scale.costs import Costs
from skuld_py.simulation.coordination.scale.deciding import Decisions
from skuld_py.simulation.coordination.scale.ensemble import Ensemble
from skuld_py.simulation.coordination.scale.log import CHUNK_BYTES, Log, News
from skuld_py.simulation.coordination.scale.process import Process

COHORTS = 50
MISSES = 2
"""A reading ends with an entry that is not there, and with the watch for it."""
Act = Callable[[Process, list[News], Standby], None]


class Cohort:
    """Processes that read together; ``position`` is that of the next entry to read."""

    def __init__(self, processes: Iterable[Process], position: int) -> None:
        self.processes = {process.id: process for process in processes}
        self.outside = {name: process for name, process in self.processes.items() if not process.is_in}
        """Those that are no members yet: what they watch may change with any entry."""
        self.position = position
        self.is_waiting = False
        self.question = -1
        """Since which position the newest question stands that it will read of."""
        self.news: dict[str, list[News]] = {}


class Cohorts:
    """All that read from ZooKeeper."""

    def __init__(self, agenda: Agenda, costs: Costs, ensemble: Ensemble, log: Log, decisions: Decisions,
                 act: Act) -> None:
        self._agenda, self._costs, self._ensemble, self._log = agenda, costs, ensemble, log
        self._decisions, self._act = decisions, act
        self._cohorts: list[Cohort] = []
        self._of: dict[str, Cohort] = {}
        self._standby = Standby(log.replica)

    def begin(self, processes: Iterable[Process]) -> None:
        """Processes that have just started read the origin and all after it, as one cohort."""
        cohort = self._add(Cohort(processes, -1))
        self._read(cohort)

    def begin_one(self, process: Process) -> None:
        """A process reads the origin and all after it, then goes on with others."""
        if len(self._cohorts) < COHORTS:
            self.begin([process])
            return
        log = self._log
        chunks = -(-log.origin_bytes // CHUNK_BYTES)
        size = log.origin_bytes + log.size(log.origin, log.end)
        self._ensemble.read(1 + chunks + log.end - log.origin + MISSES, size, self._begun, process)

    def _begun(self, process: Process) -> None:
        if process.is_alive:
            cohort = min(self._cohorts, key=lambda each: len(each.processes))
            self._add_to(cohort, process)
            cohort.outside[process.id] = process
            self._act(process, [], Standby(self._log.replica_at(cohort.position - 1)))

    def stand(self, processes: Iterable[Process]) -> None:
        """Processes have read all there is, and wait."""
        cohort = self._add(Cohort(processes, self._log.end))
        cohort.is_waiting = True

    def _add(self, cohort: Cohort) -> Cohort:
        self._of.update(dict.fromkeys(cohort.processes, cohort))
        self._cohorts.append(cohort)
        return cohort

    def join(self, process: Process, position: int) -> None:
        """A process that has played all before ``position`` reads on with others."""
        if len(self._cohorts) < COHORTS:
            self._read(self._add(Cohort([process], position)))
            return
        cohort = min(self._cohorts, key=lambda each: len(each.processes))
        missing = max(0, cohort.position - position)
        if missing:
            self._ensemble.read(missing, self._log.size(position, cohort.position), lambda: None)
        self._add_to(cohort, process)

    def _add_to(self, cohort: Cohort, process: Process) -> None:
        cohort.processes[process.id] = process
        self._of[process.id] = cohort
        if process.pending:
            cohort.news[process.id], process.pending = process.pending, []
        if cohort.is_waiting and cohort.position < self._log.end:
            cohort.is_waiting = False  # it was empty
            self._read(cohort)

    def leave(self, process: Process) -> list[News]:
        """A process has died, or gets its entries from elsewhere; what it has not acted on yet."""
        cohort = self._of.pop(process.id, None)
        if cohort is None:
            return []
        del cohort.processes[process.id]
        cohort.outside.pop(process.id, None)
        return cohort.news.pop(process.id, [])

    def came_in(self, process: Process) -> None:
        """A process is a member now."""
        if cohort := self._of.get(process.id):
            cohort.outside.pop(process.id, None)

    def concern(self, process: Process, news: News) -> bool:
        """A process must act on an entry once it reads it; false if it does not read here."""
        cohort = self._of.get(process.id)
        if cohort is None:
            return False
        cohort.news.setdefault(process.id, []).append(news)
        return True

    def appended(self, news: News) -> None:
        """An entry was committed: the watches of those that wait fire, all at once."""
        waiting = [cohort for cohort in self._cohorts if cohort.is_waiting and cohort.processes]
        for cohort in waiting:
            cohort.is_waiting = False
        if news.is_moving:
            for cohort in self._cohorts:
                cohort.question = news.position
        if waiting:
            self._ensemble.notify([(len(cohort.processes), self._read, cohort) for cohort in waiting])

    def _read(self, cohort: object) -> None:
        assert isinstance(cohort, Cohort)
        self._ensemble.reads.submit(self._costs.one_way_ms, lambda: self._cost(cohort), self._served, cohort)

    def _cost(self, cohort: Cohort) -> float:
        """The turn of a cohort has come: it gets what is there now, and plays it afterwards."""
        log, size, start = self._log, len(cohort.processes), cohort.position
        reads, content, work = MISSES, 0, 0.0
        if start < log.origin:
            start = log.origin
            reads += 1 + -(-log.origin_bytes // CHUNK_BYTES)
            content += log.origin_bytes
            work += log.origin_bytes / 1_000 * self._costs.parse_ms_per_kb
        reads += log.end - start
        content += log.size(start, log.end)
        per_entry = self._costs.play_ms + self._costs.play_ms_per_member * len(log.replica.members)
        work += (log.end - start) * per_entry
        question, cohort.question, cohort.position = cohort.question, -1, log.end
        cost = self._ensemble.cost_of_reads(size * reads, size * content)
        work += self._decisions.hold_up(size, question)
        self._agenda.after(cost + self._costs.one_way_ms + work, self._play, cohort, log.end)
        return cost

    def _served(self, cohort: Cohort) -> None:
        """The queue is free for the next; the cohort itself goes on once it has played."""

    def _play(self, cohort: Cohort, end: int) -> None:
        replica = self._log.replica_at(end - 1)
        if self._standby.replica is not replica:
            self._standby = Standby(replica)
        acting: dict[str, list[News]] = {}
        for name, news in [*cohort.news.items()]:
            acting[name] = [each for each in news if each.position < end]
            if not (rest := news[len(acting[name]) :]):
                del cohort.news[name]
            cohort.news.update({name: rest} if rest else {})
        for name, process in [*cohort.outside.items()]:
            self._act(process, acting.pop(name, []), self._standby)
        for name, news in acting.items():
            if news and name in cohort.processes:
                self._act(cohort.processes[name], news, self._standby)
        if self._log.end > cohort.position:
            self._read(cohort)
        else:
            cohort.is_waiting = True

    def is_caught_up(self) -> bool:
        """Whether all have read all there is."""
        return all(cohort.is_waiting and cohort.position == self._log.end
                   for cohort in self._cohorts if cohort.processes)
