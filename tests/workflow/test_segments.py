"""Ids of segments are the same whoever derives them; emissions are read as they were written, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import xor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skuld_py.calls.results import decode_result, encode_result
from skuld_py.config import DEFAULT_LIMITS
from skuld_py.errors import Malformed, Refused
from skuld_py.model import ids
from skuld_py.model.names import check_name
from skuld_py.workflow import segments
from skuld_py.workflow.segments import Emission

NOW_MS = 1_790_000_000_000
TOKEN = 3 << 32 | 7
ROOT = segments.root_id("sales", "files", 5, NOW_MS)


def test_ids_of_roots_follow_from_their_numbers_whatever_batch_they_are_asked_for_in() -> None:
    every = segments.root_ids("sales", "files", 10, 300, NOW_MS)
    assert len(set(every)) == 300
    assert every == [segments.root_id("sales", "files", number, NOW_MS) for number in range(10, 310)]
    parts = [segments.root_ids("sales", "files", *part, NOW_MS) for part in ((10, 41), (51, 259))]
    assert every == [*parts[0], *parts[1]]


@pytest.mark.parametrize("other", [("sale", "sfiles", 5, NOW_MS), ("sales", "file", 5, NOW_MS),
                                   ("sales", "files", 6, NOW_MS), ("sales", "files", 5, NOW_MS + 1)])
def test_roots_of_other_workflows_inputs_numbers_and_times_have_other_ids(other: Any) -> None:
    assert segments.root_id(*other) != ROOT


def test_roots_are_spread_over_partitions_in_stripes() -> None:
    routes = [ids.route_of(root) for root in segments.root_ids("sales", "files", 0, 64 * 20, NOW_MS)]
    assert [len({*routes[at : at + 64]}) for at in range(0, len(routes), 64)] == [1] * 20
    assert len({*routes}) == 20


def test_a_tree_stays_in_one_partition_and_a_child_is_as_old_as_its_parents_claim() -> None:
    children = segments.child_ids(ROOT, TOKEN, NOW_MS + 9, 50)
    assert {ids.route_of(child) for child in children} == {ids.route_of(ROOT)}
    assert {ids.time_of(child) for child in children} == {NOW_MS + 9}
    assert not any(map(ids.is_laned, [ROOT, *children]))
    assert len(set(children)) == 50


def test_children_follow_from_the_claim_not_from_how_many_there_are() -> None:
    children = segments.child_ids(ROOT, TOKEN, NOW_MS, 50)
    assert segments.child_ids(ROOT, TOKEN, NOW_MS, 7) == children[:7]
    assert segments.child_id(ROOT, TOKEN, NOW_MS, 3) == children[3]
    assert not {*children} & {*segments.child_ids(ROOT, TOKEN + 1, NOW_MS, 50)}
    assert segments.child_ids(ROOT, TOKEN, NOW_MS, 0) == []


def test_an_ack_is_the_sum_of_a_segment_and_its_children() -> None:
    children = segments.child_ids(ROOT, TOKEN, NOW_MS, 5)
    assert segments.ack_of(ROOT, TOKEN, 5) == reduce(xor, map(segments.value_of, [ROOT, *children]))
    assert segments.ack_of(ROOT, TOKEN, 0) == segments.value_of(ROOT)


def test_only_a_claim_that_is_alone_and_was_held_until_it_was_acknowledged_emits_by_itself() -> None:
    assert segments.is_sole(True, 9.9, 10.0)
    assert not segments.is_sole(False, 9.9, 10.0)
    assert not segments.is_sole(True, 10.0, 10.0)


def test_ids_and_queues_of_services_are_names_and_differ() -> None:
    made = {segments.feeder_id("sales", "files", NOW_MS), segments.seal_id("sales", "files", NOW_MS),
            segments.feeder_id("sales", "other", NOW_MS), segments.seal_id("sales", "files", NOW_MS + 1), ROOT}
    assert len(made) == 5
    assert not any(map(ids.is_laned, made))
    check_name("queue", segments.ack_queue("a" * 100, "b" * 64))


@pytest.mark.parametrize("derive", [
    lambda: segments.root_id("a", "b", -1, NOW_MS), lambda: segments.root_id("a", "b", 0, -1),
    lambda: segments.root_id("a", "b", 1 << 62, NOW_MS), lambda: segments.child_ids(b"short", 1, NOW_MS, 1),
    lambda: segments.child_ids(ROOT, 1 << 64, NOW_MS, 1), lambda: segments.child_ids(ROOT, 1, NOW_MS, 5_000),
    lambda: segments.child_ids(ROOT, -1, NOW_MS, 1), lambda: segments.child_ids(ROOT, 1, 1 << 62, 1)])
def test_numbers_out_of_their_range_are_malformed(derive: Callable[[], Any]) -> None:
    with pytest.raises(Malformed):
        derive()


ROWS = st.lists(st.tuples(st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=64),
                          st.binary(max_size=50)), max_size=30).map(tuple)


@given(ROWS)
def test_an_emission_is_read_as_it_was_written_also_as_a_result(rows: tuple[tuple[str, bytes], ...]) -> None:
    stored = Emission(rows).encode()
    assert stored
    assert Emission.decode(stored) == Emission(rows)
    assert decode_result(encode_result(stored)) == stored


@given(ROWS, st.data())
def test_a_damaged_emission_is_malformed_or_another_one(rows: Any, data: st.DataObject) -> None:
    stored = bytearray(Emission(rows).encode())
    at = data.draw(st.integers(0, len(stored) - 1))
    stored[at] ^= data.draw(st.integers(1, 255))
    for damaged in (bytes(stored), bytes(stored[:at])):
        try:
            found = Emission.decode(damaged)
        except Malformed:
            continue
        assert sum(len(value) for _, value in found.rows) <= len(damaged)


@given(st.one_of(st.binary(max_size=60), st.binary(max_size=60).map(lambda data: b"skE\x01" + data), st.none(),
                 st.text(), st.lists(st.integers())))
def test_what_is_no_emission_is_malformed(data: object) -> None:
    try:
        found = Emission.decode(data)
    except Malformed:
        return
    assert isinstance(data, bytes) and len(found.rows) <= len(data)


def test_an_emission_is_bounded_and_says_what_to_do() -> None:
    Emission((("a", b"x"),) * segments.EMITTED_MAX).encode()
    for rows, code in (((("a", b"x"),) * (segments.EMITTED_MAX + 1), "too_many_emitted"),
                       ((("a", bytes(70_000)),), "emission_too_large"),
                       ((("a", bytes(60_000)),) * 2, "emission_too_large"),
                       ((("", b""),), "bad_step"), ((("a" * 65, b""),), "bad_step"),
                       (tuple((f"s{number}", b"") for number in range(257)), "bad_step")):
        with pytest.raises(Refused) as refused:
            Emission(rows).encode()
        assert refused.value.code == code
        assert refused.value.facts["field"] == "emitted"
    assert DEFAULT_LIMITS.entry_bytes > segments.EMISSION_BYTES_MAX


def test_strands_have_roots_feeders_and_acks_of_their_own() -> None:
    sources = segments.sources_of("in", 3)
    assert sources == ["in", "in:1", "in:2"] and segments.sources_of("in", 1) == ["in"]
    assert [segments.strand_of(each) for each in sources] == [("in", 0), ("in", 1), ("in", 2)]
    queues = [segments.ack_queue("w", each) for each in (*sources, "1-in")]
    assert queues[:2] == ["wf.w._acks-in", "wf.w._acks1-in"] and len({*queues}) == 4
    check_name("queue", segments.ack_queue(100 * "w", 64 * "s" + ":63"))
    assert len({segments.feeder_id("w", each, NOW_MS) for each in sources}) == 3
    assert len({segments.root_id("w", each, 0, NOW_MS) for each in sources}) == 3
    for bad in ("in:x", "in:123", "in:-1"):
        with pytest.raises(Malformed):
            segments.strand_of(bad)
