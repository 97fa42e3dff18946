"""Reading the log: one reading outstanding, each entry played once, in order, and a jump where the log was cut.

The replica is a function of the log alone, so it outlives sessions and lives: a member reads the origin once,
when its process starts, and again only if entries that it has not played are gone.

A replica that has parted from the others' is built again beside the one in use, which stays until the other has
come as far: this member's place and its node must not falter for that.

Bounds: one batch at a time; nothing is kept but the replica, or two.

Source: Onyx, whose readers wait for ever once the entry that they want has been collected; they fall behind the
origin without a sign.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from skuld_py.cluster.log.canonical import from_text
from skuld_py.cluster.log.play import Played, Player, UnknownRules, play
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.member.settings import LogSettings
from skuld_py.cluster.scale.epidemic import Epidemic
from skuld_py.config import RULES
from skuld_py.model.coordination import EntriesRead, OriginRead, ReadEntries, ReadOrigin


@attrs.define
class Reader:
    """``replica`` is as of the last entry played. ``is_at_end``: there was none behind it when last asked."""

    settings: LogSettings
    replica: Replica
    player: Player = play
    sharing: Epidemic | None = None
    """Gives entries from other members while ``is_shared``, and then says when to read."""
    is_shared: bool = False
    is_at_end: bool = False
    has_begun: bool = False
    """Whether the replica was compared with the origin once."""
    _base: Replica = attrs.field(default=attrs.Factory(lambda self: self.replica, takes_self=True))
    _anew: Reader | None = None
    """The reader that builds the replica again, while this one goes on with what others offer."""
    _asked: type[ReadOrigin | ReadEntries] | None = None
    """What is outstanding."""
    _must_compare: bool = False
    _resumes_at: int = -1
    """Where the entries begin behind a gap, when there is one."""
    _next: int = 0
    _start: int = -1
    """Where the outstanding reading begins."""

    @property
    def position(self) -> int:
        """The position of the last entry played or passed over."""
        return self._next - 1

    def ask(self, now_ms: int) -> list[ReadOrigin | ReadEntries]:
        """The next reading, unless one is outstanding or entries come from elsewhere."""
        if self._asked is not None:
            return []
        if self._anew is not None:
            return self._anew.ask(now_ms)
        if not self.has_begun or self._must_compare:
            self._asked = ReadOrigin
            return [ReadOrigin()]
        wish = self._wish(now_ms)
        if wish is None:
            return []
        self._asked, self._start = ReadEntries, self._next
        return [wish]

    def _wish(self, now_ms: int) -> ReadEntries | None:
        if self.sharing is not None and self._is_told:
            return self.sharing.read(now_ms)
        return ReadEntries(self._next, self.settings.batch, self.is_at_end, self.settings.wait_ms)

    @property
    def _is_told(self) -> bool:
        return self.is_at_end and self.is_shared

    def deadline(self) -> int | None:
        """When to look into the log although others offer its entries; None if none does, or it is looking."""
        if self.sharing is None or not self._is_told or self._asked is not None or self._anew is not None:
            return None
        return self.sharing.read_deadline()

    def void(self) -> None:
        """The session is lost: nothing outstanding will be answered, and what is at the end is not known."""
        self._asked, self.is_at_end, self._anew = None, False, None
        if self.sharing is not None:
            self.sharing.void()

    def build_anew(self) -> None:
        """The replica is not to be trusted: read origin and log again, and take the result in its place."""
        if self._anew is None:
            self._anew = Reader(self.settings, self._base, self.player)

    def on_origin(self, event: OriginRead) -> None:
        """Jump there if it is ahead. Raises ``Malformed`` or ``UnknownRules`` if it cannot be played from."""
        if self._anew is not None and self._asked is not ReadOrigin:
            self._anew.on_origin(event)
            return
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
        self._take(replica)
        return True

    def begin_from(self, replica: Replica) -> None:
        """Begin with another member's replica in place of the origin."""
        if not self.has_begun:
            self.has_begun = True
            self._take(replica)

    def _take(self, replica: Replica) -> None:
        self.replica, self._next, self.is_at_end = replica, replica.version + 1, False

    def on_entries(self, now_ms: int, event: EntriesRead) -> Iterator[Played]:
        """Play what was read; an answer that came too late says nothing about the end."""
        if self._anew is not None and self._asked is None:
            self._build(now_ms, self._anew, event)
            return
        yield from self.offer(event.entries)
        if self._asked is not ReadEntries or event.start != self._start:
            return
        self._asked = None
        beyond = next((position for position, _ in event.entries if position > self._next), -1)
        self._must_compare = event.is_missing or beyond >= 0
        self._resumes_at = beyond
        is_filled = self.sharing is not None and self.sharing.is_filling
        self.is_at_end = (event.is_end or is_filled) and not self._must_compare
        if self.sharing is not None:
            self.sharing.advance(now_ms, self.position)
            self.sharing.on_read(now_ms, event)

    def _build(self, now_ms: int, anew: Reader, event: EntriesRead) -> None:
        for _ in anew.on_entries(now_ms, event):
            pass
        if anew.is_at_end and anew.position >= self.position:
            self.replica, self._next, self._anew = anew.replica, anew.position + 1, None
            if self.sharing is not None:
                self.sharing.restart(now_ms, self.position)

    def offer(self, entries: Iterable[tuple[int, bytes]]) -> Iterator[Played]:
        """Play entries in order, from wherever they come, as far as they join on to what was played."""
        for position, raw in entries:
            if position != self._next:
                continue
            played = self.player(self.replica, position, raw)
            self.replica, self._next = played.replica, position + 1
            yield played
