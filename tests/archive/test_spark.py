"""The archive with a real Spark: what is written comes back, each task once, and only its directories are read."""

from __future__ import annotations

import errno
import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pytest
from click.testing import CliRunner, Result
from pyspark.sql import DataFrame

from archive.ended import DAY_MS, NAMES, NOON_MS, plain
from skuld_py.archive import spark_store
from skuld_py.archive.filters import Filters
from skuld_py.archive.places import LocalPlace, RemotePlace, check_archive, uri_of
from skuld_py.archive.rows import STORED_SCHEMA, day_of, row_of, task_of
from skuld_py.archive.spark_history import VIEW, History
from skuld_py.archive.spark_store import SparkStore, parts, spark
from skuld_py.cli.main import main
from skuld_py.cli.sql_values import document, text
from skuld_py.errors import Refused
from skuld_py.model.body import Retry
from skuld_py.model.ids import TaskId, to_text
from skuld_py.model.task import Task
from skuld_py.verbs import documents
from skuld_py.worker.spark_session import SparkRuntime

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ALL = Filters()
QUICK = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1", "spark.driver.memory": "512m"}
STATES = ("completed", "dead", "cancelled")
TASKS = [plain(number, queue, at_ms=NOON_MS + number % 2 * DAY_MS, state=STATES[number % 3])
         for number, queue in enumerate(NAMES)]
"""A queue for each name that looks like something else, on two days."""
TYPED = {"at": datetime(2026, 11, 20, tzinfo=UTC), "of": (1, Decimal("2.50"), b"\0")}
RICH = attrs.evolve(
    plain(50, "rich"), payload=bytes(range(256)), headers={"é": "\U0001f600", "": "\0"}, retry=Retry(3, 7),
    deps=(TaskId(plain(1).id), TaskId(plain(2).id)), expires_ms=5, not_before_ms=3, due_ms=3, result=TYPED,
    priority=-(1 << 31), claims=(attrs.evolve(plain(0).claims[0], token=(1 << 63) - 1, completed_ms=None),
                                 attrs.evolve(plain(0).claims[0], token=4, log=(), completed_ms=9)),
    completed_ms=9, completed_token=4)


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkRuntime]:
    with spark(tmp_path_factory.mktemp("spark"), QUICK) as made:
        made.start()
        yield made


