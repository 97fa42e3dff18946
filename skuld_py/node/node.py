"""The node: coordinator, replicas and elections of one process as one machine.

``step`` is the only way its state changes; the same history of (now, event) gives the same effects.
It routes: clients' requests to ``client_door``, peers' requests to the features that own them, answers to the
operation that waits for them, the registry's news to those whom it concerns. Messages to itself are queued and
handled in the same step.

It holds no task in memory: only promises, candidacies, operations in flight, settings, and what gossip said.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import count

from skuld_py.cluster.placement import place
from skuld_py.config import DEFAULT_LIMITS, DEFAULT_TIMING, Limits, Parameters, Retention, Timing
from skuld_py.errors import Malformed
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.document import Member
from skuld_py.model.events import (
    Answer,
    Asked,
    DocumentRead,
    DocumentSwapped,
    Effect,
    Event,
    KeyTold,
    MembersChanged,
    NodesChanged,
    ReadFailed,
    Received,
    Send,
    Session,
    SessionChanged,
    Settled,
)
from skuld_py.model.schedule import Almanac, no_almanac
from skuld_py.model.store import Store
from skuld_py.node.claims.claim import ClaimOperation
from skuld_py.node.claims.horizons import Horizons
from skuld_py.node.claims.lapses import Lapses
from skuld_py.node.claims.parked import ParkedClaims
from skuld_py.node.claims.requests import ClaimRequests
from skuld_py.node.client_door import ClientDoor
from skuld_py.node.copies.exchanges import Exchanges
from skuld_py.node.copies.moves import Moves
from skuld_py.node.copies.requests import CopyRequests
from skuld_py.node.dependencies.both_sides import Dependencies
from skuld_py.node.knowledge.floor import Floor
from skuld_py.node.knowledge.heads import Router
from skuld_py.node.knowledge.interests import Interests
from skuld_py.node.knowledge.leaders import Leaderships
from skuld_py.node.knowledge.notary import Notary
from skuld_py.node.knowledge.settings import Settings
from skuld_py.node.leadership.clocks import Timekeeper, Verdict
from skuld_py.node.leadership.elections import Steward
from skuld_py.node.leadership.requests import LeadershipRequests
from skuld_py.node.leadership.status import described
from skuld_py.node.life.identity import note_joined
from skuld_py.node.limits.borrower import Loans
from skuld_py.node.limits.lender import Lender
from skuld_py.node.limits.requests import LimitRequests
from skuld_py.node.operations.admission import Admission
from skuld_py.node.operations.operation import Borrower, Operation, Origin, Waiter
from skuld_py.node.operations.requests import Feature, asked_of, served_of
from skuld_py.node.operations.timers import Timers
from skuld_py.node.reads.requests import ReadRequests
from skuld_py.node.retention.requests import RetentionRequests
from skuld_py.node.schedules.ticks import Ticks
from skuld_py.node.writes.requests import WriteRequests
from skuld_py.node.writes.setting import SettingRequests
from skuld_py.partition.candidacy import Candidacy
from skuld_py.partition.copies.exchange import Pass
from skuld_py.partition.data.bulletin import Bulletin
from skuld_py.partition.leadership.suspicion import suspects
from skuld_py.partition.vnode import Vnode


class Node:
    """One node. ``jitter_ms(n)`` gives 0..n; ``nonce`` numbers this start (u32); ``almanac`` reads cron lines."""

    def __init__(self, me: Member, parameters: Parameters, store: Store, jitter_ms: Callable[[int], int],
                 nonce: int, *, timing: Timing = DEFAULT_TIMING, limits: Limits = DEFAULT_LIMITS,
                 almanac: Almanac = no_almanac, retention: Retention | None = None) -> None:
        self.me = me
        self.parameters = parameters
        self.timing = timing
        self.limits = limits
        self.retention = retention or Retention()
        self.notary = Notary(parameters.claim_key, parameters.proofs_from_ms)
        self.live: dict[str, Member] = {}
        self.session = Session.LOST
        self.bulletin = Bulletin()
        self.vnodes = [Vnode(partition, me, parameters, store, timing, limits, jitter_ms, self.bulletin)
                       for partition in range(parameters.partitions)]
        for partition, reason in suspects(store, parameters.partitions).items():
            self.vnodes[partition].suspicion = reason
        self.leaderships = Leaderships(self.vnodes, self.bulletin)
        self._candidacies = [Candidacy(vnode) for vnode in self.vnodes]
        self._store = store
        self.settings = Settings(store)
        self.interests = Interests([vnode.replica for vnode in self.vnodes])
        self.router = Router(me.name, timing.gossip_ms, timing.gossip_queues)
        self.nodes: tuple[str, ...] = ()
        """The registered nodes; none before the registry has told."""
        self.numbers: Iterator[int] = count((nonce << 24) + 1)
        """Numbers of requests. No two operations of this node have the same one, not even over its starts."""
        self.is_connected = False
        """Whether the registry session is good: elections and new grants need it, nothing else does."""
        self.may_grant = False
        """Whether session and clock are good; a node that may not grant does not stand either."""
        self._operations: dict[int, Operation] = {}
        self.timers = Timers(self._operations)
        self._to_self: deque[m.Message] = deque()
        self._effects: list[Effect] = []
        self._settled_ms = 0
        """When the last turn ended, by the clock that may fall back."""
        self.timekeeper = Timekeeper(self)
        self._comparing = Exchanges(self)
        self._moving = Moves(self, self._comparing)
        self._steward = Steward(self, self.timekeeper, self._comparing, self._moving)
        self.timekeeper.on_verdict = self._note_rights
        self._depending = Dependencies(self)
        self._lapses = Lapses(self)
        self._borrowing = Loans(self)
        self.lender = Lender(self, self._steward.led_since)
        self._parking = ParkedClaims(self, self._steward, self._borrowing)
        self._horizons = Horizons(self._parking.note_leftover)
        self._scheduling = Ticks(self, almanac)
        self._floor = Floor(store)
        admission = Admission(self)
        self._claims = ClaimRequests(self, admission)
        reads = ReadRequests(self, admission)
        self._pages = reads.pages
        features: list[Feature] = [
            WriteRequests(self, admission, self._floor), self._claims, reads,
            SettingRequests(self, self._scheduling.check), LimitRequests(self.lender, self._borrowing),
            LeadershipRequests(self, self._floor, self._steward, self._moving), self.timekeeper, self._depending,
            CopyRequests(self, self._comparing), RetentionRequests(self, self._steward.collecting)]
        self._clients = ClientDoor(self, asked_of(features))
        self._served = served_of(features)

    # -- the machine ---------------------------------------------------------------------------

    def step(self, now_ms: int, event: Event) -> list[Effect]:
        """Take one event."""
        self._take(now_ms, event)
        while self._to_self:
            self._receive(now_ms, self.me.name, self._to_self.popleft())
        effects, self._effects = self._effects, []
        return effects

    def deadline(self) -> int:
        """When the node next wants a ``Ticked``: at once, if the end of a turn left something to look at."""
        if self.bulletin.touched or self._parking.is_stirred or self._pages.waiting:
            return 0
        comparing, borrowing = self._comparing, self._borrowing
        due_ms = min(self._steward.deadline(), self._lapses.due_ms, self.timekeeper.due_ms, self._depending.due_ms)
        if comparing.running or comparing.is_stirred:
            due_ms = min(due_ms, comparing.deadline())
        if borrowing.told or borrowing.dry:
            due_ms = min(due_ms, borrowing.deadline())
        has_schedules = self._scheduling.is_busy or self.settings.rescheduled
        schedules_ms = self._scheduling.deadline() if has_schedules else None
        if schedules_ms is not None:
            due_ms = min(due_ms, schedules_ms)
        return min(due_ms, self.timers.due_ms, comparing.rests_until_ms)

    def _take(self, now_ms: int, event: Event) -> None:
        match event:
            case Received():
                self._steward.hear(now_ms, event.peer)
                self._receive(now_ms, event.peer, event.message)
            case Asked():
                self._clients.serve(now_ms, event.client, event.message, len(self._operations),
                                    now_ms - self.timers.due_ms)
            case Settled():
                self._settle(now_ms)
            case KeyTold():
                self.notary = Notary(event.claim_key, event.proofs_from_ms)
            case MembersChanged():
                self._on_members(now_ms, event.members)
            case NodesChanged():
                self._on_nodes(now_ms, event)
            case SessionChanged():
                self._on_session(now_ms, event.session)
            case DocumentRead():
                self._steward.on_read(now_ms, event)
                self._moving.on_read(now_ms, event.partition, event.document)
                self._horizons.wake(now_ms)
            case ReadFailed():
                self._candidacies[event.partition].on_read_failed(now_ms)
                self.bulletin.change(event.partition)
            case DocumentSwapped():
                self._on_swapped(now_ms, event)

    def _on_swapped(self, now_ms: int, event: DocumentSwapped) -> None:
        self.carry_out(self._candidacies[event.partition].on_swapped(now_ms, event))
        self.bulletin.change(event.partition)
        self._horizons.wake(now_ms)

    def _receive(self, now_ms: int, peer: str, message: m.Message) -> None:
        try:
            serve = self._served.get(type(message))
            if serve is not None:
                answer = serve(now_ms, peer, message)
                if answer is not None:
                    self.send(peer, answer)
                return
            operation = self._operations.get(getattr(message, "request", -1))
            if operation is not None and isinstance(message, m.Failed) and message.code == "too_large":
                operation.on_too_large(now_ms, peer, message)
            elif operation is not None:
                operation.on_reply(now_ms, peer, message)
        except Malformed:
            if peer == self.me.name:
                raise
            self.malformed_count += 1

    malformed_count = 0
    """Peers' messages that parsed but made no sense; dropped."""

    def _settle(self, now_ms: int) -> None:
        """The turn ends: look at what is due and at what the turn touched, and at nothing else."""
        timekeeper, comparing, settings = self.timekeeper, self._comparing, self.settings
        if now_ms < self._settled_ms:
            timekeeper.forget()
            self._scheduling.forget()
        self._settled_ms = now_ms
        if now_ms >= timekeeper.due_ms:
            timekeeper.look(now_ms)
        if not timekeeper.may_lead:
            self._resign(now_ms)
        if self.bulletin.curious:
            self._inquire(now_ms)
        if now_ms >= self._lapses.due_ms:
            self._lapses.look(now_ms)
        self._steward.look(now_ms)
        if self._scheduling.is_busy or settings.rescheduled:
            self._scheduling.look(now_ms)
        if now_ms >= self.timers.due_ms:
            self.timers.ring(now_ms)
        self._drain(now_ms)
        self._depending.look(now_ms, self._drain)
        if settings.rewidened:
            self._widen(settings.take_rewidened())
        self._parking.look(now_ms)
        if self._pages.waiting:
            self._pages.look(now_ms)
        self._drain(now_ms)
        if self.interests.stirred:
            self.interests.tell(self.send, partial(self._drain, now_ms))
        if now_ms >= comparing.rests_until_ms or comparing.running or comparing.is_stirred:
            comparing.look(now_ms)
        if self.bulletin.touched or self._lapses.risen:
            self._lapses.settle()
        if self.bulletin.touched:
            self._steward.settle()
        if self._floor.ms > self._floor.stored_ms:
            self._floor.keep()

    def _inquire(self, now_ms: int) -> None:
        """Read the documents of partitions of which peers said more than is known."""
        curious = self.bulletin.curious
        if not self.is_connected:
            return
        for partition in list(curious):
            self.carry_out(self._candidacies[partition].inquire(now_ms))
            if not self.vnodes[partition].heard_epoch:
                del curious[partition]

    def _widen(self, queues: Sequence[str]) -> None:
        for queue in queues:
            for vnode in self.vnodes:
                vnode.replica.filing.widen(queue, self.settings.key_concurrency(queue))

    def _drain(self, now_ms: int) -> None:
        while self._to_self:
            self._receive(now_ms, self.me.name, self._to_self.popleft())

    # -- the registry's news -------------------------------------------------------------------

    def _on_members(self, now_ms: int, members: Sequence[Member]) -> None:
        old = self.live
        self.live = {member.name: member for member in members}
        for vnode in self.vnodes:
            vnode.live = self.live
        came = [member for member in members if member.name != self.me.name
                and (member.name not in old or old[member.name].boot != member.boot)]
        gone = [name for name, member in old.items()
                if name not in self.live or self.live[name].boot != member.boot]
        self._steward.on_members(now_ms, [member.name for member in came], gone)
        self.timekeeper.on_members(now_ms, [member.name for member in came], gone)
        self._comparing.on_members(came)
        for operation in list(self._operations.values()) if gone else ():
            operation.on_gone(now_ms, gone)

    def _on_nodes(self, now_ms: int, event: NodesChanged) -> None:
        self.nodes = event.nodes
        self.timekeeper.on_nodes(len({*event.nodes, self.me.name}))
        placement = event.placement if event.placement is not None else place(
            event.nodes, self.parameters.partitions, self.parameters.replicas)
        moved = [vnode.partition for vnode in self.vnodes if vnode.owners != placement[vnode.partition]]
        for vnode, owners in zip(self.vnodes, placement, strict=True):
            vnode.nodes = (*event.nodes, *event.leaving)
            vnode.place(owners)
        self._steward.mark(now_ms, moved)

    def _on_session(self, now_ms: int, session: Session) -> None:
        self.session = session
        self._note_rights()
        if session is Session.CONNECTED:
            note_joined(self._store)
        if session is Session.LOST:
            self._resign(now_ms)

    def _note_rights(self) -> None:
        """The session or the clock may have become good, or bad."""
        self.is_connected = self.session is Session.CONNECTED
        self.may_grant = self.is_connected and self.timekeeper.may_grant
        self._steward.stir()

    def _resign(self, now_ms: int) -> None:
        for vnode in self.vnodes:
            if not vnode.election.is_idle:
                vnode.resign(now_ms)

    # -- what operations use -------------------------------------------------------------------

    def send(self, peer: str, message: m.Message) -> None:
        """Send to a peer; to itself without the wire."""
        if peer == self.me.name:
            self._to_self.append(message)
        else:
            self._effects.append(Send(peer, message))

    def carry_out(self, effects: Sequence[Effect]) -> None:
        """Effects of the protocol; what goes to this node itself stays."""
        for effect in effects:
            if type(effect) is Send:
                self.send(effect.peer, effect.message)
            else:
                self._effects.append(effect)

    def reply(self, origin: Origin, message: m.Message) -> None:
        """Answer a client, or a peer."""
        if origin.client is not None:
            self._effects.append(Answer(origin.client, message))
        elif origin.peer:
            self.send(origin.peer, message)

    def start(self, operation: Operation, now_ms: int) -> None:
        """Begin an operation, and keep it until it is closed."""
        self._operations[operation.request] = operation
        if isinstance(operation, ClaimOperation):
            self._parking.add(operation)
        operation.begin(now_ms)

    def close(self, operation: Operation) -> None:
        """Forget an operation, which has ended."""
        self._operations.pop(operation.request, None)
        for leave in operation.at_end:
            leave()
        self.timers.forget()

    def learn(self, row: m.CohortRow) -> bool:
        """A peer named other voters. Says whether that can be true."""
        return self.vnodes[row.partition].believes(row.era, row.cohort, led=row.era)

    def is_agreed(self, name: str) -> bool:
        """Whether a peer's clock is known to go with the others."""
        return self.timekeeper.agreement.verdict(name) is Verdict.AGREED

    def candidacy(self, vnode: Vnode) -> Candidacy:
        """How a vnode comes to lead."""
        return self._candidacies[vnode.partition]

    def on_pass(self, now_ms: int, ended: Pass) -> None:
        """An exchange that this node began is through."""
        self._steward.on_pass(now_ms, ended)

    def await_horizon(self, now_ms: int, operation: Waiter) -> None:
        """Have the horizon moved for an operation; its ``on_horizon`` is called when that is done."""
        self._horizons.add(operation)
        for vnode in self.led():
            if vnode.wanted_horizon_ms > vnode.election.document.horizon_ms:
                self._steward.tend(now_ms, vnode)

    def awaits_horizon(self, origin: Origin) -> bool:
        """Whether what was asked waits for that already."""
        return self._horizons.awaits(origin)

    def give_up_horizon(self, queue: str) -> None:
        """A grant has waited for that in vain."""
        self._horizons.give_up(queue)

    def led(self) -> list[Vnode]:
        """The partitions that it leads and may grant from: none while its session or its clock is in doubt."""
        return self.leaderships.here() if self.may_grant else []

    def stocked(self, queue: str) -> list[Vnode]:
        """The led partitions in which tasks of a queue may wait."""
        if not self.may_grant:
            return []
        found = self.bulletin.stock.partitions(queue.encode(), self.leaderships.bits())
        return [self.vnodes[partition] for partition in found]

    def renewing(self, partition: int) -> Vnode | None:
        """The partition, if this node leads it and may renew its claims. That takes a majority and a good clock,
        but no registry: workers go on while ZooKeeper is away."""
        vnode = self.vnodes[partition]
        return vnode if vnode.is_leading and self.timekeeper.may_grant else None

    def leader_of(self, partition: int) -> str:
        """The live leader of a partition as far as is known, or ``""``."""
        vnode = self.vnodes[partition]
        if vnode.is_leading:
            return self.me.name
        return vnode.leader if vnode.leader in self.live and vnode.leader != self.me.name else ""

    def route(self, queue: str) -> list[str]:
        """The nodes to try a claim at, the hinted first: this one and others that lead a partition. A node that
        leads none has nothing to grant and may be deaf; waiting for it would use up the claim's time."""
        leaders = [name for name in self.leaderships.leaders() if name in self.live and name != self.me.name]
        hinted = self.router.hinted(queue, leaders)
        return self.router.order(queue, hinted + [name for name in leaders if name not in hinted])

    @property
    def has_leaders(self) -> bool:
        """Whether some partition has a leader that grants: this node, or one that says so."""
        return bool(self.led()) or any(name in self.live and name != self.me.name
                                       for name in self.leaderships.leaders())

    def take_place(self, claim: ClaimOperation) -> bool:
        """Whether a claim may wait here."""
        return self._parking.take_place(claim)

    def note_leftover(self, queue: str) -> None:
        """Wake the claims that wait for this queue, if it has a task to claim."""
        self._parking.note_leftover(queue)

    def borrow(self, now_ms: int, borrower: Borrower) -> None:
        """Ask the home of a limited queue for a loan."""
        self._borrowing.borrow(now_ms, borrower)

    def release_unwanted(self, now_ms: int, claimed: m.Claimed) -> None:
        """Give back claims whose client has gone or was answered already."""
        for batch in claimed.batches:
            tokens = [batch.first_token + index for index in range(len(batch.ids) // ids.ID_BYTES)]
            self._claims.release(now_ms, batch.ids, columns.pack_u64(tokens))

    def owe(self, peer: str, partitions: Collection[int]) -> None:
        """A peer may lack copies."""
        self._comparing.owe(peer, partitions)

    def description(self, request: int) -> m.Described:
        """The cluster as seen from here."""
        gossiping = self._steward.gossiping
        return described(self, request, self.session.value, self.timekeeper.agreement,
                         (*self._moving.rows(), *gossiping.moves()), gossiping.collections())
