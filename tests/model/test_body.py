"""Bodies: one value is one record, and no bytes but a record are one."""

from __future__ import annotations

import struct

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from model.bodies import BODIES
from skuld_py.model import ids
from skuld_py.model.body import (
    DEFAULT_RETRY,
    HEADERS_BYTES_MAX,
    WINDOW_MS_MAX,
    Body,
    Header,
    Retry,
    encode_body,
    header_of,
    is_plain,
    split_body,
)
from skuld_py.model.ids import IdMint, lane_route
from skuld_py.model.prelude import (
    DEPS,
    DEPS_MAX,
    EXPIRES,
    KEYED,
    NAME_BYTES_MAX,
    NAMED,
    PRELUDE,
    TIME_MS_MAX,
    WAKE,
    Prelude,
)

PLAIN = Header("q").encode()
KNOWN = 0x1FF
"""The flags that this version understands, all nine."""


@given(BODIES)
def test_a_body_survives_its_record(body: Body) -> None:
    record = body.encode()

    assert Body.decode(record) == body
    assert Body.decode(record).encode() == record
    assert header_of(record) == body.header
    assert encode_body(*split_body(record)) == record


@given(BODIES)
@example(Body(Header("q", prelude=NAMED | KEYED | DEPS | WAKE | EXPIRES, policy=1, dep_wait_ms=1, window_ms=1),
              TIME_MS_MAX, TIME_MS_MAX, b"x" * 100_000, made_ms=1, unique="u" * NAME_BYTES_MAX,
              key="k" * NAME_BYTES_MAX, deps=tuple(number.to_bytes(20, "big") for number in range(DEPS_MAX))))
def test_the_options_of_a_record_are_the_body_without_its_payload(body: Body) -> None:
    """Of the longest prelude, too."""
    assert Body.options_of(body.encode()) == attrs.evolve(body, payload=b"")


