"""Tasks of SQL and streams in a real Spark, one for all tests: what they give and refuse, and where they go on."""

from __future__ import annotations

import json
import os
import sys
import threading
import types
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pytest

import skuld_py
from calls.sql_texts import OF_THIS_ALONE, TEXTS
from skuld_py.calls.kinds import SQL, STREAM
from skuld_py.calls.kinds.splitting import statements_of
from skuld_py.calls.payloads import decode_call
from skuld_py.calls.results import decode_result, encode_result
from skuld_py.client.steady import steady_s
from skuld_py.model.ids import TaskId
from skuld_py.worker.context import ClaimLost, TaskContext
from skuld_py.worker.directives import Dead
from skuld_py.worker.kinds.allowed import Allowed, allowing
from skuld_py.worker.registry import function_of, traits_of_function
from skuld_py.worker.spark_worker import SparkEngine

pytestmark = [pytest.mark.spark, pytest.mark.slow]

QUICK = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1", "spark.driver.memory": "512m",
         "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
Run = Callable[..., Any]


class Claims:
    """Makes claims of tasks, each with a token of its own, and runs their calls."""

    def __init__(self, engine: SparkEngine) -> None:
        self._engine = engine
        self._token = 0
        self._run = os.urandom(16)

    def context(self, task: int = 1) -> TaskContext:
        self._token += 1
        name = TaskId(self._run + task.to_bytes(4, "big"))
        return TaskContext(name, self._token, "q", steady_s() + 600, _nothing, _nothing)

    def run(self, payload: bytes, context: TaskContext | None = None) -> Any:
        call = decode_call(payload)
        function = function_of(call)
        body = traits_of_function(function).injection.applied(function)
        value = self._engine.call(body, context or self.context(), call)
        return decode_result(encode_result(value))


def _nothing(*_: Any, **__: Any) -> Any:
    raise AssertionError("nothing is read")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkEngine]:
    engine = SparkEngine(tmp_path_factory.mktemp("spark"), conf={"spark.master": "local[2]", **QUICK})
    engine.start()
    yield engine
    engine.stop(5)


@pytest.fixture(scope="module")
def claims(engine: SparkEngine) -> Iterator[Claims]:
    with allowing(Allowed(kinds=frozenset({SQL, STREAM}), apps=("kinds_app.streams",))):
        yield Claims(engine)


def test_texts_are_split_as_spark_itself_splits_and_reads_them(claims: Claims, engine: SparkEngine) -> None:
    spark: Any = engine._runtime.session
    parser = spark._jsparkSession.sessionState().sqlParser()
    for text, statements in TEXTS.items():
        found = spark._jvm.org.apache.spark.sql.catalyst.util.StringUtils.splitSemiColon(text, False)
        theirs = [found.apply(at).strip() for at in range(found.size())]
        assert [each for each in theirs if statements_of(each)] == statements, text
    for statements in (*TEXTS.values(), *OF_THIS_ALONE.values()):
        for each in statements:
            if "$" not in each:  # which Spark reads in views of metrics only
                parser.parsePlan(each)


def test_parameters_arrive_as_what_they_are_and_rows_come_back_typed(claims: Claims) -> None:
    day, at = date(2026, 11, 20), datetime(2026, 11, 20, 8, tzinfo=UTC)
    given = {"d": day, "t": at, "m": Decimal("1.50"), "b": b"\x00", "n": None, "x": "'; drop table t; --",
             "l": [1, 2], "i": timedelta(days=1)}
    rows = claims.run(skuld_py.sql("""
        create temporary view given as select 'a' as k, 1 as v union all select 'b', 2;
        select :d as d, :t as t, :m as m, :b as b, :n as n, :x as x, :l as l, :i as i,
               named_struct('at', :t) as s, map('k', :t) as o, k, v
          from given where :d > date'2026-01-01' and v > 1""", given))
    assert rows == [{**given, "s": {"at": at}, "o": {"k": at}, "k": "b", "v": 2}]
    assert claims.run(skuld_py.sql("create temporary view v as select 1")) is None


