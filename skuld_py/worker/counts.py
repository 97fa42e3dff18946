"""What a worker has done since its start, as its loop counts it."""

from __future__ import annotations

import attrs


@attrs.define
class Counts:
    """``ended``: by how the task was written. ``refused``: requests for tasks that failed, by code."""

    started: int = 0
    running: int = 0
    lost: int = 0
    seconds: float = 0.0
    ended: dict[str, int] = attrs.field(factory=dict)
    refused: dict[str, int] = attrs.field(factory=dict)
