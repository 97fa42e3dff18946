"""The coordinator's side of claims: find a leader that has work, or wait for one.

A claim is served from the partitions this node leads, else passed to other nodes, those whose
gossip names the queue first, one at a time. A claim that may wait parks here, without polling: it
is tried again when a task enters the queue on a partition led here, or when a peer's gossip names
the queue.

A claim is never sent twice, since it is not idempotent: a lost answer leaves a lease that lapses. An
answer that comes too late is released at once; one that comes twice is not, since somebody may hold it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.node.granting import AmendOperation, GrantOperation, judge_renewals
from skuld_py.node.operation import Host, Operation, Origin
from skuld_py.partition.replica import Amendment
from skuld_py.partition.vnode import Vnode


class Attempt(Operation):
    """One try of a claim at one node, this one included.

    It outlives the patience of its claim, for an answer that comes too late: those claims are released.
    Each attempt has a number of its own, so an answer that comes twice is known for what it is.
    """

    def __init__(self, claim: ClaimOperation, peer: str, now_ms: int) -> None:
        super().__init__(claim.host, claim.origin, now_ms)
        self.peer = peer
        self.began_ms = now_ms
        self._claim = claim
        self._patience_ends_ms = now_ms + claim.host.timing.grant_ms + claim.host.timing.resend_ms

    def begin(self, now_ms: int) -> None:
        """Ask once; a claim is not idempotent."""
        wish = self._claim.wish
        self.host.send(self.peer, m.Delegate(self.request, wish.queue, wish.count, wish.lease_ms, wish.holder))
        self.host.schedule(self._patience_ends_ms, self)

    def on_reply(self, now_ms: int, peer: str, message: m.Message) -> None:
        """Hand the answer to the claim, or give it back when the claim has gone on."""
        if peer != self.peer or not isinstance(message, m.Claimed):
            return
        self.end()
        if self._claim.current is self:
            self._claim.on_claimed(now_ms, message)
        elif message.batches:
            self.host.release_unwanted(now_ms, message)

    def on_timer(self, now_ms: int) -> None:
        """Let the claim go on without this peer; at the deadline, stop listening."""
        if self.is_closed:
            return
        if now_ms >= self.deadline_ms:
            self.end()
            return
        self.host.schedule(self.deadline_ms, self)
        if self._claim.current is self:
            self._claim.go_on(now_ms)


class ClaimOperation(Operation):
    """One client's claim."""

    def __init__(self, host: Host, origin: Origin, now_ms: int, wish: m.Claim) -> None:
        super().__init__(host, origin, now_ms)
        self.wish = wish
        self.current: Attempt | None = None
        self._began_ms = now_ms
        self._waits_until_ms = now_ms + wish.wait_ms
        self._untried: list[str] = []
        self._has_news = False

    @property
    def is_parked(self) -> bool:
        """Whether it waits for news, and not for an answer."""
        return not self.is_closed and self.current is None

    def begin(self, now_ms: int) -> None:
        """Try everywhere once."""
        self.try_again(now_ms, self.host.peers_by_hint(self.wish.queue))

    def wake(self, now_ms: int) -> None:
        """The queue gained work here. While a peer is being asked, that is kept for afterwards."""
        if self.is_parked:
            self.try_again(now_ms, [])
        else:
            self._has_news = True

    def try_again(self, now_ms: int, peers: Sequence[str]) -> None:
        """Try here, then at the peers given."""
        self._has_news = False
        self._untried = list(peers)
        self._try(now_ms, self.host.me.name)

    def _try(self, now_ms: int, peer: str) -> None:
        self.current = Attempt(self, peer, now_ms)
        self.host.start(self.current, now_ms)

    def on_claimed(self, now_ms: int, message: m.Claimed) -> None:
        """Claims, or nothing: then the next peer."""
        assert self.current is not None, "an answer comes to the current attempt"
        if message.batches:
            waited_ms = max(0, self.current.began_ms - self._began_ms)
            self.answer(m.Claimed(self.origin.request, waited_ms, message.batches))
            self.end()
            return
        self.host.forget_hint(self.current.peer, self.wish.queue)
        self.go_on(now_ms)

    def go_on(self, now_ms: int) -> None:
        """Ask the next peer; without one, park, or end."""
        self.current = None
        while self._untried:
            peer = self._untried.pop(0)
            if peer in self.host.live:
                self._try(now_ms, peer)
                return
        if self._has_news:
            self.try_again(now_ms, [])
            return
        if now_ms >= self._waits_until_ms:
            self.answer(m.Claimed(self.origin.request, 0, ()))
            self.end()
            return
        self.host.schedule(self._waits_until_ms, self)

    def on_timer(self, now_ms: int) -> None:
        """The wait is over."""
        if self.is_parked and now_ms >= self._waits_until_ms:
            self.go_on(now_ms)


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
