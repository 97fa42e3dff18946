"""What large clusters switch on beside the plain coordination log."""

from __future__ import annotations

import attrs


@attrs.frozen
class Scaling:
    """What large clusters switch on beside the plain coordination log; all off by default.

    Any mix works, also one that differs from member to member: a member without an option does not take part in
    it, and is served by the log.
    """

    direct_join: bool = False
    """A joiner asks a member to stitch it in, one entry for all that ask at once, instead of three phases."""
    transfer: bool = False
    """A joiner takes over a member's replica instead of the origin and the entries since."""
    sharing: bool = False
    """Members pass entries on among themselves, and read the log only for what did not come that way."""
    schedulers: tuple[str, ...] = ()
    """The nodes that work out the placement for all, at least two; without them each does it for itself. What
    others work out comes later, so with them the log is always played in versions."""
    versions: bool = False
    """The log is played in versions: entries apply at once, and the placement, which can take seconds, follows
    under a version of its own; it is worked out beside the loop. Without it a node works it out as it hears of
    nodes, and does nothing else meanwhile."""
    gather_ms: int = 10
    """What comes within this time goes on together: joiners in one entry, entries in one message."""
    greet_joiners: int = 200
    """Joiners of one entry: some 40 KB of the 256 KiB that one may have."""
    greet_waiting: int = 2_000
    """Joiners that a member keeps waiting; others are told to ask another member."""
    knock_ms: int = 2_000
    """How long the answer of a member that was asked is waited for."""
    knock_again_ms: int = 100
    """It is asked again after this, and then ever more seldom: a connection may have to be made first."""
    knock_pause_ms: int = 200
    """Longest pause before the second question; it doubles with each."""
    knocks: int = 5
    """Questions that fail before the joiner takes the three phases."""
    found_ms: int = 1_000
    """Longest wait of a joiner that finds no member at all before it writes the first phase."""
    part_ms: int = 500
    """A part of a replica that has not come by then is asked for again."""
    part_tries: int = 4
    """Questions for one part before the joiner reads the origin."""
    snapshots: int = 4
    """Texts of its replica that a member keeps for those that fetch it."""
    snapshot_ms: int = 3_000
    """A text older than this is not given to new joiners: replaying what came since would cost more than making
    one."""
    fanout: int = 6
    """Members that each passes an entry to; with 6 one of 400 misses an entry, with 4 one of 50."""
    rounds: int = 10
    """Hops of an entry: 6 reach 10,000 members, and what is lost on the way takes some more."""
    silence_ms: int = 10_000
    """After this long without progress the log is read, whether anything stands there or not."""
    gap_ms: int = 300
    """An entry that is missing for this long while later ones are there is read from the log."""
    buffer_entries: int = 10_000
    """Entries are kept up to this many positions ahead of their turn."""
    buffer_bytes: int = 16 << 20
    """Bytes of these entries together."""
    remembered: int = 20_000
    """Positions remembered as passed on."""
    digest_every: int = 256
    """Members compare digests of their replicas at positions that this number divides."""


PLAIN = Scaling()
