"""The hash tree of one replica: 1 root, 64 inner nodes, 4,096 leaves, whatever the partition holds.

A node is the XOR of the digests of all records below it, so a change of a record is one XOR on the way up and the
tree takes 32 KB however many tasks there are. XOR forgives nothing that a linear checksum would: equal changes to
an even number of records cancel out under CRC-32, and completing four tasks of one grant is such a change. So a
digest is the 64-bit XXH3 of key and value, which is not linear: the very number that the store keeps beside a
record to verify it, so a tree costs no hash of its own on the way in. The records of two tables under one key
never have the same text, for their first bytes differ: the length of a header, which is not 0, and a time. It
guards against loss, not against malice: clients that can write tasks cannot be kept from wasting their own.
BLAKE2b costs eight times as much per record, a tenth of a node's processor.

**The leaf is the id's time**: slices of 512 ms, numbered round in a cycle of 35 minutes. Ids rise with
time, so a leaf is a few stretches of the tables and can be read without reading the rest, a batch falls
into one leaf, and what a node missed while it was away is in the leaves of that time. Leaves by a hash of
the id would spread evenly, but each lies all over the partition: to read one is to read everything, or to
keep an index of leaves, which is a random write for each change on the hot path.

The tree lives in memory. It is drafted from the records in steps when a node starts, and again from
time to time, since nothing else would notice a tree that has parted from its records. Records at or before
the draft's position are in the draft, those behind it will be read, so a change belongs to the draft
exactly when it is not ahead. Rejected: the tree in the store, a write of scattered pages in every commit.

Sources: Riak's active anti-entropy, TicTac trees (XOR); aphyr/merkle (k-ordered ids, and what a tree with
a node for each key costs to send).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import islice, pairwise
from operator import itemgetter, xor

import attrs
from xxhash import xxh3_64_digest

from skuld_py.model.columns import pick, unpack_u64
from skuld_py.model.store import NO_DIGEST, Store
from skuld_py.partition.data.records import TABLES, Record, records

FANOUT = 64
LEAVES = FANOUT * FANOUT
LEVELS = 3
ALL_LEAVES = (1 << LEAVES) - 1
SLICE_BITS = 9
_TIME = itemgetter(slice(2, 10))
BODY, HISTORY, ENTRY = range(len(TABLES))
"""Ranks of the tables."""


def leaf_of(task_id: bytes) -> int:
    """The leaf of a task, by the time in its id."""
    return int.from_bytes(task_id[:8], "big") >> SLICE_BITS & LEAVES - 1


def _slice_of(key: bytes) -> int:
    """The slice of time of a record's key, which begins with the partition."""
    return int.from_bytes(key[2:10], "big") >> SLICE_BITS


def _runs(keys: Sequence[bytes]) -> list[tuple[int, int]]:
    """Where in a sequence of keys a slice of time begins and ends; one run for most batches."""
    if _slice_of(min(keys)) == _slice_of(max(keys)):
        return [(0, len(keys))]
    slices = [time_ms >> SLICE_BITS for time_ms in unpack_u64(b"".join(map(_TIME, keys)))]
    starts = [0, *(at for at, (one, other) in enumerate(pairwise(slices), 1) if one != other)]
    return list(pairwise([*starts, len(keys)]))


def next_stretch(leaves: int, time_ms: int) -> tuple[int, int]:
    """First and end of the next run of times, from ``time_ms`` on, in a set of leaves (one bit each)."""
    slot = time_ms >> SLICE_BITS
    leaf = slot & LEAVES - 1
    ahead = leaves >> leaf
    skipped = _zeros(ahead) if ahead else LEAVES - leaf + _zeros(leaves)
    slot += skipped
    run = _zeros(~(leaves >> (slot & LEAVES - 1))) if leaves != ALL_LEAVES else 1 << 64
    return slot << SLICE_BITS, slot + run << SLICE_BITS


def _zeros(bits: int) -> int:
    """How many zeros a number ends in."""
    return (bits & -bits).bit_length() - 1


def digest_of(key: bytes, value: bytes) -> int:
    """The digest of a record; ``key`` includes the partition."""
    return int.from_bytes(xxh3_64_digest(key + value), "big")


