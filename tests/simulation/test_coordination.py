"""The coordination log under faults: it comes to rest as it should, and what is broken on purpose is found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from simulation.coordination_worlds import BROKEN, KNOWN
from skuld_py.cluster.log.commands import JoinDirect, RetireNode
from skuld_py.cluster.log.commands.join_direct import Joining
from skuld_py.cluster.log.entries import Entry
from skuld_py.cluster.log.lives import is_newer
from skuld_py.cluster.member.membership import Membership
from skuld_py.cluster.member.settings import LogSettings
from skuld_py.config import RULES
from skuld_py.simulation.coordination import __main__ as command
from skuld_py.simulation.coordination.options import Options
from skuld_py.simulation.coordination.play import Run, run
from skuld_py.simulation.coordination.poison import Poison
from skuld_py.simulation.coordination.stage import World
from skuld_py.simulation.world.process import Process

SEEDS, CHUNK = 150, 50
SEEDS_FOR_BROKEN = 150
KEPT = Path(__file__).with_name("coordination_seeds.txt")
OURS = World()
ONYX = BROKEN["watches by deltas"]
NOTHING = RetireNode("no-such-node")
POISON = Entry("poisoner", 0, Poison("as planned")).encode()


def kept() -> list[int]:
    lines = KEPT.read_text(encoding="utf-8").splitlines()
    return [int(line.split()[0]) for line in lines if not line.startswith("#")]


def passes(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    verdict = run(seed)
    if not verdict.passed:
        command.report(verdict)
        pytest.fail(capsys.readouterr().out, pytrace=False)


@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.slow)
                                       for first in range(CHUNK, SEEDS, CHUNK))])
def test_every_schedule_comes_to_rest_as_it_should(first: int, capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(first, first + CHUNK):
        passes(seed, capsys)


@pytest.mark.parametrize("seed", kept())
def test_a_seed_that_once_failed_passes(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    passes(seed, capsys)


def test_a_seed_decides_everything() -> None:
    assert run(5).hash == run(5).hash != run(6).hash


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_rule_is_found(rule: str) -> None:
    world = BROKEN[rule]
    assert any(not run(seed, world).passed for seed in range(SEEDS_FOR_BROKEN))


def test_watches_changed_by_deltas_leave_somebody_unwatched() -> None:
    found = (run(seed, ONYX).violations for seed in range(SEEDS_FOR_BROKEN))
    assert any("watched by nobody" in line or "is in and dead" in line for lines in found for line in lines)


# -- stories -----------------------------------------------------------------------------------------


def quiet(members: int, world: World = OURS, **settings: int) -> Run:
    """A run without faults, in which a test stages what happens; nobody has started."""
    return Run(1, world, Options(members, LogSettings(**settings)))


def until(course: Run, holds: Callable[[], bool], ms: int = 30_000) -> None:
    """Let time pass until something holds."""
    end_ms = course.scheduler.now_ms + ms
    while not holds():
        assert course.scheduler.now_ms < end_ms, course.trace.last(40)
        course.scheduler.run(course.scheduler.now_ms + 1)


def machine_of(process: Process) -> Membership:
    assert process.membership is not None
    return process.membership


def started(course: Run, *processes: Process) -> None:
    for process in processes:
        process.start()
        until(course, lambda process=process: machine_of(process).is_in)  # type: ignore[misc]


def staged_joiner_whose_neighbour_dies(world: World) -> Run:
    """Two members; a third has been notified under one of them when the other dies. It is in all the same, and
    must now watch the one that is left. Then that one dies, too."""
    course = quiet(3, world)
    joiner, *others = course.processes
    started(course, *others)
    joiner.start()
    replica = lambda: course.registry.replica  # noqa: E731
    until(course, lambda: bool(replica().joins.accepted))
    observer = replica().joins.observers[machine_of(joiner).me]
    course.stage.pause(joiner.name)
    course.scheduler.after(1_500, course.stage.resume, joiner.name)
    staying, = [process for process in others if machine_of(process).me == observer]
    dying, = [process for process in others if process is not staying]
    gone, connection = machine_of(dying).me, dying.connection
    dying.crash()
    assert connection is not None
    course.registry.expire(connection)
    until(course, lambda: gone in replica().left)
    assert replica().joins.accepted, "the join goes on"
    until(course, lambda: machine_of(joiner).is_in)
    course.scheduler.run(course.scheduler.now_ms + 5_000)
    staying.crash()
    course.scheduler.run(course.scheduler.now_ms + 30_000)
    return course


def test_a_joiner_whose_future_neighbour_dies_watches_who_is_left() -> None:
    course = staged_joiner_whose_neighbour_dies(OURS)

    assert [*course.registry.replica.members] == [machine_of(course.processes[0]).me]


def test_with_watches_changed_by_deltas_it_watches_nobody() -> None:
    course = staged_joiner_whose_neighbour_dies(ONYX)

    assert len(course.registry.replica.members) == 2, "the trace of the flaw no longer shows it"


def test_a_whole_ring_of_dead_is_cleared_away_by_whoever_comes() -> None:
    course = quiet(9)
    started(course, *course.processes[:8])
    for process in course.processes:
        process.crash()
    course.processes[8].start()
    course.processes[0].start()

    assert course.rest(), course.violations


def test_a_joiner_makes_progress_while_every_observer_is_dead() -> None:
    """What a timer would be for is done by the watches: within seconds of the end of the dead sessions."""
    course = quiet(3)
    started(course, *course.processes[:2])
    for process in course.processes[:2]:
        process.crash()
    last = course.processes[2]
    last.start()
    until(course, lambda: machine_of(last).is_in, 10_000)


def test_a_new_member_starts_from_the_origin_and_one_that_lags_jumps() -> None:
    course = quiet(3, length_max=10, grace=2)
    one, other, late = course.processes
    log = course.registry.log
    started(course, one, other)
    course.stage.pause(other.name)
    while not log.origin[0] > 20:
        course.faults.write(attrs.evolve(NOTHING, is_leaving=not log.end % 2))
        course.scheduler.run(course.scheduler.now_ms + 20)
    course.stage.resume(other.name)
    assert min(log.entries) > 10
    started(course, late)

    assert course.rest(), course.violations
    assert log.reference.counts[command.JUMPS] >= 1 and log.reference.counts["plays"] < 3 * log.end


@pytest.mark.parametrize("rules", [1, RULES])
def test_a_former_life_that_is_let_in_late_costs_its_node_a_life_at_most(rules: int) -> None:
    """By older rules it takes the place; who lives begins anew. By newer ones nothing happens but its leave."""
    course = Run(1, OURS, Options(3, LogSettings(), rules=rules))
    started(course, *course.processes)
    machine, ring = machine_of(course.processes[1]), course.registry.replica.ring
    life, observer = machine.me, next(each for each in ring.pairs if each != machine.me)
    former = "n01~0000000000000000"
    assert is_newer(life, former)
    course.faults.write(JoinDirect(observer, ring.after(observer), (Joining(former, machine.info),)))
    assert former in course.registry.replica.members

    assert course.rest(), course.violations
    assert (machine.me == life) is (rules == RULES)


def test_an_entry_that_fails_is_skipped_by_all_alike_and_told() -> None:
    course = quiet(3)
    started(course, *course.processes)
    position = course.registry.put_entry(POISON)
    assert course.rest(), course.violations

    told = [failure.reason for process in course.processes for failure in machine_of(process).replica.failed]
    assert told == ["ValueError"] * 3
    assert course.registry.replica.failed[0].position == position


def test_poison_is_known_to_the_worlds_of_the_tests() -> None:
    assert KNOWN.keys() == World().commands.keys()


# -- the command -------------------------------------------------------------------------------------


def test_the_command_plays_many_and_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--seeds", "3"]) == 0
    assert "3 runs" in capsys.readouterr().out
    assert command.main(["--seed", "4", "--trace"]) == 0
    assert "seed 4: passed" in capsys.readouterr().out


def test_a_failure_is_told_with_its_story(capsys: pytest.CaptureFixture[str],
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    broken = BROKEN["numbers of entries not checked"]
    monkeypatch.setattr(command, "run", lambda seed: run(seed, broken))

    assert command.main(["--seeds", "30"]) == 1
    out = capsys.readouterr().out
    assert "VIOLATED: " in out and "again: " in out and "failed: " in out


@pytest.mark.parametrize("words", [("--seeds", "0"), ("--first", "-1"), ("--trace",), ("--no-such",)])
def test_bad_usage_ends_with_2(words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as end:
        command.main([*words])

    assert end.value.code == 2
