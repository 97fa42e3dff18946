"""The windows of unique names: where to find tasks that were asked for after a time but have older ids.

    table window: window ms u32 -> nothing for each length of a window that a task here ever had

The id of a unique name is as old as the beginning of its window. Windows are aligned to the clock, so of each
length exactly one is open at any time. Tasks asked for at ``since`` or later with older ids therefore have ids of
one millisecond for each length of a window: that at which the one that is open at ``since`` began. A listing looks
there, and then at all ids from ``since`` on, and is in the order of ids all the same.

Invariant: there is a row for the window of every body. Rows stay when bodies go: they are as few as the lengths
that programs ask for, and one too many costs a seek. Where they are more than ``WINDOWS_MAX`` a listing looks at
all ids that may be of an open window.

Rejected: an index of unique names by their age, which is a row to be written and deleted with each of them; and a
listing in the order of that age, whose pages could not go on behind an id.
"""

from __future__ import annotations

from collections.abc import Iterator

from skuld_py.model.body import WINDOW_MS_MAX, Header
from skuld_py.model.store import Row, Store
from skuld_py.partition.data import tables

WINDOWS_MAX = 1_000
"""How many lengths of windows are looked at for a page of a listing, at most."""
_MARK = b"windows"
"""Key, in ``meta``, of the mark that all rows of this store are made."""


def note_window(store: Store, prefix: bytes, header: bytes) -> None:
    """Bodies of a header have come."""
    key = prefix + Header.decode(header).window_ms.to_bytes(4, "big")
    if key != prefix + bytes(4) and store.get("window", key) is None:
        store.put_many("window", [(key, b"")])


def begun_before(store: Store, prefix: bytes, since_ms: int) -> Iterator[tuple[int, int]]:
    """Spans of time, rising, in which ids before ``since_ms`` may be of tasks that were asked for later."""
    rows = store.scan("window", prefix, tables.end_of(prefix), WINDOWS_MAX + 1)
    if len(rows) > WINDOWS_MAX:
        yield max(0, since_ms - WINDOW_MS_MAX), since_ms
        return
    begun = {since_ms - since_ms % int.from_bytes(key[2:], "big") for key, _ in rows}
    yield from ((slot_ms, slot_ms + 1) for slot_ms in sorted(begun) if slot_ms < since_ms)


def make_windows(store: Store, partitions: int, rows: int = 1_000) -> None:
    """Make the rows of a store from before there were any; committed in steps."""
    if store.get("meta", _MARK) is None:
        for partition in range(partitions):
            prefix = start = tables.prefix_of(partition)
            while found := store.scan("body", start, tables.end_of(prefix), rows):
                note_windows(store, prefix, found)
                store.commit()
                start = found[-1][0] + b"\0"
        store.put_many("meta", [(_MARK, b"")])
        store.commit()


def note_windows(store: Store, prefix: bytes, bodies: list[Row]) -> None:
    """Bodies of any headers have come. Tasks share few headers: each is read once."""
    for header in dict.fromkeys(body[2 : 2 + int.from_bytes(body[:2], "big")] for _, body in bodies):
        note_window(store, prefix, header)
