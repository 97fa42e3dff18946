"""A process in the simulation at scale: what makes it different from the others, and nothing that all share.

Its replica is the log's at its position, and all that follow the log the same way have the same position
(``cohorts``, ``spreading``). Left are its id, its outbox with one append in flight, the pulses that it watches,
and timers.
"""

from __future__ import annotations

import attrs

from skuld_py.cluster.log.commands import Command
from skuld_py.model.document import Member
from skuld_py.simulation.coordination.scale.log import News


@attrs.define(eq=False)
class Process:
    """One life. ``id`` is a member's once the log says so."""

    id: str
    info: Member
    index: int
    is_alive: bool = True
    is_in: bool = False
    """Whether it has played the entry that makes it a member."""
    has_pulse: bool = False
    has_read: bool = False
    """Whether it has read the log to its end, once."""
    has_begun: bool = False
    """Whether it has asked to be let in."""
    gives_up: bool = False
    """Whether it has knocked in vain and takes the three phases."""
    shares: bool = False
    """Whether it gets entries from other members."""
    heard_at: float = 0.0
    """When it gets the newest entry that concerns it: none is played before those that stand before it."""
    seq: int = 0
    is_appending: bool = False
    outbox: list[Command] = attrs.field(factory=list)
    """What it wants to append, in order, each command once."""
    wanted: tuple[str, ...] = ()
    """The ids whose pulses it is to watch."""
    armed: dict[str, None] = attrs.field(factory=dict)
    """The ids on which it has a watch that has not fired."""
    reported: dict[str, None] = attrs.field(factory=dict)
    """The ids whose leave it has written."""
    asked: int = 0
    """Questions asked so far; answers to earlier ones are void."""
    failures: int = 0
    is_welcome: bool = False
    awaits_replica: bool = False
    """Whether it follows nothing yet, since it is to take over a member's replica."""
    pending: list[News] = attrs.field(factory=list)
    """What concerns it meanwhile."""
    callers: list[Process] = attrs.field(factory=list)
    """Processes that wait to be let in by this one."""
    is_greeting: bool = False
    uplink_free: float = 0.0
    """When all that it sends has left."""
    text_version: int = -1
    """Of the replica whose text it made last."""
