"""What ZooKeeper's transaction log says of the partition documents: every value each of them ever had.

The log is the order of epochs itself. A watch may miss a value, a poll comes late; files that a majority of the
servers synced before they answered do neither. So what counts is what a majority has in its log: what one server
alone has was never answered, and one that was away got what it missed as a snapshot, perhaps. A transaction's time
is the leading server's wall clock when it took the request in, which is after the candidate had its votes; so a
claim asked for later than that must be of that epoch or a newer one, and the checkers may rely on it.

The format is that of ZooKeeper 3.x: a header of 16 bytes; then per transaction an Adler-32 (as 8 bytes), a
length, that many bytes and a ``B``; then zeros, for the file is allocated ahead.

Source: org.apache.zookeeper.server.persistence.FileTxnLog, and zookeeper.jute.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from skuld_py.model.document import Document
from skuld_py.simulation.world.zookeeper.documents import Write

_FILE_HEADER = struct.Struct(">4siq")
_ENTRY = struct.Struct(">qi")
_HEADER = struct.Struct(">qiqqi")
_INT = struct.Struct(">i")
_CREATE, _SET, _MULTI, _CREATE_2 = 1, 5, 14, 15


_Entry = tuple[int, int, str, bytes]
"""Transaction id, wall clock in ms, path, data."""


def writes_of(directories: Sequence[Path], cluster: str, origin_ms: int) -> list[Write]:
    """All writes of partition documents, in their order; times are those after ``origin_ms`` since 1970."""
    place = f"/skuld/{cluster}/partitions/"
    writes = []
    versions: dict[int, int] = {}
    logged = Counter(entry for directory in directories for entry in {*_entries(directory)})
    for _, time_ms, path, raw in sorted(entry for entry, count in logged.items() if 2 * count > len(directories)):
        if path.startswith(place):
            partition = int(path.removeprefix(place))
            versions[partition] = versions.get(partition, -1) + 1
            writes.append(Write(time_ms - origin_ms, partition, versions[partition], Document.decode(raw)))
    return writes


def _entries(directory: Path) -> Iterator[_Entry]:
    """Every write of a node's data."""
    for file in directory.glob("version-2/log.*"):
        for payload in _payloads(file.read_bytes()):
            _, _, zxid, time_ms, kind = _HEADER.unpack_from(payload)
            for path, data in _written(kind, payload[_HEADER.size:]):
                yield zxid, time_ms, path, data


def _payloads(log: bytes) -> Iterator[bytes]:
    magic, version, _ = _FILE_HEADER.unpack_from(log)
    if magic != b"ZKLG" or version != 2:
        raise ValueError(f"not a transaction log: {log[:16]!r}")
    at = _FILE_HEADER.size
    while at + _ENTRY.size <= len(log):
        checksum, length = _ENTRY.unpack_from(log, at)
        payload = log[at + _ENTRY.size:at + _ENTRY.size + length]
        if length == 0 or len(payload) < length:
            return  # allocated ahead, or cut off by a kill before it was answered
        if zlib.adler32(payload) != checksum:
            raise ValueError(f"damaged transaction at byte {at}")
        yield payload
        at += _ENTRY.size + length + 1


def _written(kind: int, record: bytes) -> Iterator[tuple[str, bytes]]:
    if kind in (_CREATE, _CREATE_2, _SET):
        path, at = _buffer(record, 0)
        yield path.decode(), _buffer(record, at)[0]
    elif kind == _MULTI:
        (count,), at = _INT.unpack_from(record), _INT.size
        for _ in range(count):
            (inner,) = _INT.unpack_from(record, at)
            part, at = _buffer(record, at + _INT.size)
            yield from _written(inner, part)


def _buffer(record: bytes, at: int) -> tuple[bytes, int]:
    """Bytes with their length before them, and where they end; -1 is no bytes."""
    (length,) = _INT.unpack_from(record, at)
    end = at + _INT.size + max(0, length)
    return record[at + _INT.size:end], end
