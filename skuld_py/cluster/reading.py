"""Reading the log: one reading outstanding, each entry played once, in order, and a jump where the log was cut.

The replica is a function of the log alone, so it outlives sessions and lives: a member reads the origin once, when
its process starts, and again only if entries that it has not played are gone.

Bounds: one batch at a time; nothing is kept but the replica.

Source: Onyx, whose readers wait for ever once the entry that they want has been collected; they fall behind the
origin without a sign.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import attrs

from skuld_py.cluster.canonical import from_text
from skuld_py.cluster.playing import Played, UnknownRules, play
from skuld_py.cluster.replica import RULES, Replica
from skuld_py.cluster.settings import LogSettings
from skuld_py.model.coordination import EntriesRead, OriginRead, ReadEntries, ReadOrigin

Player = Callable[[Replica, int, bytes], Played]
"""Plays an entry, as ``playing.play`` does."""


@attrs.define
class Reader:
    """``replica`` is as of the last entry played. ``is_at_end``: there was none behind it when last asked."""

    settings: LogSettings
    replica: Replica
    player: Player = play
    is_at_end: bool = False
    has_begun: bool = False
    """Whether the origin was compared with, once."""
    _asked: type[ReadOrigin | ReadEntries] | None = None
    """What is outstanding."""
    _must_compare: bool = False
    _resumes_at: int = -1
    """Where the entries begin behind a gap, when there is one."""
    _next: int = 0
    _start: int = -1
    """Where the outstanding reading begins."""
    _heard_ms: int = 0
    """When entries last came, or were last asked for."""

    def ask(self, now_ms: int) -> list[ReadOrigin | ReadEntries]:
        """The next reading, unless one is outstanding or entries come from elsewhere."""
        if self._asked is not None:
            return []
        if not self.has_begun or self._must_compare:
            self._asked = ReadOrigin
            return [ReadOrigin()]
        due_ms = self.deadline()
        if due_ms is not None and now_ms < due_ms:
            return []
        self._asked, self._start, self._heard_ms = ReadEntries, self._next, now_ms
        is_waiting = self.is_at_end and not self.settings.silence_ms
        return [ReadEntries(self._next, self.settings.batch, is_waiting, self.settings.wait_ms)]

    def deadline(self) -> int | None:
        """When to look into the log although others offer its entries; None if nobody does, or it is looking."""
        if not self.settings.silence_ms or not self.is_at_end or self._asked is not None:
            return None
        return self._heard_ms + self.settings.silence_ms

    def void(self) -> None:
        """The session is lost: nothing outstanding will be answered, and what is at the end is not known."""
        self._asked, self.is_at_end = None, False

    def on_origin(self, event: OriginRead) -> None:
        """Jump there if it is ahead. Raises ``Malformed`` or ``UnknownRules`` if it cannot be played from."""
        if self._asked is ReadOrigin:
            self._asked = None
        self.adopt(event.position, event.text)
        if self._must_compare:
            self._next = max(self._next, self._resumes_at)  # what is not there and not collected never was
        self.has_begun, self._must_compare, self._resumes_at = True, False, -1

    def adopt(self, position: int, text: str) -> bool:
        """Take a replica as of a position, if it is ahead of ours."""
        if position <= self.replica.version:
            return False
        replica = from_text(Replica, text)
        if replica.rules > RULES:
            raise UnknownRules(position, replica.rules)
        self.replica, self._next, self.is_at_end = replica, replica.version + 1, False
        return True

    def on_entries(self, now_ms: int, event: EntriesRead) -> Iterator[Played]:
        """Play what was read; an answer that came too late says nothing about the end."""
        yield from self.offer(now_ms, event.entries)
        if self._asked is not ReadEntries or event.start != self._start:
            return
        self._asked = None
        beyond = next((position for position, _ in event.entries if position > self._next), -1)
        self._must_compare = event.is_missing or beyond >= 0
        self._resumes_at = beyond
        self.is_at_end = (event.is_end or not event.entries) and not self._must_compare

    def offer(self, now_ms: int, entries: Iterable[tuple[int, bytes]]) -> Iterator[Played]:
        """Play entries in order, from wherever they come, as far as they join on to what was played."""
        for position, raw in entries:
            if position != self._next:
                continue
            played = self.player(self.replica, position, raw)
            self.replica, self._next, self._heard_ms = played.replica, position + 1, now_ms
            yield played
