"""The clients in memory refuse what the real ones refuse, as these do. What tasks go through: ``tests/system``."""

from __future__ import annotations

import asyncio
import inspect
import math
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import pytest

from client.doors import node_in_memory
from client.test_verbs import VERBS, Blocked
from skuld_py import AsyncClient, Client, Refused, Retry, SkuldError, WorkerStatus, Workflow
from skuld_py.client.archiving import Page
from skuld_py.client.claims import ClaimName
from skuld_py.model.outcomes import FIRST_TOKEN
from skuld_py.testing import AsyncMemoryClient, MemoryClient

NOBODY = "127.0.0.1:1"
ID = b"1" * 20
CLAIM = ClaimName(ID, FIRST_TOKEN)
STEP = "q", b"x"
FLOW = Workflow("flow")
FLOW.edge(FLOW.input("a", function="app:lines"), FLOW.step("b", "app:count"))
OF_PARAMETER: dict[str, Any] = {
    "queue": "q", "payload": b"x", "payloads": [b"x", b"y"], "name": "s", "id": ID, "ids": [ID], "claim": CLAIM,
    "claims": [CLAIM], "data": b"x", "delay_s": 1, "partition": 0, "steps": [STEP], "then": STEP, "deps": [ID],
    "page": Page(0, (), False, (), 1, ID, bytes(8)), "lease_s": 30,
    "root": "/a", "prefix": "a.", "open": 5, "to": "r", "step": "a", "definition": FLOW, "node": "n1",
    "worker": WorkerStatus("w", "", "host", 1, {"q": 1}, "", "", 0, 0, 0)}

OF_WORKFLOWS = {"workflow", "await_workflow", "kill_workflow", "exhaust_input", "seal_output"}
"""Verbs whose id is a workflow's, which is a name."""


def good_call_of(name: str) -> tuple[Any, ...]:
    """What a verb must be given."""
    given: list[Any] = []
    for parameter in [*inspect.signature(getattr(Client, name)).parameters.values()][1:]:
        if parameter.kind is parameter.VAR_POSITIONAL:
            given += OF_PARAMETER[parameter.name]
        elif parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            is_name = parameter.name == "id" and name in OF_WORKFLOWS
            given.append("flow" if is_name else OF_PARAMETER[parameter.name])
    return tuple(given)


GOOD = {name: good_call_of(name) for name in sorted(VERBS)}
ALSO: dict[str, dict[str, Any]] = {"release_all": {"holder": "nobody"},
    "put_schedule": {"every_s": 60}, "set_limits": {"concurrency": 1},
    "update": {"seq": 0, "checkpoint": 5, "number": 0}}
ODD: tuple[Any, ...] = (
    None, True, -1, 0, 1, 4, 10, 1.5, math.nan, math.inf, 1 << 31, 1 << 63, 10**400, "", "a b", "\ud800", "no id",
    "x" * 300, b"", b"1" * 19, ID, bytearray(20), b"x" * 70_000, b"x" * ((1 << 20) + 1), [], [None], [7], [b"x"],
    ["x"], [ID] * 1_001, [CLAIM, None], [STEP], {}, {"a": 7}, object(), datetime(2027, 1, 1), Retry(0), CLAIM,
    (ID,), ClaimName(ID, 0), ClaimName(ID, FIRST_TOKEN, b"short"),
)
"""For any argument of any verb; for most of them something that it cannot be."""


def calls_of(name: str) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """As it ought to be called, and with each argument in turn as it ought not to be."""
    good, also = GOOD[name], ALSO.get(name, {})
    yield good, also
    parameters = [*inspect.signature(getattr(Client, name)).parameters.values()][1:]
    for place, parameter in enumerate(parameters):
        for odd in ODD:
            if parameter.kind is parameter.KEYWORD_ONLY:
                yield good, {**also, parameter.name: odd}
            else:
                yield (*good[:place], odd, *good[place + 1:]), also


def said(client: Any, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, ...]:
    """The error that a call ends with, or nothing."""
    try:
        answer = getattr(client, name)(*args, **options)
        if inspect.isgenerator(answer):
            next(answer, None)
    except SkuldError as error:
        return type(error), error.code, error.message
    except Exception as error:
        return type(error), str(error)
    return ()


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as made:
        yield made


