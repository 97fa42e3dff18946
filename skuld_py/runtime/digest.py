"""Makes few lines of a log of what strangers cause: they choose how often, and a log is a disk.

Like events are told together. The first is told at once; those that follow within a pause are one more line when
it is over, which counts them and shows the last. So a kind is a line for each pause, whatever comes. Who notes
chooses the kinds, of which a stranger must not be able to make more. Any thread may note and look.

Rejected: a pause for each key or address, of which strangers make as many as they like; ``Chronicle``, which the
loop's turns alone may touch.
"""

from __future__ import annotations

import logging
import math
import threading

import attrs


@attrs.define
class _Kind:
    """Like events: the last one's words, how many were not told, and when the next line may be written."""

    next_s: float = -math.inf
    count: int = 0
    last: str = ""


class Digest:
    """Warnings of ``log``, one of a kind in ``pause_s``."""

    def __init__(self, log: logging.Logger, pause_s: float) -> None:
        self._log = log
        self._pause_s = pause_s
        self._kinds: dict[str, _Kind] = {}
        self._lock = threading.Lock()

    def note(self, kind: str, words: str, now_s: float) -> None:
        """Tell of this now, or later with others of its kind."""
        with self._lock:
            known = self._kinds.setdefault(kind, _Kind())
            if known.count or now_s < known.next_s:
                known.count, known.last = known.count + 1, words
                return
            known.next_s = now_s + self._pause_s
        self._log.warning("%s", words)

    def look(self, now_s: float) -> None:
        """Tell what may be told by now."""
        for line in self._due(now_s):
            self._log.warning("%s", line)

    def pause_ms(self, now_s: float) -> int:
        """How long there is nothing to tell; -1 if nothing waits."""
        with self._lock:
            waits = [kind.next_s - now_s for kind in self._kinds.values() if kind.count]
        return math.ceil(1_000 * max(0.0, min(waits))) if waits else -1

    def close(self) -> None:
        """Tell all that is left."""
        self.look(math.inf)

    def _due(self, now_s: float) -> list[str]:
        with self._lock:
            due = [kind for kind in self._kinds.values() if kind.count and now_s >= kind.next_s]
            lines = [kind.last if kind.count == 1 else f"{kind.count:,} times within {self._pause_s:g} s, the last"
                     f" time: {kind.last}" for kind in due]
            for kind in due:
                kind.next_s, kind.count = now_s + self._pause_s, 0
        return lines
