"""What the demo says, for programs: a document a line, and nothing else."""

from __future__ import annotations

import json

import pytest

from skuld_py.demo.screen import Screen


def test_as_json_every_line_is_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(as_json=True)
    screen.say("starting \x1b[2J")
    screen.alarm("kill -9")
    with screen.bars("tasks"):
        screen.count({"tasks": (1, 2)})
    screen.table("totals", ("what", "count"), [("entries", 7), ("seconds", 1.5)])

    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["event"], each.get("words")) for each in said] == [
        ("said", "starting \x1b[2J"), ("said", "kill -9"), ("said", "1 of 2 tasks"), ("table", None)]
    assert said[-1]["columns"] == ["what", "count"] and said[-1]["rows"] == [["entries", 7], ["seconds", 1.5]]
    assert all(each["at_s"] >= 0 for each in said)
