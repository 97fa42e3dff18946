"""What the gateway makes of a task's options: which ids it asks for, and what the client is given."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, cast

import attrs
import pytest

from skuld_py.client.enqueueing import StoredIds
from skuld_py.client.options import Retry
from skuld_py.errors import Uncertain
from skuld_py.gateway import enqueueing
from skuld_py.gateway.call import Call
from skuld_py.gateway.problems import Problem
from skuld_py.gateway.requests import given, model_of
from skuld_py.model.ids import TaskId, to_text
from skuld_py.verbs import enqueueing as verbs
from skuld_py.verbs.verb import Verb

DEP = TaskId(b"d" * 20)
GIVEN = TaskId(b"g" * 20)
SHARED = {"priority": 0, "w": None, "retry": None, "headers": None, "unique_window_s": 3_600.0,
          "on_dep_failure": "wait", "dep_wait_s": 86_400.0}


@attrs.define
class Cluster:
    """Says what it was asked for; ids are of the key they were made for, or of the name that gives them."""

    is_in_doubt: bool = False
    stored: list[tuple[Any, ...]] = attrs.field(factory=list)

    async def new_ids(self, count: int, *, queue: str, key: str | None) -> list[TaskId]:
        return [self.id_of(f"{queue} {key}", number) for number in range(count)]

    @staticmethod
    def id_of(words: str, number: int = 0) -> TaskId:
        return TaskId(f"{words} {number}".encode().ljust(20))

    async def enqueue(self, queue: str, payload: bytes, *, id: TaskId | None, **options: Any) -> TaskId:
        self.stored.append((queue, payload, id, options))
        if self.is_in_doubt:
            raise Uncertain("deadline", "no answer in time")
        return id or self.id_of(options["unique"])

    async def enqueue_many(self, queue: str, payloads: Sequence[bytes], *, ids: Sequence[TaskId] | None,
                           **options: Any) -> StoredIds:
        self.stored.append((queue, payloads, ids, options))
        return StoredIds(ids or map(self.id_of, options["unique"]), 2)


def call(cluster: Cluster) -> Call:
    return Call(cast(Any, cluster), cast(Any, None), cast(Any, None), 0.0, None, cast(Any, None), cast(Any, None))


def enqueue(cluster: Cluster, **asked: Any) -> str:
    return asyncio.run(enqueueing.enqueue(call(cluster), **read(verbs.enqueue, asked)))["id"]


def enqueue_many(cluster: Cluster, tasks: list[dict[str, Any]]) -> list[str]:
    return asyncio.run(enqueueing.enqueue_many(call(cluster), **read(verbs.enqueue_many, {"tasks": tasks})))["ids"]


def read(verb: Verb, asked: dict[str, Any]) -> dict[str, Any]:
    return given(verb.asks, model_of(verb.asks).model_validate({"queue": "q", **asked}))


def test_every_option_is_the_clients() -> None:
    cluster = Cluster()

    made = enqueue(cluster, payload="x", priority=3, w=2, not_before_ms=1_500, expires_ms=2_500, key="k",
                   deps=[to_text(DEP)], on_dep_failure="ignore", dep_wait_s=5, unique_window_s=60,
                   headers={"a": "b"}, retry={"max_attempts": 3, "jitter": 0})

    lane = cluster.id_of("q k")
    assert made == to_text(lane) and cluster.stored == [("q", b"x", lane, {
        "priority": 3, "w": 2, "not_before": 1.5, "expires": 2.5, "key": "k", "unique": None, "deps": [DEP],
        "on_dep_failure": "ignore", "dep_wait_s": 5.0, "unique_window_s": 60.0, "headers": {"a": "b"},
        "retry": Retry(max_attempts=3, jitter=0)})]


def test_a_delay_is_a_time_from_now_for_each() -> None:
    cluster = Cluster()

    before = time.time()
    enqueue(cluster, payload="x", delay_s=60)
    enqueue_many(cluster, [{"payload": "1", "delay_s": 5}, {"payload": "2", "not_before_ms": 1_500},
                           {"payload": "3"}])

    (single, many), after = ([stored[3]["not_before"] for stored in cluster.stored]), time.time()
    assert before + 60 <= single <= after + 60
    assert before + 5 <= many[0] <= after + 5 and many[1:] == [1.5, None]


def test_each_of_many_has_its_own_and_an_id_of_its_key() -> None:
    cluster = Cluster()
    tasks = [{"payload": "1", "key": "a"}, {"payload": "2", "deps": [to_text(DEP)]}, {"payload": "3", "key": "a"}]

    made = enqueue_many(cluster, tasks)

    ids = [cluster.id_of("q a"), cluster.id_of("q None"), cluster.id_of("q a", 1)]
    assert made == [to_text(each) for each in ids]
    assert cluster.stored == [("q", [b"1", b"2", b"3"], ids, {
        **SHARED, "not_before": [None] * 3, "expires": [None] * 3, "key": ["a", None, "a"],
        "unique": [None] * 3, "deps": [None, [DEP], None]})]


def test_a_unique_name_gives_the_id() -> None:
    cluster = Cluster()

    made = enqueue(cluster, payload="x", unique="report")
    many = enqueue_many(cluster, [{"payload": "x", "unique": name} for name in ("a", "b")])

    assert [made, *many] == [to_text(cluster.id_of(name)) for name in ("report", "a", "b")]
    assert [stored[2] for stored in cluster.stored] == [None, None]


@pytest.mark.parametrize(("more", "is_repeatable", "ids"), [
    ({}, False, [Cluster.id_of("q None")]), ({"id": to_text(GIVEN)}, True, [GIVEN]), ({"unique": "u"}, True, [])])
def test_what_is_in_doubt_says_whether_it_may_be_sent_again_as_it_is(
    more: dict[str, str], is_repeatable: bool, ids: list[TaskId]
) -> None:
    with pytest.raises(Problem) as problem:
        enqueue(Cluster(is_in_doubt=True), payload="x", **more)

    assert (problem.value.retry, problem.value.ids) == (is_repeatable, [to_text(each) for each in ids])
