"""What ends by time ends when that time is over, and not when something else is looked at."""

from __future__ import annotations

import pytest

from skuld_py.testing import MemoryClient

NOW = 1_900_000_000.0


@pytest.fixture
def client() -> MemoryClient:
    return MemoryClient(now=NOW)


def test_a_task_is_dead_as_soon_as_it_has_expired(client: MemoryClient) -> None:
    first = client.enqueue("q", b"x", expires=NOW + 5)
    then = client.enqueue("q", b"x", deps=[first], on_dep_failure="fail")
    client.advance(4.999)
    assert client.get(first).state == "waiting"
    client.advance(0.002)
    assert [client.get(task_id).death for task_id in (first, then)] == ["expired", "dep_failed"]


def test_who_waits_for_the_end_hears_of_it_then(client: MemoryClient) -> None:
    task_id = client.enqueue("q", b"x", expires=NOW + 7)
    end, = client.ends([task_id], wait_s=600)
    assert end.state == "dead" and 7 <= client.cluster.steady_s() - NOW < 7.1


def test_many_that_expire_at_once_are_seen_to_one_after_the_other(client: MemoryClient) -> None:
    client.enqueue_many("q", [b"x"] * 5_000, expires=[NOW + 5] * 5_000)
    client.advance(5.5)
    assert client.count("q", states=["dead"]) == 5_000


@pytest.mark.parametrize("wait_s", [0.5, 10.0, 45.0, 100.0])
def test_a_task_waits_for_what_nobody_knows_no_longer_than_it_says(client: MemoryClient, wait_s: float) -> None:
    unknown = MemoryClient(now=NOW).enqueue("q", b"x")
    task_id = client.enqueue("q", b"x", deps=[unknown], dep_wait_s=wait_s)
    client.advance(wait_s - 0.1)
    assert client.get(task_id).state == "blocked"
    client.advance(0.3)
    assert client.get(task_id).death == "dep_unknown"