@given(BODIES)
def test_equal_bodies_are_equal_records(body: Body) -> None:
    others = [attrs.evolve(body, payload=body.payload + b"x"),
              attrs.evolve(body, not_before_ms=body.not_before_ms ^ 1),
              attrs.evolve(body, expires_ms=body.expires_ms ^ 1),
              attrs.evolve(body, key=body.key + "x"),
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


@given(st.binary(max_size=64), st.integers(0, 1 << 16).map(lambda flags: flags & 0x7FF), st.binary(max_size=40))
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
    "dependencies without a policy": (b"\x01\0", "policy"),
    "a policy without dependencies": (b"\0\x02\x01" + bytes(8), "policy"),
    "a policy cut short": (b"\x01\x02\x01" + bytes(7), "policy"),
    "a policy that is none": (b"\x01\x02\x05" + bytes(8), "policy"),
    "unique names without a window": (b"\0\x40", "window"),
    "a window without unique names": (b"\0\x04" + bytes(7) + b"\1", "window"),
    "a window of nothing": (b"\0\x44" + bytes(8), "window"),
    "a window that is too long": (b"\0\x44" + (WINDOW_MS_MAX + 1).to_bytes(8, "big"), "window"),
    "a window cut short": (b"\0\x44" + bytes(6) + b"\1", "window"),
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


NOW = (1).to_bytes(8, "big")
ONE, TWO = bytes(19) + b"\1", bytes(19) + b"\2"


@pytest.mark.parametrize(("flag", "rest", "problem"), [
    (WAKE, bytes(8), "not_before"), (WAKE, bytes(6) + b"\1", "not_before"),
    (EXPIRES, bytes(8), "expires"), (EXPIRES, (TIME_MS_MAX + 1).to_bytes(8, "big"), "expires"),
    (WAKE | EXPIRES, bytes(7) + b"\1" + bytes(8), "expires"),
    (NAMED, bytes(8) + b"\1a", "made"), (NAMED, NOW, "unique"), (NAMED, NOW + b"\0", "unique"),
    (NAMED, NOW + b"\2a", "unique"), (KEYED, b"", "key"), (KEYED, b"\0x", "key"), (KEYED, b"\3ab", "key"),
    (DEPS, b"", "deps"), (DEPS, b"\0\0", "deps"), (DEPS, b"\0\1" + ONE[:19], "deps"),
    (DEPS, b"\0\2" + TWO + ONE, "rise"), (DEPS, b"\0\2" + ONE + ONE, "rise"),
    (DEPS, b"\x03\xe9" + b"".join(n.to_bytes(20, "big") for n in range(1_001)), "deps"),
    (KEYED | DEPS, b"\1a" + b"\0\1", "deps"),
])
def test_a_prelude_that_is_none_is_refused_by_field(flag: int, rest: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Prelude.decode(flag, rest)


def test_a_prelude_with_all_options_is_laid_out_as_the_format_says() -> None:
    prelude = Prelude(1, 2, 3, "daily", "ship", (ONE, TWO))
    raw = struct.pack(">QQQ", 1, 2, 3) + b"\x05daily" + b"\x04ship" + b"\0\x02" + ONE + TWO

    assert prelude.encode() == raw
    assert Prelude.decode(prelude.flags, raw + b"payload") == (prelude, len(raw))
    header = Header("w", policy=2, dep_wait_ms=7, window_ms=9)
    assert Body.of(header, prelude, b"").header.encode() == (
        b"\0\0\0\0\1w" + b"\x01\xf6" + struct.pack(">BQQ", 2, 7, 9))


def test_a_task_waits_for_a_thousand_others_at_most() -> None:
    every = b"".join(number.to_bytes(20, "big") for number in range(1, DEPS_MAX + 1))

    assert len(Prelude.decode(DEPS, b"\x03\xe8" + every)[0].deps) == DEPS_MAX


MADE_MS, WINDOW_MS = 10_500, 1_000
LANED = IdMint(1).mint(5, 1, ids.lane_route("q", "k"), is_laned=True)[0]
FREE = IdMint(1).mint(5, 1, 7)[0]
NAMED_ID, KEYED_NAMED_ID = (ids.named_id("q", "n", 10_000, key) for key in ("", "k"))
NAME, NAME_OF_KEY = Prelude(made_ms=MADE_MS, unique="n"), Prelude(made_ms=MADE_MS, unique="n", key="k")
FITTING = [(FREE, Prelude()), (FREE, Prelude(deps=(ONE,))), (LANED, Prelude(key="k")), (NAMED_ID, NAME),
           (KEYED_NAMED_ID, NAME_OF_KEY)]
UNFIT = [(LANED, Prelude()), (FREE, Prelude(key="k")), (LANED, Prelude(key="j")), (FREE, NAME),
         (KEYED_NAMED_ID, NAME), (NAMED_ID, NAME_OF_KEY), (LANED, NAME_OF_KEY),
         (NAMED_ID, attrs.evolve(NAME, made_ms=11_000)), (NAMED_ID, attrs.evolve(NAME, unique="m"))]


@pytest.mark.parametrize(("task_id", "prelude"), FITTING)
def test_an_id_fits_its_task(task_id: bytes, prelude: Prelude) -> None:
    assert prelude.problem_of(task_id, "q", WINDOW_MS) == ""


@pytest.mark.parametrize(("task_id", "prelude"), UNFIT)
def test_an_id_that_does_not_fit_its_task_is_found(task_id: bytes, prelude: Prelude) -> None:
    assert prelude.problem_of(task_id, "q", WINDOW_MS).startswith("id: ")


def test_a_key_and_a_name_are_of_one_queue() -> None:
    assert all(prelude.problem_of(task_id, "p", WINDOW_MS) for task_id, prelude in FITTING[2:])


def test_a_named_task_has_no_dependencies() -> None:
    """One content may take the place of another, and what was met is told by number."""
    assert attrs.evolve(NAME, deps=(ONE,)).problem_of(NAMED_ID, "q", WINDOW_MS).startswith("deps: ")


def test_a_task_that_waits_for_itself_is_found() -> None:
    assert Prelude(deps=(ONE, TWO)).problem_of(TWO, "q", 0).startswith("deps: ")


def test_no_task_needs_a_younger_one_of_its_key() -> None:
    mint = IdMint(1)
    older, made, younger = mint.mint(1_000, 3, lane_route("q", "k"), is_laned=True)
    of_another, = mint.mint(1_000, 1, lane_route("q", "j"), is_laned=True)
    without, = mint.mint(2_000, 1, lane_route("q", "k"))

    assert Prelude(key="k", deps=(older, younger)).problem_of(made, "q", 0).startswith("deps: a younger")
    for dep in (older, of_another, without):
        assert Prelude(key="k", deps=(dep,)).problem_of(made, "q", 0) == ""
    assert Prelude(deps=(younger,)).problem_of(mint.mint(1_000, 1, 7)[0], "q", 0) == ""


def test_a_header_that_ends_before_its_length_is_refused() -> None:
    with pytest.raises(ValueError, match="cut short"):
        Body.decode(b"\0\x20" + PLAIN)


def test_the_longest_header_fits_a_batch() -> None:
    longest = Header("q" * 200, 0, Retry(1), (("a", "x" * (HEADERS_BYTES_MAX - 5)),), PRELUDE,
                     policy=1, dep_wait_ms=TIME_MS_MAX, window_ms=WINDOW_MS_MAX)

    assert len(longest.encode()) <= 8_192
    assert Header.decode(longest.encode()) == longest
