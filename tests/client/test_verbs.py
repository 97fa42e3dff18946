"""Every verb through every client: over sockets that block, over sockets that are awaited, and in memory."""

from __future__ import annotations

import asyncio
import inspect
import math
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import product
from typing import Any
from uuid import UUID
from zlib import crc32

import attrs
import pytest

import skuld_py
from client.doors import node_in_memory
from skuld_py import AsyncClient, Client, Fenced, Refused, Retry, Uncertain
from skuld_py.client.archiving import Page
from skuld_py.client.asking import Work, stream, verb
from skuld_py.client.attending import WorkerSeats, WorkerStatus
from skuld_py.client.claims import ClaimName
from skuld_py.client.limiting import QuotaUse
from skuld_py.client.moving import Moved
from skuld_py.client.reading import Depth, TaskPage
from skuld_py.client.selecting import PAGE, Selecting
from skuld_py.client.verbs import Verbs
from skuld_py.client.waiting import End
from skuld_py.model.ids import time_of, to_text
from skuld_py.model.limiting import QueueLimits
from skuld_py.model.messages import ENDS_MAX
from skuld_py.model.task import LogEntry
from skuld_py.partition.copies.garbage import collect
from skuld_py.testing import AsyncMemoryClient, MemoryClient

VERBS = {name for of in Verbs.__mro__ for name, value in vars(of).items() if isinstance(value, verb | stream)}


class Blocked:
    """A client for asyncio as one that blocks."""

    def __init__(self, client: AsyncClient | AsyncMemoryClient, runner: asyncio.Runner) -> None:
        self._client = client
        self._runner = runner

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            answer = method(*args, **kwargs)
            if inspect.isasyncgen(answer):
                return self._runner.run(_listed(answer))
            return self._runner.run(answer)
        return call if callable(method) else method


async def _listed(items: Any) -> list[Any]:
    return [item async for item in items]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with node_in_memory() as address:
        yield address


@pytest.fixture(params=["sync", "async", "memory", "async memory"])
def client(request: pytest.FixtureRequest, address: str) -> Iterator[Any]:
    if request.param == "sync":
        with Client(address, holder="me") as blocking:
            yield blocking
    elif request.param == "memory":
        with MemoryClient(holder="me") as memory:
            yield memory
    else:
        with asyncio.Runner() as runner:
            made = (AsyncMemoryClient(holder="me") if "memory" in request.param
                    else AsyncClient(address, holder="me"))
            yield Blocked(made, runner)
            runner.run(made.close())


@pytest.fixture
def queue(request: pytest.FixtureRequest) -> str:
    """One that no other test has; the node is shared."""
    return f"q-{crc32(request.node.name.encode())}"


Story = Callable[[Any, str], None]
STORIES: dict[Story, tuple[str, ...]] = {}


def of(*verbs: str) -> Callable[[Story], Story]:
    """Say which verbs a story is about."""
    def note(story: Story) -> Story:
        STORIES[story] = verbs
        return story
    return note


@of("enqueue", "get")
def enqueued_is_there(client: Any, queue: str) -> None:
    task_id = client.enqueue(queue, b"one", priority=-3)

    task = client.get(task_id)
    assert (task.id, task.queue, task.priority, task.payload) == (task_id, queue, -3, b"one")
    assert client.get(str(task_id)) == task and not task.is_completed
    assert client.enqueue(queue, b"one", priority=-3, id=task_id) == task_id
    with pytest.raises(Refused) as refusal:
        client.enqueue(queue, b"two", id=task_id)
    assert refusal.value.code == "conflict"
    assert client.get(task_id) == task


@of("new_ids", "enqueue_many", "get_many")
def many_are_enqueued_under_ids_of_ones_own(client: Any, queue: str) -> None:
    task_ids = client.new_ids(3)

    assert client.enqueue_many(queue, [b"a", b"b", b"c"], ids=task_ids) == task_ids == sorted(task_ids)
    assert client.enqueue_many(queue, []) == []
    assert [task.payload for task in client.get_many(task_ids)] == [b"a", b"b", b"c"]
    assert client.get_many([b"\xff" * 20]) == []
    with pytest.raises(Refused, match="no task"):
        client.get(b"\xff" * 20)


@of("enqueue", "enqueue_many", "list")
def options_are_kept_with_the_task(client: Any, queue: str) -> None:
    soon = datetime(2026, 11, 22, 1, 8, 0, 250_000, tzinfo=UTC)
    chosen = {"expires": soon + timedelta(days=1), "headers": {"trace": "7", "by": "me"},
              "retry": Retry(3, 0.5, 1.5, 60, 0)}

    task = client.get(client.enqueue(queue, b"one", not_before=soon, **chosen))
    assert task.payload == b"one" and task.headers == {"by": "me", "trace": "7"}
    soon_ms = round(soon.timestamp() * 1_000)
    assert (task.not_before_ms, task.expires_ms) == (soon_ms, soon_ms + 86_400_000)
    assert attrs.astuple(task.retry) == (3, 500, 150, 60_000, 0)
    assert client.enqueue(queue, b"one", id=task.id, not_before=soon_ms / 1_000, **chosen) == task.id
    with pytest.raises(Refused, match="other content"):
        client.enqueue(queue, b"one", id=task.id, **chosen)
    many = client.enqueue_many(queue, [b"a", b"b", b"c"], not_before=[None, soon, None], priority=4)
    assert [client.get(each).not_before_ms for each in many] == [None, soon_ms, None]
    assert [each.payload for each in client.list(queue)] == [b"one", b"a", b"b", b"c"]


@of("enqueue", "enqueue_many", "new_ids", "claim")
def tasks_of_a_key_are_claimed_one_at_a_time(client: Any, queue: str) -> None:
    first = client.enqueue(queue, b"one", key="k")
    second, other, free = client.enqueue_many(queue, [b"two", b"three", b"four"], key=["k", "j", None], priority=3)
    assert client.count(queue, states=["blocked"]) == 1

    claims = client.claim(queue, n=9, lease_s=60)
    assert {claim.id for claim in claims} == {first, other, free}
    assert {claim.payload for claim in claims} == {b"one", b"three", b"four"}
    client.complete_many(claims)
    claim = client.claim_one(queue, lease_s=60)
    assert (claim.id, claim.payload) == (second, b"two")
    client.complete(claim)

    own = client.new_ids(2, queue=queue, key="k")
    assert client.enqueue_many(queue, [b"a", b"b"], ids=own, key="k") == own
    assert client.enqueue(queue, b"a", id=own[0], key="k") == own[0]
    for wrong in ({"key": "j"}, {}):
        with pytest.raises(Refused) as refusal:
            client.enqueue(queue, b"a", id=own[0], **wrong)
        assert refusal.value.code == "bad_id"


@of("enqueue", "enqueue_many")
def a_unique_name_is_one_task_in_a_window(client: Any, queue: str) -> None:
    first = client.enqueue(queue, b"one", unique="n", unique_window_s=86_400)
    assert not first.is_duplicate

    again = client.enqueue(queue, b"two", unique="n", unique_window_s=86_400, priority=3)
    assert again == first and again.is_duplicate
    assert client.get(first).payload == b"one" and client.count(queue) == 1
    many = client.enqueue_many(queue, [b"a", b"b", b"c", b"d"], unique=["m", "n", None, "m"],
                               key=[None, None, None, "k"], unique_window_s=86_400)
    assert [each.is_duplicate for each in many] == [False, True, False, False]
    assert many[1] == first and len({*many}) == 4
    assert not client.new_ids()[0].is_duplicate


@of("claim", "claim_one")
def claims_come_best_first(client: Any, queue: str) -> None:
    client.enqueue_many(queue, [b"low", b"low too"], priority=-1)
    client.enqueue(queue, b"high", priority=5)

    first = client.claim_one(queue, lease_s=30)
    assert (first.payload, first.queue, first.priority) == (b"high", queue, 5)
    assert 0 < first.remaining_s <= 30
    assert [claim.payload for claim in client.claim(queue, n=5)] == [b"low", b"low too"]
    assert client.claim_one(queue) is None
    assert client.claim(queue, wait_s=0.05) == []
    assert [claim.holder for claim in client.get(first.id).claims] == ["me"]


@of("claim_one")
def options_reach_the_claim(client: Any, queue: str) -> None:
    late = time.time() + 3_600
    client.enqueue_many(queue, [b"one", b"two"], expires=late, headers={"trace": "7"})
    client.enqueue(queue, b"three", priority=-1)

    claims = client.claim(queue, n=3)
    assert [(claim.payload, dict(claim.headers)) for claim in claims] == [
        (b"one", {"trace": "7"}), (b"two", {"trace": "7"}), (b"three", {})]


