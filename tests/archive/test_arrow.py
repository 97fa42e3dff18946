"""Rows that this process writes, and rows of the release before, read together as one archive."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from archive.ended import DAY_MS, NAMES, NOON_MS, plain
from skuld_py.archive import arrow_files, spark_store
from skuld_py.archive.arrow_files import table_of, type_of
from skuld_py.archive.arrow_history import ArrowHistory
from skuld_py.archive.arrow_site import Site
from skuld_py.archive.filters import Filters
from skuld_py.archive.live import live
from skuld_py.archive.manifest import Change, Manifest
from skuld_py.archive.places import uri_of
from skuld_py.archive.rows import COLUMNS, SCHEMA_VERSION, day_of, ended_ms, row_of, task_of
from skuld_py.archive.spark_history import History
from skuld_py.archive.spark_store import spark
from skuld_py.cli.history import history
from skuld_py.cli.main import main
from skuld_py.errors import Refused
from skuld_py.model.body import Body, Header
from skuld_py.model.ids import to_text
from skuld_py.model.task import Task
from skuld_py.testing import MemoryClient
from skuld_py.worker.spark_session import SparkRuntime

QUICK = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1", "spark.driver.memory": "512m",
         "spark.sql.shuffle.partitions": "1"}
_CLAIMS = ("array<struct<token: bigint, holder: string, start_ms: bigint, end_ms: bigint, is_released: boolean,"
           " outcome: string, until_ms: bigint, error: binary>>")
OF_688CABF = {
    "id": "string", "priority": "int", "state": "string", "death": "string", "enqueued_ms": "bigint",
    "ended_ms": "bigint", "attempts": "int", "payload": "binary", "result": "binary", "error": "binary",
    "headers": "map<string, string>", "claims": _CLAIMS,
    "logs": "array<struct<token: bigint, seq: bigint, entry: binary>>", "completed_ms": "bigint",
    "completed_token": "bigint", "cancelled_ms": "bigint", "not_before_ms": "bigint", "expires_ms": "bigint",
    "due_ms": "bigint", "retry": "struct<max_attempts: bigint, backoff_ms: bigint, factor_percent: bigint,"
    " backoff_max_ms: bigint, jitter_percent: bigint>", "deps": "array<string>", "seq": "bigint"}
"""The columns in files of the first release that had an archive, as it wrote them, whatever they are today."""
FIRST_RELEASE = Path(__file__).parent / "first-release"
"""What that release itself wrote of the tasks below, by its Spark."""
OLD = [plain(number, NAMES[number % 3], at_ms=NOON_MS + number * DAY_MS // 4, state=state)
       for number, state in zip(range(0, 8, 2), ("completed", "dead", "cancelled", "completed"), strict=True)]
NEW = [attrs.evolve(plain(100 + number, NAMES[number % 4], at_ms=NOON_MS + number * DAY_MS // 4, state=state),
                    key="customer-42" if number % 2 else "")
       for number, state in enumerate(("completed", "dead", "cancelled", "dead", "completed"))]


def write_old(root: Path, batch: str) -> None:
    """As the first release: fewer columns, and a result without a type."""
    for task in OLD:
        row = dict(zip(COLUMNS, row_of(task), strict=True))
        directory = root / f"batch={batch}" / f"queue={row['queue']}" / f"day={row['day']}"
        directory.mkdir(parents=True, exist_ok=True)
        table = table_of([tuple(row.values())], batch)
        columns = [table.column(name).cast(type_of(kind)) for name, kind in OF_688CABF.items()]
        pq.write_table(pa.table(columns, [*OF_688CABF]), directory / f"{row['id']}.parquet")


def write_new(root: Path, batch: str) -> None:
    with Site.held(root) as site:
        site.store.write(batch, [row_of(task, Body(Header(task.queue), key=task.key), "prod", 5) for task in NEW])


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("archive") / "100% ä"
    shutil.copytree(FIRST_RELEASE, made)
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


def test_old_files_that_tests_make_are_as_the_first_release_wrote_them(tmp_path: Path) -> None:
    write_old(tmp_path, "b")
    ours, theirs = ({path.parts[-3:-1]: pq.read_table(path, partitioning=None) for path in root.rglob("*.parquet")}
                    for root in (tmp_path, FIRST_RELEASE))

    assert ours.keys() == theirs.keys() and len(ours) == len(OLD)
    for place, table in theirs.items():
        assert table.schema.names == [*OF_688CABF]
        assert table.cast(ours[place].schema).to_pylist() == ours[place].to_pylist()


def test_types_are_read_from_their_texts() -> None:
    assert type_of("map<string, string>") == pa.map_(pa.string(), pa.string())
    assert type_of("array<struct<a: bigint, b: binary>>") == pa.list_(
        pa.struct([("a", pa.int64()), ("b", pa.binary())]))


def test_what_cannot_be_written_is_refused_and_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")
    monkeypatch.setattr(arrow_files, "writer_of", full)

    with pytest.raises(Refused, match=r"No space left on device; make room there, .*; nothing of it is deleted"):
        write_new(tmp_path, "b1")
    assert not list(tmp_path.rglob("*.parquet")) and not Manifest(tmp_path).exists()


# -- together -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkRuntime]:
    with spark(tmp_path_factory.mktemp("spark"), QUICK) as made:
        made.start()
        yield made


@pytest.fixture(scope="module")
def taken_over(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same archive, whose old files compaction has taken over."""
    made = tmp_path_factory.mktemp("taken-over") / "archive"
    shutil.copytree(root, made)
    with Site.held(made) as site:
        assert site.compact(grace_ms=0).rows == len(OLD)
    return made


