"""kill -9 of a node under load: no acknowledged task is lost, none is held twice at once."""

from __future__ import annotations

import pytest

from skuld_py.embedded.local import LocalCluster
from system.load import at_work, await_depth, double_holds

pytestmark = pytest.mark.cluster


def test_the_check_for_double_holds_can_fail() -> None:
    assert not double_holds([(b"t", 1, 0.0, 1.0), (b"t", 2, 1.0, 2.0), (b"u", 1, 0.5, 9.0)])
    assert double_holds([(b"t", 1, 0.0, 1.0), (b"t", 2, 0.9, 2.0)])
    assert double_holds([(b"t", 2, 0.0, 1.0), (b"t", 2, 3.0, 4.0)])
    assert not double_holds([(b"t", 2, 3.0, 4.0), (b"t", 1, 3.5, 2.9)]), "who is told so late never held it"


def test_a_node_is_killed_under_load(cluster: LocalCluster) -> None:
    with at_work(cluster.addresses) as (load, client):
        await_depth(client, lambda depth: depth.completed >= 500)
        before = len(load.acked)

        cluster.kill_node(0)
        await_depth(client, lambda depth: len(load.acked) > before + 1_000)
        during = len(load.acked)
        cluster.start_node(0)
        await_depth(client, lambda depth: len(load.acked) > during + 1_000)
    assert len(load.holds) > len(load.completed), "some claims were abandoned, so tasks were granted again"
