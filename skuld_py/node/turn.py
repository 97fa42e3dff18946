"""One turn of the loop: which effects may leave before the commit, and which only after it.

The real loop and the simulator share this function, so that the rule "an acknowledgement leaves
only after its fsync" exists once and is broken in one place when a test breaks it on purpose.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, Protocol, TypeVar

import attrs

from skuld_py.model.events import Send, Settled

Event_contra = TypeVar("Event_contra", contravariant=True)
Effect_co = TypeVar("Effect_co", covariant=True)
Event = TypeVar("Event")
Effect = TypeVar("Effect")


class Machine(Protocol[Event_contra, Effect_co]):
    """A deterministic part: the same history gives the same effects."""

    def step(self, now_ms: int, event: Event_contra) -> Sequence[Effect_co]:
        """Take one event; the only way state changes."""
        ...

    def deadline(self) -> int | None:
        """When it next wants a ``Ticked``, in the same clock as ``now_ms``."""
        ...


@attrs.define
class Turn(Generic[Effect]):
    """Effects of a batch. The shell sends ``early``, commits the store, then carries out ``late``."""

    early: list[Send]
    late: list[Effect]


def take_turn(machine: Machine[Event | Settled, Effect], now_ms: int, events: Iterable[Event]) -> Turn[Effect]:
    """Step a batch of events and round up."""
    turn: Turn[Effect] = Turn([], [])
    for event in events:
        sort(machine.step(now_ms, event), turn)
    sort(machine.step(now_ms, Settled()), turn)
    return turn


def sort(effects: Iterable[Effect], turn: Turn[Effect]) -> None:
    """Put effects where they belong."""
    for effect in effects:
        if isinstance(effect, Send) and not effect.message.is_promise:
            turn.early.append(effect)
        else:
            turn.late.append(effect)
