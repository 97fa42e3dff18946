"""Each fault does what its name says, to whom it says, and no longer than it says."""

from __future__ import annotations

from random import Random

import pytest

from simulation.test_models import HELLO, Service, network, outcomes
from skuld_py.cluster.log.replica import Replica
from skuld_py.model.events import (
    DocumentRead,
    Outcome,
    ReadDocument,
    ReadFailed,
    Session,
)
from skuld_py.simulation.campaign import Campaign
from skuld_py.simulation.faults import (
    AHEAD,
    AHEAD_MS,
    APART,
    CHURN,
    DISK,
    FAULTS,
    STOP,
    Fault,
    Habit,
    draw_faults,
    draw_schedule,
)
from skuld_py.simulation.nemesis import Nemesis
from skuld_py.simulation.options import draw_options
from skuld_py.simulation.profiles import apply_profile
from skuld_py.simulation.trace import Trace
from skuld_py.simulation.world.network import Weather, ring
from skuld_py.simulation.world.scheduler import Scheduler, stream
from skuld_py.simulation.world.zookeeper.registry import Registry
from skuld_py.simulation.world.zookeeper.sessions import RegistryOptions

APART_KINDS = tuple(habit.kind for habit in (*APART, STOP))
ROOMY = next(seed for seed in range(1_000) if apply_profile(seed, draw_options(seed)) == draw_options(seed)
             and len(draw_options(seed).nodes) >= 6
             and draw_options(seed).parameters.replicas == 4 and not draw_options(seed).late)

# -- schedules ---------------------------------------------------------------------------------------


def test_a_schedule_is_in_order_numbered_and_the_same_again() -> None:
    names = ("n1", "n2", "n3")
    drawn = [draw_faults(stream(1, "faults"), FAULTS, 50, names, 20_000) for _ in range(2)]

    assert drawn[0] == drawn[1]
    assert [fault.number for fault in drawn[0]] == list(range(len(drawn[0])))
    assert {fault.kind for fault in drawn[0]} == {*FAULTS}
    assert all(fault.start_ms < fault.stop_ms for fault in drawn[0])


def test_a_kind_drawn_apart_leaves_the_other_faults_as_they_were() -> None:
    names, habit = ("n1", "n2", "n3"), Habit("clog", 0.5, 500)
    before = draw_schedule(1, ("pause", "crash"), 700, (), names, 20_000)

    drawn = draw_schedule(1, ("pause", "crash"), 700, (habit,), names, 20_000)

    assert drawn[: len(before)] == before
    assert len(drawn) > len(before)
    assert {fault.kind for fault in drawn[len(before) :]} == {"clog"}
    assert [fault.number for fault in drawn] == list(range(len(drawn)))


@pytest.mark.parametrize("kind", FAULTS)
def test_every_fault_can_be_played_alone_and_is_over_at_the_end(kind: str) -> None:
    campaign = Campaign(ROOMY, 10, Trace())
    cluster, names = campaign.cluster, campaign.options.nodes
    is_of_voters = kind == "voter damaged"  # who is asked for no vote gives none
    kinds = (kind, "expire", "expire") if is_of_voters else (kind,)
    faults = draw_faults(stream(1, kind), kinds, 500, names, 10_000)
    campaign.nemesis = Nemesis(cluster, faults, campaign.options.weather)

    campaign.play()

    assert campaign.nemesis.counts[kind] > 0
    assert campaign.healed_ms is not None
    assert all(finding.verdict is not False for finding in campaign.judge(""))


def stage(fault: Fault, until_ms: int) -> Campaign:
    """A quiet cluster of seed 3 at some time, with one fault."""
    campaign = Campaign(3, 20, Trace())
    campaign.cluster.start()
    campaign.nemesis = Nemesis(campaign.cluster, [fault], campaign.options.weather)
    campaign.nemesis.begin()
    campaign.cluster.scheduler.run(until_ms)
    return campaign


