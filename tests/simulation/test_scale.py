"""The simulation at scale, at a tiny one: it ends as it must, can fail, and its numbers mean what they say."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import attrs
import pytest

from skuld_py.cluster.log.commands import (
    AbortJoin,
    AcceptJoin,
    Command,
    Gc,
    JoinDirect,
    Joining,
    Leave,
    NotifyJoin,
    PrepareJoin,
)
from skuld_py.cluster.log.entries import Entry
from skuld_py.cluster.log.play import play
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.member.watched import watched
from skuld_py.model.document import Member
from skuld_py.simulation.coordination.scale import log as logs
from skuld_py.simulation.coordination.scale import report
from skuld_py.simulation.coordination.scale.__main__ import main
from skuld_py.simulation.coordination.scale.agenda import Agenda, Queue
from skuld_py.simulation.coordination.scale.concerned import Standby, concerned
from skuld_py.simulation.coordination.scale.costs import ALL, PLAIN, SETTINGS, Costs, Counts, Options
from skuld_py.simulation.coordination.scale.log import Log
from skuld_py.simulation.coordination.scale.plane import Plane
from skuld_py.simulation.coordination.scale.scenarios import SCENARIOS, Result, Unsound, run
from skuld_py.simulation.coordination.scale.spreading import binomial, reached

NAMES = [f"m{index}" for index in range(9)]
DIRECT, SHARING = Options(direct=True), Options(sharing=True)
TRANSFER, DECIDING, VERSIONS = Options(direct=True, transfer=True), Options(deciding=True), Options(versions=True)


def member(name: str) -> Member:
    return Member(name, "127.0.0.1", 1, "boot")


# -- whom an entry concerns --------------------------------------------------------------------------


def drawn(rng: Random, replica: Replica) -> Command:
    """A command that may mean something here, or nothing."""
    name = rng.choice(NAMES)
    joins = replica.joins
    likely: list[Command] = [PrepareJoin(name, member(name)), Leave(name), AbortJoin(name)]
    likely += [NotifyJoin(joiner) for joiner in joins.prepared.values()]
    likely += [AcceptJoin(observer, joiner) for observer, joiner in joins.accepted.items()]
    if replica.members:
        observer = rng.choice(replica.roster)
        joiners = tuple(Joining(each, member(each)) for each in rng.sample(NAMES, 2))
        likely += [JoinDirect(observer, replica.ring.after(observer), joiners), Gc()]
    return rng.choice(likely)


def random_log(seed: int, length: int) -> Iterator[tuple[Replica, Replica, Command]]:
    rng, replica = Random(seed), Replica()
    for position in range(length):
        command = drawn(rng, replica)
        played = play(replica, position, Entry("operator", position, command).encode())
        yield replica, played.replica, command
        replica = played.replica


def test_who_is_not_concerned_watches_whom_it_did() -> None:
    changes = 0
    for seed in range(150):
        for old, new, command in random_log(seed, 60):
            few = concerned(old, new, command)
            for name in NAMES:
                is_standby = name in old.aborted or name in new.aborted
                if watched(old, name) != watched(new, name) and not is_standby:
                    changes += 1
                    assert name in few, (seed, new.version, command, name)
            came = [name for name in new.members if name not in old.members]
            assert all(name in few for name in came)
    assert changes > 4_000


def test_standing_by_is_watching() -> None:
    told_no = 0
    for seed in range(100):
        for _, new, _ in random_log(seed, 60):
            standby = Standby(new)
            assert {name: standby.watched(name) for name in NAMES} == {name: watched(new, name) for name in NAMES}
            told_no += sum(bool(watched(new, name)) for name in new.aborted)
    assert told_no > 500


def test_few_are_concerned() -> None:
    plane = Plane(PLAIN, 1)
    several = plane.build(range(200))

    news = plane.log.append(several[5].id, 7, Leave(several[6].id))

    assert 0 < len(news.concerned) < 6


# -- whole runs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", SETTINGS, ids=lambda options: str(options.label))
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_cluster_ends_as_it_must(scenario: str, options: Options) -> None:
    for seed in (1, 2):
        result = run(scenario, 24, options, seed)

        assert result.is_finished
        assert result.inside == {"failure": 22, "growth": 26}.get(scenario, 24)
        assert result.samples > 0


def test_who_takes_over_a_replica_owes_the_steps_before_it() -> None:
    assert run("restart", 60, ALL, 1).is_finished


def test_the_same_seed_gives_the_same_numbers() -> None:
    one, two, other = [run("restart", 20, ALL, seed) for seed in (3, 3, 4)]

    assert one == two
    assert one.counts != other.counts


def test_a_watch_that_is_not_set_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "concerned", lambda old, new, command: ())

    with pytest.raises(Unsound):
        run("failure", 20, PLAIN, 1)


@pytest.mark.parametrize("victim", ["watch", "process", "replica"])
def test_the_verdict_sees(victim: str) -> None:
    plane = Plane(PLAIN, 1)
    several = plane.build(range(12))
    assert plane.verdict() == []
    if victim == "watch":
        plane.ensemble.drop_watches(several[3].id)
    elif victim == "process":
        several[3].is_alive = False
    else:
        plane.log.sample()
        plane.log.replica = attrs.evolve(plane.log.replica, rules=0)

    assert plane.verdict()


def test_a_reaction_that_is_lost_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AbortJoin, "reactions", lambda self, old, new: ())

    with pytest.raises(Unsound, match="members, 20 processes alive"):
        run("start", 20, PLAIN, 1, costs=Costs(start_spread_ms=1.0))


def test_an_unfinished_run_says_so() -> None:
    result = run("start", 40, PLAIN, 1, entries_max=30)

    assert not result.is_finished
    assert result.counts.entries == 30
    assert report.remark(result).startswith("not finished within 30 entries")
    assert report.found([result], "start", 40, PLAIN) is None


# -- what the numbers mean ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def starts() -> dict[str, Result]:
    return {options.label: run("start", 50, options, 1) for options in SETTINGS}


def test_each_counter_grows_with_the_cluster() -> None:
    small, large = run("start", 16, ALL, 1).counts, run("start", 48, ALL, 1).counts
    plain, more = run("restart", 16, PLAIN, 1).counts, run("restart", 48, PLAIN, 1).counts

    for field in attrs.fields(Counts):
        one, two = (small, large) if field.name in ("member_bytes", "messages") else (plain, more)
        assert 0 < getattr(one, field.name) < getattr(two, field.name), field.name


def test_direct_join_saves_entries_and_writes(starts: dict[str, Result]) -> None:
    plain, direct = starts["plain"].counts, starts["direct"].counts

    assert plain.entries >= 3 * 49
    assert direct.entries < plain.entries / 2
    assert direct.writes < plain.writes
    assert direct.member_bytes > plain.member_bytes == 0


def test_transfer_saves_reading(starts: dict[str, Result]) -> None:
    direct = run("growth", 50, DIRECT, 1).counts
    transfer = run("growth", 50, TRANSFER, 1).counts

    assert transfer.reads < direct.reads
    assert transfer.member_bytes > direct.member_bytes


def test_sharing_saves_reads_and_notifications(starts: dict[str, Result]) -> None:
    plain, sharing = run("failure", 50, PLAIN, 1).counts, run("failure", 50, SHARING, 1).counts

    assert sharing.reads < plain.reads / 10
    assert sharing.notifications < plain.notifications
    assert sharing.fan_out < plain.fan_out == 45
    assert sharing.messages > 0
    assert starts["sharing"].counts.reads < starts["plain"].counts.reads


def test_schedulers_compute_for_all(starts: dict[str, Result]) -> None:
    plain, deciding = run("failure", 50, PLAIN, 1).counts, run("failure", 50, DECIDING, 1).counts

    assert plain.decisions >= 45
    assert deciding.decisions < plain.decisions / 5
    assert deciding.decision_ms < plain.decision_ms / 5


def test_versions_hold_nobody_up() -> None:
    dear = Costs(decide_ms_per_node=20.0)

    waiting, going_on = [run("start", 30, options, 1, costs=dear) for options in (PLAIN, VERSIONS)]

    assert going_on.time_ms < waiting.time_ms / 2
    assert going_on.counts.decisions > 0


def test_all_options_save_most(starts: dict[str, Result]) -> None:
    best = starts["all"].counts

    assert starts["all"].per_change(best.writes) <= report.WRITES_PER_JOIN_MAX
    for label in ("plain", "sharing", "deciding", "versions"):
        assert best.reads < starts[label].counts.reads / 2


def test_slower_reads_slow_the_plain_protocol() -> None:
    fast, slow = [run("start", 40, PLAIN, 1, costs=Costs(read_ms=each)) for each in (0.0115, 5.0)]

    assert slow.time_ms > fast.time_ms
    assert slow.longest_wait_ms > fast.longest_wait_ms


# -- the parts ---------------------------------------------------------------------------------------


def test_a_queue_serves_one_after_the_other() -> None:
    agenda, served = Agenda(), []
    queue = Queue(agenda)
    for name in "abc":
        queue.submit(1.0, lambda: 2.0, lambda name: served.append((agenda.now, name)), name)

    assert agenda.run()

    assert served == [(3.0, "a"), (5.0, "b"), (7.0, "c")]
    assert queue.longest == 4.0


def test_an_entry_reaches_nearly_all() -> None:
    rng = Random(1)
    missed = [1_000 - reached(rng, 1_000, 1_000, 6, 10)[-1] for _ in range(200)]

    assert 1.0 < sum(missed) / 200 < 5.0  # e to the minus 6 is 2.5 of 1,000
    assert reached(rng, 1_000, 1_000, 6, 2)[-1] < 100
    assert reached(rng, 1, 1, 6, 10) == [1]


def test_who_waits_for_its_replica_hands_entries_on() -> None:
    plane = Plane(SHARING, 1)
    several = plane.build(range(100))
    for process in several[10:]:
        plane.spreading.leave(process)

    plane.want(several[0], Leave(several[1].id))
    plane.agenda.run()

    assert plane.counts.messages > 6 * 80


@pytest.mark.parametrize(("count", "chance"), [(9_000, 0.5), (9_000, 0.001), (40, 0.9)])
def test_draws_have_the_right_mean(count: int, chance: float) -> None:
    rng = Random(2)
    mean = sum(binomial(rng, count, chance) for _ in range(2_000)) / 2_000

    assert mean == pytest.approx(count * chance, rel=0.05)


def test_the_log_remembers_where_members_are() -> None:
    log = Log()
    log.append("a", 0, PrepareJoin("a", member("a")))
    first = log.replica
    log.append("a", 1, JoinDirect("a", "a", (Joining("b", member("b")),)))

    assert log.replica_at(0) is first
    assert log.contacts(0) == ("a", "a", "b")
    assert log.collect() == 2
    assert log.contacts(0) == ()


def test_the_program_writes_what_it_found(tmp_path: Path) -> None:
    code = main(["--members", "16,32", "--settings", "plain,all", "--scenarios", "start,failure", "--out",
                 str(tmp_path)])

    assert code == 0
    with open(tmp_path / "scale.csv", encoding="utf-8") as file:
        rows = [*csv.DictReader(file)]
    assert [(row["scenario"], row["members"], row["setting"]) for row in rows][:2] == [
        ("start", "16", "plain"), ("failure", "16", "plain")]
    assert len(json.loads((tmp_path / "scale.json").read_text())) == len(rows) == 8
    for name in ("times.png", "start.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_targets_can_be_missed() -> None:
    best = Result("start", 10_000, ALL, Counts(writes=40_000), 60_000.0, 10_000, 10_000, 0.0)
    plain = Result("start", 1_000, PLAIN, Counts(), 100_000.0, 1_000, 1_000, 0.0)

    assert [is_met for _, is_met in report.targets([best, plain])] == [False, False]
    better = attrs.evolve(best, counts=Counts(writes=20_000), time_ms=4_000.0)
    assert [is_met for _, is_met in report.targets([better, plain])] == [True, True]
