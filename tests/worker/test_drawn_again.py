"""What a feeder that is claimed anew finds otherwise than it was: it goes on where that is right, or says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import skuld_py
from skuld_py.errors import Refused
from skuld_py.worker.endings import Failed, Returned
from skuld_py.worker.registry import lookup
from skuld_py.worker.workflows.children import unpacked
from skuld_py.worker.workflows.drawing import Place, source_of
from skuld_py.worker.workflows.sequences import Listed, Sequential
from skuld_py.workflow.acking.checkpoint import CURSOR_BYTES_MAX
from skuld_py.workflow.definition.entries import Entry, Kind
from skuld_py.workflow.definition.sources import Files
from worker.test_sources import Died, Field, flow

VALUES: list[Any] = []


@skuld_py.task(name="again.moved")
def moved(path: str) -> str:
    Path(path).unlink()
    return Path(path).name


@skuld_py.task(name="again.seen")
def seen(value: Any) -> Any:
    return value


def values() -> Iterator[Any]:
    yield from VALUES


class Drawer(Field):
    """``drawn`` by a feeder that dies once, as it hears acks or as it stores roots, and is claimed again."""

    def __init__(self, source: dict[str, Any], function: str, quits: int, *, storing: bool = False) -> None:
        super().__init__(flow("w", source, leaf={"kind": "function", "function": function}),
                         0 if storing else quits)
        self.flow._resolve = lambda name: values if name == "again.values" else lookup(name)
        self._left = quits if storing else 0
        self._store = self.client.enqueue_many
        self.client.enqueue_many = self._stored  # type: ignore[method-assign]

    def _stored(self, queue: str, *given: Any, **options: Any) -> Any:
        if queue == self.queue("drawn") and self._left:
            self._left -= 1
            if not self._left:
                raise Died
        return self._store(queue, *given, **options)

    def play(self, meanwhile: Any = lambda: None) -> Any:
        """The end of its second life; None, if it did not die."""
        self.begin("drawn")
        if not self.died():
            return None
        meanwhile()
        return self.feed()


@pytest.mark.parametrize(("storing", "pending"), [(False, 4), (True, 1)])
def test_of_files_that_are_moved_once_they_are_done_none_is_left_out_and_none_is_done_twice(
        tmp_path: Path, storing: bool, pending: int) -> None:
    ends = []
    for quits in range(1, 20):
        place = tmp_path / str(quits)
        place.mkdir()
        names = [f"{number:02}.txt" for number in range(17)]
        for name in names:
            (place / name).touch()
        drawer = Drawer({"files": str(place / "*.txt"), "max_pending": pending}, "again.moved", quits,
                        storing=storing)
        ending = drawer.play()
        done = drawer.values("leaf")
        if drawer.killed:
            assert isinstance(ending, Failed) and "leave files where they are until" in drawer.killed["w"]
            ends.append("killed")
        elif ending is not None:
            assert isinstance(ending, Returned) and done == names, quits
            ends.append("gone on")
    assert {*ends} == {"killed", "gone on"}


@pytest.mark.parametrize("others", [[0, 1, 2, 3, 4, 5, 6, 7, 8, 11], [1, 0, *range(2, 13)], [*range(3)], []])
def test_a_function_that_gives_others_than_were_done_ends_the_workflow(others: list[int]) -> None:
    met = set()
    for quits in range(1, 20):
        VALUES[:] = range(13)
        drawer = Drawer({"function": "again.values"}, "again.seen", quits)
        drawn: list[int] = []

        def change(drawer: Drawer = drawer, drawn: list[int] = drawn) -> None:
            drawn += drawer.values("leaf")
            VALUES[:] = others
        ending = drawer.play(change)
        if ending is None:
            continue
        is_same = others[: len(drawn)] == drawn
        met.add(bool(drawer.killed))
        if not is_same:
            assert isinstance(ending, Failed) and drawer.killed, (quits, drawn)
    assert True in met


def test_a_function_that_gives_the_same_goes_on() -> None:
    for quits in range(1, 20):
        VALUES[:] = range(13)
        drawer = Drawer({"function": "again.values"}, "again.seen", quits)
        ending = drawer.play()
        assert ending is None or isinstance(ending, Returned)
        assert drawer.values("leaf") == sorted(range(13), key=repr)


# -- by itself ----------------------------------------------------------------------------------------


def drawn(source: Any, cursor: bytes, most: int = 99) -> list[Any]:
    return [unpacked(value) for value in source.draw(cursor, most).values]


def test_values_before_a_cursor_must_be_what_they_were() -> None:
    cursor = Sequential(lambda: iter("abcdef")).draw(b"", 3).cursor
    assert drawn(Sequential(lambda: iter("abcxyz"), cursor), cursor) == ["x", "y", "z"]
    for others in ("abxdef", "bacdef", "ab", ""):
        for ask in (lambda source: source.draw(cursor, 9), lambda source: source.again(0, 0, 2)):
            for _ in range(2):
                with pytest.raises(Refused) as raised:
                    ask(Sequential(lambda others=others: iter(others), cursor))
                assert raised.value.code == "other_values"


def test_a_cursor_of_an_earlier_release_is_gone_on_with() -> None:
    cursor = (3).to_bytes(8, "big")
    assert drawn(Sequential(lambda: iter("abcdef"), cursor), cursor) == ["d", "e", "f"]
    assert drawn(Listed(lambda: ["/a", "/b", "/c", "/d"], cursor), cursor) == ["/d"]
    short = Sequential(lambda: iter("ab"), cursor).draw(cursor, 9)
    assert (short.values, short.cursor, short.is_last) == ([], cursor, True)


def test_files_that_came_or_went_before_a_cursor_change_nothing_of_what_comes_behind_it() -> None:
    cursor = Listed(lambda: ["/a", "/c", "/e", "/g"]).draw(b"", 2).cursor
    for paths in (["/e", "/g"], ["/a", "/b", "/c", "/e", "/g"], ["/0", "/1", "/2", "/3", "/e", "/g"]):
        source = Listed(lambda paths=paths: paths, cursor)
        first = source.draw(cursor, 1)
        assert [unpacked(value) for value in first.values] == ["/e"] and not first.is_last
        assert source.draw(first.cursor, 9).is_last
        assert drawn(source, first.cursor) == ["/g"]
        with pytest.raises(Refused, match="leave files where they are") as raised:
            source.again(0, 0, 2)
        assert raised.value.code == "other_values"
        following = Listed(lambda paths=paths: paths, first.cursor)
        assert [unpacked(value) for value in following.again(0, first.offset, 1)] == ["/e"]
    for paths in (["/a", "/b", "/c", "/e"], ["/a", "/e"]):  # behind the first root, and before the last one drawn
        with pytest.raises(Refused, match="leave files where they are"):
            Listed(lambda paths=paths: paths, cursor).again(0, 0, 1)
    behind = Listed(lambda: ["/a", "/c", "/d", "/z"], cursor)
    assert [unpacked(value) for value in behind.again(0, 0, 2)] == ["/a", "/c"]
    assert drawn(behind, cursor) == ["/d", "/z"]


def test_files_are_listed_once_in_a_life(tmp_path: Path) -> None:
    for name in ("a", "c"):
        (tmp_path / name).touch()
    source = source_of(Entry("in", Kind.INPUT, source=Files((str(tmp_path / "*"),))), lookup,
                       Place(None, "w", "in", int))
    first = source.draw(b"", 1)
    (tmp_path / "b").touch()
    assert [Path(path).name for path in drawn(source, first.cursor)] == ["c"]


def test_a_path_that_no_cursor_holds_is_refused() -> None:
    path = "/" + "x" * CURSOR_BYTES_MAX
    with pytest.raises(Refused, match="is too long") as raised:
        Listed(lambda: [path]).draw(b"", 1)
    assert raised.value.code == "bad_source"
