"""The small cluster: what may deviate in it, and how.

Decision points stand where something leaves or enters a process: a message to a peer, a turn that sends one, a
commit that follows one, a request to the registry and what comes back. They need nothing of the models behind
them, so that a deviation is the same whatever stands for network and registry.

What is *held* waits until another message of its kind and of another epoch goes to the same node, and comes just
before that one: in the very phase in which it would count, were it not stale.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from skuld_py.model.coordination import CoordinationEffect, ReadEntries
from skuld_py.model.events import (
    DocumentSwapped,
    Outcome,
    ReadDocument,
    ReadFailed,
    Received,
    Send,
    SwapDocument,
)
from skuld_py.model.messages import Message
from skuld_py.node.process import Told, Wish
from skuld_py.simulation.campaign import make_node
from skuld_py.simulation.cluster import Cluster
from skuld_py.simulation.options import Options
from skuld_py.simulation.small.script import Choices
from skuld_py.simulation.trace import Trace
from skuld_py.simulation.world.clock import Clock
from skuld_py.simulation.world.lateness import Envelope
from skuld_py.simulation.world.process import Process
from skuld_py.simulation.world.scheduler import STILL
from skuld_py.simulation.world.zookeeper.sessions import Connection, News

SOON_MS, LATE_MS, JUST_MS = 30, 400, 1
PASSING = ("30 ms", "400 ms", "lost")
STALE = ("held", "held and sent")
"""Ways of what says its epoch, besides."""
TURNS = ("pause", "expire", "crash", "isolate", "deaf", "wipe")
COMMITS = ("crash before", "crash after", "slow")
SWAPS = ("applied in doubt", "lost in doubt", "late", "slow", "sent late", "expired")
READS = ("failed", "slow", "sent late")
ENTRIES = ("behind",)
"""Ways of a reading of the coordination log, until the next one: its server, and that of the pulses which the node
watches, is late."""


@attrs.frozen
class Focus:
    """What may deviate: messages of these kinds, the turns that send them, the commits of turns that took one of
    ``causes``, and what passes between a node and the registry."""

    messages: frozenset[type[Message]]
    causes: frozenset[type[Message]]
    has_registry: bool = True


class Small(Cluster):
    """``strike`` lets one of ``TURNS`` or the first two of ``COMMITS`` befall a node, at once after its turn."""

    def __init__(self, options: Options, trace: Trace, horizon_ms: int, choices: Choices, focus: Focus,
                 strike: Callable[[str, str], None]) -> None:
        super().__init__(STILL, options, make_node, trace, horizon_ms)
        self.is_open = False
        """Whether the run may deviate: while the story goes on."""
        self._choices = choices
        self._focus = focus
        self._strike = strike
        self._held: dict[tuple[str, type[Message]], tuple[str, Message]] = {}
        self._is_concerned: dict[str, bool] = {}
        """Whether the turn that a node takes has a cause in focus."""
        self._settled: dict[str, None] = {}
        """Writes whose outcome a node was told is unknown; it is told no more of them."""
        self._fates: dict[str, str] = {}
        """What becomes of the answer to a write."""
        self.may_pass: Callable[[str, str, Message], bool] = lambda sender, receiver, message: True
        """Asked of every message between nodes: what a scenario does of itself."""

    def clock(self, name: str, label: str) -> Clock:
        """A clock as far from its neighbours' as is allowed."""
        half_ms = self.options.parameters.skew_ms / 2 - 1
        return Clock(half_ms if self.options.nodes.index(name) % 2 else -half_ms)

    def _choose(self, ways: Sequence[str], *where: object) -> str:
        way = self._choices.at(ways, self.scheduler.now_ms, *where)
        if way:
            self.note("script", way, str(where[0]), self._choices.taken[-1])
        return way

    # -- messages ------------------------------------------------------------------------------

    def send(self, sender: str, receiver: str, messages: Envelope) -> None:
        """Hand over what passes now, and before it what it was waited for."""
        if not self.is_open or receiver not in self.processes:
            super().send(sender, receiver, messages)
            return
        late_ms, passing = 0, list[Message]()
        for message in messages:
            kind = type(message)
            if not self.may_pass(sender, receiver, message):
                continue
            held = self._held.get((receiver, kind))
            if held is not None and epoch_of(message) not in (0, epoch_of(held[1])):
                del self._held[receiver, kind]
                super().send(held[0], receiver, (held[1],))
                late_ms = JUST_MS
            if kind not in self._focus.messages or self._passes(sender, receiver, message):
                passing.append(message)
        if late_ms:
            self._send_later(late_ms, sender, receiver, tuple(passing))
        elif passing:
            super().send(sender, receiver, tuple(passing))

    def _passes(self, sender: str, receiver: str, message: Message) -> bool:
        """Whether a message goes with the others."""
        ways = PASSING + STALE if epoch_of(message) else PASSING
        way = self._choose(ways, type(message).__name__, sender, receiver)
        if way in PASSING[:2]:
            self._send_later(SOON_MS if way == PASSING[0] else LATE_MS, sender, receiver, (message,))
        elif way in STALE:
            self._held[receiver, type(message)] = sender, message
        return way in ("", STALE[1])

    def _send_later(self, delay_ms: int, sender: str, receiver: str, messages: Envelope) -> None:
        self.scheduler.after(delay_ms, self.network.send, sender, receiver, messages)

    # -- turns and commits ---------------------------------------------------------------------

    def before_turn(self, process: Process, events: Sequence[Told]) -> None:
        """Look at what a machine is about to take."""
        super().before_turn(process, events)
        self._is_concerned[process.name] = any(
            type(event) is Received and type(event.message) in self._focus.causes for event in events)

    def let_out(self, process: Process, effects: Sequence[Wish]) -> None:
        """Let effects leave, whatever befalls the node right after."""
        super().let_out(process, effects)
        kinds = [type(effect.message) for effect in effects if type(effect) is Send]
        if self.is_open and not self._focus.messages.isdisjoint(kinds):
            way = self._choose(TURNS, process.name, "turn", *(kind.__name__ for kind in kinds))
            if way:
                self._strike(way, process.name)

    def commit_ms(self, process: Process) -> int:
        """At once, unless it fails, or the disk is slow."""
        if not (self.is_open and self._is_concerned.get(process.name)):
            return super().commit_ms(process)
        way = self._choose(COMMITS, process.name, "commit")
        if not way:
            return super().commit_ms(process)
        if way != COMMITS[2]:
            self._strike(way, process.name)
        return LATE_MS if way == COMMITS[2] else JUST_MS

    # -- the registry --------------------------------------------------------------------------

    def ask(self, connection: Connection, effect: ReadDocument | SwapDocument | CoordinationEffect,
            is_stale: bool) -> None:
        """Let a request leave; in doubt is a swap whose answer is lost. What is late is one behind the other."""
        name, way = connection.member.name, ""
        is_open = self.is_open and self._focus.has_registry
        if isinstance(effect, ReadEntries):
            lag_ms = LATE_MS if is_open and self._choose(ENTRIES, name, "ReadEntries") else 0
            self.registry.lag(name, lag_ms)
        elif isinstance(effect, ReadDocument | SwapDocument) and is_open:
            way = self._choose(SWAPS if isinstance(effect, SwapDocument) else READS, name, type(effect).__name__)
            if way in ("lost in doubt", "failed", "late"):
                self.scheduler.after(SOON_MS, self._fail, connection, effect)
            if way in ("lost in doubt", "failed"):
                return
            if isinstance(effect, SwapDocument):
                self._fates[effect.document.write_id] = way
            now_ms = self.scheduler.now_ms
            if way in ("late", "sent late"):
                connection.asked_ms = max(connection.asked_ms, now_ms + LATE_MS)
            elif way == "slow":
                connection.told_ms = max(connection.told_ms, now_ms + LATE_MS)
        super().ask(connection, effect, is_stale)

    def _fail(self, connection: Connection, effect: ReadDocument | SwapDocument) -> None:
        event: News = ReadFailed(effect.partition)
        if isinstance(effect, SwapDocument):
            event = DocumentSwapped(effect.partition, effect.document.write_id, Outcome.UNCERTAIN)
        if not connection.is_closed:
            connection.deliver(event)
        if isinstance(effect, SwapDocument):
            self._settled[effect.document.write_id] = None

    def tell(self, process: Process, event: News) -> None:
        """Hand news over, as they are or in doubt."""
        if isinstance(event, DocumentSwapped):
            way = self._fates.pop(event.write_id, "")
            if event.write_id in self._settled:
                return
            if way in ("applied in doubt", "expired"):
                event = attrs.evolve(event, outcome=Outcome.UNCERTAIN, version=-1)
            if way == "expired" and process.connection is not None:
                self.registry.expire(process.connection)
        super().tell(process, event)


def epoch_of(message: Message) -> int:
    """The epoch that a message speaks of; 0 for none. What is said on trial does not bind, and is never stale."""
    return 0 if getattr(message, "is_trial", False) else getattr(message, "epoch", getattr(message, "promised", 0))