@pytest.fixture(scope="module")
def closed(runner: asyncio.Runner) -> dict[str, Any]:
    """A client of each kind, closed twice."""
    blocking = Client(NOBODY, timeout_s=600), MemoryClient()
    awaited = AsyncClient(NOBODY, timeout_s=600), AsyncMemoryClient()
    for _ in range(2):
        for client in blocking:
            client.close()
        for each in awaited:
            runner.run(each.close())
    return {type(client).__name__: client for client in blocking} | {
        type(each).__name__: Blocked(each, runner) for each in awaited}


@pytest.mark.parametrize("name", sorted(GOOD))
def test_every_verb_of_every_closed_client_says_so(name: str, closed: dict[str, Any]) -> None:
    told = {kind: said(client, name, GOOD[name], ALSO.get(name, {})) for kind, client in closed.items()}

    assert told == dict.fromkeys(told, (Refused, "closed", "the client is closed; make another one"))


@pytest.mark.parametrize("name", sorted(GOOD))
def test_what_is_refused_before_it_is_sent_is_refused_in_memory_alike(name: str, closed: dict[str, Any]) -> None:
    """A closed client refuses bad arguments first, so it tells which ones these are."""
    differences, refused = [], 0
    with MemoryClient() as memory:
        for args, options in calls_of(name):
            wanted = {kind: said(client, name, args, options) for kind, client in closed.items()}
            first = wanted["Client"]
            if first and "closed" not in first:
                refused += 1
                wanted["open"] = said(memory, name, args, options)
            if any(other != first for other in wanted.values()):
                differences.append((str(args)[:200], str(options)[:200], wanted))

    assert differences == []
    assert refused or len(inspect.signature(getattr(Client, name)).parameters) == 1


def test_a_closed_client_leaves_its_cluster_to_others() -> None:
    first = MemoryClient()
    with first.cluster.client() as other:
        other.enqueue("q", b"x")
    first.advance(1)

    assert said(other, "count", (), {})[1] == "closed" and first.count("q") == 1


