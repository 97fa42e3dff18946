"""JSON that could be read in two ways is refused; everything else is read as the standard library reads it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skuld_py.errors import Refused
from skuld_py.gateway.strict_json import parse

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=20)


@given(values, st.booleans())
def test_what_json_can_say_is_read_as_it_was_written(value: object, is_ascii: bool) -> None:
    assert parse(json.dumps(value, ensure_ascii=is_ascii).encode()) == value


@pytest.mark.parametrize("text", [
    b"", b" ", b"{", b"{]", b"nul", b"{'a': 1}", b"{\"a\": 1,}", b"01", b"1 2", b"\xef\xbb\xbf{}", b"\x00",
    b"NaN", b"-Infinity", b"[Infinity]", b"1e400", b"{\"a\": -1e400}", b"\xff", b"\"\xc3\"", b"\"\xed\xa0\x80\"",
    b"\"\\ud800\"", b"{\"\\uDFFF\": 1}", b"\"\x01\"", b"{\"a\": 1, \"a\": 1}",
    b"[{\"b\": {\"a\": 1, \"\\u0061\": 2}}]",
    b"[" * 100_000, b"{\"a\":" * 100_000, b"[" * 100_000 + b"]" * 100_000, b"9" * 5_000,
], ids=lambda text: repr(text[:24]))
def test_the_rest_is_refused_and_names_the_body(text: bytes) -> None:
    with pytest.raises(Refused) as refused:
        parse(text)

    assert refused.value.code == "bad_json" and refused.value.message.startswith("body: ")
    assert refused.value.message.isprintable()


def test_a_pair_of_surrogates_is_one_character() -> None:
    assert parse(b"\"\\ud83d\\ude00\"") == "\N{GRINNING FACE}"


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    try:
        parse(raw)
    except Refused as refused:
        assert refused.code == "bad_json"
