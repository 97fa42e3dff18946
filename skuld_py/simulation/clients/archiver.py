"""A client that archives what is to be collected: notes what it was offered, says so, and sometimes forgets to."""

from __future__ import annotations

from skuld_py.model import messages as m
from skuld_py.simulation.clients.client import REPEATS_MAX, Client
from skuld_py.simulation.history import Operation, Status
from skuld_py.simulation.options import Options

LOOK_MS = 400
AGAIN_MS = 100
FORGETS = 0.2
"""Share of pages that are read and never heard of again, as when an archiver dies."""


class Archiver:
    """Asks for a page of some partition, keeps it, and says so."""

    def __init__(self, client: Client, options: Options) -> None:
        self._client = client
        self._partitions = options.parameters.partitions
        self._is_faithful = False

    def begin(self) -> None:
        """Archive now and then."""
        self._client.repeat(LOOK_MS, lambda: self._look(self._client.random.randrange(self._partitions)))

    def archive_all(self) -> None:
        """Archive all that is offered, until the end."""
        self._is_faithful = True
        for partition in range(self._partitions):
            self._go_on(partition)

    def _go_on(self, partition: int) -> None:
        self._look(partition)
        self._client.later(AGAIN_MS, self._go_on, partition)

    def _look(self, partition: int) -> None:
        self._client.ask(lambda request: m.Offer(request, partition), self._on_offered)

    def _on_offered(self, operation: Operation) -> None:
        page, question = operation.answer, operation.message
        if not isinstance(page, m.Offered) or not isinstance(question, m.Offer) or not page.ids:
            return
        if self._is_faithful or self._client.random.random() > FORGETS:
            self._client.history.archive(page.tasks)
            self._discard(question.partition, page, REPEATS_MAX)

    def _discard(self, partition: int, page: m.Offered, repeats: int) -> None:
        def then(operation: Operation) -> None:
            if operation.status is Status.INFO and repeats:
                self._discard(partition, page, repeats - 1)
        self._client.ask(lambda request: m.Discard(request, partition, page.epoch, page.ids, page.digests), then)
