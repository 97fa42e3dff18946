"""How things look: durations, payloads, tasks, and what a status says needs attention.

Payloads come from anybody, so what they may do to a terminal is tested as much as what they show.
"""

from __future__ import annotations

import base64
import json
from io import BytesIO, TextIOWrapper
from typing import Any

import attrs
import click
import pytest
from click.testing import CliRunner

from skuld_py.cli import showing
from skuld_py.cli.get import show_task
from skuld_py.cli.main import main
from skuld_py.cli.situation import Situation, attention, document
from skuld_py.cli.values import Duration
from skuld_py.client.json_text import is_harmless, json_text
from skuld_py.model import messages as m
from skuld_py.model.checkpoint import Checkpoint
from skuld_py.model.ids import TaskId
from skuld_py.model.task import ClaimView, Task
from skuld_py.verbs import documents
from skuld_py.verbs.words import said

# -- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "seconds"), [
    ("10s", 10), ("500ms", 0.5), ("2m", 120), ("1h", 3600), ("7", 7), ("1.5", 1.5), (".5s", 0.5),
    (" 3 s ", 3)])
def test_durations(text: str, seconds: float) -> None:
    assert Duration().convert(text, None, None) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "1w", "1e3", "-1", "nan", "inf", "1,5s", "1s2", "٣s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(click.BadParameter):
        Duration().convert(text, None, None)


@pytest.mark.parametrize(("seconds", "text"), [
    (0, "0 ms"), (0.25, "250 ms"), (1, "1 s"), (2.5, "2.5 s"), (59.94, "59.9 s"), (90, "1.5 min"),
    (7200, "2 h")])
def test_durations_as_people_say_them(seconds: float, text: str) -> None:
    assert said(seconds) == text


@pytest.mark.parametrize(("data", "text"), [
    (b"sup?", "sup?"), ("Käse – 東京".encode(), "Käse – 東京"), (b"\xff\x00", "base64:/wA="), (b"", ""),
    (b"two\nlines", "two\\nlines"), (b"\x1b[2J", "\\x1b[2J"), ("\u202egpj.exe".encode(), "\\u202egpj.exe"),
    (b"[red]not markup[/red]", "[red]not markup[/red]")])
def test_payloads_on_a_terminal(data: bytes, text: str) -> None:
    assert showing.shown(data) == text


HARMFUL = "\x9b31m \x85 \u202egpj.exe \u200b \u2028 \ufeff \U000e0041"


@pytest.mark.parametrize("is_compact", [False, True])
def test_json_says_the_same_and_moves_no_cursor(is_compact: bool) -> None:
    document = {"payload": HARMFUL, "name": "Käse – 東京\u3000\u00a0€"}

    text = json_text(document, is_compact=is_compact)

    assert json.loads(text) == document and "Käse – 東京\u3000\u00a0€" in text
    assert not [char for char in text if not is_harmless(char)]
    assert "\\u009b31m" in text and "\\u202egpj" in text and "\\u200b" in text


def test_a_document_of_a_verb_moves_no_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(showing.click, "echo", said.append)
    monkeypatch.setattr(showing.sys, "stdout", TextIOWrapper(BytesIO(), encoding="utf-8"))

    showing.print_json({"payload": HARMFUL, "word": "Käse"})

    assert json.loads(said[0]) == {"payload": HARMFUL, "word": "Käse"} and "Käse" in said[0]
    assert all(map(is_harmless, said[0]))


def test_a_payload_shown_whole_keeps_its_lines_but_no_control_characters() -> None:
    assert showing.shown(b"a\n\tb\x07", is_one_line=False) == "a\n\tb\\x07"


def task(payload: bytes = b"sup?") -> Task:
    claims = (ClaimView((1 << 32) + 1, "one:1", 1_000, 3_000, False, None, (b"begun", b"\xff")),
              ClaimView((1 << 32) + 2, "two:2", 4_000, 6_000, False, None))
    return Task(bytes(20), "general", 0, payload, claims, state="claimed")


def test_a_task_as_json() -> None:
    made = json.loads(json.dumps(documents.task(task(), has_logs=True)))

    assert (made["payload"], made["payload_base64"]) == ("sup?", base64.b64encode(b"sup?").decode())
    assert made["state"] == "claimed"
    token = str((1 << 32) + 1)
    assert made["claims"][0]["token"] == token
    assert made["claims"][0]["log"] == [{"token": token, "seq": 0, "data_base64": "YmVndW4=", "data": "begun"},
                                        {"token": token, "seq": 1, "data_base64": "/w=="}]
    assert "payload" not in documents.task(task(b"\xff"), has_logs=True)
    assert "log" not in documents.task(task(), has_logs=False)["claims"][0]


