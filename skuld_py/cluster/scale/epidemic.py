"""Epidemic sharing: members pass entries of the log on among themselves; ZooKeeper is read for what did not come.

The member that appended an entry passes it, with its position, to a few members chosen at random; each to which it
is new does the same, for a number of hops. Entries come in any order: those ahead of their turn are kept, and only
the one at the next position is let go. ZooKeeper remains the order and the memory: what does not come is read
there, after a silence, or soon when an entry is missing while later ones are here. What is found after a silence
is passed on as well: its writer could not, and members look at different times, so one that looks saves the
others.

Invariants:

* Entries are let go in the order of positions, none twice, none left out. A position at or below the replica's,
  be it played or within the origin that was jumped to, is ignored.
* What is passed on stands in ZooKeeper, byte for byte: one's own entry once the append was answered, what was
  read, and what a member passed on; each once.
* All memory is bounded: what is too far ahead is not taken, and a full buffer drops what is furthest ahead,
  which is needed last. Either can be read.
* No loss, delay or repetition does more than cost a read.

Members are trusted to pass on what they got, as they are with copies of tasks; transport and log tell strangers
apart, not liars. Against mistakes: a message of another cluster (by id; names are used again) is dropped; two
texts for one position are both dropped, and it is read; and the digest of a member's replica, now and then, rides
along. A member that differs there from two others, and from more than it agrees with, has parted, and builds its
replica anew from origin and log.

Rejected: asking peers for what is missing (ZooKeeper answers for certain, and hardly any member asks); passing on
what is read for a gap (others have it: it was passed on, and missed this member only). Source: "Epidemic Log Entry
Sharing" of Onyx's proposals for scale. A prototype there ignored the origin, remembered without bound, and skipped
a gap before its own entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sortedcontainers import SortedDict

from skuld_py.cluster.scale.chance import Draw, sample
from skuld_py.cluster.scale.divergence import Divergence
from skuld_py.config.scaling import Scaling
from skuld_py.model.columns import pack, pack_u64, unpack_u64
from skuld_py.model.coordination import EntriesRead, ReadEntries
from skuld_py.model.events import Send
from skuld_py.model.messages.membership import SHARED_MAX, Share

MESSAGE_BYTES = 4 << 20
READ_LIMIT = 500
NEWS_MAX = 32
"""More entries than this found after a silence are this member's backlog, and no news to others."""
DOUBLINGS = 16


