"""The session of Skuld's README, through the Python client on real processes."""

from __future__ import annotations

import time

import pytest

from skuld_py import Client, Fenced, Refused, Uncertain
from skuld_py.client.client import ClaimName
from skuld_py.embedded.local import LocalCluster

pytestmark = pytest.mark.cluster


def test_the_readme_session(calm: LocalCluster) -> None:
    with Client(calm.addresses[:2]) as client:
        assert client.count() == 0

        task_id = client.enqueue("general", b"sup?")
        assert client.count() == 1
        listed = list(client.list())
        assert [(task.id, task.payload, task.claims) for task in listed] == [(task_id, b"sup?", ())]

        first = client.claim_one("general", lease_s=1)
        assert first is not None and first.id == task_id and first.payload == b"sup?"
        second = client.claim_one("general", lease_s=10)
        assert second is None or first.remaining_s < 0, "a machine that stood still asks when the lease is over"

        second = second or client.claim_one("general", lease_s=10, wait_s=30)
        assert second is not None and second.id == task_id
        assert second.token > first.token
        assert first.remaining_s < 0, "the task was granted again while the first holder still held it"

        client.complete(second)
        task = client.get(task_id)
        assert [claim.token for claim in task.claims] == [first.token, second.token]
        assert [claim.completed_ms is not None for claim in task.claims] == [False, True]
        assert client.claim("general", lease_s=10) == []
        assert client.depths()["general"].completed == 1


def test_renew_update_release_and_the_fence(shared: LocalCluster, queue: str) -> None:
    with Client(shared.addresses) as client:
        task_id = client.enqueue(queue, b"work")
        first = client.claim_one(queue, lease_s=30)
        assert first is not None
        assert client.update(first, [b"a", b"b"]) == 2
        client.renew(first, lease_s=300)
        assert first.remaining_s > 250

        client.release(first)
        second = client.claim_one(queue, wait_s=30)
        assert second is not None and second.token > first.token
        with pytest.raises(Fenced):
            client.renew(first)
        client.update(second, b"c", w=3)  # a copy that was late could take the other content, through another node
        with pytest.raises((Refused, Uncertain), match="other content") as refused:
            client.update(second, b"other", seq=0)
        assert refused.value.code == "conflict", "in doubt if a copy is silent meanwhile, else refused"

        task = client.get(task_id)
        assert [claim.log for claim in task.claims] == [(b"a", b"b"), (b"c",)]
        assert [claim.is_released for claim in task.claims] == [True, False]

        client.complete(first)
        assert client.get(task_id).completed_token == first.token, "a late completion counts"
        with pytest.raises(Fenced):
            client.renew(second)


def test_order_priority_and_batches(shared: LocalCluster, queue: str) -> None:
    with Client(shared.addresses) as client:
        ids = client.new_ids(6)
        for task_id, priority in zip(ids, [0, 0, 7, -7, 7, 0], strict=True):
            client.enqueue(queue, b"", priority=priority, id=task_id)

        claims = client.claim(queue, n=10)

        assert [ids.index(claim.id) for claim in claims] == [2, 4, 0, 1, 5, 3]
        client.complete_many(claims)
        assert client.depths()[queue].completed == 6


def test_enqueue_is_idempotent_by_id_and_refuses_other_content(shared: LocalCluster, queue: str) -> None:
    with Client(shared.addresses) as client:
        task_id = client.new_ids()[0]
        for _ in range(3):
            assert client.enqueue(queue, b"one", id=task_id, w=3) == task_id
        with pytest.raises(Refused, match="other content"):
            client.enqueue(queue, b"two", id=task_id)

        assert client.count(queue) == 1
        assert client.get(str(task_id)).payload == b"one"


def test_a_parked_claim_is_woken_by_an_enqueue_elsewhere(shared: LocalCluster, queue: str) -> None:
    """A long poll needs no polling: it ends soon after the task is there, whoever leads its partition."""
    from concurrent.futures import ThreadPoolExecutor

    with Client(shared.addresses[:1]) as waiting, Client(shared.addresses[2:]) as other, \
            ThreadPoolExecutor(1) as pool:
        took_s: list[float] = []
        for _ in range(6):
            parked = pool.submit(waiting.claim, queue, wait_s=40)
            start = time.monotonic()
            other.enqueue(queue, b"x")
            claims = parked.result(timeout=60)
            took_s.append(time.monotonic() - start)
            assert len(claims) == 1
            waiting.complete_many(claims)
    assert sorted(took_s)[-2] < 3, "one of them may meet a machine that stands still"


def test_bad_input_is_refused_by_name_and_the_nodes_stay_up(shared: LocalCluster, queue: str) -> None:
    with Client(shared.addresses) as client:
        task_id = client.new_ids()[0]
        for call, code in (
            (lambda: client.enqueue("no spaces", b""), "bad_name"),
            (lambda: client.enqueue("", b""), "bad_name"),
            (lambda: client.enqueue(queue, "text"), "bad_payload"),  # type: ignore[arg-type]
            (lambda: client.enqueue(queue, bytes((1 << 20) + 1)), "payload_too_large"),
            (lambda: client.enqueue(queue, b"", priority=1 << 31), "bad_priority"),
            (lambda: client.enqueue(queue, b"", w=9), "bad_w"),
            (lambda: client.enqueue(queue, b"", id=b"\xff" * 8 + bytes(12)), "future_id"),
            (lambda: client.enqueue(queue, b"", id="short"), "bad_id"),
            (lambda: client.claim(queue, n=0), "bad_count"),
            (lambda: client.claim(queue, lease_s=float("nan")), "bad_duration"),
            (lambda: client.claim(queue, lease_s=10 * 86_400), "bad_duration"),
            (lambda: client.get(task_id), "no_such_task"),
            (lambda: client.renew(ClaimName(task_id, 1)), "bad_token"),
            (lambda: client.renew(ClaimName(task_id, 1 << 32)), "unknown_claim"),
        ):
            with pytest.raises(Refused) as refusal:
                call()  # type: ignore[no-untyped-call]
            assert refusal.value.code == code

        assert client.count(queue) == 0
        assert client.enqueue(queue, bytes(1 << 20)), "the largest payload is taken"


def test_a_full_mebibyte_travels_both_ways(shared: LocalCluster, queue: str) -> None:
    payload = bytes(range(256)) * 4096
    with Client(shared.addresses) as client:
        client.enqueue_many(queue, [payload] * 30)

        claims = [claim for _ in range(30) for claim in client.claim(queue, n=3)]

        assert len(claims) == 30 and all(claim.payload == payload for claim in claims)


def test_nobody_home_is_a_definite_refusal() -> None:
    with Client("127.0.0.1:9", timeout_s=0.5) as client, pytest.raises(Refused, match="can be reached"):
        client.count()