@pytest.fixture(scope="module")
def root(runtime: SparkRuntime, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two batches; some tasks stand in both, as after a crash."""
    made = tmp_path_factory.mktemp("archive") / "100% ä b=c"
    store(runtime, made, "b1", TASKS)
    store(runtime, made, "b2", [*TASKS[:4], RICH])
    return made


def store(runtime: SparkRuntime, root: Path, batch: str, tasks: list[Task]) -> None:
    place = LocalPlace(root)
    with place.held():
        SparkStore(runtime, place).write(batch, [row_of(task) for task in tasks])


def read(runtime: SparkRuntime, root: Path, filters: Filters = ALL, limit: int | None = None) -> list[Task]:
    found = History(runtime.session, check_archive(str(root)), filters)
    return [task_of(row) for row in found.rows(limit)]


def in_order(tasks: list[Task]) -> list[Task]:
    return sorted(tasks, key=lambda task: bytes(task.id))


@pytest.mark.smoke
def test_every_task_comes_back_as_it_was_and_once(runtime: SparkRuntime, root: Path) -> None:
    assert read(runtime, root) == in_order([*TASKS, RICH])
    raw = runtime.session.read.schema(STORED_SCHEMA).parquet(uri_of(root))
    assert raw.count() == len(TASKS) + 5


def test_the_newest_batch_counts(runtime: SparkRuntime, root: Path) -> None:
    found = History(runtime.session, uri_of(root), Filters())
    batches = {row["id"]: row["batch"] for row in found.rows(columns=("id", "batch"))}

    assert [batches[to_text(task.id)] for task in TASKS[:5]] == ["b2"] * 4 + ["b1"]


def test_directories_are_called_after_batch_queue_and_day_and_hold_one_file_each(root: Path) -> None:
    files = [path.relative_to(root).parts[:-1] for path in root.glob("batch=*/**/*.parquet")]

    wanted = {("batch=b1", f"queue={task.queue}", f"day={day_of(int.from_bytes(task.id[:8], 'big'))}")
              for task in TASKS}
    assert {each for each in files if each[0] == "batch=b1"} == wanted
    assert len(files) == len(set(files)) == len(TASKS) + 5


@pytest.mark.parametrize("queue", ["007", "1e3", "null", "2026-11-22"])
def test_a_queue_that_looks_like_something_else(runtime: SparkRuntime, root: Path, queue: str) -> None:
    assert read(runtime, root, Filters(queue=queue)) == [task for task in TASKS if task.queue == queue]


def test_what_is_asked_for_by_id_queue_state_and_time(runtime: SparkRuntime, root: Path) -> None:
    later = datetime.fromtimestamp((NOON_MS + DAY_MS) / 1000, UTC)

    assert read(runtime, root, Filters(id=TaskId(TASKS[3].id))) == [TASKS[3]]
    assert read(runtime, root, Filters(id=TaskId(plain(9, at_ms=NOON_MS + 7).id))) == []
    assert read(runtime, root, Filters(states=("dead",))) == in_order(TASKS[1::3])
    assert read(runtime, root, Filters(since=later)) == in_order(TASKS[1::2])
    assert read(runtime, root, Filters(until=later)) == in_order([*TASKS[::2], RICH])
    assert read(runtime, root, limit=2) == in_order([*TASKS, RICH])[:2]
    assert History(runtime.session, uri_of(root), Filters(queue="rich")).count() == 1


def partition_filters(frame: DataFrame) -> str:
    """By which of the directories' names Spark chooses what it reads."""
    plan = str(frame._jdf.queryExecution().executedPlan())
    return plan.split("PartitionFilters: [")[1].split("]", maxsplit=1)[0]


def test_only_the_directories_concerned_are_read(runtime: SparkRuntime, root: Path) -> None:
    def filtered(filters: Filters) -> str:
        return partition_filters(History(runtime.session, uri_of(root), filters).frame)

    assert filtered(ALL) == ""
    assert "queue#" in filtered(Filters(queue="007")) and "007" in filtered(Filters(queue="007"))
    assert "day#" in filtered(Filters(id=TaskId(TASKS[5].id)))
    assert "day#" in filtered(Filters(until=datetime.fromtimestamp(NOON_MS / 1000, UTC)))


def test_a_query_reads_only_the_directories_that_it_is_about(runtime: SparkRuntime, root: Path) -> None:
    History(runtime.session, uri_of(root), ALL).frame.createOrReplaceTempView(VIEW)
    asked = runtime.session.sql("SELECT id FROM tasks WHERE queue = '007' AND day > '2000'")

    assert "queue#" in partition_filters(asked) and "day#" in partition_filters(asked)


def test_sql(runtime: SparkRuntime, root: Path) -> None:
    found = History(runtime.session, uri_of(root), Filters())
    names, rows = found.answer("SELECT queue, enqueued, payload, claims[0] AS claim, size(logs) AS n FROM tasks"
        " WHERE queue = '007'")
    row = next(iter(rows))
    shown = document(names, row)

    assert names == ["queue", "enqueued", "payload", "claim", "n"]
    assert (shown["queue"], shown["payload"], shown["n"]) == ("007", "payload 1", 2)
    assert shown["enqueued"] == datetime.fromtimestamp((NOON_MS + DAY_MS) / 1000, UTC).isoformat()[:-6] + "Z"
    assert shown["claim"]["outcome"] == "failed" and shown["claim"]["error"] == "it broke"
    assert text(row[1]) == shown["enqueued"] and '"error": "it broke"' in text(row[3])


@pytest.mark.parametrize(("query", "words"), [
    ("SELEC 1", "SELEC"), ("SELECT nothing FROM tasks", "nothing"), ("SELECT 1 FROM elsewhere", "elsewhere"),
    ("", "sql")])
def test_bad_sql_is_told_with_the_remedy(runtime: SparkRuntime, root: Path, query: str, words: str) -> None:
    found = History(runtime.session, uri_of(root), Filters())

    with pytest.raises(Refused, match="sql: ") as refusal:
        found.answer(query)
    assert words in refusal.value.message and "the table is called tasks" in refusal.value.message
    assert refusal.value.code == "bad_sql" and "\n" not in refusal.value.message


@pytest.mark.parametrize(("query", "words"), [
    ("SELECT raise_error('no more') FROM tasks", "no more"),
    ("SELECT 1 / (attempts - attempts) FROM tasks", "zero"), ("SELECT CAST(id AS INT) FROM tasks", "cast"),
    ("SELECT (SELECT id FROM tasks) FROM tasks", "More than one")])
def test_a_query_that_fails_while_it_runs_is_told(runtime: SparkRuntime, root: Path, query: str, words: str
                                                  ) -> None:
    found = History(runtime.session, uri_of(root), Filters())
    _, rows = found.answer(query)

    with pytest.raises(Refused, match=words) as refusal:
        list(rows)
    assert refusal.value.code == "bad_sql"


def test_a_file_that_is_damaged_is_told(runtime: SparkRuntime, tmp_path: Path) -> None:
    store(runtime, tmp_path, "b1", TASKS[:1])
    file = next(tmp_path.glob("batch=*/**/*.parquet"))
    file.write_bytes(b"PAR1" + b"\0" * 100)

    with pytest.raises(Refused, match="root: ") as refusal:
        read(runtime, tmp_path)
    assert refusal.value.code == "not_read"


def test_what_cannot_be_written_is_told_and_not_there(runtime: SparkRuntime, tmp_path: Path) -> None:
    place = LocalPlace(tmp_path)
    with place.held():
        (tmp_path / ".writing" / "batch=b1").write_bytes(b"in the way")
        with pytest.raises(Refused, match="could not write batch b1"):
            SparkStore(runtime, place).write("b1", [row_of(TASKS[0])])
        (tmp_path / ".writing" / "batch=b1").unlink()
    assert list(tmp_path.glob("batch=*")) == []


def test_a_batch_whose_rows_executors_wrote_elsewhere_is_none(
        runtime: SparkRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have no part in this machine's directory, and Spark says that all is well."""
    write, place = spark_store._write, LocalPlace(tmp_path)
    monkeypatch.setattr(spark_store, "PART_BYTES", 1)

    def elsewhere(session: Any, where: str, rows: list[Any]) -> None:
        write(session, where if rows[0][0] == to_text(TASKS[0].id) else uri_of(tmp_path / "theirs"), rows)
    monkeypatch.setattr(spark_store, "_write", elsewhere)

    with place.held(), pytest.raises(Refused, match="executors do not share this directory") as refusal:
        SparkStore(runtime, place).write("b1", [row_of(task) for task in TASKS[:2]])

    assert refusal.value.code == "not_written" and not list(tmp_path.glob("batch=*"))


def test_a_root_that_spark_cannot_make_is_refused_with_what_it_lacks(runtime: SparkRuntime, tmp_path: Path
                                                                     ) -> None:
    (tmp_path / "file").touch()
    made = RemotePlace(uri_of(tmp_path / "made" / "root"))

    SparkStore(runtime, made).check()
    assert (tmp_path / "made" / "root").is_dir()
    inside = uri_of(tmp_path / "file" / "root")
    for root, why in (("bar://y", "spark.jars.packages="), (inside, "Spark cannot write")):
        with pytest.raises(Refused, match=why) as refusal:
            SparkStore(runtime, RemotePlace(root)).check()
        assert refusal.value.code == "not_written" and "\n" not in refusal.value.message


def test_a_batch_that_is_too_large_for_one_part_goes_in_several() -> None:
    large = [plain(number, payload=b"x" * 1_000) for number in range(5)]

    assert [len(part) for part in parts([*map(row_of, large)], 4_000)] == [2, 2, 1]
    mixed = [row_of(plain(number, payload=b"x" * size)) for number, size in enumerate((1, 9_000, 1))]
    assert [len(part) for part in parts(mixed, 4_000)] == [1, 1, 1]
    assert list(parts([], 1)) == []


def test_several_parts_of_a_batch_are_all_there(
        runtime: SparkRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skuld_py.archive.spark_store.PART_BYTES", 2_000)
    tasks = [plain(number) for number in range(20)]
    store(runtime, tmp_path, "b1", tasks)

    assert read(runtime, tmp_path) == tasks


@pytest.fixture
def shown(runtime: SparkRuntime, root: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs ``skuld history`` on the archive, with this file's Spark."""
    @contextmanager
    def shared(*_: object) -> Iterator[SparkRuntime]:
        yield runtime
    monkeypatch.setattr(spark_store, "spark", shared)

    def run(*options: str) -> Result:
        return CliRunner().invoke(main, ["history", str(root), *options], prog_name="skuld")
    return run


def test_the_verb_lists_counts_and_limits(shown: Callable[..., Result]) -> None:
    listed = shown("--queue", "007").stdout.splitlines()

    assert listed[0].split() == ["ID", "STATE", "ENDED", "ATTEMPTS", "QUEUE", "CALL", "OR", "PAYLOAD"]
    assert listed[1].split()[:2] == [to_text(TASKS[1].id), "dead"] and listed[1].endswith("payload 1")
    assert len(listed) == 2
    assert shown("--count").stdout == f"{len(TASKS) + 1}\n"
    assert json.loads(shown("--count", "--limit", "3", "--json").stdout) == {"count": 3}
    assert len(shown("--limit", "3", "--json").stdout.splitlines()) == 3


def test_the_verb_shows_a_task_as_get_does(shown: Callable[..., Result]) -> None:
    said = shown("--id", to_text(RICH.id), "--json").stdout
    words = shown("--id", to_text(TASKS[0].id)).stdout

    document = json.loads(said)
    known = documents.task(RICH, has_logs=True)
    assert {name: document[name] for name in known} == json.loads(json.dumps(known))
    assert (document["batch"], document["day"]) == ("b2", day_of(NOON_MS))
    assert "payload 0" in words and "begun" in words and "result" in words


def test_the_verb_says_that_a_task_is_not_there(shown: Callable[..., Result]) -> None:
    answer = shown("--id", "0" * 32)

    assert answer.exit_code == 1
    assert "id: no task " in answer.stderr and "'skuld get'" in answer.stderr and "[no_such_task]" in answer.stderr


def test_the_verb_answers_sql_about_what_else_is_asked(shown: Callable[..., Result]) -> None:
    query = "SELECT queue, count(*) AS n, max(payload) AS p FROM tasks GROUP BY ALL ORDER BY queue"
    lines = shown("--state", "dead", "--sql", query, "--limit", "2").stdout.splitlines()
    documents = list(map(json.loads, shown("--queue", "007", "--sql", query, "--json").stdout.splitlines()))
    bad = shown("--sql", "SELECT nothing FROM tasks")

    assert lines[:2] == ["queue\tn\tp", "007\t1\tpayload 1"] and len(lines) == 3
    assert [(each["queue"], each["n"], each["p"]) for each in documents] == [("007", 1, "payload 1")]
    assert bad.exit_code == 1 and "sql: " in bad.stderr and bad.stderr.count("\n") == 1


def test_a_jvm_that_ended_is_told_with_the_remedy_and_replaced_for_the_next_batch(
        runtime: SparkRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = spark_store._write

    def die(*given: Any) -> None:
        os.kill(runtime.process_id, signal.SIGKILL)
        write(*given)
    place = LocalPlace(tmp_path)
    with place.held():
        monkeypatch.setattr(spark_store, "_write", die)
        with pytest.raises(Refused, match=r"spark\.driver\.memory") as refusal:
            SparkStore(runtime, place).write("b1", [row_of(TASKS[0])])
        monkeypatch.setattr(spark_store, "_write", write)
        SparkStore(runtime, place).write("b2", [row_of(TASKS[0])])

    assert refusal.value.code == "not_written"
    assert [path.name for path in tmp_path.glob("batch=*")] == ["batch=b2"]
    assert read(runtime, tmp_path) == TASKS[:1]


def test_a_disk_that_takes_no_more_is_told(
        runtime: SparkRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = LocalPlace(tmp_path)

    def fail(batch: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(place, "finish", fail)

    with place.held(), pytest.raises(Refused, match="No space left on device"):
        SparkStore(runtime, place).write("b1", [row_of(TASKS[0])])