@pytest.fixture(params=["real", "memory"])
def blocking(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "memory":
        with MemoryClient() as memory:
            yield memory
    else:
        with node_in_memory() as address, Client(address) as client:
            yield client


@pytest.fixture(params=["real", "memory"])
def make(request: pytest.FixtureRequest) -> Iterator[Callable[[], Any]]:
    """A maker of clients to be awaited, of one cluster."""
    if request.param == "memory":
        cluster = MemoryClient().cluster
        yield lambda: AsyncMemoryClient(cluster=cluster)
    else:
        with node_in_memory() as address:
            yield lambda: AsyncClient(address)


def test_an_awaited_client_belongs_to_one_loop(make: Callable[[], Any]) -> None:
    client = make()
    with asyncio.Runner() as first, asyncio.Runner() as second:
        assert first.run(client.count()) == 0
        for name in ("count", "enqueue", "claim", "list"):
            told = said(Blocked(client, second), name, GOOD[name], {})
            assert told[:2] == (Refused, "other_loop") and told[2].endswith("make one for each loop")
        first.run(client.close())
        assert said(Blocked(client, second), "count", (), {})[1] == "closed"


def test_a_blocking_client_may_be_used_inside_a_loop(blocking: Any) -> None:
    async def story() -> int:
        blocking.enqueue("q", b"x")
        return int(blocking.count("q"))
    assert asyncio.run(story()) == 1


def test_two_updates_at_once_are_refused_as_in_a_cluster(make: Callable[[], Any]) -> None:
    async def story() -> list[Any]:
        async with make() as client:
            await client.enqueue("q", b"x")
            held, = await client.claim("q")
            return await asyncio.gather(client.update(held, b"a"), client.update(held, b"b"),
                                        return_exceptions=True)
    first, second = asyncio.run(story())

    assert first == 1 and second.code == "update_under_way"


def test_who_asks_again_and_again_lets_others_run(make: Callable[[], Any]) -> None:
    async def story() -> int:
        async with make() as client:
            async def enqueue() -> None:
                await client.enqueue("q", b"x")
            enqueueing, looks = asyncio.create_task(enqueue()), 0
            while not await client.count("q"):
                looks += 1
                assert looks < 1_000, "nobody else runs"
            await enqueueing
            return looks
    assert asyncio.run(story()) < 1_000


def test_who_closes_while_calls_are_under_way_ends_them(make: Callable[[], Any]) -> None:
    async def story() -> Any:
        client = make()
        counting = asyncio.create_task(client.count())
        await asyncio.sleep(0)
        await client.close()
        return (await asyncio.gather(counting, return_exceptions=True))[0].code
    assert asyncio.run(story()) == "closed"


def test_threads_share_a_client(blocking: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(number: int) -> int:
        for _ in range(40):
            blocking.enqueue("q", b"x")
        return sum(len(blocking.claim("q")) for _ in range(40))
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            claimed = sum(threads.map(work, range(4)))
    finally:
        sys.setswitchinterval(before)
    assert (claimed, blocking.count("q")) == (160, 160)


def test_tasks_come_as_they_were_made_though_time_stands_still_with_keys_and_without_by_any_client() -> None:
    with MemoryClient() as first, first.cluster.client() as second:
        made = [client.enqueue("q", b"x", key=key) for client, key in (
            (first, "a"), (second, None), (first, None), (second, "b"), (first, "c"), (first, None),
            (second, None))]
        more = first.enqueue_many("q", [b"x"] * 3, key=["d", None, "e"])
        last = second.chain([("q", b"x")])

        assert [task.id for task in first.list("q")] == [*made, *sorted(more), *last]
        assert [claim.id for claim in first.claim("q", n=99)] == [*made, *sorted(more), *last]
        assert {first.get(made[0]).enqueued_ms, first.get(made[1]).enqueued_ms - 1} == {first.cluster.wall_ms()}


@pytest.mark.parametrize("w", [1, 2, 3])
def test_as_many_owners_may_be_asked_for_as_a_cluster_has(w: int) -> None:
    with MemoryClient() as client:
        task_id = client.enqueue("q", b"x", w=w)
        client.enqueue_many("q", [b"y"], w=w)
        held, other = client.claim("q", n=2)
        client.update(held, b"note", w=w)
        client.complete(held, w=w)
        client.complete_many([other], w=w)
        client.cancel(task_id, w=w)


@pytest.mark.parametrize("w", [4, 9])
@pytest.mark.parametrize("name", ["enqueue", "enqueue_many", "cancel"])
def test_more_owners_than_a_cluster_has_are_refused_as_there(name: str, w: int) -> None:
    with MemoryClient() as client:
        args = (client.enqueue("q", b"x"),) if name == "cancel" else GOOD[name]
        assert said(client, name, args, {"w": w}) == (
            Refused, "bad_w", f"w: {w} is more than the 3 replicas; use 0 for a majority")


@pytest.mark.parametrize(("name", "options"), [
    ("count", {"queue": "a b"}), ("list", {"page": 0}), ("list", {"page": "x"}), ("list", {"queue": "a b"}),
    ("list", {"page": 1 << 63}), ("list", {"page": 1 << 70}), ("list", {"page": 1_001}),
    ("list_page", {"page": 1_001}),
])
def test_what_is_refused_as_malformed_is_refused_alike(name: str, options: dict[str, Any]) -> None:
    with node_in_memory() as address, Client(address) as client, MemoryClient() as memory:
        told = said(client, name, (), options)
        assert told and told[0] is Refused and said(memory, name, (), options) == told


@pytest.mark.parametrize("count", [-1, 1_000_001, 1.0, True, "3"])
def test_so_many_ids_are_made_by_one_call_and_no_more(count: Any) -> None:
    with MemoryClient() as memory, pytest.raises(Refused, match=r"count: .* is not in 0\.\.1000000") as refused:
        memory.new_ids(count)
    assert refused.value.code == "bad_count"


def test_of_two_that_ask_for_one_name_in_one_request_one_is_new() -> None:
    with MemoryClient() as client:
        first = client.enqueue_many("q", [b"1", b"2", b"3"], unique=["s", "t", "s"])
        again = client.enqueue_many("q", [b"4", b"5"], unique=["t", "u"])

    assert first[0] == first[2] != first[1]
    assert sorted(each.is_duplicate for each in (first[0], first[2])) == [False, True]
    assert [each.is_duplicate for each in (first[1], *again)] == [False, True, False]


def test_what_is_too_much_at_once_is_asked_again_until_there_is_time_for_it() -> None:
    client = MemoryClient(now=1_000_000_000, timeout_s=10)

    for number in range(250):
        assert client.put_schedule(f"s{number}", "q", cron="7 3 * * *") == []

    assert 1_000_000_000 < client.cluster.steady_s() < 1_000_000_010
    assert len(client.schedules()) == 250
