"""Nodes wired to each other without a network: messages arrive in order, time moves when told to.

For tests of one exchange of messages; whole runs with faults belong to the simulator.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable

import attrs

from skuld_py.cluster.placement import place
from skuld_py.config import Parameters
from skuld_py.config.timing import DEFAULT_TIMING, Retention, Timing
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.body import Header
from skuld_py.model.document import NOBODY, Document, Member
from skuld_py.model.events import (
    Answer,
    Asked,
    DocumentChanged,
    DocumentRead,
    DocumentSwapped,
    Effect,
    Event,
    MembersChanged,
    NodesChanged,
    Outcome,
    ReadDocument,
    ReadFailed,
    ReadRevisions,
    Received,
    RevisionsRead,
    Send,
    Session,
    SessionChanged,
    SwapDocument,
    Ticked,
)
from skuld_py.model.memory_store import MemoryStore
from skuld_py.model.revision import Revision, revision_of
from skuld_py.node.node import Node
from skuld_py.node.turn import take_turn


class Machines:
    """``count`` nodes of one cluster, and what clients were answered."""

    def __init__(self, count: int = 3, *, partitions: int = 8, replicas: int = 3, skew_ms: int = 200,
                 retention: Retention | None = None,
                 timing: Timing = DEFAULT_TIMING, claim_key: str = "", proofs_from_ms: int = 0,
                 waiting: int = 0) -> None:
        self.random = random.Random(1)
        self.names = [f"127.0.0.1:{13000 + index}" for index in range(count)]
        self.members = tuple(Member(name, "127.0.0.1", 13000 + index, f"boot-{index}", f"data-{index}")
                             for index, name in enumerate(self.names))
        self.parameters = Parameters("test", "id", partitions, replicas, skew_ms, claim_key=claim_key,
                                     proofs_from_ms=proofs_from_ms)
        self.retention = retention
        self.timing = timing
        self.stores = {name: MemoryStore() for name in self.names}
        self.nodes = {member.name: self._make(member) for member in self.members}
        self.documents: dict[int, tuple[int, Document]] = {}
        self.revisions: dict[int, list[Revision]] = {}
        self.returned: dict[int, int] = {}
        """How often the documents of partitions were put back."""
        self.doubted: dict[tuple[str, int], None] = {}
        """Who is to read how often a document was put back, since its swap failed by that."""
        self.answers: list[tuple[bytes, m.Message]] = []
        self.flying: deque[tuple[str, Event]] = deque()
        self.now_ms = 1_000_000
        self.ahead_ms = dict.fromkeys(self.names, 0)
        """How wrong each node's clock is."""
        self.is_lost: Callable[[m.Message], bool] = lambda message: False
        self.is_deaf = ""
        self.is_mute = ""
        """A node that nothing reaches from its peers."""
        self.is_in_doubt = False
        """Documents are written, and nobody is told so."""
        self.down: dict[str, None] = dict.fromkeys(self.names[count - waiting:])
        """Nodes without a process; at first the last ``waiting`` ones, of which nobody has heard."""
        self.reads_failing = 0
        """So many documents cannot be read, the next ones that are asked for."""
        self.mint = ids.IdMint(7)
        for name in self.names:
            self._introduce(name, self.members[: count - waiting])

    def _make(self, member: Member) -> Node:
        return Node(member, self.parameters, self.stores[member.name],
                    lambda most: self.random.randint(0, most), self.names.index(member.name),
                    retention=self.retention, timing=self.timing)

    def _introduce(self, name: str, members: tuple[Member, ...]) -> None:
        for event in (SessionChanged(Session.CONNECTED), NodesChanged(tuple(each.name for each in members)),
                      MembersChanged(members)):
            self.give(name, event)

    def restart(self, name: str) -> Node:
        """A new process on the store that ``stores`` has under this name; the others see it at once."""
        self.members = tuple(attrs.evolve(member, boot=member.boot + "'") if member.name == name else member
                             for member in self.members)
        node = self.nodes[name] = self._make(next(member for member in self.members if member.name == name))
        self._introduce(name, self.members)
        for other in self.names:
            self.give(other, MembersChanged(self.members))
        return node

    def future_owners(self, partition: int) -> tuple[str, ...]:
        """Who will own a partition once all nodes are placed."""
        return place(self.names, self.parameters.partitions, self.parameters.replicas)[partition]

    def give(self, name: str, *events: Event) -> None:
        """Let a node take one turn, if it has a process."""
        if name in self.down:
            return
        turn = take_turn(self.nodes[name], self.now_ms + self.ahead_ms[name], events)
        self.stores[name].commit()
        for effect in (*turn.early, *turn.late):
            self._carry_out(name, effect)

    def _carry_out(self, name: str, effect: Effect) -> None:
        match effect:
            case Send():
                if effect.peer != self.is_deaf and name != self.is_mute and not self.is_lost(effect.message):
                    self.flying.append((effect.peer, Received(name, effect.message)))
            case Answer():
                self.answers.append((effect.client, effect.message))
            case ReadDocument() if self.reads_failing:
                self.reads_failing -= 1
                self.flying.append((name, ReadFailed(effect.partition)))
            case ReadDocument():
                version, document = self.documents.get(effect.partition, (-1, NOBODY))
                was_there = version < 0 and effect.partition in self.revisions
                if (name, effect.partition) in self.doubted:
                    del self.doubted[name, effect.partition]
                    document = attrs.evolve(document, put_back=max(document.put_back,
                                                                   self.returned.get(effect.partition, 0)))
                self.flying.append((name, DocumentRead(effect.partition, version, document, was_there)))
            case ReadRevisions():
                told = None if self.is_in_doubt else tuple(self.revisions[effect.partition][: effect.most])
                self.flying.append((name, RevisionsRead(effect.partition, effect.most, told)))
            case SwapDocument():
                version, _ = self.documents.get(effect.partition, (-1, NOBODY))
                is_begun = effect.is_founding and effect.partition in self.revisions
                put_back = effect.document.put_back
                returned = self.returned.get(effect.partition, 0)
                is_of_it = put_back == returned + (effect.version < 0 and put_back > 0)
                is_won = version == effect.version and not is_begun and is_of_it
                outcome = Outcome.WON if is_won else Outcome.LOST
                if version == effect.version and not is_begun and not is_of_it:
                    self.doubted[name, effect.partition] = None
                if is_won:
                    self.returned[effect.partition] = put_back
                    self.write(effect.partition, effect.document, name)
                    version += 1
                outcome = Outcome.UNCERTAIN if self.is_in_doubt else outcome
                self.flying.append((name, DocumentSwapped(effect.partition, effect.document.write_id, outcome,
                                                          version)))

    def write(self, partition: int, document: Document, writer: str = "operator") -> None:
        """Put a document, as an operator or a node does; all watches tell."""
        version, _ = self.documents.get(partition, (-1, NOBODY))
        self.documents[partition] = (version + 1, document)
        self.revisions.setdefault(partition, []).insert(0, revision_of(document, version + 1, writer))
        self.flying.extend((name, DocumentChanged(partition)) for name in self.names)

    def deliver(self, count: int) -> None:
        """Let the next ``count`` messages arrive."""
        for _ in range(min(count, len(self.flying))):
            name, event = self.flying.popleft()
            if name in self.names:
                self.give(name, event)

    def pass_time(self, milliseconds: int) -> None:
        """Deliver everything, and every deadline up to then."""
        end_ms = self.now_ms + milliseconds
        while self.now_ms < end_ms:
            self.deliver(len(self.flying))
            if not self.flying:
                due_ms = min(node.deadline() - self.ahead_ms[name] for name, node in self.nodes.items()
                             if name not in self.down)
                self.now_ms = min(end_ms, max(self.now_ms + 1, due_ms))
                for name in self.names:
                    self.give(name, Ticked())

    def ask(self, name: str, message: m.Message, client: bytes = b"client") -> None:
        """A client asks a node."""
        self.give(name, Asked(client, message))

    def answers_to(self, client: bytes) -> list[m.Message]:
        """What a client was answered so far."""
        return [message for who, message in self.answers if who == client]

    def batch(self, queue: str, count: int) -> m.TaskBatch:
        """Fresh tasks of one partition."""
        task_ids = self.mint.mint(self.now_ms, count, self.random.getrandbits(32))
        return m.TaskBatch(Header(queue).encode(), b"".join(task_ids), columns.pack([b"x"] * count))
