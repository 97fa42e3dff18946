"""The data of one partition on one node: tasks, histories, logs.

It joins what comes (from clients, leaders, peers) into the records, and keeps the hash tree and the indexes
(``filing``) in step. Batch operations handle the common case on encoded records; odd records are decoded and
merged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from operator import add, itemgetter

from skuld_py.config import DEFAULT_LIMITS
from skuld_py.model import columns
from skuld_py.model.body import Header, encode_body, header_of, is_plain, stands_over
from skuld_py.model.bounds import U63_MAX
from skuld_py.model.cuts import WHOLE, Cuts
from skuld_py.model.history import (
    CLAIM,
    HISTORY_HEAD,
    ROUNDS_MAX,
    History,
    decode_history,
    encode_claim,
    encode_mark,
)
from skuld_py.model.outcomes import FIRST_TOKEN, LOG_SEQS
from skuld_py.model.prelude import ONE_DEP_BYTES, only_deps
from skuld_py.model.store import TABLES, Row, Store, digests_of
from skuld_py.partition.data import merkle, tables
from skuld_py.partition.data.bulletin import Bulletin
from skuld_py.partition.data.facts import Amendment, Grant, Mark
from skuld_py.partition.data.filing import Filing
from skuld_py.partition.data.watermark import Watermark
from skuld_py.partition.data.windows import note_window

Histories = Mapping[bytes, bytes]
"""History records by key."""
_NEVER = bytes(8)
_ENDS, _CLAIMS = itemgetter(slice(0, 24)), itemgetter(slice(16, None))
"""Parts of a history's record: completion, its token and the horizon; the horizon and all claims."""
BLOCKERS_MAX = 100
_LANE_BYTE = itemgetter(8)
PARTITION_TABLES = tuple(table for table in TABLES if table != "meta")


