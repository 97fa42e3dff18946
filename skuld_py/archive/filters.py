"""Which tasks of an archive are wanted, as conditions on columns; as far as the names of directories can tell, by
conditions on these, so that other directories are not read.

An id carries its time, so asking for an id is asking for one day, and asking for times is asking for their days.
The id of a unique name is as old as its window, so the days of the longest window before are looked at, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import attrs

from skuld_py.archive.rows import day_of, day_of_id
from skuld_py.model.body import WINDOW_MS_MAX
from skuld_py.model.ids import TaskId

Value = str | int | tuple[str, ...]
Condition = tuple[str, str, Value]
"""Column, one of ``= >= < <= in``, value."""


@attrs.frozen
class Filters:
    """None, or empty, is any. ``since`` and ``until`` bound when a task was enqueued."""

    id: TaskId | None = None
    queue: str | None = None
    states: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    key: str | None = None

    def conditions(self) -> Iterator[Condition]:
        """The conditions, all of which must hold."""
        if self.queue is not None:
            yield "queue", "=", self.queue
        if self.id is not None:
            yield "day", "=", day_of_id(self.id)
            yield "id", "=", str(self.id)
        if self.since is not None:
            yield "day", ">=", day_of(max(0, _ms(self.since) - WINDOW_MS_MAX))
            yield "enqueued_ms", ">=", _ms(self.since)
        if self.until is not None:
            yield "day", "<=", day_of(_ms(self.until))
            yield "enqueued_ms", "<", _ms(self.until)
        if self.states:
            yield "state", "in", self.states
        if self.key is not None:
            yield "key", "=", self.key


def _ms(moment: datetime) -> int:
    """Milliseconds, clipped to times that have a day."""
    return max(0, round(moment.astimezone(UTC).timestamp() * 1000))
