"""The settings of one node: what it knows of every register, durable, and how two nodes become equal.

All nodes hold all settings, since any of them may lead any partition. A change is stored by a majority and then
travels with the gossip. Each gossip carries a digest of all registers, and a node whose own digest is another one
asks for what differs. Joining is taking the greater row, so neither order nor repetition matters.

A stored record that makes no sense is left out, with a reason that the node shows. A node that ended over it would
read it again at each start, while another node's copy of the register comes with the first gossip. A value that
does not fit its kind sets nothing.

Rejected: the coordination log, since a queue must be paused just then when ZooKeeper is away, and since what users
write would be in every snapshot; and asking at each grant, since a pause must not cost the claims of other queues.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from sortedcontainers import SortedDict
from xxhash import xxh3_64_intdigest

from skuld_py.errors import Refused
from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.bounds import U63_MAX
from skuld_py.model.limiting import NO_LIMITS, QueueLimits, decode_limits, decode_quota
from skuld_py.model.messages.settings import SETTINGS_MAX
from skuld_py.model.schedule import SCHEDULE, Schedule
from skuld_py.model.setting import (
    KINDS,
    LIMITS,
    PAUSED,
    QUOTA,
    SETTING_PREFIX,
    SETTINGS_END,
    UNSET,
    YES,
    decode_setting,
    encode_setting,
    rank_of,
    setting_key,
)
from skuld_py.model.store import Store
from skuld_py.partition.data.bulletin import Bulletin

PAGE_ROWS = 1_000
PAGE_BYTES = 1 << 20


class Settings:
    """The registers that this node knows. ``digest`` is over all of them: equal registers, equal digests."""

    def __init__(self, store: Store, bulletin: Bulletin) -> None:
        self._store = store
        self._bulletin = bulletin
        self._rows: SortedDict[bytes, m.SettingRow] = SortedDict()
        self.paused: dict[str, None] = {}
        """The queues of which nothing may be granted."""
        self._limits: dict[str, QueueLimits] = {}
        self.lent: dict[str, QueueLimits] = {}
        """The limits of the queues whose claims need a loan."""
        self.capped: dict[str, QueueLimits] = {}
        """The limits of the queues that cap what single holders have."""
        self.quotas: dict[str, int] = {}
        """How many tasks may be open of the queues that begin so."""
        self.schedules: dict[str, Schedule] = {}
        """By name; a definition that this program cannot read is left out."""
        self.digest = 0
        self.ignored: dict[bytes, str] = {}
        """Stored records that are left out, by key: why."""
        for key, record in store.walk("meta", SETTING_PREFIX, SETTINGS_END):
            try:
                self._note(key, decode_setting(key, record), record)
            except ValueError as problem:
                self.ignored[key] = str(problem)

    # -- what they say -------------------------------------------------------------------------

    def key_concurrency(self, queue: str) -> int:
        """How many claims of one ordering key may be held at once."""
        limits = self._limits.get(queue)
        return limits.key_concurrency or 1 if limits is not None else 1

    def is_full(self, kind: str, name: str) -> bool:
        """Whether there is no room for this register."""
        return len(self._rows) >= SETTINGS_MAX and setting_key(kind, name) not in self._rows

    def version(self, kind: str, name: str) -> int:
        """The version known of a register, or 0."""
        row = self._rows.get(setting_key(kind, name))
        return row.version if row is not None else 0

    # -- joining -------------------------------------------------------------------------------

    def join(self, rows: Iterable[m.SettingRow]) -> None:
        """Take over what is newer; staged, hence durable before any node or client is told."""
        for row in rows:
            key = setting_key(row.kind, row.name)
            known = self._rows.get(key)
            if known is None or rank_of(row) > rank_of(known):
                record = encode_setting(row)
                self._store.put_many("meta", [(key, record)])
                self.ignored.pop(key, None)
                self._note(key, row, record)

    def _note(self, key: bytes, row: m.SettingRow, record: bytes) -> None:
        known = self._rows.get(key)
        if known is not None:
            self.digest ^= _digest_of(key, encode_setting(known))
        self.digest ^= _digest_of(key, record)
        self._rows[key] = row
        if row.kind == PAUSED and row.value == YES:
            self.paused[row.name] = None
        elif row.kind == PAUSED and row.name in self.paused:
            del self.paused[row.name]
            self._bulletin.resumed[row.name] = None
        elif row.kind == LIMITS:
            self._note_limits(row)
        elif row.kind == QUOTA:
            self._note_quota(row)
        elif row.kind == SCHEDULE:
            self._note_schedule(row)

    def _note_limits(self, row: m.SettingRow) -> None:
        has_held_back = row.name in self.lent or row.name in self.capped
        width = self.key_concurrency(row.name)
        limits = decode_limits(row.value) if row.value != UNSET and KINDS[LIMITS](row.value) else NO_LIMITS
        for known, holds in ((self._limits, limits != NO_LIMITS), (self.lent, limits.is_lent),
                             (self.capped, limits.has_caps)):
            if holds:
                known[row.name] = limits
            else:
                known.pop(row.name, None)
        if not limits.holder_concurrency:
            self._bulletin.holders.forget(row.name.encode())
        if has_held_back:
            self._bulletin.resumed[row.name] = None
        if width != self.key_concurrency(row.name):
            self._bulletin.rewidened[row.name] = None

    def _note_quota(self, row: m.SettingRow) -> None:
        self.quotas.pop(row.name, None)
        with suppress(ValueError):
            self.quotas[row.name] = decode_quota(row.value)

    def _note_schedule(self, row: m.SettingRow) -> None:
        self._bulletin.rescheduled[row.name] = None
        self.schedules.pop(row.name, None)
        if row.value != UNSET:
            with suppress(Refused):
                self.schedules[row.name] = Schedule.decode(row.value)

    # -- pages ---------------------------------------------------------------------------------

    def page(self, kind: str, name: str, after: bytes) -> tuple[tuple[m.SettingRow, ...], bytes]:
        """Registers of a kind and a name (empty: of all) behind a key, and the key they are complete up to
        (empty: to the end)."""
        if kind and name:
            row = self._rows.get(setting_key(kind, name))
            return ((row,) if row is not None else ()), b""
        keys = (key for key in self._rows.irange(after, inclusive=(False, True))
                if _is_of(self._rows[key], kind, name))
        return self._fill(keys)

    def _fill(self, keys: Iterable[bytes]) -> tuple[tuple[m.SettingRow, ...], bytes]:
        rows: list[m.SettingRow] = []
        left, last = PAGE_BYTES, b""
        for key in keys:
            row = self._rows[key]
            left -= len(row.value)
            if len(rows) == PAGE_ROWS or (left < 0 and rows):
                return tuple(rows), last
            rows.append(row)
            last = key
        return tuple(rows), b""

    # -- becoming equal ------------------------------------------------------------------------

    def question(self) -> m.PullSettings:
        """What is known here, for a node that knows something else."""
        digests = [_digest_of(key, encode_setting(row)) for key, row in self._rows.items()]
        return m.PullSettings(columns.pack(list(self._rows)), columns.pack_u64(digests))

    def answer(self, question: m.PullSettings) -> m.PulledSettings:
        """What the asker lacks, as much of it as a message holds; the rest is asked for again."""
        known = dict(zip(question.keys.unpack("keys"), columns.unpack_u64(question.digests), strict=True))
        rows, _ = self._fill(key for key, row in self._rows.items()
                             if known.get(key) != _digest_of(key, encode_setting(row)))
        return m.PulledSettings(rows)


def _is_of(row: m.SettingRow, kind: str, name: str) -> bool:
    return (not kind or row.kind == kind) and (not name or row.name == name)


def _digest_of(key: bytes, record: bytes) -> int:
    return xxh3_64_intdigest(key + b"=" + record) & U63_MAX
