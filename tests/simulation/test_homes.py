"""Leaders stand still while limits change, and report what they held when they were deposed: it does not count.

Runs of the usual options never see that: a report that comes after its leader was deposed comes after its round,
too. So rounds are patient here, and sessions are shorter than most pauses.
"""

from __future__ import annotations

import attrs
import pytest

from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.node.claims import claim
from skuld_py.node.leadership.watching import Watching
from skuld_py.node.limits.lender import LendOperation
from skuld_py.simulation import campaign
from skuld_py.simulation.cluster import Cluster
from skuld_py.simulation.guards import ALL_HAVE_REPORTED
from skuld_py.simulation.options import Options, Workload
from skuld_py.simulation.world.zookeeper.sessions import RegistryOptions

SEED = 421
"""From which on a run is looked for whose home hears of a partition from its deposed leader alone."""
SEEDS = 80


def of_limits(seed: int, drawn: Options) -> Options:
    """Pauses, and limits that change now and then, over tasks of which each is held for a moment."""
    return attrs.evolve(
        drawn, parameters=attrs.evolve(drawn.parameters, partitions=4, replicas=3, skew_ms=20),
        nodes=("n1", "n2", "n3"), late=(),
        timing=attrs.evolve(drawn.timing, resend_ms=1_500, gossip_ms=900, loan_ms=1_600, dry_ms=100,
                            grant_ms=4_000),
        weather=attrs.evolve(drawn.weather, loss=0.0, latency_mean_ms=1.0),
        registry=RegistryOptions(session_ms=400, leg_ms=1, watch_ms=5, has_document_watches=False),
        workload=Workload(
            clients=3, queues=("q0",), enqueue_ms=200, claim_ms=100, read_ms=4_000, patience_ms=600,
            lease_ms=(100, 200), fates=("release", "complete"), batch_max=1, is_logging=False, limit_ms=1_500),
        faults=("pause",), apart=(), fault_every_ms=1_500, is_total_loss=False, fast="", fast_ms=0,
        retention=attrs.evolve(drawn.retention, keep_ms=0, archives=False))


def unmoved(watching: Watching, now_ms: int) -> None:
    """Whoever looks at documents again learns in time that it was deposed, and reports no more."""
    for news in watching.news:
        news.clear()


def test_a_home_that_counts_what_deposed_leaders_report_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "apply_profile", of_limits)
    monkeypatch.setattr(claim, "LEAVER_MS", 0)  # sessions end all the time here, and claims are to go on
    monkeypatch.setattr(Watching, "look", unmoved)

    def whoever_reports(_: LendOperation, report: m.Reckoned) -> list[tuple[int, int, int]]:
        rows = (columns.unpack_u64(column) for column in (report.partitions, report.epochs, report.used))
        return list(zip(*rows, strict=True))
    with monkeypatch.context() as broken:
        broken.setattr(LendOperation, "_newest", whoever_reports)
        seed = next(seed for seed in range(SEED, SEED + SEEDS)
                    if [*campaign.run(seed).violated] == [ALL_HAVE_REPORTED])
    clusters: list[Cluster] = []

    assert campaign.run(seed, plant=clusters.append).violated == {}
    assert clusters[0].monitor.counts[ALL_HAVE_REPORTED] > 5
