"""A stream's batch that is run again is stored once, wherever the driver of the first run died."""

from __future__ import annotations

import msgpack
import pytest

from datasource.world import NOW, TTL_S, World
from skuld_py.datasource import gates
from skuld_py.datasource.choices import WINDOW_S
from skuld_py.datasource.fence import STREAMS, commit_batch
from skuld_py.datasource.gates import Write
from skuld_py.errors import Refused
from skuld_py.model.ids import TaskId

QUERY = "5f0c"


def run(world: World, batch: int, gate: TaskId, query: str = QUERY) -> bool:
    return commit_batch(world.any, query, batch, world.write, [gate], WINDOW_S, world.wall, world.client.advance)


def decide(world: World, gate: TaskId, generation: int = 0) -> None:
    """As far as a driver came that died."""
    world.client.enqueue(STREAMS, msgpack.packb([bytes(gate)]), unique=f"{QUERY}/0/{generation}",
                         unique_window_s=WINDOW_S)


def test_batches_are_stored_one_after_another_and_of_each_query_for_itself() -> None:
    world = World()

    assert run(world, 0, world.attempt(b"0")) and run(world, 1, world.attempt(b"1"))
    assert run(world, 0, world.attempt(b"other"), "a77e")

    assert world.claimable() == [b"0", b"1", b"other"]


def test_a_batch_that_was_committed_is_not_stored_again() -> None:
    world = World()
    assert run(world, 0, world.attempt(b"first"))

    assert not run(world, 0, world.attempt(b"again"))

    assert world.claimable() == [b"first"] and world.depth().dead == 1


def test_a_run_that_died_behind_its_decision_is_shut_out_by_the_next() -> None:
    world, earlier = World(), Write("b" * 32, 9, NOW, TTL_S)
    first = world.attempt(b"first", write=earlier)
    decide(world, first)

    assert run(world, 0, world.attempt(b"again"))

    assert world.claimable() == [b"again"] and world.depth().dead == 1
    with pytest.raises(Refused, match="are shut"):  # it was but stopped, and goes on
        world.end(first, write=earlier).commit()
    assert not run(world, 0, world.attempt(b"third"))
    assert world.claimable() == []


@pytest.mark.parametrize("is_completed", [False, True])
def test_a_run_that_died_at_its_gates_counts_if_they_were_completed(is_completed: bool) -> None:
    world = World()
    first = world.attempt(b"first")
    decide(world, first)
    gates.make(world.any, world.write, [first], world.wall())
    held = world.client.claim(gates.GATES, lease_s=5)
    if is_completed:
        world.client.complete_many(held)

    assert run(world, 0, world.attempt(b"again")) is not is_completed

    world.client.advance(60)
    assert world.claimable() == [b"first" if is_completed else b"again"]


def test_a_decision_is_known_in_the_window_behind_its_own_and_dies_in_the_end() -> None:
    world = World()
    assert run(world, 0, world.attempt(b"first"))
    world.client.advance(WINDOW_S - 3_600)

    assert not run(world, 0, world.attempt(b"again"))

    world.client.advance(2 * WINDOW_S)
    assert world.depth(STREAMS).waiting == 0
