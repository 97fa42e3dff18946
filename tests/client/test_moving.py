"""The copy by which a task is moved: what it keeps, and by what it is found again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skuld_py.client.moving import copy_of, id_of_copy
from skuld_py.model import ids
from skuld_py.model.body import ON_FAILURE_INSTEAD, Body, Header, Retry, encode_body
from skuld_py.model.ids import IdMint

BODY = Body(Header("q", 7, Retry(max_attempts=3), (("a", "b"),)), 5, 6, b"payload")


def minted(count: int) -> list[bytes]:
    return IdMint(1).mint(1_000, count, 3)


def body_of(task_id: bytes, body: Body, to: str) -> Body:
    copy = copy_of(task_id, body.encode(), to)
    return Body.decode(encode_body(copy.head, copy.rest))


def test_a_copy_is_as_the_task_but_for_its_queue_and_is_there_instead_of_the_first_one() -> None:
    task_id, = minted(1)

    made = body_of(task_id, BODY, "other")

    assert (made.header.queue, made.deps, made.header.policy) == ("other", (task_id,), ON_FAILURE_INSTEAD)
    assert (made.payload, made.not_before_ms, made.expires_ms) == (b"payload", 5, 6)
    assert (made.header.priority, made.header.retry, made.header.headers) == (
        7, BODY.header.retry, BODY.header.headers)


def test_a_name_and_dependencies_that_are_met_are_left_behind() -> None:
    task_id, dep = IdMint(1).mint(1_000, 2, 3)
    needed = Body(Header("q", policy=1, dep_wait_ms=9), payload=b"x", deps=(dep,))
    named = Body(Header("q", window_ms=1_000), payload=b"x", made_ms=1_500, unique="once")
    named_id = ids.named_id("q", "once", 1_000, "")

    assert body_of(task_id, needed, "other").deps == (task_id,)
    made = body_of(named_id, named, "other")
    assert (made.unique, made.made_ms, made.deps) == ("", 0, (named_id,))
    assert made.prelude.problem_of(id_of_copy(named_id), "other", 0) == ""


@given(task=st.binary(min_size=20, max_size=20))
def test_its_id_follows_from_the_task_alone_and_fits(task: bytes) -> None:
    task_id = task[:8] + bytes([task[8] & 0x7F]) + task[9:]
    copies = [copy_of(task_id, Body(Header("a"), payload=b"x").encode(), queue).id for queue in ("b", "b", "c")]

    assert {*copies} == {id_of_copy(task_id)} and copies[0] != task_id
    assert ids.time_of(copies[0]) == ids.time_of(task_id)
    made = Body(Header("a"), payload=b"x", deps=(task_id,))
    assert made.prelude.problem_of(copies[0], "a", 0) == ""


def test_copies_stand_in_the_order_of_the_tasks() -> None:
    task_ids = minted(50)

    copies = [id_of_copy(task_id) for task_id in task_ids]

    assert copies == sorted(copies)
