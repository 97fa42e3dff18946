"""What the membership announces reaches the node at once, or the simulation says so."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from skuld_py.cluster.member.membership import Effect, Membership
from skuld_py.model.coordination import Announce
from skuld_py.model.events import Event, Ticked
from skuld_py.node.process import Process, Told, Wish
from skuld_py.node.turn import Machine
from skuld_py.simulation import hearing
from skuld_py.simulation.campaign import run
from skuld_py.simulation.hearing import NEWS_AT_ONCE


class Behind(Process):
    """Hands the news on with the node's next event."""

    def __init__(self, node: Machine[Event, Wish], membership: Membership) -> None:  # type: ignore[override]
        super().__init__(node, membership)  # type: ignore[arg-type]
        self.kept: list[Event] = []

    def _carry(self, now_ms: int, effects: list[Effect]) -> list[Wish]:
        self.kept += [effect.event for effect in effects if isinstance(effect, Announce)]
        return [*effects]

    def step(self, now_ms: int, event: Told) -> Sequence[Wish]:
        kept, self.kept = self.kept, []
        return [*super().step(now_ms, event), *(wish for each in kept for wish in self._node.step(now_ms, each))]


class Woken(Process):
    """Wakes the node before each event."""

    def step(self, now_ms: int, event: Told) -> Sequence[Wish]:
        first = self._node.step(now_ms, Ticked()) if type(event) is not Ticked else ()
        return [*first, *super().step(now_ms, event)]


@pytest.mark.parametrize("broken", [Behind, Woken])
def test_news_that_come_late_are_found_out(broken: type[Process], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hearing, "Process", broken)

    assert NEWS_AT_ONCE in run(1, seconds=1).violated
