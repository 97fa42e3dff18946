"""What somebody may type, pipe or store that is meant badly, or is just odd: named, harmless, and without effect.

One row for each kind. A client that does what it is told stands where nodes would be, so what reaches it is what
would have been done.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skuld_py.calls.payloads import call
from skuld_py.calls.sight import call_line
from skuld_py.cli.main import main
from skuld_py.client import client as clients
from skuld_py.client import connection as connections
from skuld_py.client.waiting import End
from skuld_py.config import DEFAULT_LIMITS
from skuld_py.errors import Refused
from skuld_py.model import messages as m
from skuld_py.model.ids import from_text
from skuld_py.model.task import ClaimView, LogEntry, Task

TOP = Path(__file__).resolve().parents[2]
ID = "0" * 32
NAMES = {"empty": "", "a space": "a b", "a glob": "*", "a line": "a\nb", "an emoji": "\U0001f600",
         "a path": "../x", "an escape": "\x1b[2J", "a dash": "-q", "a zero": "a\x00b", "long": "q" * 201,
         "100 KB": "q" * 100_000, "right to left": "a\u202eb", "not UTF-8": "a\udcff"}


class Doing:
    """A connection that notes what is asked of nodes."""

    asked: list[m.Message]

    def __init__(self) -> None:
        self.asked = []
        self.greeted = m.Greeted(1, "h:1", "c", 8, 3, 2_000, 0, 1 << 20, ())

    def __call__(self, nodes: object, key: object = None) -> Doing:
        return self

    def greet(self, timeout_s: float) -> m.Greeted:
        return self.greeted

    def next_request(self) -> int:
        return 1

    def call(self, message: m.Message, *_: object, **__: object) -> m.Message:
        self.asked.append(message)
        return m.Acked(1, 2)

    def close(self) -> None: ...


@pytest.fixture(autouse=True)
def doing(monkeypatch: pytest.MonkeyPatch) -> Doing:
    made = Doing()
    monkeypatch.setattr(connections, "Connection", made)
    return made


def skuld(*arguments: str, typed: bytes | None = None) -> Result:
    return CliRunner().invoke(main, arguments, input=typed, prog_name="skuld")


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
@pytest.mark.parametrize("verb", [
    ("enqueue", "QUEUE", "x"), ("claim", "QUEUE"), ("list", "QUEUE"), ("count", "QUEUE"),
    ("claim", "q", "--holder=QUEUE"), ("get", "QUEUE"), ("complete", "QUEUE", "1"), ("complete", ID, "QUEUE"),
    ("cluster", "create", "QUEUE"), ("members", "--cluster=QUEUE")])
def test_a_name_that_is_none_is_refused_before_anything_is_asked(doing: Doing, verb: tuple[str, ...],
                                                                  name: str) -> None:
    if verb == ("claim", "q", "--holder=QUEUE") and not name:
        return  # no holder: the default
    answer = skuld(*(word.replace("QUEUE", name) for word in verb))

    assert answer.exit_code in (1, 2)
    assert answer.stderr and len(answer.stderr) < 1_000 and "Traceback" not in answer.output
    assert "\x1b" not in answer.output and "\x00" not in answer.output
    assert doing.asked == []


@pytest.mark.parametrize("arguments", [
    ("append", ID, "1", "-1", "x"), ("append", ID, str(1 << 64), "0", "x"), ("append", ID, "1", str(1 << 40), "x"),
    ("append", ID, "NaN", "0", "x"), ("claim", "q", "-n", "1001"), ("claim", "q", "-n", "1e3"),
    ("claim", "q", "--lease", "-5s"), ("claim", "q", "--lease", "nan"), ("claim", "q", "--lease", "inf"),
    ("claim", "q", "--lease", "1" * 5_000), ("claim", "q", "--wait", "25h"), ("claim", "q", "--lease", "5 weeks"),
    ("enqueue", "q", "x", "--priority", str(-(1 << 31) - 1)), ("enqueue", "q", "x", "--priority", "1.5"),
    ("enqueue", "q", "x", "--w", "0"), ("renew", ID, "0"), ("list", "q", "--limit", "0")])
def test_a_number_out_of_range_is_refused_before_anything_is_asked(doing: Doing,
                                                                   arguments: tuple[str, ...]) -> None:
    answer = skuld(*arguments)

    assert answer.exit_code in (1, 2) and answer.stderr and "Traceback" not in answer.output
    assert doing.asked == []


@pytest.mark.parametrize("arguments", [
    ("enqueue", "q"), ("enqueue", "q", "a", "b"), ("enqueue", "q", "--call", ""),
    ("enqueue", "q", "--call", "a\nb"),
    ("enqueue", "q", "--call", "f" * 201), ("enqueue", "q", "--call", "f", "b=1", "b=2"),
    ("enqueue", "q", "--call", "f", str(1 << 70)), ("enqueue", "q", "--call", "f", "[" * 40 + "]" * 40),
    ("enqueue", "q", "--call", "f", "a\udcff"), ("enqueue", "q", "--call", "f", "-1"),
    ("enqueue", "q", "--call", "f", "--lines"), ("enqueue", "q", "--call", "f", "--file", __file__),
    ("list", "q", "--function", "a\nb"), ("list", "q", "--function", ""),
    ("schedule", "put", "n", "q", "--every", "1h", "--arg", "1"),
    ("schedule", "put", "n", "q", "x", "--every", "1h", "--call", "f")])
def test_a_call_that_cannot_be_made_is_refused_before_anything_is_asked(
        doing: Doing, arguments: tuple[str, ...]) -> None:
    answer = skuld(*arguments)

    assert answer.exit_code in (1, 2) and answer.stderr and "Traceback" not in answer.output
    assert len(answer.stderr) < 1_000 and doing.asked == []


def test_a_call_is_typed_as_it_is_shown(doing: Doing) -> None:
    assert skuld("enqueue", "q", "--call", "shop:add", "2", "b=3", '"4"', "--", "-5").exit_code == 0

    assert isinstance(doing.asked[0], m.Enqueue)
    assert call_line(doing.asked[0].batches[0].payloads.data) == 'shop:add(2, "4", -5, b=3)'


def test_a_payload_that_begins_with_a_dash_goes_behind_two(doing: Doing) -> None:
    assert skuld("enqueue", "q", "-x").exit_code == 2
    assert doing.asked == []
    assert skuld("enqueue", "q", "--", "-x").exit_code == 0
    assert isinstance(doing.asked[0], m.Enqueue) and doing.asked[0].batches[0].payloads.data == b"-x"


@pytest.mark.parametrize("data", [b"", b"\x00", bytes(range(256)) * 40, b"\xff\xfe", b"x" * 100_000])
def test_binary_input_is_taken_as_it_is(doing: Doing, data: bytes) -> None:
    answer = skuld("enqueue", "q", "-", typed=data)

    assert answer.exit_code == 0, answer.output
    assert isinstance(doing.asked[0], m.Enqueue) and doing.asked[0].batches[0].payloads.data == data


def test_a_payload_too_large_is_refused_with_the_limit(doing: Doing) -> None:
    answer = skuld("enqueue", "q", "-", typed=b"x" * (DEFAULT_LIMITS.payload_bytes + 1))

    assert answer.exit_code == 1 and "[payload_too_large]" in answer.stderr
    assert str(DEFAULT_LIMITS.payload_bytes) in answer.stderr and doing.asked == []


HOSTILE = "\x1b]0;owned\x07\x1b[2J\r\n\x9b31m\u202etxt.exe"


@pytest.mark.parametrize(("payload", "result"), [
    (HOSTILE.encode(), HOSTILE.encode()), (call("f", HOSTILE, b=[HOSTILE]), HOSTILE),
    (b"owned", {HOSTILE: (HOSTILE,)})],
    ids=["bytes", "a call and text", "a value"])
def test_nothing_in_a_task_reaches_a_terminal_as_a_command(monkeypatch: pytest.MonkeyPatch, payload: bytes,
                                                           result: object) -> None:
    claims = (ClaimView(1, "w", 1, 2, False, None, (HOSTILE.encode(),)),)
    task = Task(bytes(20), "q", 0, payload, claims, result=result)
    monkeypatch.setattr(clients.Client, "log", lambda *_, **__: iter([LogEntry(1, 0, HOSTILE.encode())]))
    monkeypatch.setattr(clients.Client, "get_many", lambda *_, **__: [task])
    monkeypatch.setattr(clients.Client, "list", lambda *_, **__: iter([task]))

    for arguments in (("get", ID), ("log", ID), ("list",)):
        shown = skuld(*arguments).output
        assert not set("\x1b\x07\x9b\u202e") & set(shown), arguments
        assert "owned" in shown
    logged = json.loads(skuld("log", ID, "--json").output)
    assert logged["data"] == HOSTILE


def test_nothing_that_a_node_says_reaches_a_terminal_as_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: object, queue: str | None, **_: object) -> int:
        raise Refused("odd", HOSTILE)

    monkeypatch.setattr(clients.Client, "count", refuse)

    assert not set("\x1b\x07\x9b\u202e\r") & set(skuld("count").output)
    assert json.loads(skuld("count", "--json").stderr)["message"] == HOSTILE


def test_several_tasks_are_got_in_the_order_wanted_and_a_missing_one_is_named(
        monkeypatch: pytest.MonkeyPatch) -> None:
    one, two, three = ("0" * 31 + digit for digit in "123")
    tasks = [Task(from_text(text), "q", 0, text[-1].encode()) for text in (one, two)]
    monkeypatch.setattr(clients.Client, "get_many",
                        lambda self, ids, **_: [task for task in tasks if task.id in ids])

    made = [json.loads(line) for line in skuld("get", two, one, two, "--json").output.splitlines()]
    assert [each["id"] for each in made] == [two, one, two]
    missing = skuld("get", one, three)
    assert missing.exit_code == 1
    assert f"id: no task {three}: it was never enqueued, or is collected [no_such_task]" in missing.stderr
    assert skuld("get", one, two).output.count("payload") == 2


def test_a_log_is_followed_until_the_task_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int | None, float]] = []

    def log(self: object, id: bytes, *, token: int | None, follow_s: float) -> Iterator[LogEntry]:
        asked.append((token, follow_s))
        return iter([LogEntry(1, 0, b"a"), LogEntry(2, 0, b"\xff")])

    monkeypatch.setattr(clients.Client, "log", log)
    followed = skuld("log", ID, "--follow")

    assert (followed.exit_code, followed.output) == (0, "1\t0\t\ta\n2\t0\t\tbase64:/w==\n")
    assert json.loads(skuld("log", ID, "--token", "2", "--json").output.splitlines()[0])["data"] == "a"
    assert asked == [(None, math.inf), (2, 0)]


def test_results_are_waited_for_and_it_is_a_failure_if_they_do_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = from_text(ID[:-1] + "1"), from_text(ID[:-1] + "2")
    ends = [End(one, "completed", b"result"), End(two, "", None, b"why")]
    waited: list[float] = []

    def told(self: object, ids: list[bytes], *, wait_s: float) -> list[End]:
        waited.append(wait_s)
        return ends

    monkeypatch.setattr(clients.Client, "ends", told)
    named = [str(one), str(two)]
    assert skuld("results", *named).output == f"{one}\tresult\n{two}\n"
    late = skuld("results", *named, "--wait", "2m", "--json")
    assert late.exit_code == 1 and "not_ended" in late.stderr
    assert [(json.loads(line)["state"], json.loads(line)["has_result"], json.loads(line)["error"])
            for line in late.stdout.splitlines()] == [("completed", True, ""), (None, False, "why")]
    ends.pop()
    assert skuld("results", *named[:1], "--wait", "2m").exit_code == 0
    assert waited == [0, 120, 120]


def test_results_of_what_is_dead_or_cancelled_are_a_failure_that_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was a line on standard error, and the status of success: a script went on with nothing."""
    ends = [End(from_text(ID[:-1] + "1"), "completed", b"result"),
            End(from_text(ID[:-1] + "2"), "dead", None, b"ValueError: no such file\nmore"),
            End(from_text(ID[:-1] + "3"), "cancelled", None)]
    monkeypatch.setattr(clients.Client, "ends", lambda self, ids, *, wait_s: ends)
    told = skuld("results", *(str(end.id) for end in ends))

    assert told.exit_code == 1 and told.stdout.count("\n") == 3
    assert told.stderr.splitlines() == [
        f"{ends[1].id} is dead: ValueError: no such file", f"{ends[2].id} is cancelled",
        "error: ids: 2 of 3 are dead or cancelled, and will have no result unless retried [not_completed]"]
    as_json = skuld("results", *(str(end.id) for end in ends), "--json")
    assert as_json.exit_code == 1 and json.loads(as_json.stderr)["code"] == "not_completed"
    del ends[1:]
    assert skuld("results", str(ends[0].id)).exit_code == 0


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_wrong_name_in_any_locale_is_one_line(encoding: str) -> None:
    ran = subprocess.run([sys.executable, "-m", "skuld_py", "count", "\u20ac\U0001f600".encode()], cwd=TOP,
                         check=False, capture_output=True, env={"PYTHONIOENCODING": encoding, "LC_ALL": "C"})

    assert ran.returncode == 1
    assert ran.stderr.count(b"\n") == 1 and b"[bad_name]" in ran.stderr