class Replica:
    """Reads and stages the records of one partition."""

    def __init__(self, partition: int, store: Store, skew_ms: int, bulletin: Bulletin | None = None) -> None:
        self.partition = partition
        self.prefix = tables.prefix_of(partition)
        self.store = store
        self.skew_ms = skew_ms
        self._bulletin = bulletin or Bulletin()
        self._widths: dict[bytes, int] = {}
        self.filing = Filing(store, self.prefix, skew_ms, self._bulletin, self._widths)
        self.watch = merkle.Watch()
        self.tree = merkle.Tree(store, self.prefix, self.watch)
        self.watermark = Watermark(store, partition)
        self.token_max = U63_MAX
        """No sound peer knows of a claim with a higher token."""

    # -- tasks ---------------------------------------------------------------------------------

    def store_tasks(self, now_ms: int, header: bytes, ids: Sequence[bytes],
                    payloads: Sequence[bytes]) -> list[bytes]:
        """Add tasks of one header; gives the ids that exist with another body (refused). Of two bodies of a unique
        name the one asked for first stands; the other one is refused, or gives way."""
        if len(set(ids)) < len(ids):
            return [conflict for task_id, payload in zip(ids, payloads, strict=True)
                    for conflict in self.store_tasks(now_ms, header, [task_id], [payload])]
        head = encode_body(header, b"")
        keys = columns.wrap(ids, self.prefix)
        rows = list(zip(keys, [head + payload for payload in payloads], strict=True))
        known = self._existing("body", keys)
        conflicts: list[bytes] = []
        plain = is_plain(header)
        if not plain:
            note_window(self.store, self.prefix, header)
        if known:
            other = [(key, body) for key, body in rows if known.get(key, body) != body]
            first = [] if plain else [row for row in other if stands_over(row[1], known[row[0]])]
            self._replace(now_ms, first, known)
            conflicts = [key[2:] for key, body in other if (key, body) not in first]
            rows = [row for row in rows if row[0] not in known]
        gone = self.gone([row[0][2:] for row in rows]) if self.watermark.sealed_ms else ()
        if gone:
            rows = [row for row in rows if row[0][2:] not in gone]
        if len(rows) < len(keys):
            keys = [key for key, _ in rows]
            ids = [key[2:] for key in keys]
        if rows:
            self.tree.toggle(merkle.BODY, keys, self.store.put_many("body", rows))
            self._file_new(now_ms, header, plain, ids, rows, self._existing("history", keys))
            if not plain:
                self.filing.needs.add(header, rows)
        return conflicts

    def _replace(self, now_ms: int, rows: Sequence[Row], known: Mapping[bytes, bytes]) -> None:
        keys = [key for key, _ in rows]
        before = digests_of(keys, map(known.__getitem__, keys))
        self.tree.toggle(merkle.BODY, keys, self.store.put_many("body", rows), before)
        histories = self._existing("history", keys)
        for key, body in rows:
            history = decode_history(histories.get(key))
            self.filing.refile(now_ms, key[2:], history, history, known[key], body)

    def _file_new(self, now_ms: int, header: bytes, plain: bool, ids: Sequence[bytes], rows: Sequence[Row],
                  histories: Histories) -> None:
        fresh = ids if plain else []
        if fresh and histories:
            fresh = [task_id for task_id in ids if self.prefix + task_id not in histories]
        if fresh:
            self.filing.await_claim(tables.place_of_header(header)[1], fresh)
        elif not histories and self._await_one_each(header, ids, rows):
            return
        if len(fresh) < len(rows):
            for key, body in rows:
                if key in histories or not fresh:
                    history = decode_history(histories.get(key))
                    self.filing.refile(now_ms, key[2:], history, history, None, body)

    def _await_one_each(self, header: bytes, ids: Sequence[bytes], rows: Sequence[Row]) -> bool:
        """New tasks that wait for one other task each, and for no time; says whether they are such."""
        parsed, size = Header.decode(header), len(header) + 2
        deps = only_deps(parsed.prelude, [body[size : size + ONE_DEP_BYTES] for _, body in rows])
        if not deps or self.filing.waiting.has_notes(ids):
            return False
        self.filing.await_dependency(tables.place_of(parsed), ids, deps)
        return True

    def _existing(self, table: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """What is stored under the keys; fresh ids cost one seek for the whole batch."""
        return self.store.get_many(table, keys) if self._is_any(table, keys) else {}

    def _is_any(self, table: str, keys: Sequence[bytes]) -> bool:
        return bool(keys) and self.store.is_any_between(table, min(keys), max(keys))

    def histories(self, ids: Sequence[bytes]) -> dict[bytes, bytes]:
        """Stored history records by key (prefix + id)."""
        return self._existing("history", columns.wrap(ids, self.prefix))

    def lacking(self, ids: Sequence[bytes]) -> list[bytes]:
        """The tasks among these that are not here."""
        known = self._existing("body", columns.wrap(ids, self.prefix))
        return [task_id for task_id in ids if self.prefix + task_id not in known] if known else [*ids]

    def bodies(self, ids: Sequence[bytes]) -> list[bytes | None]:
        """Body records, in the order asked."""
        keys = columns.wrap(ids, self.prefix)
        found = self.store.get_many("body", keys)
        return [*found.values()] if len(found) == len(keys) else [found.get(key) for key in keys]

    # -- claims --------------------------------------------------------------------------------

    def objections(self, grant: Grant, known: Histories | None = None, now_ms: int | None = None) -> list[int]:
        """Indexes of claims that must not be granted by what is known here: by ``History.allows``, for full lanes,
        for collected tasks, and for spent attempts or rests after a failure. (A new leader may know less of those,
        since it is told only of held claims.) None may be granted at a time that is to come by this clock, and by
        any within the bound of it: by a leader's that was set ahead, all leases are over. ``known``, here and
        below: the tasks' histories, if just read."""
        if now_ms is not None and grant.start_ms > now_ms + self.skew_ms:
            return [*range(len(grant.ids))]
        known = self.histories(grant.ids) if known is None else known
        gone = self.gone(grant.ids) if self.watermark.sealed_ms else {}
        over_ms = grant.start_ms - self.skew_ms
        is_laned = max(map(_LANE_BYTE, grant.ids), default=0) >= 0x80
        crowded = self.filing.lanes.crowded(grant.ids, grant.places, over_ms) if is_laned else {}
        if not known and not gone:
            return list(crowded)
        bodies = self.store.get_many("body", list(known))
        keys = [self.prefix + task_id for task_id in grant.ids]
        return [index for index, key in enumerate(keys) if index in crowded or grant.ids[index] in gone or (
                key in known and not self._allows(decode_history(known[key]), bodies.get(key), grant, index))]

    def blockers(self, grant: Grant, vetoed: Sequence[int]) -> list[bytes]:
        """The tasks whose claims fill the lanes of those that were vetoed."""
        over_ms = grant.start_ms - self.skew_ms
        crowded = self.filing.lanes.crowded(grant.ids, grant.places, over_ms) if vetoed else {}
        return list(dict.fromkeys(mate for index in vetoed for mate in crowded.get(index, ())))[:BLOCKERS_MAX]

    def _allows(self, history: History, body: bytes | None, grant: Grant, index: int) -> bool:
        over_ms = grant.start_ms - self.skew_ms
        if history.pause_until_ms > grant.start_ms:
            return False
        if not history.allows(grant.first_token + index, grant.holder, over_ms):
            return False
        return body is None or not history.death(header_of(body).retry.max_attempts, over_ms)

    def still_waiting(self, now_ms: int, heads: Sequence[bytes], known: Histories) -> list[bytes]:
        """The heads whose leases are over by this clock; the others go back among the leases.

        A task came into ``ready`` by the clock of that time, which may have run ahead and been set back since.
        """
        held: dict[bytes, None] = {}
        for head in heads:
            record = known.get(self.prefix + head[-20:])
            if record is not None and int.from_bytes(record[16:24], "big") + self.skew_ms > now_ms:
                history, body = decode_history(record), self.store.get("body", self.prefix + head[-20:])
                self.filing.refile(now_ms, head[-20:], history, history, body, body)
                held[head] = None
        return [head for head in heads if head not in held]

    def apply_grant(self, now_ms: int, grant: Grant, skipped: Sequence[int] = (),
                    known: Histories | None = None) -> None:
        """Record the claims of a grant except the skipped indexes."""
        prefix, ids, places, first = self.prefix, grant.ids, grant.places, grant.first_token
        holder = grant.holder.encode()
        head = HISTORY_HEAD.pack(0, 0, grant.end_ms)
        tail = CLAIM.pack(0, grant.start_ms, grant.end_ms, 0, len(holder))[8:] + holder
        known = self.histories(ids) if known is None else known
        fresh: Sequence[int] = range(len(ids))
        if skipped or known:
            for index in [index for index in fresh if index not in skipped and prefix + ids[index] in known]:
                claim = head + (first + index).to_bytes(8, "big") + tail
                self.merge_history(now_ms, ids[index], claim, places[index])
            fresh = [index for index in fresh if index not in skipped and prefix + ids[index] not in known]
            ids, places = [ids[index] for index in fresh], [places[index] for index in fresh]
        keys = columns.wrap(ids, prefix)
        numbers = range(first, first + len(ids)) if len(fresh) == len(grant.ids) else [first + at for at in fresh]
        tokens = columns.split(columns.pack_u64(numbers), 8)
        rows = list(zip(keys, columns.wrap(tokens, head, tail), strict=True))
        self.tree.toggle(merkle.HISTORY, keys, self.store.put_many("history", rows))
        self.filing.move_to_lease(now_ms, grant.end_ms + self.skew_ms, ids, places, grant.holder)

    def amend(self, now_ms: int, amendments: Sequence[Amendment]) -> None:
        """Apply renewals and endings. A claim unknown here is left to anti-entropy."""
        known = self.histories([amendment.id for amendment in amendments])
        for amendment in amendments:
            record = known.get(self.prefix + amendment.id)
            if record is None:
                continue
            old = decode_history(record)
            claim = old.claims.entries.get(amendment.token)
            if claim is None:
                continue
            change = HISTORY_HEAD.pack(0, 0, 0) + encode_claim(
                amendment.token, claim.start_ms, amendment.end_ms, claim.holder.encode(), amendment.ending,
                amendment.until_ms)
            self.merge_history(now_ms, amendment.id, change, None)

    def mark(self, now_ms: int, marks: Sequence[Mark]) -> None:
        """Put marks into histories."""
        for mark in marks:
            self.merge_history(now_ms, mark.id, encode_mark(mark.kind, mark.a, mark.b), None)

    def finish(self, now_ms: int, ids: Sequence[bytes], tokens: Sequence[int], at_ms: int) -> None:
        """Record completions at ``at_ms``; the earliest wins, and it dominates every claim."""
        keys = columns.wrap(ids, self.prefix)
        known, digests = self.store.get_digested("history", keys)
        olds = known.values()
        ends = list(map(_ENDS, olds))
        leases = {end: tables.lease_key(self.prefix, int.from_bytes(end[16:], "big") + self.skew_ms, b"")
                  for end in dict.fromkeys(ends)}
        if len(known) < len(keys) or any(end[:8] != _NEVER or end[16:] == _NEVER for end in leases):
            self._finish_odd(now_ms, ids, tokens, at_ms, known)
            return
        heads = columns.wrap(columns.split(columns.pack_u64(tokens), 8), at_ms.to_bytes(8, "big"))
        rows = list(zip(keys, map(add, heads, map(_CLAIMS, olds)), strict=True))
        fresh = self.store.put_many("history", rows)
        self.tree.toggle(merkle.HISTORY, keys, fresh, digests)
        if len(leases) == 1:
            keys = columns.wrap(ids, *leases.values())
        else:
            keys = list(map(add, map(leases.__getitem__, ends), ids))
        self.filing.close_leases(now_ms, ids, keys)

    def _finish_odd(self, now_ms: int, ids: Sequence[bytes], tokens: Sequence[int], at_ms: int,
                    known: Histories) -> None:
        """Complete tasks one by one: some have no claim here, are completed already, or are named twice."""
        plain: dict[bytes, int] = {}
        for task_id, token in zip(ids, tokens, strict=True):
            old = known.get(self.prefix + task_id, b"")
            if task_id in plain or old[:8] != _NEVER or old[16:24] == _NEVER:
                self.join_history(now_ms, task_id, History.decode(HISTORY_HEAD.pack(at_ms, token, 0)), None)
            else:
                plain[task_id] = token
        if plain:
            self.finish(now_ms, list(plain), list(plain.values()), at_ms)

    # -- the general case ----------------------------------------------------------------------

    def merge_history(self, now_ms: int, task_id: bytes, record: bytes, place: bytes | None) -> None:
        """Join a record made here into the stored history."""
        self.join_history(now_ms, task_id, History.decode(record), place)

    def read_history(self, record: bytes) -> History:
        """A peer's history of a task; raises ``ValueError`` when it is none, or one that no sound peer has: tokens
        are granted by epochs, and no task is revived without end."""
        history = History.decode(record)
        if max(history.newest_token, history.base) > self.token_max:
            raise ValueError(f"history holds a token above {self.token_max}, of an epoch that nobody has come to")
        if min(history.claims.entries, default=FIRST_TOKEN) < FIRST_TOKEN:
            raise ValueError("history holds a claim with a token of no epoch")
        if max(history.round, history.death_round - 1) > ROUNDS_MAX:
            raise ValueError("history tells of rounds that the task has not come to")
        return history

    def join_history(self, now_ms: int, task_id: bytes, change: History, place: bytes | None) -> None:
        key = self.prefix + task_id
        stored = self.store.get("history", key)
        if stored is None and self.gone([task_id]):
            return
        old = decode_history(stored)
        new = old.merge(change)
        if stored is not None and new == old:
            return
        record = new.encode()
        before = [] if stored is None else [digests_of([key], [stored])]
        self.tree.toggle(merkle.HISTORY, [key], self.store.put_many("history", [(key, record)]), *before)
        body = self.store.get("body", key)
        self.filing.refile(now_ms, task_id, old, new, body, body, place)

    def is_empty(self) -> bool:
        """Whether nothing is stored of this partition."""
        return not any(self.store.is_any_between(table, self.prefix, tables.end_of(self.prefix))
                       for table in PARTITION_TABLES)

    def drop(self, limit: int) -> None:
        """Delete up to ``limit`` records of each table; this node must not lead or vote by them any more."""
        for table in PARTITION_TABLES:
            rows = self.store.scan(table, self.prefix, tables.end_of(self.prefix), limit)
            self.store.pop_many(table, [key for key, _ in rows])
            if table == "lease":
                self._bulletin.holders.end((key[10:], held) for key, held in rows)
        self.filing = Filing(self.store, self.prefix, self.skew_ms, self._bulletin, self._widths)
        self.tree = merkle.Tree(self.store, self.prefix, self.watch)
        self.watermark.forget()

    # -- garbage -------------------------------------------------------------------------------

    def gone(self, task_ids: Sequence[bytes]) -> dict[bytes, None]:
        """The tasks among these that were collected: they are at or below the seal, and nothing of them is
        here."""
        old = self.watermark.sealed_to(task_ids)
        if not old:
            return {}
        keys = [self.prefix + task_id for task_id in old]
        known = {**self.store.get_many("body", keys), **self.store.get_many("history", keys)}
        return {key[2:]: None for key in keys if key not in known
                and not self.store.is_any_between("log", key, tables.end_of(key))}

    # -- logs ----------------------------------------------------------------------------------

    def append(self, task_id: bytes, token: int, seq: int, entries: Sequence[bytes]) -> bool:
        """Add log entries ``seq``, ``seq + 1``...; False when one exists with other content."""
        if self.gone([task_id]):
            return True
        rows = [(tables.log_key(self.prefix, task_id, token, at), entry) for at, entry in enumerate(entries, seq)]
        if seq >= LOG_SEQS:
            self._put_outcomes(rows)
            return True
        known = self.store.get_many("log", [key for key, _ in rows])
        if any(known.get(key, entry) != entry for key, entry in rows):
            return False
        rows = [row for row in rows if row[0] not in known]
        self.tree.toggle(merkle.ENTRY, [key for key, _ in rows], self.store.put_many("log", rows))
        return True

    def note(self, now_ms: int, token: int, seq: int, ids: Sequence[bytes]) -> None:
        """Add the same note (``model.notes``) to tasks."""
        gone, tail = self.gone(ids), tables.log_key(b"", b"", token, seq)
        keys = [self.prefix + task_id + tail for task_id in dict.fromkeys(ids) if task_id not in gone]
        known = self._existing("log", keys)
        fresh = [key for key in keys if key not in known]
        if fresh:
            self.tree.toggle(merkle.ENTRY, fresh, self.store.put_many("log", [(key, b"") for key in fresh]))
            noted = [key[2:22] for key in fresh]
            self.filing.note(now_ms, token, seq, noted, self.histories(noted))

    def note_outcomes(self, seq: int, ids: Sequence[bytes], tokens: Sequence[int],
                      values: Sequence[bytes]) -> None:
        """Keep results or errors of claims (``seq`` says which); an empty one is none."""
        gone = self.gone(ids)
        self._put_outcomes([(tables.log_key(self.prefix, task_id, token, seq), value)
                            for task_id, token, value in zip(ids, tokens, values, strict=True)
                            if value and task_id not in gone])

    def _put_outcomes(self, rows: Sequence[Row]) -> None:
        """Put results or errors; of two under one key the smaller stands."""
        smallest = dict(sorted(rows, reverse=True))
        known = self._existing("log", list(smallest))
        fresh = [row for row in smallest.items() if row[0] not in known]
        self.tree.toggle(merkle.ENTRY, [key for key, _ in fresh], self.store.put_many("log", fresh))
        changed = [(key, smallest[key]) for key, old in known.items() if smallest[key] < old]
        keys = [key for key, _ in changed]
        before = digests_of(keys, map(known.__getitem__, keys))
        self.tree.toggle(merkle.ENTRY, keys, self.store.put_many("log", changed), before)

    def outcomes(self, task_id: bytes, wanted: Sequence[tuple[int, int]]) -> list[tuple[int, int, bytes]]:
        """The results and errors that are here, by token and seq."""
        keys = {tables.log_key(self.prefix, task_id, *number): number for number in wanted}
        return [(*keys[key], value) for key, value in self.store.get_many("log", list(keys)).items()]

    def page(self, task_id: bytes, token: int, after: int, limit: int) -> list[tuple[int, int, bytes]]:
        """(token, seq, data) of a claim's log from number ``after`` on."""
        start, stop = (tables.log_key(self.prefix, task_id, token, seq) for seq in (after, LOG_SEQS))
        return _within_bytes(self.store.scan("log", start, stop, limit))

    def entries(self, task_id: bytes) -> tuple[list[tuple[int, int, bytes]], Cuts]:
        """(token, seq, data) of a task's notes, and of its log's end as far as the limits of reading go; and what
        is left out of it (``model.cuts``)."""
        base, first = self.prefix + task_id, tables.log_key(self.prefix, task_id, FIRST_TOKEN, 0)
        notes = self.store.scan("log", base, first, DEFAULT_LIMITS.log_entries)
        kept: list[Row] = []
        cuts, room = WHOLE, DEFAULT_LIMITS.log_bytes
        for row in self.store.walk_back("log", first, tables.end_of(base)):
            room -= len(row[1])
            if room < 0 or len(notes) + len(kept) == DEFAULT_LIMITS.log_entries:
                cuts = self._left_out(task_id, row[0] + b"\0")
                break
            kept.append(row)
        return [(*tables.split_log_key(key)[1:], data) for key, data in (*notes, *reversed(kept))], cuts

    def _left_out(self, task_id: bytes, stop: bytes) -> dict[int, int]:
        """How much there is of each claim's log before a key, by the number of its last entry; a seek or two."""
        first, cuts = tables.log_key(self.prefix, task_id, FIRST_TOKEN, 0), dict[int, int]()
        while (row := next(self.store.walk_back("log", first, stop), None)) is not None:
            _, token, seq = tables.split_log_key(row[0])
            is_log = seq < LOG_SEQS
            cuts[token] = cuts.get(token, 0) + (seq + 1 if is_log else 1)
            stop = tables.log_key(self.prefix, task_id, token, 0) if is_log else row[0]
        return cuts


def _within_bytes(rows: Sequence[Row]) -> list[tuple[int, int, bytes]]:
    """As much of a log as one answer shows."""
    sums = zip(rows, accumulate(len(entry) for _, entry in rows), strict=True)
    return [(*tables.split_log_key(key)[1:], row) for (key, row), size in sums if size <= DEFAULT_LIMITS.log_bytes]
