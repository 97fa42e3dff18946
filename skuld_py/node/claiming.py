"""The coordinator's side of claims: find a leader that has work, or wait for one.

A claim is served from the partitions this node leads, else passed to other nodes, those whose
gossip names the queue first, one at a time. A claim that may wait parks here, without polling: it
is tried again when a task enters the queue on a partition led here, or when a peer's gossip names
the queue.

A claim is never sent twice, since it is not idempotent: a lost answer leaves a lease that lapses. An
answer that comes too late is released at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.node.granting import AmendOperation, GrantOperation, judge_renewals
from skuld_py.node.operation import Host, Operation, Origin
from skuld_py.partition.replica import Amendment
from skuld_py.partition.vnode import Vnode


class ClaimOperation(Operation):
    """One client's claim."""

    def __init__(self, host: Host, origin: Origin, now_ms: int, request: m.Claim) -> None:
        super().__init__(host, origin, now_ms, request.wait_ms + host.timing.request_ms)
        self.queue = request.queue
        self._claim = request
        self._began_ms = self._asked_ms = now_ms
        self._waits_until_ms = now_ms + request.wait_ms
        self._untried: list[str] = []
        self._asked: tuple[str, int] | None = None
        self.is_parked = False

    def begin(self, now_ms: int) -> None:
        """Try everywhere once."""
        self.try_again(now_ms, self.host.peers_by_hint(self.queue))

    def try_again(self, now_ms: int, peers: Sequence[str]) -> None:
        """Try here, then at the peers given."""
        self.is_parked = False
        self._untried = list(peers)
        self._serve_from(now_ms, self.host.me.name)

    def _serve_from(self, now_ms: int, peer: str) -> None:
        claim = self._claim
        self._asked = (peer, now_ms + self.host.timing.grant_ms + self.host.timing.resend_ms)
        self._asked_ms = now_ms
        self.host.send(peer, m.Delegate(self.request, claim.queue, claim.count, claim.lease_ms, claim.holder))
        self.host.schedule(self._asked[1], self)

    def on_reply(self, now_ms: int, peer: str, message: m.Message) -> None:
        """Claims, or nothing: then the next peer."""
        if self._asked is None or peer != self._asked[0] or not isinstance(message, m.Claimed):
            if isinstance(message, m.Claimed):
                self.host.release_unwanted(now_ms, message)
            return
        self._asked = None
        waited_ms = max(0, self._asked_ms - self._began_ms)
        if message.batches:
            self.answer(m.Claimed(self.origin.request, waited_ms, message.batches))
            self.end()
            return
        self.host.forget_hint(peer, self.queue)
        self._next(now_ms)

    def _next(self, now_ms: int) -> None:
        while self._untried:
            peer = self._untried.pop(0)
            if peer in self.host.live:
                self._serve_from(now_ms, peer)
                return
        if now_ms >= self._waits_until_ms:
            self.answer(m.Claimed(self.origin.request, 0, ()))
            self.end()
            return
        self.is_parked = True
        self.host.schedule(self._waits_until_ms, self)

    def on_timer(self, now_ms: int) -> None:
        """A peer is silent, or the wait is over."""
        if self.is_closed:
            return
        if self._asked is not None and now_ms >= self._asked[1]:
            self._asked = None
            self._next(now_ms)
        elif self.is_parked and now_ms >= self._waits_until_ms:
            self._next(now_ms)


class RenewOperation(Operation):
    """A client's renewals or releases, passed to the leaders of their partitions."""

    def __init__(self, host: Host, origin: Origin, now_ms: int, request: m.Renew) -> None:
        super().__init__(host, origin, now_ms)
        self._renew = request
        self._ends: dict[tuple[bytes, int], int] = {}
        self._asked: dict[str, list[tuple[bytes, int]]] = {}

    def begin(self, now_ms: int) -> None:
        """Group by leader; wait for leaders that are being elected."""
        claims = list(zip(ids.split(self._renew.ids), columns.unpack_u64(self._renew.tokens), strict=True))
        self._ends = dict.fromkeys(claims, 0)
        by_leader: dict[str, list[tuple[bytes, int]]] = {}
        for claim in self._ends:
            partition = ids.partition_of(claim[0], self.host.parameters.partitions)
            by_leader.setdefault(self.host.leader_of(partition), []).append(claim)
        if "" in by_leader:
            self.host.schedule(now_ms + self.host.timing.resend_ms, self)
            return
        self._asked = by_leader
        self.ask(now_ms, {leader: self._message(rows) for leader, rows in by_leader.items()})

    def _message(self, rows: Sequence[tuple[bytes, int]]) -> m.Renew:
        return m.Renew(self.request, self._renew.lease_ms, b"".join(row[0] for row in rows),
                       columns.pack_u64([row[1] for row in rows]))

    def on_timer(self, now_ms: int) -> None:
        """Look for leaders again, or go on asking."""
        if self.is_closed:
            return
        if not self._asked and now_ms < self.deadline_ms:
            self.begin(now_ms)
        else:
            super().on_timer(now_ms)

    def on_reply(self, now_ms: int, peer: str, message: m.Message) -> None:
        """A leader's verdicts, or its refusal."""
        if peer not in self.pending:
            return
        if isinstance(message, m.Failed):
            if message.code != "not_leader":
                self.answer(m.Failed(self.origin.request, message.code, message.text, message.is_definite))
                self.end()
            return
        if isinstance(message, m.Renewed):
            del self.pending[peer]
            self._ends.update(zip(self._asked[peer], columns.unpack_u64(message.ends), strict=True))
            if not self.pending:
                self.answer(m.Renewed(self.origin.request, columns.pack_u64(list(self._ends.values()))))
                self.end()

    def on_deadline(self, now_ms: int) -> None:
        """No leader, or no answer."""
        if self._asked:
            self.give_up("a leader did not answer in time; the claim may or may not be renewed; try again")
        else:
            self.refuse("no_leader", "a partition has no leader now; try again in a few seconds")
        self.end()


def lead_renewal(host: Host, now_ms: int, origin: Origin, request: m.Renew) -> None:
    """The leader's side of ``Renew``."""
    amendments: dict[Vnode, list[Amendment]] = {}
    ends: dict[tuple[bytes, int], int] = {}
    claims = zip(ids.split(request.ids), columns.unpack_u64(request.tokens), strict=True)
    by_partition: dict[int, list[tuple[bytes, int]]] = {}
    for task_id, token in claims:
        ends[task_id, token] = 0
        partition = ids.partition_of(task_id, host.parameters.partitions)
        by_partition.setdefault(partition, []).append((task_id, token))
    led: Mapping[int, Vnode] = {vnode.partition: vnode for vnode in host.led()}
    for partition, rows in by_partition.items():
        if partition not in led:
            host.reply(origin, m.Failed(origin.request, "not_leader", "no longer the leader", True))
            return
        vnode = led[partition]
        allowed = judge_renewals(vnode, now_ms, [row[0] for row in rows], [row[1] for row in rows],
                                 request.lease_ms)
        ends.update({(row.id, row.token): row.end_ms for row in allowed})
        if allowed:
            amendments[vnode] = allowed
    host.start(AmendOperation(host, origin, now_ms, amendments, ends), now_ms)


def lead_claim(host: Host, now_ms: int, origin: Origin, request: m.Delegate) -> None:
    """The leader's side of a claim."""
    host.start(GrantOperation(host, origin, now_ms, request.queue, request.count, request.lease_ms,
                              request.holder), now_ms)
