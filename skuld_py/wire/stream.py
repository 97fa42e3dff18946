"""One envelope's bytes as a stream: values pulled off the header, and raw frames beside it.

A reader asks for the next value in the order of the schema and looks at its first byte before msgpack may build
it. So nothing unexpected is built: no map, no extension, no float, no array inside a value; and no more than
``ITEMS_MAX`` list items in all. Memory and depth follow the schema, never the input.

Columns take frames in the order in which they are met, so equal envelopes are equal frames, and each
frame is used exactly once. Integers in more bytes than they need are read, but never written.

Rejected: ``unpackb`` and a walk over its tree. Its bounds hold for one array each, and an empty map is one
byte to send but some seventy to hold: a header full of them is built before any check could refuse it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgpack

from skuld_py.config import Limits
from skuld_py.model.columns import Column

ITEMS_MAX = 1 << 17
"""Messages, rows and names of one envelope, together."""

FOREIGN = (ValueError, TypeError, OverflowError, RecursionError, MemoryError, IndexError,
           msgpack.UnpackException)
"""All that msgpack raises for bytes it cannot take; an index error is the end of the header."""
_SCALAR_SPANS = (
    (0x00, 0x7F), (0xCC, 0xD3), (0xE0, 0xFF),  # integers
    (0xC2, 0xC3),  # booleans
    (0xA0, 0xBF), (0xD9, 0xDB),  # strings
    (0xC4, 0xC6),  # byte strings
)  # fmt: skip
IS_SCALAR = bytes(any(low <= tag <= high for low, high in _SCALAR_SPANS) for tag in range(256))

CUT_OFF = "is cut off"
NO_SCALAR = "is neither int, bool, string nor byte string"


class Fault(Exception):
    """A value that does not fit: why, and where as seen from the reader that met it."""

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.path = path

    def within(self, outer: str) -> Fault:
        """The same, seen from further out."""
        self.path = outer + self.path
        return self


class Reader:
    """The values of a header, first to last, and the frames in their order.

    ``header``, ``tell`` and ``unpack`` are open for the one inner loop that cannot afford ``scalar``.
    """

    __slots__ = ("_array", "_frames", "_items_left", "_next_frame", "header", "limits", "tell", "unpack")

    def __init__(self, frames: Sequence[bytes], limits: Limits) -> None:
        header = frames[0]
        unpacker = msgpack.Unpacker(max_buffer_size=len(header), max_map_len=0, max_ext_len=0)
        unpacker.feed(header)
        self.unpack, self.tell, self._array = unpacker.unpack, unpacker.tell, unpacker.read_array_header
        self.header = header
        self.limits = limits
        self._frames = frames
        self._next_frame = 1
        self._items_left = ITEMS_MAX

    def scalar(self) -> Any:
        """The next value, an int, bool, string or byte string; the caller decides which it must be."""
        try:
            if IS_SCALAR[self.header[self.tell()]]:
                return self.unpack()
        except FOREIGN as problem:
            raise explain(problem) from None
        raise Fault(NO_SCALAR)

    def array(self) -> int:
        """The length of the next value, an array; its items follow."""
        try:
            count: int = self._array()
        except msgpack.OutOfData:
            raise Fault(CUT_OFF) from None
        except FOREIGN:
            raise Fault("is no array") from None
        return count

    def items(self, count_max: int) -> int:
        """The length of a list, counted against what an envelope may hold."""
        count = self.array()
        if count > count_max:
            raise Fault(f"has {count} items, more than {count_max}")
        self._items_left -= count
        if self._items_left < 0:
            raise Fault(f"brings the envelope to more than {ITEMS_MAX} items")
        return count

    def frame(self, index: object) -> bytes:
        """The data of a column; 0 stands for no data, anything else must be the next frame."""
        if type(index) is not int:
            raise Fault("its frame is no int")
        if index == 0:
            return b""
        if index != self._next_frame or index >= len(self._frames):
            raise Fault(f"takes frame {index}; the next one is {self._next_frame} of {len(self._frames) - 1}")
        if not self._frames[index]:
            raise Fault(f"takes frame {index}, which is empty; frame 0 stands for no data")
        self._next_frame += 1
        return self._frames[index]

    def close(self) -> None:
        """Nothing may be left over."""
        trailing = len(self.header) - self.tell()
        if trailing:
            raise Fault(f"{trailing} bytes trail the envelope", "header")
        unused = len(self._frames) - self._next_frame
        if unused:
            raise Fault(f"{unused} belong to no column", "frames")


class Writer:
    """Collects frames while the header is laid out; ``items`` counts as a reader will."""

    __slots__ = ("frames", "items")

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.items = 0

    def column(self, column: Column) -> tuple[bytes, int]:
        """A column as the header holds it: its lengths and its frame."""
        if not column.data:
            return column.lengths, 0
        self.frames.append(column.data)
        return column.lengths, len(self.frames)


def explain(problem: BaseException) -> Fault:
    """A foreign exception in our words; it never says what the bytes were."""
    if isinstance(problem, IndexError | msgpack.OutOfData):
        return Fault(CUT_OFF)
    if isinstance(problem, UnicodeDecodeError):
        return Fault("is not UTF-8")
    return Fault(f"is not msgpack: {str(problem)[:100]}")
