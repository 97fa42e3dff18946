"""The durations and bounds of a member's part in the coordination log, in one place.

Each may differ from member to member, for nothing that is played depends on them.
"""

from __future__ import annotations

import attrs

DAY_MS = 86_400_000


@attrs.frozen
class LogSettings:
    """Times in milliseconds, lengths in entries."""

    batch: int = 256
    """Entries asked for at once."""
    wait_ms: int = 15_000
    """How long a reading at the end of the log waits: a lost watch costs this, and no more."""
    back_off_ms: int = 500
    """A joiner that was told no waits from 0 to twice that."""
    repeat_ms: int = 5_000
    """A join or a leave that has not shown in the log after this long is tried again."""
    length_max: int = 1_000
    """The log is collected when it has grown by this many entries."""
    grace: int = 200
    """Entries before the origin that stay, for readers on their way."""
    takeover_ms: int = 10_000
    """The next in line takes over a duty that was due for this long."""
    forget_ms: int | None = DAY_MS
    """A node that was down for this long is forgotten; None: only an operator forgets nodes."""
    brief_ms: int = 600_000
    """A node that stops cleanly this soon after it came for the first time was a visitor..."""
    return_ms: int = 60_000
    """...and is forgotten if it does not return within this."""
