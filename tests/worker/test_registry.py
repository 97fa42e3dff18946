"""Task functions by name, and calls as plain values: what travels arrives, what cannot is named."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import skuld_py
from skuld_py.calls.payloads import Call, decode_call
from skuld_py.errors import Refused
from skuld_py.worker.registry import encode_call, lookup


@skuld_py.task
def report(spark: Any, context: Any, day: str, *, rows: int = 10) -> str:
    return f"{day} {rows}"


@skuld_py.task(name="reports.named")
def named(spark: Any, context: Any) -> None: ...


def test_a_function_is_known_by_module_and_name_and_stays_callable() -> None:
    assert lookup(f"{__name__}:report") is report
    assert report(None, None, "2026-11-20", rows=3) == "2026-11-20 3"  # type: ignore[arg-type]


def test_a_function_may_be_given_a_name() -> None:
    assert lookup("reports.named") is named
    assert named.task_name == "reports.named"


def test_call_makes_the_payload() -> None:
    assert decode_call(report.call("2026-11-20", rows=3)) == Call(
        f"{__name__}:report", ["2026-11-20"], {"rows": 3})


def test_arguments_that_do_not_fit_are_refused_when_the_task_is_made() -> None:
    for make in (report.call, lambda: report.call("a", days=1), lambda: report.call("a", "b")):
        with pytest.raises(Refused, match="report") as refusal:
            make()  # type: ignore[no-untyped-call]
        assert refusal.value.code == "bad_arguments"


def test_an_unknown_name_is_answered_with_the_remedy() -> None:
    with pytest.raises(Refused, match="--app") as refusal:
        lookup("reports.unheard_of")
    assert refusal.value.code == "unknown_task"


def test_a_misspelt_name_is_answered_with_the_one_that_is_meant_and_with_the_application_s_own() -> None:
    lookup("skuld:script")  # which registers it
    with pytest.raises(Refused, match=r"reprot' here: did you mean \S+:report\? start .*Known are: ") as refusal:
        lookup(f"{__name__}:reprot")
    assert "skuld:" not in refusal.value.message


def test_two_functions_of_one_name_are_refused() -> None:
    with pytest.raises(Refused, match="two task functions") as refusal:
        exec(compile("import skuld_py\n@skuld_py.task(name='reports.named')\ndef other(spark, context): ...",
                     "other.py", "exec"), {"__name__": "other"})
    assert refusal.value.code == "duplicate_task"
    assert lookup("reports.named") is named


def test_a_module_that_is_executed_again_replaces_its_functions() -> None:
    source = compile("import skuld_py\n@skuld_py.task\ndef again(spark, context): ...", "again.py", "exec")
    for _ in range(2):
        scope: dict[str, Any] = {"__name__": "again"}
        exec(source, scope)
    assert lookup("again:again") is scope["again"]


def test_only_functions_a_worker_can_find_are_tasks() -> None:
    def inner(spark: Any, context: Any) -> None: ...

    for function in (inner, lambda spark, context: None, print):
        with pytest.raises(Refused) as refusal:
            skuld_py.task(function)
        assert refusal.value.code == "bad_task"


def test_a_function_of_main_needs_a_name() -> None:
    with pytest.raises(Refused, match="__main__"):
        exec("import skuld_py\n@skuld_py.task\ndef f(spark, context): ...", {"__name__": "__main__"})


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({"day": object()}, r"args\[0\]\['day'\]: is a object"),
        ([1, range(2)], r"args\[0\]\[1\]: is a range"),
        (1 << 64, r"args\[0\]: does not fit"),
        ({1: 2}, r"args\[0\]: has the key 1"),
        ("\ud800", r"args\[0\]: is a str that is no valid Unicode"),
        (msgpack.ExtType(1, b""), r"args\[0\]: is a ExtType"),
    ],
)
def test_a_value_that_cannot_travel_is_named_by_its_place(value: object, where: str) -> None:
    with pytest.raises(Refused, match=where):
        encode_call("reports.named", value)


def test_depth_and_size_are_bounded() -> None:
    deep: list[Any] = []
    for _ in range(40):
        deep = [deep]
    with pytest.raises(Refused, match="nested deeper"):
        encode_call("reports.named", deep)
    with pytest.raises(Refused, match="store the data elsewhere"):
        encode_call("reports.named", "x" * (1 << 20))


PLAIN = some.recursive(
    some.none() | some.booleans() | some.integers(-(1 << 63), (1 << 64) - 1) | some.floats(allow_nan=False)
    | some.text() | some.binary(),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(some.text(), inner, max_size=4),
    max_leaves=20)


@settings(max_examples=50, deadline=None)
@given(some.lists(PLAIN, max_size=4), some.dictionaries(some.text(), PLAIN, max_size=4))
def test_plain_values_arrive_as_they_were(args: list[Any], kwargs: dict[str, Any]) -> None:
    call = decode_call(encode_call("reports.named", *args, **kwargs))
    assert call == Call("reports.named", args, kwargs)


def test_tuples_arrive_as_lists_and_no_number_is_a_number() -> None:
    call = decode_call(encode_call("reports.named", (1, (2,)), math.nan))
    assert call.args[0] == [1, [2]]
    assert math.isnan(call.args[1])


@settings(deadline=None)
@given(some.binary(max_size=200))
def test_any_bytes_are_a_call_or_refused(payload: bytes) -> None:
    with contextlib.suppress(Refused):
        assert isinstance(decode_call(payload), Call)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"hello",
        msgpack.packb([3, "f", [], {}]),
        msgpack.packb([0, "f", [], {}]),
        msgpack.packb([True, "f", [], {}]),
        msgpack.packb([1, "f", [], {}, 0]),
        msgpack.packb([1, "", [], {}]),
        msgpack.packb([1, "f\n", [], {}]),
        msgpack.packb([1, b"f", [], {}]),
        msgpack.packb([1, "f", {}, {}]),
        msgpack.packb([1, "f", [], {b"k": 1}]),
        msgpack.packb([1, "f", [msgpack.ExtType(5, b"x")], {}]),
        msgpack.packb([1, "f", [msgpack.Timestamp(1)], {}]),
        b"\x91" * 100_000,
        b"\xdd\xff\xff\xff\xff",
    ],
)
def test_what_is_no_call_is_refused(payload: bytes) -> None:
    with pytest.raises(Refused):
        decode_call(payload)
