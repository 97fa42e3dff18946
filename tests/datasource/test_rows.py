"""Tasks made of rows: payloads and calls, priorities, keys and times, and what is refused by its column."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from skuld_py.calls.payloads import decode_call
from skuld_py.datasource.choices import write_choices
from skuld_py.datasource.rows import tasks_of
from skuld_py.errors import Refused

pa = pytest.importorskip("pyarrow", reason="skuld-py[datasource] is not installed: NOT TESTED are Arrow's batches")

NOON = datetime(2027, 1, 1, 12, tzinfo=UTC)


def made(columns: dict[str, Any], **options: str) -> list[Any]:
    batch = pa.RecordBatch.from_pydict(columns)
    return list(tasks_of(batch, write_choices({"queue": "q", **options}, list(columns))))


def test_payloads_are_binary_or_text() -> None:
    assert made({"payload": [b"1", b"2"]})[0].payloads == [b"1", b"2"]
    assert made({"payload": ["ä"]})[0].payloads == ["ä".encode()]
    assert made({"payload": pa.array([], pa.string())}) == []


def test_parts_are_no_larger_than_wanted() -> None:
    parts = made({"payload": ["1", "2", "3"], "k": ["a", None, "b"]}, payload="payload", key="k", batch="2")

    assert [part.payloads for part in parts] == [[b"1", b"2"], [b"3"]]
    assert [part.keys for part in parts] == [["a", None], ["b"]]
    assert [list(part.numbers) for part in parts] == [[0, 1], [2]]


def test_priorities_and_times() -> None:
    parts = made({"payload": ["1", "2", "3"], "p": [5, -1, 5], "t": [NOON, None, NOON]}, priority="p",
                 not_before="t")

    assert [(part.priority, part.payloads, list(part.numbers)) for part in parts] == [
        (5, [b"1", b"3"], [0, 2]), (-1, [b"2"], [1])]
    assert parts[0].not_before == [NOON, NOON] and parts[1].not_before == [None]


def test_a_call_has_columns_as_arguments() -> None:
    part, = made({"a": [1, 2], "b": ["x", None], "c": [{"d": [1.5]}, None]}, call="shop:add", args="a",
                 kwargs="n=b,c")

    calls = [decode_call(payload) for payload in part.payloads]
    assert [(each.name, each.args, each.kwargs) for each in calls] == [
        ("shop:add", [1], {"n": "x", "c": {"d": [1.5]}}), ("shop:add", [2], {"n": None, "c": None})]


@pytest.mark.parametrize(("columns", "options", "words"), [
    ({"payload": [1]}, {}, "payload: the column payload holds 1"),
    ({"payload": ["1", None]}, {}, "holds None"),
    ({"payload": ["1"], "p": [None]}, {"priority": "p"}, "priority: the column p holds None"),
    ({"payload": ["1"], "p": [1 << 40]}, {"priority": "p"}, "priority:"),
    ({"payload": ["1"], "k": [7]}, {"key": "k"}, "key: the column k holds 7"),
    ({"payload": ["1"], "t": [datetime(2027, 1, 1)]}, {"not_before": "t"}, "cast the column to timestamp"),
    ({"payload": ["1"], "t": ["noon"]}, {"expires": "t"}, "cast the column to timestamp"),
])
def test_what_is_wrong_is_refused_by_its_column(columns: dict[str, Any], options: dict[str, str],
                                                words: str) -> None:
    with pytest.raises(Refused, match=words):
        made(columns, **options)