class Epidemic:
    """The part of the node ``me``. ``version`` is the position of the last entry let go, or read."""

    def __init__(self, me: str, cluster_id: str, scaling: Scaling, draw: Draw, now_ms: int,
                 version: int = -1) -> None:
        self.version = version
        self.parting = Divergence(scaling.digest_every)
        self.is_filling = False
        """Whether the read under way is for a gap: it says nothing about the log's end."""
        self._me = me
        self._cluster_id = cluster_id
        self._scaling = scaling
        self._draw = draw
        self._peers: Sequence[str] = ()
        self._ahead: SortedDict = SortedDict()
        """Entries that wait for their turn, by position."""
        self._ahead_bytes = 0
        self._seen: dict[int, None] = {}
        """Positions passed on already, oldest first."""
        self._disputed: dict[int, None] = {}
        """Positions for which there were two texts: only ZooKeeper is heard about them."""
        self._outgoing: dict[int, tuple[int, bytes]] = {}
        """What goes on at ``_flush_ms``: by position, the hop and the entry."""
        self._flush_ms: int | None = None
        self._is_reading = self._has_gap = False
        self._is_silence = self._is_news = False
        """Whether the next read, and the one under way, is for a silence."""
        self._fruitless = 0
        """Reads for a gap that found nothing, since the last progress."""
        self._read_ms = now_ms

    def set_peers(self, peers: Sequence[str]) -> None:
        """The members' nodes by name, this one may be among them. Not copied: at worst there are thousands."""
        self._peers = peers
        self.parting.set_peers(len(peers) - 1)

    # -- what comes in -----------------------------------------------------------------------------

    def on_appended(self, now_ms: int, position: int, raw: bytes) -> None:
        """One's own entry stands there."""
        self._pass_on(now_ms, position, raw, 0)
        self._keep(now_ms, position, raw)

    def on_share(self, now_ms: int, peer: str, share: Share) -> None:
        """A member passes entries on."""
        if share.cluster_id != self._cluster_id:
            return
        if share.digest:
            self.parting.note_other(peer, share.version, share.digest)
        positions, entries = unpack_u64(share.positions), share.entries.unpack()
        for position, hop, raw in zip(positions, share.hops, entries, strict=True):
            if self._is_wanted(position):
                self._pass_on(now_ms, position, raw, hop)
                self._keep(now_ms, position, raw)

    def _is_wanted(self, position: int) -> bool:
        return self.version < position <= self.version + self._scaling.buffer_entries

    def _pass_on(self, now_ms: int, position: int, raw: bytes, hop: int) -> None:
        if position in self._seen:
            return
        self._seen[position] = None
        _trim(self._seen, self._scaling.remembered)
        if hop < self._scaling.rounds:
            self._outgoing[position] = (hop + 1, raw)
            if self._flush_ms is None:
                self._flush_ms = now_ms + self._scaling.gather_ms

    def _keep(self, now_ms: int, position: int, raw: bytes) -> None:
        if not self._is_wanted(position) or position in self._disputed:
            return
        if position not in self._ahead:
            self._ahead[position] = raw
            self._ahead_bytes += len(raw)
        elif self._ahead[position] != raw:
            self._dispute(position)
        while self._ahead_bytes > self._scaling.buffer_bytes:
            self._drop(self._ahead.peekitem(-1)[0])
        if not self._has_gap:
            self._plan(now_ms)

    def _dispute(self, position: int) -> None:
        self._drop(position)
        self._disputed[position] = None
        _trim(self._disputed, self._scaling.remembered)

    def _drop(self, position: int) -> None:
        self._ahead_bytes -= len(self._ahead.pop(position))

    # -- what is let go ------------------------------------------------------------------------------

    def take(self, now_ms: int) -> list[tuple[int, bytes]]:
        """The entries whose turn it is, in order; they are the caller's now."""
        taken = []
        while self.version + 1 in self._ahead:
            self.version += 1
            taken.append((self.version, self._ahead[self.version]))
            self._drop(self.version)
        if taken:
            self._fruitless = 0
            self._plan(now_ms)
        return taken

    def advance(self, now_ms: int, version: int) -> None:
        """The replica has come to ``version`` otherwise: by what was read, or by a jump."""
        if version <= self.version:
            return
        self.version = version
        self._fruitless = 0
        while self._ahead and self._ahead.peekitem(0)[0] <= version:
            self._drop(self._ahead.peekitem(0)[0])
        self._plan(now_ms)

    def restart(self, now_ms: int, version: int) -> None:
        """The replica is built anew as of ``version``, which may be before the last one: read on at once."""
        self.version = version
        self._ahead.clear()
        self._ahead_bytes = 0
        self._has_gap = False
        self.void()
        self.parting.restart()
        self._read_at_once(now_ms)

    # -- when to read --------------------------------------------------------------------------------

    def _plan(self, now_ms: int) -> None:
        """Set the time of the next read, as of now; members draw, so that they do not all come at once."""
        self._has_gap = bool(self._ahead) and self.version + 1 not in self._ahead
        self._is_silence = not self._has_gap
        wait_ms = self._scaling.silence_ms
        if self._has_gap:
            wait_ms = min(wait_ms, self._scaling.gap_ms << min(self._fruitless, DOUBLINGS))
        self._read_ms = now_ms + wait_ms + self._draw(wait_ms // 2)

    def _read_at_once(self, now_ms: int) -> None:
        self._is_silence = False
        self._read_ms = now_ms

    def read(self, now_ms: int) -> ReadEntries | None:
        """What to read now, if it is time; ``on_read`` must follow."""
        if self._is_reading or now_ms < self._read_ms:
            return None
        self._is_reading, self._is_news, self.is_filling = True, self._is_silence, self._has_gap
        limit = READ_LIMIT
        if self._has_gap and self._ahead:
            limit = min(limit, self._ahead.peekitem(0)[0] - self.version - 1)
        return ReadEntries(self.version + 1, limit, is_waiting=False)

    def on_read(self, now_ms: int, read: EntriesRead) -> None:
        """The read is over, its entries played and ``advance`` called. Short of the end one goes on reading."""
        if self._is_news and len(read.entries) <= NEWS_MAX:
            for position, raw in read.entries:
                self._pass_on(now_ms, position, raw, 0)
        self.void()
        if self._has_gap and not read.entries:
            self._fruitless += 1
        self._plan(now_ms)
        if read.entries and not read.is_end and self.version + 1 not in self._ahead:
            self._read_at_once(now_ms)

    def void(self) -> None:
        """The reading under way will not be answered."""
        self._is_reading = self._is_news = self.is_filling = False

    def read_deadline(self) -> int | None:
        """When to call ``read``."""
        return None if self._is_reading else self._read_ms

    # -- what goes out -------------------------------------------------------------------------------

    def flush(self, now_ms: int) -> list[Send]:
        """What was gathered, if it is time: one message for each of the peers chosen, or a few when it is much."""
        if self._flush_ms is None or now_ms < self._flush_ms:
            return []
        self._flush_ms = None
        outgoing = [(position, hop, raw) for position, (hop, raw) in self._outgoing.items()]
        self._outgoing.clear()
        peers = self._choose()
        return [Send(peer, message) for message in self._messages(outgoing) for peer in peers]

    def _choose(self) -> list[str]:
        drawn = sample(self._peers, self._scaling.fanout + 1, self._draw)
        peers = [peer for peer in dict.fromkeys(drawn) if peer != self._me]
        if len(peers) > self._scaling.fanout:
            del peers[self._draw(len(peers) - 1)]
        return peers

    def _messages(self, outgoing: list[tuple[int, int, bytes]]) -> Iterable[Share]:
        batch: list[tuple[int, int, bytes]] = []
        size = 0
        for each in outgoing:
            if batch and (len(batch) >= SHARED_MAX or size + len(each[2]) > MESSAGE_BYTES):
                yield self._message(batch)
                batch, size = [], 0
            batch.append(each)
            size += len(each[2])
        if batch:
            yield self._message(batch)

    def _message(self, batch: list[tuple[int, int, bytes]]) -> Share:
        positions, hops, entries = zip(*batch, strict=True)
        version, digest = self.parting.newest()
        return Share(self._cluster_id, version, digest, pack_u64(positions), bytes(hops), pack(entries))

    def deadline(self) -> int | None:
        """When to call ``flush``."""
        return self._flush_ms


def _trim(positions: dict[int, None], most: int) -> None:
    if len(positions) > most:
        del positions[next(iter(positions))]
