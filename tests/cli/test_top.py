"""``skuld top``: rates by arithmetic, what is drawn, and a terminal that is left as it was found."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import attrs
import pytest
from click.testing import CliRunner, Result

from skuld_py.calls.payloads import call
from skuld_py.cli import rates, situation, top
from skuld_py.cli.main import main
from skuld_py.cli.rates import Look
from skuld_py.cli.running import PAGES, ROWS, SPAN_MS, Running
from skuld_py.cli.running import running as look_for
from skuld_py.cli.situation import Situation
from skuld_py.client.asking import Ask
from skuld_py.errors import Uncertain
from skuld_py.model import messages as m
from skuld_py.model.columns import Column
from skuld_py.testing import MemoryClient

TOP = Path(__file__).resolve().parents[2]


def row(queue: str, waiting: int, claimed: int, completed: int) -> m.CountRow:
    return m.CountRow(0, queue, waiting, claimed, completed, 0, 0, 0, 0)


def seen(*depths: m.CountRow, partitions: int = 2, doubt: str = "", live: bool = True) -> Situation:
    nodes = tuple(m.NodeRow(f"h:{number}", live or number > 1, 1, 2, "agreed", 3) for number in (1, 2, 3))
    names = tuple(node.name for node in nodes)
    greeted = m.Greeted(1, "h:1", "skuld", partitions, 3, 2_000, 0, 1 << 20, ())
    placed = tuple(m.PartitionRow(number, 4, "h:2" if number else "", names, names)
                   for number in range(partitions))
    return Situation(greeted, m.Described(1, "h:1", "connected", nodes, placed), depths, doubt)


def look(at_s: float, *depths: m.CountRow, **more: Any) -> Look:
    return Look(at_s, 1_763_683_200_000, seen(*depths, **more))


# -- rates ---------------------------------------------------------------------------------------


def test_rates_are_differences_over_the_time_between_two_looks() -> None:
    before = look(10.0, row("a", 5, 1, 4), row("b", 0, 0, 7))
    now = look(12.0, row("a", 6, 2, 10), row("b", 0, 0, 7), row("new", 3, 0, 1))

    assert [(each.queue, each.enqueued_per_s, each.completed_per_s) for each in rates.queue_rows(now, before)] == [
        ("a", 4.0, 3.0), ("new", 2.0, 0.5), ("b", 0.0, 0.0)]


def test_there_are_no_rates_on_the_first_look_or_without_counts_before() -> None:
    now = look(12.0, row("a", 6, 2, 10))

    for before in (None, look(10.0, doubt="no answer"), look(12.0, row("a", 1, 0, 0))):
        row_now, = rates.queue_rows(now, before)
        assert (row_now.enqueued_per_s, row_now.completed_per_s) == (None, None)


def test_counts_that_fall_are_no_negative_rates() -> None:
    rows = rates.queue_rows(look(2.0, row("a", 1, 0, 0)), look(1.0, row("a", 5, 0, 3)))

    assert (rows[0].enqueued_per_s, rows[0].completed_per_s) == (0, 0)


def test_what_is_deleted_in_a_second_is_said() -> None:
    now = look(12.0)
    rows = (m.CollectionRow("h:2", 500, 0, (), 1_000, 0, 150), m.CollectionRow("h:3", 5, 0, (), 0, 0, 50))
    described = attrs.evolve(now.situation.described, collections=rows)
    now = attrs.evolve(now, situation=attrs.evolve(now.situation, described=described))

    assert rates.document(now, None)["collection"]["collected_per_s"] == 200
    said = " ".join(drawn(now).split())
    assert "505 ended tasks deleted, 200 a second; 1000 ended tasks to be archived" in said


class Wire:
    """A connection to a node that tells of claims without proofs those who read that."""

    def next_request(self) -> int:
        return 7

    def greet(self, timeout_s: float) -> m.Greeted:
        return seen().greeted

    def call(self, message: m.Message, timeout_s: float, *, is_idempotent: bool) -> m.Message:
        if isinstance(message, m.Describe):
            return attrs.evolve(seen().described, is_unproven=message.reads_unproven)
        return m.Counted(7, b"", b"", ())


def test_what_is_seen_says_that_claims_count_without_a_proof() -> None:
    found = situation.look(cast(Any, Wire()), 1.0)

    assert found.described.is_unproven
    assert [each for each in situation.concerns(found) if each.kind == "unproven"]


# -- what runs ---------------------------------------------------------------------------------------


def running(*calls: str | None) -> tuple[Running, ...]:
    return tuple(Running(f"id-{number}", "shop", call, "host:1\x1b[2J", 1_763_683_140_000)
                 for number, call in enumerate(calls))


def test_what_runs_is_named_by_its_call_in_a_quarter_of_the_room() -> None:
    now = attrs.evolve(look(2.0, row("shop", 0, 30, 0)), running=running("shop:add(2, b=3)", *[None] * 29))

    tall, short = drawn(now, height=60), drawn(now, height=24)
    assert "shop:add(2, b=3)" in tall and "id-1 " in tall and "1 min ago" in tall and "\x1b[2J" not in tall
    assert "shop:add(2, b=3)" in short and "id-3" not in short
    assert rates.document(now, None)["running"][0]["call"] == "shop:add(2, b=3)"
    assert "held by" not in drawn(look(2.0, row("shop", 0, 30, 0)))


def test_what_runs_is_looked_for_in_a_few_pages_only() -> None:
    with MemoryClient() as client:
        ids = client.enqueue_many("shop", [call("shop:add", number) for number in range(60)])
        client.claim("shop", n=50)
        asked: list[m.List] = []
        made = found_by(client, asked)
        assert [each.id for each in made] == [str(task_id) for task_id in ids[:ROWS]]
        assert made[0].call == "shop:add(0)" and len(asked) == 1
        client.advance(SPAN_MS / 1000)
        assert found_by(client, asked) == (), "what is older than an hour is not looked for"


def test_a_search_without_end_is_not_made() -> None:
    asked: list[m.Message] = []

    def call(question: m.Message, *_: object, **__: object) -> m.Message:
        asked.append(question)
        return m.Listed(0, b"", bytes([len(asked)]) * 20, b"", Column(), Column())

    over: Any = SimpleNamespace(next_request=lambda: 0, call=call)
    assert look_for(over, 1_763_683_200_000, 5.0) == ()
    assert len(asked) == PAGES


def test_a_batch_is_shown_though_its_tasks_are_older_than_what_is_looked_for(
        monkeypatch: pytest.MonkeyPatch) -> None:
    batch = m.BatchRow("shop", "shop:add", 40, 3, 1_763_683_140_000, 1, 4)
    worker = m.WorkerRow("anna", "host", 1, ("shop",), b"", "1.0", "", 1, 40, 40, "", "h:1", 0, batches=(batch,))
    asked: list[m.Message] = []

    def call(question: m.Message, *_: object, **__: object) -> m.Message:
        asked.append(question)
        return m.Mustered(0, (worker,), "", ()) if isinstance(question, m.Muster) else m.Listed(
            0, b"", b"", b"", Column(), Column())

    over: Any = SimpleNamespace(next_request=lambda: 0, call=call)
    for claimed, as_json, is_asked in ((40, False, True), (40, True, False), (0, False, False)):
        asked.clear()
        monkeypatch.setattr(situation, "look", lambda *_, claimed=claimed: seen(row("shop", 0, claimed, 0)))
        text = drawn(top._look(over, 5.0, as_json=as_json))
        assert ("40 tasks of shop:add" in text) == any(isinstance(each, m.Muster) for each in asked) == is_asked
        assert not any(isinstance(each, m.Get) for each in asked), "nothing was found whose progress could be read"


def found_by(client: MemoryClient, asked: list[m.List]) -> tuple[Running, ...]:
    """As over a connection to a node."""
    def call(question: m.List, timeout_s: float, is_idempotent: bool) -> m.Message:
        asked.append(question)
        answer: m.Message = client.cluster.ask(Ask(question), timeout_s).message
        return answer

    over: Any = SimpleNamespace(next_request=lambda: 0, call=call)
    return look_for(over, client.cluster.wall_ms(), 5.0)


# -- what is drawn -------------------------------------------------------------------------------


def drawn(now: Look, before: Look | None = None, doubt: str = "", height: int = 40) -> str:
    from rich.console import Console

    console = Console(width=110, height=height, markup=False, highlight=False, emoji=False)
    with console.capture() as captured:
        console.print(top.frame(now, before, doubt, height))
    return captured.get()


def test_what_needs_attention_stands_on_top_then_queues_nodes_and_leaders() -> None:
    text = drawn(look(2.0, row("reports", 12_345, 2, 3), live=False), look(1.0, row("reports", 12_345, 2, 1)))

    places = [text.index(words) for words in (
        "2 of 3 nodes live", "! 1 node is down: h:1", "! 1 partition has no leader (0)", "reports", "12,345",
        "2.0", "h:1", "down", "h:1, h:2, h:3")]
    assert places[:5] == sorted(places[:5])
    assert "none" in text and "all is well" not in text


def test_states_that_no_queue_has_are_left_out_and_others_are_counted() -> None:
    rare = m.CountRow(0, "rare", 1, 0, 0, 17, 0, 0, 23)
    text = drawn(look(2.0, row("reports", 1, 0, 0), rare), look(1.0, row("reports", 1, 0, 0)))
    first, = [line.split() for line in text.splitlines() if line.startswith("rare")]

    assert "scheduled" in text and "dead" in text and "cancelled" not in text and "blocked" not in text
    assert first == ["rare", "1", "0", "0", "17", "23", "41.0", "0.0"]
    assert "scheduled" not in drawn(look(2.0, row("reports", 1, 0, 0)))


def test_a_look_that_failed_is_said_and_the_one_before_is_shown() -> None:
    text = drawn(look(2.0, row("reports", 1, 0, 0)), None, "no answer from h:1 before the deadline")

    assert "! the next look failed, this is the one before: no answer from h:1" in text and "reports" in text


@pytest.mark.parametrize("height", [10, 24, 60])
def test_it_fits_a_screen_and_says_what_it_leaves_out(height: int) -> None:
    queues = [row(f"queue-{number:03}", number, 0, 0) for number in range(200)]
    text = drawn(look(1.0, *queues, partitions=64), height=height)

    assert len(text.splitlines()) <= max(height, 24)
    assert "queue-199" in text and "more" in text and "queue-000" not in text


# -- the verb ------------------------------------------------------------------------------------


class Looks:
    """What nodes would answer, one look after the other; an error is raised, and Ctrl-C at the end."""

    def __init__(self, *answers: Situation | Exception) -> None:
        self.answers = list(answers)

    def __call__(self, connection: object, timeout_s: float) -> Situation:
        if not self.answers:
            signal.raise_signal(signal.SIGINT)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def skuld(monkeypatch: pytest.MonkeyPatch, looks: Looks, *arguments: str) -> Result:
    monkeypatch.setattr(situation, "look", looks)
    words = ["top", "--every", "100ms", "--timeout", "500ms", *arguments]
    return CliRunner().invoke(main, words, prog_name="skuld")


def test_once_is_one_look_for_scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = skuld(monkeypatch, Looks(seen(row("q", 1, 2, 3))), "--once")
    made = skuld(monkeypatch, Looks(seen(row("q", 1, 2, 3))), "--once", "--json")

    assert shown.exit_code == made.exit_code == 0
    assert "cluster skuld: 3 of 3 nodes live" in shown.output and "\x1b" not in shown.output
    document = json.loads(made.output)
    assert document["queues"] == [{"queue": "q", "waiting": 1, "claimed": 2, "completed": 3,
                                   "scheduled": 0, "blocked": 0, "cancelled": 0, "dead": 0,
                                   "enqueued_per_s": None, "completed_per_s": None}]
    assert [node["name"] for node in document["nodes"]] == ["h:1", "h:2", "h:3"] and document["partitions"]


def test_without_a_terminal_looks_follow_each_other_and_ctrl_c_ends_them_well(
        monkeypatch: pytest.MonkeyPatch) -> None:
    looks = (seen(row("q", 1, 0, 0)), Uncertain("deadline", "no answer"), seen(row("q", 0, 0, 1)))
    made = skuld(monkeypatch, Looks(*looks), "--json")
    shown = skuld(monkeypatch, Looks(*looks))

    first, failed, second = map(json.loads, made.output.splitlines())
    assert made.exit_code == shown.exit_code == 0
    assert failed == {"doubt": "no answer"}
    assert first["queues"][0]["completed_per_s"] is None and second["queues"][0]["completed_per_s"] > 0
    assert shown.output.count("cluster skuld: 3 of 3") == 3 and "! the next look failed" in shown.output


def test_a_first_look_that_fails_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = skuld(monkeypatch, Looks(Uncertain("deadline", "no answer")))

    assert (answer.exit_code, answer.stderr) == (3, "error: no answer [deadline]\n")


@pytest.mark.parametrize(("typed", "goes_on"), [(b"", True), (b"x", True), (b"\x1bOQ", True), (b"\x1b", True),
                                                (b"\x1b[A", True), (b"\x1b[21;5~", True), (b"q", False),
                                                (b"xxQ", False), (b"\x1bOQq", False), (b"\x04", False)])
def test_q_ends_it_and_a_key_that_only_looks_like_one_does_not(typed: bytes, goes_on: bool) -> None:
    screen, keys = os.pipe()
    try:
        os.write(keys, typed)
        assert top._heard(screen, 0.05) is goes_on
    finally:
        os.close(screen)
        os.close(keys)


# -- a terminal ----------------------------------------------------------------------------------

PROGRAM = """
import sys
sys.path.insert(0, "tests")
from cli.test_top import row, seen
from skuld_py.cli import situation
situation.look = lambda *_: seen(row("reports", 7, 1, 2))
from skuld_py.cli.main import main
main(["top", "--every", "1h", "--timeout", "500ms"], prog_name="skuld")
"""


class Terminal:
    """``skuld top`` on a terminal of its own, which is typed at and read."""

    def __init__(self) -> None:
        self.screen, inner = pty.openpty()
        termios.tcsetwinsize(inner, (40, 120))
        self.before = termios.tcgetattr(inner)
        self.inner = inner
        self.process = subprocess.Popen([sys.executable, "-c", PROGRAM], cwd=TOP, stdin=inner, stdout=inner,
                                        stderr=inner, env={**os.environ, "TERM": "xterm"}, start_new_session=True)
        self.text = ""

    def says(self, words: str, within_s: float = 20.0) -> None:
        deadline = time.monotonic() + within_s
        while words not in self.text:
            ready = select.select([self.screen], [], [], max(0.0, deadline - time.monotonic()))[0]
            assert ready, f"no {words!r} but {self.text!r}"
            self.text += os.read(self.screen, 1 << 16).decode()

    def close(self) -> None:
        self.process.kill()
        self.process.wait(60)
        os.close(self.screen)
        os.close(self.inner)


@pytest.mark.parametrize("end", ["q", "xxQ", signal.SIGINT, signal.SIGTERM])
def test_a_key_or_a_signal_ends_it_and_the_terminal_is_as_it_was(end: str | signal.Signals) -> None:
    terminal = Terminal()
    try:
        terminal.says("reports")
        assert "\x1b[?1049h" in terminal.text, "it did not take a screen of its own"
        assert termios.tcgetattr(terminal.inner)[3] & termios.ICANON == 0
        os.write(terminal.screen, b"x")  # means nothing
        os.write(terminal.screen, b"\x1bOQ")  # F2 means nothing
        if isinstance(end, str):
            os.write(terminal.screen, end.encode())
        else:
            terminal.process.send_signal(end)
        assert terminal.process.wait(60) == 0
        terminal.says("\x1b[?1049l")
        assert "\x1b[?25h" in terminal.text, "the cursor is not back"
        assert termios.tcgetattr(terminal.inner) == terminal.before
        assert "Traceback" not in terminal.text
    finally:
        terminal.close()


