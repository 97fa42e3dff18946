"""Threads, coroutines and forked processes on the clients of one module, interrupted and cancelled at random.

No call hangs, none is overdue, and what was acknowledged is there, once. ``scripts/storm`` runs it for a minute
with 500 threads, 500 coroutines and 8 processes.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from skuld_py import AsyncClient, Client
from skuld_py.embedded.local import LocalCluster
from system import storm
from system.storm import SLACK_S, TIMEOUT_S, Storm

SECONDS = float(os.environ.get("SKULD_TEST_STORM_S", "4"))
THREADS = int(os.environ.get("SKULD_TEST_STORM_THREADS", "40"))
COROUTINES = int(os.environ.get("SKULD_TEST_STORM_COROUTINES", "40"))
PROCESSES = int(os.environ.get("SKULD_TEST_STORM_PROCESSES", "3"))
READ_S = 20.0
"""Nodes that were asked for more than they can do are soon themselves again."""
END_S = 4 * TIMEOUT_S + SLACK_S


@pytest.mark.slow
def test_no_call_hangs_and_what_was_acknowledged_is_there_once(cluster: LocalCluster, tmp_path: Path) -> None:
    client = Client(cluster.addresses, timeout_s=TIMEOUT_S)
    storm.CLIENTS[:] = [client]
    storm.ASYNC_CLIENTS[:] = [AsyncClient(cluster.addresses, timeout_s=TIMEOUT_S)]
    here = Storm("storm", time.monotonic() + SECONDS)
    client.enqueue("storm", b"before")

    threads = [threading.Thread(target=here.in_thread, args=(client,), daemon=True) for _ in range(THREADS)]
    loop = threading.Thread(target=lambda: asyncio.run(_in_loop(here)), daemon=True)
    striker = threading.Thread(target=here.strike, daemon=True)
    for thread in (*threads, loop, striker):
        thread.start()
    reports = [tmp_path / f"report-{number}" for number in range(PROCESSES)]
    children = []
    for path in reports:
        time.sleep(SECONDS / 3 / PROCESSES)
        children.append(storm.fork(here, path))
    _await([*threads, loop, striker], children, here.until + END_S)
    client.close()

    for path in reports:
        here.report.add(json.loads(path.read_text(encoding="ascii")))
    _judge(here, cluster)


async def _in_loop(here: Storm) -> None:
    async with storm.ASYNC_CLIENTS[0] as client:
        await here.in_loop(client, COROUTINES)


def _await(threads: list[threading.Thread], children: list[int], until: float) -> None:
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    hanging = [thread.name for thread in threads if thread.is_alive()]
    ended: dict[int, int] = {}
    while len(ended) < len(children) and time.monotonic() < until:
        for child in children:
            if child not in ended and (found := os.waitpid(child, os.WNOHANG))[0]:
                ended[child] = found[1]
        time.sleep(0.02)
    for child in {*children} - ended.keys():
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert not hanging, f"{len(hanging)} threads hang"
    assert list(ended.values()) == [0] * len(children), "children hang or failed"


def _judge(here: Storm, cluster: LocalCluster) -> None:
    report = here.report
    sys.stdout.write(f"{report.calls} calls, {report.struck} struck, {len(report.made)} acknowledged,"
                     f" {len(report.held)} claims; {report.codes}; overdue: {report.overdue}\n")
    with Client(cluster.addresses, timeout_s=READ_S) as client:
        stored = {str(task.id): task.payload.decode() for task in client.list("storm")}
    assert not report.overdue
    assert report.struck and report.made and report.held
    assert [made for made in report.made if stored.get(made[0]) != made[1]] == []
    assert [each for each, count in Counter(task for task, _ in report.made).items() if count > 1] == []
    assert [each for each, count in Counter(stored.values()).items() if count > 1] == []
    assert [each for each, count in Counter(report.held).items() if count > 1] == []
    codes = {code.partition(" ")[2] for code in report.codes}
    assert codes <= {"deadline", "unsent", "fenced", "uncertain", "busy"}