@pytest.fixture(params=["side by side", "taken over"])
def place(request: pytest.FixtureRequest, root: Path, taken_over: Path, runtime: SparkRuntime,
          monkeypatch: pytest.MonkeyPatch) -> Path:
    """One of the two; whatever asks Spark of it asks this file's."""
    @contextmanager
    def shared(*_: object) -> Iterator[SparkRuntime]:
        yield runtime
    monkeypatch.setattr(spark_store, "spark", shared)
    return root if request.param == "side by side" else taken_over


def said(*words: str | Path) -> list[str]:
    """The lines of what ``skuld history`` prints."""
    ran = CliRunner().invoke(main, ["history", *map(str, words)], catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    return ran.stdout.splitlines()


EVERY = sorted([*OLD, *NEW], key=lambda task: bytes(task.id))
LATER = datetime.fromtimestamp((NOON_MS + DAY_MS) / 1000, UTC).isoformat()
LATE = [task for task in EVERY if task.enqueued_ms >= NOON_MS + DAY_MS]
CHOOSING: dict[str, list[tuple[list[str], list[Task]]]] = {
    "--id": [([to_text(task.id)], [task]) for task in (OLD[3], NEW[3])],
    "--queue": [([queue], [task for task in EVERY if task.queue == queue]) for queue in NAMES[:2]],
    "--key": [(["customer-42"], [task for task in EVERY if task.key])],
    "--state": [([state], [task for task in EVERY if task.state == state])
                for state in ("completed", "cancelled", "dead")],
    "--since": [([LATER], LATE)], "--until": [([LATER], [task for task in EVERY if task not in LATE])],
    "--limit": [(["3"], EVERY[:3]), (["99"], EVERY)],
    "--conf": [(["spark.sql.shuffle.partitions=1"], EVERY)], "--master": [(["local[1]"], EVERY)],
    "--json": [([], EVERY)],
}
"""Of each option that chooses tasks, or how they are found, values and what they choose."""
QUERY = ("SELECT schema_version AS v, count(*) AS n, count(enqueued) AS e, min(ended) < max(ended) AS d FROM tasks"
         " GROUP BY 1 ORDER BY 1")
SAYING: dict[str, tuple[list[str], list[Any]]] = {
    "--count": ([], [{"count": len(EVERY)}]),
    "--sql": ([QUERY], [{"v": None, "n": len(OLD), "e": len(OLD), "d": True},
                        {"v": SCHEMA_VERSION, "n": len(NEW), "e": len(NEW), "d": True}]),
}
"""Of the others what is said."""
OPTIONS = [option.opts[0] for option in history.params if isinstance(option, click.Option)]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("option", OPTIONS)
def test_rows_of_the_first_release_and_of_this_one_answer_each_option_together(place: Path, option: str) -> None:
    """An option that is new has no answer here, and fails."""
    if option in SAYING:
        values, wanted = SAYING[option]
        assert [json.loads(line) for line in said(place, "--json", option, *values)] == wanted
        assert len(said(place, option, *values)) == len(wanted) + (option == "--sql")
        return
    for values, tasks in CHOOSING[option]:
        asked = [] if option == "--json" else [option, *values]
        ids = [to_text(task.id) for task in tasks]
        assert [json.loads(line)["id"] for line in said(place, "--json", *asked)] == ids, asked
        lines = said(place, *asked)
        shown = lines[0].split()[1:] if option == "--id" else [line.split()[0] for line in lines[1:]]
        assert shown == ids, asked
        assert said(place, "--count", *asked) == [str(len(ids))], asked


@pytest.mark.spark
@pytest.mark.slow
def test_rows_of_the_first_release_are_the_tasks_that_they_were(root: Path, taken_over: Path,
                                                                runtime: SparkRuntime) -> None:
    """It kept no checkpoint."""
    old = {to_text(task.id) for task in OLD}
    wanted = [attrs.evolve(task, checkpoint=None) if to_text(task.id) in old else task for task in EVERY]
    readers = (History(runtime.session, uri_of(root), Filters()), ArrowHistory(live(taken_over), Filters()))
    for rows in ([*reader.rows()] for reader in readers):
        assert [task_of(row) for row in rows] == wanted
        assert all(row["enqueued"] is not None and row["ended"] is not None for row in rows)
        assert {row["schema_version"] for row in rows if row["id"] in old} == {None}


@pytest.mark.spark
@pytest.mark.slow
def test_rows_of_both_releases_are_restored_together(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with MemoryClient() as client:
        @contextmanager
        def connected(*_: object) -> Iterator[MemoryClient]:
            yield client
        monkeypatch.setattr("skuld_py.cli.history_restore.connected", connected)
        lines = said("restore", place, "--json")
        back = [json.loads(client.get(json.loads(line)["new"]).payload)["id"] for line in lines[:-1]]

    assert back == [to_text(task.id) for task in EVERY]


def test_files_of_both_releases_are_printed_once_old_ones_are_taken_over(taken_over: Path) -> None:
    rows = [json.loads(line) for line in said("files", taken_over, "--json")]

    assert sum(row["rows"] for row in rows) == len(EVERY)
    assert {row["queue"] for row in rows} == {task.queue for task in EVERY}


def test_of_a_column_whose_ends_are_alike_the_middle_is_as_it_was() -> None:
    states = table_of([row_of(task) for task in OLD], "a").column("state").to_pylist()
    assert states == ["completed", "dead", "cancelled", "completed"]


def test_what_another_archiver_has_put_meanwhile_is_not_new(tmp_path: Path) -> None:
    rows = [row_of(task, digest=5) for task in OLD]
    with Site.held(tmp_path) as site, Site.held(tmp_path) as other:
        for each in (site, other):
            each.store.begin()
        put, puts = site.manifest.put, list[bool]()

        def late(change: Change) -> bool:
            if not puts:
                assert other.store.write("a", rows) == len(rows)
            puts.append(put(change))
            return puts[-1]
        object.__setattr__(site.manifest, "put", late)
        assert site.store.write("b", rows) == 0
        assert puts == [False]
        assert site.store.write("c", [row_of(NEW[0], digest=5)]) == 1


@pytest.mark.parametrize("fails", ["tell", "shorten"])
def test_what_was_put_counts_as_new_though_what_came_behind_the_put_failed(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    rows = [row_of(task, digest=5) for task in OLD]

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")
    with Site.held(tmp_path) as site:
        site.store.begin()
        with monkeypatch.context() as patch:
            if fails == "tell":
                patch.setattr(site.store, "_tell", full)
            else:
                patch.setattr("skuld_py.archive.manifest.SNAPSHOT_EVERY", 1)
                patch.setattr(site.manifest, "_shorten", full)
            with pytest.raises(Refused, match="No space"):
                site.store.write("a", rows)

        assert [site.store.write("b", rows[:2]), site.store.write("c", rows[2:])] == [2, len(rows) - 2]
        assert site.store.write("d", rows) == 0
