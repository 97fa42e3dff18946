"""The coordination log as the servers keep it: entries by position, the origin, and the pulses of lives.

Everything has the time at which it came, and a pulse that at which it went, so that a server that is behind shows
what it knows. Beside the log stands the reference (``reference``), which plays each entry as it comes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

import attrs

from skuld_py.cluster.log.replica import Replica
from skuld_py.model.coordination import EntriesRead
from skuld_py.simulation.world.zookeeper.reference import Reference


@attrs.define
class Pulse:
    """An ephemeral: the session that holds it, its node, and since when and until when it stood."""

    session: int
    node: str
    made_ms: int
    gone_ms: int = -1

    def stands(self, seen_ms: int) -> bool:
        """Whether a server shows it that is as new as this."""
        return self.made_ms <= seen_ms and not 0 <= self.gone_ms <= seen_ms


class Log:
    """``on_gone``: told of each pulse that goes."""

    def __init__(self, reference: Reference, now_ms: Callable[[], int], on_gone: Callable[[str], None]) -> None:
        self.reference = reference
        self.entries: dict[int, bytes] = {}
        """What stands there, by position."""
        self.origin: tuple[int, str] = (-1, "")
        self.pulses: dict[str, Pulse] = {}
        """Those that stand."""
        self._now_ms = now_ms
        self._on_gone = on_gone
        self._times: list[int] = []
        """When each position was taken."""
        self._gone: dict[str, Pulse] = {}

    # -- entries -------------------------------------------------------------------------------

    @property
    def end(self) -> int:
        """The next position."""
        return len(self._times)

    def begin(self, replica: Replica) -> None:
        """Let the log go on from an origin, as of the first position."""
        assert not self._times and replica.version == 0
        self._times.append(self._now_ms())
        self.origin = (0, replica.text())
        self.reference.begin(replica)

    def restore(self, replica: Replica) -> None:
        """All of it is lost, and goes on from this origin. Nobody lives."""
        self.entries, self.pulses, self._gone = {}, {}, {}
        self._times = [self._now_ms()] * (replica.version + 1)
        self.origin = (replica.version, replica.text()) if replica.version >= 0 else (-1, "")
        self.reference.restore(replica)

    def skip(self) -> None:
        """A number of the sequence that no entry gets."""
        self._times.append(self._now_ms())

    def append(self, raw: bytes) -> int:
        """An entry at the next position."""
        position = self.end
        self._times.append(self._now_ms())
        self.entries[position] = raw
        self.reference.take(position, raw, self.pulses)
        return position

    def written(self, seen_ms: int) -> int:
        """The next position, as a server knows it that is as new as this."""
        return bisect_right(self._times, seen_ms)

    def read(self, start: int, limit: int, seen_ms: int) -> EntriesRead:
        """The entries at ``start`` and directly behind that a server shows; maybe none."""
        end, found = self.written(seen_ms), list[tuple[int, bytes]]()
        while len(found) < limit and (at := start + len(found)) < end and at in self.entries:
            found.append((at, self.entries[at]))
        behind = start + len(found)
        return EntriesRead(start, tuple(found), not any(at in self.entries for at in range(behind, end)))

    def beyond(self, start: int) -> int | None:
        """The first entry at ``start`` or later; -1 when there is none but the origin is; None without either."""
        later = [position for position in self.entries if position >= start]
        if later:
            return min(later)
        return -1 if self.origin[0] >= start else None

    # -- the origin ----------------------------------------------------------------------------

    def write_origin(self, position: int, text: str) -> bool:
        """Unless a later one stands; says whether this one does."""
        if position > self.origin[0]:
            self.reference.compare_origin(position, text)
            self.origin = position, text
        return position == self.origin[0]

    def remove(self, below: int) -> None:
        """Remove entries below a position, which the origin must cover."""
        assert below <= self.origin[0] + 1, "somebody removes what no origin holds"
        self.entries = {position: raw for position, raw in self.entries.items() if position >= below}

    # -- pulses --------------------------------------------------------------------------------

    def make_pulse(self, life: str, node: str, session: int) -> None:
        """Let an ephemeral stand."""
        self.pulses[life] = Pulse(session, node, self._now_ms())

    def drop_pulse(self, life: str) -> None:
        """Let it go; nothing if it does not stand."""
        pulse = self.pulses.pop(life, None)
        if pulse is not None:
            pulse.gone_ms = self._now_ms()
            self._gone[life] = pulse
            self._on_gone(life)

    def stands(self, life: str, seen_ms: int) -> bool:
        """Whether a server shows a pulse that is as new as this."""
        pulse = self.pulses.get(life) or self._gone.get(life)
        return pulse is not None and pulse.stands(seen_ms)

    def standing(self, seen_ms: int) -> tuple[str, ...]:
        """The lives whose pulse a server shows, by name."""
        return tuple(sorted(life for pulses in (self.pulses, self._gone) for life, pulse in pulses.items()
                            if pulse.stands(seen_ms)))
