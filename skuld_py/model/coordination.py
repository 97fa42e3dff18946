"""What the membership machine is told and what it wishes: the coordination log's inputs and outputs.

The shell keeps one ZooKeeper connection. It reconciles what it is told to keep (a pulse, a set of watched pulses),
re-arming whatever a broken connection took, and answers each reading and each append by exactly one event. It
decides nothing.

What the shell owes when the connection breaks:

- ``SessionChanged(SUSPENDED)`` at once. Nothing is void: what is outstanding is answered once the connection is
  back, an append in doubt by ``AppendUncertain``, a reading by what is there then. Pulse and watches stay wanted.
- ``SessionChanged(CONNECTED)`` when it is back. A session that was not LOST before is still the same one: the
  shell checks the pulse it was told to keep and says ``PulseStands(id)`` or ``PulseGone(id)``. It does not make
  anew what had stood; what had not stood yet it makes. All watches are armed again, checking existence. The
  machine waits for that word on the pulse before it announces or appends anything.
- ``SessionChanged(LOST)`` when the session has ended. All of it is void: the pulse, the watches, and what is
  outstanding, which is not answered any more. The next CONNECTED is a new session, in which the machine says anew
  what it wants. A wish that the machine makes before it has taken LOST is void, too, if it comes before the shell
  says that CONNECTED. A later one is carried out in the new session: the shell cannot tell it apart.
"""

from __future__ import annotations

import attrs

from skuld_py.model.document import Member
from skuld_py.model.events import MembersChanged, NodesChanged, RulesChanged, SeatsChanged, SessionChanged

# -- events --------------------------------------------------------------------------------------


@attrs.frozen
class PulseStands:
    """Our ephemeral stands in the present session, under this id: it was made, or found again after a break."""

    member: str


@attrs.frozen
class PulseGone:
    """An id has no pulse: a watched one, which ended since or was not there when the watch was armed; or our own,
    found missing after a break of the connection."""

    member: str


@attrs.frozen
class OriginRead:
    """The origin: ``text`` is the canonical replica as of ``position``; -1 and empty before the first one."""

    position: int
    text: str


@attrs.frozen
class EntriesRead:
    """Entries from ``start`` on, each with its position, in order. No entries and no ``is_end``: ZooKeeper did not
    answer.

    ``is_end``: there was none behind the last. ``is_missing``: the entry at ``start`` is not there although later
    ones are; it was collected, or never was: compare with the origin, then go on where the entries begin, which
    are given with it.
    """

    start: int
    entries: tuple[tuple[int, bytes], ...]
    is_end: bool = False
    is_missing: bool = False


@attrs.frozen
class Appended:
    """Our entry ``seq`` stands at ``position``."""

    seq: int
    position: int


@attrs.frozen
class AppendUncertain:
    """Our entry ``seq`` may stand or not: append it again under the same number."""

    seq: int


@attrs.frozen
class OriginWritten:
    """Our attempt to write the origin at ``position`` is over; ``is_newest`` unless a later one stands."""

    position: int
    is_newest: bool


@attrs.frozen
class PulsesRead:
    """The ids that have a pulse, in any order."""

    members: tuple[str, ...]


CoordinationEvent = (PulseStands | PulseGone | PulsesRead | OriginRead | EntriesRead | Appended | AppendUncertain
                     | OriginWritten)


# -- effects -------------------------------------------------------------------------------------


@attrs.frozen
class SetPulse:
    """Let an ephemeral stand under this id and describe ``info``, until the session ends or another one is set.

    Pulses of earlier lives of the same node (same host and port) are removed: that process is gone, since this one
    has its port and its data directory."""

    member: str
    info: Member


@attrs.frozen
class DropPulse:
    """Remove our ephemeral: we leave."""


@attrs.frozen
class WatchPulses:
    """Watch exactly these ids from now on: existence is checked when one is added and after every reconnection."""

    members: tuple[str, ...]


@attrs.frozen
class ReadPulses:
    """Read which ids have a pulse."""


@attrs.frozen
class ReadOrigin:
    """Sync, then read the origin."""


@attrs.frozen
class ReadEntries:
    """Read up to ``limit`` entries from ``start`` on. ``is_waiting``: if there is none, watch for it and answer
    once it is there, or after ``wait_ms`` in any case. At most one is outstanding."""

    start: int
    limit: int
    is_waiting: bool = True
    wait_ms: int = 15_000


@attrs.frozen
class Append:
    """Append one entry. At most one is outstanding."""

    seq: int
    raw: bytes


@attrs.frozen
class WriteOrigin:
    """Store the replica as of ``position`` as the origin, in chunks, unless a later one stands; then remove the
    entries below ``keep_from`` and the chunks of older origins."""

    position: int
    text: str
    keep_from: int


@attrs.frozen
class SweepEntries:
    """Remove the entries of nodes other than these that live no more and whose vote no partition needs. There is
    no answer; what fails is left to the next sweep."""

    nodes: tuple[str, ...]


@attrs.frozen
class Announce:
    """News for the node machine of this process."""

    event: MembersChanged | NodesChanged | RulesChanged | SeatsChanged | SessionChanged


CoordinationEffect = (SetPulse | DropPulse | WatchPulses | ReadPulses | ReadOrigin | ReadEntries | Append
                      | WriteOrigin | SweepEntries | Announce)
