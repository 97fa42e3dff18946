"""A process: its node and its membership in the coordination log, as one machine.

The membership is told what comes from the log, the session, and the other members' messages about the log and
about decisions that follow from it; the node gets everything else. What the membership announces is stepped into
the node in the same turn, so that no event comes between, and goes out as an effect too: the shell has to know
which peers to speak with.

A membership that cannot go on (rules that this program does not know, an origin that cannot be read) ends the
process: its node would act on an old view of the cluster for ever.

A process that stops cleanly first has its node hand over the partitions that it leads, for a few seconds at most;
then it leaves the log. Rejected: leaving at once, after which each partition waits for an heir to notice, and what
was being granted is in doubt.

What the node's workers can hold is brought into the log when the node says so, which is seldom (``node.workers``);
and so is what its clients want to be written there (``node.workflows``). What the membership plays of the log it
writes down where the node reads it: the two share one playback, since each entry may concern some client.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, cast, get_args

from skuld_py.cluster.log.commands import Command
from skuld_py.cluster.member import membership as log
from skuld_py.cluster.member.membership import Membership
from skuld_py.cluster.member.playback import Playback
from skuld_py.cluster.scale.slots import brought
from skuld_py.model.coordination import Announce, CoordinationEffect, CoordinationEvent
from skuld_py.model.events import Computed, Effect, Event, Received, SessionChanged, Settled, Ticked
from skuld_py.model.messages.decisions import DECISION_MESSAGES
from skuld_py.model.messages.membership import COORDINATION_MESSAGES
from skuld_py.node.turn import Machine

Told = Event | CoordinationEvent
Wish = Effect | CoordinationEffect
_OF_THE_LOG = frozenset((*COORDINATION_MESSAGES, *DECISION_MESSAGES))
_FOR_THE_MEMBERSHIP = frozenset((SessionChanged, Computed, *get_args(CoordinationEvent)))


class NodeMachine(Machine[Event, Effect], Protocol):
    """A node, as far as a process needs it."""

    def hand_over(self, now_ms: int) -> None:
        """Have others lead what it leads."""
        ...

    def is_handing_over(self, now_ms: int) -> bool:
        """Whether it is worth while to go on for that."""
        ...

    @property
    def slots(self) -> Mapping[tuple[str, ...], int]:
        """How many claims its workers can hold, by what tells them apart, as far as the log is to say."""
        ...

    @property
    def playback(self) -> Playback | None:
        """Where the membership is to write down what it plays; None where nobody reads that."""
        ...

    @property
    def commands(self) -> dict[Command, None]:
        """What is to be written into the log; the process takes it out."""
        ...

    def needs_vote_of(self, name: str) -> bool:
        """Whether the live voters of some partition are no majority without this node."""
        ...


class Process:
    """``node`` and ``membership`` share one clock and one session."""

    def __init__(self, node: NodeMachine, membership: Membership) -> None:
        self._node = node
        self._membership = membership
        membership.needs_vote_of = node.needs_vote_of
        membership.playback = node.playback
        self._is_handing_over = False
        self._slots: Mapping[tuple[str, ...], int] = {}
        self._due_ms = membership.deadline()
        """The membership's deadline: it changes with its steps only, which are rare."""

    def step(self, now_ms: int, event: Told) -> Sequence[Wish]:
        """Take an event. Raises why the membership cannot go on."""
        wishes = self._take(now_ms, event)
        return [*wishes, *self._round_up(now_ms)] if type(event) is Settled else wishes

    def _round_up(self, now_ms: int) -> Sequence[Wish]:
        """The turn ends: see what it has made of the node that concerns the membership."""
        if self._is_handing_over and not self._node.is_handing_over(now_ms):
            return self._leave(now_ms)
        wishes: list[Wish] = []
        if commands := self._node.commands:
            wished = [*commands]
            commands.clear()
            wishes += self._carry(now_ms, self._membership.write(now_ms, wished))
        if self._slots != self._node.slots:
            self._slots = self._node.slots
            slots = brought(self._membership.info.name, self._slots)
            wishes += self._carry(now_ms, self._membership.set_slots(now_ms, slots))
        return wishes

    def _take(self, now_ms: int, event: Told) -> Sequence[Wish]:
        kind = type(event)
        if kind is Ticked:
            is_due = self._due_ms is not None and self._due_ms <= now_ms
            first = self._membership_step(now_ms, Ticked()) if is_due else ()
            return [*first, *self._node.step(now_ms, Ticked())]
        if kind in _FOR_THE_MEMBERSHIP or (isinstance(event, Received) and type(event.message) in _OF_THE_LOG):
            return self._membership_step(now_ms, cast(log.Event, event))
        return self._node.step(now_ms, cast(Event, event))

    def deadline(self) -> int | None:
        """When the process next wants a ``Ticked``."""
        due_ms = self._node.deadline()
        if due_ms is None or self._due_ms is None:
            return self._due_ms if due_ms is None else due_ms
        return min(due_ms, self._due_ms)

    def depart(self, now_ms: int) -> list[Wish]:
        """Hand over what the node leads, then leave the log for good; ``is_out`` when it is done."""
        self._node.hand_over(now_ms)
        self._is_handing_over = self._node.is_handing_over(now_ms)
        return [] if self._is_handing_over else self._leave(now_ms)

    def _leave(self, now_ms: int) -> list[Wish]:
        self._is_handing_over = False
        return self._carry(now_ms, self._membership.depart(now_ms))

    @property
    def is_out(self) -> bool:
        """Whether nothing of this process stands in the log any more."""
        return self._membership.is_out

    def _membership_step(self, now_ms: int, event: log.Event) -> list[Wish]:
        return self._carry(now_ms, self._membership.step(now_ms, event))

    def _carry(self, now_ms: int, effects: list[log.Effect]) -> list[Wish]:
        self._due_ms = self._membership.deadline()
        if self._membership.stopped_by is not None:
            raise self._membership.stopped_by
        wishes: list[Wish] = []
        for effect in effects:
            wishes.append(effect)
            if isinstance(effect, Announce):
                wishes += self._node.step(now_ms, effect.event)
        return wishes