def test_rows_that_are_too_many_or_too_large_name_the_remedy(claims: Claims) -> None:
    assert len(claims.run(skuld_py.sql("select * from range(5)", rows=5))) == 5
    with pytest.raises(Dead, match=r"more than 5; write them with output='PATH'.* LIMIT"):
        claims.run(skuld_py.sql("select * from range(6)", rows=5))
    with pytest.raises(Dead, match=r"result of \d+ bytes.*output='PATH' writes them"):
        claims.run(skuld_py.sql("select repeat('x', 2000000) as x"))
    with pytest.raises(Dead, match="two columns are called 'a'"):
        claims.run(skuld_py.sql("select 1 as a, 2 as a"))


def test_rows_are_written_where_no_other_claim_writes(claims: Claims, tmp_path: Path) -> None:
    context = claims.context()
    made = claims.run(skuld_py.sql("select * from range(3)", output=str(tmp_path), format="json",
                                   options={"compression": "none"}), context)
    assert made == {"path": str(tmp_path), "format": "json"}
    parts = tmp_path.glob(f"_claims/{context.id}/{context.token}/*.json")
    assert sorted(line for part in parts for line in part.read_text().split()) == [
        '{"id":0}', '{"id":1}', '{"id":2}']


@pytest.mark.parametrize("payload", [
    skuld_py.sql("select count(*) as n from range(10000000000000)"),
    skuld_py.stream({"format": "text", "path": "in"}, {"format": "noop"}, "cp",
                    transform="kinds_app.streams:swell"),
], ids=["sql", "stream"])
def test_what_runs_ends_when_its_claim_is_cancelled(
    claims: Claims, engine: SparkEngine, streams: tuple[Path, bytes], payload: bytes
) -> None:
    call, context = decode_call(payload), claims.context()
    if call.name == STREAM:
        call.args[0]["path"], call.args[2] = str(streams[0] / "in"), str(streams[0] / "cp")
    body = traits_of_function(function_of(call)).injection.applied(function_of(call))
    ended: list[bool] = []

    def run() -> None:
        with pytest.raises(BaseException):  # noqa: B017 - Spark's word, or that the claim is lost
            engine.call(body, context, call)
        ended.append(True)

    running = threading.Thread(target=run, daemon=True)
    running.start()
    tracker = engine._runtime.session.sparkContext.statusTracker()
    while not tracker.getActiveJobsIds():
        assert running.is_alive()
        running.join(0.05)
    context.lose("it was cancelled")
    assert engine.cancel(context.name) and engine.is_swept()
    running.join(30)
    assert ended == [True] and not tracker.getActiveJobsIds()


@pytest.mark.parametrize(("text", "conf", "words"), [
    ("select 1; selec 2", {}, "statement 2: .*selec"),
    ("select :no", {}, "statement 1: .*no"),
    ("set spark.sql.warehouse.dir=/x", {}, "statement 1: this is fixed when Spark starts; give it to the worker"),
    ("set spark.executor.memory=1g", {}, "statement 1: this is fixed when Spark starts; give it to the worker"),
    ("select 1", {"spark.sql.warehouse.dir": "/x"}, "spark.sql.warehouse.dir is fixed when Spark starts"),
])
def test_what_no_other_attempt_cures_leaves_the_task_dead(claims: Claims, text: str, conf: dict[str, Any],
                                                          words: str) -> None:
    with pytest.raises(Dead, match=words):
        claims.run(skuld_py.sql(text, conf=conf))


def test_settings_and_errors_of_one_task_are_its_own(claims: Claims) -> None:
    partitions = "set spark.sql.shuffle.partitions"
    assert claims.run(skuld_py.sql(partitions, conf={"spark.sql.shuffle.partitions": 7}))[0]["value"] == "7"
    assert claims.run(skuld_py.sql(partitions))[0]["value"] != "7"
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):  # another attempt may find it
        claims.run(skuld_py.sql("select * from not_there"))


SOURCE = {"format": "json", "schema": "id long", "options": {"maxFilesPerTrigger": 1}}


