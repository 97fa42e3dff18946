"""``--json``: answers and failures are documents, whatever goes wrong and however early."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from skuld_py.cli.main import main
from skuld_py.client.claims import HeldClaim
from skuld_py.client.scheduling import Schedule
from skuld_py.errors import Fenced, Refused, Uncertain
from skuld_py.model.ids import DuplicateId, TaskId
from skuld_py.model.limiting import QueueLimits
from skuld_py.verbs.words import moment

TOP = Path(__file__).resolve().parents[2]
ID = "0" * 32


def skuld(*arguments: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(main, arguments, env=env, prog_name="skuld")


def failure(answer: Result) -> dict[str, Any]:
    assert answer.stdout == "" and "Traceback" not in answer.output
    made: dict[str, Any] = json.loads(answer.stderr)
    assert sorted(made) == ["code", "facts", "message", "outcome"]
    return made


def raising(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(self: object, *_: object, **__: object) -> None:
        raise error

    for verb in ("count", "complete", "renew", "release", "update", "get", "get_many", "log", "claim", "enqueue"):
        monkeypatch.setattr(f"skuld_py.client.client.Client.{verb}", fail)


@pytest.mark.parametrize(("error", "status", "outcome"), [
    (Refused("not_ready", "the cluster waits", nodes=3), 1, "refused"),
    (Fenced("claim 1 is lost", id=bytes(20), token=1), 1, "refused"),
    (Uncertain("deadline", "no answer", raw=b"\xff"), 3, "uncertain"),
])
@pytest.mark.parametrize("verb", [("count",), ("complete", ID, "1"), ("renew", ID, "1"), ("release", ID, "1"),
                                  ("append", ID, "1", "0", "x"), ("get", ID), ("log", ID), ("claim", "q"),
                                  ("enqueue", "q", "x")])
def test_a_failure_is_a_document_with_its_code_and_facts(
        monkeypatch: pytest.MonkeyPatch, verb: tuple[str, ...], error: Exception, status: int,
        outcome: str) -> None:
    raising(monkeypatch, error)
    for arguments, env in (((*verb, "--json"), None), (verb, {"SKULD_JSON": "1"})):
        answer = skuld(*arguments, env=env)
        made = failure(answer)

        assert (answer.exit_code, made["outcome"]) == (status, outcome)
        assert made["code"] == error.code and made["message"] == error.message  # type: ignore[attr-defined]
    assert set(made["facts"]) == set(error.facts)  # type: ignore[attr-defined]
    assert made["facts"].get("id", ID) == ID and made["facts"].get("raw", "ff") == "ff"
    assert made["facts"].get("token", "1") == "1" and made["facts"].get("nodes", 3) == 3


@pytest.mark.parametrize("arguments", [
    ("claim", "q", "--lease", "long", "--json"), ("claim", "--json", "q", "--no-such-option"), ("clam", "--json"),
    ("get", "--json"), ("--no-such-option", "claim", "--json"), ("cluster", "creat", "--json"),
    ("dev", "--json", "--worker", "q"), ("enqueue", "q", "--json")])
def test_a_wrong_command_line_is_a_document_too(arguments: tuple[str, ...]) -> None:
    answer = skuld(*arguments)
    made = failure(answer)

    assert (answer.exit_code, made["outcome"], made["code"]) == (2, "usage", "usage")


def test_a_wrong_configuration_is_a_document_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text("[claim]\nleese = 1\n")
    answer = skuld("--config", str(file), "claim", "q", "--json")
    made = failure(answer)

    assert (answer.exit_code, made["outcome"], made["code"]) == (2, "usage", "bad_config")
    assert made["facts"] == {"file": str(file), "line": 2, "key": "claim.leese"}


def test_a_checkpoint_is_set_beside_an_entry_and_numbered_like_it(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, object]] = []
    monkeypatch.setattr("skuld_py.client.client.Client.update", lambda *_, **said: given.append(said) or 4)

    for more in ((), ("--checkpoint", "900"), ("--checkpoint", "900", "--number", "9")):
        assert skuld("append", ID, "7", "3", "x", *more).exit_code == 0
    assert given == [{"seq": 3, "w": None}, {"seq": 3, "w": None, "checkpoint": b"900", "number": 3},
                     {"seq": 3, "w": None, "checkpoint": b"900", "number": 9}]


def test_a_result_is_bytes_and_a_value_is_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[object] = []
    monkeypatch.setattr("skuld_py.client.client.Client.complete", lambda _, __, what, **___: given.append(what))

    for more in ([], ["--result", "7"], ["--value", '{"pages": [1, 2]}'], ["--value", "0"],
                 ["--value", "12 pages"], ["--value", '"7"']):
        assert skuld("complete", ID, "7", *more).exit_code == 0
    assert given == [None, b"7", {"pages": [1, 2]}, 0, "12 pages", "7"]
    assert "value or result, not both" in skuld("complete", ID, "7", "--value", "1", "--result", "1").stderr


def test_what_a_claim_verb_did_is_a_document(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skuld_py.client.client.Client.complete", lambda *_, **__: 2)
    monkeypatch.setattr("skuld_py.client.client.Client.release", lambda *_, **__: None)
    monkeypatch.setattr("skuld_py.client.client.Client.update", lambda *_, **__: 4)
    of = {"id": ID, "token": "7"}

    assert json.loads(skuld("complete", ID, "7", "--json").stdout) == {**of, "is_completed": True, "copies": 2}
    assert json.loads(skuld("release", ID, "7", "--json").stdout) == {**of, "is_released": True}
    assert json.loads(skuld("append", ID, "7", "3", "x", "--json").stdout) == {**of, "next_seq": 4}
    assert skuld("append", ID, "7", "3", "x").stdout == "entry 3 is stored; the next is 4\n"


def test_an_enqueue_in_doubt_says_with_which_id_to_run_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    raising(monkeypatch, Uncertain("uncertain", "w: 1 of 2 copies", ids=ID))
    told, words = failure(skuld("enqueue", "q", "x", "--json")), skuld("enqueue", "q", "x").stderr
    named = skuld("enqueue", "q", "x", "--unique", "n").stderr

    assert told["facts"] == {"ids": ID}
    assert words == f"error: w: 1 of 2 copies; run it again with --id {ID} [uncertain]\n"
    assert "run it again as it is" in named and "--id" not in named


def test_an_enqueue_under_a_unique_name_says_whether_the_task_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for made in (TaskId(bytes(20)), DuplicateId(bytes(20))):
        monkeypatch.setattr("skuld_py.client.client.Client.enqueue", lambda *_, made=made, **__: made)
        document, words = skuld("enqueue", "q", "x", "--unique", "n", "--json"), skuld("enqueue", "q", "x")

        assert json.loads(document.stdout) == {"queue": "q", "id": ID, "is_duplicate": made.is_duplicate,
                                               "copies": 0}
        assert words.stdout == f"{ID}\n" and ("there already" in words.stderr) == made.is_duplicate


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_who_renews_is_told_when_the_lease_truly_ends_and_that_the_task_is_cancelled(
        monkeypatch: pytest.MonkeyPatch, is_cancelled: bool) -> None:
    def renew(_: object, claim: HeldClaim, *, lease_s: float) -> None:
        claim.end_ms, claim.is_cancelled = 4 * 3_600_000, is_cancelled

    monkeypatch.setattr("skuld_py.client.client.Client.renew", renew)
    answer = json.loads(skuld("renew", ID, "7", "--lease", "2h", "--json").stdout)
    words = skuld("renew", ID, "7", "--lease", "2h").stdout

    assert answer == {"id": ID, "token": "7", "lease_s": 7_200.0, "end_ms": 14_400_000,
                      "is_cancelled": is_cancelled}
    told = f"renewed: held until {moment(14_400_000)}"
    assert words == told + (", but the task is cancelled: stop\n" if is_cancelled else "\n")


def test_a_queue_is_paused_in_json_and_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    client = "skuld_py.client.client.Client"
    for verb in ("pause", "resume"):
        monkeypatch.setattr(f"{client}.{verb}", lambda *_: ["node-3:1"])
    monkeypatch.setattr(f"{client}.paused", lambda *_: ["reports"])
    of = {"queue": "reports", "missing": ["node-3:1"]}

    assert json.loads(skuld("pause", "reports", "--json").stdout) == {**of, "is_paused": True}
    assert json.loads(skuld("resume", "reports", "--json").stdout) == {**of, "is_paused": False}
    assert json.loads(skuld("paused", "--json").stdout) == {"queues": ["reports"]}
    assert "node-3:1" in skuld("pause", "reports").stdout
    assert skuld("paused").stdout == "reports\n"


def test_schedules_in_json_and_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    client, given = "skuld_py.client.client.Client", {}
    made = [Schedule("beat", "q", b"x", None, "UTC", 30.0, 0, 0, 5, {}),
            Schedule("night", "r", b"\xff", "30 2 29 2 *", "Europe/Berlin", None, 1, 2, 5, {"a": "b"})]
    monkeypatch.setattr(f"{client}.put_schedule", lambda *_, **options: given.update(options) or ["node-3:1"])
    monkeypatch.setattr(f"{client}.remove_schedule", lambda *_: [])
    monkeypatch.setattr(f"{client}.schedules", lambda *_: made)

    put = skuld("schedule", "put", "beat", "q", "x", "--every", "30s", "--max-attempts", "3", "--header", "a=b",
                "--json")
    assert json.loads(put.stdout) == {"name": "beat", "queue": "q", "missing": ["node-3:1"]}
    assert (given["every_s"], given["cron"], given["headers"]) == (30.0, None, {"a": "b"})
    assert given["retry"].max_attempts == 3
    assert json.loads(skuld("schedule", "remove", "beat", "--json").stdout) == {"name": "beat", "missing": []}
    beat, night = json.loads(skuld("schedule", "list", "--json").stdout)["schedules"]
    assert (beat["payload"], beat["every_s"], beat["when"]) == ("x", 30.0, "every 30 s")
    assert night["payload_base64"] == "/w==" and night["next"].endswith("-02-29T01:30:00+00:00")
    listed = skuld("schedule", "list").stdout.splitlines()
    assert listed[1].startswith("night  cron 30 2 29 2 * Europe/Berlin  queue r  next 20")
    made.clear()
    assert skuld("schedule", "list").stdout == "there are no schedules\n"


def test_a_queue_is_limited_in_json_and_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    client = "skuld_py.client.client.Client"
    asked: list[dict[str, Any]] = []

    def set_limits(_: Any, queue: str, **limits: Any) -> list[str]:
        asked.append({"queue": queue, **limits})
        return ["node-3:1"]
    monkeypatch.setattr(f"{client}.set_limits", set_limits)
    monkeypatch.setattr(f"{client}.remove_limits", lambda *_: [])
    known = {"mails": QueueLimits(rate=100, window_ms=60_000, burst=10),
             "reports": QueueLimits(3, key_concurrency=2),
             "shared": QueueLimits(holder_concurrency=5, lease_ms=600_000)}
    monkeypatch.setattr(f"{client}.limits", lambda _, queue: known if queue is None else {})

    said = skuld("limit", "mails", "--rate", "100", "--per", "1m", "--json").stdout
    assert json.loads(said) == {"queue": "mails", "is_limited": True, "missing": ["node-3:1"]}
    assert asked == [{"queue": "mails", "concurrency": None, "rate": 100, "per_s": 60.0, "burst": None,
                      "key_concurrency": None, "holder_concurrency": None, "longest_lease_s": None}]
    assert skuld("limit", "mails", "--holder-concurrency", "5", "--longest-lease", "10m").exit_code == 0
    assert (asked[-1]["holder_concurrency"], asked[-1]["longest_lease_s"]) == (5, 600.0)
    assert "node-3:1" in skuld("limit", "mails", "--concurrency", "3").stdout
    assert skuld("limit", "mails", "--concurrency", "0").exit_code == 2
    assert json.loads(skuld("unlimit", "mails", "--json").stdout) == {"queue": "mails", "is_limited": False,
                                                                     "missing": []}
    assert json.loads(skuld("limits", "--json").stdout) == {"queues": {
        "mails": {"rate": 100, "window_ms": 60_000, "burst": 10},
        "reports": {"concurrency": 3, "key_concurrency": 2},
        "shared": {"holder_concurrency": 5, "lease_ms": 600_000}}}
    assert skuld("limits").stdout == ("mails: 100 claimed in 1 min, and 10 more\n"
                                      "reports: 3 claimed at once, 2 of a key claimed at once\n"
                                      "shared: 5 claimed at once by one holder, claimed for 10 min at most\n")
    assert skuld("limits", "q").stdout == "q has no limits\n"


PROGRAM = ("import sys; from skuld_py.client.client import Client; from skuld_py.model.task import Task\n"
           "Client.get_many = lambda self, ids, **_: [Task(ids[0], 'q', 0, '\\xe4\\u20ac\\U0001f600'.encode())]\n"
           "Client.list = lambda self, *_, **__: (Task(bytes(20), 'q', 0, b'x' * 100) for _ in range(100_000))\n"
           "from skuld_py.cli.main import main; main(sys.argv[1:], prog_name='skuld')")


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_any_encoding_of_the_output_will_do(encoding: str) -> None:
    for arguments in (("get", ID), ("get", ID, "--json")):
        ran = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], cwd=TOP, capture_output=True,
                             env={"PYTHONIOENCODING": encoding}, check=True)
        shown = ran.stdout.decode("utf-8" if encoding == "ascii" else encoding)  # click takes ASCII for UTF-8
        if "--json" in arguments:
            assert json.loads(shown)["payload"] == "\xe4\u20ac\U0001f600"
        else:
            assert "payload   \xe4" in shown if encoding != "latin-1" else "payload   \xe4\\u20ac" in shown


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM, "list", "--json"], cwd=TOP, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as listing:
        assert listing.stdout is not None and listing.stderr is not None
        assert listing.stdout.readline()
        listing.stdout.close()
        complaints = listing.stderr.read()
        assert listing.wait(60) == 1

    assert b"Traceback" not in complaints
