"""Processes between one ZooKeeper and one network, wired as the real loop wires them.

A process writes to members alone and hears nodes that are placed, but for messages about the coordination log,
which pass between any two. What it wants computed takes a while, in which it goes on. Everything else that is no
message goes to ZooKeeper.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

from skuld_py.cluster.scale.decisions import computed
from skuld_py.model.coordination import Announce, CoordinationEffect
from skuld_py.model.document import Member
from skuld_py.model.events import Answer, Asked, Compute, ReadDocument, ReadRevisions, Received, Send, SwapDocument
from skuld_py.model.messages import ROLE_CLIENT, ROLE_NODE, Message
from skuld_py.model.messages.membership import COORDINATION_MESSAGES
from skuld_py.node.process import Wish
from skuld_py.simulation.world.lateness import Envelope
from skuld_py.simulation.world.network import Network
from skuld_py.simulation.world.process import Process
from skuld_py.simulation.world.scheduler import Scheduler
from skuld_py.simulation.world.zookeeper.registry import Registry
from skuld_py.simulation.world.zookeeper.sessions import Connection, News

_OF_THE_LOG = frozenset(COORDINATION_MESSAGES)


class Wiring:
    """``works`` draws how long computations take, at most ``computing_ms``."""

    def __init__(self, scheduler: Scheduler, network: Network, registry: Registry, works: Random,
                 computing_ms: int) -> None:
        self.scheduler = scheduler
        self.network = network
        self.registry = registry
        self.processes: dict[str, Process] = {}
        self._works = works
        self._computing_ms = computing_ms
        self._registry_cuts: Counter[str] = Counter()

    # -- for who looks on ------------------------------------------------------------------------

    def note(self, who: str, what: str, whom: str = "", detail: object = "") -> None:
        """Add to the trace."""
        raise NotImplementedError

    def on_message(self, process: Process, message: Message) -> None:
        """A peer's message arrives."""

    def on_news(self, name: str, event: News) -> None:
        """ZooKeeper tells a process something."""

    def on_request(self, process: Process, effect: Wish) -> None:
        """A process asks ZooKeeper for something."""

    def on_parted(self) -> None:
        """A process was parted from ZooKeeper."""

    # -- messages --------------------------------------------------------------------------------

    def attach(self, process: Process) -> None:
        """Let a process be spoken to under its name."""
        self.processes[process.name] = process
        self.network.attach(process.name, self._deliverer(process))

    def _deliverer(self, process: Process) -> Callable[[str, Envelope], None]:
        def deliver(sender: str, messages: Envelope) -> None:
            is_peer = sender in self.processes
            for message in messages:
                if not message.roles & (ROLE_NODE if is_peer else ROLE_CLIENT):
                    raise AssertionError(f"{sender} may not send {message}")
                if is_peer and not (process.knows(sender) or type(message) in _OF_THE_LOG):
                    self.network.counts["of a stranger"] += 1
                    continue
                self.note(sender, "->", process.name, message)
                if is_peer:
                    self.on_message(process, message)
                process.receive(Received(sender, message) if is_peer else Asked(sender.encode(), message))
        return deliver

    def is_dialled(self, process: Process, peer: str, message: Message) -> bool:
        """Whether a process can write this to a peer; else it is dropped, and counted."""
        if peer in process.members or type(message) in _OF_THE_LOG:
            return True
        self.network.counts["to who is no member"] += 1
        return False

    # -- everything else -------------------------------------------------------------------------

    def connect(self, process: Process, member: Member) -> Connection:
        """Open its registry session."""
        def deliver(event: News) -> None:
            self.note("registry", "->", process.name, event)
            self.on_news(process.name, event)
            self.tell(process, event)
        connection = self.registry.connect(member, deliver, process.starts)
        if self._registry_cuts[process.name] > 0:
            self.registry.cut(connection)
        return connection

    def disconnect(self, connection: Connection) -> None:
        """The registry's side of a death."""
        self.registry.close(connection)

    def carry_out(self, process: Process, effect: Wish) -> None:
        """What is no message. News for the node have been heeded by now."""
        if isinstance(effect, Announce):
            self.note(process.name, "announces", "", effect.event)
        elif isinstance(effect, Compute):
            work_ms = self._works.randint(1, self._computing_ms)
            self.scheduler.after(work_ms, self._give_result, process, process.boots, effect)
        elif process.connection is not None and not isinstance(effect, Send | Answer | ReadRevisions):
            self.note(process.name, "asks", "registry", effect)
            self.on_request(process, effect)
            is_stale = process.losses != process.connection.losses
            self.ask(process.connection, effect, is_stale)

    def ask(self, connection: Connection, effect: ReadDocument | SwapDocument | CoordinationEffect,
            is_stale: bool) -> None:
        """A request leaves a process for ZooKeeper."""
        self.registry.request(connection, effect, is_stale)

    def tell(self, process: Process, event: News) -> None:
        """An answer, or news, of ZooKeeper reaches a process."""
        process.receive(event)

    def _give_result(self, process: Process, boots: int, wish: Compute) -> None:
        if process.boots == boots:
            process.receive(computed(wish))

    # -- what a nemesis does ---------------------------------------------------------------------

    def pause(self, name: str) -> None:
        """Stop a node's process."""
        process = self.processes[name]
        if process.is_up and not process.is_paused and process.connection is not None:
            process.pause()
            self.registry.silence(process.connection)

    def resume(self, name: str) -> None:
        """Let it go on."""
        process = self.processes[name]
        if process.is_paused and process.connection is not None:
            self.registry.wake(process.connection)
            process.resume()

    def cut_registry(self, name: str) -> None:
        """Part a node from the registry."""
        self._registry_cuts[name] += 1
        connection = self.processes[name].connection
        if connection is not None and self._registry_cuts[name] == 1:
            self.registry.cut(connection)
        self.on_parted()

    def mend_registry(self, name: str) -> None:
        """Join them again, however often they were parted."""
        was_cut, self._registry_cuts[name] = self._registry_cuts[name] > 0, 0
        connection = self.processes[name].connection
        if connection is not None and was_cut:
            self.registry.mend(connection)
