"""Whatever waits where, a claim is given the best of all, and nothing that has expired; chunks do not show."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skuld_py.model.body import Header
from skuld_py.model.memory_store import MemoryStore
from skuld_py.node.claims import pick
from skuld_py.partition.data.replica import Replica
from skuld_py.partition.data.tables import ODD, PLAIN, place_of

NOW_MS = 1_000
MARKS = (PLAIN, PLAIN, ODD, *(ODD + (NOW_MS + left_ms).to_bytes(8, "big") for left_ms in (2, 1, 0)))
OVER = MARKS[-2:]
"""Of what has expired, or does so within a millisecond."""
TASKS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.sampled_from(MARKS)), max_size=40)


@given(TASKS, st.integers(1, 45))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_best_are_picked(monkeypatch: pytest.MonkeyPatch, tasks: list[tuple[int, int, bytes]],
                             count: int) -> None:
    """Tasks, in the order of their ids, by partition, priority and mark."""
    monkeypatch.setattr(pick, "FIRST_CHUNK", 2)
    replicas = [Replica(partition, MemoryStore(), 0) for partition in range(3)]
    alive: list[tuple[bytes, int]] = []
    for number, (partition, priority, mark) in enumerate(tasks):
        head = place_of(Header("q", priority)) + number.to_bytes(20, "big")
        replica = replicas[partition]
        replica.store.put_many("ready", [(replica.prefix + head, mark)])
        if mark not in OVER:
            alive.append((head, partition))

    vnodes: Any = {partition: SimpleNamespace(replica=replica) for partition, replica in enumerate(replicas)}
    picked = pick.pick(NOW_MS, vnodes, "q", count)

    best = sorted(alive)[:count]
    assert picked == {partition: heads for partition in range(3)
                      if (heads := [head for head, where in best if where == partition])}


def test_many_that_have_expired_are_passed_over_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    replica = Replica(0, MemoryStore(), 0)
    place = place_of(Header("q"))
    heads = [place + number.to_bytes(20, "big") for number in range(1_001)]
    replica.store.put_many("ready", [(replica.prefix + head, MARKS[-1]) for head in heads[:-1]])
    replica.store.put_many("ready", [(replica.prefix + heads[-1], PLAIN)])
    read: list[int] = []
    scan = replica.store.scan
    monkeypatch.setattr(replica.store, "scan", lambda *words: read.append(words[-1]) or scan(*words))

    vnodes: Any = {0: SimpleNamespace(replica=replica)}
    assert pick.pick(NOW_MS, vnodes, "q", 1) == {0: [heads[-1]]}
    assert len(read) <= 10
