"""What options become before they are sent: one value is one task's bytes, however it is said."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.bodies import GIVEN_TIMES, HEADERS, TIMES
from skuld_py.client.flows import FEEDER_TRIES
from skuld_py.client.options import Retry, batches_of, header_of
from skuld_py.client.preludes import AHEAD_MS_MAX, YEAR_2000_MS, Given, Times, prepare
from skuld_py.errors import Refused
from skuld_py.model import body as bodies
from skuld_py.model.body import Body, Header, encode_body, is_plain
from skuld_py.model.ids import IdMint, TaskId, lane_route, named_id
from skuld_py.model.prelude import TIME_MS_MAX, WAKE, Prelude

NOW_MS = 1_800_000_000_000
SOON_MS = NOW_MS + 1_500
PAYLOADS = [b"a", b"b", b"c", b"d"]
HEAD = Header("q", 3).encode()


def timed(head: bytes, payloads: Sequence[bytes], not_before: Times, expires: Times,
          now_ms: int) -> tuple[Sequence[bytes], Sequence[bytes]]:
    heads, rests, wanted = prepare(head, payloads, Given(not_before, expires), now_ms)
    assert not any(wanted)
    return heads, rests


@given(HEADERS, st.lists(st.tuples(TIMES, GIVEN_TIMES, st.binary(max_size=4)), min_size=1, max_size=5))
def test_what_is_sent_is_each_body(header: Header, rows: list[tuple[int, int, bytes]]) -> None:
    rows = [(min(wake, end - 1), end, payload) for wake, end, payload in rows]
    rows = [(wake and max(wake, YEAR_2000_MS), max(end, YEAR_2000_MS + 1), payload) for wake, end, payload in rows]
    ids = [TaskId(task_id) for task_id in IdMint(1).mint(1, len(rows), 0)]
    heads, rests = timed(header.encode(), [row[2] for row in rows], [row[0] / 1_000 or None for row in rows],
                         [row[1] / 1_000 for row in rows], TIME_MS_MAX)

    sent = {batch.ids[at : at + 20]: Body.decode(encode_body(batch.header, rest))
            for batch in batches_of(heads, ids, rests)
            for at, rest in zip(range(0, len(batch.ids), 20), batch.payloads.unpack(), strict=True)}

    assert sent == {task_id: Body(header, *row) for task_id, row in zip(ids, rows, strict=True)}


def test_without_options_there_is_one_batch_of_the_payloads_as_they_are() -> None:
    heads, rests = timed(HEAD, PAYLOADS, None, None, NOW_MS)
    (batch,) = batches_of(heads, [TaskId(bytes(20))] * 4, rests)

    assert rests is PAYLOADS
    assert batch.header == HEAD and is_plain(batch.header)


def test_tasks_with_and_without_a_time_are_two_batches_and_different_times_one() -> None:
    heads, rests = timed(HEAD, PAYLOADS, [SOON_MS / 1_000, None, NOW_MS / 1_000, None], None, NOW_MS)

    made = batches_of(heads, [TaskId(bytes([n]) * 20) for n in range(4)], rests)
    assert [(Header.decode(batch.header).prelude, batch.ids[::20]) for batch in made] == [
        (WAKE, bytes([0, 2])), (0, bytes([1, 3]))]


def test_keys_names_and_dependencies_become_the_prelude_and_the_id() -> None:
    deps = [bytes([n]) * 20 for n in (2, 1, 2)]
    given = Given(key=["k", None, None, "k"], unique=[None, "n", None, "n"], deps=[None, None, deps, []],
                  on_dep_failure="ignore", dep_wait_s=1.5, unique_window_s=10)
    heads, rests, wanted = prepare(HEAD, PAYLOADS, given, NOW_MS + 7)
    made = [Body.decode(encode_body(head, rest)) for head, rest in zip(heads, rests, strict=True)]

    plain = Header("q", 3)
    named = attrs.evolve(plain, window_ms=10_000)
    assert made == [
        Body(plain, payload=b"a", key="k"), Body(named, payload=b"b", made_ms=NOW_MS + 7, unique="n"),
        Body(attrs.evolve(plain, policy=3, dep_wait_ms=1_500), payload=b"c", deps=(b"\1" * 20, b"\2" * 20)),
        Body(named, payload=b"d", made_ms=NOW_MS + 7, unique="n", key="k")]
    assert wanted == [lane_route("q", "k"), named_id("q", "n", NOW_MS, ""), None, named_id("q", "n", NOW_MS, "k")]


def test_one_key_and_one_list_of_dependencies_are_for_all_tasks() -> None:
    _, rests, wanted = prepare(HEAD, PAYLOADS, Given(key="k", deps=[bytes([2]) * 20, bytes([1]) * 20]), NOW_MS)

    prelude = Prelude(key="k", deps=(bytes([1]) * 20, bytes([2]) * 20))
    assert rests == [prelude.encode() + payload for payload in PAYLOADS]
    assert wanted == [lane_route("q", "k")] * 4


def test_a_datetime_and_its_seconds_are_one_time() -> None:
    said = datetime.fromtimestamp(SOON_MS / 1_000, UTC)

    assert timed(HEAD, [b"x"], said, None, NOW_MS) == timed(HEAD, [b"x"], SOON_MS / 1_000, None, NOW_MS)


@pytest.mark.parametrize(("time_ms", "is_taken"), [
    (1, False), (YEAR_2000_MS, True), (YEAR_2000_MS - 1, False), (NOW_MS + AHEAD_MS_MAX, True), (NOW_MS +
    AHEAD_MS_MAX + 1, False), (0.4, False)])
def test_a_time_lies_between_2000_and_ten_years_from_now(time_ms: float, is_taken: bool) -> None:
    try:
        timed(HEAD, [b"x"], None, time_ms / 1_000, NOW_MS)
    except Refused as refusal:
        assert not is_taken and refusal.code == "bad_time" and "expires" in refusal.message
    else:
        assert is_taken


def test_the_default_retry_and_no_headers_are_a_plain_task() -> None:
    assert header_of("q", 3, Retry(), {}) == HEAD == header_of("q", 3, None, None)


def test_a_retry_in_seconds_is_one_in_milliseconds_and_percent() -> None:
    header = Header.decode(header_of("q", 0, Retry(1_000, 0.0015, 9.999, 4_294_967.295, 1), None))

    assert header.retry == bodies.Retry(1_000, 2, 1_000, (1 << 32) - 1, 100)


def test_headers_are_sorted_so_that_their_order_says_nothing() -> None:
    assert header_of("q", 0, None, {"b": "1", "a": "2"}) == header_of("q", 0, None, {"a": "2", "b": "1"})


@pytest.mark.parametrize("tries", [FEEDER_TRIES, Retry()])
def test_a_workflow_s_own_tasks_are_tried_for_more_than_half_a_day(tries: Retry) -> None:
    pauses_s = [min(tries.max_backoff_s, tries.backoff_s * tries.factor ** failure)
                for failure in range(tries.max_attempts - 1)]
    assert 12 < sum(pauses_s) / 3_600 < 18
