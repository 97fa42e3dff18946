"""Threads that share one client: their single calls share requests, and each gets its own outcome."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

from client.doors import node_in_memory, scripted
from skuld_py import Client, Refused
from skuld_py.model import messages as m


def tasks_of(message: m.Message) -> int:
    assert isinstance(message, m.Enqueue)
    return sum(len(batch.ids) // 20 for batch in message.batches)


def test_calls_that_wait_for_the_one_under_way_leave_together() -> None:
    with scripted(lambda *_: m.Acked(0, 2), is_open=False) as door, Client(door.address) as client, \
            ThreadPoolExecutor(21) as threads:
        is_under_way = threading.Event()
        door.script = lambda n, _: is_under_way.set() or m.Acked(0, 2)  # type: ignore[func-returns-value]
        first = threads.submit(client.enqueue, "q", b"0")
        assert is_under_way.wait(60)
        others = [threads.submit(client.enqueue, "q", str(n).encode()) for n in range(20)]
        for _ in range(2_000):
            with client._lanes_lock:
                if sum(len(lane.open[-1].members) for lane in client._lanes.values()) == len(others):
                    break
            time.sleep(0.005)
        door.is_open.set()
        made = {call.result(10) for call in (first, *others)}

    assert len(made) == 21
    asked = groupby(map(tasks_of, door.asked))  # what is not answered for long is asked once more
    assert [count for count, _ in asked] == [1, 20]


def test_one_conflict_among_many_is_its_threads_alone() -> None:
    with node_in_memory() as address, Client(address) as client, ThreadPoolExecutor(20) as threads:
        taken = client.enqueue("q", b"first")
        calls = [threads.submit(client.enqueue, "q", b"x") for _ in range(100)]
        conflicting = threads.submit(client.enqueue, "q", b"other", id=taken)

        assert isinstance(conflicting.exception(10), Refused)
        assert len({call.result(10) for call in calls}) == 100
        assert client.count("q") == 101
