"""What is stored of a result: each type comes back as it was, and any bytes at all are some result."""

from __future__ import annotations

import dataclasses
import json
import math
from collections import OrderedDict
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any, NamedTuple

import attrs
import msgpack
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as some

from calls.values import VALUES, exact
from skuld_py.calls.outputs import OutputFile, Reference, Written, packed
from skuld_py.calls.results import (
    DEPTH_MAX,
    MARK,
    Carrying,
    Stored,
    decode_outputs,
    decode_result,
    encode_result,
    joined,
    parted,
    shown,
)
from skuld_py.config import DEFAULT_LIMITS
from skuld_py.errors import Refused


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_value_comes_back_as_it_was(value: object) -> None:
    found = decode_result(encode_result(value))

    assert exact(found) == exact(value)
    assert exact(joined(*parted(value))) == exact(value), "the archive's way"


def test_no_number_is_no_number() -> None:
    assert math.isnan(decode_result(encode_result([math.nan]))[0])


class Colour(Enum):
    RED = "red"


class Rank(IntEnum):
    FIRST = 1


class Point(NamedTuple):
    x: int
    y: int


@dataclasses.dataclass
class Item:
    name: str
    price: Decimal


@attrs.frozen
class Order:
    at: datetime
    items: list[Item]


@pytest.mark.parametrize(("value", "found"), [
    (Colour.RED, "red"), (Rank.FIRST, 1), (Point(1, 2), (1, 2)), (OrderedDict(a=1), {"a": 1}),
    (Item("tea", Decimal("2.5")), {"name": "tea", "price": "2.5"}),
    ([Order(datetime(2026, 1, 1), [Item("a", Decimal(1))])],
     [{"at": "2026-01-01T00:00:00", "items": [{"name": "a", "price": "1"}]}]),
], ids=["enum", "int enum", "named tuple", "ordered dict", "dataclass", "attrs class"])
def test_of_a_class_of_the_workers_the_fields_come_back(value: object, found: object) -> None:
    assert decode_result(encode_result(value)) == found


@pytest.mark.parametrize(("stored", "value"), [
    (b"", None), (b"33", b"33"), (b'{"rows":3}', b'{"rows":3}'), ("Zürich".encode(), "Zürich".encode()),
    (b"\x00\xff", b"\x00\xff"), (b"\xc1", b"\xc1"), (msgpack.packb([1, 2]), msgpack.packb([1, 2]))],
    ids=["none", "value", "json", "text", "bytes", "a mark begun", "msgpack"])
def test_what_an_earlier_release_or_a_plain_client_stored_is_bytes(stored: bytes, value: bytes | None) -> None:
    assert decode_result(stored) == value


HOSTILE = [
    b"", b"x", b"j", b"j{", b"jNaN", b"j[Infinity]", b't\xff', b'j"\\ud800"', b'j{"\\ud800":1}',
    b"j" + b"[" * 200 + b"]" * 200,
    b"j" + b"[" * 100_000, b'j{"$uuid":5}', b'j{"$uuid":"x"}', b'j{"$datetime":"x"}', b'j{"$decimal":[]}',
    b'j{"$timedelta":[1]}', b'j{"$timedelta":[1e400,0,0]}', b'j{"$bytes":"!"}', b'j{"$tuple":5}',
    b'j{"$set":[[]]}',
    b'j{"$dict":[[[],1]]}', b'j{"$dict":[1]}', b'j{"$unheard":1}', b'j{"$":1}', b"j" + b"9" * 5_000,
    b'j{"$decimal":"1e9999999999999999999"}', b'j{"$time":"25:00"}', b'j{"$float":"x"}',
]


@pytest.mark.parametrize("rest", HOSTILE, ids=[f"{number} {rest[:12]!r}" for number, rest in enumerate(HOSTILE)])
def test_what_looks_tagged_and_is_not_well_formed_is_bytes(rest: bytes) -> None:
    assert decode_result(MARK + rest) == MARK + rest


JSONS = some.recursive(some.none() | some.booleans() | some.floats() | some.integers() | some.text(max_size=3),
                       lambda inner: some.lists(inner, max_size=3) | some.dictionaries(
                           some.sampled_from(["a", "$tuple", "$dict", "$set", "$uuid", "$float", "$bytes", "$x"]),
                           inner, max_size=2), max_leaves=12)


def _with_outputs(outputs: bytes, value: bytes = b"v") -> bytes:
    return MARK + b"o" + len(outputs).to_bytes(4, "big") + outputs + value


