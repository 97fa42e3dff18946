"""Limits that are set again, as programs do that set them at every start."""

from __future__ import annotations

from typing import Any

import pytest

from skuld_py import Refused
from skuld_py.client.asking import Ask
from skuld_py.client.limiting import QuotaUse
from skuld_py.model.messages import Count, GetSettings
from skuld_py.model.messages.settings import SettingRow
from skuld_py.model.setting import LIMITS
from skuld_py.testing import MemoryClient, MemoryCluster


def register(cluster: MemoryCluster) -> SettingRow:
    row, = cluster.ask(Ask(GetSettings(0, LIMITS, "q", b"")), 5).message.rows
    assert isinstance(row, SettingRow)
    return row


def test_setting_what_is_set_leaves_the_bucket_as_it_is() -> None:
    """One a minute, by a program that starts every 50 seconds: it used to be one in 50 minutes."""
    with MemoryClient(now=1_900_000_000) as client:
        client.enqueue_many("q", [b"x"] * 100)
        given = 0
        for _ in range(60):
            client.set_limits("q", rate=1, per_s=60, burst=5)
            client.advance(50)
            given += len(client.claim("q", n=10, lease_s=7_200))
        assert 50 <= given <= 55


def test_it_is_the_same_register_whoever_sets_it_and_other_limits_are_another() -> None:
    cluster = MemoryCluster(1_900_000_000)
    anna, bert = cluster.client(holder="anna"), cluster.client(holder="bert")
    assert anna.set_limits("q", concurrency=2) == []
    first = register(cluster)
    cluster.advance(10)
    assert bert.set_limits("q", concurrency=2) == []
    assert register(cluster) == first and first.writer == "anna"
    bert.set_limits("q", concurrency=3)
    assert register(cluster).version > first.version


@pytest.mark.parametrize("lasts_s", [0, 10])
def test_limits_that_were_removed_are_set_anew(lasts_s: int) -> None:
    """Meanwhile everything was granted: what was known of the claims says nothing."""
    with MemoryClient(now=1_900_000_000) as client:
        client.set_limits("q", concurrency=2)
        first = register(client.cluster)
        client.remove_limits("q")
        removed = register(client.cluster)
        client.advance(lasts_s)
        client.set_limits("q", concurrency=2)
        assert register(client.cluster).version > removed.version > first.version


class Uncounting(MemoryClient):
    """Reaches no majority of some partition."""

    def _perform(self, step: Any) -> Any:
        if isinstance(step, Ask) and isinstance(step.message, Count):
            raise Refused("unavailable", "fewer than a majority")
        return super()._perform(step)


def test_quotas_are_told_whether_what_is_open_can_be_counted_or_not() -> None:
    with Uncounting() as client:
        assert client.quota_use() == {}
        client.set_quota("b.", 4)
        client.set_quota("a.", 7)

        found = client.quota_use()
        assert found == {"a.": QuotaUse(7, None), "b.": QuotaUse(4, None)} and [*found] == ["a.", "b."]


def test_quotas_count_what_is_open_of_queues_that_begin_so_and_nothing_of_workflows() -> None:
    with MemoryClient() as client:
        client.enqueue_many("w.a", [b"x"] * 3)
        client.enqueue("w.b", b"x", delay_s=60)
        client.complete(client.claim_one("w.a"))
        client.cancel(client.enqueue("w.a", b"x"))
        client.enqueue("wf.nightly.step", b"x")
        client.enqueue("other", b"x")
        for prefix in ("w", "w.a", "none"):
            client.set_quota(prefix, 9)

        assert client.quota_use() == {"none": QuotaUse(9, 0), "w": QuotaUse(9, 3), "w.a": QuotaUse(9, 2)}
