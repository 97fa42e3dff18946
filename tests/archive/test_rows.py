"""Rows: nothing of a task is lost, and the day is the id's."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.ended import DAY_MS, NAMES, NOON_MS, plain, tasks
from skuld_py.archive.rows import (
    COLUMNS,
    SCHEMA_VERSION,
    BatchNames,
    Rows,
    attempts_of,
    batch_name,
    day_of,
    ended_ms,
    row_of,
    row_of_record,
    size_of,
    task_of,
)
from skuld_py.calls.outputs import OutputFile, Written
from skuld_py.calls.payloads import call
from skuld_py.calls.results import encode_result
from skuld_py.client.archiving import Record
from skuld_py.client.reading import task_of as client_task_of
from skuld_py.errors import Refused
from skuld_py.model import columns
from skuld_py.model.body import Body, Header, Retry, encode_body
from skuld_py.model.history import (
    DEP_FAILED,
    DIED,
    HISTORY_HEAD,
    PERMANENT,
    cause_of,
    encode_claim,
    encode_mark,
    undated,
)
from skuld_py.model.ids import IdMint, to_text
from skuld_py.model.messages import TaskRow
from skuld_py.model.outcomes import FIRST_TOKEN, RESULT_SEQ
from skuld_py.model.prelude import TIME_MS_MAX as CALENDAR_MS_MAX
from skuld_py.model.prelude import Prelude
from skuld_py.model.task import Task


@given(tasks())
def test_a_row_gives_back_the_task_that_it_took(task: Task) -> None:
    row = dict(zip(COLUMNS, row_of(task), strict=True))

    assert task_of(row) == task
    assert row["day"] == day_of(row["enqueued_ms"])


@pytest.mark.parametrize(("result", "kind", "stored"), [
    (None, None, None), (b"", "bytes", b""), (b"\xff", "bytes", b"\xff"), ("text", "text", b"text"),
    ({"rows": 3}, "json", b'{"rows":3}'), ((date(2026, 11, 20),), "json", b'{"$tuple":[{"$date":"2026-11-20"}]}')])
def test_a_result_is_archived_so_that_sql_can_read_it(result: object, kind: str | None,
                                                      stored: bytes | None) -> None:
    row = dict(zip(COLUMNS, row_of(attrs.evolve(plain(1), result=result)), strict=True))

    assert (row["result_type"], row["result"]) == (kind, stored)
    assert task_of(row).result == result


def test_what_a_task_wrote_is_archived_with_it() -> None:
    written = Written("census", "/data/census", "csv", 1, 4, None, "0" * 64, (OutputFile("part.csv", 4),))
    task = attrs.evolve(plain(1), result=3, outputs=(written,))
    row = dict(zip(COLUMNS, row_of(task), strict=True))

    assert json.loads(row["outputs"])[0]["path"] == "/data/census"
    assert task_of(row) == task
    assert task_of(row | {"outputs": None}).outputs == (), "of an older release"


@pytest.mark.parametrize("stored", [b"33", b'{"rows":3}', "Zürich".encode()])
def test_a_result_that_an_older_release_archived_is_bytes(stored: bytes) -> None:
    row = dict(zip(COLUMNS, row_of(plain(1)), strict=True)) | {"result": stored, "result_type": None}

    assert task_of(row).result == stored


def test_a_unique_name_has_the_time_of_its_asking_and_the_day_of_its_id() -> None:
    task = attrs.evolve(plain(0), made_ms=NOON_MS + DAY_MS)
    row = dict(zip(COLUMNS, row_of(task), strict=True))

    assert (row["enqueued_ms"], row["day"]) == (NOON_MS + DAY_MS, day_of(NOON_MS))
    assert task_of(row) == task


def test_every_field_of_a_task_is_in_its_row() -> None:
    """What a task gets anew must get into the archive: this fails until ``task_of`` knows it. One that has ended
    is ``blocked_by`` nothing."""
    assert len([field for field in attrs.fields(Task) if field.eq]) == 25


@pytest.mark.parametrize("death", ["dep_failed", "dep_unknown"])
def test_when_a_task_died_of_another_is_in_its_row(death: str) -> None:
    task = attrs.evolve(plain(1, state="dead"), death=death, died_ms=NOON_MS + 70)
    row = dict(zip(COLUMNS, row_of(task), strict=True))

    assert row["ended_ms"] == NOON_MS + 70 and task_of(row) == task


@pytest.mark.parametrize("queue", ["", "__HIVE_DEFAULT_PARTITION__", "a/b", "a=b", "a%3Db", "a b"])
def test_a_queue_that_a_directory_could_not_be_called_after_is_refused(queue: str) -> None:
    with pytest.raises(Refused, match="queue"):
        row_of(attrs.evolve(plain(0), queue=queue))


@pytest.mark.parametrize("queue", NAMES)
def test_a_queue_that_looks_like_something_else_is_none_the_less_one(queue: str) -> None:
    assert row_of(attrs.evolve(plain(0), queue=queue))[1] == queue


def test_a_day_begins_at_midnight_utc() -> None:
    midnight = NOON_MS - DAY_MS // 2

    assert day_of(midnight) == datetime.fromtimestamp(midnight / 1000, UTC).strftime("%Y-%m-%d")
    assert day_of(midnight - 1) < day_of(midnight) == day_of(midnight + DAY_MS - 1)
    assert day_of(0) == "1970-01-01"


def test_when_a_task_ended() -> None:
    dead = plain(0, state="dead")

    assert ended_ms(plain(0)) == NOON_MS + 5
    assert ended_ms(plain(0, state="cancelled")) == NOON_MS + 6
    assert ended_ms(attrs.evolve(plain(0), cancelled_ms=1)) == NOON_MS + 5
    assert ended_ms(dead) == NOON_MS + 9
    assert ended_ms(attrs.evolve(dead, death="expired", expires_ms=3)) == 3
    assert ended_ms(attrs.evolve(dead, claims=(), death="dep_failed")) is None
    assert ended_ms(attrs.evolve(dead, death="dep_failed", died_ms=4)) == 4
    assert ended_ms(attrs.evolve(dead, death="dep_failed", died_ms=4, cancelled_ms=2)) == 2


def test_what_was_released_or_snoozed_is_no_attempt() -> None:
    claim = plain(0).claims[0]
    ways = ("completed", "failed", "", "released", "snoozed")

    assert attempts_of(attrs.evolve(plain(0), claims=tuple(attrs.evolve(claim, outcome=way) for way in ways))) == 3


def test_the_size_of_a_task_counts_what_may_be_large() -> None:
    task = plain(0)
    claim = attrs.evolve(task.claims[0], log=(b"x" * 1_000,), error=b"y" * 2_000)

    large = attrs.evolve(task, payload=b"z" * 4_000, result=b"r" * 8_000, claims=(claim,))

    assert size_of(row_of(large)) - size_of(row_of(task)) > 14_500


def test_names_of_batches_sort_by_time() -> None:
    names = [batch_name(at_ms, 0xFFFFFFFF - at_ms % 7) for at_ms in (0, 1, 999, 1_000, NOON_MS, NOON_MS + 1)]

    assert names == sorted(names) and len(set(names)) == len(names)
    assert batch_name(NOON_MS, 1) != batch_name(NOON_MS, 2)
    assert set("".join(names)) <= set("0123456789abcdefTZ.-")


def test_names_of_one_process_rise_though_its_clock_stands_still_or_goes_back() -> None:
    clock = iter((NOON_MS, NOON_MS, NOON_MS - 3_600_000, NOON_MS + 1, NOON_MS + DAY_MS, NOON_MS))
    names = BatchNames(lambda: next(clock), 7)
    found = [names() for _ in range(6)]

    assert found == sorted(set(found)) and found[0] == batch_name(NOON_MS, 7)


# -- of records ---------------------------------------------------------------------------------------------------

HEADERS = st.builds(Header, st.sampled_from(["q", "007"]), st.integers(-3, 3),
                    st.sampled_from([Retry(), Retry(1), Retry(3, 7)]), st.sampled_from([(), (("a", "b"),)]))
STORED = st.sampled_from([b"", *(bytes(encode_result(value)) for value in (b"raw", "text", [1, {"a": None}]))])
PAYLOADS = st.sampled_from([b"", b"raw", b"\x94 no call", call("shop:add", 2, b=3), call("f"),
                            call("f", at=datetime(2026, 1, 1, tzinfo=UTC))])


@st.composite
def records(draw: st.DrawFn) -> Record:
    """Mostly tasks that were completed by their only claim, and some of the others."""
    header, kind = draw(HEADERS), draw(st.sampled_from(["done", "done", "done", "failed", "twice", "logged"]))
    prelude = Prelude(key="k", unique="u", made_ms=9) if draw(st.booleans()) and kind != "done" else Prelude()
    header = attrs.evolve(header, prelude=prelude.flags, window_ms=1_000 if prelude.unique else 0)
    token = FIRST_TOKEN + draw(st.integers(0, 5))
    claims = encode_claim(token, 10, 99, b"w", 3 if kind == "failed" else 0, 50 if kind == "failed" else 0)
    claims += encode_claim(token + 9, 20, 80, b"v") if kind == "twice" else b""
    done = (0, 0) if kind == "failed" else (50, token)
    history = HISTORY_HEAD.pack(*done, 0 if kind == "failed" else 99) + claims
    stored = draw(STORED)
    entries = [(token, RESULT_SEQ, stored)] if stored else []
    entries = [(token, 0, b"line"), (token, 1, b""), *entries] if kind == "logged" else entries
    body = encode_body(header.encode(), prelude.encode() + draw(PAYLOADS))
    return IdMint(3).mint(draw(st.integers(1, 1 << 41)), 1, 0)[0], body, history, entries


@given(records())
def test_a_row_made_without_the_task_is_that_of_the_task(record: Record) -> None:
    task_id, body, history, entries = record
    numbers = [columns.pack_u64([entry[at] for entry in entries]) for at in (0, 1)]  # type: ignore[misc]
    seen = client_task_of(TaskRow(task_id, columns.pack([body]), history, *numbers,
                                  columns.pack([entry[2] for entry in entries])), 1 << 42)

    assert row_of_record(record, to_text(record[0]), "c", 7) == row_of(seen, Body.decode(body), "c", 7)


def test_of_two_claims_a_row_has_both() -> None:
    claims = encode_claim(FIRST_TOKEN, 10, 99, b"w") + encode_claim(FIRST_TOKEN + 9, 20, 80, b"v")
    history = HISTORY_HEAD.pack(50, FIRST_TOKEN, 99) + claims
    record = IdMint(3).mint(4_000, 1, 0)[0], encode_body(Header("q").encode(), b"x"), history, ()
    row = dict(zip(COLUMNS, row_of_record(record, to_text(record[0]), "c", 7), strict=True))

    assert [claim[1] for claim in row["claims"]] == ["w", "v"]


def test_a_row_has_what_was_given_besides_the_payload() -> None:
    prelude = Prelude(key="customer-42", unique="nightly", made_ms=5_000)
    header = Header("q", prelude=prelude.flags, window_ms=1_000)
    body = encode_body(header.encode(), prelude.encode() + call("shop:add", 2, b=3))
    task_id = IdMint(3).mint(4_000, 1, 0)[0]
    record = task_id, body, b"", ()
    row = dict(zip(COLUMNS, row_of_record(record, to_text(task_id), "prod", 255), strict=True))

    assert (row["key"], row["unique_name"], row["cluster"]) == ("customer-42", "nightly", "prod")
    assert task_of({**row, "state": "completed"}).key == "customer-42"
    assert (row["function"], row["arguments"]) == ("shop:add", '[[2],{"b":3}]')
    assert row["schema_version"] == SCHEMA_VERSION
    assert (row["enqueued"], row["ended"], row["digest"]) == (5_000, None, "00000000000000ff")


def test_a_task_that_failed_ended_when_it_did_and_not_with_its_lease() -> None:
    failed = attrs.evolve(plain(1, state="dead").claims[0], start_ms=10, end_ms=86_400_010, until_ms=19)
    task = attrs.evolve(plain(1, state="dead"), claims=(failed,))

    assert ended_ms(task) == 19
    assert ended_ms(attrs.evolve(task, claims=(attrs.evolve(failed, outcome=""),))) == 86_400_010
    before = attrs.evolve(failed, token=failed.token - 1, outcome="released", end_ms=1 << 40, until_ms=0)
    assert ended_ms(attrs.evolve(task, claims=(before, failed))) == 19, "it was over before the next was granted"


def test_a_task_is_as_it_ended_whatever_the_clock_of_an_archiver_says() -> None:
    """Of leases that ended long ago a clock that is set to 1970 would say that they are held."""
    claims = encode_claim(FIRST_TOKEN, 1 << 40, (1 << 40) + 9_000, b"w")
    history = HISTORY_HEAD.pack(0, 0, (1 << 40) + 9_000) + claims
    record = (IdMint(3).mint(4_000, 1, 0)[0], encode_body(Header("q", retry=Retry(1)).encode(), b"x"), history,
              ())
    row = dict(zip(COLUMNS, row_of_record(record, to_text(record[0]), "c", 7), strict=True))

    assert (row["state"], row["death"], row["ended_ms"]) == ("dead", "exhausted", (1 << 40) + 9_000)


def record_with(history: bytes) -> Record:
    return (NOON_MS.to_bytes(8, "big") + bytes(12), encode_body(Header("q").encode(), b""), history, ())


@pytest.mark.parametrize("history", [
    bytes(24) + bytes(10), encode_mark(DIED, 1, cause_of(PERMANENT + 1, 5)), encode_mark(DIED, 1, cause_of(0, 5)),
    encode_mark(DIED, 1, cause_of(DEP_FAILED, CALENDAR_MS_MAX + 1)),
    encode_mark(DIED, 1, cause_of(DEP_FAILED, 1 << 55)), HISTORY_HEAD.pack(CALENDAR_MS_MAX + 1, FIRST_TOKEN, 0)])
def test_a_history_that_a_hostile_node_made_up_is_refused(history: bytes) -> None:
    """And passed on to releases that know no times of deaths it is what it was."""
    stored: list[object] = []
    store = SimpleNamespace(begin=None, settled=None, end=None, write=lambda *given: stored.append(given))
    with pytest.raises(Refused, match="a record cannot be read") as refused:
        Rows(store, "prod").write("b", [(record_with(history), 1)])  # type: ignore[arg-type]
    assert refused.value.code == "not_written" and stored == []
    assert undated(history)[:HISTORY_HEAD.size] == history[:HISTORY_HEAD.size]


def test_the_last_moment_that_a_calendar_has_is_written() -> None:
    stored: list[Any] = []
    store = SimpleNamespace(begin=None, settled=None, end=None, write=lambda batch, rows: stored.extend(rows))
    history = encode_mark(DIED, 1, cause_of(DEP_FAILED, CALENDAR_MS_MAX))
    Rows(store, "prod").write("b", [(record_with(history), 1)])  # type: ignore[arg-type]
    assert dict(zip(COLUMNS, stored[0], strict=True))["ended_ms"] == CALENDAR_MS_MAX
