"""How bad the connections of a run are, as numbers that may be changed while it goes on.

Storms set them as the seed says; when all is to come to rest they are set back to these defaults.
"""

from __future__ import annotations

import attrs


@attrs.define
class Weather:
    """How bad the connections are: probabilities, and milliseconds. Changed during a run."""

    delay_ms: int = 10
    slow: float = 0.0
    """Requests that take up to ``slow_ms``."""
    slow_ms: int = 800
    lost: float = 0.0
    """Appends in doubt that were not made."""
    doubted: float = 0.0
    """Appends in doubt that were made."""
    doubled: float = 0.0
    """Appends made twice, the second time up to ``late_ms`` later."""
    late_ms: int = 2_000
    lagging: float = 0.0
    """Readings from a server that lags by some entries."""
    stale: float = 0.0
    """Looks at a pulse that go to a server which may not have heard of it yet."""
    dropped: float = 0.0
    """Messages between members that are lost."""
    skipped: float = 0.0
    """Numbers of the sequence that no entry gets."""
