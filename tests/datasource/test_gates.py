"""Nothing of a write can be claimed before its commit; nothing of attempts that lost, ever; nothing stays."""

from __future__ import annotations

from typing import Any, cast

import attrs
import pytest

from datasource.world import NOW, TTL_S, World
from skuld_py.datasource import gates
from skuld_py.datasource.gates import ATTEMPTS, GATES, PARTS_MAX, Write, check_part, shut_own
from skuld_py.errors import Refused, Uncertain
from skuld_py.model.ids import route_of


def test_nothing_can_be_claimed_before_the_commit_and_all_after_it() -> None:
    world = World()
    first, second = world.attempt(b"1", b"2"), world.attempt(b"3")
    assert world.claimable() == [] and world.depth().blocked == 3

    world.end(first, second).commit()

    assert world.claimable() == [b"1", b"2", b"3"]
    assert world.depth(GATES).completed == 2 and world.depth(ATTEMPTS).waiting == 0


def test_all_gates_of_a_write_are_of_one_partition() -> None:
    world = World()

    assert {route_of(world.attempt(b"1")) for _ in range(9)} == {world.write.route}


def test_tasks_of_an_attempt_that_lost_die_and_those_that_it_adds_later_too() -> None:
    world = World()
    won, lost = world.attempt(b"1"), world.attempt(b"1")

    world.end(won).commit()
    world.store(lost, b"late")

    assert world.claimable() == [b"1"]
    assert world.depth().dead == 2 and world.depth().blocked == 0


def test_an_attempt_of_another_write_is_left_alone() -> None:
    world, other = World(), Write("b" * 32, 9, NOW, TTL_S)
    mine, foreign = world.attempt(b"1"), world.attempt(b"2", write=other)

    world.end(mine).commit()
    assert world.depth().blocked == 1

    world.end(foreign, write=other).commit()
    assert world.claimable() == [b"1", b"2"]


def test_a_commit_gives_back_the_gates_of_another_that_is_under_way() -> None:
    world, other = World(), Write("b" * 32, 9, NOW, TTL_S)
    mine, foreign = world.attempt(b"1"), world.attempt(b"2", write=other)
    gates.make(world.any, other, [foreign], NOW)

    world.end(mine).commit()

    assert world.claimable() == [b"1"]
    assert world.depth(GATES).waiting == 1


def test_an_aborted_write_leaves_nothing_that_lives() -> None:
    world = World()
    first = world.attempt(b"1", b"2")
    world.attempt(b"3")  # of which the driver has not heard

    world.end(first).abort()

    assert world.claimable() == []
    assert attrs.evolve(world.depth(), dead=0).total == 0
    assert world.depth(GATES).cancelled == 2 and world.depth(ATTEMPTS).waiting == 0
    dead = [task.id for task in world.client.list("q", states=("dead",))]
    world.client.retry(*dead)
    assert world.claimable() == [] and world.depth().dead == 3


def test_a_write_whose_driver_is_gone_dies_of_itself() -> None:
    world = World()
    world.attempt(b"1")

    world.client.advance(TTL_S + 120)

    assert world.claimable() == []
    assert world.depth().dead == 1 and world.depth(ATTEMPTS).waiting == 0


def test_a_driver_that_dies_in_its_commit_lets_nothing_go_and_its_gates_die() -> None:
    world = World()
    gate = world.attempt(b"1")
    gates.make(world.any, world.write, [gate], NOW)
    world.client.claim(GATES, lease_s=30)

    world.client.advance(gates.GATE_S + 120)

    assert world.claimable() == [] and world.depth().dead == 1
    assert world.depth(GATES).dead == 1


def test_a_commit_that_comes_too_late_is_refused_and_lets_nothing_go() -> None:
    world = World()
    gate = world.attempt(b"1")
    world.client.advance(TTL_S - 30)

    with pytest.raises(Refused, match="ttl: the write took longer"):
        world.end(gate).commit()

    world.end(gate).abort()
    assert world.claimable() == [] and world.depth().dead == 1


def test_a_commit_that_took_so_long_that_gates_may_have_died_is_in_doubt() -> None:
    world = World()
    gate = world.attempt(b"1")
    commit = world.end(gate)
    complete = world.client.complete_many

    def slow(*given: Any) -> None:
        complete(*given)
        world.client.advance(gates.GATE_S)
    world.any.complete_many = slow

    with pytest.raises(Uncertain, match="may have died"):
        commit.commit()


def test_a_commit_may_be_repeated() -> None:
    world = World()
    gate = world.attempt(b"1")
    commit, calls = world.end(gate), []
    complete = world.client.complete_many

    def doubtful(*given: Any) -> None:
        complete(*given)
        calls.append(given)
        if len(calls) == 1:
            raise Uncertain("deadline", "no answer")
    world.any.complete_many = doubtful

    commit.commit()

    assert len(calls) == 2 and world.claimable() == [b"1"]


def test_gates_that_were_shut_are_not_committed() -> None:
    world = World()
    gate = world.attempt(b"1")
    world.end(gate).abort()

    with pytest.raises(Refused, match="are shut"):
        world.end(gate).commit()

    assert world.claimable() == []


def test_a_driver_that_holds_its_gates_is_waited_for() -> None:
    world = World()
    gate = world.attempt(b"1")
    gates.make(world.any, world.write, [gate], NOW)
    held = world.client.claim(GATES, lease_s=gates.LEASE_S)
    until = NOW + gates.LEASE_S

    assert world.end(gate).shut()
    assert world.wall() >= until and held


def test_a_driver_whose_leases_are_over_completes_nothing() -> None:
    world = World()
    gate = world.attempt(b"1")
    commit = world.end(gate)
    hold = commit._hold

    def late() -> Any:
        held = hold()
        world.client.advance(gates.LEASE_S)
        return held
    cast(Any, commit)._hold = late

    with pytest.raises(Uncertain, match="leases"):
        commit.commit()

    assert world.claimable() == []


def test_what_is_committed_is_not_aborted() -> None:
    world = World()
    gate = world.attempt(b"1")
    world.end(gate).commit()

    with pytest.raises(Refused, match="is committed"):
        world.end(gate).abort()

    assert world.claimable() == [b"1"]


def test_an_attempt_that_fails_shuts_its_own_gate() -> None:
    world = World()
    gate = world.attempt(b"1")

    shut_own(world.any, attrs.evolve(world.write, start_s=NOW), gate)

    assert world.depth().dead == 1


def test_a_write_of_no_rows_commits() -> None:
    world = World()

    world.end().commit()

    assert world.depth(GATES).total == 0


def test_a_write_of_too_many_parts_is_refused_by_its_first_part_too_many() -> None:
    check_part(PARTS_MAX - 1)
    with pytest.raises(Refused, match="coalesce"):
        check_part(PARTS_MAX)


def test_as_many_parts_as_may_be_are_let_go_by_one_request() -> None:
    world = World()
    made = [world.attempt(b"%d" % number) for number in range(PARTS_MAX)]
    requests: list[int] = []
    complete = world.client.complete_many

    def counted(claims: Any) -> None:
        requests.append(len(claims))
        complete(claims)
    world.any.complete_many = counted

    world.end(*made).commit()

    assert requests == [PARTS_MAX] and len(world.claimable()) == PARTS_MAX
