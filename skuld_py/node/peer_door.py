"""What a node does for its peers (and for itself, by the same road): one handler per message.

Handlers for data answer whoever owns a copy; handlers for epochs answer by the vnode's promise. A
message about a partition this node does not own is still served, since ownership may have moved
while it travelled; what it stores is found by the exchange.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from skuld_py.errors import Malformed
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.asides import Aside
from skuld_py.model.columns import Column
from skuld_py.model.cuts import Cuts
from skuld_py.model.history import CANCELLED
from skuld_py.model.notes import alike
from skuld_py.model.outcomes import RESULT_SEQ
from skuld_py.model.state import State
from skuld_py.node.claims.claim import lead_claim
from skuld_py.node.claims.verdicts import lead_conclusion, lead_renewal, lead_revival
from skuld_py.node.copies.exchanges import Comparing
from skuld_py.node.copies.moves import Moving
from skuld_py.node.dependencies.dependency_side import lead_tell, lead_watch
from skuld_py.node.leadership.elections import Steward
from skuld_py.node.limits.borrower import Borrowing
from skuld_py.node.limits.lender import Lender
from skuld_py.node.operations.household import Household
from skuld_py.node.operations.operation import Host, Origin
from skuld_py.node.reads.counts import summed
from skuld_py.node.reads.pages import Pages
from skuld_py.node.retention.archive_offers import Offering
from skuld_py.node.retention.replica_side import delete, ebb
from skuld_py.partition.copies.exchange import answer_compare, answer_fetch, answer_probe
from skuld_py.partition.copies.garbage import shut, unknown_below
from skuld_py.partition.data.facts import Mark
from skuld_py.partition.data.rows import merge_rows, read_cut, read_ends
from skuld_py.partition.vnode import Vnode

FUTURE_MS_MAX = 5_000
"""An id may be this much newer than a coordinator's clock, besides the skew bound."""


