"""Workflows over HTTP and on the command line of one cluster, and its coordination log as server-sent events."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.asking import Asker
from skuld_py.embedded.local import LocalCluster

pytestmark = pytest.mark.cluster
DEFINITION: dict[str, Any] = {
    "edges": [["pages", "words"]],
    "catalog": {"pages": {"kind": "input", "files": "/data/*.gz"},
                "words": {"kind": "output", "path": "/data/words"}}}


def events(answer: Any) -> list[dict[str, Any]]:
    """The documents of a stream of events; the id of each is its position."""
    assert answer.headers["content-type"].startswith("text/event-stream")
    found = []
    for event in filter(None, answer.body.decode().split("\n\n")):
        number, data = event.split("\n")
        found.append(json.loads(data.removeprefix("data: ")))
        assert number == f"id: {found[-1]['position']}"
    return found


def test_a_workflow_is_submitted_watched_and_ended_over_http(anybody: Asker) -> None:
    def post(verb: str, **body: Any) -> Any:
        return anybody.ask("POST", f"/v1/workflows/{verb}", json.dumps(body).encode(),
                           content_type="application/json")
    made = post("submit", definition={"id": "of-http", **DEFINITION})
    assert (made.status, made.json["state"]) == (200, "live")
    assert [step["kind"] for step in made.json["steps"]] == ["input", "output"]
    again = post("submit", definition={"id": "of-http", **DEFINITION})
    assert (again.status, again.json["submitted"]) == (200, made.json["submitted"])
    other = post("submit", definition={"id": "of-http", **DEFINITION, "percentage": 3})
    assert (other.status, other.json["code"]) == (409, "other_workflow")
    wrong = post("submit", definition={"id": "of-http", "edges": []})
    assert (wrong.status, wrong.json["code"]) == (422, "bad_workflow")

    assert anybody.get("/v1/workflows/status?workflow=of-http").json["digest"] == made.json["digest"]
    assert anybody.get("/v1/workflows/await?workflow=of-http&wait_s=0.1").json["state"] == "live"
    missing = anybody.get("/v1/workflows/status?workflow=never")
    assert (missing.status, missing.json["code"]) == (404, "no_such_workflow")
    assert "of-http" in [row["id"] for row in anybody.get("/v1/workflows").json["workflows"]]

    ended = post("kill", workflow="of-http", reason="enough")
    assert (ended.json["state"], ended.json["reason"], ended.json["steps"]) == ("killed", "enough", [])
    assert anybody.get("/v1/workflows/await?workflow=of-http&wait_s=20").json["state"] == "killed"

    at = made.json["submitted"]
    log = events(anybody.get(f"/v1/log?from={at}&wait_s=0"))
    assert (log[0]["position"], log[0]["kind"], log[0]["outcome"]) == (at, "submit-workflow", "applied")
    assert log[0]["changed"] == {"workflow": "of-http", "state": "live", "steps": "2"}
    assert log[0]["time_ms"] > 0 and [row["position"] for row in log] == [*range(at, at + len(log))]
    resumed = events(anybody.ask("GET", "/v1/log?from=0&wait_s=0", last_event_id=str(at)))
    assert resumed == log[1:]
    assert anybody.ask("GET", "/v1/log", last_event_id="x").status == 400
    assert anybody.ask("GET", "/v1/log", accept="application/xml").status == 406


def test_the_command_line_submits_shows_lists_waits_and_kills(cluster: LocalCluster, tmp_path: Path) -> None:
    file = tmp_path / "flow.json"
    file.write_text(json.dumps({"id": "of-words", **DEFINITION}))

    def skuld(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "skuld_py", "workflow", *words, "--nodes",
                               ",".join(cluster.addresses)], capture_output=True, text=True, check=False)
    made = skuld("submit", str(file))
    assert (made.returncode, made.stdout) == (
        0, "workflow of-words lives: 0 of 1 input exhausted, 0 of 1 output sealed\n")
    shown = skuld("status", "of-words")
    assert "one feeder" in shown.stdout and "1 or more" in shown.stdout
    waited = skuld("await", "of-words", "--wait", "100ms")
    assert waited.returncode == 1 and "has not ended by now" in waited.stderr
    assert skuld("kill", "of-words", "--reason", "enough").stdout == "workflow of-words was killed: enough\n"
    waited = skuld("await", "of-words", "--json")
    assert waited.returncode == 1 and json.loads(waited.stdout)["state"] == "killed"
    assert "of-words" in skuld("list").stdout
    assert "no workflow never" in skuld("status", "never").stderr
