"""The wishes of one process about the coordination log, and which of them are not answered yet.

Its shell keeps these wishes over a break of the connection and carries them out when it is back; a loss of the
session makes all of them void.
"""

from __future__ import annotations

import attrs

from skuld_py.model.coordination import (
    Append,
    ReadEntries,
    ReadOrigin,
    ReadPulses,
    SetPulse,
    SweepEntries,
    WriteOrigin,
)

Request = ReadPulses | ReadOrigin | ReadEntries | Append | WriteOrigin | SweepEntries


@attrs.define(eq=False)
class Wanted:
    """A request under way. ``is_stale``: it was asked for in a session that was lost, which the process had not
    been told."""

    effect: Request
    is_stale: bool = False
    awaits: int = -1
    """The position that a reading waits for, with a watch; -1 while it does not."""


@attrs.define(eq=False)
class Wishes:
    """``outstanding``: by the kind of the request; a later one takes the place of an earlier one."""

    pulse: SetPulse | None = None
    standing: str = ""
    """The pulse that stood once in this session."""
    is_told: bool = False
    """Whether the process was told that it stands, in this connection; and whether ever since it wished for it."""
    has_stood: bool = False
    watched: tuple[str, ...] = ()
    armed: dict[str, None] = attrs.field(factory=dict)
    """Ids whose pulse has been looked for, and whose end the server would tell."""
    outstanding: dict[type, Wanted] = attrs.field(factory=dict)
    mistaken: dict[type, None] = attrs.field(factory=dict)
    """Kinds of requests of which one of a lost session was answered: the process may take that for the answer to
    what it asked in this session, and ask on."""

    def holds(self, wanted: Wanted) -> bool:
        """Whether a request still waits for its answer."""
        return self.outstanding.get(type(wanted.effect)) is wanted

    def void(self) -> None:
        """The session is lost."""
        self.pulse, self.standing, self.watched = None, "", ()
        self.is_told = self.has_stood = False
        self.armed.clear()
        self.outstanding.clear()
        self.mistaken.clear()
