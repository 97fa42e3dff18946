"""Disks are destroyed only where a majority stays whole, and what they lose is found and filled again."""

from __future__ import annotations

import pytest

from skuld_py.partition.leadership.suspicion import clear_suspect, suspects
from skuld_py.simulation.campaign import Campaign
from skuld_py.simulation.faults import Fault
from skuld_py.simulation.nemesis import Nemesis
from skuld_py.simulation.options import Options, draw_options
from skuld_py.simulation.trace import Trace


def _is_roomy(options: Options) -> bool:
    """Seven nodes from the start, five replicas, one partition, no other trouble."""
    size = options.parameters
    return (len(options.nodes), size.replicas, size.partitions) == (7, 5, 1) and not (options.late or options.fast)


SEED = next(seed for seed in range(10_000) if _is_roomy(draw_options(seed)))


def settled(*faults: Fault, until_ms: int = 5_000) -> Campaign:
    """A cluster of the seed some time after its first election, with these faults and no others."""
    campaign = Campaign(SEED, 20, Trace())
    campaign.cluster.start()
    campaign.nemesis = Nemesis(campaign.cluster, faults, campaign.options.weather)
    campaign.nemesis.begin()
    campaign.cluster.scheduler.run(until_ms)
    return campaign


def cohort(campaign: Campaign) -> tuple[str, ...]:
    return campaign.cluster.registry.documents[0][1].cohort


def test_so_many_may_be_hurt_that_a_majority_stays_whole() -> None:
    campaign = settled()
    atlas, names = campaign.cluster.atlas, cohort(campaign)
    outside = next(name for name in campaign.options.nodes if name not in names)
    hurt = []
    for name in names:
        if atlas.may_hurt(name):
            atlas.note_hurt(name)
            hurt.append(name)

    assert len(names) == 5
    assert hurt == list(names[:2])
    assert atlas.may_hurt(outside)


def test_a_node_is_whole_again_only_when_it_has_started_and_is_suspected_of_nothing() -> None:
    campaign = settled()
    cluster, name = campaign.cluster, cohort(campaign)[1]
    process = cluster.processes[name]
    cluster.atlas.note_hurt(name)
    process.crash()
    process.store.wipe()
    assert cluster.atlas.is_hurt(name)
    cluster.restart(name)
    assert suspects(process.store, 1)
    assert cluster.atlas.is_hurt(name)
    clear_suspect(process.store, 0)
    process.store.commit()

    assert cluster.atlas.is_whole(name)
    assert not cluster.atlas.is_hurt(name)


def test_a_node_with_a_record_it_cannot_read_is_not_whole_until_somebody_reads_it() -> None:
    campaign = settled()
    cluster, name = campaign.cluster, cohort(campaign)[1]
    store = cluster.processes[name].store
    table, key = next((table, key) for table, key in store.records() if table == "meta")
    assert store.damage(table, key)
    assert not cluster.atlas.is_whole(name)
    cluster.processes[name].verify()

    assert store.damaged() is None
    assert suspects(store, 1)


@pytest.mark.parametrize("kind", ["wipe", "corrupt", "roll back"])
def test_a_disk_fault_strikes_one_node_and_leaves_the_others_alone(kind: str) -> None:
    before = settled(until_ms=4_999)
    name = cohort(before)[1]
    campaign = settled(Fault(0, kind, 5_000, 7_000, (name,)), until_ms=9_000)
    found = dict(campaign.nemesis.counts)
    campaign.cluster.processes[name].verify()
    campaign.cluster.scheduler.run(30_000)

    assert found == {kind: 1}
    assert campaign.nemesis.struck[0].targets == (name,)
    assert campaign.cluster.probes.counts["suspect filled again"] == 1
    assert all(campaign.cluster.atlas.is_whole(other) for other in campaign.options.nodes)


def test_a_state_from_before_a_registered_start_is_what_comes_back() -> None:
    name = cohort(settled(until_ms=4_999))[1]
    campaign = settled(Fault(0, "roll back", 5_000, 7_000, (name,)), until_ms=9_000)

    assert campaign.cluster.processes[name].starts == 1
    assert campaign.nemesis.struck[0].start_ms == 7_000
    assert campaign.cluster.probes.counts["memory found lost"] == 1


def test_an_old_copy_of_the_same_start_is_put_back_where_a_later_vote_is_told_and_is_found_out() -> None:
    voter = settled().cluster.registry.documents[0][1].leader
    campaign = settled(Fault(0, "old copy", 5_000, 14_000, (voter,)), until_ms=5_099)
    assert campaign.nemesis.counts == {}, "no leader has been elected since"
    cluster = campaign.cluster
    while not campaign.nemesis.counts and cluster.scheduler.now_ms < 14_000:
        cluster.scheduler.run(cluster.scheduler.now_ms + 10)

    assert campaign.nemesis.counts == {"old copy": 1}
    assert cluster.registry.documents[0][1].promises[voter] > 1
    assert cluster.atlas.is_hidden(voter) and cluster.atlas.is_hurt(voter)
    cluster.scheduler.run(cluster.scheduler.now_ms + 10_000)
    assert not cluster.atlas.is_hidden(voter)
    cluster.scheduler.run(cluster.scheduler.now_ms + 15_000)
    assert cluster.atlas.is_whole(voter)
    assert cluster.probes.counts["suspect filled again"] == 1


def test_no_disk_is_struck_that_a_majority_needs() -> None:
    names = cohort(settled(until_ms=4_999))
    faults = [Fault(number, "wipe", 5_000 + number, 19_000, (name,)) for number, name in enumerate(names)]
    campaign = settled(*faults, until_ms=15_000)

    assert campaign.nemesis.counts == {"wipe": 2}
    assert sum(campaign.cluster.processes[name].is_up for name in names) == 3


def test_a_node_is_taken_out_while_enough_are_left_and_put_back() -> None:
    names = tuple(f"n{number}" for number in range(1, 8))
    campaign = settled(*[Fault(number, "leave", 5_000, 9_000, (name,)) for number, name in enumerate(names)],
                       until_ms=8_000)
    during = campaign.cluster.registry.nodes
    campaign.cluster.scheduler.run(10_000)
    after = campaign.cluster.registry.nodes

    assert len(during) == 5
    assert campaign.nemesis.counts == {"leave": 2}
    assert len(after) >= 6
