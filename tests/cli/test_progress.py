"""How far claims are, as people see it: sentences and bars of what was logged, whatever bytes that is."""

from __future__ import annotations

import json
import re
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from skuld_py.cli import get, log
from skuld_py.cli.bars import bars, short_bar
from skuld_py.cli.running import Running, with_progress
from skuld_py.client.asking import Ask
from skuld_py.client.json_text import is_harmless
from skuld_py.errors import Uncertain
from skuld_py.model.task import ClaimView, LogEntry, Task
from skuld_py.testing import MemoryClient
from skuld_py.verbs.progress import Progress, followed, progress_of, sentence, time_of
from skuld_py.verbs.words import moment
from skuld_py.worker.journal import encode_entry

AT_MS = 1_763_683_200_000


def entry(kind: str = "progress", **fields: Any) -> bytes:
    return encode_entry(kind, AT_MS, **fields)


def of_spark(stages: list[int], tasks: list[int], **more: Any) -> bytes:
    return entry(spark={"jobs": 2, "stages": stages, "tasks": tasks, **more})


def drawn(what: Any, width: int = 70, **options: Any) -> list[str]:
    """What a console of this width shows."""
    out = StringIO()
    Console(file=out, width=width, markup=False, highlight=False, emoji=False, **options).print(what)
    return [line.rstrip() for line in out.getvalue().splitlines()]


# -- sentences --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("data", "words"), [
    (entry("log", text="42 files"), "42 files"),
    (entry("log", checkpoint=17, path="/a"), '{"checkpoint": 17, "path": "/a"}'),
    (entry("log", text=5), '{"text": 5}'),
    (entry(done=3, total=10, note="warming up"), "3/10, warming up"),
    (entry(done=1234.5, total=0, note=""), "1,234.50"),
    (entry(note="only words", done=None, total=None), "only words"),
    (of_spark([1, 3], [40, 60], rows=[1_000_000, 10], bytes=[30_000_000, 0]),
     "2 Spark jobs, stages 1/3, tasks 40/60, read 1,000,000 rows (30.0 MB), written 10 rows"),
    (entry("log", out="rows 100\n"), "out: rows 100"),
    (entry("log", out="a\nb\n", err="\x1b[2J", left_out=9),
     "out, some left out: a\\nb; err, some left out: \\x1b[2J"),
    (entry("log", out="mine", rows=3), '{"out": "mine", "rows": 3}'), (entry("log", out=1), '{"out": 1}'),
    (entry("log", driver={"machine": {"host": "a\x1b"}, "driver": {"id": 7}}), "driver 7 on a\\x1b"),
    (entry("log", driver="no"), '{"driver": "no"}'),
    (entry("log", driver_ended="x:1", status=3), "the driver ended with status 3"),
    (entry("released", reason="the worker stops"), "given back: the worker stops"),
    (entry("engine_died", what="ended"), "Spark's JVM ended under it"),
    (b"plain words", "plain words"), (b"\xff\x00", "base64:/wA="), (b"[1]", "[1]"), (b"", ""),
    (b'{"kind":"new","a":1}', '{"kind":"new","a":1}'), (b'{"kind":"progress"}', '{"kind":"progress"}'),
    (b'{"kind":["log"]}', '{"kind":["log"]}'),
    (b'{"kind":"released","reason":[1]}', '{"kind":"released","reason":[1]}'),
    (b'{"kind":"progress","done":NaN,"total":1e400,"spark":7}',
     '{"kind":"progress","done":NaN,"total":1e400,"spark":7}'),
    (entry("log", text="two\nlines \x1b[2J \u202e"), "two\\nlines \\x1b[2J \\u202e"),
    (entry("log", **{"\x9b31m": "\x1b]0;title\x07"}), '{"\\u009b31m": "\\u001b]0;title\\u0007"}'),
    (entry(done=1, total=2, note="\x1b[31m"), "1/2, \\x1b[31m")])
def test_an_entry_in_words(data: bytes, words: str) -> None:
    assert sentence(data) == words


