"""Listens to what a process's membership announces and what its node hears: the same, at once.

A node that learns a turn late, or behind other events, that it is no member any more acts as one meanwhile; the
epochs of its partitions mostly hide that from all clients. So each step of the process is checked: **what the
membership announces is the next thing that the node is told, in the same step and in the same order.**
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from skuld_py.cluster.log.commands import Command
from skuld_py.cluster.member.membership import Membership
from skuld_py.model.coordination import Announce
from skuld_py.model.events import (
    Effect,
    Event,
    MembersChanged,
    NodesChanged,
    RulesChanged,
    SeatsChanged,
    SessionChanged,
    Ticked,
)
from skuld_py.node.process import NodeMachine, Process, Told, Wish

NEWS_AT_ONCE = "L3 what the membership announces is told to its node in the same step, before anything else"
_HEARD = frozenset((MembersChanged, NodesChanged, RulesChanged, SeatsChanged, SessionChanged, Ticked))


class Ear:
    """A node, and what it was told of the cluster since that was last asked for, ticks included."""

    def __init__(self, node: NodeMachine) -> None:
        self.told: list[Event] = []
        self._node = node
        self._step = node.step
        self.deadline = node.deadline
        self.hand_over = node.hand_over
        self.is_handing_over = node.is_handing_over
        self.needs_vote_of = node.needs_vote_of
        self.playback = node.playback

    @property
    def slots(self) -> Mapping[tuple[str, ...], int]:
        """Those of the node."""
        return self._node.slots

    @property
    def commands(self) -> dict[Command, None]:
        """Those of the node."""
        return self._node.commands

    def step(self, now_ms: int, event: Event) -> Sequence[Effect]:
        """Let the node take an event."""
        if type(event) in _HEARD:
            self.told.append(event)
        return self._step(now_ms, event)


class Hearing:
    """The real process, listened to. ``blame`` takes a sentence about what must not be."""

    def __init__(self, node: NodeMachine, membership: Membership, blame: Callable[[str], None]) -> None:
        self._ear = Ear(node)
        self._process = Process(self._ear, membership)
        self._step = self._process.step
        self._blame = blame
        self.deadline = self._process.deadline

    def step(self, now_ms: int, event: Told) -> Sequence[Wish]:
        """Let the process take an event."""
        wishes = self._step(now_ms, event)
        if self._ear.told or Announce in map(type, wishes):
            self._compare(event, wishes)
        return wishes

    def _compare(self, event: Told, wishes: Sequence[Wish]) -> None:
        told, self._ear.told = self._ear.told, []
        announced: list[Event] = [wish.event for wish in wishes if type(wish) is Announce]
        expected = [*announced, event] if isinstance(event, Ticked) else announced
        if told != expected:
            self._blame(f"at {type(event).__name__}: announced {announced}, told {told}")

    @property
    def is_out(self) -> bool:
        """Whether nothing of the process stands in the log any more."""
        return self._process.is_out

    def depart(self, now_ms: int) -> Sequence[Wish]:
        """Let the process leave the log for good."""
        wishes = self._process.depart(now_ms)
        self._ear.told = []
        return wishes
