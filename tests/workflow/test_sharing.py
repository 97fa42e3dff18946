"""Who gets which slots: by texts, and by what holds of any slots and workflows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skuld_py.errors import Refused
from skuld_py.workflow.scheduling.allocation import Allocation, allocate
from skuld_py.workflow.scheduling.demand import UNBOUNDED, Demand, Flux, Sharing, Slot, Spreading, Step
from workflow.sharing_scenario import Scenario, read

SCENARIOS = [*read(Path(__file__).with_name("scenarios") / "sharing.txt")]
TAGS = st.frozensets(st.sampled_from("xy"))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_scenario_is_decided_as_it_says(scenario: Scenario) -> None:
    made = scenario.decided()

    assert scenario.told(made) == scenario.expected, made
    check(made, scenario.slots, scenario.demands)
    for name, words in scenario.reasons.items():
        assert words in made.starved[name]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_decided_again_it_stays(scenario: Scenario) -> None:
    made = scenario.decided()

    assert allocate(scenario.sharing, scenario.slots, scenario.demands, made.seats) == made


@st.composite
def steps(draw: st.DrawFn, name: str) -> Step:
    least = draw(st.integers(1, 3))
    return Step(name, least, draw(st.sampled_from((least, least + 2, UNBOUNDED))), draw(TAGS),
                draw(st.integers(0, 60)), draw(st.sampled_from(Flux)))


@st.composite
def demands(draw: st.DrawFn, name: str) -> Demand:
    count = draw(st.integers(0, 3))
    return Demand(name, tuple(draw(steps(each)) for each in "abc"[:count]), draw(st.sampled_from(Spreading)),
                  draw(st.integers(0, 100)))


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Sharing, list[Slot], list[Demand]]:
    slots = [Slot(f"s{number}", draw(TAGS), draw(st.sampled_from("mn")))
             for number in range(draw(st.integers(0, 14)))]
    return draw(st.sampled_from(Sharing)), slots, [draw(demands(f"j{number}")) for number in range(4)]


def check(made: Allocation, slots: list[Slot], asked: list[Demand]) -> None:
    """What holds whatever is shared out."""
    by_name = {slot.name: slot for slot in slots}
    seated = (name for seats in made.seats.values() for names in seats.values() for name in names)
    taken = Counter([*made.idle, *seated])
    assert taken == Counter([*by_name]), "a slot is missing, or has two seats"
    assert {*made.seats, *made.starved} == {demand.name for demand in asked if demand.steps}
    for demand in asked:
        for step in demand.steps if demand.name in made.seats else ():
            names = made.seats[demand.name][step.name]
            assert all(step.tags <= by_name[name].tags for name in names)
            assert len(names) >= (step.least if step.flux is not Flux.KILL else 1)
        if demand.name in made.seats and demand.spreading is Spreading.COLOCATED:
            for group in zip(*made.seats[demand.name].values(), strict=True):
                assert len({by_name[name].site for name in group}) == 1


@given(worlds(), st.data())
def test_whatever_comes_and_goes_all_is_shared_out_and_comes_to_rest(
        world: tuple[Sharing, list[Slot], list[Demand]], data: st.DataObject) -> None:
    sharing, slots, asked = world
    made = allocate(sharing, slots, asked, {})
    check(made, slots, asked)
    left = [slot for slot in slots if data.draw(st.booleans())]
    after = allocate(sharing, left, asked, made.seats)
    check(after, left, asked)

    assert allocate(sharing, left, asked, made.seats) == after


@given(worlds())
def test_no_slot_is_idle_that_a_workflow_could_use(world: tuple[Sharing, list[Slot], list[Demand]]) -> None:
    sharing, slots, asked = world
    plain = [attrs.evolve(demand, spreading=Spreading.BALANCED, steps=tuple(
        attrs.evolve(step, tags=frozenset(), flux=Flux.CONTINUE) for step in demand.steps)) for demand in asked]
    made = allocate(sharing, slots, plain, {})
    if made.idle and sharing is not Sharing.PERCENTAGE:
        for demand in plain:
            seats = made.seats.get(demand.name)
            if seats is None:
                assert not demand.steps or sum(step.least for step in demand.steps) > len(made.idle)
            else:
                assert all(len(seats[step.name]) == step.most for step in demand.steps)


def test_a_step_with_more_at_least_than_at_most_is_refused() -> None:
    with pytest.raises(Refused, match="step a: slots 3 to 2"):
        Step("a", 3, 2)
