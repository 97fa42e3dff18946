"""A task's body: what was enqueued. Immutable; the same id with another body is a conflict.

    record  = header length u16 | header | prelude | payload
    header  = priority i32 | queue length u8 | queue | [ flags u16 | sections ]
    RETRY   = max attempts u16 | backoff ms u32 | factor percent u16 | longest backoff ms u32 | jitter percent u8
    POLICY  = on failure u8 | dep wait ms u64                       exactly when the tasks have dependencies
    WINDOW  = unique window ms u64                                  exactly when the tasks have unique names
    HEADERS = count u8 | (key length u8 | key | value length u16 | value)*
    prelude   see ``model.prelude``

What all tasks of a batch share is in the header, so it is checked and compared once per batch. What differs from
task to task stands before the payload, so a batch of tasks with as many times is still one batch. A task without
options has neither sections nor prelude, and costs nothing for them.

Invariant: one value has one record. A flag is set exactly when its value is not the default, sections keep their
order, keys rise; so ``decode`` takes what ``encode`` gives and nothing else, and equal tasks are equal bytes.

Rejected: msgpack for the header, which has many forms of one value; a column of the batch for each option, most of
them empty; all options in the header, where as many tasks with own times would be as many batches.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from itertools import pairwise

import attrs

from skuld_py.model.prelude import DEPS, NAMED, PRELUDE, PRELUDE_BYTES_MAX, TIME_MS_MAX, Prelude

HEADER = struct.Struct(">iB")
PRIORITY_MIN, PRIORITY_MAX = -(1 << 31), (1 << 31) - 1
HEADERS_BYTES_MAX = 4_096
HEADERS_KEPT = 1_024
"""How many parsed headers are cached: tasks share few."""
HEADERS_MAX, KEY_BYTES_MAX = 255, 255

RETRY, POLICY, WINDOW, HEADERS = 0x01, 0x02, 0x04, 0x08
_KNOWN = RETRY | POLICY | WINDOW | HEADERS | PRELUDE
_PAIRS = ((POLICY, DEPS, "policy"), (WINDOW, NAMED, "window"))
"""Sections that are there exactly when something is in the prelude."""
_FLAGS = struct.Struct(">H")
_RETRY = struct.Struct(">HIHIB")
_POLICY = struct.Struct(">BQ")
_WINDOW = struct.Struct(">Q")
ON_FAILURE_WAIT, ON_FAILURE_FAIL, ON_FAILURE_IGNORE, ON_FAILURE_INSTEAD = 1, 2, 3, 4
"""What becomes of a task whose dependency is dead or cancelled: it waits on, it dies too, or it takes it for done.
One that is there *instead* of its dependency waits for no other end: it is cancelled when that is completed."""
WINDOW_MS_MAX = 6 * 24 * 3_600_000
"""Less than ended tasks are kept for by default: while a window lasts its first task must be there to be found."""


@attrs.frozen
class Retry:
    """How often and when a task is tried again.

    ``max_attempts`` claims may fail or lapse. After the nth failure the task rests for
    ``min(backoff_max_ms, backoff_ms * (factor_percent / 100) ** (n - 1))``, give or take ``jitter_percent``.
    """

    max_attempts: int = 25
    backoff_ms: int = 1_000
    factor_percent: int = 200
    backoff_max_ms: int = 3_600_000
    jitter_percent: int = 10

    def check(self) -> None:
        """Raises ``ValueError``, naming the field, when a number is out of its range."""
        for field, (low, high) in RETRY_RANGES.items():
            value = getattr(self, field)
            if not low <= value <= high:
                raise ValueError(f"{field}: {value} is not in {low}..{high}")
        if self.backoff_ms > self.backoff_max_ms:
            raise ValueError(f"backoff_max_ms: {self.backoff_max_ms} is less than backoff_ms: {self.backoff_ms}")


RETRY_RANGES = {
    "max_attempts": (1, 1_000),
    "backoff_ms": (0, (1 << 32) - 1),
    "factor_percent": (100, (1 << 16) - 1),
    "backoff_max_ms": (0, (1 << 32) - 1),
    "jitter_percent": (0, 100),
}
DEFAULT_RETRY = Retry()
Headers = tuple[tuple[str, str], ...]
"""Keys and values, keys rising."""


@attrs.frozen
class Header:
    """What tasks of a batch share. ``queue`` and ``priority`` (i32, higher first) decide a task's place.

    ``headers`` are for applications. ``prelude``: the flags of what stands before each payload. With dependencies:
    ``policy``, one of ``ON_FAILURE_...``, and ``dep_wait_ms``, how long, from the time of its id, a task waits for
    dependencies that are unknown. With unique names: ``window_ms``, within which a name stands for one task.
    """

    queue: str
    priority: int = 0
    retry: Retry = DEFAULT_RETRY
    headers: Headers = ()
    prelude: int = 0
    policy: int = attrs.field(default=0, kw_only=True)
    dep_wait_ms: int = attrs.field(default=0, kw_only=True)
    window_ms: int = attrs.field(default=0, kw_only=True)

    @property
    def flags(self) -> int:
        """A flag for each part that is there besides the place."""
        return ((RETRY if self.retry != DEFAULT_RETRY else 0) | (POLICY if self.policy else 0)
                | (WINDOW if self.window_ms else 0) | (HEADERS if self.headers else 0) | self.prelude)

    def encode(self) -> bytes:
        """The canonical bytes."""
        queue, flags = self.queue.encode(), self.flags
        place = HEADER.pack(self.priority, len(queue)) + queue
        if not flags:
            return place
        sections = [_RETRY.pack(*attrs.astuple(self.retry)) if flags & RETRY else b"",
                    _POLICY.pack(self.policy, self.dep_wait_ms) if flags & POLICY else b"",
                    _WINDOW.pack(self.window_ms) if flags & WINDOW else b"",
                    encode_headers(self.headers) if flags & HEADERS else b""]
        return b"".join([place, _FLAGS.pack(flags), *sections])

    @classmethod
    def decode(cls, raw: bytes) -> Header:
        """Parse; raises ``ValueError`` on anything that ``encode`` does not give."""
        return _decoded(raw)


@lru_cache(maxsize=HEADERS_KEPT)
def _decoded(raw: bytes) -> Header:
    if len(raw) < HEADER.size:
        raise ValueError("header is too short")
    priority, size = HEADER.unpack_from(raw)
    queue, tail = raw[HEADER.size : HEADER.size + size], raw[HEADER.size + size :]
    if len(queue) != size:
        raise ValueError("header has a wrong length")
    place = Header(queue.decode("ascii"), priority)
    return _with_tail(place, tail) if tail else place


def _with_tail(place: Header, tail: bytes) -> Header:
    if len(tail) < _FLAGS.size:
        raise ValueError("header has a wrong length")
    flags = _FLAGS.unpack_from(tail)[0]
    if not flags or flags & ~_KNOWN:
        raise ValueError(f"flags: {flags:#x} are none, or not all known")
    for section, prelude, name in _PAIRS:
        if bool(flags & section) != bool(flags & prelude):
            raise ValueError(f"{name}: its flag, {section:#x}, goes with {prelude:#x}")
    retry, at = DEFAULT_RETRY, _FLAGS.size
    policy = dep_wait_ms = window_ms = 0
    headers: Headers = ()
    if flags & RETRY:
        retry, at = _decode_retry(tail[at : at + _RETRY.size]), at + _RETRY.size
    if flags & POLICY:
        (policy, dep_wait_ms), at = _decode_policy(tail[at : at + _POLICY.size]), at + _POLICY.size
    if flags & WINDOW:
        window_ms, at = _decode_window(tail[at : at + _WINDOW.size]), at + _WINDOW.size
    if flags & HEADERS:
        headers, at = decode_headers(tail[at:]), len(tail)
    if at != len(tail):
        raise ValueError("header has a wrong length")
    return Header(place.queue, place.priority, retry, headers, flags & PRELUDE, policy=policy,
                  dep_wait_ms=dep_wait_ms, window_ms=window_ms)


def _decode_retry(raw: bytes) -> Retry:
    if len(raw) != _RETRY.size:
        raise ValueError("retry: is cut short")
    retry = Retry(*_RETRY.unpack(raw))
    retry.check()
    if retry == DEFAULT_RETRY:
        raise ValueError("retry: is the default, which is left out")
    return retry


def _decode_policy(raw: bytes) -> tuple[int, int]:
    policy, dep_wait_ms = _POLICY.unpack(raw) if len(raw) == _POLICY.size else (0, 0)
    if not ON_FAILURE_WAIT <= policy <= ON_FAILURE_INSTEAD or dep_wait_ms > TIME_MS_MAX:
        raise ValueError(f"policy: is cut short, none of 1..4, or waits longer than {TIME_MS_MAX} ms")
    return policy, dep_wait_ms


def _decode_window(raw: bytes) -> int:
    window_ms = int.from_bytes(raw, "big")
    if len(raw) != _WINDOW.size or not 1 <= window_ms <= WINDOW_MS_MAX:
        raise ValueError(f"window: is cut short, or not in 1..{WINDOW_MS_MAX} ms")
    return window_ms


def is_plain(header: bytes) -> bool:
    """Whether a valid header, as bytes, has no tail: its tasks have no options."""
    return len(header) == HEADER.size + header[4]


# -- headers of applications ----------------------------------------------------------------------------


def encode_headers(headers: Headers) -> bytes:
    """The section; raises ``ValueError`` when there are too many, or too long ones, or their keys do not rise."""
    if not 1 <= len(headers) <= HEADERS_MAX:
        raise ValueError(f"headers: {len(headers)}, not 1..{HEADERS_MAX}")
    parts = [bytes([len(headers)])]
    for key, value in headers:
        name, data = key.encode(), value.encode()
        if not 1 <= len(name) <= KEY_BYTES_MAX or len(data) > HEADERS_BYTES_MAX:
            raise ValueError(f"headers: {key[:32]!r}: {len(name)} bytes of key and {len(data)} of value, not"
                             f" 1..{KEY_BYTES_MAX} and 0..{HEADERS_BYTES_MAX}")
        parts += [bytes([len(name)]), name, len(data).to_bytes(2, "big"), data]
    if any(key >= following for (key, _), (following, _) in pairwise(headers)):
        raise ValueError("headers: keys do not rise")
    section = b"".join(parts)
    if len(section) > HEADERS_BYTES_MAX:
        raise ValueError(f"headers: {len(section)} bytes, more than {HEADERS_BYTES_MAX}")
    return section


def decode_headers(section: bytes) -> Headers:
    """Parse the section, to its end; raises ``ValueError``."""
    at, pairs = 1, []
    for _ in range(section[0] if section else 0):
        key, at = _string(section, at, 1)
        value, at = _string(section, at, 2)
        pairs.append((key, value))
    headers = tuple(pairs)
    if not headers or at != len(section):
        raise ValueError("headers: none, or with a wrong length")
    encode_headers(headers)
    return headers


def _string(section: bytes, at: int, width: int) -> tuple[str, int]:
    start = at + width
    end = start + int.from_bytes(section[at:start], "big")
    if end > len(section):
        raise ValueError("headers: are cut short")
    return section[start:end].decode(), end


# -- bodies ---------------------------------------------------------------------------------------------


@attrs.frozen
class Body:
    """A body taken apart; ``Header`` and ``Prelude`` say what the options mean.

    The header's ``prelude`` follows from which options are given.
    """

    header: Header
    not_before_ms: int = 0
    expires_ms: int = 0
    payload: bytes = b""
    made_ms: int = attrs.field(default=0, kw_only=True)
    unique: str = attrs.field(default="", kw_only=True)
    key: str = attrs.field(default="", kw_only=True)
    deps: tuple[bytes, ...] = attrs.field(default=(), kw_only=True)

    def __attrs_post_init__(self) -> None:
        flags = self.prelude.flags
        if flags != self.header.prelude:
            object.__setattr__(self, "header", attrs.evolve(self.header, prelude=flags))

    @property
    def prelude(self) -> Prelude:
        """The prelude, which stands before the payload."""
        return Prelude(self.not_before_ms, self.expires_ms, self.made_ms, self.unique, self.key, self.deps)

    def encode(self) -> bytes:
        """The canonical record."""
        return encode_body(self.header.encode(), self.rest)

    @property
    def rest(self) -> bytes:
        """What stands behind the header: prelude and payload."""
        return self.prelude.encode() + self.payload

    @classmethod
    def decode(cls, record: bytes) -> Body:
        """Parse; raises ``ValueError`` on anything that ``encode`` does not give."""
        raw, rest = split_body(record)
        header = Header.decode(raw)
        if not header.prelude:
            return cls(header, 0, 0, rest)
        prelude, size = Prelude.decode(header.prelude, rest)
        return cls.of(header, prelude, rest[size:])

    @classmethod
    def options_of(cls, record: bytes) -> Body:
        """As ``decode``, with no payload: that may be a MiB, and is not copied."""
        header = header_of(record)
        if not header.prelude:
            return cls(header)
        at = 2 + int.from_bytes(record[:2], "big")
        return cls.of(header, Prelude.decode(header.prelude, record[at : at + PRELUDE_BYTES_MAX])[0], b"")

    @classmethod
    def of(cls, header: Header, prelude: Prelude, payload: bytes) -> Body:
        """A body of its parts."""
        return cls(header, prelude.not_before_ms, prelude.expires_ms, payload, made_ms=prelude.made_ms,
                   unique=prelude.unique, key=prelude.key, deps=prelude.deps)


def encode_body(header: bytes, rest: bytes) -> bytes:
    """The record of a header's bytes, and prelude and payload."""
    return len(header).to_bytes(2, "big") + header + rest


def split_body(record: bytes) -> tuple[bytes, bytes]:
    """A record as its header's bytes, and prelude and payload; raises ``ValueError`` when it is too short."""
    end = 2 + int.from_bytes(record[:2], "big")
    if len(record) < end:
        raise ValueError("header is cut short")
    return record[2:end], record[end:]


def stands_over(a: bytes, b: bytes) -> bool:
    """Of two different bodies under one id, whether ``a`` takes the place of ``b``.

    Only those with a unique name give way, to the one asked for first; of equal times, to the smaller bytes. That
    is a total order, so copies agree in whatever order they heard them. It decides only between calls at the same
    time: a later one finds the task and writes nothing (``node.writes.names``).
    """
    first, second = _rank_of(a), _rank_of(b)
    return first is not None and second is not None and first < second


def _rank_of(record: bytes) -> tuple[int, bytes] | None:
    header = header_of(record)
    return (Body.decode(record).made_ms, record) if header.prelude & NAMED else None


def header_of(record: bytes) -> Header:
    """The header of a record."""
    return Header.decode(record[2 : 2 + int.from_bytes(record[:2], "big")])
