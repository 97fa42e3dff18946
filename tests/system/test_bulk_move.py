"""Tasks moved on real nodes while workers claim them, by movers that are killed halfway: each is done once."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from skuld_py import Client
from skuld_py.embedded.local import LocalCluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
TASKS, KILLS = 1_500, 3
SKULD = [sys.executable, "-m", "skuld_py"]


@contextmanager
def mover(cluster: LocalCluster) -> Iterator[subprocess.Popen[bytes]]:
    words = ["bulk", "move", "first", "--to", "then", "--json", "--nodes", ",".join(cluster.addresses)]
    process = subprocess.Popen([*SKULD, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def work(cluster: LocalCluster, queue: str, done: Counter[bytes], over: threading.Event) -> None:
    """Claim and complete one after the other, until all is over."""
    with Client(cluster.addresses, timeout_s=30, holder=f"of-{queue}") as client:
        while not over.is_set():
            for claim in client.claim(queue, n=3, lease_s=600, wait_s=0.2):
                done[claim.payload] += 1
                client.complete(claim)


def test_tasks_that_killed_movers_move_are_each_done_once(calm: LocalCluster) -> None:
    cluster = calm
    payloads = [f"{number}".encode() for number in range(TASKS)]
    done, over = Counter[bytes](), threading.Event()
    with Client(cluster.addresses, timeout_s=60) as client:
        for start in range(0, TASKS, 500):
            client.enqueue_many("first", payloads[start : start + 500])
        worker = threading.Thread(target=work, args=(cluster, "first", done, over))
        worker.start()
        try:
            for _ in range(KILLS):
                before = client.count("then")
                with mover(cluster) as process:
                    while process.poll() is None and client.count("then") == before:
                        over.wait(0.02)
            with mover(cluster) as process:
                told, errors = process.communicate(timeout=120)
        finally:
            over.set()
            worker.join()
        assert process.returncode == 0, errors
        of_first = done.total()
        left = client.depths()["first"]
        assert left.waiting == left.claimed == left.blocked == 0, told
        while claims := client.claim("then", n=500, lease_s=600, wait_s=5):
            done.update(claim.payload for claim in claims)
            client.complete_many(claims)

        ends = client.depths()
        assert done == Counter(payloads), [payload for payload in payloads if done[payload] != 1]
        assert ends["first"].completed == of_first and ends["then"].completed == TASKS - of_first > 0
        assert ends["then"].total == ends["then"].completed + ends["then"].cancelled


def test_what_is_moved_goes_on_though_the_leader_of_its_first_task_is_killed(cluster: LocalCluster) -> None:
    with Client(cluster.addresses, timeout_s=60) as client:
        client.enqueue_many("first", [b"x"] * 40)
        held = client.claim("first", n=3, lease_s=600)
        moved = client.move_all("first", "then")
        cluster.kill_node(0)

        assert (moved.count, moved.held) == (40 - len(held), len(held))
        claims = 0
        while found := client.claim("then", n=40, lease_s=600, wait_s=20 if claims < moved.count else 0):
            claims += len(found)
            client.complete_many(found)
        assert claims == moved.count
