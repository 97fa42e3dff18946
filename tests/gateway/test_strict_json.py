"""JSON that could be read in two ways is refused; everything else is read as the standard library reads it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skuld_py.errors import Refused
from skuld_py.gateway import strict_json

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=20)


def parse(raw: bytes) -> object:
    return strict_json.parse(raw, 1_000_000)


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


# -- how much is in it ---------------------------------------------------------------------------


@given(values)
def test_as_many_values_as_may_be_are_read_and_one_more_is_refused(value: object) -> None:
    text = json.dumps(value).encode()

    assert strict_json.parse(text, _count(value)) == value
    with pytest.raises(Refused) as refused:
        strict_json.parse(text, _count(value) - 1)
    assert (refused.value.code, refused.value.facts["field"]) == ("body_too_large", "body")
    assert f" {_count(value) - 1} " in refused.value.message


def _count(value: object) -> int:
    """Values as they are counted from outside: an empty list looks like one of a single value."""
    inner = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else None
    return 1 if inner is None else 1 + (sum(map(_count, inner)) or 1)


@pytest.mark.parametrize("text", [b"a,[{" * 1_000, b'"' * 1_000, b"\\" * 1_000 + b'",', b'\\"' * 1_000])
def test_what_stands_in_a_string_is_no_value(text: bytes) -> None:
    told = text.decode()

    assert strict_json.parse(json.dumps([told, told]).encode(), 3) == [told, told]


@pytest.mark.parametrize("text", [b"[" + b"[]," * 2_000_000 + b"[]]", b"[" * 8_000_000, b'""' * 4_000_000,
                                  b"{" + b",".join(b'"%d":0' % key for key in range(500_000)) + b"}"],
                         ids=["lists", "nested", "strings", "keys"])
def test_no_value_is_made_of_a_text_that_has_too_many(text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json, "loads", lambda *_, **__: pytest.fail("it was parsed"))

    with pytest.raises(Refused, match="50000 values"):
        strict_json.parse(text, 50_000)


def test_the_search_for_a_key_given_twice_looks_at_each_key_once() -> None:
    class Key(str):
        """Counts how often it is compared."""

        compared = 0
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            Key.compared += 1
            return str.__eq__(self, other)

    keys = [Key(number) for number in range(2_000)]
    with pytest.raises(Refused, match="'1999' twice"):
        strict_json._object([(key, None) for key in (*keys, Key(1_999))])

    assert Key.compared < 100
