"""Lines of JSON: complete, in order, in memory that does not grow with them, and to their reader's pace."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import psutil
import pytest

from gateway.asking import Asker
from skuld_py.client.client import Client
from skuld_py.embedded.local import LocalCluster

pytestmark = pytest.mark.cluster
TASKS, PAYLOAD = 20_000, b"\x00" * 2_000
GROWTH_MAX = 40 << 20


def test_a_list_is_complete_and_in_order(anybody: Asker, cluster: LocalCluster, queue: str) -> None:
    with Client(cluster.addresses) as client:
        ids = [str(task_id) for _ in range(3) for task_id in client.enqueue_many(queue, [b"x"] * 700)]

    answer = anybody.get(f"/v1/tasks/list?queue={queue}")

    assert answer.headers["content-type"] == "application/x-ndjson"
    assert [row["id"] for row in answer.lines] == sorted(ids)
    assert [row["id"] for row in anybody.get(f"/v1/tasks/list?queue={queue}&limit=701").lines] == sorted(ids)[:701]
    assert {*ids} <= {row["id"] for row in anybody.get("/v1/tasks/list").lines}
    assert all("log" not in claim for row in answer.lines for claim in row["claims"])


def test_a_list_of_nothing_is_empty(anybody: Asker) -> None:
    answer = anybody.get("/v1/tasks/list?queue=never-heard-of")

    assert (answer.status, answer.body) == (200, b"")


def test_many_tasks_are_read_by_their_ids(anybody: Asker, cluster: LocalCluster, queue: str) -> None:
    with Client(cluster.addresses) as client:
        ids = [str(task_id) for task_id in client.enqueue_many(queue, [b"x" * 100_000] * 60)]

    answer = anybody.post("get_many", {"ids": [*ids, "0" * 32, ids[0]]})

    assert sorted(row["id"] for row in answer.lines) == sorted(ids)


@pytest.mark.slow
def test_a_list_takes_bounded_memory_and_waits_for_its_reader(cluster: LocalCluster, queue: str) -> None:
    url, process = cluster.start_gateway()
    asker = Asker(url)
    with Client(cluster.addresses, timeout_s=30) as client:
        for _ in range(TASKS // 1_000):
            client.enqueue_many(queue, [PAYLOAD] * 1_000)
    asker.get(f"/v1/tasks/list?queue={queue}&limit=2000")
    gateway = psutil.Process(process.pid)
    before, most, read = gateway.memory_info().rss, 0, 0

    with asker.streaming(f"/v1/tasks/list?queue={queue}") as answer:
        while part := answer.read(1 << 20):
            read += len(part)
            most = max(most, gateway.memory_info().rss)
    with asker.streaming(f"/v1/tasks/list?queue={queue}") as answer:
        assert answer.readline()
        spent = sum(gateway.cpu_times()[:2])
        until = time.monotonic() + 2  # whatever it read on would show by then
        while time.monotonic() < until:
            most = max(most, gateway.memory_info().rss)
            time.sleep(0.1)
        assert sum(gateway.cpu_times()[:2]) - spent < 1.5

    assert read > TASKS * len(PAYLOAD) * 4 / 3
    assert most - before < GROWTH_MAX, (before, most, read)


def test_a_log_is_followed_until_its_task_is_completed(anybody: Asker, queue: str) -> None:
    anybody.enqueue(queue)
    held = anybody.claim(queue, lease_s=60)
    name = {name: held[name] for name in ("id", "token", "proof")}
    anybody.post("append", {**name, "seq": 0, "entries": [{"data": "0"}, {"data": "1"}]})
    found: list[dict[str, Any]] = []
    with anybody.streaming(f"/v1/tasks/{held['id']}/log?follow=true&token={held['token']}&wait_s=30") as answer:
        found += [json.loads(answer.readline()) for _ in range(2)]
        anybody.post("append", {**name, "seq": 2, "entries": [{"data": "2"}]})
        found.append(json.loads(answer.readline()))
        anybody.post("append", {**name, "seq": 3, "entries": [{"data": "3"}]})
        anybody.post("complete", name)
        rest = answer.read()

    found += [json.loads(line) for line in rest.splitlines()]
    assert [(line["token"], line["seq"], line["data"]) for line in found] == [
        (held["token"], seq, str(seq)) for seq in range(4)]
    assert anybody.get(f"/v1/tasks/{held['id']}/log").lines == found


def test_a_log_is_followed_for_no_longer_than_asked(anybody: Asker, queue: str) -> None:
    task_id = anybody.enqueue(queue)

    assert anybody.get(f"/v1/tasks/{task_id}/log?follow=true&wait_s=0.5").body == b""


def test_the_log_of_a_claim_that_never_was_is_404(anybody: Asker, queue: str) -> None:
    task_id = anybody.enqueue(queue)

    answer = anybody.get(f"/v1/tasks/{task_id}/log?token={1 << 32}")

    assert (answer.status, answer.json["code"], answer.json["field"]) == (404, "no_such_claim", "token")


def test_readers_who_leave_give_their_places_back(narrow: Asker, queue: str) -> None:
    task_id = narrow.enqueue(queue)
    for _ in range(10):
        with narrow.streaming(f"/v1/tasks/{task_id}/log?follow=true") as answer:
            assert answer.status == 200
        while narrow.get("/v1/health").status == 503:
            pass

    assert narrow.get("/v1/queues").status == 200


@pytest.mark.slow
def test_streams_and_verbs_go_on_side_by_side(anybody: Asker, queue: str) -> None:
    task_id = anybody.enqueue(queue)
    following = [threading.Thread(target=anybody.get, args=(f"/v1/tasks/{task_id}/log?follow=true&wait_s=3",))
                 for _ in range(20)]
    for thread in following:
        thread.start()

    for _ in range(10):
        anybody.enqueue(queue)
    assert len([0 for _ in range(11) if anybody.claim(queue)]) == 11

    for thread in following:
        thread.join(30)