class PeerService:
    """Peers' requests, by message class."""

    def __init__(self, node: Household, steward: Steward, comparing: Comparing, moving: Moving,
                 borrowing: Borrowing, lender: Lender) -> None:
        self._node = node
        self._steward = steward
        self._comparing = comparing
        self._moving = moving
        self._borrowing = borrowing
        self._lender = lender
        self.floor_ms = 0
        self.pages = Pages(node, self.owned)
        offering = Offering(node, steward.collecting)
        self._handlers: dict[type[m.Message], Callable[[int, str, Any], m.Message | None]] = {
            m.Replicate: self._replicate, m.Append: self._append, m.Complete: self._complete,
            m.Cancel: self._cancel, m.Get: self._get, m.Sum: self._sum, m.List: self._list,
            m.Delegate: self._lead(lead_claim), m.Renew: self._lead(lead_renewal),
            m.Conclude: self._lead(lead_conclusion), m.Revive: self._lead(lead_revival),
            m.Grant: lambda now, peer, msg: self._vnode(msg.partition).on_grant(now, peer, msg),
            m.Amend: lambda now, peer, msg: self._vnode(msg.partition).on_amend(now, peer, msg),
            m.RequestVote: self._request_vote,
            m.PullClaims: lambda now, peer, msg: self._vnode(msg.partition).on_pull(now, peer, msg),
            m.PushClaims: lambda now, peer, msg: self._vnode(msg.partition).on_push(now, peer, msg),
            m.Vote: self._vote, m.ClaimPage: self._advance("on_page"),
            m.ClaimsKept: self._advance("on_kept"), m.Synced: self._advance("on_synced"),
            m.Sync: self._sync, m.Abdicate: self._abdicate,
            m.Gossip: self._gossip, m.PartialGossip: self._gossip, m.Invite: self._invite,
            m.Watch: self._lead(lead_watch), m.Tell: self._lead(lead_tell), m.Note: self._note,
            m.GetSettings: self._get_settings, m.PutSetting: self._put_setting,
            m.Borrow: lender.on_borrow, m.Spent: lender.on_spent,
            m.Reckon: lambda now, peer, msg: borrowing.on_reckon(peer, msg), m.Freed: self._freed,
            m.PullSettings: lambda now, peer, msg: self._node.settings.answer(msg),
            m.PulledSettings: lambda now, peer, msg: self._node.settings.join(msg.rows),
            m.Probe: self._probe,
            m.Compare: self._compare, m.Fetch: self._fetch, m.Repair: self._repair, m.Mend: self._mend,
            m.Interest: self._interest,
            m.Ebb: lambda now, peer, msg: ebb(node, now, self._vnode(msg.partition), msg),
            m.Collect: lambda now, peer, msg: delete(node, self._vnode(msg.partition), msg),
            m.Offer: offering.on_offer, m.Discard: offering.on_discard,
            m.Probed: comparing.on_answer, m.Compared: comparing.on_answer, m.Fetched: comparing.on_answer,
        }

    def handles(self, message: m.Message) -> bool:
        """Whether it is a request, as opposed to an answer to one of our operations."""
        return type(message) in self._handlers

    def serve(self, now_ms: int, peer: str, message: m.Message) -> m.Message | None:
        """Carry out a peer's request; the answer goes back to it."""
        return self._handlers[type(message)](now_ms, peer, message)

    def _vnode(self, partition: int) -> Vnode:
        if not 0 <= partition < self._node.parameters.partitions:
            raise Malformed("partition", f"{partition} does not exist")
        return self._node.vnodes[partition]

    def _vnode_of(self, task_id: bytes) -> Vnode:
        return self._node.vnodes[ids.partition_of(task_id, self._node.parameters.partitions)]

    def group(self, task_ids: bytes) -> dict[int, Sequence[int]]:
        """Indexes of a column of ids by partition."""
        return ids.group(task_ids, self._node.parameters.partitions)

    def floor(self, now_ms: int) -> int:
        """The time that new ids must be above. One that lies in the future was noted by a clock that was wrong:
        what is told can be met."""
        self.floor_ms = min(self.floor_ms, now_ms + FUTURE_MS_MAX)
        return self.floor_ms

    # -- data ----------------------------------------------------------------------------------

    def _replicate(self, now_ms: int, peer: str, message: m.Replicate) -> m.Kept:
        refused: list[bytes] = []
        old: list[bytes] = []
        unkept, cohorts = self._standings(message.eras)
        for batch in message.batches:
            task_ids, payloads = ids.split(batch.ids), batch.payloads.unpack("payloads")
            if len(self.group(batch.ids)) != 1:
                raise Malformed("Replicate.ids", "a batch holds tasks of one partition")
            vnode = self._vnode_of(task_ids[0])
            newest_ms = now_ms + 2 * self._node.parameters.skew_ms + FUTURE_MS_MAX
            self.floor_ms = max(self.floor_ms, min(newest_ms, ids.time_of(max(task_ids))))
            late = unknown_below(vnode.replica, task_ids)
            if late:
                old += late
                rows = [row for row in zip(task_ids, payloads, strict=True) if row[0] not in late]
                task_ids, payloads = [row[0] for row in rows], [row[1] for row in rows]
            if task_ids and self._takes_writes(vnode):
                refused += vnode.replica.store_tasks(now_ms, batch.header, task_ids, payloads)
        return m.Kept(message.request, b"".join(refused), self._without(unkept, old), cohorts, b"".join(old))

    def _without(self, unkept: bytes, old: Sequence[bytes]) -> bytes:
        """The partitions not to be counted, with those of tasks that were too old."""
        if not old:
            return unkept
        return columns.pack_u64(list(dict.fromkeys([*columns.unpack_u64(unkept), *self.group(b"".join(old))])))

    def _takes_writes(self, vnode: Vnode) -> bool:
        return vnode.takes_writes(self._node.owners(vnode.partition))

    def _standings(self, eras: bytes) -> tuple[bytes, tuple[m.CohortRow, ...]]:
        """For the partitions asked about: which the sender must not count here, and who counts besides."""
        numbers = columns.unpack_u64(eras)
        uncounted, cohorts = [], []
        for partition, era in zip(numbers[::2], numbers[1::2], strict=True):
            vnode = self._vnode(partition)
            if not vnode.is_counted or not self._takes_writes(vnode):
                uncounted.append(partition)
            cohorts += vnode.cohorts_for(era)
        return columns.pack_u64(uncounted), tuple(cohorts)

    def _append(self, now_ms: int, peer: str, message: m.Append) -> m.Kept:
        entries = message.entries.unpack("entries")
        unkept, cohorts = self._standings(message.eras)
        vnode = self._vnode_of(message.id)
        if shut(vnode.replica, [message.id]):
            return m.Kept(message.request, b"", self._without(unkept, [message.id]), cohorts, message.id)
        is_kept = (not self._takes_writes(vnode)
                   or vnode.replica.append(message.id, message.token, message.seq, entries))
        return m.Kept(message.request, b"" if is_kept else message.id, unkept, cohorts)

    def _complete(self, now_ms: int, peer: str, message: m.Complete) -> m.Kept:
        _check_dated(message)
        task_ids, tokens = ids.split(message.ids), columns.unpack_u64(message.tokens)
        results = message.results.unpack("results")
        unkept, cohorts = self._standings(message.eras)
        old: list[bytes] = []
        for partition, indexes in self.group(message.ids).items():
            vnode = self._node.vnodes[partition]
            done = columns.pick(task_ids, indexes)
            over = shut(vnode.replica, done)
            if over:
                old += [task_id for task_id, history in over.items()
                        if history is None or not history.is_completed]
                indexes = [index for index in indexes if task_ids[index] not in over]
                done = columns.pick(task_ids, indexes)
            if done and self._takes_writes(vnode):
                by = columns.pick(tokens, indexes)
                vnode.replica.finish(now_ms, done, by, message.at_ms)
                if results:
                    vnode.replica.note_outcomes(RESULT_SEQ, done, by, columns.pick(results, indexes))
        return m.Kept(message.request, b"", self._without(unkept, old), cohorts, b"".join(old))

    def _cancel(self, now_ms: int, peer: str, message: m.Cancel) -> m.Kept:
        _check_dated(message)
        unkept, cohorts = self._standings(message.eras)
        old: list[bytes] = []
        for task_id in ids.split(message.ids):
            vnode = self._vnode_of(task_id)
            if shut(vnode.replica, [task_id]):
                old.append(task_id)
            elif self._takes_writes(vnode):
                vnode.replica.mark(now_ms, [Mark(task_id, CANCELLED, message.at_ms)])
        return m.Kept(message.request, b"", self._without(unkept, old), cohorts, b"".join(old))

    def _note(self, now_ms: int, peer: str, message: m.Note) -> m.Kept:
        unkept, cohorts = self._standings(message.eras)
        for (token, seq), task_ids in alike(message.ids, message.tokens, message.seqs).items():
            for partition, noted in ids.by_partition(task_ids, self._node.parameters.partitions).items():
                vnode = self._node.vnodes[partition]
                if self._takes_writes(vnode):
                    vnode.replica.note(now_ms, token, seq, noted)
        return m.Kept(message.request, b"", unkept, cohorts)

    def _get(self, now_ms: int, peer: str, message: m.Get) -> m.Got:
        rows: list[tuple[m.TaskRow, Cuts]] = []
        task_ids = ids.split(message.ids)
        for partition, indexes in self.group(message.ids).items():
            rows += read_cut(self._node.vnodes[partition].replica, [task_ids[index] for index in indexes],
                             message.is_bare)
        return m.Got(message.request, tuple(row for row, _ in rows), *self._standings(message.eras),
                     self._asides(rows))

    def _asides(self, rows: Sequence[tuple[m.TaskRow, Cuts]]) -> Column:
        """Which tasks are behind others of their keys, and behind which; and what is left out of their logs."""
        said = [_aside(self._vnode_of(row.id).replica.filing.ahead(row.id), cuts) for row, cuts in rows]
        return columns.pack(said) if any(said) else Column()

    def _interest(self, now_ms: int, peer: str, message: m.Interest) -> m.Got:
        rows: list[tuple[m.TaskRow, bytes]] = []
        gone: list[bytes] = []
        task_ids = ids.split(message.ids)
        for partition, indexes in self.group(message.ids).items():
            replica, part = self._node.vnodes[partition].replica, columns.pick(task_ids, indexes)
            rows += read_ends(replica, part, message.token, message.after, message.limit)
            gone += replica.gone(part)
        if message.watcher and gone:
            self._node.send(peer, m.Kept(message.request, b"", self._without(b"", gone), (), b"".join(gone)))
        if message.watcher:
            self._node.interests.add(now_ms, (peer, message.watcher), task_ids)
        return m.Got(message.request, tuple(row for row, _ in rows), *self._standings(message.eras),
                     columns.pack([header for _, header in rows]))

    def _mend(self, now_ms: int, peer: str, message: m.Mend) -> m.Kept:
        """As ``_repair``, but its sender waits for it. What conflicts stays as it is, and one is shown."""
        unkept, cohorts = self._standings(message.eras)
        rows = list({row.id: row for row in message.tasks}.values())
        for partition, indexes in self.group(b"".join([row.id for row in rows])).items():
            vnode = self._node.vnodes[partition]
            if self._takes_writes(vnode):
                merge_rows(vnode.replica, now_ms, self._node.parameters.partitions,
                           [rows[index] for index in indexes])
        return m.Kept(message.request, b"", unkept, cohorts)

    def owned(self) -> list[Vnode]:
        """Partitions that this node can speak for."""
        return [vnode for vnode in self._node.vnodes
                if vnode.is_counted and self._node.me.name in vnode.standing.cohort]

    def _sum(self, now_ms: int, peer: str, message: m.Sum) -> m.Summed | None:
        """Of one queue it is a look at some counters."""
        if message.queue:
            return summed(self.owned(), message)
        self.pages.put(now_ms, peer, message)
        return None

    def _list(self, now_ms: int, peer: str, message: m.List) -> None:
        self.pages.put(now_ms, peer, message)

    # -- leading -------------------------------------------------------------------------------

    def _lead(self, lead: Callable[[Host, int, Origin, Any], None]) -> Callable[[int, str, Any], None]:
        def handle(now_ms: int, peer: str, message: Any) -> None:
            lead(self._node, now_ms, Origin(message.request, peer=peer), message)
        return handle

    def _request_vote(self, now_ms: int, peer: str, message: m.RequestVote) -> m.Vote | None:
        vnode = self._vnode(message.partition)
        return vnode.on_request_vote(now_ms, peer, message, self._steward.is_led(now_ms, vnode))

    def _vote(self, now_ms: int, peer: str, message: m.Vote) -> None:
        candidacy = self._node.candidacy(self._vnode(message.partition))
        self._moving.on_vote(peer, message)
        self._node.carry_out(candidacy.on_vote(now_ms, peer, message))

    def _advance(self, handler: str) -> Callable[[int, str, Any], None]:
        def handle(now_ms: int, peer: str, message: Any) -> None:
            candidacy = self._node.candidacy(self._vnode(message.partition))
            self._node.carry_out(getattr(candidacy, handler)(now_ms, peer, message))
        return handle

    def _sync(self, now_ms: int, peer: str, message: m.Sync) -> None:
        self._vnode(message.partition)
        self._moving.on_sync(now_ms, peer, message)

    def _abdicate(self, now_ms: int, peer: str, message: m.Abdicate) -> None:
        if self._node.is_connected:
            candidacy = self._node.candidacy(self._vnode(message.partition))
            self._node.carry_out(candidacy.on_abdicate(now_ms, peer, message))

    # -- gossip and anti-entropy -----------------------------------------------------------------

    def _gossip(self, now_ms: int, peer: str, message: m.Gossip) -> None:
        self._steward.on_gossip(now_ms, peer, message)

    def _get_settings(self, now_ms: int, peer: str, message: m.GetSettings) -> m.GotSettings:
        rows, upto = self._node.settings.page(message.kind, message.name, message.after)
        return m.GotSettings(message.request, rows, upto, 1 + max((row.version for row in rows), default=0))

    def _put_setting(self, now_ms: int, peer: str, message: m.PutSetting) -> m.SettingPut:
        self._node.settings.join([m.SettingRow(message.kind, message.name, message.version, message.writer,
                                               message.value)])
        return m.SettingPut(message.request, 1, ())

    def _freed(self, now_ms: int, peer: str, message: m.Freed) -> None:
        self._lender.on_freed(message)
        self._borrowing.moisten(message.queue)

    def _invite(self, now_ms: int, peer: str, message: m.Invite) -> None:
        self._vnode(message.partition)
        self._comparing.on_invite(message)

    def _probe(self, now_ms: int, peer: str, message: m.Probe) -> m.Probed | None:
        """Nobody compares with a vnode that has nothing to keep."""
        vnode = self._vnode(message.partition)
        return answer_probe(vnode.replica, message) if self._takes_writes(vnode) else None

    def _compare(self, now_ms: int, peer: str, message: m.Compare) -> m.Compared:
        return answer_compare(self._vnode(message.partition).replica, self._node.limits, message)

    def _fetch(self, now_ms: int, peer: str, message: m.Fetch) -> m.Fetched:
        return answer_fetch(self._vnode(message.partition).replica, self._node.limits, message)

    def _repair(self, now_ms: int, peer: str, message: m.Repair) -> None:
        vnode = self._vnode(message.partition)
        if self._takes_writes(vnode):
            merge_rows(vnode.replica, now_ms, self._node.parameters.partitions, message.tasks)


def _aside(ahead: Sequence[bytes], cuts: Cuts) -> bytes:
    return Aside(State.BLOCKED if ahead else None, tuple(ahead), cuts).encode()


def _check_dated(message: m.Complete | m.Cancel) -> None:
    """Only clients, whose clocks do not count, leave it to their coordinator to say when."""
    if not message.at_ms:
        raise Malformed(f"{type(message).__name__}.at_ms", "no coordinator has said when")
