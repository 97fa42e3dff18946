"""A cluster of one node in memory: the real node machine, with time that moves when told to.

It is the machine that runs in production, with one partition and one copy, on a store in memory. So it
does what a cluster does by construction: a rule of tasks has one owner, and a verb that the machine learns
works here at once.

Rejected: a second, simpler implementation of the tasks' rules, which would agree with the real one until it
does not; and the simulator's world, which a user's test need not load, nor a wheel hold.
"""

from __future__ import annotations

import random
from collections import deque

from skuld_py.almanac import next_tick
from skuld_py.cluster.log.entries import Entry
from skuld_py.cluster.log.play import play
from skuld_py.cluster.log.replica import Replica
from skuld_py.config import Parameters
from skuld_py.config.timing import Timing
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
    ReadRevisions,
    RevisionsRead,
    Session,
    SessionChanged,
    SwapDocument,
    Ticked,
)
from skuld_py.model.memory_store import MemoryStore
from skuld_py.model.messages import Message
from skuld_py.model.revision import revision_of
from skuld_py.node.node import Node
from skuld_py.node.turn import take_turn

ME = Member("127.0.0.1:13000", "127.0.0.1", 13_000, "boot", "data")
WRITER = "memory"
SKEW_MS = 2_000
"""The skew bound of clusters by default, so that a lapsed claim is granted again when a cluster would."""
START_MS = 600_000
"""How long before its time begins the node starts, to have become the leader by then."""
TICKS_MAX = 10_000
KEY = "5b" * 32
"""Claims are proved, as in a cluster; nobody need be kept from guessing."""
HOUR_MS = 3_600_000
TIMING = Timing(gossip_ms=HOUR_MS, clock_ms=HOUR_MS, exchange_ms=HOUR_MS, draft_ms=24 * HOUR_MS,
                heir_delay_ms=HOUR_MS // 60)
"""There are no peers to talk to or to stand in for: a day that a test lets pass is a few thousand steps."""


class SingleNode:
    """The node, its store, and a registry of one member. ``now_ms`` is milliseconds since 1970."""

    def __init__(self, now_ms: int, me: Member = ME) -> None:
        self.now_ms = now_ms - START_MS
        self._store = MemoryStore()
        self._random = random.Random(1)
        self._answers: list[tuple[bytes, Message]] = []
        self._events: deque[Event] = deque()
        self._document: tuple[int, Document] = (-1, NOBODY)
        parameters = Parameters("memory", "memory", partitions=1, replicas=1, skew_ms=SKEW_MS, claim_key=KEY)
        self._node = Node(me, parameters, self._store, lambda most: self._random.randint(0, most), nonce=1,
                          timing=TIMING, almanac=next_tick)
        self._log = self._node.playback
        self._log.settle(Replica.base(parameters), True)
        for event in (SessionChanged(Session.CONNECTED), NodesChanged((me.name,)), MembersChanged((me,))):
            self._give(event)
        self.pass_until(now_ms)
        assert self._node.view.led(), "a node alone leads at once"

    def ask(self, client: bytes, message: Message) -> None:
        """Hand it a client's request; what it answers, now or later, is in ``answers``."""
        self._give(Asked(client, message))

    def answers(self) -> list[tuple[bytes, Message]]:
        """What clients were answered since the last look, each with its client."""
        answers, self._answers = self._answers, []
        return answers

    def pass_until(self, end_ms: int, *, is_one_step: bool = False) -> bool:
        """Let time pass, with all that is due on the way; or only to the next thing that is due. Whether it
        moved."""
        began_ms = self.now_ms
        ticks = 0
        while self.now_ms < end_ms:
            due_ms = max(self.now_ms, self._node.deadline())
            ticks = ticks + 1 if due_ms == self.now_ms else 0
            assert ticks < TICKS_MAX, "the node asks for the same moment over and over"
            self.now_ms = min(end_ms, due_ms)
            self._give(Ticked())
            if is_one_step:
                return True
        return self.now_ms > began_ms

    def settle(self) -> None:
        """Let happen what is due at this moment: what a turn leaves is looked at in the next one."""
        ticks = 0
        while self._node.deadline() <= self.now_ms:
            assert (ticks := ticks + 1) < TICKS_MAX, "the node asks for the same moment over and over"
            self._give(Ticked())

    def _give(self, event: Event) -> None:
        self._events.append(event)
        while self._events:
            turn = take_turn(self._node, self.now_ms, [self._events.popleft()])
            self._store.commit()
            self._write_log()
            for effect in (*turn.early, *turn.late):
                self._carry_out(effect)

    def _write_log(self) -> None:
        """The coordination log has one writer here, and what is wished stands and is played at once."""
        commands = [*self._node.commands]
        self._node.commands.clear()
        for command in commands:
            position = self._log.next
            played = play(self._log.replica, position, Entry(WRITER, position, command).encode())
            self._log.note(self.now_ms, played)
            self._log.settle(played.replica, True)
        if commands:
            self._events.append(Ticked())

    def _carry_out(self, effect: Effect) -> None:
        version, document = self._document
        match effect:
            case Answer(client, message):
                self._answers.append((client, message))
            case ReadDocument(partition):
                self._events.append(DocumentRead(partition, version, document))
            case ReadRevisions(partition, most):
                self._events.append(RevisionsRead(partition, most, (revision_of(document, version, WRITER),)))
            case SwapDocument(partition, expected, wanted, _):
                outcome = Outcome.WON if version == expected else Outcome.LOST
                if outcome is Outcome.WON:
                    self._document = version + 1, wanted
                    self._events.append(DocumentChanged(partition))
                self._events.append(DocumentSwapped(partition, wanted.write_id, outcome, self._document[0]))
            case _:
                raise AssertionError(f"a node without peers wants {effect}")
