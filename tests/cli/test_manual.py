"""``skuld manual``: the topics, a page, what is said of a topic that is none, and when there is a pager."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skuld_py.cli.main import main
from skuld_py.cli.manual import TOPICS, about, page

TOP = Path(__file__).resolve().parents[2]
MANUAL = [sys.executable, "-m", "skuld_py", "manual"]


def skuld(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="skuld")


def test_the_topics_are_listed_with_a_line_each() -> None:
    answer = skuld("manual")

    assert answer.exit_code == 0
    assert [line.split()[0] for line in answer.stdout.splitlines()] == list(TOPICS)
    assert all(about(topic) in answer.stdout for topic in TOPICS)
    assert max(map(len, answer.stdout.splitlines())) <= 110


@pytest.mark.parametrize("topic", TOPICS)
def test_a_page_is_printed_as_it_stands(topic: str) -> None:
    answer = skuld("manual", topic)

    assert answer.exit_code == 0
    assert answer.stdout == page(topic)


@pytest.mark.parametrize(("given", "words"), [
    ("gaurantees", ["there is no topic 'gaurantees'", "did you mean 'guarantees'?"]),
    ("word", ["did you mean 'words'?"]),
    ("reading", ["did you mean 'reading-the-code'?"]),
    ("zzz", ["there is no topic 'zzz'; there are: "]),
    ("../../README", ["there is no topic"]),
])
def test_a_topic_that_is_none_is_answered_with_those_there_are(given: str, words: list[str]) -> None:
    answer, told = skuld("manual", given), skuld("manual", given, "--json")

    assert answer.exit_code == told.exit_code == 2
    assert answer.stdout == ""
    assert [word for word in [*words, *TOPICS] if word not in answer.stderr] == []
    assert json.loads(told.stderr)["outcome"] == "usage"


def test_programs_get_documents() -> None:
    topics = json.loads(skuld("manual", "--json").stdout)["topics"]
    wire = json.loads(skuld("manual", "wire", "--json").stdout)

    assert [each["topic"] for each in topics] == list(TOPICS) and all(each["about"] for each in topics)
    assert wire == {"topic": "wire", "about": about("wire"), "text": page("wire")}


def test_topics_are_completed() -> None:
    environment = {**os.environ, "_SKULD_COMPLETE": "bash_complete", "COMP_CWORD": "2",
                   "COMP_WORDS": "skuld manual w"}
    ran = subprocess.run([sys.executable, "-c", "from skuld_py.cli.main import main; main(prog_name='skuld')"],
                         cwd=TOP, capture_output=True, text=True, env=environment, check=True)

    offered = [line.partition(",")[2] for line in ran.stdout.splitlines()]
    assert offered == ["workers", "workflows", "wire", "words"]


def test_there_is_a_pager_on_a_terminal_and_only_there() -> None:
    environment = {**os.environ, "PAGER": "sed s/^/|/", "TERM": "xterm"}
    piped = subprocess.run([*MANUAL, "speed"], cwd=TOP, env=environment, capture_output=True, text=True,
                           check=True).stdout
    shown = on_terminal([*MANUAL, "speed"], environment)

    assert piped == page("speed")
    assert [line.removeprefix("|") for line in shown.splitlines()] == piped.splitlines()
    assert shown.startswith("|# Speed")


def on_terminal(command: list[str], environment: dict[str, str]) -> str:
    """What a command shows on a terminal."""
    terminal, inner = pty.openpty()
    with subprocess.Popen(command, stdin=inner, stdout=inner, stderr=inner, cwd=TOP, env=environment) as running:
        os.close(inner)
        shown = b""
        try:
            while part := os.read(terminal, 1 << 16):
                shown += part
        except OSError:
            pass  # the terminal is closed when the command has ended
        finally:
            os.close(terminal)
        assert running.wait() == 0
    return shown.decode().replace("\r\n", "\n")
