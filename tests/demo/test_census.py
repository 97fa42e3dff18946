"""The census on a few made archives: the job and the independent count agree, and jar hell is named."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from pyspark.sql import SparkSession

import skuld_py
from skuld_py.demo import census
from skuld_py.demo.census import Package, Summary, Totals, find_archives, grouped
from skuld_py.demo.screen import harmless
from skuld_py.errors import Refused
from skuld_py.testing import MemoryClient, MemoryCluster
from skuld_py.worker.spark_session import SparkRuntime


def archive(path: Path, **entries: bytes) -> Path:
    """An archive whose entries' names have ``/`` for ``__`` and ``.`` for ``_``."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in entries.items():
            made.writestr(name.replace("__", "/").replace("_", "."), content)
    return path


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three good archives, an empty one, one cut short, one that is no archive, one with odd bytes in front."""
    place = tmp_path_factory.mktemp("archives")
    one = archive(place / "one.jar", acme__A_class=b"first", acme__B_class=b"same", readme_txt=b"x" * 1000,
                  **{"META-INF__versions__11__acme__A_class": b"for 11", "module-info_class": b"one"})
    two = archive(place / "two.jar", acme__A_class=b"second", acme__B_class=b"same",
                  **{"META-INF__versions__11__acme__A_class": b"other", "module-info_class": b"two"})
    three = archive(place / "three.whl", acme__A_class=b"third!", acme__deep__C_class=b"c")
    archive(place / "empty.zip")
    (place / "cut.jar").write_bytes(one.read_bytes()[:-30])
    (place / "text.zip").write_text("this is no archive")
    (place / "prefixed.zip").write_bytes(b"#!/bin/sh\n" + two.read_bytes())
    (place / "notes.txt").write_text("not looked at")
    assert three.exists()
    return find_archives(place)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> MemoryClient:
    """Of a cluster in memory; the tasks' own are clients of the same."""
    cluster = MemoryCluster()
    monkeypatch.setattr("skuld_py.client.client.Client", cluster.client)
    return cluster.client()


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session; the one of this process when another test keeps one."""
    if SparkSession._instantiatedSession is not None:
        yield SparkSession._instantiatedSession
        return
    runtime = SparkRuntime(tmp_path_factory.mktemp("spark"), slots=2, conf={
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1", "spark.driver.memory": "512m"})
    yield runtime.start()
    runtime.stop()


TOTALS = Totals(archives=7, damaged=2, entries=5 + 4 + 4 + 2, classes=4 + 4 + 4 + 2, bytes=1061)


def test_archives_are_found_by_their_names_in_a_fixed_order(archives: list[Path], tmp_path: Path) -> None:
    assert [path.name for path in archives] == [
        "cut.jar", "empty.zip", "one.jar", "prefixed.zip", "text.zip", "three.whl", "two.jar"]
    with pytest.raises(Refused, match="name a directory"):
        find_archives(tmp_path)


def test_groups_hold_every_archive_once(archives: list[Path]) -> None:
    groups = grouped(archives, 3)
    assert len(groups) == 3
    assert sorted(path for group in groups for path in group) == sorted(map(str, archives))
    assert len(grouped(archives, 99)) == len(archives)


def test_the_independent_count(archives: list[Path]) -> None:
    assert census.count_independently(archives) == TOTALS


def test_packages_are_those_of_the_class_whatever_its_java() -> None:
    assert census.package_of("acme/deep/C.class") == "acme.deep"
    assert census.package_of("META-INF/versions/11/acme/A.class") == "acme"
    assert census.package_of("Main.class") == ""


def test_names_cannot_move_the_cursor() -> None:
    assert harmless("a\x1b[2Jb\u202e") == "a\\x1b[2Jb\\u202e"


@pytest.mark.spark
@pytest.mark.slow
def test_the_job_agrees_and_names_what_differs(
    archives: list[Path], spark: SparkSession, client: MemoryClient, tmp_path: Path
) -> None:
    def ran(function: Any, *values: Any) -> list[Any]:
        for value in values:
            client.enqueue("census", function.call(value, str(tmp_path / function.__name__)))
        return [ran.value for ran in client.run_until_empty("census", spark=spark)]
    results = ran(census.read, *grouped(archives, 2))
    assert sum(result["entries"] for result in results) == TOTALS.entries
    assert sum(result["damaged"] for result in results) == 2
    joined, = ran(census.join, results)
    found, = ran(census.duplicates, joined)
    count, = ran(census.report, found)
    report = [*client.list("census")][-1].id

    written = {Path(file.path).name: Path(file.path) for file in skuld_py.output_files(report, client=client)}
    summary = Summary.from_json(written["report.json"].read_text())

    assert count == found["count"] == len(summary.conflicts)
    picture = ElementTree.parse(written["packages.svg"]).getroot()
    assert len(picture.findall("{http://www.w3.org/2000/svg}rect")) == len(summary.packages)
    assert summary.totals == census.count_independently(archives) == TOTALS
    assert summary.packages[0] == Package("acme", 10, 51)
    assert {package.name for package in summary.packages} == {"acme", "acme.deep", ""}
    one, prefixed, three, two = (str(archives[at]) for at in (2, 3, 5, 6))
    assert [(found.entry, found.archive, found.other) for found in summary.conflicts] == [
        ("acme/A.class", one, prefixed), ("acme/A.class", one, three), ("acme/A.class", one, two),
        ("acme/A.class", prefixed, three), ("acme/A.class", three, two)]
    assert all(found.crc != found.other_crc for found in summary.conflicts)


def test_damaged_archives_are_rows_that_say_why(archives: list[Path]) -> None:
    rows = {Path(path).name: list(census.read_directory(str(path))) for path in archives}
    assert [row[7] for row in rows["text.zip"]] == [True]
    assert "BadZipFile" in str(rows["cut.jar"][0][8])
    assert [row[1] for row in rows["empty.zip"]] == [None]
