"""What a node does for its clients: check, then start an operation.

A refusal here is definite: nothing was sent anywhere yet. Bad input names the field and the remedy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from skuld_py.errors import Refused
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.node.claiming import ClaimOperation, RenewOperation
from skuld_py.node.household import Household
from skuld_py.node.operation import Operation, Origin
from skuld_py.node.serving import PeerService
from skuld_py.node.storing import GetOperation, WriteOperation
from skuld_py.node.surveying import SurveyOperation
from skuld_py.partition.quorum import majority

FUTURE_MS_MAX = 5_000
"""An id may be this much newer than this node's clock, besides the skew bound."""


class ClientService:
    """Clients' requests, by message class."""

    def __init__(self, node: Household, peers: PeerService) -> None:
        self._node = node
        self._peers = peers
        self._handlers: dict[type[m.Message], Callable[[int, Origin, Any], Operation | None]] = {
            m.Greet: self._greet, m.Enqueue: self._enqueue, m.Claim: self._claim, m.Renew: self._renew,
            m.Append: self._append, m.Complete: self._complete, m.Get: self._get, m.Count: self._survey,
            m.List: self._survey, m.Describe: self._describe,
        }

    def serve(self, now_ms: int, client: bytes, message: Any, open_operations: int) -> None:
        """Start what a client asks for, or refuse."""
        origin = Origin(message.request, client=client)
        try:
            if open_operations >= self._node.limits.requests:
                raise Refused("busy", "this node has too many open requests; wait and try again")
            operation = self._handlers[type(message)](now_ms, origin, message)
        except Refused as refusal:
            self._node.reply(origin, m.Failed(origin.request, refusal.code, refusal.message, True))
            return
        if operation is not None:
            self._node.start(operation, now_ms)

    def _owners(self, task_ids: Sequence[bytes]) -> dict[int, tuple[str, ...]]:
        partitions = {partition: self._node.owners(partition) for partition in self._peers.group(task_ids)}
        if not partitions:
            raise Refused("empty", "ids: none given")
        if not all(partitions.values()):
            raise Refused("not_ready", f"the cluster waits for {self._node.parameters.replicas} nodes to"
                          " join; start more, or see 'skuld status'")
        return partitions

    def _w(self, w: int) -> int:
        replicas = self._node.parameters.replicas
        if w > replicas:
            raise Refused("bad_w", f"w: {w} is more than the {replicas} replicas; use 0 for a majority", w=w)
        return w or majority(replicas)

    def _greet(self, now_ms: int, origin: Origin, message: m.Greet) -> None:
        node = self._node
        members = tuple(m.MemberRow(member.name, member.host, member.port)
                        for _, member in sorted(node.live.items()))
        node.reply(origin, m.Greeted(
            origin.request, node.me.name, node.parameters.cluster, node.parameters.partitions,
            node.parameters.replicas, node.parameters.skew_ms, self._peers.floor_ms,
            node.limits.payload_bytes, members))

    # -- writes --------------------------------------------------------------------------------

    def _enqueue(self, now_ms: int, origin: Origin, message: m.Enqueue) -> Operation:
        self._check_sizes(message.batches)
        newest_ms = now_ms + self._node.parameters.skew_ms + FUTURE_MS_MAX
        parts: dict[int, list[m.TaskBatch]] = {}
        every: list[bytes] = []
        for batch in message.batches:
            task_ids = ids.split(batch.ids)
            every += task_ids
            if ids.time_of(max(task_ids)) > newest_ms:
                raise Refused("future_id", "id: made in the future by this node's clock; check the clock")
            groups = self._peers.group(task_ids)
            for partition, indexes in groups.items():
                part = batch if len(groups) == 1 else _part(batch, task_ids, indexes)
                parts.setdefault(partition, []).append(part)
        owners = self._owners(every)
        operation = WriteOperation(self._node, origin, now_ms, self._w(message.w), {}, owners)
        operation.messages = {
            peer: m.Replicate(operation.request, tuple(batch for partition, batches in parts.items()
                                                       if peer in owners[partition] for batch in batches))
            for peer in _all_of(owners)}
        return operation

    def _check_sizes(self, batches: Sequence[m.TaskBatch]) -> None:
        limits = self._node.limits
        count = sum(len(batch.ids) // ids.ID_BYTES for batch in batches)
        if not batches or not all(batch.ids for batch in batches):
            raise Refused("empty", "tasks: none given")
        size = sum(len(batch.payloads.data) for batch in batches)
        if count > limits.batch_tasks or size > limits.batch_bytes:
            raise Refused("too_large", f"tasks: a request holds at most {limits.batch_tasks} tasks and"
                          f" {limits.batch_bytes} payload bytes; send several")
        for batch in batches:
            size = max(map(len, batch.payloads.unpack("payloads")), default=0)
            if size > limits.payload_bytes:
                raise Refused("payload_too_large", f"payload: {size} bytes, the limit is"
                              f" {limits.payload_bytes}; store the data elsewhere and send its path", size=size)

    def _append(self, now_ms: int, origin: Origin, message: m.Append) -> Operation:
        limit = self._node.limits.entry_bytes
        if max(map(len, message.entries.unpack("entries")), default=limit + 1) > limit:
            raise Refused("entry_too_large", f"entries: one to many entries of at most {limit} bytes each")
        return self._write(now_ms, origin, message, [message.id])

    def _complete(self, now_ms: int, origin: Origin, message: m.Complete) -> Operation:
        return self._write(now_ms, origin, attrs.evolve(message, at_ms=now_ms), ids.split(message.ids))

    def _write(self, now_ms: int, origin: Origin, message: m.Append | m.Complete,
               task_ids: Sequence[bytes]) -> Operation:
        owners = self._owners(task_ids)
        operation = WriteOperation(self._node, origin, now_ms, self._w(message.w), {}, owners)
        copy = attrs.evolve(message, request=operation.request)
        operation.messages = dict.fromkeys(_all_of(owners), copy)
        if len(owners) > 1 and isinstance(copy, m.Complete):
            operation.messages = {peer: self._completions_for(peer, copy, owners)
                                  for peer in operation.messages}
        return operation

    def _completions_for(self, peer: str, message: m.Complete,
                         owners: dict[int, tuple[str, ...]]) -> m.Complete:
        if all(peer in names for names in owners.values()):
            return message
        task_ids, tokens = ids.split(message.ids), columns.unpack_u64(message.tokens)
        kept = [index for partition, indexes in self._peers.group(task_ids).items()
                if peer in owners[partition] for index in indexes]
        return attrs.evolve(message, ids=b"".join(task_ids[index] for index in kept),
                            tokens=columns.pack_u64([tokens[index] for index in kept]))

    # -- claims --------------------------------------------------------------------------------

    def _claim(self, now_ms: int, origin: Origin, message: m.Claim) -> Operation:
        return ClaimOperation(self._node, origin, now_ms, message)

    def _renew(self, now_ms: int, origin: Origin, message: m.Renew) -> Operation:
        self._owners(ids.split(message.ids))
        return RenewOperation(self._node, origin, now_ms, message)

    def release(self, now_ms: int, task_ids: bytes, tokens: bytes) -> None:
        """Release claims that nobody waits for; nobody is answered."""
        renew = m.Renew(0, 0, task_ids, tokens)
        self._node.start(RenewOperation(self._node, Origin(0), now_ms, renew), now_ms)

    # -- reads ---------------------------------------------------------------------------------

    def _get(self, now_ms: int, origin: Origin, message: m.Get) -> Operation:
        task_ids = ids.split(message.ids)
        owners = self._owners(task_ids)
        operation = GetOperation(self._node, origin, now_ms, {}, owners)
        copy = m.Get(operation.request, message.ids)
        operation.messages = dict.fromkeys(_all_of(owners), copy)
        return operation

    def _survey(self, now_ms: int, origin: Origin, message: m.Count | m.List) -> Operation:
        return SurveyOperation(self._node, origin, now_ms, message)

    def _describe(self, now_ms: int, origin: Origin, message: m.Describe) -> None:
        self._node.reply(origin, self._node.description(origin.request))


def _all_of(owners: dict[int, tuple[str, ...]]) -> list[str]:
    return list(dict.fromkeys(name for names in owners.values() for name in names))


def _part(batch: m.TaskBatch, task_ids: Sequence[bytes], indexes: Sequence[int]) -> m.TaskBatch:
    payloads = batch.payloads.unpack("payloads")
    return m.TaskBatch(batch.header, b"".join(task_ids[index] for index in indexes),
                       columns.pack([payloads[index] for index in indexes]))