@pytest.fixture
def streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, bytes]:
    app = types.ModuleType("kinds_app.streams")
    app.__dict__.update({"os": __import__("os"), "join": __import__("os").path.join})
    exec("def double(df):\n    return df.selectExpr('id * 2 as id')\n"
         "def swell(df):\n    return df.crossJoin(df.sparkSession.range(10 ** 13))\n", app.__dict__)
    monkeypatch.setitem(sys.modules, "kinds_app", types.ModuleType("kinds_app"))
    monkeypatch.setitem(sys.modules, "kinds_app.streams", app)
    (tmp_path / "in").mkdir()
    add(tmp_path, 0, 1)
    return tmp_path, skuld_py.stream({**SOURCE, "path": str(tmp_path / "in")},
                                     {"format": "json", "path": str(tmp_path / "out")},
                                     str(tmp_path / "checkpoints"), transform="kinds_app.streams:double")


def add(directory: Path, *ids: int) -> None:
    for each in ids:
        (directory / f"new-{each}").write_text(json.dumps({"id": each}))
        (directory / f"new-{each}").rename(directory / "in" / f"{each}.json")


def ids_in(directory: Path, engine: SparkEngine) -> list[int]:
    """As Spark reads them: by its log of a stream's files. A batch that was cancelled leaves files beside it."""
    spark: Any = engine._runtime.session
    return sorted(row["id"] for row in spark.read.schema("id long").json(str(directory / "out")).collect())


def test_a_later_claim_of_a_stream_goes_on_where_the_earlier_one_was(
    claims: Claims, streams: tuple[Path, bytes], engine: SparkEngine
) -> None:
    place, payload = streams
    first = claims.context()
    assert claims.run(payload, first) == {"batches": 2, "rows": 2, "first_batch": 0}
    assert ids_in(place, engine) == [0, 2]
    assert b"2 batches, 2 rows" in b"".join(_entries(first))
    add(place, 2)
    assert claims.run(payload) == {"batches": 1, "rows": 1, "first_batch": 2}
    assert ids_in(place, engine) == [0, 2, 4]
    assert claims.run(payload) == {"batches": 0, "rows": 0, "first_batch": 0}
    other = claims.context(task=2)
    assert claims.run(payload, other)["first_batch"] == 0, "another task begins anew"
    assert {each.name for each in (place / "checkpoints").iterdir()} == {str(first.id), str(other.id)}


def _entries(context: TaskContext) -> list[bytes]:
    context.journal.close(0)
    batch = context.journal.take(0.0, 0)
    return list(batch.entries) if batch is not None else []


def test_a_stream_that_is_cancelled_ends_and_its_next_claim_completes_it(
    claims: Claims, streams: tuple[Path, bytes], engine: SparkEngine
) -> None:
    place, payload = streams
    context = claims.context()
    context.lose("it was cancelled")
    with pytest.raises(ClaimLost):
        claims.run(payload, context)
    assert engine._runtime.session.streams.active == []
    assert claims.run(payload)["rows"] <= 2
    assert ids_in(place, engine) == [0, 2]


def test_an_application_runs_by_spark_submit_with_what_worker_and_task_say(tmp_path: Path) -> None:
    (tmp_path / "more.py").write_text("FACTOR = 3\n")
    (tmp_path / "app.py").write_text(APPLICATION)
    context = Claims(cast(Any, None)).context()
    is_written = threading.Event()
    is_written.set()
    context.log_surely = lambda words: is_written  # type: ignore[method-assign]
    context._task = cast(Any, types.SimpleNamespace(claims=()))
    conf = {"spark.sql.shuffle.partitions": 5}
    call = decode_call(skuld_py.script("app.py", "7", py_files=["more.py"], conf=conf))
    with allowing(Allowed(scripts=tmp_path.resolve(), conf={"spark.master": "local[1]", **QUICK})):
        assert function_of(call)(context, *call.args, **call.kwargs) == "7 3 5 local[1]\n"


APPLICATION = """
import sys
from pyspark.sql import SparkSession
from more import FACTOR
spark = SparkSession.builder.getOrCreate()
print(sys.argv[1], FACTOR, spark.conf.get("spark.sql.shuffle.partitions"), spark.sparkContext.master)
"""