def test_from_where_a_task_resumes(capsys: pytest.CaptureFixture[str]) -> None:
    mark = Checkpoint(5 << 32, 3, 1_000_000, b"\xc1\x01j" + b'{"row":\x1b9}', {"row": "\x1b9"})
    task = Task(TaskId(bytes(20)), "q", 0, b"", checkpoint=mark)

    show_task(task, 1_003_000)
    said = capsys.readouterr().out
    assert '{"row":"\\u001b9"} (13 bytes, by claim 21474836480, 3 s ago)' in said, said
    assert documents.task(task, has_logs=True)["checkpoint"] == {
        "token": "21474836480", "number": 3, "at_ms": 1_000_000, "size": 13, "result_type": "json",
        "value": {"row": "\x1b9"}, "checkpoint": '{"row":"\\u001b9"}',
        "checkpoint_base64": base64.b64encode(b'{"row":"\\u001b9"}').decode()}
    assert "checkpoint" not in documents.task(task, has_logs=False)


def test_what_became_of_a_claim() -> None:
    first, second = task().claims

    assert showing.fate_of(first, task(), 5_000) == "ended 2 s ago"
    assert showing.fate_of(second, task(), 5_000) == "held, ends in 1 s"


def test_a_claim_shows_one_line_of_its_error_and_a_dead_task_does_not_rest() -> None:
    failed = attrs.evolve(task().claims[0], is_released=True, outcome="failed", until_ms=9,
                          error=b"KeyError: 1\n  File x")
    waits, dead = (attrs.evolve(task(), claims=(failed,), state=state) for state in ("waiting", "dead"))

    assert showing.fate_of(failed, waits, 5_000).startswith("failed: KeyError: 1, rests until ")
    assert showing.fate_of(failed, dead, 5_000) == "failed: KeyError: 1"


# -- status --------------------------------------------------------------------------------------


def situation(*live: str, down: tuple[str, ...] = (), leader: str = "a:1", session: str = "connected",
              doubt: str = "", clocks: dict[str, tuple[str, int]] | None = None) -> Situation:
    names = (*live, *down)
    owners = names if len(names) >= 3 else ()
    greeted = m.Greeted(1, "a:1", "skuld", 2, 3, 2_000, 0, 1 << 20, ())
    nodes = tuple(m.NodeRow(name, name in live, 0, 2, *(clocks or {}).get(name, ("agreed", 3)))
                  for name in names)
    partitions = (m.PartitionRow(0, 1, "a:1" if owners else "", owners, owners),
                  m.PartitionRow(1, 1, leader if owners else "", owners, owners))
    return Situation(greeted, m.Described(2, "a:1", session, nodes, partitions),
                     (m.CountRow(0, "general", 1, 0, 0, 0, 0, 0, 0),), doubt)


def voting(wanted: int, *cohorts: tuple[str, ...]) -> Situation:
    """Three nodes, so many copies that are wanted, and the voters of each partition."""
    seen = situation("a:1", "b:1", "c:1")
    rows = tuple(m.PartitionRow(number, 1, cohort[0], ("a:1", "b:1", "c:1")[:wanted], cohort)
                 for number, cohort in enumerate(cohorts))
    return attrs.evolve(seen, greeted=attrs.evolve(seen.greeted, replicas=wanted),
                        described=attrs.evolve(seen.described, partitions=rows))


NOTHING_WAITS = {"unarchived": 0, "unarchived_since_ms": 0, "collected_per_s": 0}


def collecting(*rows: tuple[Any, ...], down: tuple[str, ...] = ("c:1",)) -> Situation:
    """Three nodes, and what some of them say of collection."""
    seen = situation(*(name for name in ("a:1", "b:1", "c:1") if name not in down), down=down)
    told = tuple(m.CollectionRow(*row) for row in rows)
    return attrs.evolve(seen, described=attrs.evolve(seen.described, collections=told))


def running(*programs: tuple[str, int], down: tuple[str, ...] = ()) -> Situation:
    """Three nodes, and what each runs."""
    seen = situation(*(name for name in ("a:1", "b:1", "c:1") if name not in down), down=down)
    rows = tuple(attrs.evolve(row, release=release, rules=rules)
                 for row, (release, rules) in zip(seen.described.nodes, programs, strict=True))
    return attrs.evolve(seen, described=attrs.evolve(seen.described, nodes=rows))


def silent(*names: str) -> Situation:
    """Three nodes; these are not heard."""
    seen = situation("a:1", "b:1", "c:1")
    rows = tuple(attrs.evolve(row, is_silent=row.name in names) for row in seen.described.nodes)
    return attrs.evolve(seen, described=attrs.evolve(seen.described, nodes=rows))


