"""Files below one manifest that releases with other columns have written: those of an earlier one are read and
compacted, those of a later one lose nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from archive.ended import NOON_MS, plain
from archive.test_layout import blob, ids_of, kept, rows_of
from skuld_py.archive.arrow_files import SCHEMA
from skuld_py.archive.arrow_history import ArrowHistory
from skuld_py.archive.arrow_site import Site
from skuld_py.archive.filters import Filters
from skuld_py.archive.live import live
from skuld_py.archive.rows import task_of
from skuld_py.cli.main import main

EARLIER, TODAYS, LATER = ([plain(100 * kind + number, at_ms=NOON_MS) for number in range(4)] for kind in range(3))
UNKNOWN_THEN, UNKNOWN_NOW = ["outputs", "arguments", "schema_version"], "mood"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Of one day and one queue two files of an earlier release, two of this one, and two of a later one."""
    with Site.held(tmp_path) as made:
        made.store.begin()
        for kind, tasks in enumerate((EARLIER, TODAYS, LATER)):
            for half in range(2):
                made.store.write(f"b{kind}{half}", rows_of(tasks[half::2]))
        for path in live(tmp_path).paths:
            table = pq.read_table(path, partitioning=None)
            if path.name.startswith("b0"):
                pq.write_table(table.drop_columns(UNKNOWN_THEN), path)
            elif path.name.startswith("b2"):
                pq.write_table(table.append_column(UNKNOWN_NOW, pa.array(["glad"] * table.num_rows)), path)
        yield made


def test_all_of_them_answer(site: Site, tmp_path: Path) -> None:
    every = [*EARLIER, *TODAYS, *LATER]
    rows = {row["id"]: row for row in ArrowHistory(live(tmp_path), Filters()).rows()}

    assert {task_of(row).id for row in rows.values()} == {task.id for task in every}
    assert {row["schema_version"] for row in rows.values()} == {None, 2}
    assert all(UNKNOWN_NOW not in row for row in rows.values())
    for options, count in (((), 12), (("--state", "completed"), 12), (("--id", ids_of(EARLIER)[0]), 1),
                           (("--queue", "q", "--until", "2000-01-01T00:00Z"), 0)):
        said = CliRunner().invoke(main, ["history", str(tmp_path), "--json", *options], catch_exceptions=False)
        assert len(list(map(json.loads, said.stdout.splitlines()))) == count, options


def test_earlier_ones_are_compacted_with_todays_and_later_ones_left_to_later_releases(
        site: Site, tmp_path: Path) -> None:
    site.store.settled(blob([*EARLIER, *TODAYS, *LATER]))
    site.store.end(is_whole=False)
    before = {path for path in live(tmp_path).paths if path.name.startswith("b2")}

    assert site.compact().files == 4

    assert kept(tmp_path) == ids_of([*EARLIER, *TODAYS, *LATER])
    merged, = {*live(tmp_path).paths} - before
    found = pq.read_table(merged, partitioning=None)
    assert found.schema.names == SCHEMA.names and found.num_rows == 8
    assert sorted(found.column("schema_version").to_pylist(), key=str) == [2] * 4 + [None] * 4
    assert len(before) == 2 and before <= {*live(tmp_path).paths}


def test_what_stays_when_a_task_goes_out_of_a_later_ones_file_keeps_all(site: Site, tmp_path: Path) -> None:
    site.store.write("b3", rows_of(LATER[:1], digest=6))

    rows = [row for path in live(tmp_path).paths for row in pq.read_table(path, partitioning=None).to_pylist()]
    assert {row["id"]: row[UNKNOWN_NOW] for row in rows if UNKNOWN_NOW in row} == dict.fromkeys(
        ids_of(LATER[1:]), "glad")
    assert kept(tmp_path) == ids_of([*EARLIER, *TODAYS, *LATER])
