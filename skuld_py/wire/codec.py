"""Envelopes to frames and back: what travels in one ZeroMQ multipart message.

Frame 0, the header, is msgpack of ``[version, cluster, sender, [[code, field, ...], ...]]``; a code is an
index in ``OPERATIONS``, a record an array of its fields (late ones only as far as they are used), a column
``[lengths, frame]``. The frames behind it are the columns' data, raw, so that payloads never pass through msgpack.

``decode`` is total: any byte strings give an ``Envelope`` or raise ``Malformed`` naming the field, at a cost
that the size of the input bounds. An envelope is taken whole or not at all. The version is read before
anything else is expected of the header, so a later protocol may change the rest.

``encode`` is canonical: equal envelopes are equal frames. It checks the sizes that ``decode`` will insist on and
trusts the maker of the messages for the rest. What does not fit goes in several envelopes.

Rejected: maps with field names, twice the bytes and a choice between duplicates; and a checksum, which
TCP and CURVE already have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import attrs
import msgpack

from skuld_py.config import DEFAULT_LIMITS, PROTOCOL_VERSION, PROTOCOLS, Limits
from skuld_py.errors import Malformed, Refused
from skuld_py.model.bounds import U63_MAX
from skuld_py.model.fields import Name
from skuld_py.model.messages import OPERATIONS, ROLE_CLIENT, ROLE_NODE, Message, message_of
from skuld_py.wire.schema import Record, Write, check_name, dump_of, record_of, unsupported
from skuld_py.wire.stream import ITEMS_MAX, Fault, Reader, Writer

MESSAGES_MAX = 4_096
"""Messages of one envelope."""
FRAMES_MAX = 4_096
"""Frames of one envelope; a page of tasks takes two each."""
HEADER_FRACTION = 4
"""The header may take this part of ``Limits.message_bytes``: 8 MiB of 32."""

ROLE_NAMES = {ROLE_CLIENT: "client", ROLE_NODE: "node"}

_CODES = {name: code for code, name in enumerate(OPERATIONS)}


class _Records(dict[int, Record]):
    """How each message is read in a cluster with this number of partitions, by its code. A message is compiled
    when the first one comes: a client never hears most of them, and starts in half the time."""

    def __init__(self, partitions: int) -> None:
        super().__init__()
        self._partitions = partitions

    def __missing__(self, code: int) -> Record:
        record = self[code] = record_of(message_of(code), self._partitions)
        return record


_records = cache(_Records)
"""A process speaks with clusters of one or two numbers of partitions."""


class _Dumps(dict[type, tuple[int, Write]]):
    """By what each message is written for receivers of a protocol, and its code; compiled when first used."""

    def __init__(self, version: int) -> None:
        super().__init__()
        self._version = version

    def __missing__(self, of: type) -> tuple[int, Write]:
        if getattr(of, "since", 0) > self._version:
            raise unsupported(of.__name__, self._version)
        dump = self[of] = _CODES[of.__name__], dump_of(of, self._version)
        return dump


_dumps = cache(_Dumps)
_NEWEST = _dumps(PROTOCOL_VERSION)


_PACKERS: list[msgpack.Packer] = []
"""Packers not in use; to make one takes longer than to pack most messages."""
PACKER_BYTES_MAX = 1 << 16
"""A packer that packed more has a large buffer, and is not kept."""
_check_cluster = check_name(Name(is_optional=True))
_check_sender = check_name(Name(is_optional=True, is_wide=True))


@attrs.define
class Envelope:
    """Messages from one sender. ``sender``: a node's name, or ``""`` for a client."""

    sender: str
    cluster: str
    """The cluster meant; ``""`` from a client that does not know it yet."""
    messages: tuple[Message, ...]
    version: int = PROTOCOL_VERSION
    """The protocol that the sender speaks, or the receiver understands."""


class UnknownProtocol(Malformed):
    """A header of a protocol that this program does not understand. Nothing else of it was read."""


class MalformedRequest(Malformed):
    """A malformed message whose ``request`` number could still be read.

    The sender of a question can be told; ``message_type`` says whether it was one. The number in an answer belongs
    to the receiver and must not be sent back.
    """

    def __init__(self, field: str, problem: str, request: int, message_type: type[Message]) -> None:
        super().__init__(field, problem)
        self.request = request
        self.message_type = message_type


