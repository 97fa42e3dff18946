"""Registers of one node: which row stands, what survives, and that two nodes become equal."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skuld_py.errors import Refused
from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.limiting import QueueLimits, decode_limits
from skuld_py.model.memory_store import MemoryStore
from skuld_py.model.messages.settings import SETTING_BYTES_MAX
from skuld_py.model.setting import (
    LIMITS,
    PAUSED,
    UNSET,
    YES,
    check_setting,
    encode_setting,
    rank_of,
    setting_key,
)
from skuld_py.node.knowledge.settings import PAGE_ROWS, Settings
from skuld_py.partition.data.bulletin import Bulletin

ROWS = st.builds(m.SettingRow, st.sampled_from(["paused", "limits"]), st.sampled_from(["a", "b"]),
                 st.integers(1, 3), st.sampled_from(["w1", "w2"]), st.sampled_from([UNSET, YES, b"x"]))


def paused(queue: str = "q", version: int = 1, value: bytes = YES, writer: str = "w") -> m.SettingRow:
    return m.SettingRow(PAUSED, queue, version, writer, value)


def known(*rows: m.SettingRow) -> Settings:
    made = Settings(MemoryStore(), Bulletin())
    made.join(rows)
    return made


def news_of(registers: Settings) -> tuple[list[str], list[str]]:
    """The queues that were resumed, and those with other keys' widths, since the last look."""
    bulletin = registers._bulletin
    news = [*bulletin.resumed], [*bulletin.rewidened]
    bulletin.resumed.clear()
    bulletin.rewidened.clear()
    return news


def all_of(registers: Settings) -> tuple[m.SettingRow, ...]:
    return registers.page("", "", b"")[0]


@settings(max_examples=200, deadline=None)
@given(st.lists(ROWS, max_size=8), st.randoms(use_true_random=False))
def test_rows_stand_whatever_the_order_and_however_often_they_come(rows: list[m.SettingRow],
                                                                   random: Random) -> None:
    shuffled = rows * 2
    random.shuffle(shuffled)
    one, other = known(*rows), known(*shuffled)

    assert all_of(one) == all_of(other)
    assert one.digest == other.digest
    assert one.paused == other.paused
    for row in rows:
        stands = one.page(row.kind, row.name, b"")[0][0]
        assert rank_of(stands) == max(rank_of(each) for each in rows
                                      if (each.kind, each.name) == (row.kind, row.name))


@settings(max_examples=100, deadline=None)
@given(st.lists(ROWS, max_size=6), st.lists(ROWS, max_size=6))
def test_two_nodes_are_equal_after_each_has_asked_once_and_equal_digests_say_so(
        mine: list[m.SettingRow], yours: list[m.SettingRow]) -> None:
    one, other = known(*mine), known(*yours)
    assert (one.digest == other.digest) == (all_of(one) == all_of(other))

    one.join(other.answer(one.question()).rows)
    other.join(one.answer(other.question()).rows)

    assert all_of(one) == all_of(other)
    assert one.digest == other.digest
    assert other.answer(one.question()).rows == ()


def test_an_older_row_changes_nothing() -> None:
    registers = known(paused(version=5))

    registers.join([paused(version=4, value=UNSET)])

    assert [*registers.paused] == ["q"]
    assert registers.version(PAUSED, "q") == 5
    assert news_of(registers) == ([], [])


def test_a_queue_is_paused_until_it_is_resumed_which_is_told_once() -> None:
    registers = known(paused("a"), paused("b"))
    assert [*registers.paused] == ["a", "b"]

    registers.join([paused("a", 2, UNSET), paused("b", 2, UNSET), paused("b", 3)])

    assert [*registers.paused] == ["b"]
    assert [*registers._bulletin.resumed] == ["a", "b"]


def test_what_was_committed_is_known_after_a_restart() -> None:
    store = MemoryStore()
    registers = Settings(store, Bulletin())
    registers.join([paused("a"), paused("b", 7, UNSET)])
    store.commit()
    registers.join([paused("c")])
    store.crash()

    again = Settings(store, Bulletin())

    assert [*again.paused] == ["a"]
    assert again.version(PAUSED, "b") == 7
    assert again.digest == known(paused("a"), paused("b", 7, UNSET)).digest


@pytest.mark.parametrize(("key", "record"), [
    (setting_key(PAUSED, "q"), b"short"), (setting_key(PAUSED, "q"), encode_setting(paused(version=0))),
    (setting_key(PAUSED, ""), encode_setting(paused())), (setting_key(PAUSED, "a b"), encode_setting(paused())),
    (setting_key("/", "q"), encode_setting(paused())), (b"setting \xff/q", encode_setting(paused())),
    (setting_key(PAUSED, "q"), encode_setting(paused(writer=" "))),
    (setting_key(PAUSED, "q"), encode_setting(paused(value=bytes(SETTING_BYTES_MAX + 1)))),
    (setting_key(PAUSED, "q"), encode_setting(paused())[:8] + b"\xff" + YES),
])
def test_a_record_that_makes_no_sense_is_left_out_for_a_reason_and_the_others_serve(key: bytes,
                                                                                   record: bytes) -> None:
    """A node that ended by it would find it again at its next start."""
    store = MemoryStore()
    store.put_many("meta", [(key, record), (setting_key(PAUSED, "r"), encode_setting(paused("r")))])

    registers = Settings(store, Bulletin())

    assert [*registers.paused] == ["r"]
    assert registers.digest == known(paused("r")).digest
    assert list(registers.ignored) == [key] and registers.ignored[key]


