"""What must hold at every commit, at every answer and in all that replicas tell each other.

The checkers read what clients saw; the monitor looks into the stores at the moment it matters. An answer that
counts on copies is compared with what is committed right then, so a rule such as "an acknowledgement means
fsynced" needs no lucky crash to be seen broken. It does its own arithmetic: a monitor that shared ``quorum.py``
would share its mistakes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from skuld_py.config import Parameters
from skuld_py.model import messages as m
from skuld_py.model.body import header_of
from skuld_py.model.columns import unpack_u64
from skuld_py.model.history import HISTORY_HEAD, History
from skuld_py.model.ids import partition_of, split
from skuld_py.model.memory_store import MemoryStore
from skuld_py.model.setting import SETTING_PREFIX, decode_setting, setting_key
from skuld_py.partition.data import tables
from skuld_py.partition.leadership.suspicion import suspects
from skuld_py.simulation.checkers.checkpoints import SLOT, Mark, mark_of, marks_of
from skuld_py.simulation.checkers.evidence import bodies_of, gives_way, numbers_told
from skuld_py.simulation.checkers.settings import weight
from skuld_py.simulation.history import History as ClientHistory
from skuld_py.simulation.history import Operation
from skuld_py.simulation.world.process import Process

COMPLETED_STAYS = "D4 a completed task stays completed on every replica"
HISTORY_GROWS = "V3 a replica forgets no claim"
BODY_STAYS = "D3 a task's body never changes, but to what was asked for first under its unique name"
PROMISE_RISES = "C7 a replica's promised epoch never falls"
PROMISE_KEPT = "C7 a promise told to others outlives a crash"
ONE_CANDIDATE = "C7 a replica promises an epoch to one candidate only"
ACK_IS_FSYNCED = "D7 an acknowledgement means that so many committed copies exist"
CLAIM_IS_RECORDED = "C4 a claim answered is committed on a majority"
DROPPED_IS_ELSEWHERE = "D1 a node drops only what a majority of the voters has, and no voter drops"
SETTING_RISES = "V3 a setting known to a node never gives way to an older one"
CHECKPOINT_RISES = "V3 a replica's checkpoint of a task never gives way to an older one"
GARBAGE_IS_ARCHIVED = "D10 what is deleted was archived as it was, where that is asked for"
GARBAGE_IS_AGREED = "D10 what is deleted had ended, and every voter was sealed and held the same"
CLAIM_IS_KNOWN = "C22 who was granted a claim is never told that it was not"
TOKENS_LAST = "C2 a leadership grants no more claims than it has tokens"
NO_NEED_TO_RAISE = "R no machine raises"

FIRST_TOKEN = (1 << 32).to_bytes(8, "big")
COUNTER = (1 << 32) - 1
_DONE = 8
_COMPLETION = 16
_PROMISE = tables.promise_key(0)[:-2]


def has_token(record: bytes | None, token: int, end_ms: int = 0) -> bool:
    """Whether a history record holds this claim, ending then or later."""
    if record is None:
        return False
    claim = History.decode(record).claims.entries.get(token)
    return claim is not None and claim.end.value >= end_ms


def is_completed(record: bytes | None) -> bool:
    """Whether a history record holds a completion."""
    return record is not None and record[:_DONE] != bytes(_DONE)


def _covers(table: str, record: bytes | None, dropped: bytes) -> bool:
    """Whether a stored record knows all that the dropped one knew."""
    if record is None or table == "body":
        return record == dropped or (record is not None and gives_way(dropped, record))
    history = History.decode(record)
    return history.merge(History.decode(dropped)) == history


def _partition(key: bytes) -> int:
    return int.from_bytes(key[:2], "big")


def _remains(store: MemoryStore, key: bytes) -> dict[tuple[str, bytes], bytes]:
    """All committed records of a task but its notes, which come late and are then told again."""
    logged = {row: None for rows in (store.rows("log", key), store.undo["log"]) for row in rows
              if row[:22] == key and row[22:30] >= FIRST_TOKEN}
    found = ((table, row, store.committed(table, row)) for table, rows in
             (("body", [key]), ("history", [key]), ("log", sorted(logged))) for row in rows)
    return {(table, row): record for table, row, record in found if record is not None}


def _has_ended(history: History, body: bytes) -> bool:
    """By its marks and claims alone, whatever the time."""
    if history.completion.value is not None or history.cancelled.value is not None or history.died.value:
        return True
    spent = [claim for token, claim in history.claims.entries.items()
             if token > history.base and claim.kind in (0, 3)]
    return len(spent) >= header_of(body).retry.max_attempts


def _rank(key: bytes, record: bytes) -> tuple[int, str, bytes]:
    row = decode_setting(key, record)
    return row.version, row.writer, row.value


def _is_any(record: bytes | None) -> bool:
    return record is not None


def _stands_for(body: bytes) -> Callable[[bytes | None], bool]:
    return lambda record: record == body or (record is not None and gives_way(body, record))


def _same_as(value: bytes) -> Callable[[bytes | None], bool]:
    return lambda record: record == value


def _reaches(mark: Mark) -> Callable[[bytes | None], bool]:
    return lambda record: record is not None and mark_of(record).rank >= mark.rank


class Monitor:
    """Watches one run; ``violations`` and ``counts`` go by the name of the rule."""

    def __init__(self, parameters: Parameters, processes: Mapping[str, Process], history: ClientHistory,
                 voters_of: Callable[[int], Sequence[str]] = lambda partition: (),
                 clock: Callable[[], int] = lambda: 0, seats_of: Callable[[int], int] | None = None) -> None:
        self.counts: Counter[str] = Counter()
        self.violations: dict[str, list[str]] = {}
        self._parameters = parameters
        self._processes = processes
        self._history = history
        self._voters_of = voters_of
        self._clock = clock
        self._seats_of = seats_of or (lambda partition: parameters.replicas)
        """Of how many voters a partition has a majority at least: fewer while some were given up."""
        self.going: dict[bytes, int] = {}
        """Task -> when the first node deleted it as garbage."""
        self.tokens = COUNTER
        """Claims of a leadership, up to the grant in which they are spent."""
        self.archives = False
        """Whether nothing may be deleted that is not archived."""
        self.is_excused: Callable[[str], bool] = lambda name: False
        """Whether a node may have lost what it committed."""
        self.is_hidden: Callable[[str], bool] = lambda name: False
        """Whether a node is on an old copy of its data and has not found out."""
        self._told: dict[tuple[str, int], int] = {}
        self._votes: dict[tuple[str, int], dict[int, str]] = {}
        self._checks: dict[tuple[type[m.Message], type[m.Message]], Callable[[Any, Any], None]] = {
            (m.Enqueue, m.Acked): self._check_enqueued,
            (m.Append, m.Acked): self._check_appended,
            (m.Complete, m.Acked): self._check_completed,
            (m.Claim, m.Claimed): self._check_claimed,
            (m.Renew, m.Renewed): self._check_renewed,
            (m.PutSetting, m.SettingPut): self._check_put,
            **{(of, m.Failed): self._check_known for of in (m.Append, m.Complete, m.Renew, m.Conclude)},
        }
        self._proved: dict[tuple[bytes, int, bytes], None] = {}
        """Claims that were granted: id, token and proof."""

    def blame(self, rule: str, evidence: str) -> None:
        """Record a violation."""
        self.violations.setdefault(rule, []).append(evidence)

    # -- stores --------------------------------------------------------------------------------

    def before_commit(self, process: Process) -> None:
        """Hold what is about to become durable against what was."""
        store, name = process.store, process.name
        for _, key, before, after in store.changes("history"):
            if before is None:
                continue
            self.counts[HISTORY_GROWS] += 1
            if after is None:
                self._check_dropped(name, "history", key, before)
            elif len(after) < len(before):
                self.blame(HISTORY_GROWS, f"{name} {key.hex()}: {before.hex()} -> {after and after.hex()}")
            elif is_completed(before):
                self.counts[COMPLETED_STAYS] += 1
                if not is_completed(after) or after[:_COMPLETION] > before[:_COMPLETION]:
                    self.blame(COMPLETED_STAYS, f"{name} {key.hex()}: {before.hex()} -> {after.hex()}")
        for _, key, before, after in store.changes("log"):
            if key[22:] == SLOT and before is not None and after is not None:
                self.counts[CHECKPOINT_RISES] += 1
                if mark_of(after).rank < mark_of(before).rank:
                    self.blame(CHECKPOINT_RISES, f"{name} {key.hex()}: {before!r} -> {after!r}")
        for _, key, before, after in store.changes("body"):
            self.counts[BODY_STAYS] += 1
            if before is not None and after is None:
                self._check_dropped(name, "body", key, before)
            elif before is not None and after is not None and before != after and not gives_way(before, after):
                self.blame(BODY_STAYS, f"{name} {key.hex()}: {before!r} -> {after!r}")
        for _, key, before, after in store.changes("meta"):
            if key.startswith(_PROMISE) and before is not None:
                self._check_promise(name, key, before, after or b"")
            elif key.startswith(SETTING_PREFIX) and before is not None:
                self.counts[SETTING_RISES] += 1
                if after is None or _rank(key, after) < _rank(key, before):
                    self.blame(SETTING_RISES, f"{name} {key!r}: {before!r} -> {after!r}")

    def _check_dropped(self, name: str, table: str, key: bytes, record: bytes) -> None:
        if key[2:] in self.going or self.is_excused(name):
            return  # the copies of a node that fills again are not counted on
        if self._is_sealed(self._processes[name].store.held("meta", tables.watermark_key(_partition(key))), key):
            if not self._was_refused(key):
                self.going[key[2:]] = self._clock()
                self._check_garbage(name, key)
            return
        voters = self._voters_of(_partition(key))
        if name not in voters and (self._was_refused(key) or (table == "body" and self._is_outvoted(key, record))):
            return
        self.counts[DROPPED_IS_ELSEWHERE] += 1
        holders = [voter for voter in voters if self._is_struck(voter)
                   or _covers(table, self._processes[voter].store.committed(table, key), record)]
        if name in voters or 2 * len(holders) <= len(voters):
            self.blame(DROPPED_IS_ELSEWHERE, f"{name} drops {table} {key.hex()}; of {voters} {holders} have it")

    def _is_struck(self, name: str) -> bool:
        """Whether a node is down and its disk lost something: that cannot be known before it is back."""
        return self.is_excused(name) and self._processes[name].machine is None

    def _was_refused(self, key: bytes) -> bool:
        """Whether all voters are sealed above a task that was not collected, and have nothing of it: it came too
        late for them, and a node that took it all the same drops it."""
        stores = [self._processes[voter].store for voter in self._voters_of(_partition(key))]
        mark = tables.watermark_key(_partition(key))
        return bool(stores) and all(
            self._is_sealed(store.committed("meta", mark), key) and not _remains(store, key) for store in stores)

    def _is_outvoted(self, key: bytes, body: bytes) -> bool:
        """Whether a majority of the voters holds another body under that id, so that nobody who sends this one is
        told that it is stored. A node that has no vote may have taken it before it heard of the other."""
        voters = self._voters_of(_partition(key))
        held = [self._processes[voter].store.committed("body", key) for voter in voters]
        return 2 * sum(other not in (None, body) for other in held) > len(voters)

    def _went_as_it_came(self, key: bytes) -> bool:
        """Whether a lone replica has taken a task, buried and collected it in one commit, after its time."""
        return len(self._voters_of(_partition(key))) == 1 and self._was_refused(key[:22])

    def _is_sealed(self, record: bytes | None, key: bytes) -> bool:
        return record is not None and key[2:10] <= record[8:16]

    def _check_garbage(self, name: str, key: bytes) -> None:
        """The first replica deletes a task."""
        self.counts[GARBAGE_IS_AGREED] += 1
        store = self._processes[name].store
        mine = _remains(store, key)
        history = mine.get(("history", key))
        self._check_archived(name, key, mine)
        voters = self._voters_of(_partition(key))
        is_hidden = len(voters) == 1  # a lone replica may record the end and delete the task in one commit
        if ("body", key) in mine and not is_hidden and not _has_ended(
                History.decode(history or bytes(24)), mine["body", key]):
            self.blame(GARBAGE_IS_AGREED, f"{name} deletes {key.hex()}, which has not ended: {history!r}")
        for voter in voters:
            other = self._processes[voter].store
            if voter == name or self.is_excused(voter):
                continue
            if not self._is_sealed(other.committed("meta", tables.watermark_key(_partition(key))), key):
                self.blame(GARBAGE_IS_AGREED, f"{name} deletes {key.hex()} and {voter} is not sealed above it")
            elif _remains(other, key) != mine:
                self.blame(GARBAGE_IS_AGREED, f"{name} deletes {key.hex()} as {mine}, {voter} has"
                                              f" {_remains(other, key)}")

    def _check_archived(self, name: str, key: bytes, mine: Mapping[tuple[str, bytes], bytes]) -> None:
        """A task that the first replica deletes stands in the archive just so."""
        body = mine.get(("body", key))
        if not self.archives or body is None:
            return
        self.counts[GARBAGE_IS_ARCHIVED] += 1
        entries = sorted((*tables.split_log_key(row)[1:], entry)
                         for (table, row), entry in mine.items() if table == "log")
        first = int.from_bytes(FIRST_TOKEN, "big")
        known = [(old, history, [entry for entry in log if entry[0] >= first])
                 for old, history, log in self._history.archived.get(key[2:], [])]
        if (body, mine.get(("history", key), b""), entries) not in known:
            self.blame(GARBAGE_IS_ARCHIVED, f"{name} deletes {key.hex()} as {mine}, archived is {known}")

    def _check_promise(self, name: str, key: bytes, before: bytes, after: bytes) -> None:
        self.counts[PROMISE_RISES] += 1
        if after[:8] < before[:8]:
            self.blame(PROMISE_RISES, f"{name} {key!r}: {before!r} -> {after!r}")
        elif after[:8] == before[:8] and after != before:
            self.blame(ONE_CANDIDATE, f"{name} {key!r}: {before!r} -> {after!r}")

    def on_start(self, process: Process) -> None:
        """A new boot: what was told before must still be known, or known to be lost. The checkers say what must
        outlive a loss."""
        suspected = suspects(process.store, self._parameters.partitions)
        lost = range(self._parameters.partitions) if self.is_hidden(process.name) else suspected
        for partition in lost:
            self.forget(process.name, partition)
        for partition in range(self._parameters.partitions):
            told = self._told.get((process.name, partition), 0)
            if told:
                self.counts[PROMISE_KEPT] += 1
                record = process.store.held("meta", tables.promise_key(partition)) or bytes(8)
                if int.from_bytes(record[:8], "big") < told:
                    self.blame(PROMISE_KEPT, f"{process.name} had told of epoch {told} of partition"
                                             f" {partition} and restarts with {record!r}")

    def forget(self, name: str, partition: int) -> None:
        """What a node told before binds it no more."""
        self._told.pop((name, partition), None)
        self._votes.pop((name, partition), None)

    # -- what replicas tell --------------------------------------------------------------------

    def on_send(self, process: Process, peer: str, message: m.Message) -> None:
        """A message leaves a node."""
        if type(message) is m.Grant:
            self.counts[TOKENS_LAST] += 1
            if message.first_token & COUNTER > self.tokens:
                self.blame(TOKENS_LAST, f"{process.name} grants on after {self.tokens} claims: {message}")
        if type(message) in (m.Vote, m.Granted, m.Amended):
            self._check_told(process.name, peer, message)

    def _check_told(self, name: str, peer: str, message: Any) -> None:
        self.counts[PROMISE_RISES] += 1
        where = (name, message.partition)
        if message.promised < self._told.get(where, 0):
            self.blame(PROMISE_RISES, f"{name} told of epoch {self._told[where]}, and then {peer}: {message}")
        self._told[where] = max(message.promised, self._told.get(where, 0))
        if isinstance(message, m.Vote) and message.is_granted and not message.is_trial:
            self.counts[ONE_CANDIDATE] += 1
            voted = self._votes.setdefault(where, {}).setdefault(message.epoch, peer)
            if voted != peer:
                self.blame(ONE_CANDIDATE, f"{name} votes for {voted} and for {peer}: {message}")

    # -- answers -------------------------------------------------------------------------------

    def on_answer(self, client: str, answer: m.Message) -> None:
        """An answer leaves its coordinator; what it claims must be committed by now."""
        operation = self._history.find(client, getattr(answer, "request", -1))
        if operation is None:
            return
        check = self._checks.get((type(operation.message), type(answer)))
        if check is not None:
            check(operation, answer)

    def _copies(self, is_copy: Callable[[MemoryStore], bool]) -> int:
        """How many nodes hold a copy, or had one before their disk was struck."""
        return sum(self.is_excused(name) or is_copy(process.store) for name, process in self._processes.items())

    def _majority(self, key: bytes = b"") -> int:
        """Of all nodes' copies of a setting, or of what a key of a partition names."""
        return (self._seats_of(_partition(key)) if key else self._parameters.replicas) // 2 + 1

    def _key(self, task_id: bytes) -> bytes:
        return tables.prefix_of(partition_of(task_id, self._parameters.partitions)) + task_id

    def _check_copies(self, operation: Operation, answer: m.Acked, w: int, table: str, key: bytes,
                      is_copy: Callable[[bytes | None], bool]) -> None:
        self.counts[ACK_IS_FSYNCED] += 1
        if key[2:22] in self.going or self._went_as_it_came(key):
            return
        copies = self._copies(lambda store: is_copy(store.committed(table, key)))
        if copies < max(answer.copies, w or self._majority(key)):
            self.blame(ACK_IS_FSYNCED, f"{table} {key.hex()} has {copies} copies: {operation}, {answer}")

    def _check_put(self, operation: Operation, answer: m.SettingPut) -> None:
        message = operation.message
        assert isinstance(message, m.PutSetting)
        self.counts[ACK_IS_FSYNCED] += 1
        key = setting_key(message.kind, message.name)
        wanted = message.version, message.writer, weight(message.kind, message.value)

        def is_copy(store: MemoryStore) -> bool:
            record = store.committed("meta", key)
            row = decode_setting(key, record) if record is not None else None
            return row is not None and (row.version, row.writer, weight(row.kind, row.value)) >= wanted
        copies = self._copies(is_copy)
        if copies < answer.copies or answer.copies <= len(answer.missing):
            self.blame(ACK_IS_FSYNCED, f"{key!r} has {copies} copies: {operation}, {answer}")

    def _check_enqueued(self, operation: Operation, answer: m.Acked) -> None:
        message = operation.message
        assert isinstance(message, m.Enqueue)
        told = numbers_told(answer)
        for number, (task_id, body) in enumerate(bodies_of(operation)):
            is_copy = _is_any if number in told else _stands_for(body)
            self._check_copies(operation, answer, message.w, "body", self._key(task_id), is_copy)

    def _check_appended(self, operation: Operation, answer: m.Acked) -> None:
        message = operation.message
        assert isinstance(message, m.Append)
        prefix = self._key(message.id)[:2]
        for index, entry in enumerate(message.entries.unpack()):
            key = tables.log_key(prefix, message.id, message.token, message.seq + index)
            self._check_copies(operation, answer, message.w, "log", key, _same_as(entry))
        for _, mark in marks_of(operation):
            self._check_copies(operation, answer, max(message.w, self._majority(prefix)), "log",
                               prefix + message.id + SLOT, _reaches(mark))

    def _check_completed(self, operation: Operation, answer: m.Acked) -> None:
        message = operation.message
        assert isinstance(message, m.Complete)
        for task_id in split(message.ids):
            self._check_copies(operation, answer, message.w, "history", self._key(task_id), is_completed)

    def _check_recorded(self, operation: Operation, task_id: bytes, token: int, end_ms: int) -> None:
        self.counts[CLAIM_IS_RECORDED] += 1
        key = self._key(task_id)
        copies = self._copies(lambda store: has_token(store.committed("history", key), token, end_ms))
        if copies < self._majority(key):
            self.blame(CLAIM_IS_RECORDED, f"{key.hex()} token {token:#x} until {end_ms} has {copies} copies:"
                                          f" {operation}")

    def _check_claimed(self, operation: Operation, answer: m.Claimed) -> None:
        for batch in answer.batches:
            for index, task_id in enumerate(split(batch.ids)):
                self._check_recorded(operation, task_id, batch.first_token + index, batch.end_ms)
                self._proved[task_id, batch.first_token + index, batch.proofs[8 * index :][:8]] = None

    def _check_known(self, operation: Operation, answer: m.Failed) -> None:
        """A claim that is shown with its proof is known at every node, also while the key is replaced."""
        message: Any = operation.message
        is_one = isinstance(message, m.Append)
        named = [message.id] if is_one else split(message.ids)
        tokens: Sequence[int] = [message.token] if is_one else unpack_u64(message.tokens)
        shown = [message.proofs[8 * index :][:8] for index in range(len(named))]
        if all(row in self._proved for row in zip(named, tokens, shown, strict=True)):
            self.counts[CLAIM_IS_KNOWN] += 1
            if answer.code == "unknown_claim":
                self.blame(CLAIM_IS_KNOWN, f"{operation}, {answer}")

    def _check_renewed(self, operation: Operation, answer: m.Renewed) -> None:
        message = operation.message
        assert isinstance(message, m.Renew)
        rows = zip(split(message.ids), unpack_u64(message.tokens), unpack_u64(answer.ends), strict=True)
        for task_id, token, end_ms in rows:
            if end_ms:
                self._check_recorded(operation, task_id, token, end_ms)


assert HISTORY_HEAD.size >= _COMPLETION, "a history record begins with the completion"
