"""All processes of a run with the world between them: the wiring, and nothing else.

Everything that leaves a machine passes through ``let_out`` here, which is where the monitor
listens. Nodes and clients are endpoints of one network; what a node gets from a client is ``Asked``,
from a peer ``Received``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random

import attrs

from skuld_py.cluster.log.lives import Lives
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.member.membership import Membership
from skuld_py.cluster.scale.derivation import scheme_of
from skuld_py.config import DEFAULT_LIMITS
from skuld_py.errors import Refused
from skuld_py.model.coordination import Announce
from skuld_py.model.document import NOBODY, Member
from skuld_py.model.events import (
    Answer,
    KeyTold,
    ReadDocument,
    SeatsChanged,
    Send,
    SwapDocument,
)
from skuld_py.model.memory_store import MemoryStore
from skuld_py.model.messages import ClaimPage, Message, Vote
from skuld_py.model.proofs import with_new_key
from skuld_py.node.life.identity import Start
from skuld_py.node.life.start import prepare
from skuld_py.node.node import Node
from skuld_py.node.process import Told, Wish
from skuld_py.partition.leadership.suspicion import suspects
from skuld_py.simulation.atlas import Atlas
from skuld_py.simulation.guards import Guards
from skuld_py.simulation.hearing import NEWS_AT_ONCE, Hearing
from skuld_py.simulation.history import History
from skuld_py.simulation.monitor import Monitor
from skuld_py.simulation.notetaker import NoteTaker
from skuld_py.simulation.options import NEW_CLAIM_KEY, Options
from skuld_py.simulation.pairs import Pairs
from skuld_py.simulation.probes import Probes
from skuld_py.simulation.seating import SeatGuards
from skuld_py.simulation.trace import Trace
from skuld_py.simulation.world.clock import WALL_START_MS, Clock, draw_clock
from skuld_py.simulation.world.lateness import Envelope
from skuld_py.simulation.world.network import Network
from skuld_py.simulation.world.process import Body, Process
from skuld_py.simulation.world.scheduler import Scheduler, stream
from skuld_py.simulation.world.wiring import Wiring
from skuld_py.simulation.world.zookeeper.registry import Registry
from skuld_py.simulation.world.zookeeper.sessions import News
from skuld_py.wire import codec, envelopes

LATEST_MS = 15_000
NOTICE_MS = 12_000
"""A new key is known for so long before it is used: longer than a process stands still, or a session lasts."""
COMPUTING_MS = 300
"""Longest time that a computation beside the loop takes."""

MakeNode = Callable[[Options, Member, MemoryStore, Random], Node]


class Cluster(Wiring):
    """Nodes, network, registry, and the records kept of them."""

    def __init__(self, seed: int, options: Options, make_node: MakeNode, trace: Trace, horizon_ms: int) -> None:
        self.seed = seed
        self.options = options
        self.partitions = options.parameters.partitions
        self.make_node = make_node
        self.make_store: Callable[[], MemoryStore] = MemoryStore
        self.trace = trace
        scheduler = Scheduler(seed)
        super().__init__(
            scheduler, Network(scheduler, seed, options.weather),
            Registry(scheduler, stream(seed, "registry"), options.registry, Replica.base(options.parameters),
                     partitions=self.partitions), stream(seed, "computing"), COMPUTING_MS)
        self.network.translate = over_the_wire if options.is_on_wire else None
        self.history = History()
        self.monitor = Monitor(options.parameters, self.processes, self.history, self._voters_of,
                               lambda: self.scheduler.now_ms, self._least_seats_of)
        self.notetaker = NoteTaker(self.scheduler, self.processes)
        self.atlas = Atlas(options.parameters, self.processes, self.registry,
                           is_off=options.is_total_loss)
        self.monitor.tokens = options.limits.tokens
        self.monitor.archives = options.retention.archives
        self.monitor.is_excused = self.atlas.is_hurt
        self.monitor.is_hidden = self.atlas.is_hidden
        self.guards = Guards(self.processes, self.monitor.counts, self.monitor.blame, self.atlas.is_hurt,
                             self.monitor.going)
        self.guards.is_total_loss = options.is_total_loss
        self.guards.skew_ms = options.parameters.skew_ms
        self.guards.now_ms = lambda: self.scheduler.now_ms
        self.registry.on_written.append(self.guards.on_written)
        self.probes, self.pairs = Probes(self), Pairs()
        self.seats = SeatGuards(self.registry.log.reference, self.monitor, self.probes.hit)
        self.network.on_cut = self.probes.on_cut
        self.registry.on_written.append(self.probes.on_written)
        self.on_support: list[Callable[[Process, Vote | ClaimPage], None]] = []
        """Each is given a node that votes for a candidate, or hands it the last of its claims."""
        self.ahead_ms: dict[str, int] = {}
        """By how much each clock that is wrong for a while is ahead."""
        self.is_repaired = False
        """Whether the wrong clock, if there is one, has been set right."""
        self._horizon_ms = horizon_ms
        self._clocks: dict[str, Clock] = {}
        """Clocks that were set and not read since."""
        self._randoms = {name: stream(seed, f"node {name}") for name in options.nodes}
        self._commits = {name: stream(seed, f"commit {name}") for name in options.nodes}
        self._jitters = {name: stream(seed, f"membership {name}") for name in options.nodes}

    is_resized = False
    """Whether an operator changes how many copies are kept: voters may have become fewer since."""

    def _voters_of(self, partition: int) -> tuple[str, ...]:
        return self.registry.newest(partition).cohort

    def _least_seats_of(self, partition: int) -> int:
        """Of its present voters, or of those just before, who may have granted what is answered now."""
        document = self.registry.newest(partition)
        if self.is_resized:
            return 1
        sizes = (len(document.cohort), len(document.previous.cohort), self.options.parameters.replicas)
        return min(size for size in sizes if size)

    def start(self) -> None:
        """Register all nodes, then boot each within the first moments."""
        spread = stream(self.seed, "boot")
        late = self.options.late
        if not self.options.log.is_fresh:
            self.registry.found(tuple(name for name in self.options.nodes if name not in late))
        for name in self.options.nodes:
            clock = self.clock(name, f"clock {name}")
            self.attach(Process(name, self, clock, self.make_store()))
            if name in self.options.visitors:
                continue
            at_ms = spread.randint(0, 200) if name not in late else spread.randint(1_000, LATEST_MS)
            self.scheduler.at(at_ms, self.restart, name)
        if self.options.new_key_ms:
            self.scheduler.at(self.options.new_key_ms, self._replace_key)

    def _replace_key(self) -> None:
        """An operator replaces the key that proves claims: who runs is told, and who starts reads it."""
        made = with_new_key(self.options.parameters, NEW_CLAIM_KEY, WALL_START_MS + self.scheduler.now_ms,
                            self.options.grace_ms, notice_ms=NOTICE_MS)
        self.options = attrs.evolve(self.options, parameters=made)
        self.registry.tell_key(KeyTold(made.claim_key, made.proofs_from_ms, made.claim_from_ms, made.former_keys))

    def clock(self, name: str, label: str) -> Clock:
        """A clock as a node finds it at a start: as far off as allowed, or one that is known to be wrong."""
        options = self.options
        if options.fast:
            return Clock(float(options.fast_ms)) if name == options.fast and not self.is_repaired else Clock()
        clock = draw_clock(stream(self.seed, label), options.parameters.skew_ms, self._horizon_ms)
        return attrs.evolve(clock, offset_ms=clock.offset_ms + self.ahead_ms.get(name, 0))

    def repair_clock(self) -> None:
        """Set the wrong clock right; its node has to start again to see it."""
        if self.options.fast and not self.is_repaired:
            self.is_repaired = True
            self.processes[self.options.fast].crash()
            self.step_clock(self.options.fast, "repaired")

    def repair_clocks(self) -> None:
        """Set those right that are ahead for a while."""
        for name in [name for name, ahead_ms in self.ahead_ms.items() if ahead_ms]:
            self.processes[name].crash()
            self.set_ahead(name, 0)

    # -- the world of a process ------------------------------------------------------------------

    def prepare(self, process: Process) -> Start:
        """Settle who the node is by what is registered, and scrub its store; commits."""
        registered = self.registry.registration(process.name)
        fresh = f"{process.name}-data-{process.boots}"
        found, scrubbed = prepare(process.store, registered, fresh, self.options.parameters)
        for alarm in found.alarms:
            self.note(process.name, "suspects", detail=alarm)
        if scrubbed:
            self.note(process.name, "scrubbed", detail=scrubbed)
        return found

    def build(self, process: Process, member: Member) -> Body:
        """Make the machine of a fresh process."""
        self.atlas.look(process.name)
        self.monitor.on_start(process)
        self.seats.on_start(process.name)
        self.guards.on_start(process, suspects(process.store, self.partitions))
        process.node = self.make_node(self.options, member, process.store, self._randoms[process.name])
        process.membership = self._make_membership(member)

        def blame(sentence: str) -> None:
            self.monitor.blame(NEWS_AT_ONCE, f"{process.name} {sentence}")
        return Hearing(process.node, process.membership, blame)

    def _make_membership(self, member: Member) -> Membership:
        options, name, jitter = self.options.log, member.name, self._jitters[member.name]
        registered = self.registry.registration(name)
        lives = Lives(name, registered.life if registered is not None else "")
        scaling = options.scaling[self.options.nodes.index(name) % len(options.scaling)]
        reference = self.registry.log.reference
        return Membership(
            member, lambda: lives.next(jitter.getrandbits(32)), lambda most_ms: jitter.randint(0, most_ms),
            options.settings, reference.base, self.options.parameters.cluster_id, scaling,
            scheme_of(scaling, self.partitions), reference.player_of(name))

    def before_turn(self, process: Process, events: Sequence[Told]) -> None:
        """Look at what a machine is about to take."""
        self.guards.on_turn(process, events)
        self.seats.on_turn(process.name, events)

    def commit_ms(self, process: Process) -> int:
        """An fsync: mostly quick."""
        return int(self._commits[process.name].expovariate(1.0) * self.options.commit_ms)

    def before_commit(self, process: Process) -> None:
        """Look at what is about to become durable."""
        self.atlas.look(process.name)
        self.monitor.before_commit(process)
        self.guards.before_commit(process)
        self.probes.before_commit(process)
        self.notetaker.before_commit(process)

    def let_out(self, process: Process, effects: Sequence[Wish]) -> None:
        """Let effects leave: one envelope per addressee, as the real loop does."""
        outgoing: dict[str, list[Message]] = {}
        for effect in effects:
            if type(effect) is Send:
                self.monitor.on_send(process, effect.peer, effect.message)
                self.guards.on_send(process, effect.peer, effect.message)
                self.notetaker.on_send(process, effect.peer, effect.message)
                self.seats.on_send(process.name, effect.message)
                if self.is_dialled(process, effect.peer, effect.message):
                    outgoing.setdefault(effect.peer, []).append(effect.message)
                self._tell_of_support(process, effect.message)
            elif type(effect) is Answer:
                client = effect.client.decode()
                self.monitor.on_answer(client, effect.message)
                operation = self.history.find(client, getattr(effect.message, "request", -1))
                self.probes.on_answer(operation, effect.message)
                outgoing.setdefault(client, []).append(effect.message)
            else:
                if type(effect) is Announce and type(effect.event) is SeatsChanged:
                    self.seats.on_told(process.name, effect.event)
                self.carry_out(process, effect)
        for name, messages in outgoing.items():
            for envelope in self._fitting(process.name, name, messages):
                self.send(process.name, name, envelope)

    def send(self, sender: str, receiver: str, messages: Envelope) -> None:
        """Hand an envelope to the network."""
        self.network.send(sender, receiver, messages)

    def on_message(self, process: Process, message: Message) -> None:
        """A message arrives: show it to the pairs."""
        self.pairs.see(process, message)

    def on_news(self, name: str, event: News) -> None:
        """News arrive: show them to the guards."""
        self.guards.on_news(name, event)

    def on_request(self, process: Process, effect: Wish) -> None:
        """A node asks the registry: show it to the observers."""
        if isinstance(effect, SwapDocument):
            self.notetaker.on_swap(process, effect)
            self.guards.on_swap(process, effect)
        elif isinstance(effect, ReadDocument):
            version = self.registry.documents.get(effect.partition, (-1, NOBODY))[0]
            self.guards.on_read_asked(process.name, effect.partition, version)

    def on_parted(self) -> None:
        """A node is parted from the registry: show it to the probes."""
        self.probes.on_cut()

    def _tell_of_support(self, process: Process, message: Message) -> None:
        if isinstance(message, Vote | ClaimPage):
            is_last = not message.next if isinstance(message, ClaimPage) else not message.is_trial
            for look in tuple(self.on_support) if is_last and getattr(message, "is_granted", True) else ():
                look(process, message)

    def _fitting(self, sender: str, receiver: str, messages: Sequence[Message]) -> Iterable[Envelope]:
        """The envelopes in which messages travel, as the real transport cuts them; one, where any may be large."""
        if self.options.limits.message_bytes == DEFAULT_LIMITS.message_bytes:
            return [tuple(messages)]

        def on_too_large(message: Message, refusal: Refused, is_told: bool) -> None:
            self.note(sender, "cannot send", receiver, f"{type(message).__name__}: {refusal}")
            self.guards.on_too_large(sender, receiver, message, str(refusal), is_told)
        return [envelope.messages for envelope, _ in
                envelopes.envelopes(sender, "sim", messages, on_too_large, self.options.limits)]

    def note(self, who: str, what: str, whom: str = "", detail: object = "") -> None:
        """Add to the trace."""
        self.trace.note(self.scheduler.now_ms, who, what, whom, detail)
        self.probes.see(self.scheduler.now_ms, who, what, whom, detail)

    # -- what the nemesis does ---------------------------------------------------------------------

    def restart(self, name: str) -> None:
        """Start a node that is down."""
        process = self.processes[name]
        if not process.is_up:
            process.on_crash = lambda: None
            process.clock = self._clocks.pop(name, process.clock)
            process.start()

    def step_clock(self, name: str, label: str) -> None:
        """Set a node's clock anew; a machine that runs does not see it."""
        self._clocks[name] = self.clock(name, label)

    def set_ahead(self, name: str, ahead_ms: int) -> None:
        """Set a node's clock ahead, or right again; a machine that runs does not see it."""
        clock = self._clocks.get(name, self.processes[name].clock)
        offset_ms = clock.offset_ms + ahead_ms - self.ahead_ms.get(name, 0)
        self.ahead_ms[name] = ahead_ms
        self._clocks[name] = attrs.evolve(clock, offset_ms=offset_ms)


def over_the_wire(sender: str, messages: Envelope) -> Envelope:
    """The messages as they arrive through the real codec; one that cannot be read is its writer's bug."""
    try:
        return codec.decode(codec.encode(codec.Envelope(sender, "sim", messages))).messages
    except Refused as problem:
        raise AssertionError(f"{sender} sent what nobody can read: {problem}: {messages}") from problem