def _joined(digests: Sequence[bytes]) -> int:
    """Digests in one, folded in halves of a long number, each a pass in C."""
    rest, bits = int.from_bytes(b"".join(digests), "big"), 64 * len(digests)
    while bits > 64:
        bits = 64 * -(-bits // 128)
        rest = rest >> bits ^ rest & (1 << bits) - 1
    return rest


class Nodes:
    """The numbers of a tree; takes its memory at the first change."""

    def __init__(self) -> None:
        self.root = 0
        self.inner = [0] * FANOUT
        self.leaves = array("Q")

    def change(self, leaf: int, digest: int) -> None:
        """Put a digest in, or take it out: the same."""
        if not self.leaves:
            self.leaves = array("Q", bytes(8 * LEAVES))
        self.leaves[leaf] ^= digest
        self.inner[leaf // FANOUT] ^= digest
        self.root ^= digest

    def is_same(self, other: Nodes) -> bool:
        """Whether two trees agree in every leaf."""
        blank = array("Q", bytes(8 * LEAVES))
        return (self.leaves or blank) == (other.leaves or blank)

    def level(self, level: int, parents: Sequence[int]) -> list[int]:
        """The root; or the inner nodes; or the leaves under some inner nodes, in order."""
        if level == 0:
            return [self.root]
        if level == 1:
            return list(self.inner)
        if not self.leaves:
            return [0] * (FANOUT * len(parents))
        return [number for parent in parents
                for number in self.leaves[parent * FANOUT : (parent + 1) * FANOUT]]


@attrs.define
class Watch:
    """Tasks that are ``watched`` for a change of a record, and ``stirred`` ones, which had one. The owner fills
    the first and clears the second."""

    watched: Mapping[bytes, object] = attrs.field(factory=dict)
    stirred: dict[bytes, None] = attrs.field(factory=dict)

    def look(self, keys: Iterable[bytes]) -> None:
        """Note the tasks of changed records."""
        for key in keys:
            if key[2:22] in self.watched:
                self.stirred[key[2:22]] = None


class Tree:
    """The tree that follows a replica's records, and the draft that will replace it. Every change of a record
    passes here, so it is also noted here for watchers."""

    def __init__(self, store: Store, prefix: bytes, watch: Watch | None = None) -> None:
        self._store = store
        self._prefix = prefix
        self._watch = watch or Watch()
        self._nodes: Nodes | None = None
        self._draft: Nodes | None = None
        self._position = (b"", -1)
        self.corrections = 0
        """Drafts that disagreed with the tree they replaced: each is a defect, here or in memory."""
        high = prefix + b"\xff" * 64
        if any(store.is_any_between(table, prefix, high) for table in TABLES):
            self.redraft()
        else:
            self._nodes = Nodes()

    @property
    def is_built(self) -> bool:
        """Whether the tree speaks for all records; exchanges wait until then."""
        return self._nodes is not None

    @property
    def is_drafting(self) -> bool:
        """Whether ``advance`` has work."""
        return self._draft is not None

    @property
    def root(self) -> int:
        """Equal roots: equal replicas. 0 for an empty one."""
        return self.nodes.root

    @property
    def nodes(self) -> Nodes:
        """The numbers; only of a built tree."""
        assert self._nodes is not None, "the tree is not built yet"
        return self._nodes

    def toggle(self, rank: int, keys: Sequence[bytes], *columns: Sequence[bytes]) -> None:
        """Put digests of records of one table in, or out. A column has one digest for each key, as the store gives
        them: what a record is now, and what it was."""
        if not keys:
            return
        if self._watch.watched:
            self._watch.look(keys)
        if self._draft is None:
            self._change_runs(keys, columns)
            return
        for key, *digests in zip(keys, *columns, strict=True):
            self._change(key[2:], rank, _joined(digests))

    def toggle_all(self, keys: Sequence[bytes], *columns: Sequence[bytes]) -> None:
        """Put digests of records of several tables in, or out: a column for each table, in the order of their
        ranks, with ``NO_DIGEST`` where it has no record."""
        if self._draft is None and not self._watch.watched:
            self._change_runs(keys, columns)
            return
        for rank, column in enumerate(columns):
            held = [at for at, digest in enumerate(column) if digest != NO_DIGEST]
            self.toggle(rank, pick(keys, held), pick(column, held))

    def _change_runs(self, keys: Sequence[bytes], columns: Sequence[Sequence[bytes]]) -> None:
        for start, end in _runs(keys) if keys else ():
            number = reduce(xor, [_joined(column[start:end]) for column in columns])
            self.nodes.change(leaf_of(keys[start][2:]), number)

    def _change(self, key: bytes, rank: int, number: int) -> None:
        leaf = leaf_of(key)
        if self._nodes is not None:
            self._nodes.change(leaf, number)
        if self._draft is not None and (key, rank) <= self._position:
            self._draft.change(leaf, number)

    def redraft(self) -> None:
        """Begin to draft the tree anew from the records. After records were dropped, say; or now and then."""
        self._draft, self._position = Nodes(), (b"", -1)

    def advance(self, limit: int) -> None:
        """Read up to ``limit`` records more into the draft; with the last one it becomes the tree."""
        draft = self._draft
        if draft is None:
            return
        count = 0
        for key, rank, value in islice(self._ahead(), limit):
            draft.change(leaf_of(key), digest_of(self._prefix + key, value))
            self._position = (key, rank)
            count += 1
        if count < limit:
            if self._nodes is not None and not self._nodes.is_same(draft):
                self.corrections += 1
            self._nodes, self._draft = draft, None

    def _ahead(self) -> Iterable[Record]:
        key, rank = self._position
        for record in records(self._store, self._prefix, key, b"\xff" * 64):
            if record[:2] > (key, rank):
                yield record
