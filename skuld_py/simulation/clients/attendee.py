"""A client in whose name some workers say that they are there, stop, and come again; and that asks which are.

Each stays with a node as long as that answers, as those of the library do. What it is told is judged at once: an
answer names workers that have said so, as they have said it, each once, and none for longer than it said by the
clock of its node. Messages may come late, or twice, so nothing is claimed of when a worker is gone.
"""

from __future__ import annotations

from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.simulation.clients.client import Client
from skuld_py.simulation.history import Operation, Status
from skuld_py.simulation.options import Options

SLOTS = {"anna": 1, "berta": 2, "carla": 3}
LEASE_MS = (1_500, 6_000)
GOODBYE, MOVE, MUSTER = 0.04, 0.04, 0.3
"""Shares of reports that are the last for a while, or go to another node; and of times at which it is asked who is
there."""
SLACK_MS = 10
"""A node counts in whole milliseconds, and answers some after it has looked."""


class Attendee:
    """Reports for some workers."""

    def __init__(self, client: Client, options: Options) -> None:
        self._client = client
        self._workload = options.workload
        self._nodes: dict[str, str] = {}
        self._said: dict[str, int] = {}
        """The longest lease with which a worker has said that it is there."""

    def begin(self) -> None:
        """Report, soon."""
        self._client.repeat(self._workload.report_ms, self._act)

    def _act(self) -> None:
        random = self._client.random
        if random.random() < MUSTER:
            self._client.ask(lambda request: m.Muster(request, ""), self._on_mustered)
        else:
            self._report(random.choice([*SLOTS]))

    def _report(self, name: str) -> None:
        random = self._client.random
        lease_ms = 0 if random.random() < GOODBYE else random.randint(*LEASE_MS)
        self._said[name] = max(self._said.get(name, 0), lease_ms)
        if random.random() < MOVE:
            self._nodes.pop(name, None)
        node = self._nodes.setdefault(name, random.choice(self._client.nodes))
        worker = m.WorkerRow(name, "host", SLOTS[name], self._workload.queues[:1], columns.pack_u64([1]), "", "",
                             0, 0, 0, "", "", 0)

        def then(operation: Operation) -> None:
            if operation.status is not Status.OK:
                self._nodes.pop(name, None)
        self._client.ask_at(node, lambda request: m.Report(request, lease_ms, (worker,)), then,
                            self._client.patience_ms)

    def _on_mustered(self, operation: Operation) -> None:
        answer = operation.answer
        if not isinstance(answer, m.Mustered):
            return
        rows = [row for row in answer.workers if row.holder in SLOTS]
        names = [row.holder for row in rows]
        assert names == sorted(set(names)), f"not each once, in order: {names}"
        for row in rows:
            is_said = row.slots == SLOTS[row.holder] and row.age_ms <= self._said[row.holder] + SLACK_MS
            assert is_said, f"{row.holder} has not said so: {row}"