@of("renew", "renew_many", "release")
def a_lease_is_extended_and_given_back(client: Any, queue: str) -> None:
    client.enqueue(queue, b"x")
    claim = client.claim_one(queue, lease_s=10)
    end_ms, deadline = claim.end_ms, claim.deadline

    client.renew(claim, lease_s=100)
    assert claim.end_ms - end_ms > 80_000 and claim.deadline - deadline > 80
    assert client.renew_many([claim], lease_s=200) == [True]
    client.release(claim)
    with pytest.raises(Fenced):
        client.renew(claim)
    again = client.claim_one(queue)
    assert again.id == claim.id and again.token > claim.token
    assert client.renew_many([claim, again]) == [False, True]


@of("update")
def a_log_is_read_by_others(client: Any, queue: str) -> None:
    client.enqueue(queue, b"x")
    claim = client.claim_one(queue)

    assert client.update(claim, b"zero") == 1
    assert client.update(claim, [b"one", b"two"]) == 3
    assert client.update(ClaimName(claim.id, claim.token, claim.proof), b"one", seq=1) == 2
    assert client.get(claim.id).claims[0].log == (b"zero", b"one", b"two")
    with pytest.raises(Refused, match="seq"):
        client.update(ClaimName(claim.id, claim.token, claim.proof), b"x")


@of("complete", "complete_many")
def completion_dominates(client: Any, queue: str) -> None:
    task_ids = client.enqueue_many(queue, [b"a", b"b", b"c"])
    late, *others = client.claim(queue, n=3)

    client.release(late)
    client.complete(late)
    client.complete_many(others)
    assert client.complete_many([]) == 0
    assert all(task.is_completed for task in client.get_many(task_ids))
    assert client.claim_one(queue) is None
    client.complete(late)
    with pytest.raises(Fenced):
        client.renew(late)


@of("enqueue", "enqueue_many", "complete", "complete_many")
def who_stores_is_told_on_how_many_disks(client: Any, queue: str) -> None:
    replicas = client.greeting().replicas
    stored = client.enqueue_many(queue, [b"a", b"b"], w=replicas)
    single = client.enqueue(queue, b"c", w=replicas)
    assert (stored.copies, single.copies, client.new_ids()[0].copies) == (replicas, replicas, 0)
    claims = []
    while len(claims) < 3:
        claims += client.claim(queue, n=3)

    assert client.complete(claims[0], w=replicas) == client.complete_many(claims[1:], w=replicas) == replicas
    assert replicas // 2 < client.complete_many(claims) <= replicas


@of("fail", "fail_many")
def a_failed_task_is_tried_again(client: Any, queue: str) -> None:
    task_id = client.enqueue(queue, b"x")
    lost = client.claim_one(queue)
    client.release(lost)
    first = client.claim_one(queue)

    client.fail(first, "disk full", retry_in_s=0)
    client.fail(first, "disk full", retry_in_s=0)
    second = client.claim_one(queue)
    assert second.id == task_id and second.token > first.token
    errors = ["disk full", b"again", "no"]
    assert client.fail_many([first, second, lost], errors, retry_in_s=0) == [True, True, False]
    with pytest.raises(Fenced):
        client.fail(lost)
    task = client.get(task_id)
    assert [claim.outcome for claim in task.claims] == ["released", "failed", "failed"]
    assert [claim.error for claim in task.claims] == [None, b"disk full", b"again"]
    assert task.error == b"again" and task.state == "waiting" and task.claims[0].log == ()


@of("fail", "fail_many")
def a_task_that_failed_for_good_is_dead_until_it_is_retried(client: Any, queue: str) -> None:
    task_ids = client.enqueue_many(queue, [b"x", b"y", b"z"])
    first, second, third = (client.claim_one(queue) for _ in task_ids)

    client.fail(first, "no such day", final=True)
    assert client.fail_many([second], ["no such day"], final=True) == [True]
    client.fail(third, "disk full", retry_in_s=0)

    tasks = client.get_many([first.id, second.id])
    assert [(task.state, task.death, task.error) for task in tasks] == [("dead", "permanent", b"no such day")] * 2
    assert client.get(third.id).state == "waiting"
    client.retry(first.id)
    assert client.get(first.id).state == "waiting"


@of("complete", "update", "renew", "fail", "snooze", "release")
def a_claim_that_was_never_granted_does_nothing(client: Any, queue: str) -> None:
    task_ids = client.enqueue_many(queue, [b"x", b"y"])
    claim, = client.claim(queue)
    never = [ClaimName(claim.id, claim.token), ClaimName(claim.id, claim.token + 1, claim.proof),
             ClaimName(task_ids[1], claim.token, claim.proof.hex()),
             ClaimName(bytes(20), claim.token, claim.proof)]
    before = client.get_many(task_ids)
    verbs: list[Callable[[ClaimName], object]] = [
        client.complete, client.renew, client.fail, lambda name: client.update(name, b"x", seq=0),
        lambda name: client.snooze(name, 1), lambda name: client.release(claim, name),
        *(lambda name, many=many: many([claim, name])  # type: ignore[misc]
          for many in (client.complete_many, client.renew_many, client.fail_many))]
    for name, act in product(never, verbs):
        with pytest.raises(Refused) as refusal:
            act(name)
        assert refusal.value.code == "unknown_claim"
    assert client.get_many(task_ids) == before
    client.complete(ClaimName(str(claim.id), claim.token, claim.proof.hex()))


@of("snooze_many")
def many_claims_are_given_back_for_later_at_once(client: Any, queue: str) -> None:
    client.enqueue_many(queue, [b"a", b"b", b"c"])
    first, second, lost = client.claim(queue, n=3)
    client.release(lost)

    assert client.snooze_many([first, second, lost], 3_600) == [True, True, False]
    assert sorted(task.state for task in client.get_many([first.id, second.id, lost.id])) == [
        "scheduled", "scheduled", "waiting"]
    assert {client.get(claim.id).claims[-1].outcome for claim in (first, second)} == {"snoozed"}


@of("snooze")
def a_snoozed_claim_is_over(client: Any, queue: str) -> None:
    client.enqueue(queue, b"x")
    claim = client.claim_one(queue)

    client.snooze(claim, 3_600)
    with pytest.raises(Fenced):
        client.fail(claim)
    seen, = client.get(claim.id).claims
    assert (seen.outcome, seen.is_released) == ("snoozed", True)
    assert client.get(claim.id).state == "scheduled"
    assert seen.until_ms > claim.end_ms


@of("cancel")
def a_cancelled_task_is_claimed_by_nobody(client: Any, queue: str) -> None:
    task_ids = client.enqueue_many(queue, [b"x", b"y"])
    held = client.claim_one(queue)

    assert client.cancel(*task_ids, task_ids[0]) == 2
    assert client.claim(queue, n=5) == []
    assert not held.is_cancelled
    client.renew(held)
    assert held.is_cancelled and client.get(held.id).state == "claimed"
    client.release(held)
    assert client.claim(queue, n=5) == []
    assert all(task.cancelled_ms and not task.is_completed for task in client.get_many(task_ids))
    assert {task.state for task in client.list(queue)} == {"cancelled"}
    client.complete(held)
    assert client.get(held.id).state == "completed"
    assert client.cancel(*task_ids) == 1


@of("purge")
def what_waits_in_a_queue_is_purged_a_page_at_a_time_and_what_is_claimed_goes_on(client: Any, queue: str) -> None:
    plain = client.enqueue_many(queue, [b"x"] * (PAGE + 2))
    held = client.claim_one(queue)
    later = client.enqueue(queue, b"later", not_before=datetime.now(UTC) + timedelta(days=1))
    blocked, other = client.enqueue(queue, b"blocked", deps=[later]), client.enqueue(f"{queue}-other", b"x")
    told: list[int] = []

    assert client.purge(queue, progress=told.append) == len(plain) - 1 + 2
    assert told == sorted(told) and told[-1] == len(plain) + 1 and len(told) > 1
    assert client.count(queue, states=["cancelled"]) == told[-1]
    assert [task.state for task in client.get_many([held.id, later, blocked, other])] == [
        "claimed", "cancelled", "cancelled", "waiting"]
    client.complete(held)
    assert client.purge(queue) == client.purge("no-such-queue") == 0
    assert client.claim(queue) == []


