"""The seats as one member knows them: asked for when slots, workflows or their sharing change, and told when
decided.

No command reads seats, and each decision stands by itself, so they need no versions: they are those of the newest
replica for which a decision came. While one is being made the former ones hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.log.workflows import KINDS, Workflow, live
from skuld_py.cluster.scale.decisions import SEATS, Question, Wanted
from skuld_py.cluster.scale.seats import SeatsInput, SeatsResult, input_of
from skuld_py.model.seats import Seat, Seats
from skuld_py.workflow.scheduling.fences import fence_of, renewed


class Seating:
    """``me`` is the node's name."""

    def __init__(self, me: str) -> None:
        self._me = me
        self._looked_at: tuple[Any, ...] = ()
        self._wanted: Wanted | None = None
        """The question of the newest replica, as of when it came up."""
        self._workflows: Mapping[str, Workflow] = {}
        self._answered = b""
        self.seats = Seats()
        """As of the last decision."""

    def look(self, replica: Replica) -> Wanted | None:
        """What is wanted as of a replica; None when its seats are known."""
        here = replica.slots, replica.workflows, replica.sharing
        if len(self._looked_at) != len(here) or any(
                one is not other for one, other in zip(here, self._looked_at, strict=True)):
            self._looked_at = here
            self._ask(replica)
        return self._wanted

    def _ask(self, replica: Replica) -> None:
        self._workflows = live(replica.workflows)
        if not self._workflows:
            self._wanted, self._answered = None, b""
            if self.seats.fences:
                self.seats = Seats(replica.version)
            return
        question = Question(SEATS.name, input_of(replica))
        if self._wanted is None or self._wanted.question.hash != question.hash:
            self._wanted = None if question.hash == self._answered else Wanted(replica.version, question)

    def decide(self, question: Question, result: SeatsResult | None) -> None:
        """The seats that a question was about, if it still is the newest; None: the function fails on it, and
        nobody has any."""
        if self._wanted is None or self._wanted.question.hash != question.hash:
            return
        position, self._wanted, self._answered = self._wanted.position, None, question.hash
        nothing = SeatsResult(((),) * len(question.input.places))
        self.seats = self._read(position, question.input, nothing if result is None else result)

    def _read(self, position: int, asked: SeatsInput, result: SeatsResult) -> Seats:
        rows: dict[str, list[tuple[str, str, int]]] = {row.name: [] for row in asked.demands}
        for at, place in enumerate(asked.places):
            name = f"{place.node} {','.join(asked.tags[place.tags])}"
            for workflow, step, count in result.of(at):
                row = asked.demands[workflow]
                rows[row.name].append((name, row.steps[step], count))
        fences = renewed(self.seats.fences, {name: fence_of(position, each) for name, each in rows.items()})
        here = tuple((asked.tags[place.tags], tuple(
            self._seat(asked.demands[workflow].name, asked.demands[workflow].steps[step], count, fences)
            for workflow, step, count in result.of(at)))
            for at, place in enumerate(asked.places) if place.node == self._me)
        starved = {asked.demands[each.workflow].name: each.reason for each in result.starved}
        return Seats(position, here, fences, starved)

    def _seat(self, workflow: str, step: str, count: int, fences: Mapping[str, int]) -> Seat:
        kind = next(KINDS.index(each.kind) for each in self._workflows[workflow].steps if each.name == step)
        return Seat(workflow, step, kind, count, fences[workflow])


def is_news(known: Seats, made: Seats) -> bool:
    """Whether a node has to hear of it: the position alone is no news."""
    return attrs.evolve(known, position=made.position) != made
