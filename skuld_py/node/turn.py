"""One turn of the loop: which effects may leave before the commit, and which only after it.

The real loop and the simulator share this function, so that the rule "an acknowledgement leaves
only after its fsync" exists once and is broken in one place when a test breaks it on purpose.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import attrs

from skuld_py.model.events import Effect, Event, Send, Settled


class Machine(Protocol):
    """A deterministic part: the same history gives the same effects."""

    def step(self, now_ms: int, event: Event) -> list[Effect]:
        """Take one event; the only way state changes."""
        ...

    def deadline(self) -> int | None:
        """When it next wants a ``Ticked``, in the same clock as ``now_ms``."""
        ...


@attrs.frozen
class Turn:
    """Effects of a batch. The shell sends ``early``, commits the store, then carries out ``late``."""

    early: list[Send]
    late: list[Effect]


def take_turn(machine: Machine, now_ms: int, events: Iterable[Event]) -> Turn:
    """Step a batch of events and round up."""
    turn = Turn([], [])
    for event in events:
        _sort(machine.step(now_ms, event), turn)
    _sort(machine.step(now_ms, Settled()), turn)
    return turn


def _sort(effects: list[Effect], turn: Turn) -> None:
    for effect in effects:
        if type(effect) is Send and not effect.message.is_promise:
            turn.early.append(effect)
        else:
            turn.late.append(effect)
