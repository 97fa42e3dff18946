"""What things cost in the simulation of the coordination plane at scale: every parameter, and where it is from.

Times are milliseconds of virtual time. The ensemble is one queue of reads and one of writes, served in the order
of arrival; each parameter is what the whole ensemble of three servers takes. They favour the plain protocol: its
readers find a ZooKeeper as fast as the paper's authors saw it, on an otherwise idle network.

Not modelled: sessions that end because their pings wait behind reads. Where the longest wait at ZooKeeper exceeds
``session_ms`` a real cluster would do worse than shown. Nor lost messages: sharing misses members by chance only.

Source of ZooKeeper's rates: Hunt, Konar, Junqueira, Reed, "ZooKeeper: Wait-free coordination for Internet-scale
systems", 2010, table 1: with three servers 87,000 reads or 21,000 writes a second, of 1 KB.
"""

from __future__ import annotations

import attrs

MS_PER_BYTE = 8e-6
"""A network of 1 Gbit/s."""


@attrs.frozen
class Costs:
    """The parameters; the defaults are what ``scripts/scale`` uses."""

    write_ms: float = 0.05
    """The leader's time for a write, with fsync shared among those that wait: 21,000 a second."""
    read_ms: float = 0.0115
    """A read, with or without leaving a watch: 87,000 a second."""
    notify_ms: float = 0.004
    """A watch that fires: one packet out and none in, so about a third of a read."""
    zookeeper_byte_ms: float = MS_PER_BYTE / 3
    """What ZooKeeper sends leaves by three servers."""
    reply_bytes: int = 88
    """Header and stat of each reply, besides the data (jute encoding: 16 and 68, and a length)."""
    name_bytes: int = 32
    """The name of a pulse in a listing of pulses."""
    one_way_ms: float = 0.25
    """A packet within one data centre."""
    session_ms: float = 4_000
    """After this long without a sign of life a session ends, and its pulse with it. A client gives a sign at least
    every third of it, so that a death shows after two thirds to all of it."""
    start_spread_ms: float = 1_000
    """Processes that are started together start within this time, evenly."""

    member_byte_ms: float = MS_PER_BYTE
    """What a member sends leaves by its own link, one message after the other."""
    message_ms: float = 0.02
    """A member's time to hand a message to its socket and to take it from there."""
    message_bytes: int = 150
    """A message between members without its contents: envelope, cluster, ids."""

    play_ms: float = 0.06
    play_ms_per_member: float = 1.4e-4
    """Playing an entry, which copies a few mappings of all members; measured here, as the next three."""
    text_ms_per_kb: float = 0.05
    """Writing a replica's text."""
    parse_ms_per_kb: float = 0.13
    """Making a replica of its text, and looking whether it has that text."""
    decide_ms_per_node: float = 0.02
    """Placing 64 partitions with 3 replicas, for each node."""
    decide_answer_bytes: int = 1_200
    """A placement of 64 partitions, by numbers of nodes, and the hash of the second scheduler."""
    schedulers: int = 2
    """Processes that work out each question, apart from each other."""


@attrs.frozen
class Options:
    """Which of the five ideas are on."""

    direct: bool = False
    transfer: bool = False
    sharing: bool = False
    deciding: bool = False
    versions: bool = False

    @property
    def label(self) -> str:
        """For tables and plots."""
        named = [name for name, is_on in attrs.asdict(self).items() if is_on]
        return "all" if self == ALL else "+".join(named) or "plain"


PLAIN = Options()
ALL = Options(direct=True, transfer=True, sharing=True, deciding=True, versions=True)
SETTINGS = (PLAIN, Options(direct=True), Options(direct=True, transfer=True), Options(sharing=True),
            Options(deciding=True), Options(versions=True), ALL)
"""Plain, with each option, and with all. A joiner takes the replica of the member that let it in, so transfer goes
with direct join."""


@attrs.define
class Counts:
    """What happened so far. Bytes are those of replies and messages; a message is counted where it is sent."""

    entries: int = 0
    writes: int = 0
    reads: int = 0
    watches: int = 0
    """Watches on pulses armed; each is also a read."""
    notifications: int = 0
    fan_out: int = 0
    """The most notifications of one change."""
    zookeeper_bytes: int = 0
    member_bytes: int = 0
    messages: int = 0
    decisions: int = 0
    """Decisions computed, over all processes."""
    decision_ms: float = 0.0
    """Processor time in them."""
