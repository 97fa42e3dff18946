"""Where the tasks of a partition wait: the indexes over its records.

Invariants: the indexes are a function of the replicated data and of which times this node has seen pass. A task
with a body and without a completion is in exactly one of ``ready`` (claimable), ``lease`` (claimed), ``time`` (not
to be claimed before), ``dep`` (blocked by its dependencies; see ``waiting``) or else the closed rows of ``lane``
(blocked behind others of its ordering key; see ``lanes``), and ``dead`` (cancelled or dead); a completed one is
in none. One that waits in any way and expires is in ``expiry`` besides. So a claim never scans, memory does not
grow with the backlog, and a new leader serves at once.

Batches take the common case as columns: fresh ids without options, one claim, one completion. Whatever is odd goes
through ``refile``, which takes a task out of wherever it may be and files it by ``state_of``. The laws tests hold
the two against each other. A value of ``ready`` and the first byte of one of ``lease`` tell the plain from the
odd, so the columns need not read bodies.

A claim can arrive before its task's body (the copies travel apart). Then the lease entry says so, and the task is
filed only once the body is here.

When a lane changes, its tasks become claimable or cease to be. What waits for dependencies stays where it is, its
turn come or not.

Every node's own clock moves its tasks on from ``lease`` and ``time``; a leader grants by its own. That a task has
expired is its leader's word, a mark in the history: no follower's clock makes a task dead.

Rejected: one table of keys and values by state, for batches and single tasks alike. Batches need columns, and no
call for each task; and a single one is taken out of wherever it is, since time may have changed its state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import repeat
from operator import add

import attrs

from skuld_py.crdt import Min
from skuld_py.model import columns
from skuld_py.model.body import Body, split_body
from skuld_py.model.history import CLAIM, EMPTY_HISTORY, HISTORY_HEAD, History, decode_history
from skuld_py.model.ids import ID_BYTES, is_laned
from skuld_py.model.notes import MET, SUB, End, lets_go, met_seq, split_met
from skuld_py.model.prelude import only_deps
from skuld_py.model.state import State, due_of, state_of
from skuld_py.model.store import Row, Store
from skuld_py.partition.data import tables
from skuld_py.partition.data.bulletin import Bulletin
from skuld_py.partition.data.lanes import CLOSED, OPEN, Lanes, tag_of
from skuld_py.partition.data.needs import Needs
from skuld_py.partition.data.tables import BODY_ODD, BODY_PLAIN, BODY_UNKNOWN, ODD, PLAIN
from skuld_py.partition.data.tally import Tally
from skuld_py.partition.data.waiting import Waiting

_ONLY_ONE_DONE = met_seq(0, End.DONE)
_PENDING = (State.BLOCKED, State.SCHEDULED, State.WAITING)
_ONE_CLAIM = HISTORY_HEAD.size + CLAIM.size


class Filing:
    """The indexes of one partition, and its tally."""

    def __init__(self, store: Store, prefix: bytes, skew_ms: int, bulletin: Bulletin,
                 widths: dict[bytes, int]) -> None:
        self._store = store
        self._prefix = prefix
        self._skew_ms = skew_ms
        self._bulletin, self._holders = bulletin, bulletin.holders
        self._partition = int.from_bytes(prefix, "big")
        self.tally = Tally(store, prefix, bulletin)
        self.lanes = Lanes(store, prefix, widths)
        self._resettled = b"" if self.lanes.has_old else None
        """The last lane that was settled since a width, or the form of lanes, changed; None when all are."""
        self.waiting = Waiting(store, prefix, bulletin)
        self.needs = Needs(store, prefix)
        self._next_ms: dict[str, int | None] = {table: self._first(table) for table in ("lease", "time", "expiry")}
        self._take_stock()

    # -- columns -------------------------------------------------------------------------------

    def await_claim(self, place: bytes, ids: Sequence[bytes]) -> None:
        """New tasks without options and without a history wait at their place."""
        at = self._prefix + place
        self._store.put_many("ready", list(zip(columns.wrap(ids, at), repeat(PLAIN), strict=False)))
        self.tally.add(tables.queue_of(place), State.WAITING, len(ids))

    def await_dependency(self, place: bytes, ids: Sequence[bytes], deps: Sequence[bytes]) -> None:
        """New tasks without a history wait for one other task each, not met yet, and for no time."""
        self.waiting.block_by_one(ids, deps)
        self.tally.add(tables.queue_of(place), State.BLOCKED, len(ids))

    def heads(self, queue: str, after: bytes | None, limit: int) -> list[bytes]:
        """Waiting tasks of a queue as ``ready`` has them (place first, id last), best first, behind ``after``."""
        return self.ready(queue, after, limit)[0]

    def ready(self, queue: str, after: bytes | None, limit: int) -> tuple[list[bytes], list[bytes]]:
        """The same, and their marks (``tables``). A task may still be here when it has expired."""
        base = self._prefix + queue.encode() + b"\0"
        start = base if after is None else self._prefix + after + b"\0"
        rows = self._store.scan("ready", start, tables.end_of(base), limit)
        if not rows and after is None:
            self._bulletin.stock.discard(base[2:-1], self._partition)
        return [key[2:] for key, _ in rows], [mark for _, mark in rows]

    def move_to_lease(self, now_ms: int, deadline_ms: int, ids: Sequence[bytes], places: Sequence[bytes],
                      holder: str) -> None:
        """File tasks that had no history and now have a claim."""
        if not ids:
            return
        found = self._store.pop_many("ready", self._ready_keys(ids, places))
        if found.count(PLAIN) < len(found):
            odd = [index for index, was in enumerate(found) if was != PLAIN]
            self._claim_odd(now_ms, [(ids[index], places[index], found[index] is not None) for index in odd])
            ids, places = ([column[index] for index, was in enumerate(found) if was == PLAIN]
                           for column in (ids, places))
        at = self._prefix + deadline_ms.to_bytes(8, "big")
        counts = Counter(places)
        held = repeat(BODY_PLAIN + places[0]) if len(counts) == 1 else map(BODY_PLAIN.__add__, places)
        self._store.put_many("lease", list(zip(columns.wrap(ids, at), held, strict=False)))
        self._move(State.WAITING, State.CLAIMED, counts)
        if self._holders.queues:
            self._holders.begin(ids, places, holder)
        self._note("lease", deadline_ms)

    def _ready_keys(self, ids: Sequence[bytes], places: Sequence[bytes]) -> list[bytes]:
        """Most of those that are claimed together wait at one place."""
        if places.count(places[0]) == len(places):
            return columns.wrap(ids, self._prefix + places[0])
        return list(map(self._prefix.__add__, map(add, places, ids)))

    def _claim_odd(self, now_ms: int, rows: Sequence[tuple[bytes, bytes, bool]]) -> None:
        keys = [self._prefix + task_id for task_id, _, _ in rows]
        bodies, histories = self._store.get_many("body", keys), self._store.get_many("history", keys)
        for key, (task_id, place, was_ready) in zip(keys, rows, strict=True):
            if was_ready:
                self.tally.add(tables.queue_of(place), State.WAITING, -1)
            body = bodies.get(key)
            self.refile(now_ms, task_id, EMPTY_HISTORY, decode_history(histories.get(key)), body, body, place)

    def close_leases(self, now_ms: int, ids: Sequence[bytes], keys: Sequence[bytes]) -> None:
        """File tasks that were completed, given the keys of their leases too."""
        found = self._store.pop_many("lease", keys)
        if self._holders.queues:
            self._holders.end(zip(ids, found, strict=True))
        is_plain = True
        for held, count in Counter(found).items():
            if held is not None:
                self.tally.add(tables.queue_of(held[1:]), State.CLAIMED, -count)
                self.tally.add(tables.queue_of(held[1:]), State.COMPLETED, count * (held[:1] != BODY_UNKNOWN))
                is_plain = is_plain and held[:1] == BODY_PLAIN
        self.waiting.finish(ids)
        if not is_plain:
            ended = [task_id for task_id, held in zip(ids, found, strict=True) if held is not None]
            self._leave_lanes(now_ms, ended)
        if None not in found:
            return
        lapsed = [self._prefix + task_id for task_id, held in zip(ids, found, strict=True) if held is None]
        histories = self._store.get_many("history", lapsed)
        for key, body in self._store.get_many("body", lapsed).items():
            new = decode_history(histories[key])
            self.refile(now_ms, key[2:], attrs.evolve(new, completion=Min()), new, body, body)

    # -- one task ------------------------------------------------------------------------------

    def refile(self, now_ms: int, task_id: bytes, old: History, new: History, had: bytes | None,
               body: bytes | None, place: bytes | None = None) -> None:
        """Put a task where it belongs now, out of wherever it may have been.

        ``had`` and ``body``: its body's record before and now, None without. ``place``: where it waits if the body
        is not known here.
        """
        held = self._take_out(task_id, old, had)
        if body is not None:
            self.file(now_ms, task_id, new, Body.decode(body))
            return
        place = place or held
        if new.completion.value is not None:
            self.waiting.end(task_id, End.DONE, 0)
        if place is not None:
            self._file_claim_only(now_ms, task_id, new, place)
        if is_laned(task_id):
            self._settle_lane(now_ms, task_id)

    def remove(self, task_id: bytes, history: History, body: bytes | None) -> None:
        """A task goes for good."""
        self._take_out(task_id, history, body)
        self.waiting.forget(task_id)
        if body is not None:
            self.needs.remove(task_id, body)

    def _take_out(self, task_id: bytes, old: History, had: bytes | None) -> bytes | None:
        """Remove every entry that the task may have; gives the place that a lease told."""
        place = None
        turn = self.lanes.leave(task_id) if is_laned(task_id) else b""
        if old.horizon_ms:
            held = self._pop("lease", tables.lease_key(self._prefix, old.horizon_ms + self._skew_ms, task_id))
            if held is not None:
                place = held[1:]
                self._count(place, State.CLAIMED, -1)
                if self._holders.queues:
                    self._holders.end([(task_id, held)])
        if had is None:
            return place
        body = Body.options_of(had)
        place = tables.place_of(body.header)
        if old.completion.value is not None:
            self._count(place, State.COMPLETED, -1)
            return place
        if self.waiting.unblock(task_id, body) or turn == CLOSED:
            self._count(place, State.BLOCKED, -1)
        self._withdraw(task_id, place, old, body)
        ended = self._pop("dead", self._prefix + task_id)
        if ended is not None:
            self._count(place, ended[0], -1)
            self.waiting.reopen(task_id)
        if body.expires_ms:
            self._pop("expiry", tables.lease_key(self._prefix, body.expires_ms, task_id))
        return place

    def _file_claim_only(self, now_ms: int, task_id: bytes, history: History, place: bytes) -> None:
        deadline_ms = history.horizon_ms + self._skew_ms
        if history.completion.value is None and history.horizon_ms and deadline_ms > now_ms:
            self._put("lease", deadline_ms, task_id, BODY_UNKNOWN + place)
            self._holders.begin_one(task_id, place, history)
            self._count(place, State.CLAIMED, 1)
            if is_laned(task_id):
                self.lanes.hold(task_id, place)

    def file(self, now_ms: int, task_id: bytes, history: History, body: Body) -> None:
        """Enter a task that has no entry. As of the time 0 whatever depends on time is put in its order of time,
        and the sweep moves it on."""
        missing = self.waiting.unmet(task_id, body)
        state = state_of(history, body, now_ms, self._skew_ms, bool(missing))
        place = tables.place_of(body.header)
        if state is State.BLOCKED:
            self.waiting.block(task_id, body, missing)
        if is_laned(task_id):
            if state is State.CLAIMED:
                self.lanes.hold(task_id, place, tag_of(body))
            elif state in _PENDING:
                self.lanes.wait(task_id, place, tag_of(body))
                state = State.BLOCKED
        self._enter(state, task_id, history, body)
        if body.expires_ms and state in _PENDING:
            self._put("expiry", body.expires_ms, task_id, place)
        if is_laned(task_id):
            self._settle_lane(now_ms, task_id)

    def _enter(self, state: State, task_id: bytes, history: History, body: Body) -> None:
        """Put a task where those of a state are, and count it; those that wait for it are told of an end. The
        blocked have their rows besides."""
        place = tables.place_of(body.header)
        self._count(place, state, 1)
        match state:
            case State.WAITING:
                key, *_ = tables.ready_keys(self._prefix, task_id, body)
                self._store.put_many("ready", [(key, tables.ready_mark(body))])
            case State.CLAIMED:
                flag = BODY_ODD if body.header.flags else BODY_PLAIN
                self._put("lease", history.horizon_ms + self._skew_ms, task_id, flag + place)
                if self._holders.queues:
                    self._holders.begin_one(task_id, place, history)
            case State.SCHEDULED:
                self._put("time", due_of(history, body), task_id, place)
            case State.CANCELLED | State.DEAD:
                self._store.put_many("dead", [(self._prefix + task_id, bytes([state]) + place)])
                self.waiting.end(task_id, End.FAILED, history.round)
            case State.COMPLETED:
                self.waiting.end(task_id, End.DONE, 0)

    def _withdraw(self, task_id: bytes, place: bytes, history: History, body: Body) -> None:
        """Take a task out of those that are claimable, or will be when their time has come."""
        rows = self._store.pop_many("ready", tables.ready_keys(self._prefix, task_id, body))
        if any(row is not None for row in rows):
            self._count(place, State.WAITING, -1)
        due_ms = due_of(history, body)
        if due_ms and self._pop("time", tables.lease_key(self._prefix, due_ms, task_id)) is not None:
            self._count(place, State.SCHEDULED, -1)

    # -- turns in lanes -------------------------------------------------------------------------

    def widen(self, queue: str, width: int) -> None:
        """Let ``width`` tasks of each ordering key of a queue be claimed at a time; the sweep sees to the lanes
        that there are already."""
        self.lanes.widths[queue.encode()] = width
        self._resettled = b""
        self._bulletin.timed[self._partition] = None

    def is_behind(self, task_id: bytes) -> bool:
        """Whether a task waits for others of its key to be done."""
        return is_laned(task_id) and self.lanes.is_closed(task_id)

    def ahead(self, task_id: bytes) -> list[bytes]:
        """The tasks of its key that a task is behind; none if it is not."""
        return self.lanes.ahead(task_id) if is_laned(task_id) else []

    def is_blocked(self, task_id: bytes, body: Body) -> bool:
        """Whether a task waits for others: for those that it needs, by its notes, or for those before it of its
        key."""
        return self.is_behind(task_id) or bool(self.waiting.unmet(task_id, body))

    def _leave_lanes(self, now_ms: int, ids: Sequence[bytes]) -> None:
        for task_id in filter(is_laned, ids):
            self.lanes.leave(task_id)
            self._settle_lane(now_ms, task_id)

    def _settle_lane(self, now_ms: int, task_id: bytes) -> None:
        """Let those wait whose turn has come in the lane of a task, and take back those who are not to be claimed
        any more."""
        changed = self.lanes.settle(task_id)
        if not changed:
            return
        keys = [self._prefix + each for each, _ in changed]
        bodies, histories = self._store.get_many("body", keys), self._store.get_many("history", keys)
        for key, (each, flag) in zip(keys, changed, strict=True):
            history, body = decode_history(histories.get(key)), Body.decode(bodies[key])
            if self.waiting.is_blocked(each, body):
                continue
            place = tables.place_of(body.header)
            if flag == OPEN:
                self._count(place, State.BLOCKED, -1)
                is_due = due_of(history, body) <= now_ms
                self._enter(State.WAITING if is_due else State.SCHEDULED, each, history, body)
                continue
            self._count(place, State.BLOCKED, 1)
            self._withdraw(each, place, history, body)

    def _resettle(self, now_ms: int, limit: int) -> None:
        """After a width has changed, or a release: settle the next lanes."""
        if self._resettled is None:
            return
        old = self.lanes.old(limit) if self.lanes.has_old else []
        for task_id in old:
            self._settle_lane(now_ms, task_id)
        if old:
            return
        following = self.lanes.following(self._resettled, limit)
        for task_id in following:
            self._settle_lane(now_ms, task_id)
        self._resettled = following[-1] if len(following) == limit else None

    # -- notes ---------------------------------------------------------------------------------

    def note(self, now_ms: int, token: int, seq: int, ids: Sequence[bytes],
             histories: Mapping[bytes, bytes]) -> None:
        """A note (``model.notes``) that is new here, about tasks of these histories."""
        if token == MET:
            self._let_go(now_ms, seq, ids, histories)
            return
        if token == SUB:
            fresh = [task_id for task_id in ids if self._prefix + task_id not in histories] if histories else ids
            self.waiting.subscribe_many(fresh, seq)
        for key, record in histories.items():
            history, task_id = decode_history(record), key[len(self._prefix):]
            if token == SUB:
                self.waiting.subscribe(task_id, seq, self.end_of(task_id, history), history.round)
            else:
                self.waiting.told(task_id, seq, history.round)

    def _let_go(self, now_ms: int, seq: int, ids: Sequence[bytes], histories: Mapping[bytes, bytes]) -> None:
        """Columns of tasks whose only dependency is done and that wait for no time; the others one by one."""
        bodies = self._store.get_many("body", [self._prefix + task_id for task_id in ids])
        simple: list[tuple[bytes, bytes]] = []
        places: list[bytes] = []
        for key, body in bodies.items():
            raw, rest = split_body(body)
            prelude, place = tables.place_of_header(raw)
            deps = only_deps(prelude, (rest,)) if seq == _ONLY_ONE_DONE and key not in histories else []
            if deps and tables.goes_when_done(raw):
                simple.append((deps[0], key[2:]))
                places.append(place)
            else:
                self._meet(now_ms, key[2:], seq, decode_history(histories.get(key)), Body.decode(body))
        found = self.waiting.meet_only(simple)
        heads = [place + task_id for (_, task_id), place, was in zip(simple, places, found, strict=True) if was]
        self._store.put_many("ready", [(self._prefix + head, ODD) for head in heads])
        self._move(State.BLOCKED, State.WAITING, Counter([head[:-ID_BYTES] for head in heads]))

    def _meet(self, now_ms: int, task_id: bytes, seq: int, history: History, body: Body) -> None:
        index, end = split_met(seq)
        if index < len(body.deps) and lets_go(end, body.header.policy) and self.waiting.meet(task_id, body, index):
            self._count(tables.place_of(body.header), State.BLOCKED, -1)
            self.file(now_ms, task_id, history, body)

    def end_of(self, task_id: bytes, history: History) -> End:
        """How a task has ended, by where it is filed."""
        if history.completion.value is not None:
            return End.DONE
        return End.OPEN if self._store.get("dead", self._prefix + task_id) is None else End.FAILED

    # -- time ----------------------------------------------------------------------------------

    def dues(self) -> tuple[int | None, int | None]:
        """When something lapses next, and when a task expires."""
        return self.next_lapse_ms, self._next_ms["expiry"]

    @property
    def next_lapse_ms(self) -> int | None:
        """When the next claim lapses, or the next task becomes claimable; 0 while there are lanes to settle."""
        if self._resettled is not None:
            return 0
        lease_ms, time_ms = self._next_ms["lease"], self._next_ms["time"]
        if lease_ms is None or time_ms is None:
            return time_ms if lease_ms is None else lease_ms
        return min(lease_ms, time_ms)

    def sweep(self, now_ms: int, limit: int) -> bool:
        """File anew what claims have lapsed and what pauses are over; says whether there was any."""
        if self.next_lapse_ms is None or self.next_lapse_ms > now_ms:
            return False
        self._resettle(now_ms, limit)
        stop = self._prefix + (now_ms + 1).to_bytes(8, "big")
        lapsed, due = (self._store.scan(table, self._prefix, stop, limit) for table in ("lease", "time"))
        self._lapse(now_ms, lapsed)
        self._store.pop_many("time", [key for key, _ in due])
        self._move(State.SCHEDULED, None, Counter([place for _, place in due]))
        self._file_again(now_ms, [key[10:] for key, _ in due])
        self._next_ms |= {table: self._first(table) for table in ("lease", "time")}
        return bool(lapsed or due)

    def _lapse(self, now_ms: int, rows: Sequence[Row]) -> None:
        self._store.pop_many("lease", [key for key, _ in rows])
        self._move(State.CLAIMED, None, Counter([held[1:] for _, held in rows]))
        self._holders.end((key[10:], held) for key, held in rows)
        known = [self._prefix + key[10:] for key, held in rows if held[:1] == BODY_PLAIN]
        histories = self._store.get_many("history", known)
        plain: list[tuple[bytes, bytes]] = []
        odd: list[bytes] = []
        for key, held in rows:
            record = histories.get(self._prefix + key[10:])
            if record is not None and len(record) == _ONE_CLAIM + record[_ONE_CLAIM - 1]:
                plain.append((held[1:], key[10:]))
            elif held[:1] != BODY_UNKNOWN:
                odd.append(key[10:])
                if is_laned(key[10:]):
                    self.lanes.leave(key[10:])
            else:
                self._leave_lanes(now_ms, [key[10:]])
        self._store.put_many("ready", [(self._prefix + place + task_id, PLAIN) for place, task_id in plain])
        self._move(None, State.WAITING, Counter([place for place, _ in plain]))
        self._file_again(now_ms, odd)

    def _file_again(self, now_ms: int, ids: Sequence[bytes]) -> None:
        """Tasks with a body that have no entry but, perhaps, that of their expiry."""
        keys = [self._prefix + task_id for task_id in ids]
        histories = self._store.get_many("history", keys)
        for key, body in self._store.get_many("body", keys).items():
            self.file(now_ms, key[2:], decode_history(histories.get(key)), Body.decode(body))

    def expired(self, now_ms: int, limit: int) -> list[bytes]:
        """Tasks that nobody claims and whose time is over; their leader says that they are dead."""
        expiry_ms = self._next_ms["expiry"]
        if expiry_ms is None or expiry_ms > now_ms:
            return []
        stop = self._prefix + (now_ms + 1).to_bytes(8, "big")
        rows = self._store.scan("expiry", self._prefix, stop, limit)
        if not rows:
            self._next_ms["expiry"] = self._first("expiry")
        return [key[10:] for key, _ in rows]

    def leases(self, after: bytes, limit: int) -> list[tuple[bytes, bytes, bytes]]:
        """Live claims as (cursor, id, place), in the order of lapsing, behind a cursor."""
        start = self._prefix + after + b"\0" if after else self._prefix
        rows = self._store.scan("lease", start, tables.end_of(self._prefix), limit)
        return [(key[2:], key[10:], held[1:]) for key, held in rows]

    # -- rows ----------------------------------------------------------------------------------

    def _move(self, was: State | None, to: State | None, counts: Mapping[bytes, int]) -> None:
        """Count tasks, by their places, where they are now and no more where they were."""
        for place, count in counts.items():
            self.tally.move(tables.queue_of(place), was, to, count)

    def _count(self, place: bytes, state: int, change: int) -> None:
        self.tally.add(tables.queue_of(place), state, change)

    def _pop(self, table: str, key: bytes) -> bytes | None:
        return self._store.pop_many(table, [key])[0]

    def _put(self, table: str, time_ms: int, task_id: bytes, value: bytes) -> None:
        self._store.put_many(table, [(tables.lease_key(self._prefix, time_ms, task_id), value)])
        self._note(table, time_ms)

    def _note(self, table: str, time_ms: int) -> None:
        known_ms = self._next_ms[table]
        if known_ms is None or time_ms < known_ms:
            self._next_ms[table] = time_ms
            self._bulletin.timed[self._partition] = None

    def _first(self, table: str) -> int | None:
        rows = self._store.scan(table, self._prefix, self._prefix + b"\xff" * 8, 1)
        return int.from_bytes(rows[0][0][2:10], "big") if rows else None

    def _take_stock(self) -> None:
        """Say of which queues tasks wait here: a seek for each of them."""
        start, stop = self._prefix, tables.end_of(self._prefix)
        while rows := self._store.scan("ready", start, stop, 1):
            queue = rows[0][0][2:].partition(b"\0")[0]
            self._bulletin.stock.add(queue, self._partition)
            start = self._prefix + queue + b"\1"
