"""The verbs of an archiver: get the page that is to be archived, and confirm that it is.

    while (page := client.collectable(partition)).tasks:
        write(page.tasks)  # durably
        client.archived(page)

Only pages that ``archived`` was called for are deleted. Any other is offered again, perhaps together with other
tasks: what was written already may be written once more, and is the same.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from skuld_py.client.asking import Work, ask, verb
from skuld_py.client.reading import task_of
from skuld_py.errors import Refused
from skuld_py.model import ids as task_ids
from skuld_py.model import messages as m
from skuld_py.model.fields import U63_MAX
from skuld_py.model.task import ClaimView, Task


@attrs.frozen
class Page:
    """Ended tasks of one partition, with payloads, results, errors and whole logs, however long.

    Without tasks: ``is_under_way`` says that some may be on offer soon, ``awaited`` names the nodes that
    collection of this partition cannot do without. The rest is the cluster's: what exactly is deleted.
    """

    partition: int
    tasks: tuple[Task, ...]
    is_under_way: bool
    awaited: tuple[str, ...] = ()
    epoch: int = 0
    ids: bytes = attrs.field(default=b"", repr=False)
    digests: bytes = attrs.field(default=b"", repr=False)


class Archiving:
    """Needs the wall's time."""

    _wall_ms: Callable[[], int]

    @verb
    def collectable(self, partition: int) -> Work[Page]:
        """The page of a partition that is old enough to be deleted and waits to be archived. Refused as
        ``no_archive`` where nodes delete without an archive, or nothing at all."""
        if type(partition) is not int or not 0 <= partition <= U63_MAX:
            raise Refused("bad_partition", f"partition: {str(partition)[:40]} is no number of a partition")
        answer = (yield from ask(m.Offered, m.Offer(0, partition))).message
        if not answer.ids:
            return Page(partition, (), answer.is_under_way, answer.awaited)
        cut, tasks = task_ids.split(answer.cut), list[Task]()
        for row in answer.tasks:
            if len(row.body):
                task = task_of(row, self._wall_ms())
                tasks.append((yield from self._with_whole_logs(task)) if row.id in cut else task)
        return Page(partition, tuple(tasks), True, (), answer.epoch, answer.ids, answer.digests)

    @verb
    def archived(self, page: Page) -> Work[int]:
        """Say that all tasks of a page are where they are to stay; gives how many were deleted now. 0 when the
        page is not on offer any more, since the leader has changed: what is left of it is offered again."""
        if not page.ids:
            return 0
        question = m.Discard(0, page.partition, page.epoch, page.ids, page.digests)
        return (yield from ask(m.Discarded, question)).message.count

    def _with_whole_logs(self, task: Task) -> Work[Task]:
        claims: list[ClaimView] = []
        for claim in task.claims:
            log = list(claim.log)
            while True:
                question = m.ReadLog(0, task.id, claim.token, len(log), m.PAGE_ENTRIES_MAX, 0)
                entries = (yield from ask(m.Logged, question)).message.entries.unpack()
                if not entries:
                    break
                log += entries
            claims.append(attrs.evolve(claim, log=tuple(log)))
        return attrs.evolve(task, claims=tuple(claims))
