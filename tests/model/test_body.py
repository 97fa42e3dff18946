"""Bodies: one value is one record, and no bytes but a record are one."""

from __future__ import annotations

import struct

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from model.bodies import BODIES
from skuld_py.model.body import (
    DEFAULT_RETRY,
    EXPIRES,
    HEADERS_BYTES_MAX,
    TIME_MS_MAX,
    WAKE,
    Body,
    Header,
    Retry,
    encode_body,
    header_of,
    is_plain,
    split_body,
)

PLAIN = Header("q").encode()
KNOWN = 0x39
"""The flags that this version understands: RETRY, HEADERS, WAKE, EXPIRES."""


@given(BODIES)
def test_a_body_survives_its_record(body: Body) -> None:
    record = body.encode()

    assert Body.decode(record) == body
    assert Body.decode(record).encode() == record
    assert header_of(record) == body.header
    assert encode_body(*split_body(record)) == record


@given(BODIES)
def test_equal_bodies_are_equal_records(body: Body) -> None:
    others = [attrs.evolve(body, payload=body.payload + b"x"),
              attrs.evolve(body, not_before_ms=body.not_before_ms ^ 1),
              attrs.evolve(body, expires_ms=body.expires_ms ^ 1),
              attrs.evolve(body, header=attrs.evolve(body.header, priority=body.header.priority ^ 1)),
              attrs.evolve(body, header=attrs.evolve(body.header, headers=(("other", "x" * 9),)))]

    assert body.encode() not in [other.encode() for other in others]


@given(BODIES, st.data())
def test_every_record_that_is_taken_is_the_one_that_would_be_given(body: Body, data: st.DataObject) -> None:
    """Bytes near a record: either refused, or canonical."""
    record = bytearray(body.encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(record)))
        record[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    _refused_or_canonical(bytes(record))


@given(st.binary(max_size=64), st.integers(0, 1 << 16).map(lambda flags: flags & 0x3FF), st.binary(max_size=40))
@example(b"", 0, b"")
@example(b"", WAKE, bytes(8))
def test_any_bytes_are_refused_or_canonical(raw: bytes, flags: int, tail: bytes) -> None:
    _refused_or_canonical(raw)
    _refused_or_canonical(encode_body(PLAIN + struct.pack(">H", flags) + tail, raw))
    _refused_or_canonical(encode_body(PLAIN + struct.pack(">H", flags), tail + raw))


def _refused_or_canonical(record: bytes) -> None:
    try:
        body = Body.decode(record)
    except ValueError:
        return
    assert body.encode() == record


def test_a_plain_record_is_what_it_always_was() -> None:
    assert Body(Header("work", -3), payload=b"data").encode() == b"\0\x09" + b"\xff\xff\xff\xfd\x04work" + b"data"
    assert is_plain(Header("work", -3).encode())


def test_a_record_with_all_options_is_laid_out_as_the_format_says() -> None:
    header = Header("w", 1, Retry(2, 3, 400, 5, 6), (("a", "bc"), ("d", "")))
    tail = (b"\0\x39" + struct.pack(">HIHIB", 2, 3, 400, 5, 6)
            + b"\x02" + b"\x01a" + b"\0\x02bc" + b"\x01d" + b"\0\0")
    raw = b"\0\0\0\x01\x01w" + tail
    times = struct.pack(">QQ", 1_000, 2_000)

    assert Body(header, 1_000, 2_000, b"data").encode() == len(raw).to_bytes(2, "big") + raw + times + b"data"
    assert not is_plain(raw)


@pytest.mark.parametrize("bit", [bit for bit in range(16) if not KNOWN >> bit & 1])
def test_a_flag_of_a_later_version_is_refused(bit: int) -> None:
    with pytest.raises(ValueError, match="flags"):
        Header.decode(PLAIN + struct.pack(">H", 1 << bit) + bytes(40))


@pytest.mark.parametrize("field", list(attrs.fields_dict(Retry)))
@pytest.mark.parametrize("value", [-1, 1 << 33])
def test_a_number_of_a_retry_has_a_range(field: str, value: int) -> None:
    with pytest.raises(ValueError, match=field):
        attrs.evolve(DEFAULT_RETRY, **{field: value}).check()


BAD_HEADERS: dict[str, tuple[bytes, str]] = {
    "no flags": (b"\0\0", "flags"),
    "half of the flags": (b"\0", "length"),
    "bytes behind the sections": (b"\0\x10x", "length"),
    "a retry cut short": (b"\0\x01" + bytes(12), "retry: is cut short"),
    "no attempts": (b"\0\x01" + struct.pack(">HIHIB", 0, 3, 400, 5, 6), "max_attempts: 0"),
    "a factor that shrinks": (b"\0\x01" + struct.pack(">HIHIB", 1, 3, 99, 5, 6), "factor_percent: 99"),
    "more jitter than all": (b"\0\x01" + struct.pack(">HIHIB", 1, 3, 100, 5, 101), "jitter_percent: 101"),
    "a bound below the first": (b"\0\x01" + struct.pack(">HIHIB", 1, 6, 100, 5, 1), "backoff_max_ms: 5"),
    "the default retry": (b"\0\x01" + struct.pack(">HIHIB", *attrs.astuple(DEFAULT_RETRY)), "default"),
    "no headers": (b"\0\x08\0", "headers"),
    "the section missing": (b"\0\x08", "headers"),
    "a header cut short": (b"\0\x08\x01\x01a\0\x02b", "cut short"),
    "a header without a key": (b"\0\x08\x01\0\0\x01b", "key"),
    "keys that fall": (b"\0\x08\x02\x01b\0\0\x01a\0\0", "rise"),
    "a key twice": (b"\0\x08\x02\x01a\0\0\x01a\0\0", "rise"),
    "a header that is no text": (b"\0\x08\x01\x01\xff\0\0", "utf-8"),
    "too many bytes": (b"\0\x08\x01\x01a\x0f\xfc" + b"x" * 0xFFC, "4097 bytes"),
}


@pytest.mark.parametrize(("tail", "problem"), BAD_HEADERS.values(), ids=BAD_HEADERS.keys())
def test_a_header_that_is_none_is_refused_by_field(tail: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Header.decode(PLAIN + tail)


@pytest.mark.parametrize(("flag", "rest", "problem"), [
    (WAKE, bytes(8), "not_before"), (WAKE, bytes(6) + b"\1", "not_before"),
    (EXPIRES, bytes(8), "expires"), (EXPIRES, (TIME_MS_MAX + 1).to_bytes(8, "big"), "expires"),
    (WAKE | EXPIRES, bytes(7) + b"\1" + bytes(8), "expires"),
])
def test_a_prelude_that_is_none_is_refused_by_field(flag: int, rest: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Body.decode(encode_body(PLAIN + struct.pack(">H", flag), rest))


def test_a_header_that_ends_before_its_length_is_refused() -> None:
    with pytest.raises(ValueError, match="cut short"):
        Body.decode(b"\0\x20" + PLAIN)


def test_the_longest_header_fits_a_batch() -> None:
    longest = Header("q" * 200, 0, Retry(1), (("a", "x" * (HEADERS_BYTES_MAX - 5)),), WAKE | EXPIRES)

    assert len(longest.encode()) <= 8_192
    assert Header.decode(longest.encode()) == longest
