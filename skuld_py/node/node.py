"""The node: coordinator, replicas and elections of one process as one machine.

``step`` is the only way its state changes; the same history of (now, event) gives the same effects. It routes:
clients' requests to ``client_door``, peers' requests to the features that own them, answers to the operation that
waits for them, the registry's news to the features that it concerns. Messages to itself are queued and handled
in the same step.

It holds no task in memory: only promises, candidacies, operations in flight, settings, what gossip said, and who
holds what of queues that cap their holders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count

from skuld_py.cluster.log.commands import Command
from skuld_py.cluster.member.playback import Playback
from skuld_py.cluster.placement import place
from skuld_py.config import DEFAULT_LIMITS, Limits, Parameters, protocol_of
from skuld_py.config.timing import DEFAULT_TIMING, Retention, Timing
from skuld_py.errors import Malformed
from skuld_py.model import messages as m
from skuld_py.model.document import Member
from skuld_py.model.events import (
    Asked,
    DocumentChanged,
    DocumentRead,
    DocumentSwapped,
    Effect,
    Event,
    KeyTold,
    MembersChanged,
    NodesChanged,
    ReadFailed,
    Received,
    RevisionsRead,
    RulesChanged,
    SeatsChanged,
    Session,
    SessionChanged,
    Settled,
    Withheld,
)
from skuld_py.model.remarks import Kind, Remark
from skuld_py.model.schedule import Almanac, no_almanac
from skuld_py.model.store import Store
from skuld_py.node.claims.ask_leaders import release
from skuld_py.node.claims.grant import Gates
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
from skuld_py.node.knowledge.notary import Notary
from skuld_py.node.knowledge.view import View
from skuld_py.node.leadership.clocks import Timekeeper
from skuld_py.node.leadership.elections import Steward
from skuld_py.node.leadership.inquiries import Inquiries
from skuld_py.node.leadership.overseeing import Overseer
from skuld_py.node.leadership.recalling import Recaller
from skuld_py.node.leadership.requests import LeadershipRequests
from skuld_py.node.leadership.watching import Watching
from skuld_py.node.life.identity import note_joined
from skuld_py.node.life.keepsake import Keepsake
from skuld_py.node.limits.borrower import Loans
from skuld_py.node.limits.lender import Lender
from skuld_py.node.limits.requests import LimitRequests
from skuld_py.node.limits.widths import Widths
from skuld_py.node.operations.admission import Admission
from skuld_py.node.operations.duty import NEVER_MS, Duty
from skuld_py.node.operations.operation import Operations
from skuld_py.node.operations.outbox import Outbox
from skuld_py.node.operations.requests import Feature, asked_of, served_of
from skuld_py.node.reads.requests import ReadRequests
from skuld_py.node.retention.requests import RetentionRequests
from skuld_py.node.schedules.ticks import Ticks
from skuld_py.node.workers.capacity import Capacity
from skuld_py.node.workers.requests import WorkerRequests
from skuld_py.node.workflows.requests import WorkflowRequests
from skuld_py.node.writes.requests import WriteRequests
from skuld_py.node.writes.setting import SettingRequests
from skuld_py.partition.candidacy import Candidacy
from skuld_py.partition.leadership.quorum import has_majority, majority

FAR = "the clock is too far from the others"
NO_SESSION = "the session with ZooKeeper is lost"
"""Why such a node leads nothing."""


class Node:
    """One node. ``jitter_ms(n)`` gives 0..n; ``nonce`` numbers this start (u32); ``almanac`` reads cron lines;
    ``release``: the version of the program, for people; ``capacity``: when the sum of its workers' slots is
    written into the coordination log."""

    def __init__(self, me: Member, parameters: Parameters, store: Store, jitter_ms: Callable[[int], int],
                 nonce: int, *, timing: Timing = DEFAULT_TIMING, limits: Limits = DEFAULT_LIMITS,
                 almanac: Almanac = no_almanac, retention: Retention | None = None, release: str = "",
                 capacity: Capacity | None = None) -> None:
        view = self.view = View(me, parameters, store, jitter_ms, timing, limits, retention or Retention(),
                                release)
        outbox = self._outbox = Outbox(me.name, self._drain)
        operations = self.operations = Operations(view, outbox, count((nonce << 24) + 1))
        self._store, self._floor, self._keepsake = store, Floor(store), Keepsake(store)
        self._settled_ms = self._ends_ms = 0
        """When the last turn ended, by a clock that may fall back; and until when a node that is about to stop
        waits for requests that are under way."""
        self.timekeeper, self._exchanges = Timekeeper(operations), Exchanges(operations)
        self._moves = Moves(operations, self._exchanges)
        self._steward = Steward(operations, self.timekeeper, self._exchanges, self._moves)
        self.timekeeper.on_verdict = self._note_rights
        self._watching, self._recaller = Watching(operations), Recaller(operations)
        self._overseer = Overseer(operations, self._steward.suspects)
        self._dependencies, self._lapses = Dependencies(operations), Lapses(operations)
        self._loans, self._ticks = Loans(operations), Ticks(operations, almanac)
        self.lender = Lender(operations, self._steward.led_since)
        self._parked = ParkedClaims(view, self._steward, self._loans)
        self._horizons = Horizons(view, self._steward.tend, self._parked.note_leftover)
        admission, gates = Admission(view), Gates(self._horizons, self._loans)
        self._workers, self._workflows = WorkerRequests(operations, capacity), WorkflowRequests(operations)
        reads = self._reads = ReadRequests(operations, admission)
        self._leadership = leadership = LeadershipRequests(
            operations, self._floor, self.timekeeper, self._steward, self._moves, self.playback)
        writes = WriteRequests(operations, admission, self._floor)
        features: list[Feature] = [
            writes, ClaimRequests(operations, admission, gates, self._parked), reads,
            SettingRequests(operations, self._ticks.check), LimitRequests(self.lender, self._loans),
            leadership, self.timekeeper, self._dependencies, CopyRequests(view, self._exchanges), self._overseer,
            self._recaller, RetentionRequests(operations, self._steward.slices), self._workers, self._workflows]
        self._clients = ClientDoor(operations, asked_of(features))
        self._served = served_of(features)
        self._duties: tuple[Duty, ...] = (
            # First what decides whether this node may act at all, then what time alone brings.
            self.timekeeper, Inquiries(operations), self._watching, self._lapses, self._steward,
            self._steward.losses, self._steward.audits, self._steward.gatherings, self._steward.gossiper,
            self._ticks, operations.timers, self._workers, self._workflows, self._workflows.reaper,
            # Dependencies before parked claims: a task that is let go is claimed in the same turn.
            self._dependencies, Widths(view), self._loans, self._parked,
            # Then long reads, and those that want to hear of changes, now that all are made.
            reads.pages, writes.quotas, reads.interests, self._exchanges)

    # -- the machine ---------------------------------------------------------------------------

    def step(self, now_ms: int, event: Event) -> list[Effect]:
        """Take one event."""
        self._take(now_ms, event)
        outbox = self._outbox
        if outbox.to_self:
            self._drain(now_ms)
        effects, outbox.effects = outbox.effects, []
        return effects

    def deadline(self) -> int:
        """When the node next wants a ``Ticked``: at once, if the end of a turn left something to look at."""
        due_ms = NEVER_MS
        for duty in self._duties:
            duty_ms = 0 if any(duty.news) else duty.due_ms
            if duty_ms < duty.rests_until_ms:
                duty_ms = duty.rests_until_ms
            if duty_ms < due_ms:
                due_ms = duty_ms
        return due_ms

    def hand_over(self, now_ms: int) -> None:
        """The process is about to stop: from the next turn on, have others lead what this node leads, and send
        clients to others. What is said to that leaves with the next step."""
        self._steward.hand_over(now_ms)
        self._parked.dismiss(now_ms)
        self._workers.dismiss(now_ms)
        self._ends_ms = now_ms + self.view.timing.ending_ms

    def is_handing_over(self, now_ms: int) -> bool:
        """Whether it is worth while to go on for that, or for requests that are under way."""
        is_busy = bool(self.operations.open) and now_ms < self._ends_ms
        return self._steward.is_handing_over(now_ms) or is_busy

    @property
    def slots(self) -> Mapping[tuple[str, ...], int]:
        """How many claims the workers that report to it can hold, by what tells them apart, as far as the
        coordination log is to say."""
        return self._workers.capacity.told

    @property
    def playback(self) -> Playback:
        """Where the membership writes down what it plays of the coordination log."""
        return self._workflows.playback

    @property
    def commands(self) -> dict[Command, None]:
        """What clients want to be written into the coordination log; whoever sees to that takes it out."""
        return self._workflows.wanted

    def needs_vote_of(self, name: str) -> bool:
        """Whether the live voters of some partition are no majority without this node."""
        others = [other for other in self.view.live if other != name]
        return any(name in group and not has_majority(group, others)
                   for vnode in self.view.vnodes for group in vnode.standing.groups)

    def _take(self, now_ms: int, event: Event) -> None:
        match event:
            case Received():
                self._steward.hear(now_ms, event.peer)
                self._receive(now_ms, event.peer, event.message)
            case Asked():
                self._clients.serve(now_ms, event.client, event.message, len(self.operations.open),
                                    now_ms - self.operations.timers.due_ms)
            case Withheld():
                release(self.operations, now_ms, event.answer.batches)
            case Settled():
                self._settle(now_ms)
            case KeyTold():
                self.view.notary = Notary(event)
            case SeatsChanged():
                self.view.seating.know(event.seats)
            case RulesChanged():
                self.view.rules, self.view.protocol = event.rules, protocol_of(event.rules)
            case MembersChanged():
                self._on_members(now_ms, event.members)
            case NodesChanged():
                self._on_nodes(now_ms, event)
            case SessionChanged():
                self._on_session(now_ms, event.session)
            case DocumentRead():
                self._steward.on_read(now_ms, event)
                self._moves.on_read(now_ms, event)
                self._overseer.on_read(now_ms, event)
                self._horizons.wake(now_ms)
            case DocumentChanged():
                self._watching.note(event.partition)
            case ReadFailed():
                self._candidacy(event.partition).on_read_failed(now_ms)
                self.view.bulletin.change(event.partition)
            case DocumentSwapped():
                self._on_swapped(now_ms, event)
            case RevisionsRead():
                self._recaller.on_read(event)

    def _on_swapped(self, now_ms: int, event: DocumentSwapped) -> None:
        self._outbox.carry_out(self._candidacy(event.partition).on_swapped(now_ms, event))
        self._overseer.on_swapped(event)
        self.view.bulletin.change(event.partition)
        self._horizons.wake(now_ms)

    def _receive(self, now_ms: int, peer: str, message: m.Message) -> None:
        try:
            serve = self._served.get(type(message))
            if serve is not None:
                answer = serve(now_ms, peer, message)
                if answer is not None:
                    self._outbox.send(peer, answer)
                return
            self.operations.hear(now_ms, peer, message)
        except Malformed:
            if peer == self.view.me.name:
                raise
            self.malformed_count += 1

    def _drain(self, now_ms: int) -> None:
        to_self, me = self._outbox.to_self, self.view.me.name
        while to_self:
            self._receive(now_ms, me, to_self.popleft())

    def description(self) -> m.Described:
        """The cluster as seen from here, for whoever watches this node."""
        return self._leadership.description(0, self._settled_ms)

    malformed_count = 0
    """Peers' messages that parsed but made no sense; dropped."""

    def _settle(self, now_ms: int) -> None:
        """The turn ends: look at what is due and at what the turn touched, and at nothing else."""
        if now_ms < self._settled_ms:
            self.timekeeper.forget()
            self._ticks.forget()
        self._settled_ms = now_ms
        if not self.timekeeper.may_lead:
            self._resign(now_ms, FAR)
        outbox = self._outbox
        for duty in self._duties:
            if (duty.due_ms <= now_ms or any(duty.news)) and duty.rests_until_ms <= now_ms:
                duty.look(now_ms)
                if outbox.to_self:
                    self._drain(now_ms)
        self._round_up(now_ms)

    def _round_up(self, now_ms: int) -> None:
        """Stage what the turn has changed, and note its times."""
        bulletin = self.view.bulletin
        for partition in bulletin.touched:
            vnode = self.view.vnodes[partition]
            vnode.replica.filing.tally.settle()
            if not vnode.takes_writes:
                self._steward.note_misplaced(now_ms, partition)
        bulletin.touched.clear()
        if bulletin.timed or self._lapses.risen:
            self._lapses.settle()
        if self._floor.ms > self._floor.stored_ms:
            self._floor.keep()
        if self.playback.is_current:
            self._keepsake.keep(now_ms, self.playback.replica)

    def _candidacy(self, partition: int) -> Candidacy:
        return self.view.candidacy(self.view.vnodes[partition])

    # -- the registry's news -------------------------------------------------------------------

    def _on_members(self, now_ms: int, members: Sequence[Member]) -> None:
        old = self.view.live
        self.view.live = {member.name: member for member in members}
        for vnode in self.view.vnodes:
            vnode.live = self.view.live
        came = [member for member in members if member.name != self.view.me.name
                and (member.name not in old or old[member.name].boot != member.boot)]
        gone = [name for name, member in old.items()
                if name not in self.view.live or self.view.live[name].boot != member.boot]
        self._steward.on_members(now_ms, [member.name for member in came], gone)
        self.timekeeper.on_members(now_ms, [member.name for member in came], gone)
        self._exchanges.on_members(came)
        self._parked.note_members()
        for name in [member.name for member in came]:
            self.view.bulletin.remark(Remark(Kind.JOINED, name))
        for name in gone:
            self.view.bulletin.remark(Remark(Kind.LEFT, name))
        if gone:
            self.operations.on_gone(now_ms, gone)

    def _on_nodes(self, now_ms: int, event: NodesChanged) -> None:
        self.view.nodes, self.view.leaving = event.nodes, event.leaving
        self.view.replicas = event.replicas or self.view.parameters.replicas
        self.view.majority = majority(self.view.replicas)
        self.timekeeper.on_nodes(len({*event.nodes, self.view.me.name}))
        placement = event.placement if event.placement is not None else place(
            event.nodes, self.view.parameters.partitions, self.view.replicas)
        moved = [vnode.partition for vnode in self.view.vnodes if vnode.owners != placement[vnode.partition]]
        for vnode, owners in zip(self.view.vnodes, placement, strict=True):
            vnode.nodes = (*event.nodes, *event.leaving)
            vnode.place(owners)
        self._steward.mark(now_ms, moved)

    def _on_session(self, now_ms: int, session: Session) -> None:
        if session is not self.view.session:
            is_end = self.view.is_leaving and session is Session.LOST
            self.view.bulletin.remark(Remark(Kind.SESSION, why="over, for it stops" if is_end else session.value))
        self.view.session = session
        self._note_rights(now_ms)
        if session is Session.CONNECTED:
            note_joined(self._store)

    def _note_rights(self, now_ms: int) -> None:
        """The session or the clock may have become good, or bad."""
        view, timekeeper = self.view, self.timekeeper
        view.is_connected = view.session is Session.CONNECTED
        view.may_renew = timekeeper.may_grant
        view.may_grant = view.is_connected and view.may_renew
        view.bulletin.change_rights()
        if view.session is Session.LOST or not timekeeper.may_lead:
            self._resign(now_ms, NO_SESSION if view.session is Session.LOST else FAR)

    def _resign(self, now_ms: int, why: str) -> None:
        for vnode in self.view.vnodes:
            if not vnode.election.is_idle:
                vnode.resign(now_ms, why)
