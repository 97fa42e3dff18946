"""The verbs of an archiver: get the page that is to be archived, and confirm that it is.

    while (page := client.collectable(partition)).tasks:
        write(page.tasks)  # durably
        client.archived(page)

Only pages that ``archived`` was called for are deleted. Any other is offered again, perhaps together with other
tasks: what was written already may be written once more, and is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

import attrs

from skuld_py.client.asking import Work, ask, verb
from skuld_py.client.reading import task_of
from skuld_py.client.setting import Setting
from skuld_py.errors import Refused
from skuld_py.model import columns
from skuld_py.model import ids as task_ids
from skuld_py.model import messages as m
from skuld_py.model.archive_root import ARCHIVE, ROOT_CHARACTERS_MAX, ArchiveRoot, decode_root, is_root
from skuld_py.model.bounds import U63_MAX
from skuld_py.model.history import decode_history
from skuld_py.model.outcomes import FIRST_TOKEN, LOG_SEQS
from skuld_py.model.task import ClaimView, Task

Record = tuple[bytes, bytes, bytes, Sequence[tuple[int, int, bytes]]]
"""Of a task its id, its body, its history, and its entries by token and seq."""


@attrs.frozen
class Page:
    """Ended tasks of one partition, with payloads, results, errors and whole logs, however long.

    Without tasks: ``is_under_way`` says that some may be on offer soon, ``awaited`` names the nodes that
    collection of this partition cannot do without. The rest is the cluster's: what exactly is deleted.

    Of an archiver, instead of tasks, ``records``: one for each id, None where nothing is to be shown. ``number``:
    of the pages of an epoch it rises; 0 of a node of an earlier release, which offers one page at a time.
    ``due_ms``: what had ended by then may go by now, by the leader's clock and its ``--retention``; ``upto_ms``:
    what could go by then is gone; ``ended``: how many of the partition's tasks have ended, young ones included.
    ``is_others``: another archiver is given this partition's pages; ``deleted`` rises with each that goes.
    """

    partition: int
    tasks: tuple[Task, ...]
    is_under_way: bool
    awaited: tuple[str, ...] = ()
    epoch: int = 0
    ids: bytes = attrs.field(default=b"", repr=False)
    digests: bytes = attrs.field(default=b"", repr=False)
    number: int = 0
    due_ms: int = 0
    upto_ms: int = 0
    ended: int = 0
    records: Sequence[Record | None] = attrs.field(default=(), repr=False)
    is_others: bool = False
    deleted: int = 0


class Archiving(Setting):
    """Needs the wall's time, and a name to sign changes with."""

    _wall_ms: Callable[[], int]

    @verb
    def enter_archive(self, root: str, archive: str = "", *, replaces: bool = False,
                      moves: bool = True) -> Work[None]:
        """Say into which archive the cluster's ended tasks go: ``root`` is the place, ``archive`` the name that
        its manifest has, if it has one. Refused as ``other_archive`` where they go elsewhere, unless this one
        ``replaces`` that. One that was moved is the same, and its new place is noted; one that had no name yet is
        known by it from then on. Without ``moves`` its place is not noted anew, so that archivers which reach one
        archive by several paths do not tell it in turns. A cluster of an earlier release keeps no such thing:
        there nothing is said."""
        wanted = _archive_of(root, archive)
        for is_last in (False, True):
            try:
                values = yield from self._values(ARCHIVE, ARCHIVE)
                found = _root_of(values.get(ARCHIVE))
                is_known = found is not None and found.is_of(wanted)
                if found is not None and is_known and (
                        is_last or found.says(wanted) or (found.archive and not moves)):
                    return
                if found is not None and not is_known and (is_last or not replaces):
                    raise other_archive(found.root, root)
                yield from self._set(ARCHIVE, ARCHIVE, wanted.encode())
            except Refused as refusal:
                if refusal.code != "unknown_setting":
                    raise
                return

    @verb
    def collectable(self, partition: int) -> Work[Page]:
        """The page of a partition that is old enough to be deleted and waits to be archived. Refused as
        ``no_archive`` where nodes delete without an archive, or nothing at all."""
        _check(partition)
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
    def archive_root(self) -> Work[ArchiveRoot | None]:
        """Where the archive of this cluster's ended tasks is, as its archivers call it; None if none has said."""
        return _root_of((yield from self._values(ARCHIVE, ARCHIVE)).get(ARCHIVE))

    @verb
    def offered(self, partition: int, *, epoch: int = 0, after: int = 0, wanted_ms: int = 0,
                archiver: int = 0, leaves: bool = False) -> Work[Page]:
        """As ``collectable``, for archivers: a page as records, the one behind the page ``after`` of an epoch.
        With ``wanted_ms`` the leader does not wait before it collects up to that time. Of several archivers that
        ask, each with a number of its own, one is given pages; one that ``leaves`` gets none. A node of a release
        before protocol 3 gives the first page again, without a number."""
        _check(partition)
        question = m.Offer(0, partition, in_columns=True, epoch=epoch, after=after, wanted_ms=wanted_ms,
                           archiver=archiver, leaves=leaves)
        answer = (yield from ask(m.Offered, question)).message
        records = _records(answer) if answer.ids else []
        cut = task_ids.split(answer.cut)
        for index, record in enumerate(records if cut else ()):
            if record is not None and record[0] in cut:
                records[index] = yield from self._with_all_entries(record)
        return Page(partition, (), answer.is_under_way, answer.awaited, answer.epoch, answer.ids, answer.digests,
                    answer.number, answer.due_ms, answer.upto_ms, answer.ended, records, answer.is_others,
                    answer.deleted)

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
            log = yield from self._log_of(task.id, claim.token, len(claim.log))
            claims.append(attrs.evolve(claim, log=(*claim.log, *log)))
        return attrs.evolve(task, claims=tuple(claims))

    def _with_all_entries(self, record: Record) -> Work[Record]:
        task_id, _, history, entries = record
        kept = [entry for entry in entries if entry[0] < FIRST_TOKEN or entry[1] >= LOG_SEQS]
        for token in decode_history(history or None).claims.entries:
            kept += [(token, seq, data) for seq, data in enumerate((yield from self._log_of(task_id, token, 0)))]
        return (*record[:3], kept)

    def _log_of(self, task_id: bytes, token: int, start: int) -> Work[list[bytes]]:
        """All entries of a claim, from number ``start`` on."""
        log: list[bytes] = []
        while True:
            question = m.ReadLog(0, task_id, token, start + len(log), m.PAGE_ENTRIES_MAX, 0)
            entries = (yield from ask(m.Logged, question)).message.entries.unpack()
            if not entries:
                return log
            log += entries


