"""Clients at work on a real cluster, what they were told, and what must hold of it at the end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import attrs

from skuld_py import Claim, Client, SkuldError, Uncertain
from skuld_py.client.client import Depth
from system.conftest import await_leaders, linger

PACE_S = 0.1
"""Between two batches of one producer: there is always load, and time for what is tested under it."""


@attrs.define
class Load:
    """Clients at work, and what they were told."""

    addresses: list[str]
    acked: list[bytes] = attrs.field(factory=list)
    holds: list[Hold] = attrs.field(factory=list)
    completed: dict[bytes, None] = attrs.field(factory=dict)
    errors: list[SkuldError] = attrs.field(factory=list)
    is_over: threading.Event = attrs.field(factory=threading.Event)
    is_drained: threading.Event = attrs.field(factory=threading.Event)

    def enqueue(self) -> None:
        """Enqueue small batches until told to stop."""
        with Client(self.addresses, timeout_s=15) as client:
            while not self.is_over.wait(PACE_S):
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
        claims = client.claim("load", n=25, lease_s=1, wait_s=0.5)
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

    def await_completions(self, client: Client, timeout_s: float = 120) -> None:
        """Return when all that was acknowledged is completed. A count may come to nothing before: a leader counts
        what it has copies of, and hears of others by an exchange."""
        deadline, left = time.monotonic() + timeout_s, self.acked
        while left := [task.id for start in range(0, len(left), 500)
                       for task in client.get_many(left[start : start + 500]) if not task.is_completed]:
            assert time.monotonic() < deadline, client.get_many(left[:5])
            linger(client)

    def judge(self, client: Client) -> None:
        """Nothing acknowledged is lost, all of it is completed, and nobody held what another held."""
        acked = set(self.acked)
        found = {task.id: task for start in range(0, len(self.acked), 500)
                 for task in client.get_many(self.acked[start : start + 500])}
        assert acked <= set(found), f"{len(acked - set(found))} of {len(acked)} acknowledged tasks are lost"
        assert [task for task in found.values() if not task.is_completed] == []
        found_twice = double_holds(self.holds)
        assert not found_twice, f"held twice: {found_twice}"


Hold = tuple[bytes, int, float, float]
"""A task, a token, and the seconds between which it was surely held."""


def double_holds(holds: list[Hold]) -> list[tuple[Hold, Hold]]:
    """Pairs of claims of one task whose times overlap, or whose tokens do not rise. A claim whose lease was over
    when its holder was told was never held."""
    found: list[tuple[Hold, Hold]] = []
    last: dict[bytes, Hold] = {}
    for hold in sorted(holds, key=lambda hold: (hold[0], hold[2])):
        task_id, token, start, stop = hold
        if start >= stop:
            continue
        before = last.get(task_id)
        if before is not None and (start < before[3] or token <= before[1]):
            found.append((before, hold))
        last[task_id] = hold
    return found


@contextmanager
def at_work(addresses: list[str], enqueuers: int = 2, workers: int = 3) -> Iterator[tuple[Load, Client]]:
    """Load while inside; then everything is drained, and all that was acknowledged must be there, completed."""
    load = Load(addresses)
    producing = [threading.Thread(target=load.enqueue) for _ in range(enqueuers)]
    working = [threading.Thread(target=load.work, args=(number,)) for number in range(workers)]
    for thread in (*producing, *working):
        thread.start()
    try:
        with Client(addresses, timeout_s=20) as client:
            yield load, client
            load.is_over.set()
            for thread in producing:
                thread.join()
            await_leaders(client)
            await_depth(client, lambda depth: depth.waiting == 0 and depth.claimed == 0)
            load.await_completions(client)
            load.is_drained.set()
            for thread in working:
                thread.join()
            load.judge(client)
    finally:
        load.is_over.set()
        load.is_drained.set()
        for thread in (*producing, *working):
            thread.join()


def await_depth(client: Client, is_true: Callable[[Depth], bool], timeout_s: float = 120) -> None:
    """Return when the counts of the queue say so; each look waits at a node."""
    deadline = time.monotonic() + timeout_s
    while not is_true(client.depths().get("load", Depth(0, 0, 0))):
        assert time.monotonic() < deadline, client.depths()
        linger(client)
