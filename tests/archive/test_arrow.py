"""Rows that this process writes, and rows of the release before, read together as one archive."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from archive.ended import DAY_MS, NAMES, NOON_MS, plain
from skuld_py.archive import arrow_files, spark_store
from skuld_py.archive.arrow_files import table_of, type_of
from skuld_py.archive.arrow_site import Site
from skuld_py.archive.filters import Filters
from skuld_py.archive.manifest import Manifest
from skuld_py.archive.places import uri_of
from skuld_py.archive.rows import COLUMNS, PARTITIONED_BY, SCHEMA_VERSION, day_of, ended_ms, row_of, task_of
from skuld_py.archive.spark_history import History
from skuld_py.archive.spark_store import spark
from skuld_py.cli.main import main
from skuld_py.errors import Refused
from skuld_py.model.ids import to_text
from skuld_py.worker.spark_session import SparkRuntime

QUICK = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1", "spark.driver.memory": "512m",
         "spark.sql.shuffle.partitions": "1"}
OF_688CABF = [*COLUMNS][: [*COLUMNS].index("result_type")]
"""The columns of the first release that had an archive."""
OLD = [plain(number, NAMES[number % 3], at_ms=NOON_MS + number * DAY_MS // 4) for number in range(0, 8, 2)]
NEW = [plain(100 + number, NAMES[number % 4], at_ms=NOON_MS + number * DAY_MS // 4, state=state)
       for number, state in enumerate(("completed", "dead", "cancelled", "dead", "completed"))]


def write_old(root: Path, batch: str) -> None:
    """As the first release: fewer columns, and a result without a type."""
    for task in OLD:
        row = dict(zip(COLUMNS, row_of(task), strict=True))
        directory = root / f"batch={batch}" / f"queue={row['queue']}" / f"day={row['day']}"
        directory.mkdir(parents=True, exist_ok=True)
        table = table_of([tuple(row.values())], batch)
        pq.write_table(table.select([name for name in OF_688CABF if name not in PARTITIONED_BY]),
                       directory / f"{row['id']}.parquet")


def write_new(root: Path, batch: str) -> None:
    with Site.held(root) as site:
        site.store.write(batch, [row_of(task, cluster="prod", digest=5) for task in NEW])


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("archive") / "100% ä"
    made.mkdir()
    write_old(made, "20251101T000000.000Z-00000000")
    write_new(made, "20261101T000000.000Z-00000000")
    return made


def test_files_lie_by_day_of_the_end_and_queue_sorted_and_with_statistics(root: Path) -> None:
    files = sorted(root.glob("files/**/*.parquet"))

    assert len(files) == len({(task.queue, day_of(ended_ms(task) or 0)) for task in NEW})
    assert {path.parts[-2] for path in files} == {task.queue for task in NEW}
    assert {root / path for path in Manifest(root).refresh().files} == set(files)
    for path in files:
        found = pq.read_table(path, partitioning=None)
        assert found.column("id").to_pylist() == sorted(found.column("id").to_pylist())
        assert pq.ParquetFile(path).metadata.row_group(0).column(0).statistics.has_min_max
        assert set(found.column("cluster").to_pylist()) == {"prod"}
        assert found.schema.field("ended").type == pa.timestamp("ms", "UTC")
    assert not list((root / "_writing").iterdir())


def test_types_are_read_from_their_texts() -> None:
    assert type_of("map<string, string>") == pa.map_(pa.string(), pa.string())
    assert type_of("array<struct<a: bigint, b: binary>>") == pa.list_(
        pa.struct([("a", pa.int64()), ("b", pa.binary())]))


def test_what_cannot_be_written_is_refused_and_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")
    monkeypatch.setattr(arrow_files, "writer_of", full)

    with pytest.raises(Refused, match="No space left on device; nothing of it is deleted"):
        write_new(tmp_path, "b1")
    assert not list(tmp_path.rglob("*.parquet")) and not Manifest(tmp_path).exists()


# -- together -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkRuntime]:
    with spark(tmp_path_factory.mktemp("spark"), QUICK) as made:
        made.start()
        yield made


@pytest.fixture
def ask(root: Path, runtime: SparkRuntime, monkeypatch: pytest.MonkeyPatch) -> Any:
    """``skuld history`` with these options; the lines of its answer."""
    @contextmanager
    def shared(*_: object) -> Iterator[SparkRuntime]:
        yield runtime
    monkeypatch.setattr(spark_store, "spark", shared)

    def answer(*options: str) -> list[Any]:
        ran = CliRunner().invoke(main, ["history", str(root), "--json", *options], catch_exceptions=False)
        assert ran.exit_code == 0, ran.output
        return [json.loads(line) for line in ran.stdout.splitlines()]
    return answer


@pytest.mark.spark
@pytest.mark.slow
def test_rows_of_the_first_release_and_of_this_one_answer_every_option_together(
        ask: Any, root: Path, runtime: SparkRuntime) -> None:
    every = sorted([*OLD, *NEW], key=lambda task: bytes(task.id))
    found = [*History(runtime.session, uri_of(root), Filters()).rows()]
    assert [task_of(row).id for row in found] == [task.id for task in every]
    new = {to_text(task.id): task for task in NEW}
    assert [task_of(row) for row in found if row["id"] in new] == [
        task for task in every if to_text(task.id) in new]
    assert {row["schema_version"] for row in found if row["id"] not in new} == {None}
    assert all(row["enqueued"] is not None and row["ended"] is not None for row in found)

    later = datetime.fromtimestamp((NOON_MS + DAY_MS) / 1000, UTC).isoformat()
    late = [task for task in every if task.enqueued_ms >= NOON_MS + DAY_MS]
    assert ask("--count") == [{"count": len(every)}]
    assert [row["id"] for task in (OLD[3], NEW[3]) for row in ask("--id", to_text(task.id))] == [
        to_text(OLD[3].id), to_text(NEW[3].id)]
    for options, wanted in (
        (("--queue", "007"), [task for task in every if task.queue == "007"]),
        (("--state", "dead"), [task for task in every if task.state == "dead"]),
        (("--since", later), late), (("--until", later), [task for task in every if task not in late]),
        (("--limit", "3"), every[:3]),
    ):
        assert [row["id"] for row in ask(*options)] == [to_text(task.id) for task in wanted], options
    query = ("SELECT schema_version AS v, count(*) AS n, min(ended) < max(ended) AS d FROM tasks GROUP BY 1"
             " ORDER BY 1")
    assert ask("--sql", query) == [{"v": None, "n": len(OLD), "d": True},
                                   {"v": SCHEMA_VERSION, "n": len(NEW), "d": True}]