@of("retry_all")
def the_dead_are_retried_of_which_something_is_so(client: Any, queue: str) -> None:
    calls = [skuld_py.call("shop:add", number) for number in range(2)] + [b"no call"] * 2
    dead = client.enqueue_many(queue, calls, retry=Retry(max_attempts=1))
    other = client.enqueue(f"{queue}-other", b"x", retry=Retry(max_attempts=1))
    kept = client.enqueue(queue, b"waits", not_before=datetime.now(UTC) + timedelta(days=1))
    held = {claim.id: claim for claim in (*client.claim(queue, n=4), client.claim_one(f"{queue}-other"))}
    while len(held) < 5:
        held |= {claim.id: claim for claim in client.claim(queue, n=4)}
    words = ["Read TIMEOUT at 7", "no such row", "read timeout", b"\xff"]
    for task_id, error in zip([*dead, other], [*words, "timeout"], strict=True):
        client.fail(held[task_id], error)

    def states() -> list[str]:
        return [client.get(task_id).state for task_id in (*dead, other, kept)]
    assert states() == [*["dead"] * 5, "scheduled"]
    assert client.retry_all(queue, error="*timeout*", dry_run=True) == 2
    assert client.retry_all(queue, function="shop:add", dry_run=True) == 2
    assert client.retry_all(queue, since=datetime.now(UTC) + timedelta(hours=1), dry_run=True) == 0
    assert states() == [*["dead"] * 5, "scheduled"]
    told: list[int] = []
    assert client.retry_all(queue, error="*timeout*", progress=told.append) == 2 == told[-1]
    assert states() == ["waiting", "dead", "waiting", "dead", "dead", "scheduled"]
    assert client.retry_all(queue, function="shop:add") == 1
    assert client.retry_all(queue) == 1 and client.retry_all(queue) == 0
    assert states() == [*["waiting"] * 4, "dead", "scheduled"]


@of("cancel_all")
def what_waits_is_cancelled_of_which_something_is_so(client: Any, queue: str) -> None:
    call, plain = client.enqueue_many(queue, [skuld_py.call("shop:add", 1), b"x"])
    later = client.enqueue(queue, skuld_py.call("shop:add", 2), not_before=datetime.now(UTC) + timedelta(days=1))
    other = client.enqueue(f"{queue}-other", skuld_py.call("shop:add", 3))
    held = client.claim_one(f"{queue}-other")

    def states() -> list[str]:
        return [client.get(task_id).state for task_id in (call, plain, later, other)]
    assert client.cancel_all(queue, function="shop:add", dry_run=True) == 2
    assert client.cancel_all(queue, until=datetime.now(UTC) - timedelta(hours=1)) == 0
    assert states() == ["waiting", "waiting", "scheduled", "claimed"]
    assert client.cancel_all(queue, function="shop:add") == 2
    assert client.cancel_all(f"{queue}-other") == 0
    assert states() == ["cancelled", "waiting", "cancelled", "claimed"]
    client.complete(held)


def claimed(client: Any, queue: str, count: int) -> list[Any]:
    """So many claims, however many it takes to ask for them."""
    claims: list[Any] = []
    while len(claims) < count:
        claims += client.claim(queue, n=count - len(claims), wait_s=5)
    return claims


@of("purge_all")
def what_is_dead_is_purged_too_and_by_its_error(client: Any, queue: str) -> None:
    dead = client.enqueue_many(queue, [b"x", b"y"], retry=Retry(max_attempts=1))
    for claim, error in zip(claimed(client, queue, 2), ("Timeout", b"full"), strict=True):
        client.fail(claim, error)
    client.enqueue_many(queue, [b"z"] * 2)
    held, = claimed(client, queue, 1)

    assert client.purge_all(queue, dry_run=True) == 3
    assert client.purge_all(queue, error="*full*") == 1
    assert sorted(task.state for task in client.get_many(dead)) == ["cancelled", "dead"]
    assert client.purge_all(queue) == 2 and client.purge_all(queue) == 0
    assert client.count(queue, states=["cancelled"]) == 3 and client.get(held.id).state == "claimed"
    client.complete(held)


@of("move_all")
def what_waits_goes_on_in_another_queue_as_it_was(client: Any, queue: str) -> None:
    to, later = f"{queue}-to", datetime.now(UTC) + timedelta(days=1)
    first = client.enqueue(queue, b"first", priority=3, retry=Retry(max_attempts=7), headers={"a": "b"})
    client.enqueue_many(queue, [b"k1", b"k2"], key="customer 7")
    client.enqueue(queue, b"later", not_before=later, unique="once")
    needed = client.enqueue(queue, b"needed", not_before=later)
    client.enqueue(queue, b"blocked", deps=[needed])
    held, = claimed(client, queue, 1)
    told: list[int] = []

    assert held.id == first
    is_watched_by(client, needed)
    assert client.move_all(queue, to, dry_run=True) == Moved(1, held=1, tied=2, keyed=2) and client.count(to) == 0
    assert client.move_all(queue, to, function="shop:add") == Moved()
    assert client.move_all(queue, to, progress=told.append) == Moved(1, held=1, tied=2, keyed=2) and told[-1] == 1
    assert client.move_all(queue, to) == Moved(held=1, tied=2, keyed=2)
    client.release(held)
    assert client.move_all(queue, to) == Moved(1, tied=2, keyed=2)

    assert client.cancel(needed) and client.purge(queue) == 3
    assert {task.state for task in client.list(queue)} == {"cancelled"}
    found = {task.payload: task for task in client.list(to)}
    assert sorted(found) == [b"first", b"later"]
    moved, was = found[b"first"], client.get(first)
    for name in ("priority", "retry", "headers", "not_before_ms", "expires_ms", "enqueued_ms", "key"):
        assert getattr(moved, name) == getattr(was, name), name
    assert (moved.deps, moved.id == first, found[b"later"].due_ms) == ((first,), False, round(
        later.timestamp() * 1000))
    first_of_all = client.claim(to, wait_s=20)
    assert [claim.payload for claim in first_of_all] == [b"first"]
    client.complete_many(first_of_all)


def is_watched_by(client: Any, needed: Any) -> None:
    """Wait until the cluster knows that others need a task: it is told so a moment after those are enqueued."""
    end = time.monotonic() + 20
    while not client.get(needed).seq and time.monotonic() < end:
        time.sleep(0.05)


@of("release_all")
def the_claims_of_a_holder_are_taken_from_it(client: Any, queue: str) -> None:
    client.enqueue_many(queue, [b"x"] * 3)
    mine, holder = claimed(client, queue, 2), client.holder
    inner = getattr(client, "_client", client)
    inner.holder = f"{holder}-other"
    kept = client.claim_one(queue)
    inner.holder = holder

    assert client.release_all(queue, holder="nobody") == 0
    assert client.release_all(queue, holder=holder, dry_run=True) == 2
    assert client.release_all(queue, holder=holder) == 2 and client.release_all(queue, holder=holder) == 0
    assert client.get(kept.id).state == "claimed"
    with pytest.raises(Fenced):
        client.renew(mine[0])
    assert {claim.id for claim in claimed(client, queue, 2)} == {claim.id for claim in mine}
    client.complete(mine[1])
    client.complete(kept)


@of("renew")
def a_claim_is_renewed_for_as_long_as_it_was_claimed_for(client: Any, queue: str) -> None:
    client.enqueue_many(queue, [b"x", b"y"])
    long, short = client.claim_one(queue, lease_s=3_600), client.claim_one(queue, lease_s=60)
    named = ClaimName(long.id, long.token, long.proof)

    client.renew(long, lease_s=7_200)
    far_ms = long.end_ms
    client.renew(long)
    client.renew(named)
    assert long.end_ms == client.get(long.id).claims[0].end_ms == far_ms > short.end_ms + 7_000_000
    client.release(long)
    client.enqueue(queue, b"z", priority=9)
    long = client.claim_one(queue, lease_s=3_600)
    ends = [long.end_ms, short.end_ms]
    time.sleep(0.002)
    assert client.renew_many([long, short]) == [True, True]
    client.renew(short)
    assert long.end_ms - short.end_ms > 3_000_000 and [long.end_ms, short.end_ms] >= ends


@of("retry")
def only_the_dead_are_retried(client: Any, queue: str) -> None:
    dead = client.enqueue(queue, b"dead", retry=Retry(max_attempts=1))
    client.fail(client.claim_one(queue), "for good")
    assert client.claim_one(queue) is None and client.get(dead).state == "dead"
    client.retry(dead)
    held = client.claim_one(queue)
    assert client.get(dead).state == "claimed"
    client.complete(held)
    task_ids = client.enqueue_many(queue, [b"x"] * 2)
    client.cancel(task_ids[1])

    for ids, code in (([task_ids[0]], "not_dead"), ([task_ids[1]], "cancelled"), (["0" * 32], "no_such_task")):
        with pytest.raises(Refused) as refusal:
            client.retry(*ids)
        assert refusal.value.code == code


@of("result", "results")
def results_are_read_by_others(client: Any, queue: str) -> None:
    task_ids = client.enqueue_many(queue, [b"a", b"b", b"c", b"d"])
    first, second, third = client.claim(queue, n=3)

    client.complete(first, "text")
    client.complete_many([second, third], [b"bytes", {"at": datetime(2026, 11, 20, tzinfo=UTC), "n": (1, 2)}])
    record = {"at": datetime(2026, 11, 20, tzinfo=UTC), "n": (1, 2)}
    assert client.results(task_ids) == ["text", b"bytes", record, None]
    assert client.result(third.id, wait_s=30) == record == client.get(third.id).result
    assert client.result(str(third.id), like=dict[str, Any]) == record
    with pytest.raises(Refused, match="result: is no UUID"):
        client.result(first.id, like=UUID)
    with pytest.raises(Refused, match="wait longer"):
        client.result(task_ids[3])
    assert client.results([]) == []
    assert client.get(first.id).claims[0].outcome == "completed"


