"""A simulated node that comes back with less than it had says so to the registry and to itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from skuld_py.partition.data import tables
from skuld_py.partition.leadership.suspicion import suspects
from skuld_py.simulation.campaign import Campaign
from skuld_py.simulation.trace import Trace
from skuld_py.simulation.world.process import Process

SEED = 13


def played() -> Campaign:
    """A few seconds without faults, on three nodes that own everything."""
    campaign = Campaign(SEED, 10, Trace(None))
    assert len(campaign.options.nodes) == campaign.options.parameters.replicas == 3
    campaign.cluster.start()
    campaign.cluster.scheduler.run(3_000)
    return campaign


def restarted(campaign: Campaign, name: str, loss: Callable[[Process], None]) -> Process:
    process = campaign.cluster.processes[name]
    process.crash()
    loss(process)
    campaign.cluster.restart(name)
    return process


def run_on(campaign: Campaign, for_ms: int) -> None:
    campaign.cluster.scheduler.run(campaign.cluster.scheduler.now_ms + for_ms)


@pytest.mark.parametrize("is_wiped", [True, False])
def test_a_wiped_node_and_one_turned_back_get_a_new_incarnation_and_marks(is_wiped: bool) -> None:
    campaign = played()
    registry, count = campaign.cluster.registry, campaign.options.parameters.partitions
    name = campaign.options.nodes[0]
    store = campaign.cluster.processes[name].store
    before = registry.registration(name)
    snapshot = store.snapshot()
    process = restarted(campaign, name, lambda process: None)
    assert suspects(process.store, count) == {}
    run_on(campaign, 2_000)
    between = registry.registration(name)
    assert before is not None and between is not None
    assert (between.incarnation, between.starts) == (before.incarnation, before.starts + 1)

    restarted(campaign, name, lambda process: store.wipe() if is_wiped else store.restore(snapshot))

    assert list(suspects(store, count)) == list(range(count))
    run_on(campaign, 10_000)
    assert suspects(store, count) == {}
    after = registry.registration(name)
    assert after is not None
    assert after.incarnation != before.incarnation and after.starts == 1
    assert process.boots == 3
    assert not campaign.cluster.monitor.violations


def test_a_damaged_promise_marks_its_partition_only_and_the_run_goes_on() -> None:
    campaign = played()
    name = campaign.options.nodes[0]

    process = restarted(campaign, name,
                        lambda process: process.store.damage("meta", tables.promise_key(0)) or None)

    assert process.is_up
    assert list(suspects(process.store, campaign.options.parameters.partitions)) == [0]
    run_on(campaign, 10_000)
    assert suspects(process.store, campaign.options.parameters.partitions) == {}
    assert not campaign.cluster.monitor.violations
