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
from skuld_py.node.claiming import lead_claim, lead_renewal
from skuld_py.node.comparing import Comparing
from skuld_py.node.household import Household
from skuld_py.node.operation import Origin
from skuld_py.node.steward import Steward
from skuld_py.partition import tables
from skuld_py.partition.exchange import answer_compare, answer_fetch, answer_probe
from skuld_py.partition.rows import merge_rows, read_rows
from skuld_py.partition.vnode import Vnode

SCAN_PAGES = 20
COUNT_ROWS_MAX = 1_000


class PeerService:
    """Peers' requests, by message class."""

    def __init__(self, node: Household, steward: Steward, comparing: Comparing) -> None:
        self._node = node
        self._steward = steward
        self._comparing = comparing
        self.floor_ms = 0
        self._handlers: dict[type[m.Message], Callable[[int, str, Any], m.Message | None]] = {
            m.Replicate: self._replicate, m.Append: self._append, m.Complete: self._complete,
            m.Get: self._get, m.Count: self._count, m.List: self._list,
            m.Delegate: self._delegate, m.Renew: self._renew,
            m.Grant: lambda now, peer, msg: self._vnode(msg.partition).on_grant(now, peer, msg),
            m.Amend: lambda now, peer, msg: self._vnode(msg.partition).on_amend(now, peer, msg),
            m.RequestVote: lambda now, peer, msg: self._vnode(msg.partition).on_request_vote(now, peer, msg),
            m.PullClaims: lambda now, peer, msg: self._vnode(msg.partition).on_pull(peer, msg),
            m.PushClaims: lambda now, peer, msg: self._vnode(msg.partition).on_push(now, peer, msg),
            m.Vote: self._advance("on_vote"), m.ClaimPage: self._advance("on_page"),
            m.ClaimsKept: self._advance("on_kept"),
            m.Gossip: self._gossip, m.Invite: self._invite,
            m.Probe: lambda _, peer, msg: answer_probe(self._vnode(msg.partition).replica, msg),
            m.Compare: self._compare, m.Fetch: self._fetch, m.Repair: self._repair,
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

    def group(self, task_ids: Sequence[bytes]) -> dict[int, list[int]]:
        """Indexes of ids by partition; a batch of one route, the common case, is seen as such."""
        routes: dict[bytes, list[int]] = {}
        if len({task_id[16:] for task_id in task_ids}) == 1:
            routes[task_ids[0][16:]] = list(range(len(task_ids)))
        else:
            for index, task_id in enumerate(task_ids):
                routes.setdefault(task_id[16:], []).append(index)
        groups: dict[int, list[int]] = {}
        mask = self._node.parameters.partitions - 1
        for route, indexes in routes.items():
            groups.setdefault(int.from_bytes(route, "big") & mask, []).extend(indexes)
        return groups

    # -- data ----------------------------------------------------------------------------------

    def _replicate(self, now_ms: int, peer: str, message: m.Replicate) -> m.Kept:
        refused: list[bytes] = []
        for batch in message.batches:
            task_ids, payloads = ids.split(batch.ids), batch.payloads.unpack("payloads")
            if len(self.group(task_ids)) != 1:
                raise Malformed("Replicate.ids", "a batch holds tasks of one partition")
            replica = self._vnode_of(task_ids[0]).replica
            refused += replica.store_tasks(now_ms, batch.header, task_ids, payloads)
            self.floor_ms = max(self.floor_ms, ids.time_of(max(task_ids)))
        return m.Kept(message.request, b"".join(refused))

    def _append(self, now_ms: int, peer: str, message: m.Append) -> m.Kept:
        entries = message.entries.unpack("entries")
        is_kept = self._vnode_of(message.id).replica.append(message.id, message.token, message.seq, entries)
        return m.Kept(message.request, b"" if is_kept else message.id)

    def _complete(self, now_ms: int, peer: str, message: m.Complete) -> m.Kept:
        task_ids, tokens = ids.split(message.ids), columns.unpack_u64(message.tokens)
        for partition, indexes in self.group(task_ids).items():
            self._node.vnodes[partition].replica.finish(
                now_ms, [task_ids[index] for index in indexes], [tokens[index] for index in indexes],
                message.at_ms)
        return m.Kept(message.request, b"")

    def _get(self, now_ms: int, peer: str, message: m.Get) -> m.Got:
        rows: list[m.TaskRow] = []
        task_ids = ids.split(message.ids)
        for partition, indexes in self.group(task_ids).items():
            rows += read_rows(self._node.vnodes[partition].replica, [task_ids[index] for index in indexes])
        return m.Got(message.request, tuple(rows))

    def owned(self) -> list[Vnode]:
        """Partitions placed on this node."""
        return [vnode for vnode in self._node.vnodes
                if self._node.me.name in self._node.owners(vnode.partition)]

    def _count(self, now_ms: int, peer: str, message: m.Count) -> m.Counted:
        queue = message.queue.encode() if message.queue else None
        owned = self.owned()
        rows = [m.CountRow(vnode.partition, *row) for vnode in owned
                for row in vnode.replica.tally.rows(queue, COUNT_ROWS_MAX)]
        return m.Counted(message.request, columns.pack_u64([vnode.partition for vnode in owned]),
                         columns.pack_u64([vnode.partition for vnode in owned if vnode.is_leading]),
                         tuple(rows))

    def _list(self, now_ms: int, peer: str, message: m.List) -> m.Listed:
        found: dict[bytes, bytes] = {}
        upto = b""
        for vnode in self.owned():
            page, end = self._scan(vnode, message)
            found.update(page)
            if end and (not upto or end < upto):
                upto = end
        page_ids = [task_id for task_id in sorted(found) if not upto or task_id <= upto]
        if len(page_ids) > message.limit:
            page_ids = page_ids[: message.limit]
            upto = page_ids[-1]
        histories: dict[bytes, bytes] = {}
        for indexes in self.group(page_ids).values():
            group = [page_ids[index] for index in indexes]
            histories.update(self._vnode_of(group[0]).replica.histories(group))
        return m.Listed(message.request, columns.pack_u64([vnode.partition for vnode in self.owned()]), upto,
                        b"".join(page_ids), columns.pack([found[task_id] for task_id in page_ids]),
                        columns.pack([histories.get(tables.prefix_of(ids.partition_of(
                            task_id, self._node.parameters.partitions)) + task_id, b"")
                            for task_id in page_ids]))

    def _scan(self, vnode: Vnode, message: m.List) -> tuple[dict[bytes, bytes], bytes]:
        """Up to ``limit`` matching bodies behind ``after``, and the id they are complete up to."""
        replica, found = vnode.replica, dict[bytes, bytes]()
        wanted = message.queue.encode()
        start = replica.prefix + message.after + b"\0" if message.after else replica.prefix
        last = b""
        for _ in range(SCAN_PAGES):
            rows = replica.store.scan("body", start, tables.end_of(replica.prefix), message.limit)
            for key, body in rows:
                if not wanted or body[7 : 7 + body[6]] == wanted:
                    found[key[2:]] = body
                    if len(found) == message.limit:
                        return found, key[2:]
            if len(rows) < message.limit:
                return found, b""
            last = rows[-1][0][2:]
            start = rows[-1][0] + b"\0"
        return found, last

    # -- leading -------------------------------------------------------------------------------

    def _delegate(self, now_ms: int, peer: str, message: m.Delegate) -> None:
        lead_claim(self._node, now_ms, Origin(message.request, peer=peer), message)

    def _renew(self, now_ms: int, peer: str, message: m.Renew) -> None:
        lead_renewal(self._node, now_ms, Origin(message.request, peer=peer), message)

    def _advance(self, handler: str) -> Callable[[int, str, Any], None]:
        def handle(now_ms: int, peer: str, message: Any) -> None:
            vnode = self._vnode(message.partition)
            self._node.carry_out(getattr(vnode, handler)(now_ms, peer, message))
        return handle

    # -- gossip and anti-entropy -----------------------------------------------------------------

    def _gossip(self, now_ms: int, peer: str, message: m.Gossip) -> None:
        self._steward.on_gossip(now_ms, peer, message)

    def _invite(self, now_ms: int, peer: str, message: m.Invite) -> None:
        self._vnode(message.partition)
        self._comparing.on_invite(message)

    def _compare(self, now_ms: int, peer: str, message: m.Compare) -> m.Compared:
        return answer_compare(self._vnode(message.partition).replica, self._node.limits, message)

    def _fetch(self, now_ms: int, peer: str, message: m.Fetch) -> m.Fetched:
        return answer_fetch(self._vnode(message.partition).replica, self._node.limits, message)

    def _repair(self, now_ms: int, peer: str, message: m.Repair) -> None:
        replica = self._vnode(message.partition).replica
        merge_rows(replica, now_ms, self._node.parameters.partitions, message.tasks)