def _archive_of(root: str, archive: str) -> ArchiveRoot:
    """What a caller gave; raises ``Refused`` when no register could have it."""
    for name, text, least in (("root", root, 1), ("archive", archive, 0)):
        if type(text) is not str or not least <= len(text) <= ROOT_CHARACTERS_MAX:
            raise Refused("bad_root", f"{name}: {str(text)[:40]!r} is no text of {least} to {ROOT_CHARACTERS_MAX}"
                          " characters")
    return ArchiveRoot(root, archive)


def other_archive(known: str, root: str) -> Refused:
    """What is said of a root when the cluster's archive is another one, known to be at ``known``."""
    words = (f"root: {root} has another archive than this cluster's; if its disk is not mounted, mount it, or with"
             " --replace begin this one")
    if known != root:
        words = (f"root: this cluster's ended tasks go to the archive at {known}, and would be scattered over two;"
                 " archive to that one, or with --replace from now on to this one")
    return Refused("other_archive", words, root=known)


def _root_of(value: bytes | None) -> ArchiveRoot | None:
    """A register that no release could have written counts as none."""
    return decode_root(value) if value is not None and is_root(value) else None


def _check(partition: int) -> None:
    if type(partition) is not int or not 0 <= partition <= U63_MAX:
        raise Refused("bad_partition", f"partition: {str(partition)[:40]} is no number of a partition")


def _records(answer: m.Offered) -> list[Record | None]:
    """One for each id. Raises ``Malformed`` when columns do not fit."""
    ids = task_ids.split(answer.ids)
    if not len(answer.bodies):
        rows = {row.id: _record(row) for row in answer.tasks if len(row.body)}
        return [rows.get(task_id) for task_id in ids]
    bodies, histories = answer.bodies.unpack("bodies"), answer.histories.unpack("histories")
    entries: Sequence[Sequence[tuple[int, int, bytes]]] = [()] * len(ids)
    if answer.counts:
        each = list(zip(columns.unpack_u64(answer.tokens), columns.unpack_u64(answer.seqs),
                        answer.entries.unpack("entries"), strict=True))
        ends = [0, *accumulate(columns.unpack_u64(answer.counts))]
        entries = [each[start:end] for start, end in pairwise(ends)]
    found: list[Record | None] = list(zip(ids, bodies, histories, entries, strict=True))
    return found if b"" not in bodies else [record if body else None
                                            for record, body in zip(found, bodies, strict=True)]


def _record(row: m.TaskRow) -> Record:
    numbers = columns.unpack_u64(row.tokens), columns.unpack_u64(row.seqs)
    return row.id, row.body.unpack()[0], row.history, [*zip(*numbers, row.entries.unpack(), strict=True)]