def test_what_another_node_knows_takes_the_place_of_a_record_without_sense() -> None:
    store = MemoryStore()
    store.put_many("meta", [(setting_key(PAUSED, "q"), b"short")])
    registers, other = Settings(store, Bulletin()), known(paused("q", 3))

    registers.join(other.answer(registers.question()).rows)

    assert [*registers.paused] == ["q"]
    assert registers.ignored == {}
    assert Settings(store, Bulletin()).digest == other.digest


def limited(value: bytes, version: int = 1, queue: str = "q") -> m.SettingRow:
    return m.SettingRow(LIMITS, queue, version, "w", value)


def test_limits_hold_from_their_row_until_another_one_stands() -> None:
    three, wide = QueueLimits(concurrency=3), QueueLimits(key_concurrency=4)
    registers = known(limited(three.encode()))
    assert registers.lent == {"q": three}
    assert registers.key_concurrency("q") == registers.key_concurrency("r") == 1

    registers.join([limited(wide.encode(), 2)])
    assert registers.lent == {}
    assert registers.key_concurrency("q") == 4
    assert news_of(registers) == (["q"], ["q"])

    registers.join([limited(UNSET, 3)])
    assert registers.key_concurrency("q") == 1
    assert news_of(registers) == ([], ["q"])

    registers.join([limited(QueueLimits(holder_concurrency=2).encode(), 4)])
    assert registers.capped["q"].holder_concurrency == 2 and registers.lent == {}
    registers.join([limited(UNSET, 5)])
    assert registers.capped == {} and news_of(registers) == (["q"], [])


@pytest.mark.parametrize("value", [b"5", b"{}", b"{", b"[" * 2_000, b'{"concurrency":0}', b'{"concurrency":true}',
                                   b'{"concurrency":1.5}', b'{"rate":5}', b'{"width":1}', b'{"concurrency": 3}',
                                   b'{"concurrency":1000001}', b'{"burst":1,"concurrency":3}', b"\xff",
                                   b'{"holder_concurrency":1000001}', b'{"lease_ms":86400001}',
                                   b'{"lease_ms":-1}', b'{"lease_ms":0}'])
def test_limits_without_sense_are_refused_and_where_they_stand_limit_nothing(value: bytes) -> None:
    with pytest.raises(Refused, match="does not fit"):
        check_setting(LIMITS, value)

    registers = known(limited(QueueLimits(concurrency=3).encode()), limited(value, 2))

    assert registers.lent == {}
    assert registers.version(LIMITS, "q") == 2


@settings(max_examples=200, deadline=None)
@given(st.builds(QueueLimits, st.integers(0, 5), st.integers(0, 5), st.integers(0, 5), st.integers(0, 5),
                 st.integers(0, 5), st.integers(0, 5), st.integers(0, 5)))
def test_limits_are_read_as_they_were_written(limits: QueueLimits) -> None:
    if limits.problem():
        with pytest.raises(ValueError, match=r"."):
            decode_limits(limits.encode())
    else:
        assert decode_limits(limits.encode()) == limits
        check_setting(LIMITS, limits.encode())


def test_pages_cover_all_registers_once() -> None:
    registers = known(*(paused(f"q{number}") for number in range(2 * PAGE_ROWS + 5)))
    seen: list[m.SettingRow] = []
    after, is_over = b"", False
    while not is_over:
        rows, after = registers.page("", "", after)
        assert len(rows) <= PAGE_ROWS
        seen += rows
        is_over = not after

    assert sorted(row.name for row in seen) == sorted(f"q{number}" for number in range(2 * PAGE_ROWS + 5))


def test_large_values_make_small_pages_but_never_empty_ones() -> None:
    rows = [m.SettingRow("limits", f"q{number:03}", 1, "w", b"x" * 65_536) for number in range(40)]
    registers = known(*rows)

    first, upto = registers.page("", "", b"")

    assert 1 <= len(first) <= 16
    assert upto == setting_key("limits", first[-1].name)
    assert registers.answer(m.PullSettings(columns.pack([]), b"")).rows == first


def test_a_page_is_of_the_kind_and_the_name_asked_for() -> None:
    registers = known(paused("a"), paused("b"), m.SettingRow("limits", "a", 1, "w", b"5"))

    assert [row.name for row in registers.page(PAUSED, "", b"")[0]] == ["a", "b"]
    assert [row.kind for row in registers.page("", "a", b"")[0]] == ["limits", PAUSED]
    assert registers.page(PAUSED, "c", b"") == ((), b"")