ATTENTION = {
    "nothing": (situation("a:1", "b:1", "c:1"), []),
    "two nodes short": (situation("a:1"), ["the cluster waits for 2 more nodes"]),
    "one node short": (situation("a:1", "b:1"), ["the cluster waits for 1 more node:"]),
    "a node down": (situation("a:1", "b:1", down=("c:1",)), ["1 node is down: c:1"]),
    "a node unheard": (silent("b:1"), ["node a:1 hears nothing of b:1, and ZooKeeper has it as live: frozen"]),
    "two nodes unheard": (silent("b:1", "c:1"), ["hears nothing of b:1, c:1, and ZooKeeper has them as live"]),
    "no leader": (situation("a:1", "b:1", "c:1", leader=""), [
        "1 partition has no leader (1): their tasks cannot be claimed; an election takes seconds"]),
    "no leader at all": (attrs.evolve(situation("a:1", "b:1", "c:1"), described=attrs.evolve(
        situation("a:1", "b:1", "c:1").described, partitions=tuple(
            m.PartitionRow(number, 1, "", ("a:1", "b:1", "c:1"), ()) for number in (0, 1)))),
        ["no partition has a leader: no claim is granted, those that wait among them, until elections are over"]),
    "no majority": (situation("a:1", down=("b:1", "c:1")),
                    ["2 nodes are down: b:1, c:1",
                     "2 partitions (0, 1) cannot elect a leader: each needs b:1 or c:1, started on the data"]),
    "no majority, and no leader": (situation("a:1", down=("b:1", "c:1"), leader=""), [
        "2 nodes are down: b:1, c:1", "2 partitions (0, 1) cannot elect a leader: each needs b:1 or c:1"]),
    "voters that were forgotten": (attrs.evolve(situation("a:1", "b:1", "c:1"), described=attrs.evolve(
        situation("a:1", "b:1", "c:1").described, partitions=(
            m.PartitionRow(0, 1, "", ("a:1", "b:1", "c:1"), ("a:1", "x:1", "y:1")),
            m.PartitionRow(1, 1, "a:1", ("a:1", "b:1", "c:1"), ("a:1", "b:1", "c:1"))))),
        ["partition 0 cannot elect a leader: it needs x:1 or y:1, started on the data that each had"]),
    "one copy": (voting(1, ("a:1",), ("b:1",)), ["each task has one copy: a lost disk takes its tasks along."]),
    "voters on their way": (voting(3, ("a:1",), ("a:1", "b:1", "c:1")), [
        "partition 0 has fewer voters than the 3 copies that are wanted, 1 at the least: others get a vote once"]),
    "voters on their way out": (voting(1, ("a:1", "b:1", "c:1"), ("a:1", "b:1")), [
        "each task has one copy",
        "2 partitions (0, 1) have more voters than the 1 copy that is wanted: they go one by one"]),
    "no session": (situation("a:1", "b:1", "c:1", session="lost"), ["no session with ZooKeeper (lost)"]),
    "no leader and no session": (situation("a:1", "b:1", "c:1", leader="", session="lost"), [
        "no session with ZooKeeper (lost)", "cannot be claimed; an election needs ZooKeeper"]),
    "a wrong clock": (situation("a:1", "b:1", "c:1", clocks={"b:1": ("outside", 3_200)}),
                      ["node b:1: clock 3.2 s ahead: does not grant"]),
    "a very wrong clock": (situation("a:1", "b:1", "c:1", clocks={"c:1": ("far", -90_000)}),
                           ["node c:1: clock 1.5 min behind: does not lead"]),
    "clocks at odds": (situation("a:1", "b:1", down=("c:1",), clocks={
        "a:1": ("disagreed", 0), "b:1": ("disagreed", -5_000), "c:1": ("unheard", 0)}),
        ["1 node is down", "no majority of the clocks agrees within 2 s, so no claims are granted:"
         " a:1 0 ms ahead, b:1 5 s behind; set them right"]),
    "claims without proofs": (attrs.evolve(situation("a:1", "b:1", "c:1"), described=attrs.evolve(
        situation("a:1", "b:1", "c:1").described, is_unproven=True)),
        ["claims count without a proof that they were granted: 'skuld cluster rules skuld --raise' ends"]),
    "one release": (running(("0.3.0", 3), ("0.3.0", 3), ("0.3.0", 3)), []),
    "releases of some": (running(("0.3.0", 3), ("", 0), ("0.3.0", 3)), []),
    "two releases": (running(("0.3.0", 3), ("0.2.0", 3), ("0.3.0", 3)),
                     ["nodes run different releases: 0.2.0 on b:1; 0.3.0 on a:1, c:1; upgrade all to one"]),
    "releases that know other rules": (
        running(("0.3.0", 4), ("0.2.0", 3), ("", 0)),
        ["0.2.0 with rules up to 3 on b:1; 0.3.0 with rules up to 4 on a:1; upgrade all to one, then raise the"
         " rules with 'skuld cluster rules skuld --raise'"]),
    "a release that is down": (running(("0.3.0", 3), ("0.3.0", 3), ("0.2.0", 3), down=("c:1",)),
                               ["1 node is down: c:1"]),
    "a paused queue": (attrs.evolve(situation("a:1", "b:1", "c:1"), described=attrs.evolve(
        situation("a:1", "b:1", "c:1").described, paused=("reports",))),
        ["queue reports is paused: nothing of it is granted until 'skuld resume reports'"]),
    "many paused queues": (attrs.evolve(situation("a:1", "b:1", "c:1"), described=attrs.evolve(
        situation("a:1", "b:1", "c:1").described, paused=tuple(f"q{number}" for number in range(11)))),
        [*(f"queue q{number} is paused" for number in range(8)), "3 more queues are paused"]),
    "nobody away is waited for": (collecting(("a:1", 1, 5_000, ("b:1",)), down=()), []),
    "a node away is waited for": (collecting(("a:1", 1, 5_000, ("b:1", "c:1")), ("b:1", 2, 0, ("c:1",))),
                                  ["1 node is down: c:1",
                                   "ended tasks are not deleted while 1 node is away: c:1; start it, or forget"
                                   " what does not come back with 'skuld cluster forget skuld NODE'"]),
    "a node that never came back": (collecting(("a:1", 0, 0, ("z:1",)), down=()),
                                    ["ended tasks are not deleted while 1 node is away: z:1"]),
    "no counts": (situation("a:1", "b:1", "c:1", doubt="too slow"), ["could not be counted: too slow"]),
}