def test_times_are_local_and_what_is_none_is_left_out() -> None:
    assert time_of(entry("log", text="x")) == moment(AT_MS)
    for at_ms in ("5", -1, 1e400, 10**30, True, None):
        assert time_of(json.dumps({"kind": "log", "at_ms": at_ms}).encode()) == ""
    assert time_of(b"words") == ""


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner,
                                                                                max_size=3),
                    max_leaves=8)
HOSTILE = st.binary(max_size=60) | st.fixed_dictionaries(
    {"kind": st.sampled_from(["log", "progress", "released", "engine_died"]) | JSON},
    optional=dict.fromkeys(("at_ms", "text", "done", "total", "note", "reason", "what"), JSON) | {
        "spark": st.dictionaries(st.sampled_from(["jobs", "stages", "tasks", "rows", "bytes"]), JSON)}).map(
    lambda made: json.dumps(made).encode())


@given(st.lists(HOSTILE, max_size=5))
def test_whatever_was_written_moves_no_cursor(entries: list[bytes]) -> None:
    seen = progress_of(7, entries)
    lines = [log.line_of(LogEntry(7, seq, data)) for seq, data in enumerate(entries)]
    lines += drawn(bars(seen)) if seen is not None else []
    lines += [short_bar(seen)[1]]

    assert all(is_harmless(char) or char == "\t" for line in lines for char in line)


# -- how far ------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=20))
def test_bars_of_spark_never_go_back(counts: list[tuple[int, int]]) -> None:
    seen: Progress | None = None
    before = 0.0
    for done, known in counts:
        seen = followed(seen, 7, of_spark([done, known], [done, known]))
        now = 0.0 if seen is None or seen.tasks is None else seen.tasks.filled
        assert now >= before
        before = now


def test_more_that_is_known_shows_in_the_counts_alone() -> None:
    whole = followed(None, 7, of_spark([1, 1], [8, 8]))
    more = followed(whole, 7, of_spark([1, 2], [8, 28]))

    assert more is not None and more.tasks is not None
    assert (str(more.tasks), more.tasks.filled) == ("8/28", 1.0)


def test_what_a_task_says_of_itself_is_drawn_as_it_says_it() -> None:
    seen = progress_of(7, [entry(done=8, total=8, note="a"), entry(done=1, total=8, note="b")])

    assert seen is not None and seen.own is not None and (seen.own.filled, seen.note) == (1 / 8, "b")


def test_another_claim_begins_anew_and_other_entries_change_nothing() -> None:
    first = followed(None, 7, of_spark([1, 1], [8, 8]))
    assert followed(first, 7, entry("log", text="x")) == first
    assert followed(first, 7, b'{"kind":"progress"}') == first
    assert followed(first, 8, entry("log", text="x")) is None

    second = followed(first, 8, of_spark([0, 1], [1, 8]))
    assert second is not None and second.tasks is not None and second.tasks.filled == 1 / 8


def test_almost_done_is_not_drawn_as_done() -> None:
    for done, cells in ((9_999, "━━━━━━━━━╸"), (10_000, "━━━━━━━━━━"), (12_000, "━━━━━━━━━━")):
        assert drawn(short_bar(followed(None, 7, entry(done=done, total=10_000)))[0]) == [cells]


# -- bars ---------------------------------------------------------------------------------------------


def test_each_part_is_a_bar_with_its_counts() -> None:
    seen = progress_of(7, [entry(done=3, total=10, note="warming up", spark={
        "jobs": 2, "stages": [1, 3], "tasks": [40, 60], "rows": [1_000_000, 10], "bytes": [30_000_000, 0]})])
    assert seen is not None

    assert drawn(bars(seen)) == [
        "done     ━━━━━━━━━                       3/10  warming up",
        "stages   ━━━━━━━━━━                      1/3 of 2 Spark jobs",
        "tasks    ━━━━━━━━━━━━━━━━━━━━            40/60",
        "read                                     1,000,000 rows (30.0 MB)",
        "written                                  10 rows"]


def test_without_an_end_there_is_no_bar() -> None:
    seen = progress_of(7, [entry(done=17, total=0, note="still going")])
    assert seen is not None

    assert drawn(bars(seen)) == ["done    17  still going"]
    assert short_bar(seen) == ("", "17") and short_bar(None) == ("", "")


