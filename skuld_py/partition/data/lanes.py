"""Lanes: the tasks of one ordering key, the oldest first, no more at a time than the lane is wide.

    table lane:  "c" route | tag | id -> place             claims that may be held
                 "w" route | tag | id -> is open | place   tasks neither claimed nor over, the oldest first

A lane is 64 bits of the hash of queue and key: the route, which the id tells, and the tag, which only the body
does. A claim whose body is not known here has the tag 0, and fills all lanes of its route: it may be of any.

Invariant: with ``n`` claims in a lane ``w`` wide the oldest ``w - n`` rows of "w" are open, all others closed.
Only an open task may become claimable. One that is open and not claimable yet (its time has not come, it rests
after a failure) keeps its turn, so the order in a lane is strict. ``w`` is 1 unless its queue says otherwise.

``settle`` puts the flags right after any change of a lane, and says what changed, so that ``filing`` makes those
tasks claimable or not. It reads two rows more than the lane is wide, and as much for each other lane of the route,
which keys may share by chance.

Releases before knew lanes by their routes alone, in rows "C" and "W" without tags. Those of a route are taken over
(``_adopt``) when one of it changes, and otherwise by the sweep of the first turns; ids are what they were.

Rejected: keeping only the head of each lane and looking for the next when it is over, for which no row would say
that a task is behind; a counter for each lane, which has to be right after every merge; 32 more bits of the hash
in the ids, whose nonce alone keeps those of two clients apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, takewhile

from skuld_py.model import ids
from skuld_py.model.body import Body
from skuld_py.model.store import Row, Store
from skuld_py.partition.data import tables

AHEAD_MAX = 10
"""How many of the tasks before it in its lane are named for a task."""
CLOSED, OPEN = b"\x00", b"\x01"
UNKNOWN = bytes(ids.TAG_BYTES)
_CLAIMED, _WAITING = b"c", b"w"
_OLD_KINDS = {b"C": _CLAIMED, b"W": _WAITING}
_ROUTE_BYTES = 4


class Lanes:
    """The lanes of one partition. ``widths``: of queues, by name, where it is not 1."""

    def __init__(self, store: Store, prefix: bytes, widths: dict[bytes, int]) -> None:
        self._store = store
        self._prefix = prefix
        self.widths = widths
        self.has_old = bool(self.old(1))

    def hold(self, task_id: bytes, place: bytes, tag: bytes = UNKNOWN) -> None:
        """A task of a lane is claimed."""
        self._store.put_many("lane", [(self._key(_CLAIMED, task_id, tag), place)])

    def wait(self, task_id: bytes, place: bytes, tag: bytes) -> None:
        """A task of a lane waits for its turn."""
        self._store.put_many("lane", [(self._key(_WAITING, task_id, tag), CLOSED + place)])

    def leave(self, task_id: bytes) -> bytes:
        """Take a task out of its lane; gives the flag it waited with, nothing if it did not."""
        self._adopt(task_id)
        turn = b""
        for kind in (_CLAIMED, _WAITING):
            for row in self._store.pop_many("lane", [self._key(kind, task_id, tag)
                                                     for tag in self._tags(kind, task_id)]):
                turn = row[:1] if row is not None and kind == _WAITING else turn
        return turn

    def is_closed(self, task_id: bytes) -> bool:
        """Whether a task waits and its turn has not come."""
        return self._find(_WAITING, task_id)[1][:1] == CLOSED

    def ahead(self, task_id: bytes) -> list[bytes]:
        """The tasks of a task's lane whose turn it is, if the task waits and its own turn has not come."""
        tag, row = self._find(_WAITING, task_id)
        if row[:1] != CLOSED:
            return []
        start = self._lane(_WAITING, task_id, tag)
        turns = takewhile(lambda row: row[1][:1] == OPEN, self._store.walk("lane", start, tables.end_of(start)))
        held = [key[-ids.ID_BYTES :] for key, _ in self._claims(task_id, tag)]
        return [*held, *(key[-ids.ID_BYTES :] for key, _ in islice(turns, AHEAD_MAX))][:AHEAD_MAX]

    def crowded(self, task_ids: Sequence[bytes], places: Sequence[bytes], over_ms: int) -> dict[int, list[bytes]]:
        """The tasks that are to be claimed in a full lane, by index, each with the tasks that fill it: those whose
        claims may be held after ``over_ms``, however old the leader that granted them."""
        crowded: dict[int, list[bytes]] = {}
        granted: dict[bytes, bytes] = {}
        for index, task_id in enumerate(task_ids):
            if not ids.is_laned(task_id):
                continue
            tag = self._tag_of(task_id)
            held = [mate for key, _ in self._claims(task_id, tag)
                    if (mate := key[-ids.ID_BYTES :]) != task_id and mate not in granted]
            records = self._store.get_many("history", [self._prefix + mate for mate in held])
            mates = [mate for mate in held
                     if int.from_bytes(records.get(self._prefix + mate, b"")[16:24], "big") > over_ms]
            mates += [mate for mate, other in granted.items() if mate[16:] == task_id[16:]
                      and (tag == other or UNKNOWN in (tag, other))]
            if len(mates) >= self.width_of(places[index]):
                crowded[index] = mates
            else:
                granted[task_id] = tag
        return crowded

    def width_of(self, place: bytes) -> int:
        """How many tasks of a lane may be claimed at a time."""
        return self.widths.get(tables.queue_of(place), 1)

    def settle(self, task_id: bytes) -> list[tuple[bytes, bytes]]:
        """Open and close what must be, in the lanes of a task's route; gives (id, flag) of what changed."""
        self._adopt(task_id)
        changed = [row for tag in self._tags(_WAITING, task_id) for row in self._settled(task_id, tag)]
        self._store.put_many("lane", changed)
        return [(key[-ids.ID_BYTES :], value[:1]) for key, value in changed]

    def _settled(self, task_id: bytes, tag: bytes) -> list[Row]:
        places = [place for _, place in self._claims(task_id, tag)]
        changed: list[Row] = []
        left = passed = 0
        start = self._lane(_WAITING, task_id, tag)
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
        return changed

    def following(self, after: bytes, limit: int) -> list[bytes]:
        """A task of each of the next routes with waiting ones, behind that of the task ``after``."""
        return self._heads(_WAITING, after[16:], limit)

    def old(self, limit: int) -> list[bytes]:
        """A task of each of the next routes with rows of a release before; none when all are taken over."""
        return [task_id for kind in _OLD_KINDS for task_id in self._heads(kind, b"", limit)][:limit]

    def _heads(self, kind: bytes, after: bytes, limit: int) -> list[bytes]:
        base, found = self._prefix + kind, list[bytes]()
        start = base + after + _BEHIND if after else base
        while len(found) < limit and (rows := self._store.scan("lane", start, tables.end_of(base), 1)):
            found.append(rows[0][0][-ids.ID_BYTES :])
            start = rows[0][0][: len(base) + _ROUTE_BYTES] + _BEHIND
        return found

    def _adopt(self, task_id: bytes) -> None:
        """Take over what a release before has written of a route. The flags stay, for ``settle`` to change."""
        if not self.has_old:
            return
        for old, kind in _OLD_KINDS.items():
            start = self._prefix + old + task_id[16:]
            rows = list(self._store.walk("lane", start, tables.end_of(start)))
            tags = self._tags_by_body([key[-ids.ID_BYTES :] for key, _ in rows])
            self._store.pop_many("lane", [key for key, _ in rows])
            self._store.put_many("lane", [(self._key(kind, key[-ids.ID_BYTES :], tag), value)
                                          for (key, value), tag in zip(rows, tags, strict=True)])
        self.has_old = bool(self.old(1))

    def _tags_by_body(self, task_ids: Sequence[bytes]) -> list[bytes]:
        keys = [self._prefix + task_id for task_id in task_ids]
        bodies = self._store.get_many("body", keys)
        return [tag_of(Body.decode(bodies[key])) if key in bodies else UNKNOWN for key in keys]

    # -- rows ----------------------------------------------------------------------------------

    def _tags(self, kind: bytes, task_id: bytes) -> Iterator[bytes]:
        """The tags of a route, rising: mostly one."""
        base = self._prefix + kind + task_id[16:]
        start, stop = base, tables.end_of(base)
        while rows := self._store.scan("lane", start, stop, 1):
            tag = rows[0][0][len(base) : len(base) + ids.TAG_BYTES]
            yield tag
            start = base + tag + _BEHIND[ids.TAG_BYTES :]

    def _find(self, kind: bytes, task_id: bytes) -> tuple[bytes, bytes]:
        """Tag and row of a task; an empty row if there is none."""
        self._adopt(task_id)
        for tag in self._tags(kind, task_id):
            row = self._store.get("lane", self._key(kind, task_id, tag))
            if row is not None:
                return tag, row
        return UNKNOWN, b""

    def _tag_of(self, task_id: bytes) -> bytes:
        """The tag of a task that waits or is claimed here."""
        tag, row = self._find(_WAITING, task_id)
        return tag if row else self._find(_CLAIMED, task_id)[0]

    def _claims(self, task_id: bytes, tag: bytes) -> list[Row]:
        """Claims that may be held in a lane: those of its tag and of no tag; with an unknown tag, all of its
        route."""
        starts = [self._lane(_CLAIMED, task_id, each) for each in (UNKNOWN, tag)]
        if tag == UNKNOWN:
            starts = [self._prefix + _CLAIMED + task_id[16:]]
        return [row for start in starts for row in self._store.walk("lane", start, tables.end_of(start))]

    def _lane(self, kind: bytes, task_id: bytes, tag: bytes) -> bytes:
        return self._prefix + kind + task_id[16:] + tag

    def _key(self, kind: bytes, task_id: bytes, tag: bytes) -> bytes:
        return self._lane(kind, task_id, tag) + task_id


_BEHIND = b"\xff" * (ids.TAG_BYTES + ids.ID_BYTES)
"""Behind all rows of a route."""


def tag_of(body: Body) -> bytes:
    """Which of the lanes of its route a task is of."""
    return ids.lane_tag(body.header.queue, body.key)
