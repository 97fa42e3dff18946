"""Which places take which seats without a history: counts as the vectors say, little that moves, and fences."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skuld_py.workflow.scheduling import places as places_module
from skuld_py.workflow.scheduling.allocation import allocate
from skuld_py.workflow.scheduling.demand import Demand, Sharing, Spreading, Step
from skuld_py.workflow.scheduling.fences import NO_FENCE, fence_of, is_stale, renewed
from skuld_py.workflow.scheduling.places import Place, counted, seated
from skuld_py.workflow.scheduling.settling import Counted, settled
from workflow.sharing_scenario import read

SCENARIOS = [each for each in read(Path(__file__).with_name("scenarios") / "sharing.txt") if not each.before]
NAMES = st.lists(st.text("abc", min_size=1, max_size=3), unique=True, max_size=6)


@st.composite
def settlements(draw: st.DrawFn) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    places = [(name, draw(st.integers(1, 5))) for name in draw(NAMES)]
    left, seats = sum(count for _, count in places), []
    for name in draw(NAMES):
        count = draw(st.integers(0, left))
        seats.append((name, count))
        left -= count
    return seats, places


@given(settlements(), st.randoms(use_true_random=False))
def test_each_seat_has_a_place_and_no_order_matters(
        world: tuple[list[tuple[str, int]], list[tuple[str, int]]], random: Random) -> None:
    seats, places = world
    made = settled(seats, places)

    assert all(sum(taken.values()) <= room for taken, (_, room) in zip(made, places, strict=True))
    total = Counter[int]()
    for taken in made:
        total.update(taken)
    assert [total[index] for index in range(len(seats))] == [count for _, count in seats]
    other_seats, other_places = random.sample(seats, len(seats)), random.sample(places, len(places))
    assert named(other_seats, other_places, settled(other_seats, other_places)) == named(seats, places, made)


def named(seats: Counted, places: Counted, made: list[dict[int, int]]) -> dict[tuple[str, str], int]:
    return {(place, seats[index][0]): count for (place, _), taken in zip(places, made, strict=True)
            for index, count in taken.items() if count}


# -- what moves ----------------------------------------------------------------------------------


def world(nodes: int, units: int, workflows: int, without: str = "", more: str = "") -> dict[tuple[str, str], int]:
    """All slots taken, by three steps of each workflow, as evenly as can be."""
    places = [(f"10.0.0.{number}:7070", units) for number in range(nodes)]
    places = [place for place in places if place[0] != without] + ([(more, units)] if ":" in more else [])
    names = [f"w{number} {step}" for number in range(workflows) for step in "abc" if f"w{number}" != without]
    names += [f"{more} {step}" for step in "abc"] if more and ":" not in more else []
    each, extra = divmod(units * len(places), len(names))
    seats = [(name, each + (index < extra)) for index, name in enumerate(names)]
    return named(seats, places, settled(seats, places))


def moves(before: dict[tuple[str, str], int], after: dict[tuple[str, str], int]) -> tuple[int, int]:
    """How many slots that stay take another seat, and the bound of Onyx's tests."""
    stays = {place for place, _ in after}
    old, rest, new, same = (Counter[str]() for _ in range(4))
    for (place, seat), count in before.items():
        old[seat] += count
        if place in stays:
            rest[seat] += count
            same[seat] += min(count, after.get((place, seat), 0))
    for (_, seat), count in after.items():
        new[seat] += count
    bound = sum(old[seat] - rest[seat] + abs(rest[seat] - new[seat]) for seat in {*old, *new})
    return sum((rest - same).values()), bound


@pytest.mark.parametrize(("nodes", "units", "workflows", "most"), [
    (3, 4, 3, 1.0), (6, 2, 2, 1.0), (30, 4, 10, 1.6), (250, 4, 100, 2.6)])
