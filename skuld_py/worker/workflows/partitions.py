"""What an application's adapter reads, drawn a partition after the other in turn.

The cursor is each partition's offset, and whether it came to its end: ``[turn, [offset, is_end], ...]``, as JSON.
Partitions of other strands count as ended, from offset 0 on; so all strands see when there are more or fewer than
before, and most when they have another order.

An adapter that says that its partitions may ``grow`` is asked for them again and again. A row of its has a third
thing, a digest of the name: so partitions are known in whatever order they come, and new ones get rows behind the
others. While it says so no strand comes to its end, not even one that has none: the next one may be its own.
Before its cursors stands a ``g``, by which they are no JSON. A feeder of a release that knows no such rows would
take them for other partitions, and kill the workflow; so it fails, and is tried again.

What an adapter says is looked at before it counts. An offset that does not rise would be drawn for ever; so the
feeder fails, says why, and is tried again: that leaves half a day to mend the adapter. Then it is dead until
somebody retries it. Rejected: to snooze, for what failed is told of a task that fails.

Rejected: to ask every adapter again. Of those whose partitions come to an end a strand may be over when one comes,
and nobody would draw it.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from operator import index
from typing import Any

from skuld_py.client.steady import steady_s
from skuld_py.errors import Refused
from skuld_py.worker.workflows.children import packed
from skuld_py.worker.workflows.haul import HAUL_BYTES, Haul
from skuld_py.worker.workflows.strands import WHOLE, Strand
from skuld_py.workflow.acking.checkpoint import CURSOR_BYTES_MAX, PARTS_MAX
from skuld_py.workflow.definition.sources import OffsetsAdapter, Page

FIXED_MAX = min(PARTS_MAX, CURSOR_BYTES_MAX // 32)
GROWN_MAX = min(PARTS_MAX, CURSOR_BYTES_MAX // 36)
"""Partitions, by the bytes of their rows."""
OFFSET_MAX = (1 << 63) - 1
RELIST_S = 30.0
MARK_BYTES = 3
GROWN = b"g"
"""Stands before a cursor whose rows may have names."""
Row = list[Any]


class Adapted:
    """Draws one strand of what an adapter reads. ``cursor``: where a former life was."""

    def __init__(self, adapter: OffsetsAdapter, strand: Strand = WHOLE, cursor: bytes = b"",
                 clock: Callable[[], float] = steady_s) -> None:
        self._adapter, self._strand, self._clock = adapter, strand, clock
        self._may_grow = hasattr(adapter, "grows")
        self._is_whole = not self._may_grow
        """No more will come."""
        self._most = GROWN_MAX if self._may_grow else FIXED_MAX
        self._relisted_s = clock()
        self._parts: list[str | None] = [*self._listed()]
        """In the order of their rows; None for one that is not there any more."""
        rows = _parted(cursor)[1] if cursor else []
        if self._may_grow or any(len(row) > 2 for row in rows):
            self._parts = self._placed(rows)

    def draw(self, cursor: bytes, most: int) -> Haul:
        self._list_again()
        turn, rows = self._read(cursor)
        for part in (*range(turn, len(rows)), *range(turn)):
            name, (offset, is_end) = self._parts[part], rows[part][:2]
            if is_end or name is None:
                continue
            page, values = self._page(name, offset, most)
            rows[part][:2] = [page.next_offset, page.is_end]
            if values:
                return Haul(values, part, offset, self._written((part + 1) % len(rows), rows), self._is_over(rows))
        return Haul([], 0, 0, self._written(turn, rows), self._is_over(rows))

    def again(self, part: int, offset: int, count: int) -> Sequence[bytes]:
        name = self._parts[part] if part < len(self._parts) else None
        values = list[bytes]()
        while name is not None and len(values) < count:
            page, found = self._page(name, offset, count - len(values))
            values += found
            if page.is_end or page.next_offset == offset:
                break
            offset = page.next_offset
        return values

    def settle(self, cursor: bytes, open_from: Mapping[int, int]) -> None:
        if cursor:
            rows = _parted(cursor)[1]
            self._adapter.commit({name: min(rows[part][0], open_from.get(part, rows[part][0]))
                                  for part, name in enumerate(self._parts[: len(rows)])
                                  if name is not None and self._strand.has(name)})

    def tend(self) -> None:
        """What an adapter holds is its own business."""

    def close(self) -> None:
        """An adapter that has ``close`` is told."""
        close = getattr(self._adapter, "close", None)
        if close is not None:
            close()

    # -- which partitions there are --------------------------------------------------------------------

    def _listed(self) -> list[str]:
        names: list[Any] = [*self._adapter.partitions()]
        if odd := [name for name in names if not isinstance(name, str)]:
            raise _bad_source(f"{str(odd[0])[:40]!r} is no text; name partitions by texts")
        if twice := [name for name in names if names.count(name) > 1]:
            raise _bad_source(f"{twice[0][:40]!r} is named twice; name each once")
        self._check_count(len(names))
        return names

    def _check_count(self, count: int) -> None:
        least = 0 if self._may_grow else 1
        if not least <= count <= self._most:
            raise _bad_source(f"{count}; an input has {least} to {self._most} of them")

    def _list_again(self) -> None:
        """Now and then; and once more when no others will come, for some may have come just before."""
        grows = not self._is_whole and bool(getattr(self._adapter, "grows", False))
        if self._is_whole or (grows and self._clock() < self._relisted_s + RELIST_S):
            return
        found = [name for name in self._listed() if name not in self._parts]
        self._check_count(len(self._parts) + len(found))
        self._parts += found
        self._relisted_s, self._is_whole = self._clock(), not grows

    def _placed(self, rows: Sequence[Row]) -> list[str | None]:
        """The partitions in the order of rows that a former life wrote, and then the new ones."""
        names = [name for name in self._parts if name is not None]
        left, placed = dict.fromkeys(names), list[str | None]()
        for place, row in enumerate(rows):
            name = _named(row, left) if len(row) > 2 else names[place] if place < len(names) else None
            if name is None and not row[1]:
                raise _bad_source("one that was drawn from is not among them any more; let the adapter name each"
                                  " as long as a workflow runs")
            left.pop(name or "", None)
            placed.append(name)
        return [*placed, *left]

    # -- cursors ---------------------------------------------------------------------------------------

    def _read(self, cursor: bytes) -> tuple[int, list[Row]]:
        turn, rows = _parted(cursor) if cursor else (0, [])
        if not self._may_grow and len(rows) not in (0, len(self._parts)):
            raise _bad_source(f"there were {len(rows)}, and are {len(self._parts)} now; they must stay the same"
                              " while a workflow runs, or the adapter must say by 'grows' that more may come")
        if not self._may_grow and any(row[:2] != [0, True] and not (name is not None and self._strand.has(name))
                                      for name, row in zip(self._parts, rows, strict=False)):
            raise _bad_source("they were others, or had another order; they must stay the same while a workflow"
                              " runs")
        rows += [self._first(name) for name in self._parts[len(rows) :] if name is not None]
        if not self._may_grow:
            return turn, [row[:2] for row in rows]
        return turn, [[*row[:2], row[2] if len(row) > 2 else _mark_of(name or "")]
                      for name, row in zip(self._parts, rows, strict=True)]

    def _written(self, turn: int, rows: Sequence[Row]) -> bytes:
        return (GROWN if self._may_grow else b"") + json.dumps([turn, *rows], separators=(",", ":")).encode()

    def _first(self, name: str) -> Row:
        """The row of a partition that nothing was drawn from."""
        if not self._strand.has(name):
            return [0, True]
        return [_offset(name, "begin", self._adapter.begin(name), 0), False]

    def _is_over(self, rows: Iterable[Row]) -> bool:
        return self._is_whole and all(row[1] for row in rows)

    # -- pages -----------------------------------------------------------------------------------------

    def _page(self, name: str, offset: int, most: int) -> tuple[Page, list[bytes]]:
        """A page that is as it must be, and its values: fewer, where they are too large together."""
        while True:
            page = self._adapter.read(name, offset, most)
            values = [packed(value) for value in islice(page.values, most + 1)]
            if len(values) > most:
                raise _bad_page(name, f"read gave more than the {most} values that it was asked for")
            end = _offset(name, "read", page.next_offset, offset + bool(values))
            if len(values) < 2 or sum(map(len, values)) <= HAUL_BYTES:
                return Page((), end, bool(page.is_end)), values
            most = len(values) // 2


def _offset(name: str, verb: str, given: object, least: int) -> int:
    """An offset that an adapter gave, which is at least so much."""
    try:
        offset = index(given)  # type: ignore[arg-type]
    except TypeError:
        raise _bad_page(name, f"{verb} gave the offset {str(given)[:40]!r}, which is no whole number") from None
    if not least <= offset <= OFFSET_MAX:
        raise _bad_page(name, f"{verb} gave the offset {str(offset)[:40]}, which is not in {least}..{OFFSET_MAX};"
                        " behind values it must be greater than before them")
    return offset


def _named(row: Row, left: Iterable[str]) -> str | None:
    return next((name for name in left if _mark_of(name) == row[2]), None)


def _mark_of(name: str) -> str:
    digest = blake2b(name.encode(errors="surrogatepass"), digest_size=MARK_BYTES).digest()
    return urlsafe_b64encode(digest).decode()


def _parted(cursor: bytes) -> tuple[int, list[Row]]:
    turn, *rows = json.loads(cursor.removeprefix(GROWN))
    return turn, rows


def _bad_source(problem: str) -> Refused:
    """What ends the workflow."""
    return Refused("bad_source", f"partitions: {problem}", field="partitions")


def _bad_page(name: str, problem: str) -> Refused:
    """What is tried again, until the adapter is mended."""
    return Refused("bad_page", f"offsets: of partition {name[:40]!r}, {problem}", field="offsets")
