"""Settings: small values that every node holds, such as whether a queue is paused; and the kinds of them.

A setting is a register of its kind and name (``paused`` of queue ``reports``). Kinds are registers of their own,
so that pausing a queue and limiting it never overwrite each other. Of two rows of one register the one with the
greater (version, writer, value) stands: a total order, so copies converge in whatever order they meet.

The version is chosen when the change is wanted, from what a majority of the nodes knows, and not when it arrives:
so a request that was held up, or sent twice, can never undo one that was made after it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from xxhash import xxh3_64_intdigest

from skuld_py.errors import Refused
from skuld_py.model import messages as m
from skuld_py.model import names
from skuld_py.model.archive_root import ARCHIVE, is_root
from skuld_py.model.bounds import U63_MAX
from skuld_py.model.limiting import are_limits, is_quota
from skuld_py.model.schedule import SCHEDULE, is_schedule

SETTING_PREFIX, SETTINGS_END = b"setting ", b"setting!"
"""Between these stand the keys of all settings, in ``meta``."""
PAUSED = "paused"
LIMITS = "limits"
QUOTA = "quota"
OF_QUEUES = (PAUSED, LIMITS, QUOTA)
"""Kinds whose registers have the names of queues, or how these begin."""
YES = b"true"
UNSET = b""
"""The value of a register at its default. The row is kept, so that older rows stay older."""

_HEAD = struct.Struct(">QB")
Rank = tuple[int, str, bytes]


def home_of(name: str, partitions: int) -> int:
    """The home of a queue: the partition whose leader does what only one node may do for the whole queue."""
    return xxh3_64_intdigest(name.encode()) % partitions


def setting_key(kind: str, name: str) -> bytes:
    """Where a register lives in ``meta``."""
    return SETTING_PREFIX + kind.encode() + b"/" + name.encode()


def rank_of(row: m.SettingRow) -> Rank:
    """The rank of a row among those of its register: the greatest stands."""
    return row.version, row.writer, row.value


def encode_setting(row: m.SettingRow) -> bytes:
    """The record of a register; equal rows are equal bytes."""
    writer = row.writer.encode()
    return _HEAD.pack(row.version, len(writer)) + writer + row.value


def decode_setting(key: bytes, record: bytes) -> m.SettingRow:
    """The row of a stored register; raises ``ValueError`` when it is none."""
    kind, _, name = key.removeprefix(SETTING_PREFIX).decode().partition("/")
    if len(record) < _HEAD.size:
        raise ValueError("too short")
    version, size = _HEAD.unpack_from(record)
    at = _HEAD.size + size
    row = m.SettingRow(kind, name, version, record[_HEAD.size : at].decode(), record[at:])
    are_names = (names.NAME.fullmatch(kind) and names.NAME.fullmatch(name)
                 and names.WIDE_NAME.fullmatch(row.writer))
    if not (are_names and 1 <= version <= U63_MAX and at <= len(record) <= at + m.SETTING_BYTES_MAX):
        raise ValueError("no message could carry it")
    return row


def check_setting(kind: str, value: bytes) -> None:
    """Raises ``Refused`` unless clients may set this."""
    check = KINDS.get(kind)
    if check is None:
        raise Refused("unknown_setting", f"kind: there is no setting {kind!r}; use one of {', '.join(KINDS)}",
                      kind=kind)
    if value != UNSET and not check(value):
        raise Refused("bad_setting", f"value: {value[:40]!r} does not fit the setting {kind!r}", kind=kind)


KINDS: dict[str, Callable[[bytes], bool]] = {PAUSED: lambda value: value == YES, LIMITS: are_limits,
                                             SCHEDULE: is_schedule, ARCHIVE: is_root, QUOTA: is_quota}
"""Each kind, and whether a value that is not empty fits it; it may say itself what is wrong, by ``Refused``."""
