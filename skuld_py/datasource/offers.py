"""How far a stream of ended tasks has come: what it gave to Spark, and what the cluster still has of that.

The stream is an archiver. Each partition offers a page of tasks that ended long enough ago; once a batch of
Spark's is committed, its tasks are confirmed, and the cluster deletes them. So nothing is remembered here but what
lies between the two, and that is the offset, which Spark keeps.

    offset = {"version": 1, "round": n, "new": {partition: ids}, "old": {partition: ids}}

``new`` are the tasks of the batch that ends at this offset; ``old`` those of earlier batches that may still be
offered again, since their confirmation was lost or the partition's leader changed. Ids are a column of 20 bytes
each, packed and as base64.

Invariants. A task is ``new`` in one offset only: what is offered again is known. A batch is read again from its
offset alone, by ids, for as long as it is not committed: until then nothing of it is confirmed.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import attrs

from skuld_py.archive.archiver import PASSING
from skuld_py.client.archiving import Page
from skuld_py.errors import Refused, SkuldError, Uncertain
from skuld_py.model import ids
from skuld_py.model.task import Task

Ids = Mapping[int, tuple[bytes, ...]]
VERSION = 1
LOOK_S = 0.1


class Client(Protocol):
    """What is asked."""

    def collectable(self, partition: int) -> Page:
        """The page on offer."""

    def archived(self, page: Page) -> int:
        """Have a page deleted; how many tasks were deleted."""

    def get_many(self, ids: list[bytes]) -> list[Task]:
        """The tasks that exist."""


@attrs.frozen
class Offset:
    """The end of a batch, by its number."""

    round: int = 0
    new: Ids = attrs.field(factory=dict)
    old: Ids = attrs.field(factory=dict)

    def encode(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"version": VERSION, "round": self.round, "new": _packed(self.new), "old": _packed(self.old)}

    @classmethod
    def decode(cls, given: Mapping[str, Any]) -> Offset:
        """From JSON; ``Refused`` when it is none of this stream's."""
        try:
            if given["version"] != VERSION:
                raise ValueError(f"version {given['version']}")
            return cls(int(given["round"]), _unpacked(given["new"]), _unpacked(given["old"]))
        except (KeyError, TypeError, ValueError, AttributeError, zlib.error) as problem:
            raise Refused("bad_offset", f"checkpoint: its offset is none of this stream: {problem!r:.100}; name"
                          " the checkpoint of this query, or begin with an empty one") from None

    def given(self, partition: int) -> set[bytes]:
        """What was given of a partition and may be there still."""
        return {*self.new.get(partition, ()), *self.old.get(partition, ())}


class Stream:
    """Reads on from an offset. ``clock`` and ``pause`` are those of a wait for pages to come."""

    def __init__(self, client: Client, partitions: int, most: int, clock: Callable[[], float],
                 pause: Callable[[float], None]) -> None:
        self._client = client
        self._partitions = partitions
        self._most = most
        self._clock = clock
        self._pause = pause
        self._is_more = False

    def read(self, start: Offset, wait_s: float = 0.0) -> tuple[list[Task], Offset]:
        """Confirm the batch that ends at ``start``, which Spark has committed, and give the next, with its end:
        ``start`` itself when nothing is on offer. Waits for pages that are about to be offered."""
        until, left = self._clock() + wait_s, {number: start.given(number) for number in range(self._partitions)}
        while True:
            self._is_more = False
            tasks, new = list[Task](), dict[int, tuple[bytes, ...]]()
            for partition in range(self._partitions):
                if len(tasks) >= self._most:
                    break
                found = self._next(partition, left)[: self._most - len(tasks)]
                if found:
                    tasks += found
                    new[partition] = tuple(task.id for task in found)
            if tasks:
                old = {partition: tuple(sorted(known)) for partition, known in left.items() if known}
                return tasks, Offset(start.round + 1, new, old)
            if not self._is_more or self._clock() >= until:
                return [], start
            self._pause(LOOK_S)

    def again(self, end: Offset) -> list[Task]:
        """The tasks of the batch that ends here; ``Refused`` if they are not there any more."""
        tasks = list[Task]()
        for partition, wanted in sorted(end.new.items()):
            page = self._offered(partition)
            found = {task.id: task for task in (page.tasks if page is not None else ())}
            if not {*wanted} <= {*found}:
                found = {task.id: task for task in self._client.get_many(list(wanted))}
            missing = [task_id for task_id in wanted if task_id not in found]
            if missing:
                raise Refused("collected", f"checkpoint: {len(missing)} tasks of batch {end.round} are deleted,"
                              " though it was not committed; does something else archive this cluster?")
            tasks += [found[task_id] for task_id in wanted]
        return tasks

    def _next(self, partition: int, left: dict[int, set[bytes]]) -> list[Task]:
        """What is new of a partition. ``left`` are those given before; what is known to be gone is taken out."""
        page = self._offered(partition)
        known = left[partition]
        if page is not None and page.ids and {*ids.split(page.ids)} <= known and self._confirm(page):
            known -= {*ids.split(page.ids)}
            page = self._offered(partition)
        if page is None:
            self._is_more = True
            return []
        self._is_more = self._is_more or (not page.ids and page.is_under_way)
        fresh = [task for task in page.tasks if task.id not in known]
        if known and not known <= {*ids.split(page.ids)}:
            known &= {task.id for task in self._client.get_many(sorted(known))}
        return fresh

    def _offered(self, partition: int) -> Page | None:
        """The page on offer; None where nobody can say now."""
        try:
            return self._client.collectable(partition)
        except SkuldError as error:
            if not isinstance(error, Uncertain) and error.code not in PASSING:
                raise
            return None

    def _confirm(self, page: Page) -> bool:
        try:
            return self._client.archived(page) > 0
        except SkuldError as error:
            if not isinstance(error, Uncertain) and error.code not in PASSING:
                raise
            return False


def _packed(given: Ids) -> dict[str, str]:
    return {str(partition): base64.b64encode(zlib.compress(b"".join(column), 6)).decode()
            for partition, column in sorted(given.items())}


def _unpacked(given: Mapping[str, str]) -> Ids:
    return {int(partition): tuple(ids.split(zlib.decompress(base64.b64decode(column))))
            for partition, column in given.items()}
