"""Keys of the store: where each record of a partition lives, and in which order.

All keys begin with the partition (u16), but for those of ``meta``, which end with it or belong to the node.
``body`` and ``history`` follow the id, so a scan is in age order. ``log`` adds token and seq. ``ready`` follows
the *place* (queue, 0, inverted priority) and the id: the head of a queue is its first key. The id of a unique name
is as old as its window; so that it overtakes nobody, the time at which its task was asked for stands between place
and id, and is compared with the times with which other ids begin. ``lease``, ``time`` and ``expiry`` follow a
moment: the next claim to lapse, pause to end, task to expire is the first key, and the value remembers the place.
``dead`` follows the id and remembers state and place. The keys of ``lane`` are in ``lanes``, those of ``dep`` and
``tell`` in ``waiting``, of ``need`` in ``needs``, of ``window`` in ``windows``, of ``counts`` in ``tally``.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from operator import itemgetter

from skuld_py.model.body import PRIORITY_MAX, Body, Header
from skuld_py.model.ids import ID_BYTES
from skuld_py.model.notes import End, lets_go

_U16 = struct.Struct(">H")
_LOG = struct.Struct(">QI")
_END = b"\xff" * 24
PRIORITY_BYTES = 4
id_of_head = itemgetter(slice(-ID_BYTES, None))
"""The id at the end of a ready row's key."""
PLAIN, ODD = b"", b"\x02"
"""What a ready row says of its task: that it is plain; or has rows besides, and then when it expires."""
BODY_UNKNOWN, BODY_PLAIN, BODY_ODD = b"\x00", b"\x01", b"\x02"


def prefix_of(partition: int) -> bytes:
    """First bytes of every key of a partition."""
    return _U16.pack(partition)


def end_of(prefix: bytes) -> bytes:
    """A key behind every key that starts with ``prefix`` and an id or number."""
    return prefix + _END


def place_of(header: Header) -> bytes:
    """Where tasks of a header wait: queue, 0, inverted priority; sorts higher priority first."""
    return header.queue.encode() + b"\0" + (PRIORITY_MAX - header.priority).to_bytes(PRIORITY_BYTES, "big")


@lru_cache(maxsize=1_024)
def place_of_header(header: bytes) -> tuple[int, bytes]:
    """The flags of the preludes of a header's tasks, and where they wait. Tasks share few headers: kept."""
    parsed = Header.decode(header)
    return parsed.prelude, place_of(parsed)


@lru_cache(maxsize=1_024)
def goes_when_done(header: bytes) -> bool:
    """Whether a task of this header with one dependency may be claimed once that is done."""
    return lets_go(End.DONE, Header.decode(header).policy)


def ready_keys(prefix: bytes, task_id: bytes, body: Body) -> list[bytes]:
    """The key of a task's ready row, and those that releases before may have given it: as old as its window."""
    base = prefix + place_of(body.header)
    if not body.made_ms:
        return [base + task_id]
    return [base + body.made_ms.to_bytes(8, "big") + task_id, base + task_id]


def ready_mark(body: Body) -> bytes:
    """What stands in the ready row of a task."""
    if not body.header.flags:
        return PLAIN
    return ODD + (body.expires_ms.to_bytes(8, "big") if body.expires_ms else b"")


def expiry_of(mark: bytes) -> int:
    """When the task of a ready row expires, by its mark; 0 for never."""
    return int.from_bytes(mark[1:], "big")


def queue_of(place: bytes) -> bytes:
    """The queue's name, encoded, from a place."""
    return place[:-5]


def lease_key(prefix: bytes, deadline_ms: int, task_id: bytes) -> bytes:
    """Key of a held claim in the order of lapsing."""
    return prefix + deadline_ms.to_bytes(8, "big") + task_id


def log_key(prefix: bytes, task_id: bytes, token: int, seq: int) -> bytes:
    """Key of a log entry."""
    return prefix + task_id + _LOG.pack(token, seq)


def split_log_key(key: bytes) -> tuple[bytes, int, int]:
    """Id, token and seq of a log key."""
    token, seq = _LOG.unpack_from(key, 22)
    return key[2:22], token, seq


def split_number(key: bytes) -> tuple[int, int]:
    """Token and seq of a log key without its partition."""
    token, seq = _LOG.unpack_from(key, 20)
    return token, seq


def promise_key(partition: int) -> bytes:
    """Key, in ``meta``, of what this replica promised."""
    return b"promise" + _U16.pack(partition)


def standing_key(partition: int) -> bytes:
    """Key, in ``meta``, of what this node knows of the partition's voters."""
    return b"standing" + _U16.pack(partition)


def suspect_key(partition: int) -> bytes:
    """Key, in ``meta``, of why this replica's memory is not to be trusted."""
    return b"suspect" + _U16.pack(partition)


def scrub_key(partition: int) -> bytes:
    """Key, in ``meta``, of why this replica's tables must be gone through before it serves."""
    return b"scrub" + _U16.pack(partition)


def watermark_key(partition: int) -> bytes:
    """Key, in ``meta``, of the times up to which this replica takes nothing new."""
    return b"watermark" + _U16.pack(partition)


def barrier_key(partition: int) -> bytes:
    """Key, in ``meta``, of the time before which nothing may be granted, as the document said."""
    return b"barrier" + _U16.pack(partition)


def partition_of_meta(key: bytes) -> int | None:
    """The partition that a record of ``meta`` belongs to; None when it is the node's, or nothing known."""
    return _U16.unpack(key[-2:])[0] if key[:-2] in _META else None


_META = (b"promise", b"standing", b"suspect", b"scrub", b"watermark", b"barrier")