@of("list_page")
def a_listing_is_read_a_page_at_a_time_by_who_stops_half_way(client: Any, queue: str) -> None:
    task_ids = client.enqueue_many(queue, [bytes([n]) for n in range(7)])
    client.cancel(task_ids[4])

    first = client.list_page(queue, page=3)
    assert [task.id for task in first.tasks] == task_ids[:3] and first.upto == task_ids[2]
    rest = client.list_page(queue, after=first.upto, states=["waiting"])
    assert [task.id for task in rest.tasks] == [*task_ids[3:4], *task_ids[5:]] and rest.upto is None
    assert client.list_page(queue, states="dead") == TaskPage((), None)


@of("list", "count", "depths")
def a_queue_is_counted_and_listed(client: Any, queue: str) -> None:
    task_ids = client.enqueue_many(queue, [bytes([n]) for n in range(7)])
    client.claim(queue, n=2)
    client.complete(client.claim_one(queue))

    assert [task.id for task in client.list(queue, page=3)] == task_ids
    assert set(task_ids) <= {task.id for task in client.list()}
    assert client.count(queue) == 7 <= client.count()
    assert client.depths()[queue] == Depth(4, 2, 1)
    assert list(client.list(f"{queue}-none")) == []


@of("take_seats")
def a_worker_without_seats_is_told_so_and_listed(client: Any, queue: str) -> None:
    worker = WorkerStatus(queue, "", "here", 2, {}, "1", "", 7, 0, 0, takes_seats=True, tags=("gpu",))

    assert client.take_seats(worker, 30) == client.take_seats(worker, 30, seated=7) == WorkerSeats()
    assert [each.tags for each in client.workers().workers if each.name == queue] == [("gpu",)]
    client.report(worker, 0)


@of("report", "workers")
def a_worker_is_listed_until_it_says_goodbye(client: Any, queue: str) -> None:
    worker = WorkerStatus(queue, "", "here", 2, {queue: 3}, "1", "", 7, 1, 2)

    def listed() -> list[WorkerStatus]:
        return [attrs.evolve(each, node="", key="", age_s=0.0) for each in client.workers().workers
                if each.name == queue]
    client.report(worker, 30)
    assert listed() == [worker]
    client.report(attrs.evolve(worker, running=2), 30)
    assert [each.running for each in listed()] == [2]
    client.report(worker, 0)
    assert listed() == []


@of("pause", "resume", "paused")
def a_paused_queue_is_as_an_empty_one(client: Any, queue: str) -> None:
    client.enqueue_many(queue, [b"a", b"b"])
    held = client.claim_one(queue)

    assert client.pause(queue) == []
    assert client.pause(queue) == []
    assert queue in client.paused()
    assert client.claim_one(queue) is None
    client.renew(held)
    client.enqueue(queue, b"c")
    assert client.resume(queue) == []
    assert queue not in client.paused()
    assert [claim.payload for claim in client.claim(queue, n=5)] == [b"b", b"c"]


@of("list")
def calls_are_listed_by_their_function(client: Any, queue: str) -> None:
    other = client.enqueue(queue, skuld_py.call("shop:add_more", 1))
    ids = [client.enqueue(queue, skuld_py.call("shop:add", number)) for number in range(3)]
    client.enqueue(queue, b"shop:add")
    client.complete(client.claim_one(queue))

    def listed(**more: Any) -> list[bytes]:
        return [task.id for task in client.list(queue, **more)]
    assert listed(function="shop:add") == ids
    assert listed(function="shop:add", page=1, states=["waiting"]) == ids
    assert listed(function="shop:add_more", states=["completed"]) == [other]
    assert listed(function="shop:ad") == []
    with pytest.raises(Refused, match="printable"):
        listed(function="two\nlines")


@of("list")
def tasks_are_listed_by_an_argument_a_header_or_their_last_error(client: Any, queue: str) -> None:
    first = client.enqueue(queue, skuld_py.call("shop:bill", "2026-11-20", tenant="acme"), headers={"team": "A 1"},
                           retry=Retry(backoff_s=0))
    second = client.enqueue(queue, skuld_py.call("shop:bill", 7, days=[1, 2], note=None), headers={"trace": "A 1"})
    third = client.enqueue(queue, b"2026-11-20")
    client.fail(client.claim_one(queue), "OSError: [Errno 111] refused?", retry_in_s=0)

    def listed(**more: Any) -> list[bytes]:
        return [task.id for task in client.list(queue, page=2, **more)]
    assert listed(argument="2026-11-*") == listed(argument="TENANT=*") == listed(argument="tenant=acme") == [first]
    assert listed(argument="7") == listed(argument="days=[1, 2]") == listed(argument="note=null") == [second]
    assert listed(argument="acme") == listed(argument="days=[1*3]") == listed(argument="2026") == []
    assert listed(header="team=a*") == listed(header="*=a 1", argument="tenant=*") == [first]
    assert listed(header="*=A 1") == [first, second] and listed(header="A 1") == []
    assert listed(error="*[errno 111]*") == listed(error="*refused?", states=["waiting"]) == [first]
    assert [task.error for task in client.list(queue, error="*")] == [b"OSError: [Errno 111] refused?"]
    assert listed(error="*") == [first] and listed(error="*[errno 11]*") == listed(error="oserror") == []
    assert listed(error="*", states=["dead"]) == listed(error="*", header="trace=*") == []
    assert client.cancel_all(queue, argument="7", dry_run=True) == client.cancel_all(queue, header="trace=*") == 1
    assert [client.get(task_id).state for task_id in (first, second, third)] == ["waiting", "cancelled", "waiting"]
    with pytest.raises(Refused, match="'tenant=acme"):
        listed(header="")


@of("list", "count")
def tasks_are_listed_by_state_and_by_time(client: Any, queue: str) -> None:
    first, = client.enqueue_many(queue, [b"first"])
    second, third, later = (client.enqueue(queue, b"x"), client.enqueue(queue, b"y"),
                            client.enqueue(queue, b"z", not_before=datetime.now(UTC) + timedelta(days=1)))
    client.complete(client.claim_one(queue), b"done")
    client.cancel(second)

    def listed(**options: Any) -> list[bytes]:
        return [task.id for task in client.list(queue, page=1, **options)]
    assert listed(states=["completed"]) == [first]
    assert listed(states=["cancelled"]) == listed(states=["dead", "cancelled"]) == [second]
    assert listed(states=["waiting"]) == [third]
    assert listed(states="scheduled") == [later]
    assert listed(states=["waiting", "scheduled", "completed"]) == [first, third, later]
    assert listed(states=["dead"]) == listed(states=["claimed"]) == []
    assert client.count(queue, states=["cancelled", "waiting"]) == 2
    assert [task.state for task in client.list(queue)] == ["completed", "cancelled", "waiting", "scheduled"]

    at = time_of(second) / 1000
    assert listed(since=at) == [task for task in (first, second, third, later) if time_of(task) >= time_of(second)]
    assert listed(until=at) == [task for task in (first, second, third, later) if time_of(task) < time_of(second)]
    assert listed(since=at, until=datetime.fromtimestamp(at, UTC)) == []
    assert listed(states=["cancelled"], until=time_of(later) / 1000 + 1) == [second]


@of("get", "get_many")
def a_read_shows_no_less_than_was_asked_for(client: Any, queue: str) -> None:
    task_id = client.enqueue(queue, b"x")
    assert client.get(task_id).seq == 0
    held = client.claim_one(queue)
    client.update(held, b"entry")
    seen = client.get(task_id)
    assert seen.seq == 2

    client.complete(held, b"result")
    assert client.get(task_id, min_seq=seen.seq).seq == 4
    assert [task.seq for task in client.get_many([task_id], min_seq=4)] == [4]


@of("put_schedule", "schedules", "remove_schedule")
def a_schedule_is_put_seen_and_removed(client: Any, queue: str) -> None:
    retry = Retry(max_attempts=3)
    assert client.put_schedule(queue, queue, b"x", cron="30 2 * * *", zone="Europe/Berlin", priority=5, catch_up=2,
                               retry=retry, headers={"trace": "7"}) == []
    first, = (found for found in client.schedules() if found.name == queue)
    client.put_schedule(queue, queue, b"x", cron="30 2 * * *", zone="Europe/Berlin", priority=5, catch_up=2,
                        retry=retry, headers={"trace": "7"})
    again, = (found for found in client.schedules() if found.name == queue)
    client.put_schedule(queue, queue, every_s=0.5)
    other, = (found for found in client.schedules() if found.name == queue)

    assert again == first == attrs.evolve(
        first, queue=queue, payload=b"x", cron="30 2 * * *", zone="Europe/Berlin", every_s=None, priority=5,
        catch_up=2, headers={"trace": "7"})
    assert (other.cron, other.zone, other.every_s, other.payload) == (None, "UTC", 0.5, b"")
    assert other.since_ms >= first.since_ms
    assert client.remove_schedule(queue) == []
    assert queue not in [found.name for found in client.schedules()]
    with pytest.raises(Refused, match="no schedule") as refused:
        client.remove_schedule(queue)
    assert refused.value.code == "no_such_schedule"


