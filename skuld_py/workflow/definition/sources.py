"""What an input draws its values from. Each value becomes a root.

A source is data; a worker does the drawing. For what has offsets, a log of messages, the application brings an
``OffsetsAdapter``: a function of the application that is called with the entry's parameters and gives one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import attrs


@attrs.frozen
class Files:
    """Each path that matches one of the patterns, in the order of the paths."""

    globs: tuple[str, ...]


@attrs.frozen
class Jdbc:
    """Each of ``partitions`` ranges of a table's column, as Spark reads them: ``lower`` and ``upper`` say how they
    are cut, not which rows there are. ``options`` are of Spark's reader. The user and the password are the
    worker's: ``credentials`` is the name under which it knows them."""

    url: str
    table: str
    column: str = ""
    lower: int = 0
    upper: int = 0
    partitions: int = 1
    credentials: str = ""
    options: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class Offsets:
    """What has partitions and offsets, read by an ``OffsetsAdapter`` that the function gives."""

    adapter: str


@attrs.frozen
class Outputs:
    """What a step of another workflow returned; of all its leaves, if no step is named. No ``workflow``: of a step
    of the same one. They are drawn once the step is finished. ``together``: as one value, the list of them.
    ``routed``: the values that its conditions routed to each step, which go to the steps of the same names here.
    ``content``: what was taken over, as ``resuming`` knows it."""

    workflow: str
    step: str = ""
    routed: bool = False
    content: str = ""
    together: bool = False


@attrs.frozen
class Queue:
    """Tasks of a queue that is no workflow's: each is claimed, and completed when its root is."""

    name: str


@attrs.frozen
class Values:
    """What a function yields that is called with the entry's parameters."""

    function: str


Source = Files | Jdbc | Offsets | Outputs | Queue | Values


@attrs.frozen
class Page:
    """Some values of a partition, the offset behind the last of them, and whether nothing comes after it, ever."""

    values: Sequence[Any]
    next_offset: int
    is_end: bool = False


class OffsetsAdapter(Protocol):
    """Reads something that has partitions, and in each of them offsets that rise. What was read once can be read
    again from its offset, until it is committed.

    One that has an attribute ``grows`` may come to have further partitions: until that is false it is asked for
    them every half a minute, and its input does not end."""

    def partitions(self) -> Sequence[str]:
        """Their names, each once. Always the same ones, in the same order; if it ``grows``, there may be new ones
        anywhere."""

    def begin(self, partition: str) -> int:
        """The offset to begin with when this workflow has not read anything yet."""

    def read(self, partition: str, offset: int, most: int) -> Page:
        """At most so many values from an offset on. The next offset is greater, if there are any; below 2^63. An
        empty page that is no end: ask again later."""

    def commit(self, offsets: Mapping[str, int]) -> None:
        """Of each partition everything before this offset is processed."""
