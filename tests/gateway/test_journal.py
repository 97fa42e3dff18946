"""What the gateway says of each request: its number, a line of the log, and counts; and whether it is ready."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.requests import Request

from gateway.asking import Asker
from gateway.conftest import Guarded
from skuld_py.embedded.local import LocalCluster
from skuld_py.errors import Refused
from skuld_py.gateway.application import Gateway
from skuld_py.gateway.journal import ID_CHARS_MAX, Journal, Reporting, request_id
from skuld_py.gateway.limits import Limits


def request_with(number: str) -> Request:
    return Request({"type": "http", "headers": [(b"x-request-id", number.encode("latin-1"))]})


@pytest.mark.parametrize("number", ["a", "0190-abc", "x" * ID_CHARS_MAX])
def test_a_fit_number_is_kept(number: str) -> None:
    assert request_id(request_with(number)) == number


@pytest.mark.parametrize("number", ["", "a b", "a\nb", "\x1b[2J", "é", "x" * (ID_CHARS_MAX + 1)])
def test_another_one_is_replaced(number: str) -> None:
    assert request_id(request_with(number)) != number and len(request_id(request_with(number))) == 16


def test_a_line_has_the_route_and_the_token_s_name_and_facts(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    journal = Journal()
    journal.note("GET", "/v1/tasks/{id}", 200, 0.0123, "ci", "abc")

    assert caplog.messages == ["GET /v1/tasks/{id} 200 12.3 ms by ci, request abc"]
    facts: dict[str, Any] = caplog.records[0].__dict__["facts"]
    assert (facts["bearer"], facts["request_id"], facts["status"], facts["ms"]) == ("ci", "abc", 200, 12.3)
    assert journal.answered["GET", "/v1/tasks/{id}", 200] == 1


def test_a_method_of_a_stranger_s_own_making_makes_no_series() -> None:
    journal = Journal()
    for method in ("GET", "BREW", "STEAL"):
        request = Request({"type": "http", "method": method, "headers": []})
        request.state.id, request.state.arrived = "x", 0.0
        Reporting(_unsent, journal, request, "none").close()

    assert {method for method, _, _ in journal.answered} == {"GET", "other"}


def test_what_is_refused_to_the_gateway_s_key_is_an_error_said_once_in_a_while(
        caplog: pytest.LogCaptureFixture) -> None:
    journal, denied = Journal(), Refused("denied", "key: the nodes do not know it")
    for now, error in ((0, denied), (1, denied), (2, Refused("wrong_cluster_key", "key: not it")),
                       (3, Refused("bad_name", "queue: no")), (59, denied), (60, denied)):
        journal.note_failure(error, f"r{now}", now)

    assert [(record.levelname, record.getMessage().rpartition(" ")[2]) for record in caplog.records] == [
        ("ERROR", "r0"), ("ERROR", "r2"), ("ERROR", "r60")]
    assert "key: the nodes do not know it [denied]" in caplog.messages[0]
    assert {sample.labels["code"]: sample.value for family in journal.collect() for sample in family.samples
            if family.name == "skuld_gateway_key_refused"} == {
        "denied": 4, "key_needed": 0, "wrong_cluster_key": 1}


class Stranger:
    """A client whose key opens nothing any more."""

    async def status(self) -> None:
        raise Refused("denied", "key: the nodes do not know the key of gateway-7")

    greeting = status


async def _answered(application: Any, path: str) -> tuple[int, dict[str, Any]]:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)
    await application({"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": [],
                       "client": ("127.0.0.1", 1)}, receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"])


@pytest.mark.parametrize("path", ["/v1/status", "/v1/ready"])
def test_a_gateway_whose_key_opens_nothing_says_so_in_its_log_and_blames_no_caller(
        path: str, caplog: pytest.LogCaptureFixture) -> None:
    gateway = Gateway(cast(Any, Stranger()), None, Limits(), None)
    status, problem = asyncio.run(_answered(gateway.application(), path))

    assert (status, problem["code"], problem["field"]) == (502, "denied", None)
    error, = (record for record in caplog.records if record.levelname == "ERROR")
    assert "gateway-7" in error.getMessage() and problem["request_id"] in error.getMessage()


def test_who_may_not_is_named_all_the_same(guarded: Guarded, cluster: LocalCluster) -> None:
    assert guarded.with_scope("read").ask("GET", "/v1/status", x_request_id="may-not").status == 403
    end = time.monotonic() + 10
    while not (line := [line for path in _logs(cluster) for line in path.read_text().splitlines()
                        if "request may-not" in line and " 403 " in line]):
        assert time.monotonic() < end
        time.sleep(0.02)
    assert "by read, request may-not" in line[0]


async def _unsent(_: object) -> None:
    raise AssertionError("nothing is sent")


def test_every_answer_has_its_number_refusals_too(anybody: Asker) -> None:
    for path in ("/v1/health", "/v1/nothing", "/openapi.json"):
        assert anybody.ask("GET", path, x_request_id="mine").headers["x-request-id"] == "mine"
    refused = anybody.ask("GET", "/v1/nothing", x_request_id="mine")
    assert refused.json["request_id"] == "mine"
    assert len(anybody.get("/v1/health").headers["x-request-id"]) == 16


def test_the_log_names_the_token_and_never_the_token_itself(cluster: LocalCluster, guarded: Guarded) -> None:
    asked = guarded.with_scope("admin").ask("GET", "/v1/status", x_request_id="to-be-found")
    assert asked.status == 200
    end = time.monotonic() + 10
    while "to-be-found" not in (text := "".join(map(Path.read_text, _logs(cluster)))):
        assert time.monotonic() < end, "the line does not come"
        time.sleep(0.05)

    lines = [line for line in text.splitlines() if "to-be-found" in line]
    assert len(lines) == 1 and "GET /v1/status 200" in lines[0] and "by admin, request to-be-found" in lines[0]
    assert not any(token in text for token in guarded.tokens.values())


def _logs(cluster: LocalCluster) -> list[Path]:
    return sorted(cluster.gateway_log(0).parent.glob("gateway*"))


def test_the_cluster_s_attention_is_in_its_status_and_it_is_ready(anybody: Asker) -> None:
    attention = anybody.get("/v1/status").json["attention"]
    of_others = ("paused", "starved", "held")  # by tests that share the cluster
    assert [concern["kind"] for concern in attention if concern["kind"] not in of_others] == ["solo"]
    ready = anybody.get("/v1/ready")
    assert ready.status == 200 and ready.json["is_ready"] and ready.json["node"]


def test_a_gateway_whose_nodes_do_not_answer_is_well_and_not_ready(cluster: LocalCluster) -> None:
    lonely = Asker(cluster.start_gateway("--nodes", "127.0.0.1:9", "--timeout", "300ms")[0])

    assert lonely.get("/v1/health").status == 200
    refused = lonely.get("/v1/ready")
    assert (refused.status, refused.json["code"], refused.json["retry"]) == (503, "not_ready", True)
