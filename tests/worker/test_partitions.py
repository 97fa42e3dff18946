"""What an adapter says is looked at before it counts; and partitions that come while a workflow runs are drawn."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from skuld_py.errors import Refused
from skuld_py.worker.workflows.children import unpacked
from skuld_py.worker.workflows.partitions import FIXED_MAX, GROWN_MAX, OFFSET_MAX, RELIST_S, Adapted
from skuld_py.worker.workflows.strands import Strand
from skuld_py.workflow.acking.checkpoint import CURSOR_BYTES_MAX
from skuld_py.workflow.definition.sources import Page


class Fixed:
    """Partitions with values; ``pages`` are answers that come before those."""

    def __init__(self, *names: Any, rows: int = 6, pages: Sequence[Page] = ()) -> None:
        self.rows = {name: [f"{name}-{number}" for number in range(rows)] for name in names}
        self.names = [*names]
        self.pages = [*pages]
        self.begins: Any = 0
        self.asked: list[int] = []
        self.committed: dict[str, int] = {}

    def partitions(self) -> Sequence[str]:
        return self.names

    def begin(self, partition: str) -> int:
        return self.begins  # type: ignore[no-any-return]

    def read(self, partition: str, offset: int, most: int) -> Page:
        self.asked.append(most)
        if self.pages:
            return self.pages.pop(0)
        found = self.rows[partition][offset : offset + most]
        return Page(found, offset + len(found), offset + len(found) == len(self.rows[partition]))

    def commit(self, offsets: Mapping[str, int]) -> None:
        self.committed |= offsets


class Growing(Fixed):
    """May come to have more."""

    grows = True


def values(source: Adapted, cursor: bytes = b"", most: int = 2) -> Iterator[tuple[list[Any], bytes]]:
    """Until there is nothing."""
    while True:
        haul = source.draw(cursor, most)
        cursor = haul.cursor
        if not haul.values:
            return
        yield [unpacked(value) for value in haul.values], cursor


def all_of(source: Adapted, cursor: bytes = b"") -> list[Any]:
    return sorted(value for some, _ in values(source, cursor) for value in some)


# -- what an adapter says -----------------------------------------------------------------------------


@pytest.mark.parametrize(("page", "words"), [
    (Page([1], 0), "read gave the offset 0, which is not in 1.."),
    (Page([1], -1), "read gave the offset -1, which is not in 1.."),
    (Page([], -1), "read gave the offset -1, which is not in 0.."),
    (Page([1], OFFSET_MAX + 1), "is not in 1.."),
    (Page([1], 10 ** 60), "is not in 1.."),
    (Page([1], "1"), "read gave the offset '1', which is no whole number"),  # type: ignore[arg-type]
    (Page([1], None), "which is no whole number"),  # type: ignore[arg-type]
    (Page([1, 2, 3], 3), "read gave more than the 2 values that it was asked for"),
])
def test_a_page_that_no_adapter_may_give_is_refused_and_asked_for_again(page: Page, words: str) -> None:
    adapter = Fixed("a", pages=[page])
    source = Adapted(adapter)
    with pytest.raises(Refused) as raised:
        source.draw(b"", 2)
    assert raised.value.code == "bad_page" and words in raised.value.message
    assert "of partition 'a'" in raised.value.message
    assert len(all_of(source)) == 6


def test_where_it_begins_is_looked_at_too() -> None:
    adapter = Fixed("a")
    adapter.begins = -1
    with pytest.raises(Refused, match="begin gave the offset -1"):
        Adapted(adapter).draw(b"", 2)


def test_numbers_of_other_libraries_are_numbers() -> None:
    class Number:
        def __index__(self) -> int:
            return 2

    class Truth:
        def __bool__(self) -> bool:
            return True
    haul = Adapted(Fixed("a", pages=[Page((1, 2), Number(), Truth())])).draw(b"", 2)  # type: ignore[arg-type]
    assert (len(haul.values), haul.is_last, haul.cursor) == (2, True, b"[0,[2,true]]")


@pytest.mark.parametrize(("names", "words"), [
    ((0, 1), "partitions: '0' is no text"), (("a", None), "partitions: 'None' is no text"),
    (("a", "b", "a"), "partitions: 'a' is named twice"), ((), "partitions: 0; an input has 1 to"),
    (tuple(map(str, range(FIXED_MAX + 1))), f"partitions: {FIXED_MAX + 1}; an input has 1 to {FIXED_MAX} of")])
def test_names_that_are_none_are_refused(names: tuple[Any, ...], words: str) -> None:
    adapter = Fixed()
    adapter.names = [*names]
    with pytest.raises(Refused) as raised:
        Adapted(adapter)
    assert raised.value.code == "bad_source" and words in raised.value.message


def test_values_that_are_too_large_together_are_read_in_several_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skuld_py.worker.workflows.partitions.HAUL_BYTES", 12)
    adapter = Fixed("a")
    source = Adapted(adapter)
    assert [len(some) for some, _ in values(source, most=5)] == [2, 2, 2]
    assert adapter.asked[:2] == [5, 2]
    assert [unpacked(value) for value in source.again(0, 0, 5)] == [f"a-{number}" for number in range(5)]


def test_empty_pages_between_values_are_passed_over_again() -> None:
    class Holes(Fixed):
        def read(self, partition: str, offset: int, most: int) -> Page:
            return Page([offset], offset + 1) if offset % 3 == 0 else Page([], offset + 1)
    assert [unpacked(value) for value in Adapted(Holes("a")).again(0, 0, 3)] == [0, 3, 6]


# -- partitions that come -----------------------------------------------------------------------------


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.mark.parametrize("of", [1, 2, 3])
def test_a_partition_that_comes_is_drawn_by_its_strand_in_the_same_life_and_in_the_next(of: int) -> None:
    for is_next_life in (False, True):
        clock, drawn = Clock(), list[Any]()
        adapter = Growing("p1", "odd", "p10")
        for number in range(of):
            adapter.names = ["p1", "odd", "p10"]
            source = Adapted(adapter, Strand(number, of), clock=clock)
            cursor = b""
            for some, so_far in values(source):
                drawn, cursor = [*drawn, *some], so_far
            assert not source.draw(cursor, 2).is_last
            cursor = source.draw(cursor, 2).cursor
            adapter.names = ["new", "p1", "p2", "odd", "p10"]
            adapter.rows |= {name: [f"{name}-0", f"{name}-1"] for name in ("new", "p2")}
            if is_next_life:
                source = Adapted(adapter, Strand(number, of), cursor, clock)
            else:
                assert all_of(source, cursor) == [], "it is not yet time"
                clock.now_s += RELIST_S
            for some, so_far in values(source, cursor):
                drawn, cursor = [*drawn, *some], so_far
            source.settle(cursor, {})
        assert sorted(drawn) == sorted(value for rows in adapter.rows.values() for value in rows)
        assert adapter.committed == {"new": 2, "p1": 6, "p2": 2, "odd": 6, "p10": 6}


def test_what_is_under_way_is_drawn_again_whatever_came_before_it() -> None:
    adapter = Growing("b", "d")
    source = Adapted(adapter)
    hauls = [source.draw(b"", 2)]
    hauls.append(source.draw(hauls[-1].cursor, 2))
    adapter.names = ["a", "b", "c", "d"]
    adapter.rows |= {"a": ["a-0"], "c": ["c-0"]}
    following = Adapted(adapter, cursor=hauls[-1].cursor)
    for haul in hauls:
        assert following.again(haul.part, haul.offset, 2) == haul.values
    rest = all_of(following, hauls[-1].cursor)
    assert rest == ["a-0", *(f"b-{number}" for number in range(2, 6)), "c-0",
                    *(f"d-{number}" for number in range(2, 6))]


def test_while_it_may_grow_it_does_not_end_and_then_it_does() -> None:
    adapter = Growing()
    clock = Clock()
    source = Adapted(adapter, clock=clock)
    assert not source.draw(b"", 2).is_last
    adapter.names, adapter.rows = ["a"], {"a": ["x"]}
    clock.now_s += RELIST_S
    haul = source.draw(source.draw(b"", 2).cursor, 2)
    assert not haul.is_last
    adapter.names, adapter.grows = ["a", "b"], False
    adapter.rows["b"] = ["y"]
    assert all_of(source, haul.cursor) == ["y"], "it came just before"
    assert source.draw(b"", 2).is_last is False and len(all_of(source)) == 2
    *_, (_, cursor) = values(source)
    assert source.draw(cursor, 2).is_last


def test_one_that_is_gone_ends_the_workflow_unless_it_was_drawn_to_its_end() -> None:
    adapter = Growing("a", "b")
    begun = Adapted(adapter).draw(b"", 2).cursor
    *_, (_, done) = values(Adapted(adapter))
    adapter.names = ["b"]
    with pytest.raises(Refused, match="is not among them any more") as raised:
        Adapted(adapter, cursor=begun)
    assert raised.value.code == "bad_source"
    assert all_of(Adapted(adapter, cursor=done), done) == []
    Adapted(adapter, cursor=done).settle(done, {})
    assert adapter.committed == {"b": 6}


def test_an_adapter_may_come_to_say_that_it_grows_and_no_more() -> None:
    fixed = Fixed("a", "b")
    cursor = Adapted(fixed).draw(b"", 2).cursor
    growing = Growing("a", "b")
    haul = Adapted(growing, cursor=cursor).draw(cursor, 2)
    assert [unpacked(value) for value in haul.values] == ["b-0", "b-1"]
    assert [unpacked(value) for value in Adapted(fixed, cursor=haul.cursor).draw(haul.cursor, 2).values] == [
        "a-2", "a-3"]
    fixed.names = ["b", "a"]
    assert [unpacked(value) for value in Adapted(fixed, cursor=haul.cursor).draw(haul.cursor, 2).values] == [
        "a-2", "a-3"]
    fixed.names = ["a", "b", "c"]
    with pytest.raises(Refused, match="there were 2, and are 3 now"):
        Adapted(fixed, cursor=haul.cursor).draw(haul.cursor, 2)


@pytest.mark.parametrize("names", [(), ("a", "b")])
def test_a_cursor_of_what_grows_is_read_by_no_older_release_which_would_find_other_partitions(
        names: tuple[str, ...]) -> None:
    """Those read JSON, and end the workflow where rows are not as theirs; any other error is tried again."""
    adapter = Growing(*names)
    cursor = Adapted(adapter, Strand(1, 2)).draw(b"", 2).cursor
    with pytest.raises(ValueError, match="Expecting value"):
        json.loads(cursor)
    bare = cursor.removeprefix(b"g")
    assert json.loads(bare)
    adapter.names = ["new", *names]
    adapter.rows["new"] = ["new-0"]
    drawn = [all_of(Adapted(adapter, Strand(1, 2), given), given) for given in (cursor, bare)]
    assert drawn[0] == drawn[1]


def test_cursors_have_room_for_all_partitions_however_far_these_are() -> None:
    for kind, most in ((Fixed, FIXED_MAX), (Growing, GROWN_MAX)):
        adapter = kind(*map(str, range(most)))
        adapter.begins = OFFSET_MAX - 9
        adapter.rows = {name: [] for name in adapter.names}
        adapter.read = lambda *_: Page([], OFFSET_MAX)  # type: ignore[method-assign]
        assert len(Adapted(adapter).draw(b"", 2).cursor) <= CURSOR_BYTES_MAX


def test_more_than_there_is_room_for_are_refused() -> None:
    adapter = Growing(*map(str, range(GROWN_MAX)))
    clock = Clock()
    source = Adapted(adapter, clock=clock)
    cursor = source.draw(b"", 2).cursor
    adapter.names = [*adapter.names[1:], "new"]
    clock.now_s += RELIST_S
    with pytest.raises(Refused, match=f"partitions: {GROWN_MAX + 1}; an input has 0 to {GROWN_MAX} of them"):
        source.draw(cursor, 2)
