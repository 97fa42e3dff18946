"""Listens to what a process's membership announces and what its node hears: the same, at once.

A node that learns a turn late, or behind other events, that it is no member any more acts as one meanwhile; the
epochs of its partitions mostly hide that from all clients. So it is held here, at each step of the process: **what
the membership announces is the next that the node is told, in the same step and in the same order.**
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import get_args

from skuld_py.cluster.member.membership import Membership
from skuld_py.model.coordination import Announce, CoordinationEvent
from skuld_py.model.events import (
    Computed,
    Effect,
    Event,
    MembersChanged,
    NodesChanged,
    Received,
    SessionChanged,
)
from skuld_py.model.messages.membership import COORDINATION_MESSAGES
from skuld_py.node.process import Process, Told, Wish
from skuld_py.node.turn import Machine

NEWS_AT_ONCE = "L3 what the membership announces is told to its node in the same step, before anything else"
_NEWS = (MembersChanged, NodesChanged, SessionChanged)
_FOR_THE_MEMBERSHIP = frozenset((SessionChanged, Computed, *get_args(CoordinationEvent)))
_OF_THE_LOG = frozenset(COORDINATION_MESSAGES)


class Ear:
    """A node, and what it was told of the cluster in this step."""

    def __init__(self, node: Machine[Event, Effect]) -> None:
        self.told: list[Event] = []
        self.is_late = False
        """Whether it was told something else before that."""
        self._is_stepped = False
        self._node = node
        self.deadline = node.deadline

    def begin(self) -> None:
        """Another step of the process."""
        self.told, self.is_late, self._is_stepped = [], False, False

    def step(self, now_ms: int, event: Event) -> Sequence[Effect]:
        """Let the node take an event."""
        if isinstance(event, _NEWS):
            self.told.append(event)
            self.is_late |= self._is_stepped
        else:
            self._is_stepped = True
        return self._node.step(now_ms, event)


class Hearing:
    """The real process, listened to. ``blame`` takes a sentence about what must not be."""

    def __init__(self, node: Machine[Event, Effect], membership: Membership, blame: Callable[[str], None]) -> None:
        self._ear = Ear(node)
        self._process = Process(self._ear, membership)
        self._blame = blame
        self.deadline = self._process.deadline

    def step(self, now_ms: int, event: Told) -> Sequence[Wish]:
        """Let the process take an event."""
        ear, kind = self._ear, type(event)
        ear.begin()
        wishes = self._process.step(now_ms, event)
        if ear.told or kind in _FOR_THE_MEMBERSHIP or (kind is Received and type(event.message) in _OF_THE_LOG):  # type: ignore[union-attr]
            announced = [wish.event for wish in wishes if type(wish) is Announce]
            if announced != ear.told or ear.is_late:
                self._blame(f"{kind.__name__}: announced {announced}, told {ear.told}"
                            f"{' behind other events' * ear.is_late}")
        return wishes

    def depart(self, now_ms: int) -> Sequence[Wish]:
        """Let the process leave the log for good."""
        self._ear.begin()
        return self._process.depart(now_ms)
