"""How fast an archive answers before and after compaction, and whether others who read its files count right.

Rows of ``--tasks`` tasks in ``--batches`` batches over ``--days`` days are made as columns and put as an archiver
puts them, a file and a change of the manifest each. Then ``skuld history`` looks for an id and counts a day, by
itself and cold; others count the files that ``skuld history files`` prints, and the Delta table; and all again
when ``skuld archive compact`` has run. The machine's load stands beside the figures.

With ``--readers`` DuckDB, pandas and deltalake are installed for the time being, in an environment of their own;
else those of them read that are there. With ``--kills`` compaction is killed at moments that are drawn, as many
times at most, until it comes to its end before; all must be counted right each time.

    scripts/bench layout [--tasks N] [--batches N] [--days N] [--readers] [--kills N]
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import attrs
import numpy
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from skuld_py.archive.arrow_files import SCHEMA, written
from skuld_py.archive.arrow_site import Site, now_ms
from skuld_py.archive.drafts import FILES
from skuld_py.archive.live import live
from skuld_py.archive.manifest import Change
from skuld_py.archive.rows import DAY_MS, SCHEMA_VERSION, day_of
from skuld_py.model.ids import to_texts

QUEUE = "reports"
ID_S_MAX, DAY_S_MAX = 3.0, 5.0
DUCKDB = ("import duckdb, sys; paths = sys.stdin.read().split();"
          " duckdb.execute('SET enable_progress_bar = false');"
          " print(duckdb.execute('SELECT count(*) FROM read_parquet(?)', [paths]).fetchone()[0])")
PANDAS = ("import os, pandas, sys; print(sum(len(pandas.read_parquet(path, columns=['id']))"
          " for path in sys.stdin.read().split()), flush=True); os._exit(0)")
"""Ends at once: of processes that let Arrow's threads be joined at their exit one of five aborts there."""
SPARK = """
import sys
from pyspark.sql import SparkSession
session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False).getOrCreate()
session.sparkContext.setLogLevel("ERROR")
session.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", 16)
print(session.read.parquet(*sys.stdin.read().split()).count())
"""
DELTA = ("import deltalake, sys; table = deltalake.DeltaTable(sys.argv[1]);"
         " print(table.to_pyarrow_dataset().count_rows())")
READERS = {"duckdb": DUCKDB, "pandas": PANDAS, "pyspark": SPARK, "deltalake": DELTA}
PACKAGES = ("duckdb >=1.4, <3", "pandas >=2.2, <4", "deltalake >=1, <2", "pyarrow >=18, <27")
KILLED_WITHIN_S = 2.0, 60.0
"""Of nearly no tasks, and of ten million."""


def table_of(first_ms: int, step_ms: float, count: int, batch: str, seed: int) -> pa.Table:
    """As many tasks of 100 bytes, of which one ended every ``step_ms``."""
    times = (first_ms + numpy.arange(count) * step_ms).astype(numpy.int64)
    tails = numpy.random.default_rng(seed).bytes(12 * count)
    ids = sorted(to_texts(b"".join(int(at_ms).to_bytes(8, "big") + tails[12 * n : 12 * n + 12]
                                   for n, at_ms in enumerate(times))))
    known = {"id": ids, "queue": [QUEUE] * count, "day": [day_of(int(at_ms)) for at_ms in times],
             "state": ["completed"] * count, "enqueued_ms": times, "ended_ms": times + 20,
             "payload": [tails[12 * n : 12 * n + 12] * 9 for n in range(count)], "batch": [batch] * count,
             "schema_version": [SCHEMA_VERSION] * count, "digest": [f"{n:016x}" for n in range(count)],
             "claims": [[]] * count, "logs": [[]] * count, "headers": [[]] * count, "deps": [[]] * count,
             "retry": [{}] * count, "attempts": [1] * count, "priority": [0] * count, "due_ms": [0] * count,
             "seq": [2] * count}
    return pa.Table.from_arrays([pa.array(known[field.name], field.type) if field.name in known
                                 else pa.nulls(count, field.type) for field in SCHEMA], schema=SCHEMA)