@of("chain", "group", "chord", "join", "results_of")
def steps_wait_for_each_other(client: Any, queue: str) -> None:
    before, behind = f"{queue}-before", f"{queue}-behind"
    first, second = client.chain([(before, b"1"), (behind, b"2")])
    steps, then = client.chord([(before, b"3"), (before, b"4")], (behind, b"5"), deps=[first])
    beside = client.group([(behind, b"6"), (behind, b"7")], deps=[then])
    last = client.join([second, *beside], (behind, b"8"))

    done: list[bytes] = []
    while len(done) < 8:
        claims = [claim for queue in (before, behind) for claim in client.claim(queue, n=10, wait_s=0.1)]
        client.complete_many(claims, [b"result " + claim.payload for claim in claims])
        done += [claim.payload for claim in claims]
    assert done[0] == b"1" and {*done[-3:-1]} == {b"6", b"7"} and done[-1] == b"8"
    assert client.results_of(then) == [b"result 3", b"result 4"] == client.results(steps)
    assert client.results_of(last) == [b"result 2", b"result 6", b"result 7"]


@of("ends", "results")
def ends_are_awaited(client: Any, queue: str) -> None:
    done, dead, cancelled, waits = (
        client.enqueue(queue, b"a"), client.enqueue(queue, b"b", retry=Retry(max_attempts=1)),
        client.enqueue(queue, b"c"), client.enqueue(f"{queue}-other", b"d"))
    client.complete(client.claim_one(queue), "result")
    client.fail(client.claim_one(queue), "why")
    client.cancel(cancelled)
    task_ids = [done, dead, cancelled]

    assert client.ends(task_ids, wait_s=30) == [
        End(done, "completed", "result"), End(dead, "dead", None, b"why"), End(cancelled, "cancelled")]
    assert client.results([*task_ids, done], wait_s=30) == ["result", None, None, "result"]
    assert client.ends([waits, done], wait_s=0.1) == [End(waits, ""), End(done, "completed", "result")]
    assert client.ends([to_text(waits)]) == [End(waits, "")]
    assert client.ends([]) == []
    many = client.enqueue_many(queue, [b"x"] * (ENDS_MAX + 1))
    assert [end.id for end in client.ends(many)] == many


@of("log")
def a_log_is_read_claim_by_claim(client: Any, queue: str) -> None:
    task_id = client.enqueue(queue, b"x")
    assert list(client.log(task_id)) == list(client.log(task_id, follow_s=0.05)) == []
    first = client.claim_one(queue)
    client.update(first, [b"a", b"b"])
    client.release(first)
    second = client.claim_one(queue)
    client.update(second, b"c")
    written = [LogEntry(first.token, 0, b"a"), LogEntry(first.token, 1, b"b"), LogEntry(second.token, 0, b"c")]

    assert list(client.log(task_id)) == list(client.log(to_text(task_id), follow_s=0.05)) == written
    assert list(client.log(task_id, token=first.token, follow_s=math.inf)) == written[:2]
    assert list(client.log(task_id, after=written[0])) == written[1:]
    assert list(client.log(task_id, after=written[2], follow_s=0.05)) == []
    client.complete(second)
    assert list(client.log(task_id, follow_s=math.inf)) == written
    with pytest.raises(Refused) as refusal:
        list(client.log(task_id, token=second.token + 1))
    assert refusal.value.code == "no_such_claim"
    with pytest.raises(Refused) as refusal:
        list(client.log(bytes(20)))
    assert refusal.value.code == "no_such_task"


@of("get", "cancel", "retry", "log", "results_of")
def what_is_not_there_is_told_by_all_in_the_same_words(client: Any, queue: str) -> None:
    one, two = "0" * 32, "0" * 31 + "1"
    asks: dict[str, Callable[..., Any]] = {
        "get": client.get, "cancel": client.cancel, "retry": client.retry, "log": lambda id: list(client.log(id)),
        "results_of": client.results_of}

    def said(name: str, *ids: str) -> str:
        with pytest.raises(Refused) as refused:
            asks[name](*ids)
        assert refused.value.code == "no_such_task"
        return str(refused.value.message).partition(": ")[2]
    for name in asks:
        assert said(name, one).startswith(f"no task {one}: it was never enqueued, or is collected"), name
    for name in ("cancel", "retry"):
        assert said(name, one, two).startswith(f"no task {one}, {two}: they were never enqueued, or are collected")


@of("set_quota", "remove_quota", "quotas", "quota_use")
def queues_that_begin_alike_hold_so_many_open_tasks_and_no_more(client: Any, queue: str) -> None:
    client.enqueue_many(f"{queue}.a", [b"x"] * 2)
    assert client.set_quota(f"{queue}.", 4) == []
    assert client.quotas()[f"{queue}."] == 4
    ids = client.enqueue_many(f"{queue}.b", [b"x"] * 2)
    with pytest.raises(Refused, match="about 4 tasks are open, and 4 may be") as refused:
        client.enqueue(f"{queue}.a", b"x")

    assert refused.value.code == "quota_full"
    client.enqueue(queue, b"x")
    assert client.cancel(*ids) == 2
    assert client.quota_use()[f"{queue}."] == QuotaUse(4, 2), "what waits or is held, and not what has ended"
    client.claim(f"{queue}.a", n=1)
    assert client.quota_use()[f"{queue}."] == QuotaUse(4, 2)
    assert client.remove_quota(f"{queue}.") == [] and f"{queue}." not in client.quotas()
    client.enqueue_many(f"{queue}.a", [b"x"] * 5)


@of("set_limits")
def one_holder_has_no_more_than_its_queue_allows(client: Any, queue: str) -> None:
    client.enqueue_many(queue, [b"x"] * 5)
    assert client.set_limits(queue, holder_concurrency=2, longest_lease_s=60) == []
    assert client.limits(queue) == {queue: QueueLimits(holder_concurrency=2, lease_ms=60_000)}
    with pytest.raises(Refused, match=r"61 s is longer than .* allows, 60 s") as refused:
        client.claim(queue, lease_s=61)

    assert refused.value.code == "lease_too_long"
    held = claimed(client, queue, 2)
    more = client.claim(queue, n=3)
    assert more == [] and more.withheld == "capped"
    client.complete(held[0])
    assert len(claimed(client, queue, 1)) == 1 and client.claim(queue, n=3) == []


@of("set_limits", "remove_limits", "limits")
def a_limited_queue_gives_no_more_until_something_ends(client: Any, queue: str) -> None:
    client.enqueue_many(queue, [b"a", b"b", b"c", b"d"])
    assert client.set_limits(queue, concurrency=2, rate=1_000, key_concurrency=3) == []
    assert client.limits(queue) == {queue: QueueLimits(2, 1_000, 1_000, 1_000, 3)}

    first = client.claim(queue, n=4, wait_s=5)
    assert len(first) <= 2
    held = first + client.claim(queue, n=4, wait_s=5 * (len(first) < 2))
    assert len(held) == 2
    assert client.claim(queue, n=4) == []
    client.complete(held[0])
    [third] = client.claim(queue, n=4, wait_s=5)

    assert client.remove_limits(queue) == []
    assert queue not in client.limits() and client.limits(queue) == {}
    [fourth] = client.claim(queue, n=4, wait_s=5)
    client.complete_many([held[1], third, fourth])


@of("greeting")
def the_cluster_says_which_it_is(client: Any, queue: str) -> None:
    greeted = client.greeting()

    assert greeted.cluster and greeted.replicas >= 1 and greeted.partitions >= 1


@of("status", "overview")
def the_cluster_describes_itself(client: Any, queue: str) -> None:
    described, seen = client.status(), client.overview()

    assert [row.leader for row in described.partitions] == [described.node]
    assert seen.described.partitions == described.partitions and (seen.silent, seen.untold) == ({}, frozenset())


@of("collectable", "offered", "archived")
def nothing_is_offered_to_an_archive_by_nodes_that_keep_everything(client: Any, queue: str) -> None:
    with pytest.raises(Refused, match="--retention") as refusal:
        client.collectable(0)
    assert refusal.value.code == "no_archive"
    with pytest.raises(Refused) as refusal:
        client.collectable(999)
    with pytest.raises(Refused, match="--archive"):
        client.offered(0)
    assert refusal.value.code == "bad_partition"
    assert client.archived(Page(0, (), False)) == 0
    with pytest.raises(Refused) as refusal:
        client.archived(Page(0, (), False, (), 1, bytes(20), bytes(8)))
    assert refusal.value.code == "no_archive"


