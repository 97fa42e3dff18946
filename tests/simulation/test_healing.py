"""A core is a majority of every cohort; broken nodes stay broken, healed ones work."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skuld_py.simulation import healing
from skuld_py.simulation.campaign import CORE_LIVENESS, Campaign
from skuld_py.simulation.healing import draw_core
from skuld_py.simulation.trace import Trace

NODES = tuple(f"n{number}" for number in range(7))


@given(st.integers(), st.lists(st.lists(st.sampled_from(NODES), min_size=1, max_size=5, unique=True), min_size=1))
def test_a_core_has_a_majority_of_every_cohort(seed: int, cohorts: list[list[str]]) -> None:
    core = draw_core(Random(seed), NODES, [(len(cohort), cohort) for cohort in cohorts])

    assert all(2 * len({*core} & {*cohort}) > len(cohort) for cohort in cohorts)


def test_cores_are_mostly_small_and_all_nodes_are_in_some() -> None:
    cores = [draw_core(Random(seed), NODES[:5], [(5, NODES[:5])]) for seed in range(100)]

    assert {len(core) for core in cores} == {3, 4, 5}
    assert {name for core in cores for name in core} == {*NODES[:5]}
    assert sum(len(core) == 3 for core in cores) > 30


def find(way: str) -> Campaign:
    """A run in the middle of its core phase, with a node broken in this way."""
    for seed in range(60):
        campaign = Campaign(seed, 2, Trace())
        if not campaign.options.has_core_phase or campaign.options.late:
            continue
        campaign._heal_all = lambda: None  # type: ignore[method-assign]
        campaign.play()
        if way in campaign.healer.ways.values():
            return campaign
    pytest.fail(f"no node is {way}")


@pytest.mark.parametrize("way", healing.WAYS)
def test_a_core_does_without_a_node_that_is(way: str) -> None:
    campaign = find(way)
    cluster, outside = campaign.cluster, [name for name in campaign.options.nodes
                                          if name not in campaign.healer.core]

    assert campaign.core_healed_ms is not None
    assert campaign.healer.core_lacks() == []
    assert outside
    if way == "down":
        assert any(not cluster.processes[name].is_up for name in outside)
    if way == "paused":
        assert any(cluster.processes[name].is_paused for name in outside)
    if way == "mute":
        assert any(cluster.network.is_cut((name, other)) and not cluster.network.is_cut((other, name))
                   for name in outside for other in campaign.healer.core)


def test_a_core_that_cannot_lead_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(healing, "draw_core", lambda random, nodes, cohorts: tuple(nodes[:1]))
    monkeypatch.setattr(healing, "WAYS", ("down",))
    campaign = next(campaign for campaign in (Campaign(seed, 2, Trace()) for seed in range(60))
                    if campaign.options.has_core_phase and campaign.options.parameters.replicas > 2)

    campaign.play()

    assert [finding.invariant for finding in campaign.judge("") if finding.verdict is False] == [CORE_LIVENESS]
