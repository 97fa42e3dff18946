"""kill -9 of a node under load: no acknowledged task is lost, none is held twice at once."""

from __future__ import annotations

import threading
import time

import attrs
import pytest

from skuld_py import Claim, Client, SkuldError, Uncertain
from skuld_py.client.client import Depth
from skuld_py.embedded.local import LocalCluster
from system.conftest import await_leaders

pytestmark = pytest.mark.cluster


@attrs.define
class Load:
    """Clients at work, and what they were told."""

    addresses: list[str]
    acked: list[bytes] = attrs.field(factory=list)
    holds: list[tuple[bytes, int, float, float]] = attrs.field(factory=list)
    completed: dict[bytes, None] = attrs.field(factory=dict)
    errors: list[SkuldError] = attrs.field(factory=list)
    is_over: threading.Event = attrs.field(factory=threading.Event)
    is_drained: threading.Event = attrs.field(factory=threading.Event)

    def enqueue(self) -> None:
        """Enqueue small batches until told to stop."""
        with Client(self.addresses, timeout_s=15) as client:
            while not self.is_over.is_set():
                ids = client.new_ids(20)
                try:
                    client.enqueue_many("load", [bytes(task_id) for task_id in ids], ids=ids)
                    self.acked += ids
                except Uncertain as error:
                    self.errors.append(error)

    def work(self, number: int) -> None:
        """Claim; complete most, abandon some; until drained."""
        with Client(self.addresses, timeout_s=15, holder=f"worker-{number}") as client:
            while not self.is_drained.is_set():
                try:
                    self._round(client, number)
                except Uncertain as error:
                    self.errors.append(error)

    def _round(self, client: Client, number: int) -> None:
        start = time.monotonic()
        claims = client.claim("load", n=10, lease_s=1, wait_s=0.5)
        granted = time.monotonic()
        kept = [claim for index, claim in enumerate(claims) if (index + number) % 7]
        self.note(claims, granted, kept, client)
        assert granted - start < 30

    def note(self, claims: list[Claim], granted: float, kept: list[Claim], client: Client) -> None:
        """Complete what is kept and record for how long each claim was surely held."""
        try:
            client.complete_many(kept)
            done = time.monotonic()
        except Uncertain:
            done, kept = None, []
        names = {claim.id for claim in kept}
        for claim in claims:
            assert claim.payload == claim.id
            stop = min(claim.deadline, done) if claim.id in names and done else claim.deadline
            self.holds.append((claim.id, claim.token, granted, stop))
        self.completed.update((claim.id, None) for claim in kept)


def double_holds(holds: list[tuple[bytes, int, float, float]]) -> list[tuple[bytes, int, int]]:
    """Pairs of claims of one task whose times overlap, or whose tokens do not rise."""
    found = []
    last: dict[bytes, tuple[int, float]] = {}
    for task_id, token, start, stop in sorted(holds, key=lambda hold: (hold[0], hold[2])):
        before = last.get(task_id)
        if before is not None and (start < before[1] or token <= before[0]):
            found.append((task_id, before[0], token))
        last[task_id] = (token, stop)
    return found


def test_the_check_for_double_holds_can_fail() -> None:
    assert not double_holds([(b"t", 1, 0.0, 1.0), (b"t", 2, 1.0, 2.0), (b"u", 1, 0.5, 9.0)])
    assert double_holds([(b"t", 1, 0.0, 1.0), (b"t", 2, 0.9, 2.0)])
    assert double_holds([(b"t", 2, 0.0, 1.0), (b"t", 2, 3.0, 4.0)])


def test_a_node_is_killed_under_load(cluster: LocalCluster) -> None:
    load = Load(cluster.addresses)
    enqueuers = [threading.Thread(target=load.enqueue) for _ in range(2)]
    workers = [threading.Thread(target=load.work, args=(number,)) for number in range(3)]
    for thread in (*enqueuers, *workers):
        thread.start()
    with Client(cluster.addresses, timeout_s=20) as client:
        _await(client, lambda depth: depth.completed >= 500)
        before = len(load.acked)

        cluster.kill_node(0)
        _await(client, lambda depth: len(load.acked) > before + 1_000)
        during = len(load.acked)
        cluster.start_node(0)
        _await(client, lambda depth: len(load.acked) > during + 1_000)

        load.is_over.set()
        for thread in enqueuers:
            thread.join()
        await_leaders(client)
        _await(client, lambda depth: depth.waiting == 0 and depth.claimed == 0)
        load.is_drained.set()
        for thread in workers:
            thread.join()

        acked = set(load.acked)
        found = {task.id: task for start in range(0, len(load.acked), 500)
                 for task in client.get_many(load.acked[start : start + 500])}
        assert acked <= set(found), f"{len(acked - set(found))} of {len(acked)} acknowledged tasks are lost"
        assert all(task.is_completed for task in found.values())
    assert double_holds(load.holds) == []
    assert len(load.holds) > len(load.completed), "some claims were abandoned, so tasks were granted again"


def _await(client: Client, is_true: object, timeout_s: float = 60) -> None:
    """Return when the counts of the queue say so; each look waits at a node."""
    deadline = time.monotonic() + timeout_s
    while not is_true(client.depths().get("load", Depth(0, 0, 0))):  # type: ignore[operator]
        assert time.monotonic() < deadline, client.depths()
        client.claim("nothing-here", wait_s=0.1)
