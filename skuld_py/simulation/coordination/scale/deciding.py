"""What decisions cost in time and work: one is due whenever the nodes that are placed have changed.

Plain, every member computes each for itself and plays nothing meanwhile. Schedulers compute each question once, on
every one of the processes asked, and all others wait for the answer; so that saves work rather than time. With
versions of each key a member goes on playing what does not rest on the placement, so that none is held up, but as
much is computed. A member that fell behind computes once for all it has played since.

Source of the parameters: ``cluster/scale/decider.py``.
"""

from __future__ import annotations

from skuld_py.simulation.coordination.scale.agenda import Agenda
from skuld_py.simulation.coordination.scale.costs import Costs, Counts, Options
from skuld_py.simulation.coordination.scale.log import Log


class Decisions:
    """``hold_up`` is asked for those that read on their own, ``follow`` for those that play in step."""

    def __init__(self, agenda: Agenda, costs: Costs, options: Options, counts: Counts, log: Log) -> None:
        self._agenda, self._costs, self._options = agenda, costs, options
        self._counts, self._log = counts, log
        self._answer_at: dict[int, float] = {}
        """When the schedulers have the answer to a question, by the position since which it stands."""
        self._schedulers_free = 0.0
        self._window_end = self._next_end = 0.0

    def hold_up(self, members: int, question: int) -> float:
        """How long members that have come to a question wait; -1 for none."""
        if question < 0 or not members:
            return 0.0
        cost = self._cost()
        if not self._options.deciding:
            self._count(members, cost)
        else:
            self._ask(members)
            if question not in self._answer_at:
                self._count(self._costs.schedulers, cost)
                self._schedulers_free = max(self._schedulers_free, self._agenda.now) + cost
                self._answer_at[question] = self._schedulers_free
            cost = max(0.0, self._answer_at[question] - self._agenda.now) + 2 * self._costs.one_way_ms
        return 0.0 if self._options.versions else cost

    def follow(self, members: int, delay: float, question: int) -> float:
        """When members may act that get an entry after a delay. What comes while they decide waits, and is decided
        together."""
        at = self._agenda.now + delay
        if at >= self._window_end and self._next_end > self._window_end:
            self._window_end = self._next_end
        if question < 0 or not members:
            return at if self._options.versions else max(at, self._window_end)
        cost = self._cost()
        if at >= self._window_end:
            self._window_end = self._next_end = at + cost
        elif self._next_end <= self._window_end:
            self._next_end = self._window_end + cost
        else:
            return at if self._options.versions else self._next_end
        self._count(self._costs.schedulers if self._options.deciding else members, cost)
        if self._options.deciding:
            self._ask(members)
        return at if self._options.versions else self._next_end

    def _cost(self) -> float:
        return len(self._log.replica.nodes) * self._costs.decide_ms_per_node

    def _count(self, processes: int, cost: float) -> None:
        self._counts.decisions += processes
        self._counts.decision_ms += processes * cost

    def _ask(self, members: int) -> None:
        messages = 2 * self._costs.schedulers * members
        self._counts.messages += messages
        self._counts.member_bytes += messages * self._costs.message_bytes
        self._counts.member_bytes += members * self._costs.decide_answer_bytes
