"""Clients' writes that any owner takes: tasks, log entries, completions and cancellations. Each is checked, then
copied to its owners, where ``keep`` stores it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from skuld_py.errors import Refused
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.node.knowledge.floor import FUTURE_MS_MAX, Floor
from skuld_py.node.operations.admission import Admission
from skuld_py.node.operations.operation import Operation, Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.node.operations.quorum import Make, eras_of
from skuld_py.node.operations.requests import Asked
from skuld_py.node.writes.cancel import CancelOperation
from skuld_py.node.writes.keep import Keeper
from skuld_py.node.writes.names import Found, Naming
from skuld_py.node.writes.quotas import Quotas
from skuld_py.node.writes.tasks import batch_of, check_tasks, named_in, part_of, without
from skuld_py.node.writes.unled import Unled
from skuld_py.node.writes.write import Named, WriteOperation
from skuld_py.partition.leadership.quorum import majority

CHECKPOINT_PROTOCOL = 3
"""Nodes of an older one have no place for a checkpoint, and take a task that has one for malformed."""


class WriteRequests:
    """The writes that one node serves."""

    def __init__(self, operations: Operations, admission: Admission, floor: Floor) -> None:
        self._operations = operations
        self._view = operations.view
        self._outbox = operations.outbox
        self._admission = admission
        self._unled = Unled(operations.view)
        self.quotas = Quotas(operations.view)
        self.asked: Asked = {m.Enqueue: self._enqueue, m.Append: self._append, m.Complete: self._complete,
                             m.Cancel: self._cancel}
        self.served = Keeper(operations.view, floor).served

    def _enqueue(self, now_ms: int, origin: Origin, message: m.Enqueue) -> Operation | None:
        is_odd = check_tasks(now_ms, self._view, message.batches)
        newest_ms = now_ms + self._view.parameters.skew_ms + FUTURE_MS_MAX
        for batch in message.batches:
            if ids.newest_ms(batch.ids) > newest_ms:
                raise Refused("future_id", "id: made in the future by this node's clock; check the clock")
        groups = self._admission.group(b"".join([batch.ids for batch in message.batches]))
        if self._view.timing.refuse_unled:
            self._unled.check(now_ms, groups)
        w = self._admission.owners(message.w)  # here it is refused: behind peers' answers it would end the node
        if self._view.settings.quotas:
            self.quotas.check(now_ms, message.batches)  # last, since what is let in counts
        named = named_in(message.batches) if is_odd else {}
        if not named:
            return self._write(now_ms, origin, w, message.batches, groups=groups)

        def then(then_ms: int, found: Found) -> None:
            self._write_unsettled(then_ms, origin, message, w, named, found)
        Naming(then).begin(now_ms, self._operations, origin, [*named], self._peek)
        return None

    def _peek(self, task_ids: Sequence[bytes]) -> Make:
        asked = b"".join(task_ids)
        return lambda request, partitions: m.Get(request, asked, eras_of(self._view, partitions), is_bare=True)

    def _write_unsettled(self, now_ms: int, origin: Origin, message: m.Enqueue, w: int,
                         named: Mapping[bytes, Named], found: Found) -> None:
        """Store the tasks that have no unique name, or one that is free. A task that a name stands for already has
        a majority of copies; it is written again only if ``w`` asks for more, or if the cluster was created to
        keep fewer copies or more, so that voters may not be as many as are wanted yet."""
        duplicates = [number for task_id, record in found.items() for number in named[task_id].others(record)]
        batches = [part for batch in message.batches if (part := without(batch, found))]
        left = {task_id: each for task_id, each in named.items() if task_id not in found}
        is_as_created = self._view.replicas == self._view.parameters.replicas
        if w > majority(self._view.replicas) or not is_as_created:
            batches += [batch_of(task_id, record) for task_id, record in found.items()]
            left |= {task_id: Named({min(named[task_id].bodies): record}) for task_id, record in found.items()}
        if batches:
            self._write(now_ms, origin, w, batches, left, duplicates).start(now_ms)
        else:
            copies = majority(self._view.replicas)
            self._outbox.reply(origin, m.Acked(origin.request, copies, columns.pack_u64(sorted(duplicates))))

    def _write(self, now_ms: int, origin: Origin, w: int, batches: Sequence[m.TaskBatch],
               named: Mapping[bytes, Named] | None = None, duplicates: Sequence[int] = (),
               groups: Mapping[int, Sequence[int]] | None = None) -> WriteOperation:
        """``groups``: the indexes of all ids by partition, when they are known."""
        parts: dict[int, list[m.TaskBatch]] = {}
        sizes: dict[int, int] = {}
        known = groups if len(batches) == 1 else None
        for batch in batches:
            found = known or ids.group(batch.ids, self._view.parameters.partitions)
            for partition, indexes in found.items():
                part = batch if len(found) == 1 else part_of(batch, ids.split(batch.ids), indexes)
                parts.setdefault(partition, []).append(part)
                sizes[partition] = sizes.get(partition, 0) + len(indexes)

        def make(request: int, partitions: list[int]) -> m.Replicate:
            about = tuple(batch for partition in partitions for batch in parts[partition])
            return m.Replicate(request, about, eras_of(self._view, partitions))
        return WriteOperation(self._operations, origin, now_ms, w, sizes, make, named, duplicates)

    def _append(self, now_ms: int, origin: Origin, message: m.Append) -> Operation:
        view = self._view
        view.notary.check(now_ms, message.id, columns.pack_u64([message.token]), message.proofs, view.is_connected)
        limit, has_checkpoint = self._view.limits.entry_bytes, len(message.checkpoint) > 0
        if max(map(len, message.entries.unpack("entries")), default=0 if has_checkpoint else limit + 1) > limit:
            raise Refused("entry_too_large", f"entries: one to many entries of at most {limit} bytes each")
        if has_checkpoint and view.protocol < CHECKPOINT_PROTOCOL:
            raise Refused("unsupported", "checkpoint: a node of this cluster may not know of checkpoints yet;"
                          " upgrade its nodes, then raise its rules ('skuld cluster rules')",
                          protocol=view.protocol)
        sizes = dict.fromkeys(self._admission.group(message.id), 1)
        w = self._admission.owners(message.w)

        def make(request: int, partitions: list[int]) -> m.Append:
            return attrs.evolve(message, request=request, eras=eras_of(self._view, partitions), proofs=b"")
        return WriteOperation(self._operations, origin, now_ms, w, sizes, make, needs_majority=has_checkpoint)

    def _complete(self, now_ms: int, origin: Origin, message: m.Complete) -> Operation:
        view = self._view
        view.notary.check(now_ms, message.ids, message.tokens, message.proofs, view.is_connected)
        self._admission.check_entries("results", message.results)
        groups = self._admission.group(message.ids)

        def make(request: int, partitions: list[int]) -> m.Complete:
            eras = eras_of(self._view, partitions)
            if len(partitions) == len(groups):
                return m.Complete(request, message.w, now_ms, message.ids, message.tokens, eras, message.results)
            kept = [index for partition in partitions for index in groups[partition]]
            task_ids, tokens = ids.split(message.ids), columns.unpack_u64(message.tokens)
            results = message.results.unpack("results")
            return m.Complete(request, message.w, now_ms, b"".join([task_ids[index] for index in kept]),
                              columns.pack_u64([tokens[index] for index in kept]), eras,
                              columns.pack([results[index] for index in kept] if results else []))
        sizes = {partition: len(indexes) for partition, indexes in groups.items()}
        return WriteOperation(self._operations, origin, now_ms, self._admission.owners(message.w), sizes, make)

    def _cancel(self, now_ms: int, origin: Origin, message: m.Cancel) -> Operation:
        task_ids = ids.split(message.ids)
        groups, w = self._admission.group(message.ids), self._admission.owners(message.w)
        sizes = {partition: len(indexes) for partition, indexes in groups.items()}

        def mark(at_ms: int, ended: Sequence[int]) -> Operation:
            def make(request: int, partitions: list[int]) -> m.Cancel:
                kept = b"".join(task_ids[index] for partition in partitions for index in groups[partition])
                return m.Cancel(request, message.w, at_ms, kept, eras_of(self._view, partitions))
            return WriteOperation(self._operations, origin, at_ms, w, sizes, make, ended=ended)
        return CancelOperation(self._operations, origin, now_ms, task_ids, mark)