@of("enter_archive", "archive_root")
def a_cluster_has_one_archive_wherever_its_directory_is_mounted(client: Any, queue: str) -> None:
    client.enter_archive("/srv/a", "name", replaces=True)
    client.enter_archive("/mnt/a", "name")
    assert client.archive_root().root == "/mnt/a", "it was moved, or is mounted elsewhere"
    with pytest.raises(Refused, match=r"/mnt/a.* --replace") as refusal:
        client.enter_archive("/srv/b", "other")
    assert refusal.value.code == "other_archive"

    client.enter_archive("s3a://b/c", replaces=True)
    client.enter_archive("s3a://b/c")
    with pytest.raises(Refused, match="s3a://b/c"):
        client.enter_archive("/srv/a", "name")


@of("partition_history")
def how_partitions_came_about_is_told(client: Any, queue: str) -> None:
    client.freeze(0, reason=f"for {queue}")
    client.unfreeze(0)
    newest = client.partition_history(0, most=2)

    assert newest[0].partition == 0 and newest[0].cause.startswith(f"unfreeze by {client.holder}")
    assert newest[0].leader == client.status().partitions[0].leader
    assert {each.partition for each in client.partition_history()} == {
        row.partition for row in client.status().partitions}
    with pytest.raises(Refused, match="partitions, 0 to"):
        client.partition_history(4_000)


@of("drain")
def nodes_that_all_copies_need_are_not_taken_out(client: Any, queue: str) -> None:
    name = client.status().node
    for node, code in ((name, "too_few_nodes"), ("127.0.0.1:1", "unknown_node")):
        with pytest.raises(Refused) as refused:
            client.drain(node)
        assert refused.value.code in (code, "unknown_node"), "in memory no node is in the log"
    assert not any(node.is_leaving for node in client.status().nodes)


@of("quarantine", "reap")
def nodes_are_in_quarantine_and_the_living_are_not_reaped(client: Any, queue: str) -> None:
    status = client.status()
    leader, others = status.partitions[0].leader, [node.name for node in status.nodes[1:]]
    with pytest.raises(Refused, match="is alive"):
        client.reap(leader, 0)
    if not others:
        with pytest.raises(Refused, match=f"nobody but {leader} could lead it"):
            client.quarantine(leader, 0)
    with pytest.raises(Refused, match="no node nowhere:1 is known here"):
        client.quarantine("nowhere:1", 0)
    assert client.quarantine("nowhere:1", off=True).changed == 0


@of("freeze", "unfreeze", "solo", "rebalance", "promote", "reorder", "withdraw", "force_epoch")
def partitions_are_held_and_let_go(client: Any, queue: str) -> None:
    leader = client.status().partitions[0].leader
    assert client.withdraw(0).changed == 0

    assert client.freeze(0, reason="why", for_s=60).changed == 1
    for wish in (partial(client.promote, leader), partial(client.reorder, leader), client.rebalance):
        with pytest.raises(Refused, match=r"frozen by .*'skuld unfreeze' first"):
            wish(partition=0)
    task_id = client.enqueue(queue, b"x")
    assert client.claim(queue)[0].id == task_id
    assert client.unfreeze().refused == {} and client.unfreeze().changed == 0
    assert client.promote(leader, 0).changed == 0
    with pytest.raises(Refused, match="leads it"):
        client.reorder(leader, 0)
    assert client.solo().changed >= 1
    assert client.solo(0, off=True).changed == 1
    client.solo(off=True)
    with pytest.raises(Refused, match="has a majority of its voters"):
        client.force_epoch(0, reason="fire")
    assert client.force_epoch(noted=True).changed == 0
    with pytest.raises(Refused, match="partitions, 0 to"):
        client.freeze(4_000)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: str(story.__name__))
def test_a_story(story: Story, client: Any, queue: str) -> None:
    story(client, queue)