def test_little_moves_when_a_node_or_a_workflow_comes_or_goes(
        nodes: int, units: int, workflows: int, most: float) -> None:
    before = world(nodes, units, workflows)
    changes = [*(f"10.0.0.{number}:7070" for number in range(min(nodes, 6))),
               *(f"w{number}" for number in range(min(workflows, 6)))]
    found = [moves(before, world(nodes, units, workflows, without=each)) for each in changes]
    found += [moves(before, world(nodes, units, workflows, more=each))
              for number in range(6) for each in (f"10.0.1.{number}:7070", f"v{number}")]

    assert sum(moved for moved, _ in found) <= most * sum(bound for _, bound in found)


def test_the_same_is_the_same_and_needs_no_move() -> None:
    assert moves(world(30, 4, 10), world(30, 4, 10)) == (0, 0)


# -- the whole -----------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_vectors_of_sharing_hold_for_places(scenario: attrs.AttrsInstance) -> None:
    """By any packing of the slots into nodes of one or of several."""
    kinds = Counter((slot.tags, slot.site) for slot in scenario.slots)  # type: ignore[attr-defined]
    for size in (1, 3):
        rows = [Place(f"n{number}-{at}", min(size, count - at), tags, site)
                for number, ((tags, site), count) in enumerate(kinds.items()) for at in range(0, count, size)]
        demands = scenario.demands  # type: ignore[attr-defined]
        taken, starved = seated(scenario.sharing, rows, demands)  # type: ignore[attr-defined]
        made = allocate(scenario.sharing, scenario.slots, demands, {})  # type: ignore[attr-defined]
        assert counts(demands, taken) == {
            (workflow, step): len(names) for workflow, steps in made.seats.items()
            for step, names in steps.items()}
        assert starved == made.starved
        for place, seats in zip(rows, taken, strict=True):
            assert sum(seats.values()) <= place.units
            assert all(demands[workflow].steps[step].tags <= place.tags for workflow, step in seats)


def counts(demands: list[Demand], taken: list[dict[tuple[int, int], int]]) -> dict[tuple[str, str], int]:
    found = Counter[tuple[str, str]]()
    for seats in taken:
        found.update({(demands[workflow].name, demands[workflow].steps[step].name): count
                      for (workflow, step), count in seats.items()})
    return dict(found)


def test_groups_sit_at_one_site_each() -> None:
    rows = [Place(f"n{number}", 2, site=site) for number, site in enumerate("aabbc")]
    asked = [Demand("j", tuple(map(Step, "xyz")), Spreading.COLOCATED)]
    taken, _ = seated(Sharing.BALANCED, rows, asked)

    by_site = Counter[tuple[str, int]]()
    for place, seats in zip(rows, taken, strict=True):
        by_site.update({(place.site, step): count for (_, step), count in seats.items()})
    assert {*by_site.values()} == {1} and {*by_site} == {(site, step) for site in "ab" for step in range(3)}


def test_too_many_slots_are_counted_down_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places_module, "UNITS_MAX", 10)

    assert counted([2, 3]) == [2, 3]
    assert counted([2, 1_000_000, 6]) == [2, 4, 4]
    assert sum(counted([1_000_000] * 3)) == 9


# -- fences --------------------------------------------------------------------------------------


def test_a_fence_is_stale_only_to_who_is_ahead_and_has_other_seats() -> None:
    old, new = [("n1", "a", 2)], [("n1", "a", 1), ("n2", "a", 1)]

    assert is_stale(fence_of(5, old), fence_of(9, new))
    assert not is_stale(fence_of(9, new), fence_of(5, old)), "who is behind refuses nothing"
    assert not is_stale(fence_of(5, old), fence_of(9, old)), "a member that jumped knows the same seats later"
    assert not is_stale(fence_of(9, old), fence_of(9, new)), "of one position there is one decision"
    assert fence_of(5, new) == fence_of(5, reversed(new)) > NO_FENCE
    assert fence_of(-1, ()) > NO_FENCE


def test_seats_that_stay_keep_their_fence() -> None:
    known = {"j": fence_of(5, [("n1", "a", 2)]), "k": fence_of(5, [])}
    made = {"j": fence_of(9, [("n1", "a", 2)]), "k": fence_of(9, [("n2", "a", 1)]), "l": fence_of(9, [])}

    assert renewed(known, made) == {"j": known["j"], "k": made["k"], "l": made["l"]}
