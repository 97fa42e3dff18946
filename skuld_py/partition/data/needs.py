"""An index from each task to the tasks kept here that name it among their dependencies.

    need   dependency dependent -> nothing

Invariant: each body kept here has one row for each task that it names, from its coming to its going, whatever
becomes of the two. So a node that keeps a dependent, blocked or not, knows by one look what it needs; and since
what a kept task needs is kept, so is all that is behind it.

Rejected: results copied into the dependent's record (a join of 1,000 parts would hold 64 MB in each of its
copies); a count kept on the dependency (written from other partitions, it must never be lost or doubled); the rows
by which blocked tasks wait (they go when they are met, which is when results begin to be wanted).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from skuld_py.model.body import Body, Header, header_of
from skuld_py.model.ids import ID_BYTES
from skuld_py.model.prelude import DEPS, ONE_DEP_BYTES, only_deps
from skuld_py.model.store import Row, Store
from skuld_py.partition.data import tables

_LAST = b"\xff" * ID_BYTES
_MARK = b"needs"
"""Key, in ``meta``, of the mark that all rows of this store are made."""


class Needs:
    """The rows of ``need`` of one partition."""

    def __init__(self, store: Store, prefix: bytes) -> None:
        self._store = store
        self._prefix = prefix
        self._least = b""
        """No task below is needed here."""

    def add(self, header: bytes, bodies: Sequence[Row]) -> None:
        """Bodies of one header have come, by their keys."""
        parsed = Header.decode(header)
        if parsed.prelude & DEPS:
            size = len(header) + 2
            ones = only_deps(parsed.prelude, [body[size : size + ONE_DEP_BYTES] for _, body in bodies])
            self._put(zip(ones, [key[2:] for key, _ in bodies], strict=True) if ones else [
                (dep, key[2:]) for key, body in bodies for dep in Body.decode(body).deps])

    def add_each(self, bodies: Sequence[Row]) -> None:
        """Bodies of any headers have come, by their keys."""
        self._put([(dep, key[2:]) for key, body in bodies if header_of(body).prelude & DEPS
                   for dep in Body.decode(body).deps])

    def _put(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        rows = [(self._prefix + dep + task_id, b"") for dep, task_id in pairs]
        if rows:
            self._store.put_many("need", rows)
            self._least = min(self._least, min(rows)[0][2 : 2 + ID_BYTES])

    def remove(self, task_id: bytes, body: bytes) -> None:
        """A body goes."""
        if header_of(body).prelude & DEPS:
            self._store.pop_many("need", [self._prefix + dep + task_id for dep in Body.options_of(body).deps])

    def of(self, task_ids: Sequence[bytes], limit: int, last: bytes) -> dict[bytes, list[bytes]]:
        """The tasks among these, of which ``last`` is the last, that tasks kept here need, each with up to
        ``limit`` of those."""
        found: dict[bytes, list[bytes]] = {}
        if task_ids and self._is_any_upto(last):
            for task_id in task_ids:
                base = self._prefix + task_id
                rows = self._store.scan("need", base, tables.end_of(base), limit)
                if rows:
                    found[task_id] = [key[-ID_BYTES:] for key, _ in rows]
        return found

    def is_any_upto(self, time_ms: int) -> bool:
        """Whether tasks with ids up to a time may be needed here."""
        return self._is_any_upto(time_ms.to_bytes(8, "big") + _LAST[8:])

    def _is_any_upto(self, last: bytes) -> bool:
        """Whether a task up to this one may be needed: mostly known without a look."""
        if self._least <= last:
            rows = self._store.scan("need", self._prefix + self._least, tables.end_of(self._prefix + _LAST), 1)
            self._least = rows[0][0][2 : 2 + ID_BYTES] if rows else _LAST
        return self._least <= last


def needed(indexes: Iterable[Needs], task_ids: Sequence[bytes]) -> dict[bytes, None]:
    """Which of these tasks may not go together, because others need them, or need one that may not go."""
    behind: dict[bytes, list[bytes]] = {}
    last = max(task_ids, default=b"")
    for index in indexes:
        for task_id, dependents in index.of(task_ids, len(task_ids) + 1, last).items():
            behind.setdefault(task_id, []).extend(dependents)
    if not behind:
        return {}
    going = dict.fromkeys(task_ids)
    while kept := [task_id for task_id in sorted(behind, reverse=True) if task_id in going
                   and any(dependent not in going for dependent in behind[task_id])]:
        for task_id in kept:
            del going[task_id]
    return {task_id: None for task_id in task_ids if task_id not in going}


def make_needs(store: Store, partitions: int, rows: int = 1_000) -> None:
    """Make the rows of a store from before there were any; committed in steps."""
    if store.get("meta", _MARK) is None:
        for partition in range(partitions):
            _make(store, tables.prefix_of(partition), rows)
        store.put_many("meta", [(_MARK, b"")])
        store.commit()


def _make(store: Store, prefix: bytes, limit: int) -> None:
    needs, start = Needs(store, prefix), prefix
    while rows := store.scan("body", start, tables.end_of(prefix), limit):
        needs.add_each(rows)
        store.commit()
        start = rows[-1][0] + b"\0"
