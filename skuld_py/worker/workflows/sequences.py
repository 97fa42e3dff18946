"""Sources with one part, drawn from its beginning to its end: what a function yields, and files.

A cursor says how many values were drawn, and has a digest of these. Whoever goes on compares it with what is there
now. A source that gives others in their places is found out, though all that was drawn is done: else some values
would be roots twice, and others never. Of files the cursor has the path of the last one, too.

Files come and go while a workflow runs: a step moves what it has read elsewhere. So who draws from files goes on
behind the last path, whatever became of those before it. But roots under way are known by how many files stand
before theirs, and the one digest is of all up to the last that was drawn: none of these may have come or gone.

A cursor of an earlier release has the number alone: what cannot be compared is taken for the same.

Rejected: a digest with each batch under way. Feeders of an earlier release would look for it at another offset,
and end the workflow. The paths of each batch, in a task of their own as for a queue: one that has moved cannot be
read again either.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from skuld_py.errors import Refused
from skuld_py.worker.workflows.children import packed
from skuld_py.worker.workflows.haul import HAUL_BYTES, Haul, gave_others
from skuld_py.workflow.acking.checkpoint import CURSOR_BYTES_MAX

NOWHERE = -1
NUMBER_BYTES, MARK_BYTES = 8, 8
NO_MARK = bytes(MARK_BYTES)
"""Of no values."""
OTHERS = "it gives other values than before for the same places; a source must give the same values again"
MOVED = ("files that were drawn, or such before them, came or went while roots of them are under way; leave files"
         " where they are until the workflow has ended")


def _marked(mark: bytes, value: bytes) -> bytes:
    """The digest of values, and one more."""
    return blake2b(mark + value, digest_size=MARK_BYTES).digest()


class _Alone:
    """A source that holds nothing, and that nobody need tell what is done."""

    def settle(self, cursor: bytes, open_from: Mapping[int, int]) -> None:
        """Nobody needs to know."""

    def tend(self) -> None:
        """Nothing is held."""

    def close(self) -> None:
        """Nothing is held."""


class Sequential(_Alone):
    """What yields its values in one order, from the beginning. It goes on without beginning anew while it is asked
    in order; to draw again what lies behind, it skips what is before. ``cursor``: where a former life was, up to
    which the values must be what they were."""

    def __init__(self, begin: Callable[[], Iterator[Any]], cursor: bytes = b"") -> None:
        self._begin = begin
        self._values: Iterator[Any] = iter(())
        self._at = NOWHERE
        self._mark = NO_MARK
        self._spare: list[bytes] = []
        self._former = cursor

    def draw(self, cursor: bytes, most: int) -> Haul:
        offset = int.from_bytes(cursor[:NUMBER_BYTES], "big")
        values, is_over = self._taken(offset, most, HAUL_BYTES, cursor[NUMBER_BYTES:])
        end = (offset + len(values)).to_bytes(NUMBER_BYTES, "big") + self._mark
        return Haul(values, 0, offset, end if values else cursor, is_over)

    def again(self, part: int, offset: int, count: int) -> Sequence[bytes]:
        return self._taken(offset, count, None)[0]

    def _taken(self, offset: int, most: int, most_bytes: int | None, mark: bytes = b""
               ) -> tuple[list[bytes], bool]:
        try:
            if former := self._former:
                self._go(int.from_bytes(former[:NUMBER_BYTES], "big"), former[NUMBER_BYTES:])
                self._former = b""
            if not self._go(offset, mark):
                return [], True
            return self._more(most, most_bytes)
        except BaseException:
            self._at = NOWHERE
            raise

    def _go(self, offset: int, mark: bytes) -> bool:
        """Go to this offset; whether there are so many values."""
        if offset != self._at:
            self._values, self._spare, self._at, self._mark = self._begin(), [], 0, NO_MARK
            while self._at < offset and (value := self._next()) is not None:
                self._pass(value)
        if mark and (self._at, self._mark) != (offset, mark):
            raise gave_others(OTHERS)
        return self._at == offset

    def _more(self, most: int, most_bytes: int | None) -> tuple[list[bytes], bool]:
        values, size = list[bytes](), 0
        while len(values) < most:
            value = self._spare.pop() if self._spare else self._next()
            if value is None:
                return values, True
            if values and most_bytes is not None and size + len(value) > most_bytes:
                self._spare.append(value)
                break
            values.append(value)
            size += len(value)
            self._pass(value)
        return values, False

    def _next(self) -> bytes | None:
        for value in self._values:
            return packed(value)
        return None

    def _pass(self, value: bytes) -> None:
        self._mark = _marked(self._mark, value)
        self._at += 1


class Listed(_Alone):
    """Files by their paths, which ``list_them`` gives in order: as they are when the feeder first asks. ``cursor``
    is as in ``Sequential``; behind its digest stands the path of the last file."""

    def __init__(self, list_them: Callable[[], list[str]], cursor: bytes = b"") -> None:
        self._list_them = list_them
        self._paths: list[str] | None = None
        self._at, self._mark = 0, NO_MARK
        """How many paths the digest is of."""
        self._former = cursor
        self._has_moved = False

    def draw(self, cursor: bytes, most: int) -> Haul:
        paths = self._listed()
        start = self._place(cursor)
        end = min(start + most, len(paths))
        values = [packed(path) for path in paths[start:end]]
        return Haul(values, 0, start, self._written(end) if values else cursor, end >= len(paths))

    def again(self, part: int, offset: int, count: int) -> Sequence[bytes]:
        paths = self._listed()
        if self._has_moved:
            raise gave_others(MOVED)
        return [packed(path) for path in paths[offset : offset + count]]

    def _listed(self) -> list[str]:
        if self._paths is None:
            self._paths = self._list_them()
            number, mark, _ = _parted(self._former)
            self._has_moved = bool(mark) and (number > len(self._paths) or self._mark_of(number) != mark)
        return self._paths

    def _place(self, cursor: bytes) -> int:
        number, _, path = _parted(cursor)
        return bisect_right(self._listed(), path) if path else number

    def _written(self, end: int) -> bytes:
        path = self._listed()[end - 1]
        made = end.to_bytes(NUMBER_BYTES, "big") + self._mark_of(end) + os.fsencode(path)
        if len(made) > CURSOR_BYTES_MAX:
            raise Refused("bad_source", f"files: a path of {len(path)} characters is too long, {path[:80]}…",
                          field="files")
        return made

    def _mark_of(self, number: int) -> bytes:
        """The digest of so many paths."""
        if number < self._at:
            self._at, self._mark = 0, NO_MARK
        for path in self._listed()[self._at : number]:
            self._mark = _marked(self._mark, os.fsencode(path))
        self._at = number
        return self._mark


def _parted(cursor: bytes) -> tuple[int, bytes, str]:
    """How many paths, their digest, and the last one."""
    path = os.fsdecode(cursor[NUMBER_BYTES + MARK_BYTES :])
    return int.from_bytes(cursor[:NUMBER_BYTES], "big"), cursor[NUMBER_BYTES : NUMBER_BYTES + MARK_BYTES], path
