"""What the gateway says of each request: its number, a line of the log, and counts; and whether it is ready."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request

from gateway.asking import Asker
from gateway.conftest import Guarded
from skuld_py.embedded.local import LocalCluster
from skuld_py.gateway.journal import ID_CHARS_MAX, Journal, Reporting, request_id


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
    assert [concern for concern in attention if concern["kind"] != "paused"] == []  # others pause queues here
    ready = anybody.get("/v1/ready")
    assert ready.status == 200 and ready.json["is_ready"] and ready.json["node"]


def test_a_gateway_whose_nodes_do_not_answer_is_well_and_not_ready(cluster: LocalCluster) -> None:
    lonely = Asker(cluster.start_gateway("--nodes", "127.0.0.1:9", "--timeout", "300ms")[0])

    assert lonely.get("/v1/health").status == 200
    refused = lonely.get("/v1/ready")
    assert (refused.status, refused.json["code"], refused.json["retry"]) == (503, "not_ready", True)