def test_a_purge_that_is_refused_between_pages_says_so_and_goes_on_when_it_is_repeated(
        monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled = Selecting._cancelled
    pages: list[int] = []

    def refuse_second(self: Selecting, ids: Sequence[bytes]) -> Work[int]:
        pages.append(len(ids))
        if len(pages) > 1:
            raise Refused("busy", "not now")
        return (yield from cancelled(self, ids))
    with MemoryClient() as client:
        client.enqueue_many("q", [b"x"] * (PAGE + 1))
        with monkeypatch.context() as patched, pytest.raises(Uncertain, match="not now; 1 requests of this call"):
            patched.setattr(Selecting, "_cancelled", refuse_second)
            client.purge("q")

        assert client.purge("q") == 1


def test_what_is_too_old_or_collected_keeps_no_page_from_being_purged(monkeypatch: pytest.MonkeyPatch) -> None:
    marked = Selecting._marked
    with MemoryClient() as client:
        replica = client.cluster._node._node.view.vnodes[0].replica
        old = client.enqueue_many("q", [b"x"] * 3, retry=Retry(max_attempts=1))
        client.fail_many(client.claim("q", n=3))
        client.advance(60)
        replica.watermark.close(client.cluster.wall_ms())
        client.advance(60)
        client.enqueue_many("q", [b"y"] * 2)
        gone = client.enqueue("q", b"z")

        def collect_then_mark(self: Selecting, ids: Sequence[bytes], copies: int = 0) -> Work[int]:
            collect(replica, [gone])
            return (yield from marked(self, ids, copies))
        with monkeypatch.context() as patched:
            patched.setattr(Selecting, "_marked", collect_then_mark)
            assert client.purge_all("q", dry_run=True) == 6
            assert client.purge_all("q") == 2

        assert {task.state for task in client.get_many(old)} == {"dead"}
        assert client.count("q", states=["cancelled"]) == 2
        assert client.purge_all("q") == 0 and client.cancel_all("q") == 0


def test_a_task_completed_while_it_is_moved_is_done_no_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with MemoryClient() as client:
        done, waits = client.enqueue_many("q", [b"done", b"waits"])
        cancelled = Selecting._cancelled

        def complete_then_cancel(self: Selecting, ids: Sequence[bytes]) -> Work[int]:
            claims = {claim.id: claim for claim in client.claim("q", n=2)}
            client.release(claims[waits])
            client.complete(claims[done])
            return (yield from cancelled(self, ids))
        with monkeypatch.context() as patched:
            patched.setattr(Selecting, "_cancelled", complete_then_cancel)
            moved = client.move_all("q", "to")

        assert moved == Moved(1) and client.get(done).is_completed and client.get(waits).state == "cancelled"
        assert [claim.payload for claim in client.claim("to", n=9, wait_s=20)] == [b"waits"]
        assert {task.payload: task.state for task in client.list("to")}[b"done"] == "cancelled"


def test_a_task_that_is_held_when_it_is_cancelled_keeps_its_copy_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    with MemoryClient() as client:
        done, lost = client.enqueue_many("q", [b"done", b"lost"])
        cancelled, held = Selecting._cancelled, dict[bytes, Any]()

        def claim_then_cancel(self: Selecting, ids: Sequence[bytes]) -> Work[int]:
            held.update((claim.id, claim) for claim in client.claim("q", n=2, lease_s=30))
            return (yield from cancelled(self, ids))
        with monkeypatch.context() as patched:
            patched.setattr(Selecting, "_cancelled", claim_then_cancel)
            assert client.move_all("q", "to") == Moved(2)

        assert client.claim("to", n=9) == [] and {task.state for task in client.list("to")} == {"blocked"}
        client.complete(held[done])
        client.advance(20)
        assert client.claim("to", n=9) == []
        client.advance(60)
        assert client.get(lost).state == "cancelled"
        assert [claim.payload for claim in client.claim("to", n=9, wait_s=20)] == [b"lost"]


def test_a_mover_that_stops_halfway_leaves_each_task_to_be_done_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the cancelling nothing has changed for whoever claims; moved again, all is moved."""
    with MemoryClient() as client:
        tasks = client.enqueue_many("q", [b"1", b"2", b"3"])

        cancelled = Selecting._cancelled

        def stop(self: Selecting, ids: Sequence[bytes]) -> Work[int]:
            if len(ids) == 3:
                raise Refused("busy", "not now")
            return (yield from cancelled(self, ids))
        with monkeypatch.context() as patched, pytest.raises(Uncertain):
            patched.setattr(Selecting, "_cancelled", stop)
            client.move_all("q", "to")
        client.advance(5)

        assert client.claim("to", n=9) == [] and client.count("to") == 3
        client.complete_many(client.claim("q"))
        assert client.move_all("q", "to", dry_run=True) == Moved(2)
        assert client.move_all("q", "to") == Moved(2) and client.move_all("q", "to") == Moved()
        assert [claim.payload for claim in client.claim("to", n=9, wait_s=20)] == [b"2", b"3"]
        assert client.count("to") == 3 and client.claim("q", n=9) == []
        assert client.get(tasks[0]).is_completed


def test_what_was_moved_is_moved_on_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    with MemoryClient() as client:
        client.enqueue("q", b"x")
        for queue, to in (("q", "to"), ("to", "q"), ("q", "to")):
            client.advance(2)
            assert client.move_all(queue, to) == Moved(1)
        client.advance(2)

        assert [claim.payload for claim in client.claim("to", n=9)] == [b"x"] and client.claim("q", n=9) == []


def test_what_is_too_old_to_be_copied_keeps_no_page_from_being_moved() -> None:
    with MemoryClient() as client:
        replica = client.cluster._node._node.view.vnodes[0].replica
        old = client.enqueue_many("q", [b"x"] * 3)
        client.advance(60)
        replica.watermark.close(client.cluster.wall_ms())
        client.advance(60)
        client.enqueue_many("q", [b"y"] * 2)

        assert client.move_all("q", "to") == Moved(2, old=3)
        assert {task.state for task in client.get_many(old)} == {"waiting"}
        assert client.count("to") == 2


OF_WORKFLOWS = {"submit_workflow", "workflow", "workflows", "await_workflow", "kill_workflow", "exhaust_input",
                "seal_output", "follow_log"}
"""Their stories are in ``test_workflows``."""


def test_every_verb_has_a_story() -> None:
    assert {verb for verbs in STORIES.values() for verb in verbs} | OF_WORKFLOWS == VERBS


BAD_INPUT: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [
    ("enqueue", ("", b"x"), {}, "bad_name"),
    ("enqueue", ("a b", b"x"), {}, "bad_name"),
    ("enqueue", (7, b"x"), {}, "bad_name"),
    ("enqueue", ("q", "text"), {}, "bad_payload"),
    ("enqueue", ("q", bytearray(b"x")), {}, "bad_payload"),
    ("enqueue", ("q", b"x" * ((1 << 20) + 1)), {}, "payload_too_large"),
    ("enqueue", ("q", b"x"), {"priority": 1 << 31}, "bad_priority"),
    ("enqueue", ("q", b"x"), {"priority": True}, "bad_priority"),
    ("enqueue", ("q", b"x"), {"id": b"short"}, "bad_id"),
    ("enqueue", ("q", b"x"), {"id": "no id"}, "bad_id"),
    ("enqueue", ("q", b"x"), {"w": 9}, "bad_w"),
    ("enqueue_many", ("q", [b"x", 7]), {}, "bad_payload"),
    ("enqueue", ("q", b"x"), {"not_before": "soon"}, "bad_time"),
    ("enqueue", ("q", b"x"), {"not_before": True}, "bad_time"),
    ("enqueue", ("q", b"x"), {"not_before": [None]}, "bad_time"),
    ("enqueue", ("q", b"x"), {"not_before": datetime(2027, 1, 1)}, "bad_time"),
    ("enqueue", ("q", b"x"), {"expires": 0}, "bad_time"),
    ("enqueue", ("q", b"x"), {"expires": float("nan")}, "bad_time"),
    ("enqueue", ("q", b"x"), {"expires": 10**400}, "bad_time"),
    ("enqueue", ("q", b"x"), {"expires": time.time() * 1_000}, "bad_time"),
    ("enqueue", ("q", b"x"), {"not_before": 2_000, "expires": 2_000}, "bad_time"),
    ("enqueue_many", ("q", [b"x", b"y"]), {"not_before": 2_000, "expires": [3_000, 1_000]}, "bad_time"),
    ("enqueue_many", ("q", [b"x", b"y"]), {"expires": [3_000]}, "bad_time"),
    ("enqueue", ("q", b"x"), {"retry": 3}, "bad_retry"),
    ("enqueue", ("q", b"x"), {"retry": Retry(0)}, "bad_retry"),
    ("enqueue", ("q", b"x"), {"retry": Retry(2.5)}, "bad_retry"),  # type: ignore[arg-type]
    ("enqueue", ("q", b"x"), {"retry": Retry(backoff_s=-1)}, "bad_retry"),
    ("enqueue", ("q", b"x"), {"retry": Retry(backoff_s=float("inf"))}, "bad_retry"),
    ("enqueue", ("q", b"x"), {"retry": Retry(factor=0.9)}, "bad_retry"),
    ("enqueue", ("q", b"x"), {"retry": Retry(backoff_s=7_200)}, "bad_retry"),
    ("enqueue", ("q", b"x"), {"retry": Retry(jitter=1.1)}, "bad_retry"),
    ("enqueue", ("q", b"x"), {"headers": "trace=7"}, "bad_headers"),
    ("enqueue", ("q", b"x"), {"headers": {"trace": 7}}, "bad_headers"),
    ("enqueue", ("q", b"x"), {"headers": {7: "trace"}}, "bad_headers"),
    ("enqueue", ("q", b"x"), {"headers": {"": "x"}}, "bad_headers"),
    ("enqueue", ("q", b"x"), {"headers": {"k" * 256: "x"}}, "bad_headers"),
    ("enqueue", ("q", b"x"), {"headers": {"k": "x" * 5_000}}, "bad_headers"),
    ("enqueue", ("q", b"x"), {"headers": {str(n): "x" * 20 for n in range(200)}}, "bad_headers"),
    ("enqueue", ("q", b"x"), {"headers": {"k": "\ud800"}}, "bad_headers"),
    ("enqueue_many", ("q", [b"x"]), {"ids": []}, "bad_ids"),
    ("enqueue", ("q", b"x"), {"key": ""}, "bad_key"),
    ("enqueue", ("q", b"x"), {"key": 7}, "bad_key"),
    ("enqueue", ("q", b"x"), {"key": "k" * 256}, "bad_key"),
    ("enqueue", ("q", b"x"), {"key": "\ud800"}, "bad_key"),
    ("enqueue_many", ("q", [b"x", b"y"]), {"key": ["k"]}, "bad_key"),
    ("enqueue", ("q", b"x"), {"unique": ["n"]}, "bad_unique"),
    ("enqueue", ("q", b"x"), {"unique": ""}, "bad_unique"),
    ("enqueue", ("q", b"x"), {"unique": "n", "unique_window_s": 0}, "bad_unique"),
    ("enqueue", ("q", b"x"), {"unique": "n", "unique_window_s": 7 * 86_400}, "bad_unique"),
    ("enqueue", ("q", b"x"), {"unique": "n", "unique_window_s": "day"}, "bad_unique"),
    ("enqueue_many", ("q", [b"x", b"y"]), {"unique": "n"}, "bad_unique"),
    ("enqueue", ("q", b"x"), {"unique": "n", "id": bytes(20)}, "bad_id"),
    ("enqueue", ("q", b"x"), {"deps": 7}, "bad_deps"),
    ("enqueue", ("q", b"x"), {"deps": [7]}, "bad_deps"),
    ("enqueue", ("q", b"x"), {"deps": [b"short"]}, "bad_id"),
    ("enqueue", ("q", b"x"), {"deps": [n.to_bytes(20, "big") for n in range(1_001)]}, "bad_deps"),
    ("enqueue_many", ("q", [b"x", b"y"]), {"deps": bytes(20)}, "bad_deps"),
    ("enqueue_many", ("q", [b"x", b"y"]), {"deps": [[bytes(20)]]}, "bad_deps"),
    ("enqueue_many", ("q", [b"x", b"y"]), {"deps": [[bytes(20)], bytes(20)]}, "bad_deps"),
    ("enqueue", ("q", b"x"), {"deps": [bytes(20)], "on_dep_failure": "shrug"}, "bad_policy"),
    ("enqueue", ("q", b"x"), {"deps": [bytes(20)], "dep_wait_s": -1}, "bad_policy"),
    ("enqueue", ("q", b"x"), {"deps": [bytes(20)], "dep_wait_s": "day"}, "bad_policy"),
    ("enqueue", ("q", b"x"), {"id": bytes(8) + b"\x80" + bytes(11)}, "bad_id"),
    ("enqueue", ("q", b"x"), {"key": "k", "id": bytes(20)}, "bad_id"),
    ("enqueue", ("q", b"x"), {"unique": "n", "deps": [bytes(20)]}, "bad_deps"),
    ("new_ids", (1,), {"key": "k"}, "bad_name"),
    ("claim", ("q",), {"n": 0}, "bad_count"),
    ("claim", ("q",), {"n": 1_001}, "bad_count"),
    ("claim", ("q",), {"lease_s": 0}, "bad_duration"),
    ("claim", ("q",), {"lease_s": float("nan")}, "bad_duration"),
    ("claim", ("q",), {"wait_s": -1}, "bad_duration"),
    ("renew", (ClaimName(bytes(20), 1),), {"lease_s": 90_000}, "bad_duration"),
    ("get", (b"short",), {}, "bad_id"),
    ("get", (bytes(20),), {"min_seq": -1}, "bad_seq"),
    ("get_many", ([bytes(20)],), {"min_seq": True}, "bad_seq"),
    ("count", (), {"states": ["WAITING"]}, "bad_state"),
    ("count", (), {"states": [7]}, "bad_state"),
    ("ends", ([b"short"],), {}, "bad_id"),
    ("ends", ([bytes(20)],), {"wait_s": -1}, "bad_duration"),
    ("results", ([bytes(20)],), {"wait_s": float("nan")}, "bad_duration"),
    ("results", ([bytes(20)],), {"wait_s": "1"}, "bad_duration"),
    ("fail", (ClaimName(bytes(20), 1), b"x" * ((1 << 16) + 1)), {}, "entry_too_large"),
    ("fail", (ClaimName(bytes(20), 1), 7), {}, "bad_entry"),
    ("fail", (ClaimName(bytes(20), 1),), {"retry_in_s": -1}, "bad_duration"),
    ("fail_many", ([ClaimName(bytes(20), 1)], ["a", "b"]), {}, "bad_errors"),
    ("snooze", (ClaimName(bytes(20), 1), float("inf")), {}, "bad_duration"),
    ("complete", (ClaimName(bytes(20), 1), object()), {}, "bad_result"),
    ("complete_many", ([ClaimName(bytes(20), 1)], []), {}, "bad_results"),
    ("cancel", (b"short",), {}, "bad_id"),
    ("cancel", (bytes(20),), {"w": 9}, "bad_w"),
    ("retry", ("no id",), {}, "bad_id"),
    ("results", (["no id"],), {}, "bad_id"),
    ("result", ("no id",), {}, "bad_id"),
    ("result", (bytes(20),), {"wait_s": -1}, "bad_duration"),
    ("pause", ("a b",), {}, "bad_name"),
    ("resume", ("",), {}, "bad_name"),
    ("put_schedule", ("a b", "q"), {"every_s": 1}, "bad_name"),
    ("put_schedule", ("s", "a b"), {"every_s": 1}, "bad_name"),
    ("put_schedule", ("s", "q", "text"), {"every_s": 1}, "bad_payload"),
    ("put_schedule", ("s", "q", b"x" * 40_000), {"every_s": 1}, "payload_too_large"),
    ("put_schedule", ("s", "q"), {}, "bad_schedule"),
    ("put_schedule", ("s", "q"), {"every_s": 1, "cron": "* * * * *"}, "bad_schedule"),
    ("put_schedule", ("s", "q"), {"every_s": 0}, "bad_schedule"),
    ("put_schedule", ("s", "q"), {"every_s": 0.05}, "bad_schedule"),
    ("put_schedule", ("s", "q"), {"every_s": float("nan")}, "bad_schedule"),
    ("put_schedule", ("s", "q"), {"every_s": 10**400}, "bad_schedule"),
    ("put_schedule", ("s", "q"), {"every_s": 1, "zone": "Europe/Berlin"}, "bad_schedule"),
    ("put_schedule", ("s", "q"), {"every_s": 1, "catch_up": 101}, "bad_schedule"),
    ("put_schedule", ("s", "q"), {"every_s": 1, "catch_up": True}, "bad_schedule"),
    ("put_schedule", ("s", "q"), {"every_s": 1, "priority": 1 << 31}, "bad_priority"),
    ("put_schedule", ("s", "q"), {"every_s": 1, "retry": Retry(0)}, "bad_retry"),
    ("put_schedule", ("s", "q"), {"cron": 5}, "bad_cron"),
    ("put_schedule", ("s", "q"), {"cron": ""}, "bad_cron"),
    ("put_schedule", ("s", "q"), {"cron": "61 * * * *"}, "bad_cron"),
    ("put_schedule", ("s", "q"), {"cron": "* " * 200}, "bad_cron"),
    ("put_schedule", ("s", "q"), {"cron": "\ud800 * * * *"}, "bad_cron"),
    ("put_schedule", ("s", "q"), {"cron": "* * * * *", "zone": "Mars"}, "bad_zone"),
    ("put_schedule", ("s", "q"), {"cron": "* * * * *", "zone": 7}, "bad_zone"),
    ("put_schedule", ("s", "q"), {"cron": "* * * * *", "zone": "\ud800"}, "bad_zone"),
    ("remove_schedule", ("a b",), {}, "bad_name"),
    ("remove_schedule", ("none",), {}, "no_such_schedule"),
    ("set_limits", ("a b",), {"concurrency": 1}, "bad_name"),
    ("set_limits", ("q",), {}, "bad_limits"),
    ("set_limits", ("q",), {"concurrency": 0}, "bad_limits"),
    ("set_limits", ("q",), {"concurrency": True}, "bad_limits"),
    ("set_limits", ("q",), {"concurrency": 1_000_001}, "bad_limits"),
    ("set_limits", ("q",), {"rate": 1.5}, "bad_limits"),
    ("set_limits", ("q",), {"rate": 1, "per_s": 0}, "bad_limits"),
    ("set_limits", ("q",), {"rate": 1, "per_s": float("nan")}, "bad_limits"),
    ("set_limits", ("q",), {"rate": 1, "per_s": 100_000}, "bad_limits"),
    ("set_limits", ("q",), {"burst": 1}, "bad_limits"),
    ("set_limits", ("q",), {"key_concurrency": 1_001}, "bad_limits"),
    ("set_limits", ("q",), {"holder_concurrency": 0}, "bad_limits"),
    ("set_quota", ("a b", 1), {}, "bad_name"),
    ("set_quota", ("wf.nightly.", 1), {}, "bad_name"),
    ("set_quota", ("a.", 0), {}, "bad_limits"),
    ("set_quota", ("a.", True), {}, "bad_limits"),
    ("set_quota", ("a.", 1_000_000_001), {}, "bad_limits"),
    ("remove_quota", ("a b",), {}, "bad_name"),
    ("set_limits", ("q",), {"holder_concurrency": 1_000_001}, "bad_limits"),
    ("set_limits", ("q",), {"longest_lease_s": 0}, "bad_duration"),
    ("set_limits", ("q",), {"longest_lease_s": 86_401}, "bad_duration"),
    ("remove_limits", ("",), {}, "bad_name"),
    ("retry_all", ("a b",), {}, "bad_name"),
    ("retry_all", (), {"error": ""}, "bad_error"),
    ("retry_all", (), {"error": "x" * 501}, "bad_error"),
    ("retry_all", (), {"function": ""}, "bad_name"),
    ("retry_all", (), {"argument": ""}, "bad_argument"),
    ("cancel_all", (), {"header": "x" * 501}, "bad_header"),
    ("cancel_all", ("a b",), {}, "bad_name"),
    ("purge_all", ("a b",), {}, "bad_name"),
    ("move_all", ("q", "a b"), {}, "bad_name"),
    ("move_all", ("q", "q"), {}, "bad_name"),
    ("move_all", ("wf.nightly.step", "q"), {}, "bad_name"),
    ("move_all", ("q", "wf.nightly.step"), {}, "bad_name"),
    ("release_all", ("q",), {"holder": "a b"}, "bad_name"),
    ("limits", ("a b",), {}, "bad_name"),
]


@pytest.mark.parametrize(("name", "args", "options", "code"), BAD_INPUT)
def test_bad_input_is_refused_by_name_and_changes_nothing(client: Any, name: str, args: tuple[Any, ...],
                                                           options: dict[str, Any], code: str) -> None:
    before = client.count()
    with pytest.raises(Refused) as refusal:
        getattr(client, name)(*args, **options)

    assert refusal.value.code == code
    assert client.count() == before


def test_a_task_that_needs_a_younger_one_of_its_key_is_refused(client: Any, queue: str) -> None:
    older, younger = client.new_ids(2, queue=queue, key="k")
    for ids, deps in (([older], [[younger]]), ([younger, older], [None, [younger]])):
        with pytest.raises(Refused) as refusal:
            client.enqueue_many(queue, [b"x"] * len(ids), key="k", ids=ids, deps=deps)
        assert refusal.value.code == "bad_deps"
    assert client.count(queue) == 0
    client.enqueue_many(queue, [b"x", b"y"], key="k", ids=[younger, older], deps=[[older], None])
    assert client.get(younger).blocked_by == (older,)


def test_a_verb_is_a_documented_method_of_both_clients() -> None:
    for of_client in (Client, AsyncClient):
        assert list(inspect.signature(of_client.enqueue).parameters)[:3] == ["self", "queue", "payload"]
        assert "fsynced" in (inspect.getdoc(of_client.enqueue) or "")
    assert inspect.iscoroutinefunction(AsyncClient.enqueue) and not inspect.iscoroutinefunction(Client.enqueue)