def encode(envelope: Envelope, limits: Limits = DEFAULT_LIMITS) -> list[bytes]:
    """The frames; raises ``Refused`` when they are more, or larger, than a receiver takes."""
    writer = Writer()
    messages = []
    dumps = _NEWEST if envelope.version == PROTOCOL_VERSION else _dumps(envelope.version)
    for message in envelope.messages:
        code, dump = dumps[type(message)]
        messages.append([code, *dump(message, writer)])
    packer = _PACKERS.pop() if _PACKERS else msgpack.Packer()
    try:
        header: bytes = packer.pack([envelope.version, envelope.cluster, envelope.sender, messages])
    except (TypeError, ValueError, OverflowError) as problem:
        raise Refused("unencodable", f"message: {problem}; a value is out of range") from None
    if len(header) <= PACKER_BYTES_MAX:
        _PACKERS.append(packer)
    frames = [header, *writer.frames]
    size = sum(map(len, frames))
    if (len(messages) > MESSAGES_MAX or len(messages) + writer.items > ITEMS_MAX or len(frames) > FRAMES_MAX
            or len(header) > limits.message_bytes // HEADER_FRACTION or size > limits.message_bytes):
        raise _too_large(len(messages), writer.items, len(frames), len(header), size, limits)
    return frames


def _too_large(messages: int, items: int, frames: int, header: int, size: int, limits: Limits) -> Refused:
    name, found, most = next(row for row in (
        ("messages", messages, MESSAGES_MAX),
        ("items", messages + items, ITEMS_MAX),
        ("frames", frames, FRAMES_MAX),
        ("header bytes", header, limits.message_bytes // HEADER_FRACTION),
        ("bytes", size, limits.message_bytes)) if row[1] > row[2])
    return Refused("too_large", f"envelope: {found} {name}, more than {most}; send less at once", size=found,
                   limit=most)


def decode(frames: Sequence[bytes], limits: Limits = DEFAULT_LIMITS) -> Envelope:
    """The envelope; raises ``Malformed``, or ``MalformedRequest`` when the sender can be told."""
    try:
        _check_frames(frames, limits)
        reader = Reader(frames, limits)
        version, cluster, sender, count = _read_preamble(reader)
        records = _records(limits.partitions)
        messages = [_read_message(reader, records, index) for index in range(count)]
        reader.close()
        if version != PROTOCOL_VERSION:
            _check_known(messages, version)
    except Fault as fault:
        raise Malformed(fault.path, fault.problem) from None
    return Envelope(sender, cluster, tuple(messages), version)


def _check_known(messages: Sequence[Message], version: int) -> None:
    """Raises ``Fault`` at a message that its sender's protocol does not have."""
    for index, message in enumerate(messages):
        if message.since > version:
            raise Fault(f"is {type(message).__name__}, which protocol {version} has not", f"messages[{index}]")


def check_role(message: Message, role: int) -> None:
    """Raises ``Refused`` unless a sender of this role may send the message."""
    if not message.roles & role:
        raise Refused("forbidden", f"{type(message).__name__}: a {ROLE_NAMES.get(role, 'stranger')} may not"
                      " send this", operation=type(message).__name__, role=role)


# -- reading ---------------------------------------------------------------------------------------


def _check_frames(frames: Sequence[bytes], limits: Limits) -> None:
    if not 1 <= len(frames) <= FRAMES_MAX:
        raise Fault(f"are {len(frames)}, not 1 to {FRAMES_MAX}", "frames")
    size = 0
    for frame in frames:
        if type(frame) is not bytes:
            raise Fault("are not all byte strings", "frames")
        size += len(frame)
    if size > limits.message_bytes:
        raise Fault(f"have {size} bytes, more than {limits.message_bytes}", "frames")
    most = limits.message_bytes // HEADER_FRACTION
    if len(frames[0]) > most:
        raise Fault(f"has {len(frames[0])} bytes, more than {most}", "header")


def _read_preamble(reader: Reader) -> tuple[int, str, str, int]:
    """Protocol, cluster, sender, and the number of messages."""
    part = "header"
    try:
        count = reader.array()
        part = "version"
        version = _check_version(reader.scalar())
        part = "header"
        if count != 4:
            raise Fault(f"has {count} parts, not [version, cluster, sender, messages]")
        part = "cluster"
        cluster = _check_cluster(reader.scalar())
        part = "sender"
        sender = _check_sender(reader.scalar())
        part = "messages"
        return version, cluster, sender, reader.items(MESSAGES_MAX)
    except Fault as fault:
        raise fault.within(part) from None


def _check_version(version: object) -> int:
    if type(version) is not int:
        raise Fault("is no int")
    if version not in PROTOCOLS:
        raise UnknownProtocol("version", f"the sender speaks protocol {version}, this side"
                              f" {' and '.join(map(str, PROTOCOLS))}; upgrade the older of the two")
    return version


def _read_message(reader: Reader, records: Mapping[int, Record], index: int) -> Message:
    try:
        count = reader.array()
        code = reader.scalar()
        if type(code) is not int or not 0 <= code < len(OPERATIONS):
            raise Fault(f"{repr(code)[:80]} is no message code, which are 0..{len(OPERATIONS) - 1}")
    except Fault as fault:
        raise fault.within(f"messages[{index}]") from None
    record = records[code]
    values: list[Any] = []
    try:
        if not record.least <= count - 1 <= len(record.names):
            if count > 1:
                values.append(reader.scalar())
            record.check_count(count - 1)
        message: Message = record.read_fields(reader, values, count - 1)
    except Fault as fault:
        raise _malformed(message_of(code), record, values, fault) from None
    return message


def _malformed(of: type[Message], record: Record, values: Sequence[Any], fault: Fault) -> Malformed:
    field = of.__name__ + fault.path
    first = values[0] if values and record.names[0] == "request" else None
    if type(first) is int and 0 <= first <= U63_MAX:
        return MalformedRequest(field, fault.problem, first, of)
    return Malformed(field, fault.problem)