def test_a_process_on_a_full_disk_dies_at_its_first_commit_and_runs_when_there_is_room() -> None:
    campaign = stage(Fault(0, "disk full", 1, 9_000, ("n3",)), 8_000)
    process = campaign.cluster.processes["n3"]
    assert process.is_disk_full
    assert process.boots > 1
    assert process.store.commits == 0
    campaign.cluster.scheduler.run(20_000)

    assert process.is_up and not process.is_disk_full


def test_a_clock_step_shows_with_the_next_start() -> None:
    campaign = stage(Fault(0, "clock step", 1_000, 1_500, ("n1",)), 1_400)
    process, before = campaign.cluster.processes["n1"], campaign.cluster.processes["n1"].clock
    assert not process.is_up
    campaign.cluster.scheduler.run(2_000)

    assert process.is_up
    assert process.clock != before


def test_a_clock_that_is_ahead_is_right_again_at_the_end_or_when_all_is_healed() -> None:
    fault = Fault(0, AHEAD.kind, 1_000, 4_000, ("n1",))
    campaign = stage(fault, 3_000)
    process, true = campaign.cluster.processes["n1"], campaign.cluster.clock("n1", "clock n1")
    ahead_ms = campaign.cluster.ahead_ms["n1"]
    assert ahead_ms in AHEAD_MS and true.offset_ms == process.clock.offset_ms
    campaign.cluster.scheduler.run(6_000)
    assert process.is_up and process.clock.offset_ms == pytest.approx(true.offset_ms - ahead_ms)

    campaign = stage(fault, 3_000)
    campaign.cluster.repair_clocks()
    campaign.nemesis.end()
    process = campaign.cluster.processes["n1"]
    assert process.is_up and process.clock.offset_ms == pytest.approx(true.offset_ms - ahead_ms)


