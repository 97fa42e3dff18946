"""What happened, in order: a hash of all of it, and the last lines of it to read.

The hash says whether two runs were the same run. Lines are formatted only when they are read, because a campaign
makes millions that are never read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from hashlib import blake2b

LINES_KEPT = 400
_DETAIL_CHARS_MAX = 300

Line = tuple[int, str, str, str, object]


class Trace:
    """The story of a run."""

    def __init__(self, listener: Callable[[str], None] | None = None) -> None:
        self.count = 0
        self._digest = blake2b(digest_size=16)
        self._lines: deque[Line] = deque(maxlen=LINES_KEPT)
        self._listener = listener

    def note(self, now_ms: int, who: str, what: str, whom: str, detail: object = "") -> None:
        """Add a line. ``detail`` is shown, and told apart in the hash by its type alone."""
        self.count += 1
        kind = detail if type(detail) is str else type(detail).__name__
        self._digest.update(f"{now_ms} {who} {what} {whom} {kind}\n".encode())
        self._lines.append((now_ms, who, what, whom, detail))
        if self._listener is not None:
            self._listener(render(self._lines[-1]))

    def absorb(self, blob: bytes) -> None:
        """Let the hash depend on something that is no line, as the final stores."""
        self._digest.update(blob)

    @property
    def hash(self) -> str:
        """Equal for equal runs."""
        return self._digest.copy().hexdigest()

    def last(self, count: int) -> list[str]:
        """The newest lines, oldest first."""
        return [render(line) for line in list(self._lines)[-count:]]


def render(line: Line) -> str:
    """One line for people."""
    now_ms, who, what, whom, detail = line
    text = str(detail)
    if len(text) > _DETAIL_CHARS_MAX:
        text = text[:_DETAIL_CHARS_MAX] + "..."
    return f"{now_ms:>7} ms  {who:<9} {what:<9} {whom:<9} {text}".rstrip()
