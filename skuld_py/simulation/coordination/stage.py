"""The processes of a run: the real ones, whose nodes only listen, in the world that all plays share.

``World`` says of what they are made, so that a test can put something broken in its place and see that it is
found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import attrs

from skuld_py.cluster.log.commands import COMMANDS, Command
from skuld_py.cluster.log.lives import Lives
from skuld_py.cluster.log.play import Played, play
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.member.membership import Membership
from skuld_py.config import Parameters
from skuld_py.model.document import Member
from skuld_py.model.events import Effect, Event, NodesChanged, Send, Session, SessionChanged
from skuld_py.model.memory_store import MemoryStore
from skuld_py.node.life.identity import Start
from skuld_py.node.life.start import prepare
from skuld_py.node.process import Told, Wish
from skuld_py.simulation.coordination.options import Options
from skuld_py.simulation.coordination.placed import PARTITIONS, scheme
from skuld_py.simulation.coordination.poison import Poison
from skuld_py.simulation.hearing import Hearing
from skuld_py.simulation.trace import Trace
from skuld_py.simulation.world.clock import Clock
from skuld_py.simulation.world.network import Network
from skuld_py.simulation.world.process import Process
from skuld_py.simulation.world.scheduler import Scheduler, stream
from skuld_py.simulation.world.wiring import Wiring
from skuld_py.simulation.world.zookeeper.registry import Registry

COMPUTING_MS = 3_000
"""Longest time that a computation takes."""


@attrs.frozen
class World:
    """What the cluster is made of. ``membership`` makes the machine of a process, given what plays its entries."""

    membership: Callable[..., Membership] = Membership
    registry: Callable[..., Registry] = Registry
    player: Callable[..., Played] = play
    commands: Mapping[str, type[Command]] = attrs.field(factory=lambda: {**COMMANDS, Poison.kind: Poison})


class Listener:
    """A node that is told things and does nothing."""

    def __init__(self) -> None:
        self.told_nodes: NodesChanged | None = None
        self.is_connected = False

    def step(self, now_ms: int, event: Event) -> Sequence[Effect]:
        """Remember the news."""
        if isinstance(event, SessionChanged):
            self.is_connected = event.session is Session.CONNECTED
        elif isinstance(event, NodesChanged):
            self.told_nodes = event
        return ()

    def deadline(self) -> int | None:
        """Never."""
        return None

    def hand_over(self, now_ms: int) -> None:
        """There is nothing to hand over."""

    def is_handing_over(self, now_ms: int) -> bool:
        """Never."""
        return False

    slots: Mapping[tuple[str, ...], int] = {}
    playback = None

    @property
    def commands(self) -> dict[Command, None]:
        """Nothing is to be written."""
        return {}

    def needs_vote_of(self, name: str) -> bool:
        """No vote is needed: there are no partitions."""
        return False


class Stage(Wiring):
    """``lives`` counts those that were begun; ``look`` is called between two turns of a process."""

    partitions = PARTITIONS

    def __init__(self, seed: int, options: Options, world: World, trace: Trace) -> None:
        scheduler = Scheduler(seed)
        base = Replica(replicas=2, rules=options.rules)
        player = partial(world.player, commands=world.commands)
        registry = world.registry(scheduler, stream(seed, "registry"), options.registry, base, player, PARTITIONS)
        super().__init__(scheduler, Network(scheduler, seed, options.weather), registry,
                         stream(seed, "computing"), COMPUTING_MS)
        self.options = options
        self.lives = 0
        self.listeners: dict[str, Listener] = {}
        self.look: Callable[[Process], None] = lambda process: None
        self.stats: Counter[str] = Counter()
        self._trace = trace
        self._world = world
        names = [f"n{number:02}" for number in range(options.members)]
        self._jitters = {name: stream(seed, f"membership {name}") for name in names}
        for name in names:
            self.attach(Process(name, self, Clock(), MemoryStore()))

    def note(self, who: str, what: str, whom: str = "", detail: object = "") -> None:
        """Add to the trace."""
        self._trace.note(self.scheduler.now_ms, who, what, whom, detail)

    # -- the world of a process ------------------------------------------------------------------

    def prepare(self, process: Process) -> Start:
        """Settle who the node is by what is registered."""
        fresh = f"{process.name}-data-{process.boots}"
        return prepare(process.store, self.registry.registration(process.name), fresh,
                       Parameters("sim", "none", PARTITIONS, 2))[0]

    def build(self, process: Process, member: Member) -> Hearing:
        """A process with a node that listens."""
        listener = self.listeners[process.name] = Listener()
        process.membership = self._make_membership(member)

        def blame(sentence: str) -> None:
            self.registry.violations.append(f"{process.name} {sentence}")
        return Hearing(listener, process.membership, blame)

    def _make_membership(self, member: Member) -> Membership:
        name, jitter, options = member.name, self._jitters[member.name], self.options
        registered = self.registry.registration(name)
        lives = Lives(name, registered.life if registered is not None else "")

        def fresh_id() -> str:
            self.lives += 1
            return lives.next(jitter.getrandbits(32))
        scaling = options.scaling[int(name[1:]) % len(options.scaling)]
        reference = self.registry.log.reference
        return self._world.membership(
            member, fresh_id, lambda most_ms: jitter.randint(0, most_ms), options.settings, reference.base,
            player=reference.player_of(name), scaling=scaling, scheme=scheme(scaling, self._world.commands))

    def before_turn(self, process: Process, events: Sequence[Told]) -> None:
        """Look at what the last turn made."""
        self.look(process)

    def commit_ms(self, process: Process) -> int:
        """There is nothing to commit."""
        return 0

    def before_commit(self, process: Process) -> None:
        """Nothing to see."""

    def let_out(self, process: Process, effects: Sequence[Wish]) -> None:
        """Let effects leave."""
        for effect in effects:
            if isinstance(effect, Send):
                self.stats["messages"] += 1
                if self.is_dialled(process, effect.peer, effect.message):
                    self.network.send(process.name, effect.peer, (effect.message,))
            else:
                self.carry_out(process, effect)

    def start(self, process: Process) -> None:
        """Start a process, unless it runs."""
        if not process.is_up:
            process.start()

    def act(self, process: Process, wishes: Sequence[Wish]) -> None:
        """Let leave what a machine wished beside its turns, and have it woken when it wants to."""
        process.heed(wishes)
        self.let_out(process, wishes)
        process.arm()

    @property
    def live(self) -> list[Process]:
        """The processes that run."""
        return [process for process in self.processes.values() if process.is_up]
