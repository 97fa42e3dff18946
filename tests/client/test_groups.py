"""Chains, groups, chords and joins: who waits for whom, what dependents read, doing it again, bad input."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from skuld_py import Refused
from skuld_py.client.groups import JOIN, STEPS_MAX, tasks_of
from skuld_py.errors import Uncertain
from skuld_py.testing import AsyncMemoryClient, MemoryClient
from skuld_py.worker.registry import encode_call


def work_on(client: Any, queue: str, count: int = 500) -> list[bytes]:
    """Complete what waits now with its payload as the result; gives the payloads in their order."""
    claims = client.claim(queue, n=count)
    client.complete_many(claims, [claim.payload for claim in claims])
    return [claim.payload for claim in claims]


@pytest.fixture
def memory() -> MemoryClient:
    return MemoryClient()


def test_each_step_of_a_chain_waits_for_the_one_before(memory: MemoryClient) -> None:
    first = memory.enqueue("before", b"0")
    ids = memory.chain([("a", b"1"), ("b", b"2"), ("a", b"3")], deps=[first], priority=5)

    assert [task.deps for task in memory.get_many(ids)] == [(first,), (ids[0],), (ids[1],)]
    assert [task.priority for task in memory.get_many(ids)] == [5, 5, 5]
    seen = [(queue, work_on(memory, queue)) for queue in ("a", "b", "before", "b", "a", "a", "b", "a")]
    assert [pair for pair in seen if pair[1]] == [("before", [b"0"]), ("a", [b"1"]), ("b", [b"2"]), ("a", [b"3"])]
    assert [memory.results_of(task_id) for task_id in ids] == [[b"0"], [b"1"], [b"2"]]


def test_the_steps_of_a_group_stand_side_by_side(memory: MemoryClient) -> None:
    ids = memory.group([("a", b"1"), ("b", b"2"), ("a", b"3")])

    assert ids == sorted(ids)
    assert (work_on(memory, "a"), work_on(memory, "b")) == ([b"1", b"3"], [b"2"])
    assert [task.payload for task in memory.get_many(ids)] == [b"1", b"2", b"3"]


def test_a_chord_ends_with_a_task_that_reads_what_the_others_gave(memory: MemoryClient) -> None:
    steps, then = memory.chord([("a", b"%d" % number) for number in range(10)], ("b", b"sum"))

    assert work_on(memory, "b") == []
    assert memory.results_of(then) == [None] * 10
    work_on(memory, "a", 9)
    assert work_on(memory, "b") == []
    work_on(memory, "a")
    assert work_on(memory, "b") == [b"sum"]
    assert memory.results_of(then) == [b"%d" % number for number in range(10)] == memory.results(steps)


def test_more_than_a_thousand_are_joined_by_a_tree_whose_inner_tasks_do_nothing(memory: MemoryClient) -> None:
    count = 2_500
    steps, then = memory.chord([("a", b"%d" % number) for number in range(count)], ("b", b"sum"), priority=3)
    assert memory.count() == tasks_of(count) == count + 3 + 1
    assert work_on(memory, "b") == []
    while work_on(memory, "a"):
        pass
    claims = memory.claim("b", n=10)
    assert [(claim.payload, claim.priority) for claim in claims] == [(JOIN, 3)] * 3
    assert memory.claim("b") == []
    memory.complete_many(claims)

    assert work_on(memory, "b") == [b"sum"]
    assert memory.results_of(then) == [b"%d" % number for number in range(count)]
    assert len(steps) == len(set(steps)) == count
    assert {len(task.deps) for task in memory.get_many([claim.id for claim in claims])} <= {833, 834}


def test_what_workers_run_for_a_join_is_what_a_join_says() -> None:
    assert encode_call("skuld:join") == JOIN


@pytest.mark.parametrize(("steps", "tasks"), [(1, 2), (1_000, 1_001), (1_001, 1_004), (2_500, 2_504),
                                              (STEPS_MAX, STEPS_MAX + 101)])
def test_a_join_between_has_at_most_a_thousand_parts(steps: int, tasks: int) -> None:
    assert tasks_of(steps) == tasks


def test_tasks_that_are_there_are_joined(memory: MemoryClient) -> None:
    ids = [memory.enqueue("a", b"1"), memory.enqueue("b", b"2")]
    last = memory.join([ids[1], str(ids[0]), ids[0]], ("c", b"3"))

    assert memory.get(last).deps == tuple(ids)
    assert [work_on(memory, queue) for queue in "cabc"] == [[], [b"1"], [b"2"], [b"3"]]
    many = memory.group([("d", b"x")] * 1_001)
    memory.join(many, ("e", b"y"), ids=memory.new_ids(tasks_of(1_001) - 1_001))
    assert memory.count("e") == 3


def test_a_group_made_again_with_its_ids_is_the_same_group(memory: MemoryClient) -> None:
    steps = [("a", b"1"), ("a", b"2")]
    ids = memory.new_ids(tasks_of(2))

    assert memory.chord(steps, ("b", b"3"), ids=ids) == memory.chord(steps, ("b", b"3"), ids=ids)
    assert memory.count() == 3
    with pytest.raises(Uncertain, match="1 requests of this call were carried out before") as refused:
        memory.chord(steps, ("b", b"4"), ids=ids)
    assert refused.value.code == "conflict"


def test_what_stands_behind_a_dead_step_follows_the_policy(memory: MemoryClient) -> None:
    waiting = memory.chain([("a", b"1"), ("b", b"2")])
    dying = memory.chain([("a", b"1"), ("b", b"2"), ("c", b"3")], on_dep_failure="fail")
    memory.cancel(waiting[0], dying[0])
    memory.advance(120)

    assert memory.get(waiting[1]).state == "blocked"
    assert [memory.get(task_id).death for task_id in dying[1:]] == ["dep_failed", "dep_failed"]


@pytest.mark.parametrize(("verb", "arguments", "options", "code"), [
    ("chain", ([],), {}, "bad_steps"),
    ("chain", (["a"],), {}, "bad_steps"),
    ("chain", ([("a",)],), {}, "bad_steps"),
    ("chain", ([("a b", b"1")],), {}, "bad_name"),
    ("chain", ([(7, b"1")],), {}, "bad_name"),
    ("chain", ([("a", "text")],), {}, "bad_payload"),
    ("chain", ([("a", b"1")],), {"ids": []}, "bad_ids"),
    ("chain", ([("a", b"1")] * 2,), {"ids": [b"\1" * 20, b"\0" * 20]}, "bad_ids"),
    ("chain", ([("a", b"1")],), {"deps": [b"short"]}, "bad_id"),
    ("chain", ([("a", b"1")] * 2,), {"on_dep_failure": "shrug"}, "bad_policy"),
    ("group", ([("a", b"1")] * (STEPS_MAX + 1),), {}, "bad_steps"),
    ("chord", ([("a", b"1")], ("b",)), {}, "bad_steps"),
    ("chord", ([("a", b"1")], ("b", b"2")), {"ids": [bytes(20)]}, "bad_ids"),
    ("join", ([], ("b", b"2")), {}, "bad_deps"),
    ("results_of", (b"\1" * 20,), {}, "no_such_task"),
])
def test_bad_input_is_refused_by_name_and_changes_nothing(
        memory: MemoryClient, verb: str, arguments: tuple[Any, ...], options: dict[str, Any], code: str) -> None:
    with pytest.raises(Refused) as refused:
        getattr(memory, verb)(*arguments, **options)

    assert refused.value.code == code
    assert memory.count() == 0


def test_groups_are_awaited_too(memory: MemoryClient) -> None:
    async def run() -> list[bytes | None]:
        client = AsyncMemoryClient(cluster=memory.cluster)
        _, then = await client.chord([("a", b"1"), ("a", b"2")], ("b", b"3"))
        await client.complete_many(await client.claim("a", n=5), [b"x", b"y"])
        assert [claim.payload for claim in await client.claim("b")] == [b"3"]
        return await client.results_of(then)

    assert asyncio.run(run()) == [b"x", b"y"]


def test_a_missing_result_is_told_and_never_none_in_silence(memory: MemoryClient) -> None:
    one, lost = memory.enqueue("a", b"1"), memory.new_ids(1)[0]
    work_on(memory, "a")
    then = memory.join([one, lost], ("b", b"sum"))

    with pytest.raises(Refused, match=str(lost)) as told:
        memory.results_of(then)
    assert told.value.code == "missing_result"
    assert memory.results_of(then, missing_ok=True) == [b"1", None]
