"""Join-semilattices: values that copies may change apart and always merge to the same result.

Law of the room, for every lattice here and every pair of values ``a``, ``b``, ``c`` of it:

    a.merge(b) == b.merge(a)                      commutative: order of arrival does not matter
    a.merge(b).merge(c) == a.merge(b.merge(c))    associative: grouping does not matter
    a.merge(a) == a                               idempotent: a repeated message does not matter
    a <= a.merge(b)                               inflationary: nothing known is forgotten

The tests prove the laws by property for each class. Rejected: last-writer-wins registers. They
need clocks to decide which write survives, and silently forget the other one.

Source: Shapiro et al., "A comprehensive study of Convergent and Commutative Replicated Data
Types", INRIA RR-7506, 2011.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Generic, Protocol, Self, TypeVar

import attrs


class Lattice(Protocol):
    """A value with a join."""

    def merge(self, other: Self, /) -> Self:
        """The least value that knows all that both know."""
        ...


L = TypeVar("L", bound=Lattice)
K = TypeVar("K", int, bytes, str, tuple[int, int])


@attrs.frozen
class Max:
    """A number that only rises."""

    value: int = 0

    def merge(self, other: Max) -> Max:
        """The larger."""
        return self if self.value >= other.value else other


@attrs.frozen
class Min:
    """The earliest of several (time, tie-break) pairs; ``None`` until there is one."""

    value: tuple[int, int] | None = None

    def merge(self, other: Min) -> Min:
        """The smaller; anything is smaller than nothing."""
        if self.value is None:
            return other
        if other.value is None:
            return self
        return self if self.value <= other.value else other


@attrs.frozen
class LatticeMap(Generic[K, L]):
    """A map that only grows; values under one key merge. Entries are kept in key order."""

    entries: Mapping[K, L] = attrs.field(factory=dict)

    def merge(self, other: LatticeMap[K, L]) -> LatticeMap[K, L]:
        """The union, key by key."""
        merged = dict(self.entries)
        for key, value in other.entries.items():
            mine = merged.get(key)
            merged[key] = value if mine is None else mine.merge(value)
        return LatticeMap({key: merged[key] for key in sorted(merged)})


def join(first: L, others: Iterable[L]) -> L:
    """Merge a value with any number of others."""
    return reduce(lambda a, b: a.merge(b), others, first)
