"""The coordination log as it lies in ZooKeeper, and how it is read.

Layout below ``/skuld/CLUSTER``: ``log/entry-%010d`` (persistent, sequential), one per entry; ``origin`` (JSON:
position, chunks, digest) with children ``origin/POSITION-K``, which hold the origin's text in pieces.

ZooKeeper takes the number of a sequential node from a counter of creations in the parent, which deletions leave
alone: positions stay contiguous whatever is collected, and the counter shows in the parent's ``cversion`` (twice
the creations, less the children that are left). So one look at the parent tells whether entries beyond a position
exist or have existed. That is a hint only: what is decided, is decided after a ``sync`` by what is there. A gap
can come from outside only (an operator deletes a node); a reader tells it by the entries behind it.

Bounds: ZooKeeper counts to 2**31, then its names turn negative: 68 years at an entry per second.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import attrs
from kazoo.exceptions import NoNodeError

CHUNK_BYTES_MAX = 512 << 10
_NAME = re.compile(r"entry-([0-9]{10})")
_PIPELINE_MIN, _PIPELINE_MAX = 2, 128
_TRIES = 5


def entry_path(root: str, position: int) -> str:
    """Where the entry at a position is."""
    return f"{root}/log/entry-{position:010d}"


def position_of(path: str) -> int:
    """The position of an entry by its path or its name; -1 if it is none."""
    match = _NAME.fullmatch(path.rpartition("/")[2])
    return int(match[1]) if match else -1


def chunk_path(root: str, position: int, number: int) -> str:
    """Where a piece of the origin as of ``position`` is."""
    return f"{root}/origin/{position}-{number}"


@attrs.frozen
class Header:
    """What ``origin`` says: the position, and in how many pieces the text lies."""

    position: int = -1
    chunks: int = 0
    digest: str = ""

    def encode(self) -> bytes:
        """JSON, so that an operator can read it."""
        return json.dumps(attrs.asdict(self), sort_keys=True).encode()

    @classmethod
    def decode(cls, raw: bytes) -> Header:
        """Parse; ``ValueError``, ``TypeError`` or ``RecursionError`` when it is none."""
        header = cls(**json.loads(raw))
        if (type(header.position), type(header.chunks), type(header.digest)) != (int, int, str):
            raise TypeError(f"{header} has a field of another kind")
        return header


def digest_of(text: bytes) -> str:
    """What a header says of its text."""
    return blake2b(text, digest_size=16).hexdigest()


class BrokenOrigin(Exception):
    """The origin in ZooKeeper is not what was written there."""


class LogReader:
    """Reads one cluster's log. ``client`` gives the client to ask, ``wait`` an answer in limited time."""

    def __init__(self, root: str, client: Callable[[], Any], wait: Callable[[Any], Any]) -> None:
        self._root = root
        self._client = client
        self._wait = wait
        self.times_ms: dict[int, int] | None = None
        """When the entries that were read were written, by ZooKeeper's clock; for who wants to know."""

    def entries(self, start: int, limit: int) -> tuple[list[tuple[int, bytes]], bool]:
        """The entries from ``start`` on without a gap, at most ``limit``, and whether that seems to be the end.
        Asked for in ever larger pipelines: mostly there is one entry."""
        found: list[tuple[int, bytes]] = []
        size = _PIPELINE_MIN
        while len(found) < limit:
            first = start + len(found)
            answers = [(position, self._client().get_async(entry_path(self._root, position)))
                       for position in range(first, min(first + size, start + limit))]
            values = [(position, self._value(answer, position)) for position, answer in answers]
            for position, raw in values:
                if raw is None:
                    return found, all(later is None for at, later in values if at > position)
                found.append((position, raw))
            size = min(2 * size, _PIPELINE_MAX)
        return found, False

    def _value(self, answer: Any, position: int = -1) -> bytes | None:
        try:
            raw, stat = self._wait(answer)
        except NoNodeError:
            return None
        if self.times_ms is not None:
            self.times_ms[position] = stat.ctime
        return bytes(raw)

    def is_behind(self, start: int) -> bool:
        """Whether an entry at ``start`` or later was ever written, by the counter."""
        stat = self._wait(self._client().exists_async(f"{self._root}/log"))
        if stat is None:
            raise NoNodeError()
        written = (stat.cversion + stat.numChildren & 0xFFFFFFFF) // 2
        return bool(written > start)

    def beyond(self, start: int) -> int | None:
        """The first entry that stands at ``start`` or later, by a fresh look. Without one: -1 if the origin is at
        ``start`` or later, None if the log ends before ``start``."""
        client = self._client()
        client.sync_async(f"{self._root}/log")  # requests of a session are answered in order
        names, origin = client.get_children_async(f"{self._root}/log"), client.get_async(f"{self._root}/origin")
        later = [position for position in map(position_of, self._wait(names)) if position >= start]
        if later:
            return min(later)
        return -1 if self._header(self._wait(origin)[0]).position >= start else None

    def oldest(self) -> int:
        """The first entry that stands; 0 in an empty log."""
        return max(self.beyond(0) or 0, 0)

    def origin(self) -> tuple[int, str]:
        """The position and the text of the origin, by a fresh look; -1 and nothing before the first one."""
        for _ in range(_TRIES):
            self._client().sync_async(f"{self._root}/origin")
            header = self._header(self._wait(self._client().get_async(f"{self._root}/origin"))[0])
            answers = [self._client().get_async(chunk_path(self._root, header.position, number))
                       for number in range(header.chunks)]
            pieces = [self._value(answer) for answer in answers]
            if None in pieces:
                continue  # a newer origin has taken its place
            text = b"".join(piece for piece in pieces if piece is not None)
            if header.chunks and digest_of(text) != header.digest:
                raise BrokenOrigin(f"the origin at {header.position} is not the text its header speaks of")
            return header.position, text.decode(errors="surrogatepass")
        raise BrokenOrigin("pieces of the origin are missing, time and again")

    def _header(self, raw: bytes) -> Header:
        try:
            return Header.decode(raw)
        except (ValueError, TypeError, RecursionError) as problem:
            raise BrokenOrigin(f"the origin has no readable header: {problem!r}") from problem