@pytest.mark.parametrize(("seen", "lines"), ATTENTION.values(), ids=ATTENTION.keys())
def test_what_needs_attention(seen: Situation, lines: list[str]) -> None:
    said_lines = attention(seen)

    assert len(said_lines) == len(lines)
    assert all(line in said_line for line, said_line in zip(lines, said_lines, strict=True)), said_lines
    assert document(seen)["attention"] == said_lines


@pytest.mark.parametrize("seen", [seen for seen, _ in ATTENTION.values()], ids=ATTENTION.keys())
def test_a_status_is_shown_whatever_it_is(seen: Situation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skuld_py.cli.situation.ask", lambda nodes, timeout_s: seen)

    shown = CliRunner().invoke(main, ["status"])
    as_json = CliRunner().invoke(main, ["status", "--json"])

    assert shown.exit_code == 0, shown.output
    assert "cluster skuld: " in shown.output and "a:1" in shown.output and "partitions" in shown.output
    assert json.loads(as_json.output)["cluster"] == "skuld"


@pytest.mark.parametrize(("rows", "made", "line"), [
    ((), None, ""),
    ([("a:1", 0, 0, ())], {"collected": 0, "sealed_ms": 0, "awaited": [], **NOTHING_WAITS},
     "retention: 0 ended tasks deleted"),
    ([("a:1", 3, 0, (), 5, 9_000), ("b:1", 0, 0, (), 2, 0)],
     {"collected": 3, "sealed_ms": 0, "awaited": [], "unarchived": 7, "unarchived_since_ms": 9_000,
      "collected_per_s": 0},
     "retention: 3 ended tasks deleted; 7 ended tasks to be archived, on offer since"
     f" {showing.moment(9_000)}"),
    ([("a:1", 3, 9_000, ()), ("b:1", 4, 5_000, ("c:1",)), ("c:1", 0, 0, ("a:1", "c:1"))],
     {"collected": 7, "sealed_ms": 5_000, "awaited": ["a:1", "c:1"], **NOTHING_WAITS},
     f"retention: 7 ended tasks deleted, up to ids of {showing.moment(5_000)}; waits for a:1, c:1"),
])
def test_what_all_nodes_have_collected_is_one_sum(rows: list[tuple[Any, ...]],
                                                  made: dict[str, object] | None, line: str,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    seen = collecting(*rows, down=())
    monkeypatch.setattr("skuld_py.cli.situation.ask", lambda nodes, timeout_s: seen)

    assert json.loads(CliRunner().invoke(main, ["status", "--json"]).output)["collection"] == made
    lines = CliRunner().invoke(main, ["status"]).output.splitlines()
    assert [each for each in lines if each.startswith("retention")] == ([line] if line else [])