def test_a_short_bar_is_of_what_the_task_says_or_else_of_sparks_tasks() -> None:
    own = followed(None, 7, entry(done=1, total=2, note="", spark={"jobs": 1, "stages": [0, 1], "tasks": [1, 4]}))
    spark = followed(None, 7, of_spark([0, 1], [1, 4]))

    assert [short_bar(seen)[1] for seen in (own, spark)] == ["1/2", "1/4"]
    assert drawn(short_bar(own)[0]) == ["━━━━━"]


# -- get and top --------------------------------------------------------------------------------------


def claimed(*log: bytes, state: str = "claimed") -> Task:
    older = ClaimView(6, "one:1", AT_MS - 9_000, AT_MS - 5_000, False, None, (entry(done=9, total=9),))
    newer = ClaimView(7, "two:2", AT_MS, AT_MS + 60_000, False, None, log)
    return Task(bytes(20), "general", 0, b"x", (older, newer), state=state)


def test_get_draws_how_far_the_claim_is_that_is_held_and_the_log_in_words(
    capsys: pytest.CaptureFixture[str]
) -> None:
    get.show_task(claimed(entry("log", text="begun"), entry(done=3, total=4, note="a")), AT_MS + 2_000)

    out = capsys.readouterr().out
    assert "progress of claim 7, 2 s ago\ndone  ━━━━━━━━━" in out and out.count("progress of") == 1
    assert re.search(rf"7 +0 +{re.escape(moment(AT_MS))} +begun", out) and "3/4, a" in out and "9/9" in out


@pytest.mark.parametrize("task", [
    claimed(), claimed(b"words"), claimed(entry(done=1, total=2), state="completed")])
def test_get_draws_nothing_of_a_task_that_says_nothing_or_is_over(
    task: Task, capsys: pytest.CaptureFixture[str]
) -> None:
    get.show_task(task, AT_MS)

    assert "progress of" not in capsys.readouterr().out


def test_top_finds_how_far_what_runs_is_and_shows_it_to_people_alone() -> None:
    with MemoryClient() as client:
        task_id = client.enqueue("shop", b"x")
        claim, = client.claim("shop", n=1)
        client.update(claim, [entry(done=1, total=4, note="a")])
        connection: Any = SimpleNamespace(
            next_request=lambda: 1,
            call=lambda question, *_, **__: client._perform(Ask(question)).message)
        row = Running(str(task_id), "shop", None, "w", AT_MS)

        found, = with_progress(connection, (row,), AT_MS, 1.0)

    assert short_bar(found.progress)[1] == "1/4"
    assert with_progress(SimpleNamespace(next_request=lambda: 1, call=_fail), (row,), AT_MS, 1.0) == (row,)  # type: ignore[arg-type]


def _fail(*_: object, **__: object) -> None:
    raise Uncertain("deadline", "no answer")


# -- following ----------------------------------------------------------------------------------------


ENTRIES = [LogEntry(7, 0, entry("log", text="begun")), LogEntry(7, 1, entry(done=1, total=2)),
           LogEntry(7, 2, entry("log", text="half \x1b[2J")), LogEntry(7, 3, entry(done=2, total=2))]


def test_a_terminal_has_bars_while_the_log_goes_on_and_the_newest_in_words_at_its_end() -> None:
    out = StringIO()
    terminal = Console(file=out, width=60, force_terminal=True, color_system=None, markup=False)
    during: list[str] = []

    def entries() -> Any:
        for each in ENTRIES:
            yield each
            during.append(out.getvalue())

    log.draw(terminal, entries())

    assert "begun" in during[0] and "━" not in during[0]
    assert "1/2" in during[1] and "━━━" in during[1] and "1/2" not in out.getvalue().splitlines()[0]
    assert out.getvalue().splitlines()[-1].endswith("2/2")
    assert out.getvalue().count(moment(AT_MS)) == 3, "what was said, and the newest progress"
    assert "half \\x1b[2J" in out.getvalue() and "half \x1b" not in out.getvalue()


def test_a_line_has_token_number_time_and_words() -> None:
    assert log.line_of(ENTRIES[1]) == f"7\t1\t{moment(AT_MS)}\t1/2"
