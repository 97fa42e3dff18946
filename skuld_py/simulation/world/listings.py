"""A list that ZooKeeper keeps, with all it ever was: a server that lags shows an older state of it.

Which state a client sees is the service's decision; that it never sees an older one after a newer one is
ZooKeeper's promise to every session.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Listing(Generic[Item]):
    """The items by name, and every state with the time from which it held."""

    def __init__(self) -> None:
        self._items: dict[str, Item] = {}
        self._times: list[int] = []
        self._states: list[tuple[Item, ...]] = []

    def __contains__(self, name: str) -> bool:
        return name in self._items

    def get(self, name: str) -> Item | None:
        """The present item of a name."""
        return self._items.get(name)

    def put(self, now_ms: int, name: str, item: Item) -> None:
        """Add or replace."""
        self._items[name] = item
        self._keep(now_ms)

    def pop(self, now_ms: int, name: str) -> None:
        """Take out."""
        del self._items[name]
        self._keep(now_ms)

    def _keep(self, now_ms: int) -> None:
        self._times.append(now_ms)
        self._states.append(tuple(self._items[name] for name in sorted(self._items)))

    def at(self, time_ms: int) -> tuple[Item, ...]:
        """The items, by name order, as they stood at the end of that millisecond."""
        index = bisect_right(self._times, time_ms)
        return self._states[index - 1] if index else ()

    def is_newer(self, time_ms: int) -> bool:
        """Whether it changed after that millisecond."""
        return bool(self._times) and self._times[-1] > time_ms
