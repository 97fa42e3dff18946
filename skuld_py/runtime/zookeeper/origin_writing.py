"""Writing an origin: the pieces first, then the header by test-and-set, then what it replaces goes.

A reader takes the header, then the pieces it names; so all of them stand before it, and a reader that finds one
gone knows that a newer origin stands. Two that write at once are told apart by the header's version: the later
position stays. A header that cannot be read counts as none: writing mends it. No entry goes that the origin does
not cover. Every step may be repeated, from the first, after any break.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError

from skuld_py.model.coordination import OriginWritten, WriteOrigin
from skuld_py.runtime.zookeeper.connection import Connection
from skuld_py.runtime.zookeeper.log_reading import (
    CHUNK_BYTES_MAX,
    Header,
    chunk_path,
    digest_of,
    entry_path,
    position_of,
)

BATCH = 128
"""Nodes removed in one step."""

_log = logging.getLogger(__name__)


class OriginWriting:
    """One origin on its way. ``step`` is called until it gives the outcome."""

    def __init__(self, connection: Connection, root: str, wish: WriteOrigin) -> None:
        self._connection = connection
        self._root = root
        self._wish = wish
        self._steps: Iterator[OriginWritten | None] | None = None

    def step(self) -> OriginWritten | None:
        """Do a little; the outcome once it is over. After an exception the next step is the first again."""
        if self._steps is None:
            self._steps = self._run()
        try:
            return next(self._steps)
        except BaseException:
            self._steps = None
            raise

    def _run(self) -> Iterator[OriginWritten | None]:
        position = self._wish.position
        text = self._wish.text.encode(errors="surrogatepass")
        pieces = [text[start : start + CHUNK_BYTES_MAX] for start in range(0, len(text), CHUNK_BYTES_MAX)]
        header, version = self._read_header()
        if header.position < position:
            for number, piece in enumerate(pieces):
                self._put(chunk_path(self._root, position, number), piece)
                yield None
        ours = Header(position, len(pieces), digest_of(text))
        while header.position < position:
            with suppress(BadVersionError):
                self._ask(self._connection.client.set_async(f"{self._root}/origin", ours.encode(), version))
            header, version = self._read_header()
        keep_from = min(self._wish.keep_from, position + 1)
        yield from self._remove([path for path in self._entries() if position_of(path) < keep_from])
        yield from self._remove(self._older_pieces(header.position))
        yield OriginWritten(position, header.position == position)

    def _read_header(self) -> tuple[Header, int]:
        raw, stat = self._ask(self._connection.client.get_async(f"{self._root}/origin"))
        try:
            return Header.decode(raw), stat.version
        except (ValueError, TypeError) as problem:
            _log.error("the origin of the log has no readable header (%r); it is written anew", problem)
            return Header(), stat.version

    def _put(self, path: str, piece: bytes) -> None:
        try:
            self._ask(self._connection.client.create_async(path, piece))
        except NodeExistsError:  # of an attempt that was broken off
            self._ask(self._connection.client.set_async(path, piece))

    def _entries(self) -> list[str]:
        names = self._ask(self._connection.client.get_children_async(f"{self._root}/log"))
        return [entry_path(self._root, position) for position in sorted(map(position_of, names)) if position >= 0]

    def _older_pieces(self, newest: int) -> list[str]:
        names = sorted(self._ask(self._connection.client.get_children_async(f"{self._root}/origin")))
        return [f"{self._root}/origin/{name}" for name in names if _position_of_piece(name) < newest]

    def _remove(self, paths: Sequence[str]) -> Iterator[None]:
        for start in range(0, len(paths), BATCH):
            answers = [self._connection.client.delete_async(path) for path in paths[start : start + BATCH]]
            for answer in answers:
                with suppress(NoNodeError):
                    self._ask(answer)
            yield None

    def _ask(self, answer: Any) -> Any:
        return self._connection.wait(answer)


def _position_of_piece(name: str) -> int:
    """The position of the origin that a piece belongs to; -1 if it is none, so that it goes with the oldest."""
    number = name.partition("-")[0]
    return int(number) if number.isascii() and number.isdecimal() else -1
