"""Lanes: the tasks of one ordering key, the oldest first, no more at a time than the lane is wide.

    table lane:  "C" route | id -> place             claims that may be held, whether their bodies are known or not
                 "W" route | id -> is open | place   tasks neither claimed nor over, the oldest first

Invariant: with ``n`` claims in a lane ``w`` wide the oldest ``w - n`` rows of W are open, all others closed.
Only an open task may become claimable. One that is open and not claimable yet (its time has not come, it rests
after a failure) keeps its turn, so the order in a lane is strict. ``w`` is 1 unless its queue says otherwise; two
keys that share a lane by chance share the narrower width.

``settle`` puts the flags right after any change of a lane, and says what changed, so that ``filing`` makes those
tasks claimable or not. It reads no more rows than the lane is wide, and two.

Rejected: keeping only the head of each lane and looking for the next when it is over, for which no row would say
that a task is behind; a counter for each lane, which has to be right after every merge.
"""

from __future__ import annotations

from collections.abc import Sequence

from skuld_py.model import ids
from skuld_py.model.store import Row, Store
from skuld_py.partition import tables

CLOSED, OPEN = b"\x00", b"\x01"
_CLAIMED, _WAITING = b"C", b"W"


class Lanes:
    """The lanes of one partition. ``widths``: of queues, by name, where it is not 1."""

    def __init__(self, store: Store, prefix: bytes, widths: dict[bytes, int]) -> None:
        self._store = store
        self._prefix = prefix
        self.widths = widths

    def hold(self, task_id: bytes, place: bytes) -> None:
        """A task of a lane is claimed."""
        self._store.put_many("lane", [(self._key(_CLAIMED, task_id), place)])

    def wait(self, task_id: bytes, place: bytes) -> None:
        """A task of a lane waits for its turn."""
        self._store.put_many("lane", [(self._key(_WAITING, task_id), CLOSED + place)])

    def leave(self, task_id: bytes) -> bytes:
        """Take a task out of its lane; gives the flag it waited with, nothing if it did not."""
        keys = [self._key(kind, task_id) for kind in (_CLAIMED, _WAITING)]
        return (self._store.pop_many("lane", keys)[1] or b"")[:1]

    def held(self, task_id: bytes) -> list[bytes]:
        """The tasks of its lane that are claimed."""
        return [key[-ids.ID_BYTES :] for key, _ in self._rows(_CLAIMED, task_id)]

    def crowded(self, task_ids: Sequence[bytes], places: Sequence[bytes], over_ms: int) -> dict[int, list[bytes]]:
        """Of each task that is to be claimed in a lane that others fill, by its index, those others: claims that
        may be held after ``over_ms`` by what is known here, however old the leader that granted them."""
        crowded: dict[int, list[bytes]] = {}
        granted: dict[bytes, None] = {}
        for index, task_id in enumerate(task_ids):
            if not ids.is_laned(task_id):
                continue
            held = [mate for mate in self.held(task_id) if mate != task_id and mate not in granted]
            records = self._store.get_many("history", [self._prefix + mate for mate in held])
            mates = [mate for mate in held
                     if int.from_bytes(records.get(self._prefix + mate, b"")[16:24], "big") > over_ms]
            mates += [mate for mate in granted if mate[16:] == task_id[16:]]
            if len(mates) >= self.width_of(places[index]):
                crowded[index] = mates
            else:
                granted[task_id] = None
        return crowded

    def width_of(self, place: bytes) -> int:
        """How many tasks of a lane may be claimed at a time."""
        return self.widths.get(tables.queue_of(place), 1)

    def settle(self, task_id: bytes) -> list[tuple[bytes, bytes]]:
        """Open and close what must be, in the lane of a task; gives (id, flag) of what changed."""
        places = [place for _, place in self._rows(_CLAIMED, task_id)]
        changed: list[Row] = []
        left = passed = 0
        start = self._prefix + _WAITING + task_id[16:]
        for index, (key, value) in enumerate(self._store.walk("lane", start, tables.end_of(start))):
            if not index:
                left = min(map(self.width_of, (*places, value[1:]))) - len(places)
            flag = OPEN if index < left else CLOSED
            if flag != value[:1]:
                changed.append((key, flag + value[1:]))
            elif flag == CLOSED:
                passed += 1
                if passed == 2:  # one may have come in among the open ones, behind two there are none
                    break
        self._store.put_many("lane", changed)
        return [(key[-ids.ID_BYTES :], value[:1]) for key, value in changed]

    def following(self, after: bytes, limit: int) -> list[bytes]:
        """A task of each of the next lanes with waiting ones, by route, behind that of the task ``after``."""
        base = self._prefix + _WAITING
        found: list[bytes] = []
        start = base + after[16:] + b"\xff" * ids.ID_BYTES if after else base
        while len(found) < limit:
            rows = self._store.scan("lane", start, tables.end_of(base), 1)
            if not rows:
                break
            found.append(rows[0][0][-ids.ID_BYTES :])
            start = rows[0][0][: len(base) + 4] + b"\xff" * ids.ID_BYTES
        return found

    def _rows(self, kind: bytes, task_id: bytes) -> Sequence[Row]:
        start = self._prefix + kind + task_id[16:]
        return list(self._store.walk("lane", start, tables.end_of(start)))

    def _key(self, kind: bytes, task_id: bytes) -> bytes:
        return self._prefix + kind + task_id[16:] + task_id
