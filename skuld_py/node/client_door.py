"""What a node does for its clients: check, then start an operation.

A refusal here is definite: nothing was sent anywhere yet. Bad input names the field and the remedy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import eq
from typing import Any

import attrs

from skuld_py.config import AHEAD_MS_MAX
from skuld_py.errors import Refused
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.body import Header, encode_body, is_plain, split_body
from skuld_py.model.columns import Column
from skuld_py.model.history import RELEASED
from skuld_py.model.messages.settings import SETTINGS_MAX
from skuld_py.model.prelude import NAMED, ONE_DEP_BYTES, Prelude, only_deps
from skuld_py.model.schedule import SCHEDULE, Schedule
from skuld_py.model.setting import UNSET, check_setting
from skuld_py.node.claims.ask_leaders import ConcludeOperation, RenewOperation, ReviveOperation
from skuld_py.node.claims.claim import ClaimOperation
from skuld_py.node.operations.household import Household
from skuld_py.node.operations.operation import Operation, Origin
from skuld_py.node.operations.places import Places
from skuld_py.node.operations.quorum import Make, eras_of
from skuld_py.node.peer_door import FUTURE_MS_MAX, PeerService
from skuld_py.node.reads.counts import CountOperation
from skuld_py.node.reads.ends import AwaitOperation, ReadLogOperation
from skuld_py.node.reads.get import GetOperation
from skuld_py.node.reads.survey import ListOperation
from skuld_py.node.retention.archive_offers import PartitionQuestion
from skuld_py.node.schedules.ticks import Scheduling
from skuld_py.node.writes.cancel import CancelOperation
from skuld_py.node.writes.names import Found, Naming
from skuld_py.node.writes.setting import ReadSettings, WriteSetting
from skuld_py.node.writes.write import Named, WriteOperation
from skuld_py.partition.leadership.quorum import majority

OF_HOLDERS = (m.Renew, m.Complete, m.Conclude)
"""What is refused last: work that was done would be lost, or done again."""
HOLDERS_PATIENCE = 3
"""They are refused by a node that is so many times as far behind as one that refuses everybody else."""
OF_ONLOOKERS = (m.Greet, m.Describe)
"""What is answered by a node however far behind: who it is, and how it is."""
LATE_MS_MAX = 60_000
"""What a unique name is for was asked for at most so long ago, besides the skew bound: a client asks again for
seconds. So no clock that is far behind puts another content in the place of one that was acknowledged long ago."""


class ClientService:
    """Clients' requests, by message class."""

    def __init__(self, node: Household, peers: PeerService, scheduling: Scheduling) -> None:
        self._node = node
        self._peers = peers
        self._scheduling = scheduling
        self.waits = Places()
        """Of waits for ends and logs."""
        self.listings = Places()
        """Of listings, and of counts of all queues."""
        self._handlers: dict[type[m.Message], Callable[[int, Origin, Any], Operation | None]] = {
            m.Greet: self._greet, m.Enqueue: self._enqueue, m.Claim: self._claim, m.Renew: self._renew,
            m.Append: self._append, m.Complete: self._complete, m.Get: self._get, m.Count: self._count,
            m.List: self._list, m.Describe: self._describe, m.Conclude: self._conclude,
            m.Cancel: self._cancel, m.Revive: self._revive, m.Await: self._await, m.ReadLog: self._read_log,
            m.GetSettings: lambda now_ms, origin, message: ReadSettings(node, origin, now_ms, message),
            m.PutSetting: self._put_setting,
            m.Offer: lambda now_ms, origin, message: PartitionQuestion(node, origin, now_ms, message),
            m.Discard: lambda now_ms, origin, message: PartitionQuestion(node, origin, now_ms, message),
        }

    def serve(self, now_ms: int, client: bytes, message: Any, open_operations: int, behind_ms: int) -> None:
        """Start what a client asks for, or refuse. ``behind_ms``: how long the node's own timers are overdue."""
        origin = Origin(message.request, client=client)
        try:
            self._check_load(message, open_operations, behind_ms)
            operation = self._handlers[type(message)](now_ms, origin, message)
        except Refused as refusal:
            self._node.reply(origin, m.Failed(origin.request, refusal.code, refusal.message, True))
            return
        if operation is not None:
            self._node.start(operation, now_ms)

    def _check_load(self, message: m.Message, open_operations: int, behind_ms: int) -> None:
        """A node that is behind and takes on more answers nobody: what it does is late for whoever asked, and is
        asked for again. To refuse costs it next to nothing."""
        limits, is_of_holder = self._node.limits, isinstance(message, OF_HOLDERS)
        if open_operations >= limits.requests - (0 if is_of_holder else limits.holders_requests):
            raise Refused("busy", "this node has too many open requests; wait and try again")
        if (behind_ms > self._node.timing.behind_ms * (HOLDERS_PATIENCE if is_of_holder else 1)
                and not isinstance(message, OF_ONLOOKERS)):
            raise Refused("busy", f"this node is {behind_ms / 1000:.1f} s behind with what it has to do; wait and"
                          " try again")

    def _group(self, task_ids: bytes) -> dict[int, Sequence[int]]:
        """Indexes of a column of ids by partition; refused before each partition has had its first leader."""
        groups = self._peers.group(task_ids)
        if not groups:
            raise Refused("empty", "ids: none given")
        if not all(self._node.vnode(partition).standing.era for partition in groups):
            raise Refused("not_ready", f"the cluster waits for {self._node.parameters.replicas} nodes to"
                          " join and for their first election; try again, or see 'skuld status'")
        return groups

    def _w(self, w: int) -> int:
        replicas = self._node.parameters.replicas
        if w > replicas:
            raise too_many_owners(w, replicas)
        return w or majority(replicas)

    def _greet(self, now_ms: int, origin: Origin, message: m.Greet) -> None:
        node = self._node
        members = tuple(m.MemberRow(member.name, member.host, member.port)
                        for _, member in sorted(node.live.items()))
        node.reply(origin, m.Greeted(
            origin.request, node.me.name, node.parameters.cluster, node.parameters.partitions,
            node.parameters.replicas, node.parameters.skew_ms, self._peers.floor(now_ms),
            node.limits.payload_bytes, members))

    # -- writes --------------------------------------------------------------------------------

    def _enqueue(self, now_ms: int, origin: Origin, message: m.Enqueue) -> Operation | None:
        self._check_tasks(now_ms, message.batches)
        newest_ms = now_ms + self._node.parameters.skew_ms + FUTURE_MS_MAX
        for batch in message.batches:
            if ids.time_of(max(ids.split(batch.ids))) > newest_ms:
                raise Refused("future_id", "id: made in the future by this node's clock; check the clock")
        self._group(b"".join([batch.ids for batch in message.batches]))
        self._w(message.w)  # here, where it is refused: behind an answer of peers it would end the node
        named = _named(message.batches)
        if not named:
            return self._write(now_ms, origin, message.w, message.batches)

        def then(then_ms: int, found: Found) -> None:
            self._write_unsettled(then_ms, origin, message, named, found)
        Naming(then).begin(now_ms, self._node, origin, [*named], self._peek)
        return None

    def _peek(self, task_ids: Sequence[bytes]) -> Make:
        asked = b"".join(task_ids)
        return lambda request, partitions: m.Get(request, asked, eras_of(self._node, partitions), is_bare=True)

    def _write_unsettled(self, now_ms: int, origin: Origin, message: m.Enqueue, named: Mapping[bytes, Named],
                         found: Found) -> None:
        """Store what is asked for under no name, or under one that is free. What a name stands for already has a
        majority of copies, and is written again only for more of them."""
        duplicates = [number for task_id, record in found.items() for number in named[task_id].others(record)]
        batches = [part for batch in message.batches if (part := _without(batch, found))]
        left = {task_id: each for task_id, each in named.items() if task_id not in found}
        if self._w(message.w) > majority(self._node.parameters.replicas):
            batches += [_batch_of(task_id, record) for task_id, record in found.items()]
            left |= {task_id: Named({min(named[task_id].bodies): record}) for task_id, record in found.items()}
        if batches:
            self._node.start(self._write(now_ms, origin, message.w, batches, left, duplicates), now_ms)
        else:
            copies = majority(self._node.parameters.replicas)
            self._node.reply(origin, m.Acked(origin.request, copies, columns.pack_u64(sorted(duplicates))))

    def _write(self, now_ms: int, origin: Origin, w: int, batches: Sequence[m.TaskBatch],
               named: Mapping[bytes, Named] | None = None, duplicates: Sequence[int] = ()) -> WriteOperation:
        parts: dict[int, list[m.TaskBatch]] = {}
        for batch in batches:
            task_ids = ids.split(batch.ids)
            groups = self._peers.group(batch.ids)
            for partition, indexes in groups.items():
                part = batch if len(groups) == 1 else _part(batch, task_ids, indexes)
                parts.setdefault(partition, []).append(part)
        sizes = {partition: len(indexes) for partition, indexes in self._group(
            b"".join([batch.ids for batch in batches])).items()}

        def make(request: int, partitions: list[int]) -> m.Replicate:
            about = tuple(batch for partition in partitions for batch in parts[partition])
            return m.Replicate(request, about, eras_of(self._node, partitions))
        return WriteOperation(self._node, origin, now_ms, self._w(w), sizes, make, named, duplicates)

    def _check_tasks(self, now_ms: int, batches: Sequence[m.TaskBatch]) -> None:
        limits = self._node.limits
        count = sum(len(batch.ids) // ids.ID_BYTES for batch in batches)
        if not batches or not all(batch.ids for batch in batches):
            raise Refused("empty", "tasks: none given")
        size = sum(len(batch.payloads.data) for batch in batches)
        if count > limits.batch_tasks or size > limits.batch_bytes:
            raise Refused("too_large", f"tasks: a request holds at most {limits.batch_tasks} tasks and"
                          f" {limits.batch_bytes} payload bytes; send several")
        for batch in batches:
            payloads = batch.payloads.unpack("payloads")
            if not is_plain(batch.header):
                header = Header.decode(batch.header)
                _check_window(header.window_ms, self._node.retention.keep_ms)
                payloads = _behind_preludes(now_ms, self._node.parameters.skew_ms, header, batch)
            elif ids.any_laned(batch.ids):
                raise Refused("bad_id", "id: is of a lane, but the task has no key; give the key, or another id")
            size = max(map(len, payloads), default=0)
            if size > limits.payload_bytes:
                raise Refused("payload_too_large", f"payload: {size} bytes, the limit is"
                              f" {limits.payload_bytes}; store the data elsewhere and send its path", size=size)

    def _append(self, now_ms: int, origin: Origin, message: m.Append) -> Operation:
        self._check_claims(now_ms, message.id, columns.pack_u64([message.token]), message.proofs)
        limit = self._node.limits.entry_bytes
        if max(map(len, message.entries.unpack("entries")), default=limit + 1) > limit:
            raise Refused("entry_too_large", f"entries: one to many entries of at most {limit} bytes each")
        sizes = dict.fromkeys(self._group(message.id), 1)

        def make(request: int, partitions: list[int]) -> m.Append:
            return attrs.evolve(message, request=request, eras=eras_of(self._node, partitions), proofs=b"")
        return WriteOperation(self._node, origin, now_ms, self._w(message.w), sizes, make)

    def _complete(self, now_ms: int, origin: Origin, message: m.Complete) -> Operation:
        self._check_claims(now_ms, message.ids, message.tokens, message.proofs)
        self._check_entries("results", message.results)
        groups = self._group(message.ids)

        def make(request: int, partitions: list[int]) -> m.Complete:
            eras = eras_of(self._node, partitions)
            if len(partitions) == len(groups):
                return m.Complete(request, message.w, now_ms, message.ids, message.tokens, eras, message.results)
            kept = [index for partition in partitions for index in groups[partition]]
            task_ids, tokens = ids.split(message.ids), columns.unpack_u64(message.tokens)
            results = message.results.unpack("results")
            return m.Complete(request, message.w, now_ms, b"".join([task_ids[index] for index in kept]),
                              columns.pack_u64([tokens[index] for index in kept]), eras,
                              columns.pack([results[index] for index in kept] if results else []))
        sizes = {partition: len(indexes) for partition, indexes in groups.items()}
        return WriteOperation(self._node, origin, now_ms, self._w(message.w), sizes, make)

    def _cancel(self, now_ms: int, origin: Origin, message: m.Cancel) -> Operation:
        task_ids = ids.split(message.ids)
        groups, w = self._group(message.ids), self._w(message.w)
        sizes = {partition: len(indexes) for partition, indexes in groups.items()}

        def mark(at_ms: int) -> Operation:
            def make(request: int, partitions: list[int]) -> m.Cancel:
                kept = b"".join(task_ids[index] for partition in partitions for index in groups[partition])
                return m.Cancel(request, message.w, at_ms, kept, eras_of(self._node, partitions))
            return WriteOperation(self._node, origin, at_ms, w, sizes, make)
        return CancelOperation(self._node, origin, now_ms, task_ids, mark)

    def _check_entries(self, field: str, entries: Column) -> None:
        limits = self._node.limits
        size = max(map(len, entries.unpack(field)), default=0)
        if size > limits.entry_bytes:
            raise Refused("entry_too_large", f"{field}: {size} bytes, the limit is {limits.entry_bytes}; store the"
                          " data elsewhere and send its path", size=size)
        if len(entries.data) > limits.batch_bytes:
            raise Refused("too_large", f"{field}: a request holds at most {limits.batch_bytes} bytes of them; send"
                          " several")

    # -- claims --------------------------------------------------------------------------------

    def _check_claims(self, now_ms: int, task_ids: bytes, tokens: bytes, proofs: bytes) -> None:
        self._node.notary.check(now_ms, task_ids, tokens, proofs)

    def _claim(self, now_ms: int, origin: Origin, message: m.Claim) -> Operation:
        if self._node.notary.demands(now_ms) and not message.takes_proofs:
            raise Refused("old_client", "claim: this client keeps no proofs of claims, without which nobody may"
                          " complete them here; upgrade it to the release of the nodes")
        return ClaimOperation(self._node, origin, now_ms, message)

    def _renew(self, now_ms: int, origin: Origin, message: m.Renew) -> Operation:
        self._check_claims(now_ms, message.ids, message.tokens, message.proofs)
        self._group(message.ids)
        return RenewOperation(self._node, origin, now_ms, message)

    def _conclude(self, now_ms: int, origin: Origin, message: m.Conclude) -> Operation:
        self._check_claims(now_ms, message.ids, message.tokens, message.proofs)
        self._check_entries("errors", message.errors)
        self._group(message.ids)
        return ConcludeOperation(self._node, origin, now_ms, message)

    def _revive(self, now_ms: int, origin: Origin, message: m.Revive) -> Operation:
        self._group(message.ids)
        return ReviveOperation(self._node, origin, now_ms, message)

    def release(self, now_ms: int, task_ids: bytes, tokens: bytes) -> None:
        """Release claims that nobody waits for; nobody is answered."""
        release = m.Conclude(0, RELEASED, 0, task_ids, tokens)
        self._node.start(ConcludeOperation(self._node, Origin(0), now_ms, release), now_ms)

    # -- reads ---------------------------------------------------------------------------------

    def _get(self, now_ms: int, origin: Origin, message: m.Get) -> Operation:
        def make(request: int, partitions: list[int]) -> m.Get:
            return m.Get(request, message.ids, eras_of(self._node, partitions), is_bare=message.is_bare)
        task_ids, least = ids.split(message.ids), columns.unpack_u64(message.least)
        return GetOperation(self._node, origin, now_ms, task_ids, self._group(message.ids), make,
                            dict(zip(task_ids, least, strict=False)))

    def _await(self, now_ms: int, origin: Origin, message: m.Await) -> Operation:
        self._group(message.ids)
        if len(message.ids) > m.ENDS_MAX * ids.ID_BYTES:
            raise Refused("too_large", f"ids: a request awaits at most {m.ENDS_MAX} tasks; send several")
        return self._with_place(AwaitOperation(self._node, origin, now_ms, message))

    def _read_log(self, now_ms: int, origin: Origin, message: m.ReadLog) -> Operation:
        self._group(message.id)
        return self._with_place(ReadLogOperation(self._node, origin, now_ms, message))

    def _with_place(self, wait: Operation) -> Operation:
        limits = self._node.limits
        if not self.waits.take(wait.request, wait.origin.client or b"", limits.waits, limits.waits_each):
            raise Refused("busy", "too many ends and logs are waited for at this node, or over this connection;"
                          " try again, ask another node, or await several tasks in one request")
        return wait

    def _count(self, now_ms: int, origin: Origin, message: m.Count) -> Operation:
        count = CountOperation(self._node, origin, now_ms, message)
        return count if message.queue else self._among_listings(count)

    def _list(self, now_ms: int, origin: Origin, message: m.List) -> Operation:
        return self._among_listings(ListOperation(self._node, origin, now_ms, message))

    def _among_listings(self, listing: Operation) -> Operation:
        limits, client = self._node.limits, listing.origin.client or b""
        if not self.listings.take(listing.request, client, limits.listings, limits.listings_each):
            raise Refused("busy", "too many listings, or counts of all queues, are open at this node or over this"
                          " connection; try again, ask another node, or ask for one after the other")
        return listing

    def _put_setting(self, now_ms: int, origin: Origin, message: m.PutSetting) -> Operation:
        settings, kind, name = self._node.settings, message.kind, message.name
        check_setting(kind, message.value)
        if kind == SCHEDULE and message.value != UNSET:
            schedule = Schedule.decode(message.value)
            self._scheduling.check(schedule, now_ms)
            message = attrs.evolve(message, value=schedule.upto(now_ms).encode())
        if settings.is_full(kind, name):
            raise Refused("too_many_settings", f"name: {SETTINGS_MAX} settings are kept already, those of resumed"
                          " queues and removed limits among them; only these can be set again")
        newest = max(now_ms + self._node.parameters.skew_ms + FUTURE_MS_MAX, settings.version(kind, name) + 1)
        if message.version > newest:
            raise Refused("bad_version", f"version: {message.version} is no successor of {newest - 1}; ask for the"
                          " setting and use the version told")
        return WriteSetting(self._node, origin, now_ms, message)

    def _describe(self, now_ms: int, origin: Origin, message: m.Describe) -> None:
        is_unproven = message.reads_unproven and not self._node.notary.demands(now_ms)
        self._node.reply(origin, attrs.evolve(self._node.description(origin.request), is_unproven=is_unproven))


def too_many_owners(w: int, replicas: int) -> Refused:
    """More owners are to store something than a cluster has."""
    return Refused("bad_w", f"w: {w} is more than the {replicas} replicas; use 0 for a majority", w=w)


def _behind_preludes(now_ms: int, skew_ms: int, header: Header, batch: m.TaskBatch) -> list[bytes]:
    """The payloads without what stands before them; options that make no sense are refused."""
    payloads: list[bytes] = []
    task_ids, rests = ids.split(batch.ids), batch.payloads.unpack("payloads")
    deps = only_deps(header.prelude, rests)
    if deps and not ids.any_laned(batch.ids) and not any(map(eq, task_ids, deps)):
        return [rest[ONE_DEP_BYTES:] for rest in rests]
    for task_id, rest in zip(task_ids, rests, strict=True):
        prelude, size = Prelude.decode(header.prelude, rest)
        _check_prelude(now_ms, prelude)
        problem = prelude.problem_of(task_id, header.queue, header.window_ms)
        if problem:
            raise Refused("bad_deps" if problem.startswith("deps") else "bad_id", problem)
        if prelude.unique:
            _check_made(now_ms, prelude.made_ms, skew_ms)
        payloads.append(rest[size:])
    return payloads


def _check_window(window_ms: int, keep_ms: int) -> None:
    """Ids of a name are as old as its window is, and nothing is added where ended tasks are collected: late in a
    window that is longer than they are kept, the name could neither be found nor taken."""
    if keep_ms and window_ms > keep_ms:
        raise Refused("bad_unique", f"window: a name would be unique for {window_ms / 1000:g} s, but ended tasks"
                      f" are kept for {keep_ms / 1000:g} s, the nodes' --retention; use a shorter window, or start"
                      " the nodes with a longer retention")


def _check_made(now_ms: int, made_ms: int, skew_ms: int) -> None:
    if not now_ms - skew_ms - LATE_MS_MAX <= made_ms <= now_ms + skew_ms + FUTURE_MS_MAX:
        raise Refused("bad_unique", f"made: {made_ms} ms is too far from this node's clock; check the clock")


def _check_prelude(now_ms: int, prelude: Prelude) -> None:
    not_before_ms, expires_ms = prelude.not_before_ms, prelude.expires_ms
    if 0 < expires_ms <= not_before_ms:
        raise Refused("bad_time", f"expires: {expires_ms} ms is not later than not_before, {not_before_ms} ms;"
                      " the task could never be claimed")
    if max(not_before_ms, expires_ms) > now_ms + AHEAD_MS_MAX:
        raise Refused("bad_time", f"{'expires' if expires_ms > not_before_ms else 'not_before'}: more than ten"
                      " years ahead; milliseconds since 1970 are wanted")


def _named(batches: Sequence[m.TaskBatch]) -> dict[bytes, Named]:
    """The tasks with unique names, by what their numbers in the request are."""
    if all(is_plain(batch.header) for batch in batches):
        return {}
    asked: dict[bytes, dict[int, bytes]] = {}
    start = 0
    for batch in batches:
        task_ids = ids.split(batch.ids)
        if Header.decode(batch.header).prelude & NAMED:
            for number, (task_id, rest) in enumerate(zip(task_ids, batch.payloads.unpack(), strict=True), start):
                asked.setdefault(task_id, {})[number] = encode_body(batch.header, rest)
        start += len(task_ids)
    return {task_id: Named(bodies) for task_id, bodies in asked.items()}


def _without(batch: m.TaskBatch, found: Found) -> m.TaskBatch | None:
    """What of a batch is not there already."""
    task_ids = ids.split(batch.ids)
    left = [index for index, task_id in enumerate(task_ids) if task_id not in found]
    if len(left) == len(task_ids):
        return batch
    return _part(batch, task_ids, left) if left else None


def _batch_of(task_id: bytes, record: bytes) -> m.TaskBatch:
    header, rest = split_body(record)
    return m.TaskBatch(header, task_id, columns.pack([rest]))


def _part(batch: m.TaskBatch, task_ids: Sequence[bytes], indexes: Sequence[int]) -> m.TaskBatch:
    payloads = batch.payloads.unpack("payloads")
    return m.TaskBatch(batch.header, b"".join(task_ids[index] for index in indexes),
                       columns.pack([payloads[index] for index in indexes]))
