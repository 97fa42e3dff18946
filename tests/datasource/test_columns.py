"""Rows made of tasks: the columns that a query sees."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from skuld_py import call
from skuld_py.client.waiting import End
from skuld_py.datasource.columns import SCHEMA, rows_of
from skuld_py.errors import Refused
from skuld_py.model.ids import TaskId
from skuld_py.testing import MemoryClient

NOW = 1_900_000_000.0
NAMES = ["id", "queue", "state", "death", "priority", "function", "enqueued", "not_before", "expires", "due",
         "started", "ended", "attempts", "claim", "result", "result_type", "error", "payload", "headers"]


def rows(client: MemoryClient) -> list[dict[str, object]]:
    found = list(client.list())
    return [dict(zip(NAMES, row, strict=True)) for row in rows_of(found, client)]


def test_the_schema_has_these_columns() -> None:
    assert [word for word in NAMES if f"{word} " not in SCHEMA] == []


def test_a_call_that_is_completed() -> None:
    client = MemoryClient(now=NOW)
    task_id = client.enqueue("q", call("shop:add", 2, b=3), priority=4, headers={"a": "b"})
    client.advance(1)
    client.complete(client.claim("q")[0], {"sum": 5})

    row, = rows(client)

    assert row["id"] == str(task_id) and row["queue"] == "q" and row["state"] == "completed"
    assert row["function"] == "shop:add" and row["priority"] == 4 and row["headers"] == {"a": "b"}
    assert row["enqueued"] == datetime.fromtimestamp(NOW, UTC)
    assert row["started"] == row["ended"] == datetime.fromtimestamp(NOW + 1, UTC)
    assert row["result_type"] == "json" and json.loads(str(row["result"], "utf-8")) == {"sum": 5}  # type: ignore[call-overload]
    assert row["claim"][1] == client.holder and row["claim"][4] == "completed"  # type: ignore[index]


def test_tasks_that_wait_and_that_died() -> None:
    client = MemoryClient(now=NOW)
    client.enqueue("q", b"later", not_before=NOW + 60)
    client.enqueue("q", b"bad", priority=1)
    client.fail(client.claim("q")[0], "no such page", final=True)

    later, dead = rows(client)

    assert later["state"] == "scheduled" and later["function"] is None and later["claim"] is None
    assert later["not_before"] == later["due"] == datetime.fromtimestamp(NOW + 60, UTC)
    assert dead["state"] == "dead" and dead["error"] == "no such page" and dead["death"] == "permanent"
    assert dead["attempts"] == 1 and dead["result_type"] is None


def test_tasks_that_are_collected_while_a_page_is_read_are_shown_without_their_results() -> None:
    client = MemoryClient(now=NOW)
    client.enqueue_many("q", [b"1", b"2", b"3"])
    client.complete_many(client.claim("q", n=3), ["1", "2", "3"])
    found = list(client.list())

    class Collecting:
        def ends(self, ids: list[bytes]) -> list[End]:
            if found[1].id in ids:
                raise Refused("no_such_task", "collected")
            return [End(TaskId(each), "completed", "r") for each in ids]

    results = [row[NAMES.index("result")] for row in rows_of(found, Collecting())]

    assert results == [b"r", None, b"r"]


def test_other_refusals_go_through() -> None:
    client = MemoryClient(now=NOW)
    client.enqueue("q", b"1")
    client.complete(client.claim("q")[0])

    class Refusing:
        def ends(self, ids: list[bytes]) -> list[End]:
            raise Refused("unavailable", "not now")

    with pytest.raises(Refused, match="not now"):
        list(rows_of(list(client.list()), Refusing()))