FILES = (OutputFile("a.csv", 3), OutputFile("b/c", 4))
WRITTEN = Written("census", "/data/census", "csv", 2, 7, 3, "0" * 64, FILES)
REFERENCE = Reference("/data/census", "a task", 7, "_value-1", 9, "f" * 64)


@pytest.mark.parametrize("value", [None, b"", b"x", "text", {"a": [REFERENCE]}])
def test_a_value_is_read_beside_what_its_task_wrote(value: object) -> None:
    stored = encode_result(Carrying(value, (WRITTEN,)))

    assert exact(decode_result(stored)) == exact(value)
    assert decode_outputs(stored) == (WRITTEN,)
    assert decode_outputs(encode_result(value)) == decode_outputs(None) == ()


@pytest.mark.parametrize("change", [
    {"path": 7}, {"path": "x" * 1_001}, {"name": None}, {"count": -1}, {"count": 1 << 63}, {"count": True},
    {"bytes": 1.5}, {"rows": "3"}, {"sha256": "0" * 63}, {"sha256": "g" * 64}, {"files": [["../a", 1]]},
    {"files": [["/a", 1]]}, {"files": [["a", -1]]}, {"files": [["a"]]}, {"files": 3}])
def test_what_is_said_of_outputs_is_checked_field_by_field(change: dict[str, object]) -> None:
    plain = json.loads(packed([WRITTEN], with_files=True))[0]
    stored = _with_outputs(json.dumps([plain | change]).encode())

    assert decode_outputs(_with_outputs(json.dumps([plain]).encode())) == (WRITTEN,)
    assert decode_result(stored) == stored and decode_outputs(stored) == ()
    assert decode_outputs(_with_outputs(json.dumps([plain] * 33).encode())) == ()
    inner = _with_outputs(json.dumps([plain]).encode(), _with_outputs(json.dumps([plain]).encode()))
    assert decode_result(inner) == inner, "outputs of outputs"


@settings(max_examples=300, deadline=None)
@given(some.binary(max_size=40).map(lambda data: MARK + data) | some.binary(max_size=40)
       | JSONS.map(lambda value: MARK + b"j" + json.dumps(value).encode())
       | JSONS.map(lambda value: _with_outputs(json.dumps(value).encode())))
@example(MARK + b"b" + MARK)
def test_any_bytes_are_a_result_that_can_be_stored_again(stored: bytes) -> None:
    found = decode_result(stored)

    again = decode_result(encode_result(found))
    assert exact(again) == exact(found)
    json.dumps(shown(found)[2], allow_nan=False).encode()


@pytest.mark.parametrize(("value", "code", "words"), [
    (object(), "bad_result", "is a object"), ([lambda: None], "bad_result", "is a function"),
    ({"a": {1, 2, object}}, "bad_result", "is a type"), ("\ud800", "bad_result", "surrogates"),
    (b"x" * (DEFAULT_LIMITS.entry_bytes + 1), "result_too_large", "reference"),
    ("x" * DEFAULT_LIMITS.entry_bytes, "result_too_large", "reference")],
    ids=["object", "function", "class", "half a character", "bytes", "text"])
def test_what_cannot_be_stored_is_refused_by_name(value: object, code: str, words: str) -> None:
    with pytest.raises(Refused, match=words) as refused:
        encode_result(value)
    assert refused.value.code == code


def test_depth_is_bounded_alike_for_writers_and_readers() -> None:
    deep: Any = 0
    for _ in range(DEPTH_MAX + 1):
        deep = [deep]
    assert decode_result(encode_result(deep)) == deep
    with pytest.raises(Refused, match="nested deeper"):
        encode_result([deep])


def test_what_is_stored_once_is_not_stored_again() -> None:
    stored = encode_result(3)
    assert type(stored) is Stored and encode_result(stored) is stored


@pytest.mark.parametrize(("value", "parts"), [
    (None, ("none", b"", None)), (b"\xff", ("bytes", b"\xff", None)), ("x", ("text", b"x", "x")),
    (33, ("json", b"33", 33)), ((1, b"a"), ("json", b'[1,"YQ=="]', [1, "YQ=="])),
    ({1: timedelta(seconds=2)}, ("json", b'{"1":2.0}', {"1": 2.0})),
    ([math.nan, date(2026, 1, 2), Decimal("1.0")],
     ("json", b'["nan","2026-01-02","1.0"]', ["nan", "2026-01-02", "1.0"]))])
def test_other_languages_are_shown_plain_json(value: object, parts: tuple[str, bytes, object]) -> None:
    assert shown(value) == parts
