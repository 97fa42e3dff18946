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
    """A reading at the end of the log waits so long: a watch that was lost costs that, not for ever."""
    back_off_ms: int = 500
    """A joiner that was told no waits from 0 to twice that."""
    repeat_ms: int = 5_000
    """What should have shown in the log by then is looked at again: a join, a leave."""
    length_max: int = 1_000
    """The log is collected when it has grown by so many entries."""
    grace: int = 200
    """So many entries before the origin stay, for readers on their way."""
    takeover_ms: int = 10_000
    """The next in line takes over a duty that was due for so long."""
    forget_ms: int | None = DAY_MS
    """A node that was down for so long is forgotten; None: only by an operator."""
