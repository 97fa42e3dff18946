"""What nodes may not do of seats is seen when they do it; and what seats may not be when all is healed."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import attrs
import pytest

from skuld_py.cluster.log.replica import Place, Replica, Slot
from skuld_py.cluster.log.workflows import StepRow, Workflow
from skuld_py.model import messages as m
from skuld_py.model.document import Member
from skuld_py.model.events import Asked, SeatsChanged
from skuld_py.model.seats import Seat, Seats
from skuld_py.simulation.campaign import run
from skuld_py.simulation.flows import wrongs_of
from skuld_py.simulation.options import draw_options
from skuld_py.simulation.seating import NO_TRY_FOR_STALE_SEATS, SEATS_ARE_SLOTS, SeatGuards, slots_of
from skuld_py.workflow.scheduling.fences import fence_of

OLD, NEW = fence_of(5, [("n1", "work", 2)]), fence_of(9, [("n1", "work", 1)])
FLOW = Workflow("a" * 16, "0" * 32, steps=(StepRow("in", "input", most=1), StepRow("work", "function"),
                                          StepRow("out", "output")))
SEATED = Seats(9, (((), (Seat("w", "in", 0, 1, NEW), Seat("w", "work", 1, 1, NEW), Seat("w", "out", 2, 1, NEW))),),
               {"w": NEW})
REPLICA = Replica(members={"n1~1": Member("n1", "h", 1, "b", "i")}, nodes={"n1": Place("n1~1")}, slots={
    "n1~claims-3": Slot("n1~1", ("claims-3", "workflows")), "n1~claims-2": Slot("n1~1", ("claims-2", "workflows")),
    "n1~gpu": Slot("n1~1", ("claims-1", "gpu", "workflows")), "n1~none": Slot("n1~1", ("claims-8",))},
    workflows={"w": FLOW})


class Stage:
    def __init__(self) -> None:
        self.broken: Counter[str] = Counter()
        monitor = SimpleNamespace(counts=Counter(), blame=lambda rule, why: self.broken.update([rule]))
        reference = SimpleNamespace(at=lambda position: REPLICA)
        self.guards = SeatGuards(reference, monitor, lambda name, is_met: None)  # type: ignore[arg-type]

    def know(self, seats: Seats) -> Stage:
        self.guards.on_told("n1", SeatsChanged(seats))
        return self

    def ask(self, holder: str = "s", fence: int = OLD) -> Stage:
        claim = m.Claim(1, "wf.w.work", 1, 1_000, 0, holder, fence=fence)
        self.guards.on_turn("n1", [Asked(b"c", claim)])
        return self

    def delegate(self, holder: str = "s", queue: str = "wf.w.work") -> Stage:
        self.guards.on_send("n1", m.Delegate(1, queue, 1, 1_000, holder))
        return self

    def grant(self, first_token: int = 1 << 32) -> Stage:
        self.guards.on_send("n1", m.Grant(1, 0, 1, first_token, 0, 1_000, "s", "wf.w.work", bytes(20), bytes(4)))
        return self


def test_a_try_for_seats_that_are_known_to_be_others_is_seen_here_and_at_another_node() -> None:
    assert not Stage().know(SEATED).ask(fence=NEW).delegate().grant().broken
    assert Stage().know(SEATED).ask().delegate().broken == {NO_TRY_FOR_STALE_SEATS: 1}
    assert Stage().know(SEATED).ask().grant().broken == {NO_TRY_FOR_STALE_SEATS: 1}
    ended = attrs.evolve(SEATED, here=(), fences={})
    assert NO_TRY_FOR_STALE_SEATS in Stage().know(ended).ask().delegate().broken


def test_what_was_asked_before_is_asked_again_and_claims_of_others_are_others_affair() -> None:
    assert not Stage().ask().delegate().grant().know(SEATED).grant().broken
    assert Stage().ask().grant().know(SEATED).grant(2 << 32).broken == {NO_TRY_FOR_STALE_SEATS: 1}
    assert not Stage().know(SEATED).ask().delegate("other").delegate(queue="q").broken
    assert not Stage().know(attrs.evolve(SEATED, fences={"w": OLD})).ask(fence=NEW).delegate().broken, "it lags"


@pytest.mark.parametrize("seats", [
    attrs.evolve(SEATED, here=(((), (Seat("w", "work", 1, 4, NEW),)),)),
    attrs.evolve(SEATED, here=((("gpu",), (Seat("w", "work", 1, 2, NEW),)),)),
    attrs.evolve(SEATED, fences={}), attrs.evolve(SEATED, fences={"w": NEW, "v": NEW}),
    attrs.evolve(SEATED, starved={"v": "why"})])
def test_more_seats_than_slots_and_seats_of_what_does_not_live_are_seen(seats: Seats) -> None:
    assert not Stage().know(SEATED).broken
    assert Stage().know(seats).broken == {SEATS_ARE_SLOTS: 1}


def test_slots_are_counted_by_what_they_can_do_and_the_most_while_a_number_changes() -> None:
    assert slots_of(REPLICA, "n1") == {(): 3, ("gpu",): 1} and slots_of(REPLICA, "n2") == {}


STARVED = attrs.evolve(SEATED, here=(), starved={"w": "needs 9 slots"})


@pytest.mark.parametrize(("seats", "words"), [
    (SEATED, ""), (STARVED, "starves beside 4 idle"), (attrs.evolve(STARVED, starved={}), "nobody says why"),
    (attrs.evolve(SEATED, starved={"w": "why"}), "said to have no seats"),
    (attrs.evolve(STARVED, starved={"w": ""}), "said to have no seats"),
    (attrs.evolve(SEATED, here=(((), SEATED.here[0][1][:2]),)), "nobody says why"),
    (attrs.evolve(SEATED, here=(((), (*SEATED.here[0][1], Seat("w", "more", 1, 1, NEW))),)), "4 seats for 3")])
def test_who_has_no_seats_must_lack_slots_and_have_a_reason(seats: Seats, words: str) -> None:
    wrongs = [*wrongs_of(REPLICA, {"w": FLOW}, {"n1": seats})]

    assert [words in wrong for wrong in wrongs] == [True] * bool(words), wrongs


@pytest.mark.slow
def test_workflows_run_where_they_are_drawn() -> None:
    seed = 2
    assert draw_options(seed).workload.flows is not None
    verdict = run(seed, seconds=6)

    assert verdict.passed, verdict.violated
    met = [name for name in ("claim by a seat", "seats change", "applied submit-workflow") if
           verdict.stats[f"probe {name}"]]
    assert len(met) == 3, met
