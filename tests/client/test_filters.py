"""What is looked for of tasks beyond what nodes know."""

from __future__ import annotations

import pytest

import skuld_py
from skuld_py.calls.sight import arguments_said
from skuld_py.client.filters import Filter, is_like
from skuld_py.errors import Refused
from skuld_py.model.task import Task


@pytest.mark.parametrize(("pattern", "like", "unlike"), [
    ("timeout", ["timeout", "TimeOut"], ["a timeout", "timeouts", ""]),
    ("*timeout*", ["timeout", "Read TIMEOUT at 7", "a\ntimeout\nb"], ["time out"]),
    ("a*b", ["ab", "a-b", "axbxb"], ["a", "b", "ba", "abc", "xab"]),
    ("ab*ba", ["abba", "ab-ba"], ["aba"]),
    ("*aa*aa*", ["aaaa"], ["aaa"]),
    ("KeyError: ['day']", ["KeyError: ['day']"], ["KeyError: d"]),
    ("wh?t", ["wh?t"], ["what"]),
    ("*", ["", "anything"], []),
    ("**a", ["a", "ba"], ["ab"]),
])
def test_a_star_is_any_text_and_all_else_stands_for_itself(
        pattern: str, like: list[str], unlike: list[str]) -> None:
    assert all(is_like(text, pattern) for text in like)
    assert not any(is_like(text, pattern) for text in unlike)


def test_no_pattern_takes_long() -> None:
    assert not is_like("a" * 100_000, "a*" * 250 + "b")


def test_arguments_are_searched_as_they_are_shown_and_by_their_names() -> None:
    payload = skuld_py.call("shop:bill", "2026-11-20", 3, ["a", None], day="mon", paid=True)

    assert [*arguments_said(payload)] == [
        "2026-11-20", "3", '["a", None]', "mon", "day=mon", "True", "paid=True"]
    assert [*arguments_said(b"2026-11-20")] == ["2026-11-20"]
    assert [*arguments_said(b"\x94\x01\xaashop:bill0")] == ["\ufffd\x01\ufffdshop:bill0"], "a call cut short"
    assert [*arguments_said(skuld_py.call("shop:all"))] == []


@pytest.mark.parametrize(("wanted", "is_found"), [
    (Filter(), True),
    (Filter(argument="day=MON"), True), (Filter(argument="mon*"), True), (Filter(argument="day"), False),
    (Filter(header="tenant=acme*"), True), (Filter(header="*=acme-7"), True), (Filter(header="acme-7"), False),
    (Filter(function="shop:bill", argument="mon", header="*"), True),
    (Filter(function="shop:add", argument="mon"), False),
])
def test_all_that_is_asked_must_be_so(wanted: Filter, is_found: bool) -> None:
    task = Task(b"1" * 20, "q", 0, skuld_py.call("shop:bill", day="mon"), headers={"tenant": "acme-7", "a": "b"})
    assert wanted.suits(task) == is_found


@pytest.mark.parametrize("field", ["argument", "header", "error"])
def test_what_nothing_can_be_like_is_refused_by_name(field: str) -> None:
    for pattern in ("", "x" * 501, 7):
        with pytest.raises(Refused, match=rf"^{field}: is no pattern of 1 to 500 characters, as '") as refused:
            Filter(**{field: pattern}).check()  # type: ignore[arg-type]
        assert refused.value.code == f"bad_{field}"
    Filter(**{field: "x" * 500}).check()
