"""A node whose placement is decided elsewhere: an option for clusters where it takes seconds to work out.

It stands before the node as the same kind of machine. News of the nodes are held until their placement is
decided (``cluster.deciding``), and reach the node with it; everything else reaches the node at once. So while a
decision is pending the node goes on with the placement that it has, as any node does that hears of the news a
little later. News that are overtaken by newer ones are never told.

With ``scheduling`` the process is a scheduler, too: it works things out itself and answers others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from skuld_py.cluster.deciding import Deciding, DecidingEffect, DecidingEvent
from skuld_py.cluster.decisions import Decision, Question, Unwanted, Wanted, ask_placement, placement_of
from skuld_py.cluster.scheduling import Scheduling
from skuld_py.config import Parameters
from skuld_py.model.decision_messages import DECISION_MESSAGES, DECLINED, Decide, Undecided
from skuld_py.model.events import (
    Computed,
    Effect,
    Event,
    NodesChanged,
    Received,
    SchedulersChanged,
    Send,
    Ticked,
)
from skuld_py.node.turn import Machine


class Placing:
    """``position`` tells how far the log was read, so that schedulers know which question is the newest."""

    def __init__(self, node: Machine[Event, Effect], parameters: Parameters, deciding: Deciding,
                 position: Callable[[], int], scheduling: Scheduling | None = None) -> None:
        self._node = node
        self._parameters = parameters
        self._deciding = deciding
        self._position = position
        self._scheduling = scheduling
        self._news: NodesChanged | None = None
        """Held until they are decided."""
        self._asked: Question | None = None

    def step(self, now_ms: int, event: Event) -> list[Effect]:
        """Take one event."""
        match event:
            case NodesChanged():
                return self._on_nodes(now_ms, event)
            case Received(peer, Decide() as message):
                if self._scheduling is None:
                    return [Send(peer, Undecided(message.question, DECLINED))]
                return [*self._scheduling.step(now_ms, Received(peer, message))]
            case Received() if isinstance(event.message, DECISION_MESSAGES):
                return self._decide(now_ms, event)
            case SchedulersChanged():
                return self._decide(now_ms, event)
            case Computed():
                return [*self._schedule(now_ms, event), *self._decide(now_ms, event)]
            case Ticked():
                return [*self._schedule(now_ms, event), *self._decide(now_ms, event),
                        *self._node.step(now_ms, event)]
        return [*self._node.step(now_ms, event)]

    def deadline(self) -> int | None:
        """When it next wants a ``Ticked``."""
        dues = [self._node.deadline(), self._deciding.deadline(),
                self._scheduling.deadline() if self._scheduling is not None else None]
        return min((due_ms for due_ms in dues if due_ms is not None), default=None)

    def _on_nodes(self, now_ms: int, news: NodesChanged) -> list[Effect]:
        before = self._asked
        asked = ask_placement(news.nodes, self._parameters.partitions, self._parameters.replicas)
        self._news, self._asked = news, asked
        effects = self._decide(now_ms, Wanted(self._position(), asked))
        if before is not None and before != asked:
            effects += self._decide(now_ms, Unwanted(before.hash))
        return effects

    def _schedule(self, now_ms: int, event: Computed | Ticked) -> Sequence[Effect]:
        return self._scheduling.step(now_ms, event) if self._scheduling is not None else []

    def _decide(self, now_ms: int, event: DecidingEvent) -> list[Effect]:
        effects: list[Effect] = []
        for effect in self._deciding.step(now_ms, event):
            effects += self._carry(now_ms, effect)
        return effects

    def _carry(self, now_ms: int, effect: DecidingEffect) -> Sequence[Effect]:
        if not isinstance(effect, Decision):
            return [effect]
        news = self._news
        assert news is not None, "a decision that nobody wants is not made"
        self._news = self._asked = None
        if effect.result is None:  # it fails here as it did there
            return self._node.step(now_ms, news)
        return self._node.step(now_ms, attrs.evolve(news, placement=placement_of(effect.question, effect.result)))


def placed_by(schedulers: Sequence[str], node: Machine[Event, Effect], name: str, parameters: Parameters,
              position: Callable[[], int]) -> Machine[Event, Effect]:
    """The node ``name``, placed by these nodes, of which it may be one; the node itself when there are none."""
    if not schedulers:
        return node
    scheduling = Scheduling() if name in schedulers else None
    placing = Placing(node, parameters, Deciding(name), position, scheduling)
    placing.step(0, SchedulersChanged(tuple(schedulers)))
    return placing