def fill(site: Site, tasks: int, batches: int, days: int, first_ms: int) -> str:
    """Put all of it; one of the ids in the middle."""
    each, step_ms = tasks // batches, days * DAY_MS / tasks
    chosen = ""
    for number in range(batches):
        at_ms = first_ms + round(number * each * step_ms)
        table = table_of(at_ms, step_ms, each, f"b{number:06}", number)
        day = day_of(at_ms)
        draft, path = site.drafts.path(f"b{number}"), f"{FILES}/{day}/{QUEUE}/b{number:06}.parquet"
        file = written(table, draft, path, day, is_open=False)
        place = site.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        draft.rename(place)
        assert site.manifest.put(Change(now_ms(), (file,)))
        if number == batches // 2:
            chosen = table.column("id")[each // 2].as_py()
    return chosen


@attrs.frozen
class Answer:
    """How long a program took, how long it had a processor, and the last line that it said."""

    took_s: float
    cpu_s: float
    line: str


def asked(*words: str, given: str | None = None, python: str = sys.executable) -> Answer:
    """Run a program of Python."""
    began_s, before = time.perf_counter(), os.times()
    told = subprocess.run([python, *words], input=given, capture_output=True, text=True, check=True).stdout
    after = os.times()
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return Answer(time.perf_counter() - began_s, cpu_s, (told.splitlines() or [""])[-1])


def readers_of(place: Path | None) -> dict[str, str]:
    """The Python that has each reader; those that this one has not are installed at a place, if there is one."""
    others = [sys.executable]
    if place is not None:
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        others.append(str(place / "bin" / "python"))
        subprocess.run([others[-1], "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    return {name: python for python in others for name in READERS
            if not subprocess.run([python, "-c", f"import {name}"], capture_output=True, check=False).returncode}


def kill_compactions(root: Path, tasks: int, times: int) -> None:
    """Kill it so many times, and count; less often, where one comes to its end: then nothing is left to do."""
    chance, (least_s, most_s) = random.Random(5), KILLED_WITHIN_S
    kills, has_ended = 0, False
    while kills < times and not has_ended:
        with subprocess.Popen([sys.executable, "-m", "skuld_py", "archive", "compact", str(root), "--grace", "0s"],
                              stdout=subprocess.DEVNULL) as running:
            wait_s = chance.random() * (least_s + most_s * tasks / 10_000_000)
            try:
                running.wait(wait_s)
            except subprocess.TimeoutExpired:
                running.send_signal(signal.SIGKILL)
        assert running.returncode in (0, -signal.SIGKILL), running.returncode
        has_ended = running.returncode == 0
        kills += not has_ended
        found = asked("-m", "skuld_py", "history", str(root), "--count").line
        left = len(live(root).files)
        print(f"compaction {'ended within' if has_ended else 'killed after'} {wait_s:.1f} s: {found} tasks in"
              f" {left} files", file=sys.stderr)
        assert found == str(tasks) and all(path.exists() for path in live(root).paths)
    print(f"compaction killed {kills} of {times} times before it came to its end", file=sys.stderr)


def measure(root: Path, task_id: str, day: datetime, tasks: int, table: Table, when: str,
            readers: dict[str, str]) -> bool:
    """A line for each question; whether all were answered rightly and in time."""
    def add(what: str, answer: Answer, is_right: bool, most_s: float | None = None) -> bool:
        is_soon = most_s is None or answer.took_s <= most_s
        table.add_row(when, what, f"{answer.took_s:.2f} s", f"{answer.cpu_s:.2f} s",
                      "" if most_s is None else f"at most {most_s:g} s", "yes" if is_right else "no",
                      f"{os.getloadavg()[0]:.1f}")
        return is_right and is_soon
    history = ("-m", "skuld_py", "history")
    answer = asked(*history, str(root), "--id", task_id, "--json")
    good = [add("history --id", answer, task_id in answer.line, ID_S_MAX)]
    bounds = ("--since", day.isoformat(), "--until", (day + timedelta(days=1)).isoformat())
    answer = asked(*history, str(root), *bounds, "--count")
    good.append(add(f"history --count of a day ({answer.line})", answer, int(answer.line) > 0, DAY_S_MAX))
    answer = asked(*history, str(root), "--count")
    good.append(add("history --count", answer, answer.line == str(tasks)))
    answer = asked(*history, "files", str(root))
    paths = subprocess.run([sys.executable, *history, "files", str(root)], capture_output=True, text=True,
                           check=True).stdout
    good.append(add(f"history files ({len(paths.splitlines())})", answer, bool(paths)))
    for name, python in readers.items():
        answer = asked("-c", READERS[name], str(root), given=paths, python=python)
        good.append(add(f"{name} counts", answer, answer.line == str(tasks)))
    return all(good)


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench layout")
    parser.add_argument("--tasks", type=int, default=10_000_000)
    parser.add_argument("--batches", type=int, default=10_000)
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--readers", action="store_true", help="install those that are not there")
    parser.add_argument("--kills", type=int, default=0)
    options = parser.parse_args()
    tasks = options.tasks // options.batches * options.batches
    first = datetime(2026, 11, 1, tzinfo=UTC)
    table = Table("layout", "question", "took", "processor", "wanted", "right", "load")
    os.fsync = lambda fd: None  # it is reading that is measured, and ten thousand batches are many
    with tempfile.TemporaryDirectory(prefix="skuld-layout-") as scratch:
        root = Path(scratch) / "archive"
        readers = readers_of(Path(scratch) / "readers" if options.readers else None)
        with Site.held(root, begins_delta=True) as site:
            began_s = time.perf_counter()
            chosen = fill(site, tasks, options.batches, options.days, round(first.timestamp() * 1000))
            site.delta.follow()
            print(f"{tasks:,} tasks in {options.batches:,} batches, put in {time.perf_counter() - began_s:.0f} s",
                  file=sys.stderr)
        day = first + timedelta(days=options.days // 2)
        good = measure(root, chosen, day, tasks, table, "before compaction", readers)
        Console().print(table)
        kill_compactions(root, tasks, options.kills)
        answer = asked("-m", "skuld_py", "archive", "compact", str(root), "--grace", "0s")
        table.add_row("", answer.line, f"{answer.took_s:.0f} s", f"{answer.cpu_s:.0f} s", "", "",
                      f"{os.getloadavg()[0]:.1f}")
        good = measure(root, chosen, day, tasks, table, "after compaction", readers) and good
    Console().print(table)
    sys.exit(not good)


if __name__ == "__main__":
    main()