# -- links -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", range(1, 8))
def test_in_a_ring_everybody_hears_a_majority_and_no_two_the_same(size: int) -> None:
    names = [f"n{number}" for number in range(size)]
    cuts = set(ring(Random(size), names))
    heard = [frozenset(other for other in names if (other, name) not in cuts) for name in names]

    assert all(name in group and len(group) == size // 2 + 1 for name, group in zip(names, heard, strict=True))
    assert len(set(heard)) == (size if size > 2 else 1)


def test_a_reset_loses_what_is_under_way_and_nothing_else() -> None:
    scheduler, links, ear = network(Weather(latency_min_ms=10, latency_mean_ms=0.0, tail=0.0))
    links.send("a", "b", HELLO)
    links.send("c", "b", HELLO)
    scheduler.run(5)
    links.reset("b", "a")
    links.send("a", "b", HELLO)
    scheduler.run(100)

    assert ear.heard == [(10, "c"), (15, "a")]
    assert links.counts["lost by a reset"] == 1


def test_old_frames_arrive_again_on_their_own_links() -> None:
    scheduler, links, ear = network()
    links.attach("other", ear)
    links.send("a", "b", HELLO)
    links.send("c", "other", HELLO)
    scheduler.run(60_000)
    ear.heard.clear()
    links.replay(Random(1), "b", 10)
    scheduler.run(70_000)

    assert [sender for _, sender in ear.heard] == ["a"]
    assert links.counts["replayed old"] == 1


def test_frames_of_clients_are_never_replayed() -> None:
    scheduler, links, ear = network()
    links.attach("client", ear, is_client=True)
    links.send("client", "b", HELLO)
    links.send("b", "client", HELLO)
    scheduler.run(100)
    links.replay(Random(1), "b", 10)

    assert links.counts["replayed"] == 0


def test_a_full_link_drops_the_newest() -> None:
    scheduler, links, ear = network(Weather(capacity=2))
    for _ in range(5):
        links.send("a", "b", HELLO)
    scheduler.run(1_000)
    links.send("a", "b", HELLO)
    scheduler.run(2_000)

    assert len(ear.heard) == 3
    assert links.counts["dropped at capacity"] == 3


def test_a_slow_endpoint_is_slow_both_ways_until_it_is_not() -> None:
    scheduler, links, ear = network(Weather(latency_mean_ms=0.0, tail=0.0))
    links.attach("a", ear)
    links.slow("b", 100)
    links.send("a", "b", HELLO)
    links.send("b", "a", HELLO)
    scheduler.run(1_000)
    links.slow("b", 0)
    links.send("a", "b", HELLO)
    scheduler.run(2_000)

    assert [at_ms for at_ms, _ in ear.heard] == [101, 101, 1_001]


# -- the registry ------------------------------------------------------------------------------------


def test_without_a_quorum_nothing_is_read_or_written_and_nobody_expires() -> None:
    service = Service(session_ms=1_000)
    service.news("n1")
    service.registry.lose_quorum()
    service.registry.request(service.n1, ReadDocument(0))
    service.swap(service.n1, -1, "a")
    service.wait(20_000)
    news = service.news("n1")
    assert ReadFailed(0) in news
    assert outcomes(news) == [Outcome.UNCERTAIN]
    assert service.registry.writes == []
    service.registry.regain_quorum()
    service.wait(900)

    assert service.sessions("n1") == [Session.CONNECTED]
    assert service.registry.counts["session ended"] == 0


def test_a_proposal_that_one_server_had_logged_may_count_when_there_is_a_quorum_again() -> None:
    applied = 0
    for seed in range(60):
        service = Service()
        service.registry._random = Random(seed)
        service.registry.lose_quorum()
        service.swap(service.n1, -1, "a")
        service.wait(500)
        assert service.registry.writes == []
        service.registry.regain_quorum()
        applied += len(service.registry.writes)

    assert 2 < applied < 40


def test_a_session_moves_with_a_suspension_and_without_loss() -> None:
    service = Service(session_ms=3_000)
    service.news("n1")
    service.registry.move(service.n1)
    service.wait(3_000)

    assert service.sessions("n1") in ([], [Session.SUSPENDED, Session.CONNECTED])
    assert service.registry.counts["session ended"] == 0


def test_an_answer_that_is_too_large_breaks_the_connection_and_leaves_a_swap_uncertain_and_applied() -> None:
    service = Service()
    service.news("n1")
    service.registry.choke(service.n1)
    service.swap(service.n1, -1, "a")
    service.wait(3_000)
    service.registry.request(service.n1, ReadDocument(0))
    service.wait(100)

    news = service.news("n1")
    assert outcomes(news) == [Outcome.UNCERTAIN]
    assert [event.document.write_id for event in news if isinstance(event, DocumentRead)] == ["a"]


def test_a_synced_read_brings_all_that_a_client_sees_up_to_date() -> None:
    service = Service(watch_ms=0)
    service.registry.lag("n2", 60_000)
    service.append(service.n1, 0)
    service.wait(100)
    assert service.read(service.n2, 0).entries == ()
    service.registry.request(service.n2, ReadDocument(0))
    service.wait(100)

    assert len(service.read(service.n2, 0).entries) == 1


def test_a_node_that_is_taken_out_is_placed_no_more_until_it_is_put_back() -> None:
    registry = Registry(Scheduler(1), Random(1), RegistryOptions(), Replica(replicas=1))
    registry.found(("n1", "n2"))
    registry.set_leaving("n2", True)
    assert registry.nodes == ("n1",)
    registry.set_leaving("n1", True)
    assert registry.nodes == ("n1",), "a copy needs a place"
    registry.set_leaving("n2", False)

    assert registry.nodes == ("n1", "n2")


def test_an_operator_who_finds_zookeeper_out_of_order_tries_again() -> None:
    scheduler = Scheduler(1)
    registry = Registry(scheduler, Random(1), RegistryOptions(), Replica(replicas=1))
    registry.found(("n1", "n2"))
    registry.freeze()
    registry.set_leaving("n2", True)
    scheduler.run(500)
    assert registry.nodes == ("n1", "n2")
    registry.thaw()
    scheduler.run(1_000)

    assert registry.nodes == ("n1",)


def test_the_pace_and_the_kinds_of_faults_differ_from_seed_to_seed() -> None:
    drawn = [draw_options(seed) for seed in range(300)]

    for kind in FAULTS:
        share = sum(kind in options.kinds for options in drawn) / 300
        assert (0.08 if kind in DISK + CHURN + APART_KINDS else 0.2) < share < 0.6
    assert len({options.fault_every_ms for options in drawn}) > 2
