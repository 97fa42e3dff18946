"""The model of what more nodes bring: its counts are linear, its time is what its costs say, and it can fail."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import attrs
import pytest

from skuld_py.config.timing import DEFAULT_TIMING
from skuld_py.simulation.capacity.clients import Crew, Failure
from skuld_py.simulation.capacity.costs import Costs, Counts, Sample, fitted, total
from skuld_py.simulation.capacity.runs import VERBS, Phase, Result, linear, rate_of, run
from skuld_py.simulation.capacity.transfers import transfers
from skuld_py.simulation.capacity.world import START_MS, World, partitions_of

FREE = Costs(turn_ms=0, message_ms=0, byte_ms=0, row_ms=0, commit_ms=0, disk_ms=0)
FEW, MANY = 8, 16
AIM_MS = 200
"""In virtual time."""


@cache
def ran(nodes: int) -> Result:
    return run(nodes, Costs(), batch=10, clients=1, batches=4)


def settled(costs: Costs) -> World:
    world = World(3, costs)
    world.settle()
    return world


@pytest.mark.parametrize("at", range(len(VERBS)), ids=VERBS)
def test_a_task_costs_all_nodes_together_the_same_and_each_its_part(at: int) -> None:
    few, many = ran(FEW).phases[at], ran(MANY).phases[at]

    assert many.tasks == 2 * few.tasks == MANY * 10 * (8 if at == 0 else 4)
    assert many.messages == pytest.approx(few.messages, rel=0.15)
    assert total(many.counts).commits / many.tasks == pytest.approx(total(few.counts).commits / few.tasks, rel=0.2)
    mean = total(many.counts).messages / MANY
    assert all(0.3 * mean < each.messages < 2 * mean for each in many.counts)


@pytest.mark.parametrize("nodes", [FEW, MANY])
def test_what_nodes_tell_each_other_unasked_is_bound_to_time_and_not_to_tasks(nodes: int) -> None:
    for phase in ran(nodes).phases:
        rounds = 1 + phase.span_ms / DEFAULT_TIMING.gossip_ms
        assert total(phase.counts).unasked <= 1.5 * rounds * 2 * nodes * (nodes - 1)


def test_what_an_idle_node_owes_to_the_others_grows_with_their_number() -> None:
    few, many = ran(FEW), ran(MANY)

    assert few.idle_messages / (FEW - 1) == pytest.approx(many.idle_messages / (MANY - 1), rel=0.2)
    assert few.first_messages / (FEW - 1) == pytest.approx(many.first_messages / (MANY - 1), rel=0.4)


def test_an_answer_takes_the_wire_there_and_back_to_nodes_and_client_and_two_commits() -> None:
    world = settled(attrs.evolve(FREE, wire_ms=1.0, disk_ms=10.0))
    began = world.agenda.now
    crew = Crew(world, batch=1, each=1, seed=1)
    crew.play("enqueue", 1)

    took = [at - began for at, _ in crew.answers]
    assert min(took) >= 1 + 1 + 10 + 1 + 1, "to a copy, which has stored it, and back"
    assert max(took) < 40


def test_tasks_take_twice_as_long_where_messages_cost_twice_as_much() -> None:
    base = attrs.evolve(FREE, wire_ms=0.0, message_ms=0.1)
    once, twice = (run(3, attrs.evolve(base, message_ms=base.message_ms * by), batch=5, clients=2, batches=5)
                   for by in (1, 2))

    for quick, slow in zip(once.phases, twice.phases, strict=True):
        assert quick.rate / slow.rate == pytest.approx(2, rel=0.2)


def test_the_start_of_a_cluster_is_free_and_what_comes_then_is_not() -> None:
    world = settled(Costs())

    assert sum(seat.busy_ms for seat in world.seats.values()) == 0
    world.pass_ms(2_000)
    assert all(seat.busy_ms > 0 for seat in world.seats.values())
    assert world.now_ms >= START_MS + 4_000


def test_a_claim_that_finds_nothing_ends_the_run() -> None:
    crew = Crew(settled(Costs()), batch=1, each=1)

    with pytest.raises(Failure, match="Claimed"):
        crew.play("claim", 1)


def test_partitions_grow_with_the_nodes() -> None:
    assert [partitions_of(nodes) for nodes in (3, 6, 12, 25, 50, 100)] == [16, 32, 64, 128, 256, 512]


def test_a_partition_changes_its_leader_within_a_few_commits_and_answers() -> None:
    quiet, *gaps = transfers(3, Costs())

    assert quiet[0] == "" and len(gaps) == 3
    assert all(gap_ms < AIM_MS for _, gap_ms in gaps), gaps


# -- fitting and judging -----------------------------------------------------------------------------

COUNTS = [Counts(40, 60, 5_000, 90, 30), Counts(90, 66, 21_000, 10, 30), Counts(50, 90, 90_000, 400, 31),
          Counts(33, 30, 9_000, 50, 10), Counts(70, 200, 3_000, 30, 40), Counts(10, 20, 9_000, 900, 4)]


@pytest.mark.parametrize("true", [(0.1, 0.05, 2e-5, 1e-3, 0.3), (0.1, 0.05, 0.0, 1e-3, 0.3), (0, 0, 2e-5, 0, 0)])
def test_costs_are_found_again_from_what_they_make(true: tuple[float, ...]) -> None:
    made = Costs(*true)
    found = fitted([Sample(counts, counts.busy_ms(made)) for counts in COUNTS], Costs(disk_ms=7.0))

    assert found.prices == pytest.approx(true, abs=1e-7)
    assert found.disk_ms == 7.0


def test_no_cost_is_negative_whatever_was_measured() -> None:
    found = fitted([Sample(COUNTS[0], 9.0), Sample(COUNTS[1], 3.0), Sample(COUNTS[2], 1.0)], Costs())

    assert min(found.prices) >= 0


def result(nodes: int, rate: float) -> Result:
    counts = tuple(Counts(10, 10, 10, 10) for _ in range(nodes))
    return Result(nodes, 64, tuple(Phase(nodes, verb, 100, rate, counts, (1.0,) * nodes) for verb in VERBS), 1, 1)


def test_nodes_that_bring_ever_less_are_not_linear() -> None:
    assert [is_met for _, is_met in linear([result(3, 900), result(12, 1_200), result(24, 2_200)])] == [True] * 3
    flat = linear([result(3, 900), result(12, 1_200), result(24, 1_500)])

    assert [is_met for _, is_met in flat] == [False] * 3
    assert "a node of 24 does 0.62 of what one of 12 does" in flat[0][0]
    assert linear([result(3, 900)]) == []


def test_the_rate_is_that_of_the_middle() -> None:
    answers = [(1_000.0 + 10 * at, 5) for at in range(100)]
    early, late = [(0.0, 5)] * 5, [(9_000.0, 5)] * 5

    assert rate_of([*early, *answers[:90], *late]) == pytest.approx(500, rel=0.01)


def test_the_runs_are_drawn(tmp_path: Path) -> None:
    from skuld_py.simulation.capacity.plots import draw

    picture = draw([result(3, 900), result(12, 3_600)], tmp_path / "nodes.svg").read_text()
    assert picture.startswith("<?xml") and "</svg>" in picture
