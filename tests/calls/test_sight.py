"""A call is shown as it would be written, on one bounded line that moves no cursor; and typed as it is shown."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from skuld_py.calls.payloads import call
from skuld_py.calls.sight import CHARS_MAX, call_line
from skuld_py.calls.typed import arguments_of
from skuld_py.errors import Refused


def test_a_call_is_shown_as_it_would_be_written() -> None:
    assert call_line(call("shop:add", 2, b=3)) == "shop:add(2, b=3)"
    assert call_line(call("f")) == "f()"
    assert call_line(call("f", None, True, 1.5, "a\"b", b"\x00", [1, {"k": []}], x={})) == (
        'f(None, True, 1.5, "a\\"b", b\'\\x00\', [1, {"k": []}], x={})')


@pytest.mark.parametrize("payload", [b"", b"hello", msgpack.packb([1, "f", 3, {}]),
                                     msgpack.packb([1, "f", [], {}]) + b"x", msgpack.packb([9, "f", [], {}])])
def test_what_is_no_call_is_not_shown_as_one(payload: bytes) -> None:
    assert call_line(payload) is None


@settings(deadline=None)
@given(some.lists(some.text() | some.binary() | some.integers(-9, 9) | some.lists(some.text()), max_size=5),
       some.dictionaries(some.text(min_size=1), some.text() | some.lists(some.none(), max_size=90), max_size=4))
def test_a_line_is_short_and_printable_whatever_is_called(args: list[object], kwargs: dict[str, object]) -> None:
    line = call_line(call("f", *args, **kwargs))

    assert line is not None and len(line) <= CHARS_MAX and line.isprintable()


def test_a_large_call_is_cut() -> None:
    line = call_line(call("f", *["\u202e" * 1_000] * 200), most=30)

    assert line is not None and line.startswith('f("\\u202e') and len(line) == 30 and line.endswith("…")


@pytest.mark.parametrize(("words", "args", "kwargs"), [
    (["2", "b=3"], [2], {"b": 3}), (["2026-11-20", "x=true", "007"], ["2026-11-20", "007"], {"x": True}),
    (['["a", 1]', 'k={"a": null}'], [["a", 1]], {"k": {"a": None}}), (['"a=b"', '"7"'], ["a=b", "7"], {}),
    (["NaN", "-1", "1e3", "", "a=", "=a", "1=2"], ["NaN", -1, 1000.0, "", "=a", "1=2"], {"a": ""}),
    (["a=b=c", "[" * 100_000], ["[" * 100_000], {"a": "b=c"})])
def test_what_is_typed_is_json_where_it_is_and_text_elsewhere(
        words: list[str], args: list[object], kwargs: dict[str, object]) -> None:
    assert arguments_of(words) == (args, kwargs)


def test_a_name_that_is_typed_twice_is_refused() -> None:
    with pytest.raises(Refused, match="b= is given twice"):
        arguments_of(["b=1", "b=2"])
